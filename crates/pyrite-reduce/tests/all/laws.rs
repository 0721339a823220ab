//! The laws of reduction, on random graphs with random predicates.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use pyrite_ir::{Kind, NodeId};
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reduce::{Candidate, NotReproduced, Options, PASSES, Silent, reduce};
use pyrite_testing::random;

fn candidate(number: u64) -> Candidate {
    let case = random::graph(number);
    Candidate { graph: case.graph, inputs: case.inputs.into_iter().map(pyrite_ir::Value::Tensor).collect(), seed: 0 }
}

fn names(candidate: &Candidate) -> BTreeSet<String> {
    let calls = candidate.graph.nodes().filter_map(|(_, node)| match &node.kind {
        Kind::Call(target) => Some(target.name().to_owned()),
        _ => None,
    });
    calls.collect()
}

/// Whether a call of the first operator is used, over any number of steps, by a call of the second.
fn feeds(candidate: &Candidate, first: &str, second: &str) -> bool {
    let mut reached: BTreeSet<NodeId> = BTreeSet::new();
    let mut found = false;
    for (id, node) in candidate.graph.nodes() {
        let Kind::Call(target) = &node.kind else { continue };
        let mut after = false;
        node.each_input(&mut |input| after |= reached.contains(&input));
        found |= after && target.name() == second;
        if after || target.name() == first {
            reached.insert(id);
        }
    }
    found
}

fn failing() -> Verdict {
    Verdict::Fail(Signature::new(Stage::Forward, Class::Value))
}

/// A predicate of a number: programs with an operator, with two, or with one feeding another.
fn judge(number: u64, start: &BTreeSet<String>, candidate: &Candidate) -> Verdict {
    let wanted: Vec<&String> = start.iter().collect();
    let pick = |n: u64| wanted[(number.wrapping_mul(31).wrapping_add(n) % wanted.len() as u64) as usize];
    let (one, two) = (pick(1), pick(5));
    let present = names(candidate);
    let fails = match number % 3 {
        0 => present.contains(one),
        1 => present.contains(one) && present.contains(two),
        _ => feeds(candidate, one, two),
    };
    if fails { failing() } else { Verdict::Pass }
}

#[test]
fn results_fail_verify_are_minimal_and_do_not_depend_on_jobs() {
    let mut reduced = 0;
    for number in 0..150 {
        let start = candidate(number);
        let present = names(&start);
        if present.is_empty() {
            continue;
        }
        let oracle = |c: &Candidate| judge(number, &present, c);
        let run = |jobs| reduce(start.clone(), &oracle, Options { jobs, ..Options::default() }, &mut Silent);
        let one = match run(1) {
            Ok(one) => one,
            Err(NotReproduced(verdict)) => {
                assert_eq!(verdict, Verdict::Pass, "graph {number}");
                continue;
            }
        };
        reduced += 1;
        assert!(matches!(oracle(&one.best), Verdict::Fail(_)), "graph {number}: the result does not fail");
        assert!(one.best.is_program(), "graph {number}: the result is not a program");
        assert!(one.best.size() <= start.size(), "graph {number}: the result is larger");
        assert_eq!(one.minimal_for.len(), PASSES.len(), "graph {number}: passes are left");
        let again = reduce(one.best.clone(), &oracle, Options::default(), &mut Silent).expect("it fails");
        assert_eq!(again.best.size(), one.best.size(), "graph {number}: the result is not minimal");
        let three = run(3).expect("it fails");
        assert_eq!(three.best.key(), one.best.key(), "graph {number}: the result depends on the jobs");
        assert_eq!(three.queries, one.queries, "graph {number}: the count depends on the jobs");
    }
    assert!(reduced > 60, "only {reduced} graphs failed");
}

#[test]
fn one_guilty_operator_is_left_alone() {
    for number in 0..60 {
        let start = candidate(number);
        let Some(guilty) = names(&start).into_iter().next() else { continue };
        let oracle = |c: &Candidate| if names(c).contains(&guilty) { failing() } else { Verdict::Pass };
        let found = reduce(start, &oracle, Options::default(), &mut Silent).expect("it fails");
        assert_eq!(found.best.size().calls, 1, "graph {number}: {:?}", names(&found.best));
        assert!(found.best.size().elements <= found.best.inputs.len(), "graph {number}: {:?}", found.best.size());
    }
}

#[test]
fn another_failure_is_filed_and_not_followed() {
    let start = candidate(3);
    let all = names(&start);
    let other = Signature::new(Stage::Compile, Class::Error).raised("KeyError", None);
    // Whole, it gives wrong values; smaller, it does not compile.
    let oracle = |c: &Candidate| if names(c) == all { failing() } else { Verdict::Fail(other.clone()) };
    let found = reduce(start, &oracle, Options::default(), &mut Silent).expect("it fails");
    assert_eq!(names(&found.best), all);
    assert_eq!(found.others.len(), 1);
    assert!(found.others[0].0.holds(&other));
}

#[test]
fn no_candidate_is_judged_twice() {
    for number in 0..40 {
        let start = candidate(number);
        let present = names(&start);
        if present.is_empty() {
            continue;
        }
        let asked = AtomicU64::new(0);
        let seen = std::sync::Mutex::new(BTreeSet::new());
        let oracle = |c: &Candidate| {
            asked.fetch_add(1, Ordering::Relaxed);
            assert!(seen.lock().unwrap().insert(c.key()), "judged twice");
            judge(number, &present, c)
        };
        if let Ok(found) = reduce(start, &oracle, Options::default(), &mut Silent) {
            assert_eq!(found.queries, asked.load(Ordering::Relaxed));
        }
    }
}

#[test]
fn a_query_limit_leaves_the_best_so_far() {
    let start = candidate(5);
    let guilty = names(&start).into_iter().next().expect("a call");
    let oracle = |c: &Candidate| if names(c).contains(&guilty) { failing() } else { Verdict::Pass };
    let limited = Options { max_queries: Some(3), ..Options::default() };
    let found = reduce(start.clone(), &oracle, limited, &mut Silent).expect("it fails");
    assert!(found.queries <= 3 && found.best.size() <= start.size());
    assert!(found.minimal_for.len() < PASSES.len());
}

#[test]
fn a_bound_on_the_granularity_changes_the_way_and_not_that_results_are_minimal() {
    for number in [5, 17, 40] {
        let start = candidate(number);
        let present = names(&start);
        let oracle = |c: &Candidate| judge(number, &present, c);
        let bounded = Options { max_granularity: Some(1), ..Options::default() };
        let (Ok(free), Ok(single)) = (
            reduce(start.clone(), &oracle, Options::default(), &mut Silent),
            reduce(start, &oracle, bounded, &mut Silent),
        ) else {
            continue;
        };
        assert_eq!(single.minimal_for.len(), PASSES.len(), "graph {number}");
        assert!(matches!(oracle(&single.best), Verdict::Fail(_)) && matches!(oracle(&free.best), Verdict::Fail(_)));
    }
}
