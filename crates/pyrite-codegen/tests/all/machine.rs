//! Machine code on kernels whose results are known.

#![expect(unsafe_code, reason = "machine code is called")]

use crate::harness::{Arguments, access, bytes, load, numbers, phase, run, store};
use pyrite_codegen::x86::{self, Width, X86Code};
use pyrite_codegen::{Call, Code, Fault};
use pyrite_loops::{AxisId, Binary, Inst, Kernel, Lanes, Reduce, Reduction, Type, Unary, Val};
use pyrite_tensor::DType;

fn machines(kernel: &Kernel) -> Vec<X86Code> {
    let widths = [Width::Avx2, Width::Avx512].into_iter().filter(|width| width.is_available());
    widths.map(|width| x86::compile(kernel, width).unwrap()).collect()
}

/// The sum over one axis, of which `rows` lie beside each other.
fn sum(rows: i64, len: i64, lanes: Lanes) -> Kernel {
    let mut kernel = Kernel { name: "sum".into(), lanes, ..Kernel::default() };
    let (i, j) = (kernel.add_axis(rows.into()), kernel.add_axis(len.into()));
    kernel.rows = vec![i];
    let steps = if lanes == Lanes::Rows { [1, rows] } else { [len, 1] };
    let x = access(&mut kernel, 0, DType::F32, 0, &steps);
    let y = access(&mut kernel, 1, DType::F32, 0, &[1, 0]);
    let result = kernel.add_result(Type::F32);
    let mut first = phase(&[j]);
    let value = load(&kernel, &mut first, x);
    first.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result });
    let mut last = phase(&[]);
    let value = last.code.push(Inst::Result(result), Type::F32);
    store(&mut last, y, value);
    kernel.phases = vec![first, last];
    kernel
}

#[test]
fn long_sums_stay_accurate() {
    for (rows, len, lanes) in [(1, 5_000_000, Lanes::Phase), (3, 1_000_000, Lanes::Rows), (200, 40_000, Lanes::Rows)] {
        let kernel = sum(rows, len, lanes);
        let values = vec![0.1f32; (rows * len) as usize];
        let expected = f64::from(0.1f32) * len as f64;
        for machine in machines(&kernel) {
            let mut buffers = [bytes(&values), bytes(&vec![0f32; rows as usize])];
            run(&machine, &kernel, &mut buffers).unwrap();
            for total in numbers::<f32>(&buffers[1]) {
                assert!((f64::from(total) / expected - 1.0).abs() < 2e-6, "{total} is not {expected}");
            }
        }
    }
}

/// Reduces rows of a known length and, in a second pass over them, writes each element joined with what came out.
fn reduce_and_spread(op: Reduction, (rows, outer, len): (i64, i64, i64)) -> Kernel {
    let mut kernel = Kernel { name: "reduce".into(), ..Kernel::default() };
    let i = kernel.add_axis(rows.into());
    let [outside, inside, outside_again, inside_again] =
        [outer, len, outer, len].map(|extent| kernel.add_axis(extent.into()));
    kernel.rows = vec![i];
    let step = if outer == 1 { 0 } else { len };
    let x = access(&mut kernel, 0, DType::F32, 0, &[outer * len, step, 1, 0, 0]);
    let again = access(&mut kernel, 0, DType::F32, 0, &[outer * len, 0, 0, step, 1]);
    let y = access(&mut kernel, 1, DType::F32, 0, &[1, 0, 0, 0, 0]);
    let z = access(&mut kernel, 2, DType::F32, 0, &[outer * len, 0, 0, step, 1]);
    let result = kernel.add_result(Type::F32);
    let axes = |both: [AxisId; 2]| if outer == 1 { both[1..].to_vec() } else { both.to_vec() };
    let mut first = phase(&axes([outside, inside]));
    let value = load(&kernel, &mut first, x);
    first.reduces.push(Reduce { op, value, index: None, result });
    let mut middle = phase(&[]);
    let value = middle.code.push(Inst::Result(result), Type::F32);
    store(&mut middle, y, value);
    let mut last = phase(&axes([outside_again, inside_again]));
    let value = load(&kernel, &mut last, again);
    let reduced = last.code.push(Inst::Result(result), Type::F32);
    let value = last.code.binary(Binary::Sub, value, reduced);
    store(&mut last, z, value);
    kernel.phases = vec![first, middle, last];
    kernel
}

#[test]
fn rows_of_every_length_are_reduced_whole() {
    let reduced = |op: Reduction, row: &[f32]| match op {
        Reduction::Sum => row.iter().map(|x| f64::from(*x)).sum::<f64>() as f32,
        Reduction::Prod => row.iter().product(),
        _ if row.iter().any(|x| x.is_nan()) => f32::NAN,
        _ => row.iter().copied().fold(f32::NEG_INFINITY, f32::max),
    };
    let lengths = (1..=140).chain([255, 256, 257, 1000, 4095, 4096, 4097, 8300]);
    for (len, outer) in lengths.flat_map(|len| [(len, 1), (len, 3)]) {
        for op in [Reduction::Sum, Reduction::Prod, Reduction::Max] {
            let (rows, width) = (3, (outer * len) as usize);
            let kernel = reduce_and_spread(op, (rows as i64, outer, len));
            // Small integers, whose sums are exact in any order; signs and few powers of two, whose products are.
            let number = |at: usize| match at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58 {
                _ if op != Reduction::Prod => (at * 37 % 19) as f32 - 9.0,
                0 => 0.5,
                1 => 2.0,
                other => [1.0, -1.0][other % 2],
            };
            let mut values: Vec<f32> = (0..rows * width).map(number).collect();
            if op == Reduction::Max {
                // The first element of one row, the last of another.
                values[width] = f32::NAN;
                values[3 * width - 1] = f32::NAN;
            }
            for machine in machines(&kernel) {
                let guard = 40;
                let marked = vec![7f32; rows * width + guard];
                let mut buffers = [bytes(&values), bytes(&vec![0f32; rows]), bytes(&marked)];
                run(&machine, &kernel, &mut buffers).unwrap();
                let expected: Vec<f32> = values.chunks(width).map(|row| reduced(op, row)).collect();
                let same = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan());
                let found = numbers::<f32>(&buffers[1]);
                assert!(
                    found.iter().zip(&expected).all(|(a, b)| same(*a, *b)),
                    "{op:?} of {outer}×{len}: {found:?} {expected:?}"
                );
                let spread = numbers::<f32>(&buffers[2]);
                let each = |at: usize| same(spread[at], values[at] - expected[at / width]);
                assert!((0..rows * width).all(each), "{op:?} of {outer}×{len}: {spread:?}");
                assert!(
                    spread[rows * width..].iter().all(|x| *x == 7.0),
                    "{op:?} of {outer}×{len}: written behind the rows"
                );
            }
        }
    }
}

#[test]
fn a_place_is_the_same_in_every_vector_of_rows() {
    for rows in [1, 15, 32, 33, 64, 130, 300] {
        let mut kernel = Kernel { name: "place".into(), lanes: Lanes::Rows, ..Kernel::default() };
        let (i, j) = (kernel.add_axis(rows.into()), kernel.add_axis(5.into()));
        kernel.rows = vec![i];
        let x = access(&mut kernel, 0, DType::F32, 0, &[1, rows]);
        let y = access(&mut kernel, 1, DType::I64, 0, &[1, 0]);
        let result = kernel.add_result(Type::I64);
        let mut first = phase(&[j]);
        let value = load(&kernel, &mut first, x);
        let index = Some(first.code.push(Inst::Index(j), Type::I64));
        first.reduces.push(Reduce { op: Reduction::ArgMax, value, index, result });
        let mut last = phase(&[]);
        let value = last.code.push(Inst::Result(result), Type::I64);
        store(&mut last, y, value);
        kernel.phases = vec![first, last];
        let place = |row: i64| row * 7 % 5;
        let values: Vec<f32> =
            (0..5).flat_map(|at| (0..rows).map(move |row| f32::from(u8::from(place(row) == at)))).collect();
        for machine in machines(&kernel) {
            let mut buffers = [bytes(&values), bytes(&vec![0i64; rows as usize])];
            run(&machine, &kernel, &mut buffers).unwrap();
            assert_eq!(numbers::<i64>(&buffers[1]), (0..rows).map(place).collect::<Vec<_>>(), "{rows} rows");
        }
    }
}

#[test]
fn a_body_with_more_values_than_registers_spills() {
    let mut kernel = Kernel { name: "spill".into(), lanes: Lanes::Rows, ..Kernel::default() };
    let axis = kernel.add_axis(37.into());
    kernel.rows = vec![axis];
    let mut only = phase(&[]);
    let x = access(&mut kernel, 0, DType::F32, 0, &[1]);
    let y = access(&mut kernel, 1, DType::F32, 0, &[1]);
    let value = load(&kernel, &mut only, x);
    let parts: Vec<Val> = (0..100)
        .map(|i| {
            let c = only.code.number(f64::from(i), Type::F32);
            only.code.binary(Binary::Mul, value, c)
        })
        .collect();
    let mut total = only.code.number(0.0, Type::F32);
    for part in parts.into_iter().rev() {
        total = only.code.binary(Binary::Add, total, part);
    }
    store(&mut only, y, total);
    kernel.phases = vec![only];
    let values: Vec<f32> = (0..37i16).map(f32::from).collect();
    for machine in machines(&kernel) {
        let mut buffers = [bytes(&values), bytes(&[0f32; 37])];
        run(&machine, &kernel, &mut buffers).unwrap();
        let expected: Vec<f32> = values.iter().map(|x| x * 4950.0).collect();
        assert_eq!(numbers::<f32>(&buffers[1]), expected);
    }
}

#[test]
fn an_index_out_of_bounds_fails_the_call_in_any_lane() {
    for lanes in [Lanes::Phase, Lanes::Rows] {
        let mut kernel = Kernel { name: "take".into(), lanes, ..Kernel::default() };
        let axis = kernel.add_axis(21.into());
        kernel.rows = vec![axis];
        let x = access(&mut kernel, 0, DType::I64, 0, &[1]);
        let table = access(&mut kernel, 1, DType::F32, 0, &[0]);
        let y = access(&mut kernel, 2, DType::F32, 0, &[1]);
        let mut only = phase(&[]);
        let index = load(&kernel, &mut only, x);
        let extent = only.code.integer(5, Type::I64);
        let at = only.code.push(Inst::Bounded { index, extent }, Type::I64);
        let value = only.code.push(Inst::Gather { access: table, at }, Type::F32);
        store(&mut only, y, value);
        kernel.phases = vec![only];
        for machine in machines(&kernel) {
            for bad in 0..21 {
                for wrong in [5, -6, i64::MIN, i64::MAX] {
                    let mut indices: Vec<i64> = (0..21).map(|i| i % 10 - 5).collect();
                    let table: Vec<f32> = vec![10.0, 11.0, 12.0, 13.0, 14.0];
                    let mut buffers = [bytes(&indices), bytes(&table), bytes(&[0f32; 21])];
                    run(&machine, &kernel, &mut buffers).unwrap();
                    let expected: Vec<f32> = indices.iter().map(|i| table[i.rem_euclid(5) as usize]).collect();
                    assert_eq!(numbers::<f32>(&buffers[2]), expected);
                    indices[bad] = wrong;
                    buffers[0] = bytes(&indices);
                    assert_eq!(run(&machine, &kernel, &mut buffers), Err(Fault::OutOfBounds));
                }
            }
        }
    }
}

#[test]
fn a_part_of_an_axis_knows_its_place() {
    let mut kernel = Kernel { name: "count".into(), lanes: Lanes::Rows, ..Kernel::default() };
    let axis = kernel.add_axis(50.into());
    kernel.rows = vec![axis];
    let y = access(&mut kernel, 0, DType::I64, 0, &[1]);
    let mut only = phase(&[]);
    let value = only.code.push(Inst::Index(axis), Type::I64);
    store(&mut only, y, value);
    kernel.phases = vec![only];
    for machine in machines(&kernel) {
        let mut out = vec![0i64; 50];
        for (begin, extent) in [(0, 19), (19, 31)] {
            let base = out.as_mut_ptr().wrapping_add(begin as usize).cast::<u8>();
            let call =
                Call { bases: &[base], extents: &[extent], begins: &[begin], steps: &[1], numbers: &[], reach: &[] };
            // SAFETY: the part lies within the numbers.
            unsafe { machine.run(&call) }.unwrap();
        }
        assert_eq!(out, (0..50).collect::<Vec<i64>>());
    }
}

#[test]
fn angles_of_any_size_have_their_sine() {
    let mut kernel = Kernel { name: "sine".into(), lanes: Lanes::Rows, ..Kernel::default() };
    let axis = kernel.add_axis(19.into());
    kernel.rows = vec![axis];
    let (x, y) = (access(&mut kernel, 0, DType::F32, 0, &[1]), access(&mut kernel, 1, DType::F32, 0, &[1]));
    let mut only = phase(&[]);
    let angle = load(&kernel, &mut only, x);
    let sine = only.code.unary(Unary::Sin, angle);
    let sum = only.code.binary(Binary::Add, sine, angle);
    let back = only.code.binary(Binary::Sub, sum, angle);
    let difference = only.code.binary(Binary::Sub, back, sine);
    let zero = only.code.number(0.0, Type::F32);
    let nothing = only.code.binary(Binary::Mul, difference, zero);
    let value = only.code.binary(Binary::Add, sine, nothing);
    store(&mut only, y, value);
    kernel.phases = vec![only];
    let angles: Vec<f32> = (0..19u8).map(|i| 10f32.powi(i.into()) * 1.7).collect();
    for machine in machines(&kernel) {
        let mut buffers = [bytes(&angles), bytes(&[0f32; 19])];
        run(&machine, &kernel, &mut buffers).unwrap();
        for (got, angle) in numbers::<f32>(&buffers[1]).into_iter().zip(&angles) {
            assert!((f64::from(got) - f64::from(*angle).sin()).abs() < 2e-7, "the sine of {angle} is not {got}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_memory_is_writable_and_executable() {
    let kernel = sum(3, 10, Lanes::Phase);
    let machines = machines(&kernel);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.lines().any(|line| line.split(' ').nth(1).is_some_and(|flags| flags.starts_with("rwx"))));
    drop(machines);
}

#[test]
fn results_that_go_past_the_caches_arrive() {
    const LEN: usize = (1 << 22) + 37;
    let mut kernel = Kernel { name: "stream".into(), lanes: Lanes::Rows, ..Kernel::default() };
    let axis = kernel.add_axis(LEN.into());
    kernel.rows = vec![axis];
    let (x, y) = (access(&mut kernel, 0, DType::F32, 0, &[1]), access(&mut kernel, 1, DType::F32, 0, &[1]));
    let mut only = phase(&[]);
    let value = load(&kernel, &mut only, x);
    let one = only.code.number(1.0, Type::F32);
    let value = only.code.binary(Binary::Add, value, one);
    store(&mut only, y, value);
    kernel.phases = vec![only];
    let mut from: Vec<f32> = (0..LEN).map(|i| (i % 1000) as f32).collect();
    for machine in machines(&kernel) {
        for shift in [0, 1] {
            let mut to = vec![0f32; LEN + 32];
            let begin = to.as_ptr().align_offset(64) + shift;
            let pointers = [from.as_mut_ptr().cast(), to[begin..].as_mut_ptr().cast()];
            Arguments::new(&kernel, &pointers).run(&machine).unwrap();
            assert!(to[begin..begin + LEN].iter().zip(&from).all(|(y, x)| *y == x + 1.0));
            assert!(to[begin + LEN..].iter().all(|y| *y == 0.0));
        }
    }
}
