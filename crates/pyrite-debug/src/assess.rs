//! From two runs to a verdict.
//!
//! Results that are close pass. Otherwise the reference is asked again, each time for a reason: in double precision,
//! to see which side is nearer to the fp64; as it is, to see whether it agrees with itself; with other rounding, to see
//! how far rounding alone moves the results, and with every integer the other way that rounding can tip over. Only what none of these explains is a failure.

use pyrite_compare::{
    Accuracy, Class as Part, Difference, Note, Numbers, Outcome, Remark, Report, Results as Compared, Role, Roundings,
    Rule, ValuePath, compare, excuse,
};
use pyrite_compiler::training::{Results, flatten};
use pyrite_ir::Value;
use pyrite_oracle::{Class, Detail, Signature, Stage, Verdict};
use pyrite_tensor::Tensor;

use crate::judge::{Broken, Ran};
use crate::switches::{Fp64, Switches};

/// How the reference is asked once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// As before.
    Same,
    /// In double precision.
    Double,
    /// With other rounding, as this seed has it.
    Perturbed(u64),
    /// With every integer the other way that rounding can tip over; an error where there is none.
    Tipped,
}

/// The answer, and the comparison if there was one.
pub struct Assessment {
    /// The answer.
    pub verdict: Verdict,
    /// What was found.
    pub report: Option<Report>,
}

/// How many runs with other rounding the error model takes.
const SAMPLES: u64 = 3;

/// How many times as far as one sample a result must be for more samples to be pointless.
const HOPELESS: f64 = 20.0;

/// When the bound of the error model is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// For every difference that rounding can make.
    Always,
    /// Only where it is likely to excuse a difference: a search asks often about large programs, and most failures are far from
    /// noise.
    WhereItMayExcuse,
}

/// How far beyond what double precision allows a result must be for rounding not to be asked: the reference's own error
/// is of the size of rounding, unless it is lucky, and nobody is that lucky.
const GROSS: f64 = 100.0;

/// What becomes of a backend's results beside the reference's. `again` runs the reference once more.
pub fn assess(
    expected: &Results,
    actual: &Results,
    accuracy: Accuracy,
    switches: &Switches,
    bound: Bound,
    again: &mut dyn FnMut(Again) -> Result<Ran, Broken>,
) -> Assessment {
    if accuracy == Accuracy::Off {
        return Assessment { verdict: Verdict::Pass, report: None };
    }
    let options = switches.options(accuracy);
    let (expected, actual) = (compared(expected), compared(actual));
    let mut report = compare(&expected, &actual, None, &options);
    let fp64 = if accuracy == Accuracy::Fp { switches.fp64 } else { Fp64::Unused };
    let mut double = None;
    let invalid = |why: String| Assessment { verdict: Verdict::Invalid(why), report: None };
    if fp64 == Fp64::Required || fp64 == Fp64::Used && !report.agrees() {
        match again(Again::Double) {
            Ok(fp64) => {
                let fp64 = double.insert(compared(&fp64.results));
                report = compare(&expected, &actual, Some(fp64), &options);
            }
            Err(broken) if fp64 == Fp64::Required => {
                return invalid(format!("fp64 was required and cannot be computed: {}", broken.error));
            }
            Err(broken) => {
                let place = ValuePath { group: "results".to_owned(), name: String::new(), path: Vec::new() };
                report.notes.push(Note { place, remark: Remark::NoFp64(broken.error.to_string()) });
            }
        }
    }
    if !report.agrees() {
        if let Ok(second) = again(Again::Same) {
            let itself = compare(&expected, &compared(&second.results), None, &options);
            if let Some(why) = set_aside_unstable(&mut report, &itself) {
                return invalid(why);
            }
        }
        if fp64 != Fp64::Unused {
            let reach = if bound == Bound::Always { Reach::Any } else { reach_of(&report) };
            excuse_rounding(&mut report, [&expected, &actual], double.as_ref(), reach, again);
        }
    }
    let verdict = match report.outcome() {
        Outcome::Same => Verdict::Pass,
        Outcome::Noise => Verdict::Noise,
        Outcome::Different => Verdict::Fail(signature_of(&report, accuracy)),
    };
    Assessment { verdict, report: Some(report) }
}

/// Takes what two runs of a reference disagree about out of a comparison with it; why nothing can be told where that is
/// all there is. Integers that differ from run to run are open; numbers that do may hide a failure or pretend one.
pub(crate) fn set_aside_unstable(report: &mut Report, itself: &Report) -> Option<String> {
    let unstable = |place: &ValuePath| itself.differences.iter().find(|difference| difference.place == *place);
    let mut doubtful = None;
    for difference in std::mem::take(&mut report.differences) {
        match unstable(&difference.place) {
            Some(own) if own.rule == Rule::Exact && difference.rule == Rule::Exact && difference.numbers.is_some() => {
                let remark = difference.numbers.map(Remark::Noise);
                report.notes.extend(remark.map(|remark| Note { place: difference.place, remark }));
            }
            Some(own) => {
                doubtful.get_or_insert_with(|| own.clone());
            }
            None => report.differences.push(difference),
        }
    }
    let worst = doubtful.filter(|_| report.agrees())?;
    Some(format!("unstable reference: run twice, it differs from itself at {worst}"))
}

/// What of rounding may explain a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Numbers that move, and integers that tip over.
    Any,
    /// Only integers that tip over.
    Tips,
    /// Nothing.
    Nothing,
}

/// What may explain a comparison. Numbers that are grossly wrong do not move by rounding; they may follow from an integer that
/// tips over, unless a large part of an output is wrong.
fn reach_of(report: &Report) -> Reach {
    let gross = |numbers: &Numbers| numbers.expected_rmse.is_some() && numbers.severity.0 > GROSS;
    let gross: Vec<_> = report.differences.iter().filter(|d| d.numbers.as_ref().is_some_and(|n| gross(n))).collect();
    let wide = |numbers: &Numbers| numbers.elements >= WIDE && numbers.differing > numbers.elements / 4;
    let of_output = |d: &&Difference| d.place.group == "outputs" && d.numbers.as_ref().is_some_and(|n| wide(n));
    if gross.is_empty() {
        Reach::Any
    } else if gross.iter().any(of_output) {
        Reach::Nothing
    } else {
        Reach::Tips
    }
}

/// From how many elements on a large part of an output counts.
const WIDE: usize = 64;

/// Asks how far rounding moves the results, as long as that may explain them.
fn excuse_rounding(
    report: &mut Report,
    [expected, actual]: [&Compared; 2],
    fp64: Option<&Compared>,
    reach: Reach,
    again: &mut dyn FnMut(Again) -> Result<Ran, Broken>,
) {
    let numeric = |difference: &Difference| match difference.rule {
        Rule::Tolerance | Rule::RootMeanSquare | Rule::WorstElement | Rule::Exact => difference.numbers.is_some(),
        // What computes a square root or a quotient otherwise may have a NaN more, what counts zeros another size.
        Rule::NanPosition | Rule::InfinityPosition | Rule::Shape => reach == Reach::Any,
        _ => false,
    };
    if !report.differences.iter().all(numeric) {
        return;
    }
    let mut samples = Vec::new();
    let compared_runs = |samples: &[Compared], tipped: Option<&Compared>| {
        let mut tried = report.clone();
        excuse(&mut tried, [expected, actual], &Roundings { samples, fp64, tipped });
        tried
    };
    let mut found = None;
    for seed in 1..=SAMPLES {
        if reach != Reach::Any {
            break;
        }
        let Ok(sample) = again(Again::Perturbed(seed)) else { return };
        samples.push(compared(&sample.results));
        let tried = compared_runs(&samples, None);
        let hopeless = tried
            .differences
            .iter()
            .filter_map(|difference| difference.numbers.as_ref()?.spread)
            .any(|spread| spread.actual_rmse.0 > HOPELESS * spread.rmse.0);
        let agrees = tried.agrees();
        found = Some(tried);
        if agrees || hopeless {
            break;
        }
    }
    if reach != Reach::Nothing
        && !found.as_ref().is_some_and(Report::agrees)
        && let Ok(tipped) = again(Again::Tipped)
    {
        let tried = compared_runs(&samples, Some(&compared(&tipped.results)));
        if tried.agrees() || found.is_none() {
            found = Some(tried);
        }
    }
    if let Some(found) = found {
        *report = found;
    }
}

/// What a run left behind, in the groups that are compared.
pub fn compared(results: &Results) -> Compared {
    let mut outputs = Vec::new();
    results.outputs.iter().for_each(|output| flatten(output, &mut outputs));
    let gradient = |g: &Option<Tensor>| g.clone().map_or(Value::None, Value::Tensor);
    let numbered = |values: Vec<Value<Tensor>>| values.into_iter().enumerate().map(|(i, v)| (i.to_string(), v));
    Compared::new()
        .with("outputs", Role::Outputs, numbered(outputs))
        .with("input gradients", Role::Gradients, numbered(results.input_gradients.iter().map(gradient).collect()))
        .with(
            "parameter gradients",
            Role::Gradients,
            results.parameter_gradients.iter().map(|(name, g)| (name.to_string(), gradient(g))),
        )
        .with("inputs", Role::Inputs, numbered(results.inputs.clone()))
        .with(
            "buffers",
            Role::Inputs,
            results.buffers.iter().map(|(name, t)| (name.to_string(), Value::Tensor(t.clone()))),
        )
}

/// The signature of a difference: by the worst one. Unless every bit counts, a difference of floats is another one than
/// a difference of integers: a search for the first does not end at a comparison that tips over because of it.
pub fn signature_of(report: &Report, accuracy: Accuracy) -> Signature {
    let Some(mut worst) = report.differences.first() else { return Signature::new(Stage::Forward, Class::Value) };
    let backward = report.differences.iter().all(|difference| difference.place.group.contains("gradients"));
    if worst.class == Part::Value && worst.rule == Rule::Exact {
        worst = report.differences.iter().find(|d| d.class == Part::Value && d.rule != Rule::Exact).unwrap_or(worst);
    }
    let class = match worst.class {
        Part::Structure | Part::Kind => Class::Structure,
        Part::Dtype => Class::Dtype,
        Part::Shape => Class::Shape,
        Part::Stride => Class::Stride,
        Part::Aliasing => Class::Aliasing,
        Part::Mutation => Class::Mutation,
        Part::NanPosition | Part::Value => Class::Value,
    };
    let detail = Detail {
        value: Some(worst.place.to_string()),
        rule: Some(worst.class.name().to_owned()),
        magnitude: worst.numbers.as_ref().map(|numbers| numbers.max_abs.0),
        message: Some(worst.to_string()),
    };
    let signature = Signature::new(if backward { Stage::Backward } else { Stage::Forward }, class).detailed(detail);
    if class == Class::Value && worst.rule == Rule::Exact && accuracy != Accuracy::Strict {
        return signature.raised("of integers", None);
    }
    signature
}
