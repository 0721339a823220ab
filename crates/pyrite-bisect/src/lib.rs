//! Which step is guilty?
//!
//! A compiler is a row of steps: stages, passes, numbered rewrites. Somebody can run it with the first `n` of them and
//! say whether the program fails then. [`first_guilty`] finds the step with which the failure begins; [`all_guilty`]
//! finds every step that makes a program fail on its own, where steps can be left out one by one.
//!
//! [`culprits`] finds one guilty step after the other where steps can be left out by name.
//!
//! [`stages`] has the rows of backends of which each does one thing more than the one before; [`subsystems`] and
//! [`switches`] what PyTorch's backends can be told to leave out.

use pyrite_oracle::{Signature, Verdict};

/// A step that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Guilty {
    /// Which one, from 0.
    pub step: u64,
    /// How the program fails with it.
    pub signature: Signature,
    /// How many questions it took.
    pub queries: u64,
}

/// Why no step was found.
#[derive(Clone, Debug, PartialEq)]
pub enum NotFound {
    /// The program does not fail with all steps.
    Passes(Verdict),
    /// It fails without any: none of the steps is guilty.
    FailsAtOnce(Signature),
}

/// The step with which the failure begins: with it and all before it the program fails, with those before it alone it
/// does not. `judge(n)` runs with the first `n` of `steps`. What fails in another way than the whole counts as passing,
/// so that the search stays with one failure.
pub fn first_guilty(steps: u64, judge: &mut dyn FnMut(u64) -> Verdict) -> Result<Guilty, NotFound> {
    let whole = judge(steps);
    let Some(signature) = whole.signature().cloned() else { return Err(NotFound::Passes(whole)) };
    let mut queries = 2;
    let mut fails = |n: u64| judge(n).signature().is_some_and(|found| signature.holds(found));
    if fails(0) {
        return Err(NotFound::FailsAtOnce(signature));
    }
    let (mut passing, mut failing) = (0, steps);
    while failing - passing > 1 {
        let middle = passing + (failing - passing) / 2;
        queries += 1;
        if fails(middle) {
            failing = middle;
        } else {
            passing = middle;
        }
    }
    Ok(Guilty { step: failing - 1, signature, queries })
}

/// Guilty steps one after the other: the first is found among all steps, then left out, and so on until the program no
/// longer fails in that way, or this many are found. `steps(without)` names the steps that are taken when those are left
/// out; `judge(n, without)` runs with the first `n` of them.
pub fn culprits(
    most: usize,
    steps: &mut dyn FnMut(&[String]) -> Vec<String>,
    judge: &mut dyn FnMut(u64, &[String]) -> Verdict,
) -> Culprits {
    let mut found = Culprits { names: Vec::new(), signature: None, queries: 0 };
    while found.names.len() < most {
        let row = steps(&found.names);
        let without = found.names.clone();
        let mut same = |n: u64| {
            found.queries += 1;
            let verdict = judge(n, &without);
            match (&found.signature, verdict.signature()) {
                // Another failure than the first is not followed.
                (Some(held), Some(other)) if !held.holds(other) => Verdict::Pass,
                _ => verdict,
            }
        };
        let Ok(guilty) = first_guilty(row.len() as u64, &mut same) else { break };
        found.signature.get_or_insert(guilty.signature);
        match row.into_iter().nth(guilty.step as usize) {
            Some(name) if !found.names.contains(&name) => found.names.push(name),
            _ => break,
        }
    }
    found
}

/// The steps that [`culprits`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprits {
    /// Their names, in the order in which they were found.
    pub names: Vec<String>,
    /// How the program fails with the first.
    pub signature: Option<Signature>,
    /// How many questions it took.
    pub queries: u64,
}

/// Every step without which the program does not fail, or that fails on its own: halves of the steps are tried alone, and
/// halves that fail are divided further. `judge(set)` runs with these steps and no others.
pub fn all_guilty(steps: u64, judge: &mut dyn FnMut(&[u64]) -> Verdict) -> Vec<u64> {
    let all: Vec<u64> = (0..steps).collect();
    let Some(signature) = judge(&all).signature().cloned() else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = vec![all];
    while let Some(set) = open.pop() {
        if let [one] = set.as_slice() {
            found.push(*one);
            continue;
        }
        let (left, right) = set.split_at(set.len() / 2);
        let mut fails = |part: &[u64]| judge(part).signature().is_some_and(|other| signature.holds(other));
        let (left_fails, right_fails) = (fails(left), fails(right));
        if left_fails {
            open.push(left.to_vec());
        }
        if right_fails {
            open.push(right.to_vec());
        }
        if !left_fails && !right_fails {
            // It takes steps of both halves together.
            found.extend(together(&set, &mut fails));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A smallest set of steps that fail together: each is left out if the rest fails without it.
fn together(set: &[u64], fails: &mut dyn FnMut(&[u64]) -> bool) -> Vec<u64> {
    let mut kept = set.to_vec();
    let mut chunk = kept.len() / 2;
    while chunk > 0 {
        let mut start = 0;
        while start < kept.len() {
            let end = (start + chunk).min(kept.len());
            let without = [&kept[..start], &kept[end..]].concat();
            if !without.is_empty() && fails(&without) {
                kept = without;
            } else {
                start = end;
            }
        }
        chunk /= 2;
    }
    kept
}

/// What a backend adds to the one before it in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The backend that stops after this stage.
    pub backend: &'static str,
    /// What it does that the one before does not.
    pub adds: &'static str,
}

const OURS: &[Stage] = &[
    Stage { backend: "pre_dispatch_eager", adds: "tracing the graph again" },
    Stage { backend: "aot_eager_default_partitioner", adds: "functionalization and differentiation" },
    Stage { backend: "aot_eager", adds: "the min-cut partitioner" },
    Stage { backend: "aot_eager_decomp_partition", adds: "decomposition to core operators" },
];

const TORCH: &[Stage] = &[
    Stage { backend: "torch:eager", adds: "PyTorch's own kernels" },
    Stage { backend: "torch:aot_eager", adds: "AOTAutograd" },
    Stage { backend: "torch:aot_eager_decomp_partition", adds: "decompositions and the min-cut partitioner" },
];

/// The stages before a backend, in order; the backend itself is the last.
pub fn stages(backend: &str) -> Vec<(String, String)> {
    let row = if backend.starts_with("torch:") { TORCH } else { OURS };
    let before = row.iter().take_while(|stage| stage.backend != backend);
    let mut stages: Vec<(String, String)> =
        before.map(|stage| (stage.backend.to_owned(), stage.adds.to_owned())).collect();
    let adds = row.iter().find(|stage| stage.backend == backend).map_or("the backend itself", |stage| stage.adds);
    stages.push((backend.to_owned(), adds.to_owned()));
    stages
}

/// A part of one of PyTorch's backends that is taken step by step, as its own bisector numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subsystem {
    /// Its name there.
    pub name: &'static str,
    /// What its steps do.
    pub what: &'static str,
}

/// The parts of a backend whose steps can be left out, in the order in which they act.
pub fn subsystems(backend: &str) -> &'static [Subsystem] {
    match backend {
        "torch:aot_eager_decomp_partition" => &[Subsystem { name: "decomposition", what: "decompositions" }],
        "torch:inductor" => &[
            Subsystem { name: "pre_grad_passes", what: "passes before differentiation" },
            Subsystem { name: "joint_graph_passes", what: "passes on the joint graph" },
            Subsystem { name: "post_grad_passes", what: "passes on each half" },
            Subsystem { name: "lowerings", what: "lowerings of operators; without one, eager's kernel is called" },
        ],
        _ => &[],
    }
}

/// A setting that leaves something out of one of PyTorch's backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// As `torch:NAME?SETTING` takes it.
    pub setting: &'static str,
    /// What it leaves out.
    pub what: &'static str,
}

/// The settings of a backend that are worth a try.
pub fn switches(backend: &str) -> &'static [Switch] {
    match backend {
        "torch:inductor" => &[
            Switch { setting: "max_fusion_size=1", what: "fusion of loops" },
            Switch { setting: "epilogue_fusion=false", what: "epilogue fusion into matmuls" },
            Switch { setting: "cpp.simdlen=0", what: "vector instructions" },
            Switch { setting: "pattern_matcher=false", what: "the pattern matcher" },
            Switch { setting: "layout_optimization=false", what: "other layouts of convolutions" },
            Switch { setting: "emulate_precision_casts=true", what: "higher precision between fused operators" },
            Switch { setting: "fallback_random=true", what: "random numbers of its own" },
            Switch { setting: "fx_graph_cache=false", what: "the cache of graphs" },
        ],
        _ => &[],
    }
}

/// The settings of a backend that are worth a try for programs on a GPU: its assembler may be guilty.
pub fn assembler_switches(backend: &str) -> &'static [Switch] {
    match backend {
        "torch:inductor" => &[
            Switch { setting: "ptxas=2", what: "ptxas' optimisation level 3" },
            Switch { setting: "ptxas=1", what: "ptxas' optimisation level 2" },
            Switch { setting: "ptxas=0", what: "any optimisation by ptxas" },
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyrite_oracle::{Class, Stage as At};

    fn verdict(fails: bool) -> Verdict {
        if fails { Verdict::Fail(Signature::new(At::Forward, Class::Value)) } else { Verdict::Pass }
    }

    #[test]
    fn the_first_guilty_step_is_found_in_logarithmic_time() {
        for guilty in [0, 1, 500, 998, 999] {
            let found = first_guilty(1000, &mut |n| verdict(n > guilty)).unwrap();
            assert_eq!(found.step, guilty);
            assert!(found.queries <= 13, "{} queries", found.queries);
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_fails_or_everything_does() {
        assert!(matches!(first_guilty(10, &mut |_| verdict(false)), Err(NotFound::Passes(_))));
        assert!(matches!(first_guilty(10, &mut |_| verdict(true)), Err(NotFound::FailsAtOnce(_))));
    }

    #[test]
    fn another_failure_on_the_way_is_not_followed() {
        let other = Verdict::Fail(Signature::new(At::Compile, Class::Error).raised("KeyError", None));
        let mut judge = |n: u64| {
            if n > 70 {
                verdict(true)
            } else if n > 20 {
                other.clone()
            } else {
                verdict(false)
            }
        };
        assert_eq!(first_guilty(100, &mut judge).unwrap().step, 70);
    }

    #[test]
    fn several_culprits_are_found_and_pairs_that_need_each_other() {
        let found = all_guilty(64, &mut |set| verdict(set.contains(&3) || set.contains(&50)));
        assert_eq!(found, [3, 50]);
        let pair = all_guilty(64, &mut |set| verdict(set.contains(&3) && set.contains(&50)));
        assert_eq!(pair, [3, 50]);
        assert!(all_guilty(64, &mut |_| verdict(false)).is_empty());
    }

    #[test]
    fn culprits_are_found_one_after_the_other_though_numbers_shift() {
        let all: Vec<String> = (0..40).map(|n| format!("rewrite {n}")).collect();
        let guilty = ["rewrite 7", "rewrite 8", "rewrite 31"];
        let taken = |without: &[String]| all.iter().filter(|n| !without.contains(n)).cloned().collect::<Vec<_>>();
        let found = culprits(8, &mut |without| taken(without), &mut |n, without| {
            verdict(taken(without)[..n as usize].iter().any(|name| guilty.contains(&name.as_str())))
        });
        assert_eq!(found.names, guilty);
        assert!(found.queries < 40, "{} queries", found.queries);
        let one = culprits(1, &mut |without| taken(without), &mut |n, _| verdict(n > 7));
        assert_eq!(one.names, ["rewrite 7"]);
    }

    #[test]
    fn a_row_of_stages_ends_with_the_backend() {
        assert_eq!(stages("aot_eager").len(), 3);
        let row = stages("torch:inductor");
        assert_eq!(row.last().map(|(name, _)| name.as_str()), Some("torch:inductor"));
        assert_eq!(stages("relu_accuracy_error_TESTING_ONLY").last().unwrap().1, "the backend itself");
    }
}
