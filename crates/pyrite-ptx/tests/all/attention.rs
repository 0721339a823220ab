//! Attention against double precision, run by the interpreter, which finds races and accesses outside of operands.

#![expect(unsafe_code, reason = "kernels work on raw memory")]

use pyrite_ptx::assemble::Assembler;
use pyrite_ptx::attention::{Addresses, Attention, Mask, Sizes};
use pyrite_ptx::interp::{Module, Region, Trap};

/// Numbers that are not multiples of each other.
fn numbers(count: i64, seed: i64) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 500.0 - 2.0).collect()
}

/// Numbers whose first one lies where vectors may begin.
struct Memory {
    all: Vec<f32>,
    first: usize,
}

impl Memory {
    fn of(values: &[f32]) -> Self {
        let mut all = vec![0.0; values.len() + 4];
        let first = (16 - all.as_ptr().addr() % 16) % 16 / 4;
        all[first..first + values.len()].copy_from_slice(values);
        Self { all, first }
    }

    fn region(&mut self, count: usize, writable: bool) -> Region {
        let start = self.all[self.first..].as_mut_ptr().addr() as u64;
        Region { start, bytes: count as u64 * 4, writable }
    }
}

const SCALE: f32 = 0.3;

/// The result of a text for attention whose tensors lie `[batch, row, head, element]`.
fn run(kind: Attention, text: &str, sizes: &Sizes, (tensors, bias): ([&[f32]; 3], &[f32])) -> Result<Vec<f32>, Trap> {
    let count = (sizes.batch * sizes.heads * sizes.queries * kind.size) as usize;
    let mut out = Memory::of(&vec![f32::NAN; count]);
    let mut memory = tensors.map(Memory::of);
    let mut added = Memory::of(bias);
    let mut regions: Vec<Region> =
        memory.iter_mut().zip(tensors).map(|(memory, values)| memory.region(values.len(), false)).collect();
    regions.push(out.region(count, true));
    regions.push(added.region(bias.len(), false));
    let addresses =
        Addresses { tensors: [0, 1, 2, 3].map(|number: usize| regions[number].start), bias: regions[4].start };
    assert!(kind.takes(sizes, &addresses), "{kind:?} {sizes:?}");
    let launch = kind.launch(sizes, &addresses, SCALE).unwrap();
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    // SAFETY: the regions are the memory above.
    unsafe { module.run(&launch, &regions) }?;
    Ok(out.all[out.first..out.first + count].to_vec())
}

fn check(kind: Attention, (batch, heads, queries, keys): (i64, i64, i64, i64), unseen: bool) {
    let size = kind.size;
    let rows = |count: i64| [count * heads * size, size, heads * size];
    let sizes = Sizes {
        batch,
        heads,
        queries,
        keys,
        apart: [rows(queries), rows(keys), rows(keys), rows(queries)],
        // The same for all heads.
        bias: [queries * keys, 0, keys, 1],
    };
    let [q, k, v] =
        [(queries, 1), (keys, 2), (keys, 3)].map(|(count, seed)| numbers(batch * heads * count * size, seed));
    let mut bias = numbers(if kind.bias { batch * queries * keys } else { 0 }, 4);
    if unseen {
        bias.iter_mut().step_by(3).for_each(|one| *one = f32::NEG_INFINITY);
        // The second query sees nothing.
        bias[keys as usize..2 * keys as usize].fill(f32::NEG_INFINITY);
    }
    let text = kind.text();
    let found = run(kind, &text, &sizes, ([&q, &k, &v], &bias))
        .unwrap_or_else(|trap| panic!("{kind:?} {sizes:?}: {trap}\n{text}"));
    let element = |values: &[f32], count: i64, batch: i64, head: i64, row: i64, at: i64| {
        f64::from(values[(((batch * count + row) * heads + head) * size + at) as usize])
    };
    for (batch, head, query) in
        (0..batch * heads * queries).map(|i| (i / (heads * queries), i / queries % heads, i % queries))
    {
        let scores: Vec<f64> = (0..keys)
            .map(|key| {
                let dot: f64 = (0..size)
                    .map(|at| element(&q, queries, batch, head, query, at) * element(&k, keys, batch, head, key, at))
                    .sum();
                let added =
                    if kind.bias { f64::from(bias[((batch * queries + query) * keys + key) as usize]) } else { 0.0 };
                let is_seen = kind.mask == Mask::None || key <= query;
                if is_seen { dot * f64::from(SCALE) + added } else { f64::NEG_INFINITY }
            })
            .collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> =
            scores.iter().map(|score| if largest.is_finite() { (score - largest).exp() } else { 0.0 }).collect();
        let total: f64 = weights.iter().sum::<f64>();
        for at in 0..size {
            let sum: f64 =
                weights.iter().enumerate().map(|(key, w)| w * element(&v, keys, batch, head, key as i64, at)).sum();
            let want = if total > 0.0 { sum / total } else { 0.0 };
            let have = element(&found, queries, batch, head, query, at);
            assert!(
                (have - want).abs() <= 2e-5,
                "{kind:?} {sizes:?} at {batch}, {head}, {query}, {at}: {have} is not {want}"
            );
        }
    }
}

#[test]
fn attention_is_that_of_double_precision() {
    let plain = Attention { size: 32, mask: Mask::None, bias: false };
    check(plain, (2, 2, 17, 65), false);
    check(Attention { mask: Mask::Causal, ..plain }, (1, 2, 70, 70), false);
    check(Attention { size: 64, mask: Mask::Causal, ..plain }, (1, 1, 20, 33), false);
    check(Attention { size: 128, bias: true, ..plain }, (1, 2, 5, 40), false);
    check(Attention { size: 16, bias: true, ..plain }, (2, 1, 18, 70), true);
    check(Attention { size: 48, mask: Mask::Causal, bias: true }, (1, 2, 16, 16), false);
    check(Attention { size: 96, ..plain }, (1, 1, 3, 1), false);
}

#[test]
fn a_missing_barrier_of_attention_is_found() {
    let kind = Attention { size: 32, mask: Mask::None, bias: false };
    let rows = [0, 0, 32];
    let sizes = Sizes { batch: 1, heads: 1, queries: 16, keys: 128, apart: [rows; 4], ..Sizes::default() };
    let (q, k) = (numbers(16 * 32, 1), numbers(128 * 32, 2));
    let text = kind.text();
    for (place, barrier) in text.match_indices("bar.sync 0;") {
        let broken = format!("{}{}", &text[..place], &text[place + barrier.len()..]);
        let trap = run(kind, &broken, &sizes, ([&q, &k, &k], &[])).unwrap_err();
        assert!(trap.what.contains("race in shared memory"), "{place}: {trap}");
    }
}

#[test]
fn tensors_that_vectors_cannot_read_are_refused() {
    let kind = Attention { size: 64, mask: Mask::None, bias: false };
    let sizes = Sizes { batch: 1, heads: 1, queries: 4, keys: 4, apart: [[256, 256, 64]; 4], ..Sizes::default() };
    let addresses = Addresses { tensors: [1024, 2048, 3072, 4096], bias: 0 };
    assert!(kind.takes(&sizes, &addresses));
    assert!(!Attention { size: 40, ..kind }.takes(&sizes, &addresses));
    assert!(!kind.takes(&Sizes { apart: [[256, 256, 66]; 4], ..sizes }, &addresses));
    assert!(!kind.takes(&sizes, &Addresses { tensors: [1024, 2052, 3072, 4096], ..addresses }));
    assert!(!kind.takes(&Sizes { keys: 0, ..sizes }, &addresses));
}

#[test]
fn the_assembler_takes_every_size() {
    let Some(assembler) = Assembler::find() else {
        println!("ptxas is not installed (PYRITE_PTXAS names one): nothing is assembled");
        return;
    };
    for size in [32, 48, 64, 128] {
        let kind = Attention { size, mask: Mask::Causal, bias: size % 32 == 0 };
        for architecture in ["sm_80", "sm_90"] {
            let found = assembler.assemble(&kind.text(), architecture);
            let found = found.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            println!("{kind:?} {architecture}: {found:?}");
            assert!(found.iter().all(|needs| needs.spills == 0), "{kind:?}: {found:?}");
        }
    }
}
