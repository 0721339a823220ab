//! Small GEMMs against double precision, run by the interpreter, which finds races and accesses outside of operands.

#![expect(unsafe_code, reason = "kernels work on raw memory")]

use pyrite_ptx::assemble::Assembler;
use pyrite_ptx::gemm::{Addresses, Dense, Gemm, Sizes};
use pyrite_ptx::interp::{Module, Region};

const KINDS: [Dense; 2] = [Dense::Steps, Dense::Lines];

/// Numbers that are not multiples of each other.
fn numbers(count: i64, seed: i64) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

/// Memory whose first element lies where vectors may begin, with elements behind the last one that must not be touched.
struct Memory(Vec<[f32; 4]>);

impl Memory {
    fn of(values: &[f32]) -> Self {
        Self(values.chunks(4).map(|chunk| std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0.0))).collect())
    }

    fn region(&mut self, count: i64, writable: bool) -> Region {
        let start = self.0.as_mut_ptr().addr() as u64;
        Region { start: start.next_multiple_of(16), bytes: count as u64 * 4, writable }
    }
}

fn check(gemm: Gemm, (batch, rows, steps, columns): (i64, i64, i64, i64)) {
    let pitch = |dense: Dense, lines: i64| if dense == Dense::Steps { steps } else { lines };
    let sizes = Sizes {
        batch,
        rows,
        steps,
        columns,
        lhs: pitch(gemm.lhs, rows),
        rhs: pitch(gemm.rhs, columns),
        apart: [rows * steps, steps * columns, rows * columns],
    };
    let (a, b, bias) = (numbers(batch * rows * steps, 1), numbers(batch * steps * columns, 2), numbers(columns, 3));
    // One vector more, since allocations begin at multiples of four bytes.
    let padded = |values: &[f32]| {
        let mut memory = Memory::of(values);
        memory.0.push([0.0; 4]);
        let shift = (memory.0.as_ptr().addr() % 16) / 4;
        assert_eq!(shift % 4, shift, "elements are aligned");
        let flat: Vec<f32> = std::iter::repeat_n(0.0, (4 - shift) % 4).chain(values.iter().copied()).collect();
        memory.0.iter_mut().flatten().zip(flat).for_each(|(to, from)| *to = from);
        memory
    };
    let (mut a_memory, mut b_memory, mut bias_memory) = (padded(&a), padded(&b), padded(&bias));
    let mut out = padded(&vec![f32::NAN; (batch * rows * columns) as usize]);
    let regions = [
        a_memory.region(batch * rows * steps, false),
        b_memory.region(batch * steps * columns, false),
        bias_memory.region(columns, false),
        out.region(batch * rows * columns, true),
    ];
    let addresses =
        Addresses { lhs: regions[0].start, rhs: regions[1].start, bias: regions[2].start, out: regions[3].start };
    assert!(gemm.takes(&sizes, &addresses), "{gemm:?} {sizes:?}");
    let launch = gemm.launch(&sizes, &addresses).unwrap();
    let module = Module::parse(&gemm.text()).unwrap_or_else(|error| panic!("{error}\n{}", gemm.text()));
    // SAFETY: the regions are the memory above.
    unsafe { module.run(&launch, &regions) }
        .unwrap_or_else(|trap| panic!("{gemm:?} {sizes:?}: {trap}\n{}", gemm.text()));
    let start = (regions[3].start - out.0.as_ptr().addr() as u64) as usize / 4;
    let found: Vec<f32> = out.0.iter().flatten().copied().skip(start).collect();
    let at = |dense: Dense, line: i64, step: i64, lines: i64| match dense {
        Dense::Steps => line * steps + step,
        Dense::Lines => step * lines + line,
    };
    for number in 0..batch {
        for row in 0..rows {
            for column in 0..columns {
                let mut sum = if gemm.bias { f64::from(bias[column as usize]) } else { 0.0 };
                for step in 0..steps {
                    let left = a[(number * rows * steps + at(gemm.lhs, row, step, rows)) as usize];
                    let right = b[(number * steps * columns + at(gemm.rhs, column, step, columns)) as usize];
                    sum += f64::from(left) * f64::from(right);
                }
                let have = f64::from(found[((number * rows + row) * columns + column) as usize]);
                let allowed = 1e-6 * (steps as f64).sqrt() * 4.0;
                assert!(
                    (have - sum).abs() <= allowed,
                    "{gemm:?} {sizes:?} at {number}, {row}, {column}: {have} is not {sum}"
                );
            }
        }
    }
}

#[test]
fn every_layout_gives_the_sums_of_products() {
    let sizes = [(1, 32, 128, 32), (1, 36, 132, 40), (2, 4, 8, 4), (1, 64, 256, 36), (3, 20, 300, 68)];
    for (number, shape) in sizes.into_iter().enumerate() {
        for (kind, lhs) in KINDS.into_iter().enumerate() {
            for (other, rhs) in KINDS.into_iter().enumerate() {
                check(Gemm { lhs, rhs, bias: (number + kind + other) % 2 == 0 }, shape);
            }
        }
    }
    // Rows need no multiple where steps are dense.
    check(Gemm { lhs: Dense::Steps, rhs: Dense::Lines, bias: true }, (1, 33, 64, 64));
}

#[test]
fn a_missing_barrier_of_a_gemm_is_found() {
    let gemm = Gemm { lhs: Dense::Steps, rhs: Dense::Lines, bias: false };
    let sizes = Sizes { batch: 1, rows: 32, steps: 256, columns: 32, lhs: 256, rhs: 32, apart: [0; 3] };
    let mut memory = vec![[0.5f32; 4]; 32 * 256 / 4 * 2 + 32 * 32 / 4 + 4];
    let start = (memory.as_mut_ptr().addr() as u64).next_multiple_of(16);
    let regions = [Region { start, bytes: (32 * 256 * 2 + 32 * 32) * 4, writable: true }];
    let addresses = Addresses { lhs: start, rhs: start + 32 * 256 * 4, bias: 0, out: start + 32 * 256 * 8 };
    let launch = gemm.launch(&sizes, &addresses).unwrap();
    let text = gemm.text();
    let barriers = text.matches("bar.sync 0;").count();
    for number in 0..barriers {
        let place = text.match_indices("bar.sync 0;").nth(number).unwrap().0;
        let broken = format!("{}{}", &text[..place], &text[place + "bar.sync 0;".len()..]);
        let module = Module::parse(&broken).unwrap();
        // SAFETY: the region is the memory above.
        let trap = unsafe { module.run(&launch, &regions) }.unwrap_err();
        assert!(trap.what.contains("race in shared memory"), "{number}: {trap}");
    }
}

#[test]
fn operands_that_vectors_cannot_read_are_refused() {
    let gemm = Gemm { lhs: Dense::Steps, rhs: Dense::Lines, bias: false };
    let sizes = Sizes { batch: 1, rows: 32, steps: 32, columns: 32, lhs: 32, rhs: 32, apart: [0; 3] };
    let addresses = Addresses { lhs: 1024, rhs: 2048, bias: 0, out: 4096 };
    assert!(gemm.takes(&sizes, &addresses));
    assert!(!gemm.takes(&Sizes { steps: 30, ..sizes }, &addresses));
    assert!(!gemm.takes(&Sizes { columns: 33, ..sizes }, &addresses));
    assert!(!gemm.takes(&Sizes { lhs: 35, ..sizes }, &addresses));
    assert!(!gemm.takes(&sizes, &Addresses { rhs: 2052, ..addresses }));
}

#[test]
fn the_assembler_takes_every_kind() {
    let Some(assembler) = Assembler::find() else {
        println!("ptxas is not installed (PYRITE_PTXAS names one): nothing is assembled");
        return;
    };
    for lhs in KINDS {
        for rhs in KINDS {
            let gemm = Gemm { lhs, rhs, bias: true };
            for architecture in ["sm_80", "sm_90"] {
                assembler.assemble(&gemm.text(), architecture).unwrap_or_else(|error| panic!("{gemm:?}: {error}"));
            }
        }
    }
}
