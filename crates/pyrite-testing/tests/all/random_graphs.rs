//! The properties of random graphs and of damaged texts, for a moment; the nightly run takes longer.

use pyrite_testing::{fuzz, random, writes};

#[test]
fn random_graphs_keep_every_promise() {
    for number in 0..300 {
        let case = random::graph(number);
        if let Err(problem) = random::check(&case) {
            panic!("graph {number} {problem}");
        }
    }
}

#[test]
fn damaged_texts_never_make_the_reader_panic() {
    let seeds: Vec<Vec<u8>> = (0..20)
        .map(|n| {
            pyrite_ir::print::print(&random::graph(n).graph, &pyrite_ir::print::PrintOptions::default()).into_bytes()
        })
        .collect();
    let changed: Vec<u64> =
        (0..2000).filter(|number| fuzz::check(&fuzz::case(&seeds, *number)) == fuzz::Reading::Changed).collect();
    assert!(changed.is_empty(), "the damaged texts {changed:?} were read as one graph and printed as another");
}

#[test]
fn functionalized_programs_do_what_the_programs_do() {
    // `PYRITE_RANDOM_PROGRAMS=10000` is what the nightly run asks for.
    let count: u64 = std::env::var("PYRITE_RANDOM_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let mut agreed = 0;
    for number in 0..count {
        match writes::check(&writes::program(number)) {
            Ok(writes::Checked::Agrees) => agreed += 1,
            Ok(writes::Checked::Refused) => {}
            Err(problem) => panic!("program {number} {problem}"),
        }
    }
    assert!(agreed > count / 2, "only {agreed} programs ran");
}
