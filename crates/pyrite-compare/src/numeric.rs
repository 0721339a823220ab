//! Judging the numbers of two tensors of one shape.
//!
//! First a pass that only asks whether every element is close; equal bytes spare even that. Where it fails, a second
//! pass gathers the statistics, and with an fp64 reference they decide. Write `e`, `a`, `t` for an element of the reference, of
//! the other side and of the fp64 reference, and `tol(t) = atol + rtol |t|`. A value that is not close passes as noise when
//!
//! - NaN and infinity stand in `a` where they stand in `e`; where `e` is not finite, those of `t` are as good,
//! - the root mean square of `a - t` is at most `m` times that of `e - t`, plus a tenth of the tolerance of the root
//!   mean square of `t`, and
//! - no `|a - t|` is more than `tol(t)` above `w m max |e - t|`,
//!
//! with `m` and `w` from [`Judgement`](crate::Judgement). An element for which `t` is not finite has to be close to `e`.
//! Where the options name a cosine, a direction that is near enough passes too.

use std::ops::ControlFlow;

use pyrite_tensor::{Complex64, DType, Tensor};

use crate::block::{each_block, same_bytes};
use crate::carrier::{Carrier, Meeting};
use crate::options::{Accuracy, Nans, Options, Tolerance};
use crate::report::{Numbers, Quantiles, Real, Rule, Worst};

/// What the numbers say.
pub enum Verdict {
    /// All are close.
    Same,
    /// Some are not, and the fp64 excuses them.
    Noise(Box<Numbers>),
    /// The rule is broken.
    Broken(Rule, Box<Numbers>),
}

/// Compares the elements of two tensors of one shape, maybe of different types. The fp64 reference has that shape too.
pub fn judge(
    expected: &Tensor,
    actual: &Tensor,
    fp64: Option<&Tensor>,
    tolerance: Tolerance,
    options: &Options,
) -> Verdict {
    let (e, a) = (expected.dtype(), actual.dtype());
    let nan_matters = options.nans == Nans::Unequal && (e.is_inexact() || a.is_inexact());
    if !nan_matters && same_bytes(expected, actual) {
        return Verdict::Same;
    }
    if e.is_complex() || a.is_complex() {
        judge_as::<Complex64>(expected, actual, fp64, tolerance, options)
    } else if e.is_float() || a.is_float() {
        judge_as::<f64>(expected, actual, fp64, tolerance, options)
    } else {
        judge_as::<i64>(expected, actual, None, tolerance, options)
    }
}

fn judge_as<C: Carrier>(
    expected: &Tensor,
    actual: &Tensor,
    fp64: Option<&Tensor>,
    tolerance: Tolerance,
    options: &Options,
) -> Verdict {
    let measure = match options.accuracy {
        Accuracy::Strict => Measure::Bits { nans: options.nans },
        Accuracy::Off | Accuracy::Fp => Measure::Close { tolerance, nans: options.nans },
    };
    let mut close = true;
    each_block::<C, 2>([expected, actual], |_, [e, a]| {
        close = measure.all(e, a);
        if close { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if close {
        return Verdict::Same;
    }

    let mut tally = Tally::<C>::new(measure);
    match fp64 {
        Some(fp64) => each_block([expected, actual, fp64], |first, [e, a, t]| {
            for i in 0..e.len() {
                tally.add(first + i, e[i], a[i], Some(t[i]));
            }
            ControlFlow::Continue(())
        }),
        None => each_block([expected, actual], |first, [e, a]| {
            for i in 0..e.len() {
                tally.add(first + i, e[i], a[i], None);
            }
            ControlFlow::Continue(())
        }),
    }
    tally.verdict(expected, actual, fp64.is_some(), options)
}

/// When two elements count as equal.
#[derive(Clone, Copy)]
enum Measure {
    Bits { nans: Nans },
    Close { tolerance: Tolerance, nans: Nans },
}

impl Measure {
    fn nans(self) -> Nans {
        match self {
            Self::Bits { nans } | Self::Close { nans, .. } => nans,
        }
    }

    fn tolerance(self) -> Tolerance {
        match self {
            Self::Bits { .. } => Tolerance::EXACT,
            Self::Close { tolerance, .. } => tolerance,
        }
    }

    fn one<C: Carrier>(self, expected: C, actual: C) -> bool {
        match self {
            Self::Bits { nans } => C::same_bits(expected, actual) && C::meet(expected, actual, nans) == Meeting::Agree,
            Self::Close { tolerance, nans } => C::is_close(expected, actual, tolerance, nans),
        }
    }

    fn all<C: Carrier>(self, expected: &[C], actual: &[C]) -> bool {
        match self {
            Self::Bits { .. } => expected.iter().zip(actual).all(|(e, a)| self.one(*e, *a)),
            Self::Close { tolerance, nans } => C::all_close(expected, actual, tolerance, nans),
        }
    }
}

/// The element with the largest key so far; the first of equals.
struct Extreme<C> {
    key: f64,
    found: Option<(usize, C, C, Option<C>)>,
}

impl<C: Copy> Extreme<C> {
    fn new() -> Self {
        Self { key: f64::NEG_INFINITY, found: None }
    }

    fn offer(&mut self, key: f64, index: usize, expected: C, actual: C, fp64: Option<C>) {
        if key > self.key || self.found.is_none() {
            *self = Self { key, found: Some((index, expected, actual, fp64)) };
        }
    }
}

/// Quarters of octaves: enough for quantiles, and cheap to find from the bits of a float.
const BINS: usize = 1 << 13;

/// The statistics of a pass.
struct Tally<C> {
    measure: Measure,
    elements: usize,
    differing: usize,
    /// Elements where NaN or infinity stand in the wrong place.
    nans: usize,
    infinities: usize,
    /// Elements that are not close, and whose fp64 is not finite.
    unjudged: usize,
    misplaced: Extreme<C>,
    against_expected: Extreme<C>,
    against_fp64: Extreme<C>,
    max_abs: f64,
    max_rel: f64,
    passing: f64,
    bins: Vec<u64>,
    finite: u64,
    product: f64,
    expected_square: f64,
    actual_square: f64,
    /// Elements that are finite on all three sides, and sums over them.
    judged: u64,
    fp64_square: f64,
    expected_error_square: f64,
    actual_error_square: f64,
    expected_worst_error: f64,
}

impl<C: Carrier> Tally<C> {
    fn new(measure: Measure) -> Self {
        Self {
            measure,
            elements: 0,
            differing: 0,
            nans: 0,
            infinities: 0,
            unjudged: 0,
            misplaced: Extreme::new(),
            against_expected: Extreme::new(),
            against_fp64: Extreme::new(),
            max_abs: 0.0,
            max_rel: 0.0,
            passing: 0.0,
            bins: vec![0; BINS],
            finite: 0,
            product: 0.0,
            expected_square: 0.0,
            actual_square: 0.0,
            judged: 0,
            fp64_square: 0.0,
            expected_error_square: 0.0,
            actual_error_square: 0.0,
            expected_worst_error: 0.0,
        }
    }

    fn add(&mut self, index: usize, e: C, a: C, t: Option<C>) {
        self.elements += 1;
        let distance = C::distance(e, a);
        let magnitude = e.magnitude();
        if e.is_finite() && a.is_finite() {
            self.finite += 1;
            self.max_abs = self.max_abs.max(distance);
            if magnitude > 0.0 {
                self.max_rel = self.max_rel.max(distance / magnitude);
            }
            self.passing = self.passing.max(distance / (1.0 + magnitude));
            self.bins[(distance.to_bits() >> 50) as usize] += 1;
            self.product += C::product(e, a);
            self.expected_square += C::product(e, e);
            self.actual_square += C::product(a, a);
        }
        let close = self.measure.one(e, a);
        if !close {
            self.differ(index, e, a, t);
        }
        if let Some(t) = t.filter(|t| t.is_finite())
            && e.is_finite()
        {
            let error = C::distance(t, e);
            self.expected_worst_error = self.expected_worst_error.max(error);
            if a.is_finite() {
                let actual_error = C::distance(t, a);
                self.judged += 1;
                self.fp64_square += C::product(t, t);
                self.expected_error_square += error * error;
                self.actual_error_square += actual_error * actual_error;
            }
        }
    }

    /// Takes in an element that is not close.
    fn differ(&mut self, index: usize, e: C, a: C, t: Option<C>) {
        self.differing += 1;
        let (nans, tolerance) = (self.measure.nans(), self.measure.tolerance());
        let meeting = C::meet(e, a, nans);
        let judged_by_fp64 = t.is_some_and(C::is_finite) && a.is_finite();
        if meeting == Meeting::Agree {
            let ratio = excess_ratio(C::distance(e, a), tolerance.bound(e.magnitude()));
            self.against_expected.offer(ratio, index, e, a, t);
            self.unjudged += usize::from(!judged_by_fp64);
        } else {
            let excused = !e.is_finite()
                && t.is_some_and(|t| judged_by_fp64 || !t.is_finite() && C::meet(t, a, nans) == Meeting::Agree);
            if !excused {
                match meeting {
                    Meeting::Nan => self.nans += 1,
                    _ => self.infinities += 1,
                }
                self.misplaced.offer(0.0, index, e, a, t);
            }
        }
        if let Some(t) = t.filter(|_| judged_by_fp64) {
            let excess = C::distance(t, a) - tolerance.bound(t.magnitude());
            self.against_fp64.offer(excess, index, e, a, Some(t));
        }
    }

    fn verdict(self, expected: &Tensor, actual: &Tensor, has_fp64: bool, options: &Options) -> Verdict {
        let dtype = expected.dtype();
        let tolerance = self.measure.tolerance();
        let mean = |sum: f64| if self.judged == 0 { 0.0 } else { (sum / self.judged as f64).sqrt() };
        let expected_rmse = mean(self.expected_error_square);
        let actual_rmse = mean(self.actual_error_square);
        let multiplier = options.judgement.multiplier_for(dtype, self.elements);
        let rmse_limit = multiplier * expected_rmse + tolerance.bound(mean(self.fp64_square)) / 10.0;
        let worst_limit = options.judgement.worst * multiplier * self.expected_worst_error;
        let worst_excess = self.against_fp64.key;

        let exact = dtype.is_integral() && actual.dtype().is_integral();
        let broken = if self.nans > 0 {
            Some(if options.nans == Nans::Unequal { Rule::NoNan } else { Rule::NanPosition })
        } else if self.infinities > 0 {
            Some(Rule::InfinityPosition)
        } else if exact {
            Some(Rule::Exact)
        } else if matches!(self.measure, Measure::Bits { .. }) {
            Some(Rule::Bitwise)
        } else if options.cosine.is_some_and(|least| self.cosine().is_some_and(|cosine| cosine >= least)) {
            None
        } else if !has_fp64 || self.unjudged > 0 {
            Some(Rule::Tolerance)
        } else if !(actual_rmse <= rmse_limit && rmse_limit.is_finite()) {
            Some(Rule::RootMeanSquare)
        } else if !(worst_excess <= worst_limit && worst_limit.is_finite()) {
            Some(Rule::WorstElement)
        } else {
            None
        };

        let severity = match broken {
            None => 0.0,
            Some(Rule::NanPosition | Rule::NoNan | Rule::InfinityPosition) => f64::INFINITY,
            Some(Rule::Exact | Rule::Bitwise) => self.max_abs,
            Some(Rule::RootMeanSquare) => excess_ratio(actual_rmse, rmse_limit),
            Some(Rule::WorstElement) => excess_ratio(worst_excess, worst_limit),
            Some(_) => self.against_expected.key,
        };
        let extremes = match broken {
            Some(Rule::NanPosition | Rule::NoNan | Rule::InfinityPosition) => [&self.misplaced, &self.against_expected],
            Some(Rule::RootMeanSquare | Rule::WorstElement) | None => [&self.against_fp64, &self.against_expected],
            Some(_) => [&self.against_expected, &self.misplaced],
        };
        let (index, e, a, t) = extremes.into_iter().find_map(|extreme| extreme.found).unwrap_or_default();
        let numbers = Box::new(Numbers {
            elements: self.elements,
            differing: self.differing,
            worst: Worst {
                index: coordinates(index, expected.shape()),
                expected: e.text(dtype),
                actual: a.text(actual.dtype()),
                fp64: t.map(|t| t.text(DType::F64)),
                ulps: C::ulps(e, a, dtype),
            },
            max_abs: Real(self.max_abs),
            max_rel: Real(self.max_rel),
            quantiles: self.quantiles(),
            passing_tolerance: Real(self.passing),
            cosine: self.cosine().map(Real),
            spread: None,
            expected_rmse: has_fp64.then_some(Real(expected_rmse)),
            actual_rmse: has_fp64.then_some(Real(actual_rmse)),
            severity: Real(severity),
        });
        match broken {
            Some(rule) => Verdict::Broken(rule, numbers),
            None => Verdict::Noise(numbers),
        }
    }

    /// The cosine of the angle between both sides; nothing when one of them is zero.
    fn cosine(&self) -> Option<f64> {
        let norm = (self.expected_square * self.actual_square).sqrt();
        (norm > 0.0).then(|| self.product / norm)
    }

    fn quantiles(&self) -> Quantiles {
        let quantile = |part: f64| {
            let rank = (part * self.finite as f64).ceil() as u64;
            let mut seen = 0;
            let bin = self.bins.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            match bin {
                None | Some(0) => Real(0.0),
                Some(bin) => Real(f64::from_bits((bin as u64 + 1) << 50).min(self.max_abs)),
            }
        };
        Quantiles { p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99) }
    }
}

/// A distance in units of what is allowed.
fn excess_ratio(distance: f64, allowed: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { distance / allowed }
}

/// The coordinates of an element by its number in logical order.
fn coordinates(index: usize, shape: &[i64]) -> Vec<i64> {
    let mut rest = index as i64;
    let mut coordinates: Vec<i64> = shape
        .iter()
        .rev()
        .map(|size| {
            let size = (*size).max(1);
            let at = rest % size;
            rest /= size;
            at
        })
        .collect();
    coordinates.reverse();
    coordinates
}
