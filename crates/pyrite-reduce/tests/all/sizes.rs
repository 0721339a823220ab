//! Sizes are found in few questions: an oracle that fails by sizes alone counts them.
//!
//! Whatever it is that a failure needs of sizes (some in every dimension, many elements together, a multiple of a vector, a
//! rest after the last vector, sizes of several inputs), questions grow with the logarithm of the sizes, and no size of the
//! result can be smaller by one.

use std::sync::atomic::{AtomicU64, Ordering};

use pyrite_ir::Value;
use pyrite_ops::registry;
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_reduce::{Candidate, Options, Reduction, Silent, reduce};
use pyrite_tensor::Tensor;

/// A program of one call for each input, of a number; of zeros sizes are all there is to reduce.
fn program(shapes: &[&[i64]], number: f32) -> Candidate {
    let parameters: Vec<String> = shapes.iter().enumerate().map(|(i, s)| format!("x{i} : \"f32{s:?}\"")).collect();
    let calls: Vec<String> = (0..shapes.len()).map(|i| format!("        y{i} = torch.neg(x{i})\n")).collect();
    let results: Vec<String> = (0..shapes.len()).map(|i| format!("y{i}, ")).collect();
    let text = format!(
        "class Repro(torch.nn.Module):\n    def forward(self, {}):\n{}        return ({})\n",
        parameters.join(", "),
        calls.concat(),
        results.concat()
    );
    let graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let filled = |shape: &&[i64]| Value::Tensor(Tensor::from_slice(&vec![number; numel(shape) as usize], shape));
    Candidate { graph, inputs: shapes.iter().map(filled).collect(), seed: 0 }
}

fn numel(shape: &[i64]) -> i64 {
    shape.iter().product()
}

fn shapes_of(candidate: &Candidate) -> Vec<Vec<i64>> {
    candidate.inputs.iter().filter_map(Value::as_tensor).map(|tensor| tensor.shape().to_vec()).collect()
}

/// Reduces a program that fails by its shapes alone, and says how many questions were asked.
fn reduced(start: &[&[i64]], jobs: usize, fails: &(dyn Fn(&[Vec<i64>]) -> bool + Sync)) -> (Reduction, u64) {
    reduced_from(program(start, 0.0), jobs, fails)
}

fn reduced_from(start: Candidate, jobs: usize, fails: &(dyn Fn(&[Vec<i64>]) -> bool + Sync)) -> (Reduction, u64) {
    let (asked, inputs) = (AtomicU64::new(0), start.inputs.len());
    let oracle = |candidate: &Candidate| {
        asked.fetch_add(1, Ordering::Relaxed);
        let shapes = shapes_of(candidate);
        let whole = shapes.len() == inputs && candidate.size().calls == inputs;
        let fails = whole && fails(&shapes);
        if fails { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
    };
    let options = Options { jobs, ..Options::default() };
    let found = reduce(start, &oracle, options, &mut Silent).expect("the start fails");
    (found, asked.into_inner())
}

/// How many questions the sizes of a program may take: a few for its structure, and for every dimension a few more than its
/// size has bits.
fn bound(start: &[&[i64]]) -> u64 {
    let bits = |size: &i64| u64::from(64 - size.leading_zeros());
    let dims: u64 = start.iter().flat_map(|shape| shape.iter()).map(|size| 4 + bits(size)).sum();
    8 * start.len() as u64 + dims
}

type Fails = Box<dyn Fn(&[Vec<i64>]) -> bool + Sync>;

/// Programs by the shapes of their inputs, and what they need to fail.
fn cases() -> Vec<(String, Vec<Vec<i64>>, Fails)> {
    let mut found: Vec<(String, Vec<Vec<i64>>, Fails)> = Vec::new();
    for needed in [[1, 1, 1], [2, 1, 3], [1, 7, 1], [5, 1, 40], [8, 66, 1], [7, 65, 129]] {
        let fails = move |shapes: &[Vec<i64>]| shapes[0].iter().zip(needed).all(|(size, least)| *size >= least);
        found.push((format!("at least {needed:?}"), vec![vec![8, 66, 130]], Box::new(fails)));
    }
    for (shape, least) in [([8, 66, 66], 1024), ([1, 3, 1000], 2999), ([64, 64, 64], 5), ([128, 4, 4096], 70_000)] {
        let fails = move |shapes: &[Vec<i64>]| numel(&shapes[0]) >= least;
        found.push((format!("{least} elements"), vec![shape.to_vec()], Box::new(fails)));
    }
    for vector in [2, 3, 8, 16] {
        let fails = move |shapes: &[Vec<i64>]| shapes[0][1] % vector == 0;
        found.push((format!("a multiple of {vector}"), vec![vec![5, 48 * 16]], Box::new(fails)));
        let fails = move |shapes: &[Vec<i64>]| shapes[0][1] > vector && shapes[0][1] % vector != 0;
        found.push((format!("a rest after vectors of {vector}"), vec![vec![5, 1037]], Box::new(fails)));
    }
    let fails = |shapes: &[Vec<i64>]| shapes[0][0] >= 9 && shapes[1][1] >= 33 && numel(&shapes[2]) >= 100;
    found.push(("three inputs".to_owned(), vec![vec![64, 64], vec![64, 64], vec![20, 30]], Box::new(fails)));
    let fails = |shapes: &[Vec<i64>]| shapes[0][0] >= 200 || shapes[0][1] >= 3;
    found.push(("either of two".to_owned(), vec![vec![512, 100]], Box::new(fails)));
    found
}

#[test]
fn questions_grow_with_the_logarithm_of_sizes() {
    for (name, start, fails) in cases() {
        let start: Vec<&[i64]> = start.iter().map(Vec::as_slice).collect();
        let (found, asked) = reduced(&start, 1, &*fails);
        assert!(asked <= bound(&start), "{name}: {asked} questions about {start:?}, {:?}", shapes_of(&found.best));
        assert_eq!(found.queries, asked, "{name}");
    }
}

#[test]
fn no_size_can_be_less_by_one_alone_or_with_its_like() {
    for (name, start, fails) in cases() {
        let start: Vec<&[i64]> = start.iter().map(Vec::as_slice).collect();
        let best = shapes_of(&reduced(&start, 1, &*fails).0.best);
        for (input, shape) in best.iter().enumerate() {
            for (dim, size) in shape.iter().enumerate().filter(|(_, size)| **size > 1) {
                let mut alone = best.clone();
                alone[input][dim] -= 1;
                assert!(!fails(&alone), "{name}: {best:?} and {alone:?} fail");
                let less = |shape: &Vec<i64>| shape.iter().map(|s| s - i64::from(s == size)).collect();
                let alike: Vec<Vec<i64>> = best.iter().map(less).collect();
                assert!(!fails(&alike), "{name}: {best:?} and {alike:?} fail");
            }
        }
    }
}

#[test]
fn the_number_of_jobs_does_not_change_what_is_found() {
    for (name, start, fails) in cases() {
        let start: Vec<&[i64]> = start.iter().map(Vec::as_slice).collect();
        let one = shapes_of(&reduced(&start, 1, &*fails).0.best);
        for jobs in [2, 3] {
            assert_eq!(shapes_of(&reduced(&start, jobs, &*fails).0.best), one, "{name}, {jobs} jobs");
        }
    }
}

#[test]
fn the_least_is_found_where_each_size_counts_alone() {
    for needed in [[1, 1, 1], [2, 1, 3], [5, 1, 40], [8, 66, 1], [7, 65, 129]] {
        let fails = move |shapes: &[Vec<i64>]| shapes[0].iter().zip(needed).all(|(size, least)| *size >= least);
        let (found, _) = reduced(&[&[8, 66, 130]], 1, &fails);
        assert_eq!(shapes_of(&found.best), [needed.to_vec()]);
    }
    for vector in [2, 3, 8, 16] {
        let multiple = move |shapes: &[Vec<i64>]| shapes[0][1] % vector == 0;
        let (found, _) = reduced(&[&[5, 48 * 16]], 1, &multiple);
        assert_eq!(shapes_of(&found.best), [[1, vector]], "multiples of {vector}");
        if vector != 3 {
            let rest = move |shapes: &[Vec<i64>]| shapes[0][1] > vector && shapes[0][1] % vector != 0;
            let (found, _) = reduced(&[&[5, 1037]], 1, &rest);
            assert_eq!(shapes_of(&found.best), [[1, vector + 1]], "rests after {vector}");
        }
    }
}

#[test]
fn plainer_contents_do_not_begin_the_search_for_sizes_again() {
    let fails = |shapes: &[Vec<i64>]| numel(&shapes[0]) >= 1024;
    let (zeros, asked_of_zeros) = reduced(&[&[8, 66, 66]], 1, &fails);
    let (found, asked) = reduced_from(program(&[&[8, 66, 66]], 0.37), 1, &fails);
    assert_eq!(shapes_of(&found.best), shapes_of(&zeros.best));
    assert!(asked <= asked_of_zeros + 10, "{asked} questions, {asked_of_zeros} of zeros");
}
