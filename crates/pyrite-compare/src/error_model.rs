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
//! that run or in a sample in the same way, and numbers that follow from those integers have that run among their samples.
//!
//! Nothing else can be excused so: never a shape or a place of a NaN. A value that no sample moves is exact, and nothing
//! excuses it.

use std::ops::ControlFlow;

use pyrite_tensor::{Complex64, Tensor};

use crate::block::each_block;
use crate::carrier::Carrier;
use crate::report::{Note, Real, Remark, Report, Rule, Spread, ValuePath};
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
        if difference.rule == Rule::Exact {
            match difference.numbers.take_if(|_| tips_over(&difference.place, [expected, actual], runs)) {
                Some(numbers) => {
                    report.notes.push(Note { place: difference.place, remark: Remark::Noise(numbers) });
                }
                None => report.differences.push(difference),
            }
            continue;
        }
        let near = matches!(difference.rule, Rule::Tolerance | Rule::RootMeanSquare | Rule::WorstElement);
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
        if own.rms <= MEAN * spread.rms && own.worst <= WORST * spread.worst && own.along <= ALONG * spread.along {
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
    let (mut most, mut ever) = (0, vec![false; own.len()]);
    for tipped in runs.samples.iter().chain(runs.fp64).filter_map(differing) {
        most = most.max(tipped.iter().filter(|tips| **tips).count());
        ever.iter_mut().zip(&tipped).for_each(|(ever, tips)| *ever |= tips);
    }
    let count = own.iter().filter(|tips| **tips).count();
    let never = own.iter().zip(&ever).filter(|(tips, ever)| **tips && !**ever).count();
    let by_chance = most as f64 + DEVIATIONS * (most as f64).sqrt() + 1.0;
    if most > 0 && count as f64 <= by_chance && never <= 1 + most / 2 {
        return true;
    }
    // Near enough to tip over does not mean to anything: a wrong place is none of the two.
    let at = |run: &Results| Some(run.tensor(place).filter(|tensor| tensor.shape() == expected.shape())?.to_i64s());
    let (Some(found), Some(tipped)) = (at(actual), runs.tipped.and_then(at)) else { return false };
    let known: Vec<Vec<i64>> = runs.samples.iter().chain(runs.fp64).filter_map(at).chain([tipped]).collect();
    (0..own.len()).all(|i| !own[i] || known.iter().any(|run| run[i] == found[i]))
}

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
