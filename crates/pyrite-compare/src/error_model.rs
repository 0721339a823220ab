//! The error model: how far apart do results get by rounding alone?
//!
//! Somebody runs the reference a few times with other rounding and another order of summation. How far those *samples*
//! are from the reference says what noise is for this program and these inputs, whatever the element type. Write `d(s)`
//! for the distances of a sample from the reference, element by element, and `d(a)` for those of the other side. A
//! difference of numbers is noise when
//!
//! - the root mean square of `d(a)` is at most [`MEAN`] times the largest root mean square of a `d(s)`,
//! - the largest of `d(a)` is at most [`WORST`] times the largest of all `d(s)`, and
//! - the part of `d(a)` along the reference, which a wrong factor leaves and rounding does not, is at most [`ALONG`]
//!   times that of the samples.
//!
//! An integer or a bool that a program takes from numbers that round (the place of a maximum, a comparison) tips over where
//! two of them are near: which elements tip differs from run to run, so they are counted. Write `m` for how many differ
//! in the sample with the most; the run in double precision counts as one. A difference of integers is noise when
//!
//! - at most `m + 3 √m + 1` elements differ, which chance exceeds in one of a thousand runs, and
//! - at most `1 + m / 2` of them differ in no sample at all: an element near enough to tip over does so in some of them.
//!
//! Few elements tip over so rarely that no sample shows them. For these there is the *tipped* run, in which every integer is
//! the other way that rounding can tip. A difference of integers is noise too when every element that differs does so in
//! that run or in a sample in the same way, and numbers that follow from those integers have that run among their samples;
//! numbers that it leaves as they were move no more than other samples move any.
//!
//! NaNs and infinities that follow from rounding (the root of a difference that is zero or nearly, a quotient by it) come and
//! go in the same way, so elements where one side has one and the other has not are counted by the same rule; the other elements
//! are judged as numbers. A size that depends on such values (how many elements are not zero) differs from run to run: it may
//! by as much as the counts may, and what a value of another size holds is not compared.
//!
//! Nothing else can be excused so. A value that no sample moves is exact, and nothing excuses it.

use std::ops::ControlFlow;

use pyrite_tensor::{Complex64, Tensor};

use crate::block::each_block;
use crate::carrier::Carrier;
use crate::report::{Class, Note, Real, Remark, Report, Rule, Spread, ValuePath};
use crate::results::Results;

/// A sample moves every value by up to a whole unit in the last place, which is more than two roundings differ by.
const MEAN: f64 = 1.0;

/// The worst of few samples is not the worst there is.
const WORST: f64 = 2.0;

/// Nor is the part along the reference, which is a sum of random signs.
const ALONG: f64 = 4.0;

/// How many standard deviations more elements may tip over than in a sample.
const DEVIATIONS: f64 = 3.0;

/// Runs of the reference that say what rounding does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roundings<'a> {
    /// Runs with other rounding.
    pub samples: &'a [Results],
    /// The run in double precision.
    pub fp64: Option<&'a Results>,
    /// The run in which every integer is the other way that rounding can tip over.
    pub tipped: Option<&'a Results>,
}

/// Turns differences that rounding explains into notes of noise; the others learn how far rounding goes.
pub fn excuse(report: &mut Report, [expected, actual]: [&Results; 2], runs: &Roundings<'_>) {
    let count = runs.samples.len() + usize::from(runs.tipped.is_some());
    let differences = std::mem::take(&mut report.differences);
    for mut difference in differences {
        let of_values = matches!(difference.class, Class::Shape | Class::NanPosition | Class::Value);
        if of_values && size_depends_on_rounding(&difference.place, [expected, actual], runs) {
            report.notes.push(Note { place: difference.place.clone(), remark: Remark::Rounding(Box::new(difference)) });
            continue;
        }
        if difference.rule == Rule::Exact {
            match difference.numbers.take_if(|_| tips_over(&difference.place, [expected, actual], runs)) {
                Some(numbers) => {
                    report.notes.push(Note { place: difference.place, remark: Remark::Noise(numbers) });
                }
                None => report.differences.push(difference),
            }
            continue;
        }
        let near = match difference.rule {
            Rule::Tolerance | Rule::RootMeanSquare | Rule::WorstElement => true,
            Rule::NanPosition | Rule::InfinityPosition => {
                specials_come_and_go(&difference.place, [expected, actual], runs)
            }
            _ => false,
        };
        let (true, Some(numbers)) = (near, &mut difference.numbers) else {
            report.differences.push(difference);
            continue;
        };
        let at = |results: &Results| results.tensor(&difference.place).cloned();
        let found = at(expected).zip(at(actual)).and_then(|(expected, actual)| {
            let own = Distance::of(&expected, &actual)?;
            let samples = runs.samples.iter().chain(runs.tipped);
            let moved: Vec<Distance> = samples.filter_map(|run| Distance::of(&expected, &at(run)?)).collect();
            let most = |part: fn(&Distance) -> f64| moved.iter().map(part).fold(0.0, f64::max);
            let spread = Distance { rms: most(|d| d.rms), worst: most(|d| d.worst), along: most(|d| d.along) };
            (moved.len() == count).then_some((own, spread))
        });
        let Some((own, spread)) = found else {
            report.differences.push(difference);
            continue;
        };
        numbers.spread = Some(Spread {
            samples: count,
            rmse: Real(spread.rms),
            worst: Real(spread.worst),
            actual_rmse: Real(own.rms),
        });
        let as_far =
            own.rms <= MEAN * spread.rms && own.worst <= WORST * spread.worst && own.along <= ALONG * spread.along;
        if as_far && stays_where_nothing_tips(&difference.place, [expected, actual], runs) {
            report.notes.push(Note { place: difference.place, remark: Remark::Noise(numbers.clone()) });
        } else {
            report.differences.push(difference);
        }
    }
}

/// Whether those integers of a value differ that tip over when rounding does.
fn tips_over(place: &ValuePath, [expected, actual]: [&Results; 2], runs: &Roundings<'_>) -> bool {
    let Some(expected) = expected.tensor(place).filter(|tensor| tensor.dtype().is_integral()) else { return false };
    let wanted = expected.to_i64s();
    let differing = |run: &Results| {
        let tensor = run.tensor(place).filter(|tensor| tensor.shape() == expected.shape())?;
        Some(wanted.iter().zip(tensor.to_i64s()).map(|(e, other)| *e != other).collect::<Vec<bool>>())
    };
    let Some(own) = differing(actual) else { return false };
    if as_many_as_in(runs.samples.iter().chain(runs.fp64).filter_map(differing), &own) {
        return true;
    }
    // Near enough to tip over does not mean to anything: a wrong place is none of the two.
    let at = |run: &Results| Some(run.tensor(place).filter(|tensor| tensor.shape() == expected.shape())?.to_i64s());
    let (Some(found), Some(tipped)) = (at(actual), runs.tipped.and_then(at)) else { return false };
    let known: Vec<Vec<i64>> = runs.samples.iter().chain(runs.fp64).filter_map(at).chain([tipped]).collect();
    (0..own.len()).all(|i| !own[i] || known.iter().any(|run| run[i] == found[i]))
}

/// Whether no more elements differ than do in samples, and hardly any that does in none.
fn as_many_as_in(samples: impl Iterator<Item = Vec<bool>>, own: &[bool]) -> bool {
    let (mut most, mut ever) = (0, vec![false; own.len()]);
    for sample in samples {
        most = most.max(sample.iter().filter(|differs| **differs).count());
        ever.iter_mut().zip(&sample).for_each(|(ever, differs)| *ever |= differs);
    }
    let count = own.iter().filter(|differs| **differs).count();
    let never = own.iter().zip(&ever).filter(|(differs, ever)| **differs && !**ever).count();
    most > 0 && count as f64 <= by_chance(most) && never <= 1 + most / 2
}

/// How many may differ where as many do in a sample.
fn by_chance(most: usize) -> f64 {
    most as f64 + DEVIATIONS * (most as f64).sqrt() + 1.0
}

/// Whether NaNs and infinities stand in other places no more often than they do when rounding differs.
fn specials_come_and_go(place: &ValuePath, [expected, actual]: [&Results; 2], runs: &Roundings<'_>) -> bool {
    let Some(expected) = expected.tensor(place).filter(|tensor| !tensor.dtype().is_complex()) else { return false };
    let wanted = expected.to_f64s();
    let special = |value: f64| (value.is_nan(), if value.is_infinite() { value.signum() } else { 0.0 });
    let differing = |run: &Results| {
        let tensor = run.tensor(place).filter(|tensor| tensor.shape() == expected.shape())?;
        Some(wanted.iter().zip(tensor.to_f64s()).map(|(e, other)| special(*e) != special(other)).collect())
    };
    let all = runs.samples.iter().chain(runs.fp64).chain(runs.tipped);
    differing(actual).is_some_and(|own: Vec<bool>| as_many_as_in(all.filter_map(differing), &own))
}

/// Whether a value has another size in some run, and the other side's is as near to that of the reference as theirs are.
fn size_depends_on_rounding(place: &ValuePath, [expected, actual]: [&Results; 2], runs: &Roundings<'_>) -> bool {
    let shape = |results: &Results| results.tensor(place).map(|tensor| tensor.shape().to_vec());
    let (Some(wanted), Some(own)) = (shape(expected), shape(actual)) else { return false };
    let all = runs.samples.iter().chain(runs.fp64).chain(runs.tipped);
    let others: Vec<_> = all.filter_map(shape).filter(|other| other.len() == wanted.len()).collect();
    let most = |dim: usize| others.iter().map(|other| other[dim].abs_diff(wanted[dim])).max().unwrap_or(0) as usize;
    let fits = |dim: usize| match most(dim) {
        0 => own[dim] == wanted[dim],
        most => own[dim].abs_diff(wanted[dim]) as f64 <= by_chance(most),
    };
    let moves = others.iter().any(|other| *other != wanted);
    moves && own.len() == wanted.len() && (0..own.len()).all(fits)
}

/// Whether the elements that are as before in the tipped run move no more than other rounding moves any: what tips over explains
/// what follows from it, and not the rest.
fn stays_where_nothing_tips(place: &ValuePath, [expected, actual]: [&Results; 2], runs: &Roundings<'_>) -> bool {
    let at = |results: &Results| Some(results.tensor(place)?.to_c128s());
    let (Some(tipped), Some(expected), Some(actual)) = (runs.tipped.and_then(at), at(expected), at(actual)) else {
        return true;
    };
    let apart = |one: &Complex64, other: &Complex64| {
        let distance = (one - other).norm();
        if distance.is_finite() { distance } else { 0.0 }
    };
    let worst = |other: &[Complex64]| expected.iter().zip(other).map(|(e, o)| apart(e, o)).fold(0.0, f64::max);
    let largest = expected.iter().map(|e| e.norm()).filter(|size| size.is_finite()).fold(0.0, f64::max);
    let moved = match runs.samples {
        [] => STILL * largest,
        samples => samples.iter().filter_map(at).map(|sample| worst(&sample)).fold(0.0, f64::max),
    };
    let stays = |((e, a), t)| apart(e, t) > moved || apart(e, a) <= WORST * moved;
    expected.iter().zip(&actual).zip(&tipped).all(stays)
}

/// How far elements may move that do not tip over where no run says so, as a part of the largest.
const STILL: f64 = 1e-3;

/// How far two tensors of one shape are apart, over the elements that are finite in both.
struct Distance {
    rms: f64,
    worst: f64,
    /// How much longer or shorter the second is in the direction of the first, as a part of its length.
    along: f64,
}

impl Distance {
    fn of(a: &Tensor, b: &Tensor) -> Option<Self> {
        if a.shape() != b.shape() {
            return None;
        }
        let complex = a.dtype().is_complex() || b.dtype().is_complex();
        Some(if complex { Self::as_carrier::<Complex64>(a, b) } else { Self::as_carrier::<f64>(a, b) })
    }

    fn as_carrier<C: Carrier>(a: &Tensor, b: &Tensor) -> Self {
        let (mut square, mut worst, mut count) = (0.0, 0.0f64, 0u64);
        let (mut along, mut length) = (0.0, 0.0);
        each_block::<C, 2>([a, b], |_, [a, b]| {
            for (a, b) in a.iter().zip(b) {
                if a.is_finite() && b.is_finite() {
                    let distance = C::distance(*a, *b);
                    square += distance * distance;
                    worst = worst.max(distance);
                    count += 1;
                    along += C::product(*a, *b) - C::product(*a, *a);
                    length += C::product(*a, *a);
                }
            }
            ControlFlow::Continue(())
        });
        let part = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        Self { rms: part(square, count as f64).sqrt(), worst, along: part(along, length).abs() }
    }
}

#[cfg(test)]
mod tests {
    use pyrite_ir::Value;

    use super::*;
    use crate::{Options, Outcome, compare};

    fn results(values: &[f32]) -> Results {
        Results::outputs([Value::Tensor(Tensor::from_slice(values, &[values.len() as i64]))])
    }

    fn outcome(expected: &[f32], actual: &[f32], samples: &[&[f32]]) -> Outcome {
        let (expected, actual) = (results(expected), results(actual));
        let samples: Vec<Results> = samples.iter().map(|values| results(values)).collect();
        let mut report = compare(&expected, &actual, None, &Options::default());
        excuse(&mut report, [&expected, &actual], &Roundings { samples: &samples, ..Roundings::default() });
        report.outcome()
    }

    #[test]
    fn what_other_rounding_does_too_is_noise() {
        let moved: [&[f32]; 2] = [&[1.01, 2.0, 3.01], &[1.0, 2.01, 2.99]];
        assert_eq!(outcome(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.01], &moved), Outcome::Noise);
        assert_eq!(outcome(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.2], &moved), Outcome::Different);
    }

    #[test]
    fn a_wrong_factor_is_no_noise_however_small() {
        let expected: Vec<f32> = (1..100).map(|i| i as f32).collect();
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let moved: Vec<f32> = expected.iter().enumerate().map(|(i, v)| v * (1.0 + 0.02 * sign(i))).collect();
        let scaled: Vec<f32> = expected.iter().map(|v| v * 1.01).collect();
        assert_eq!(outcome(&expected, &scaled, &[&moved]), Outcome::Different);
        let other: Vec<f32> = expected.iter().enumerate().map(|(i, v)| v * (1.0 - 0.01 * sign(i))).collect();
        assert_eq!(outcome(&expected, &other, &[&moved]), Outcome::Noise);
    }

    #[test]
    fn what_rounding_does_not_move_is_exact() {
        assert_eq!(outcome(&[1.0, 2.0], &[1.0, 2.001], &[&[1.0, 2.0], &[1.0, 2.0]]), Outcome::Different);
    }

    #[test]
    fn integers_that_tip_over_in_the_samples_are_noise_by_their_number() {
        let results = |values: &[i64]| Results::outputs([Value::Tensor(Tensor::from_slice(values, &[20]))]);
        let expected = [0; 20];
        let changed = |count: usize, from: usize| -> Vec<i64> {
            (0..20).map(|i| i64::from(i >= from && i < from + count)).collect()
        };
        let outcome = |actual: &[i64], sample: &[i64]| {
            let (expected, actual) = (results(&expected), results(actual));
            let mut report = compare(&expected, &actual, None, &Options::default());
            let samples = [results(&[0; 20]), results(sample)];
            excuse(&mut report, [&expected, &actual], &Roundings { samples: &samples, ..Roundings::default() });
            report.outcome()
        };
        assert_eq!(outcome(&changed(1, 3), &changed(1, 11)), Outcome::Noise, "other elements tip over in other runs");
        assert_eq!(outcome(&changed(9, 3), &changed(1, 11)), Outcome::Different);
        assert_eq!(outcome(&changed(4, 3), &changed(1, 11)), Outcome::Different, "three of them never tip over");
        assert_eq!(outcome(&changed(4, 3), &changed(3, 4)), Outcome::Noise, "most of them tip over in a sample");
        assert_eq!(outcome(&changed(1, 3), &changed(0, 0)), Outcome::Different, "nothing tips over");
    }

    #[test]
    fn integers_that_no_sample_moves_are_noise_where_rounding_can_tip_them() {
        let results = |values: &[i64]| Results::outputs([Value::Tensor(Tensor::from_slice(values, &[4]))]);
        let outcome = |actual: &[i64]| {
            let (expected, actual, tipped) = (results(&[0; 4]), results(actual), results(&[0, 1, 1, 0]));
            let mut report = compare(&expected, &actual, None, &Options::default());
            let runs = Roundings { samples: &[results(&[0; 4])], fp64: None, tipped: Some(&tipped) };
            excuse(&mut report, [&expected, &actual], &runs);
            report.outcome()
        };
        assert_eq!(outcome(&[0, 1, 0, 0]), Outcome::Noise);
        assert_eq!(outcome(&[0, 1, 0, 1]), Outcome::Different, "one of them cannot tip over");
        assert_eq!(outcome(&[0, 2, 0, 0]), Outcome::Different, "it tips over to another one");
    }

    #[test]
    fn a_nan_is_never_noise() {
        assert_eq!(outcome(&[1.0, 2.0], &[1.0, f32::NAN], &[&[9.0, 9.0]]), Outcome::Different);
    }
}
