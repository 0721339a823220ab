//! Judging what fails only sometimes.
//!
//! A failure that comes in one run of five says nothing by staying away once, and a candidate that fails in one run of a
//! thousand is no smaller form of it. So a candidate is run again and again until Wald's sequential test decides between
//! two hypotheses: it fails about as often as the start did, or hardly ever. The test stops as soon as the stated
//! confidence is reached, and is wrong, either way, with at most the probability that is left.

use crate::{Oracle, Signature, Verdict};

/// The part of the start's rate that a candidate must at least have to count as failing.
const KEPT: f64 = 0.75;

/// The part of the start's rate that counts as hardly ever.
const RARE: f64 = 0.1;

/// How sure a decision is that says nothing else.
pub const CONFIDENCE: f64 = 0.99;

/// A sequential test of a rate.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    often: f64,
    rare: f64,
    confidence: f64,
}

/// What runs have shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Not enough.
    Open,
    /// It fails about as often.
    Fails,
    /// It hardly ever fails.
    Passes,
}

impl Test {
    /// A test for what failed in so many of so many runs, with a confidence between a half and one.
    pub fn of(failed: u32, runs: u32, confidence: f64) -> Self {
        let rate = (f64::from(failed.max(1)) / f64::from(runs.max(1))).clamp(0.01, 0.99);
        Self { often: rate * KEPT, rare: rate * RARE, confidence: confidence.clamp(0.5, 0.9999) }
    }

    /// How sure a decision is.
    pub fn confidence(&self) -> f64 {
        self.confidence
    }

    /// What so many failures in so many runs say.
    pub fn decide(&self, failed: u32, runs: u32) -> Decision {
        let passed = f64::from(runs - failed);
        let evidence =
            f64::from(failed) * (self.often / self.rare).ln() + passed * ((1.0 - self.often) / (1.0 - self.rare)).ln();
        let bound = (self.confidence / (1.0 - self.confidence)).ln();
        match evidence {
            e if e >= bound => Decision::Fails,
            e if e <= -bound => Decision::Passes,
            _ => Decision::Open,
        }
    }
}

/// An oracle that asks another as often as a test needs; see the module's text.
pub struct Sequential<'a, C> {
    /// Who is asked.
    pub oracle: &'a dyn Oracle<C>,
    /// How it is decided.
    pub test: Test,
    /// Which failure counts.
    pub held: Signature,
}

impl<C> Oracle<C> for Sequential<'_, C> {
    fn judge(&self, candidate: &C) -> Verdict {
        let (mut failed, mut runs) = (0, 0);
        let mut found = None;
        let mut other = Verdict::Pass;
        loop {
            runs += 1;
            match self.oracle.judge(candidate) {
                Verdict::Invalid(why) => return Verdict::Invalid(why),
                Verdict::Fail(signature) | Verdict::Flaky { signature, .. } => {
                    if self.held.holds(&signature) {
                        failed += 1;
                        found.get_or_insert(signature);
                    } else {
                        other = Verdict::Fail(signature);
                    }
                }
                Verdict::Noise if other == Verdict::Pass => other = Verdict::Noise,
                Verdict::Pass | Verdict::Noise => {}
            }
            match (self.test.decide(failed, runs), &found) {
                (Decision::Open, _) => {}
                (Decision::Fails, Some(signature)) if failed == runs => return Verdict::Fail(signature.clone()),
                (Decision::Fails, Some(signature)) => {
                    return Verdict::Flaky { failed, runs, signature: signature.clone() };
                }
                (Decision::Fails | Decision::Passes, _) => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{Class, Stage};

    fn signature() -> Signature {
        Signature::new(Stage::Forward, Class::Value)
    }

    /// Fails with a probability, by a generator of its own.
    fn sometimes(rate: f64, seed: u64) -> impl Fn(&()) -> Verdict + Sync {
        let state = AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        move |()| {
            let step = state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            let mut mixed = (step ^ (step >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let drawn = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
            if drawn < rate { Verdict::Fail(signature()) } else { Verdict::Pass }
        }
    }

    fn failing_of_a_thousand(rate: f64) -> usize {
        let judged = (0..1000).map(|seed| {
            let oracle = sometimes(rate, seed);
            Sequential { oracle: &oracle, test: Test::of(1, 5, CONFIDENCE), held: signature() }.judge(&())
        });
        judged.filter(|verdict| verdict.signature().is_some()).count()
    }

    #[test]
    fn one_failure_in_five_is_told_from_hardly_any() {
        assert!(failing_of_a_thousand(0.2) >= 985);
        assert_eq!(failing_of_a_thousand(0.0), 0);
        assert!(failing_of_a_thousand(0.01) <= 10);
    }

    #[test]
    fn one_lucky_run_decides_nothing() {
        let test = Test::of(1, 5, CONFIDENCE);
        assert_eq!(test.decide(1, 1), Decision::Open);
        assert_eq!(test.decide(0, 1), Decision::Open);
        assert_eq!(test.decide(0, 60), Decision::Passes);
        assert_eq!(test.decide(5, 20), Decision::Fails);
    }

    #[test]
    fn another_failure_is_told_and_does_not_count() {
        let other = Signature::new(Stage::Compile, Class::Error);
        let oracle = |(): &()| Verdict::Fail(other.clone());
        let judged = Sequential { oracle: &oracle, test: Test::of(1, 5, CONFIDENCE), held: signature() }.judge(&());
        assert_eq!(judged, Verdict::Fail(other.clone()));
        let invalid = |(): &()| Verdict::Invalid("no program".to_owned());
        let judged = Sequential { oracle: &invalid, test: Test::of(1, 5, CONFIDENCE), held: signature() }.judge(&());
        assert!(matches!(judged, Verdict::Invalid(_)));
    }
}
