//! Whole reductions of what fails one time in five: how often do they end where they should?

use std::sync::atomic::{AtomicU64, Ordering};

use pyrite_ir::{Kind, Value};
use pyrite_ops::registry;
use pyrite_oracle::{CONFIDENCE, Class, Oracle, Sequential, Signature, Stage, Test, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_reduce::{Candidate, Options, Silent, reduce};
use pyrite_tensor::Tensor;

fn program() -> Candidate {
    let calls: String = (0..16)
        .map(|k| {
            let op = if k == 9 { "relu" } else { ["cos", "sin"][k % 2] };
            format!("        v{} = torch.{op}(v{k})\n", k + 1)
        })
        .collect();
    let text = format!(
        "class Repro(torch.nn.Module):\n    def forward(self, v0 : \"f32[3]\"):\n{calls}        return (v16,)\n"
    );
    let graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    Candidate { graph, inputs: vec![Value::Tensor(Tensor::from_slice(&[0.5f32, -1.5, 2.5], &[3]))], seed: 0 }
}

fn has_relu(candidate: &Candidate) -> bool {
    candidate.graph.nodes().any(|(_, node)| matches!(&node.kind, Kind::Call(target) if target.name().contains("relu")))
}

fn signature() -> Signature {
    Signature::new(Stage::Forward, Class::Value)
}

/// An oracle that fails for one program with relu in five, by a generator of its own.
fn sometimes(seed: u64) -> impl Fn(&Candidate) -> Verdict + Sync {
    let state = AtomicU64::new(seed.wrapping_mul(0xD134_2543_DE82_EF95));
    move |candidate| {
        let step = state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut mixed = (step ^ (step >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let fails = (mixed ^ (mixed >> 31)).is_multiple_of(5);
        if fails && has_relu(candidate) { Verdict::Fail(signature()) } else { Verdict::Pass }
    }
}

#[test]
fn fifty_reductions_err_no_more_often_than_their_verdicts_may() {
    const RUNS: u32 = 30;
    let (mut wrong, mut expected) = (0, 0.0);
    for seed in 0..50 {
        let oracle = sometimes(seed);
        let start = program();
        // The rate is not known either: it is what the first runs show.
        let failed = (0..RUNS).filter(|_| oracle.judge(&start).signature().is_some()).count() as u32;
        let test = Test::of(failed, RUNS, CONFIDENCE);
        let sequential = Sequential { oracle: &oracle, test, held: signature() };
        match reduce(start, &sequential, Options::default(), &mut Silent) {
            Ok(found) => {
                assert!(has_relu(&found.best), "seed {seed}: what never fails was taken for failing");
                wrong += u32::from(found.best.graph.len() != 3 || found.best.size().elements != 1);
                expected += found.queries as f64 * (1.0 - CONFIDENCE);
            }
            Err(_) => wrong += 1,
        }
    }
    // Each verdict errs with at most the stated probability, and one that errs leaves a result too large.
    assert!(f64::from(wrong) <= expected, "{wrong} of 50 reductions erred; {expected:.1} may");
    assert!(wrong <= 5, "{wrong} of 50 reductions erred");
}
