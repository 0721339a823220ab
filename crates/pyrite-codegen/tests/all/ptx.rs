//! PTX and its interpreter against machine code and the tile interpreter.
//!
//! Random kernels are those of `random.rs`: each has one right answer in any order, but for scatters that replace, of
//! which any may count on a GPU. `SEED=n` runs one kernel alone, `PTX_KERNELS=n` so many.

#![expect(unsafe_code, reason = "compiled code works on raw memory")]

use crate::generator;
use crate::generator::{Generated, first_difference};
use crate::harness::{Arguments, access, bytes, load, numbers, phase, run, store};
use pyrite_codegen::{Fault, ptx, tiles};
use pyrite_loops::{Binary, Inst, Kernel, Reduce, Reduction, Type, Unary, Write};
use pyrite_ptx::assemble::Assembler;
use pyrite_tensor::DType;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Buffers whose contents depend on which of several writes comes last.
fn undecided(kernel: &Kernel, buffer: usize) -> bool {
    let scatters = |inst: &Inst| match inst {
        Inst::Scatter { access, write: Write::Set, .. } => kernel.access(*access).buffer.0 as usize == buffer,
        _ => false,
    };
    kernel.phases.iter().any(|phase| phase.code.insts().iter().any(scatters))
}

fn check(seed: u64) {
    let Generated { kernel, buffers, dtypes } = generator::generate(seed);
    let mut expected = buffers.clone();
    let outcome = run(&tiles::compile(&pyrite_math::expand(&kernel)), &kernel, &mut expected);
    let code = ptx::compile(&kernel).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{kernel}"));
    let mut actual = buffers.clone();
    let got = run(&code, &kernel, &mut actual);
    assert_eq!(got, outcome, "seed {seed}\n{kernel}\n{}", code.text());
    if outcome.is_err() {
        return;
    }
    for (index, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
        if undecided(&kernel, index) {
            continue;
        }
        if let Some(at) = first_difference(actual, expected, dtypes[index]) {
            let size = dtypes[index].size();
            panic!(
                "seed {seed}: buf{index}[{at}] of {} is {:x?}, not {:x?}\n{kernel}\n{}",
                dtypes[index],
                &actual[at * size..][..size],
                &expected[at * size..][..size],
                code.text()
            );
        }
    }
}

#[test]
fn ptx_computes_what_the_tile_interpreter_computes() {
    match number("SEED") {
        Some(seed) => check(seed),
        None => (0..number("PTX_KERNELS").unwrap_or(12)).for_each(check),
    }
}

#[test]
fn the_assembler_takes_every_kernel() {
    let Some(assembler) = Assembler::find() else {
        println!("ptxas is not installed (PYRITE_PTXAS names one): nothing is assembled");
        return;
    };
    let count = number("PTX_KERNELS").map_or(10, |count| count.min(1000));
    for seed in 0..count {
        let kernel = generator::generate(seed).kernel;
        let code = ptx::compile(&kernel).unwrap();
        for architecture in ["sm_80", "sm_90"] {
            if let Err(error) = assembler.assemble(code.text(), architecture) {
                panic!("seed {seed}, {architecture}: {error}\n{}", code.text());
            }
        }
    }
}

/// Softmax over the second of two axes: what one phase writes a later one reads, in blocks of several warps, from its end.
fn softmax(rows: i64, columns: i64) -> Kernel {
    softmax_read(rows, columns, columns - 1, -1)
}

/// The same, whose last phase begins at an element of the row and goes on by a step.
fn softmax_read(rows: i64, columns: i64, begin: i64, step: i64) -> Kernel {
    let mut kernel = Kernel { name: "softmax".into(), ..Kernel::default() };
    let (i, j) = (kernel.add_axis(rows.into()), kernel.add_axis(columns.into()));
    kernel.rows = vec![i];
    let x = access(&mut kernel, 0, DType::F32, 0, &[columns, 1]);
    let y = access(&mut kernel, 1, DType::F32, 0, &[columns, 1]);
    let back = access(&mut kernel, 1, DType::F32, begin, &[columns, step]);
    let z = access(&mut kernel, 2, DType::F32, 0, &[columns, 1]);
    let (most, sum) = (kernel.add_result(Type::F32), kernel.add_result(Type::F32));
    let mut first = phase(&[j]);
    let value = load(&kernel, &mut first, x);
    first.reduces.push(Reduce { op: Reduction::Max, value, index: None, result: most });
    let mut second = phase(&[j]);
    let value = load(&kernel, &mut second, x);
    let top = second.code.push(Inst::Result(most), Type::F32);
    let value = second.code.binary(Binary::Sub, value, top);
    let value = second.code.unary(Unary::Exp, value);
    store(&mut second, y, value);
    second.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result: sum });
    let mut third = phase(&[j]);
    let value = load(&kernel, &mut third, back);
    let total = third.code.push(Inst::Result(sum), Type::F32);
    let value = third.code.binary(Binary::Div, value, total);
    store(&mut third, z, value);
    kernel.phases = vec![first, second, third];
    kernel
}

fn softmax_buffers(rows: i64, columns: i64) -> [Vec<u8>; 3] {
    let values: Vec<f32> = (0..rows * columns).map(|i| ((i * 37) % 101) as f32 * 0.05).collect();
    [bytes(&values), bytes(&vec![0f32; values.len()]), bytes(&vec![0f32; values.len()])]
}

#[test]
fn rows_of_a_softmax_are_blocks_and_agree_with_the_tile_interpreter() {
    for (rows, columns) in [(1, 1), (3, 70), (5, 1025), (300, 33)] {
        let kernel = softmax(rows, columns);
        let (mut actual, mut expected) = (softmax_buffers(rows, columns), softmax_buffers(rows, columns));
        run(&ptx::compile(&kernel).unwrap(), &kernel, &mut actual).unwrap();
        run(&tiles::compile(&pyrite_math::expand(&kernel)), &kernel, &mut expected).unwrap();
        for (actual, expected) in actual.iter().zip(&expected) {
            for (a, b) in numbers::<f32>(actual).into_iter().zip(numbers::<f32>(expected)) {
                assert!((a - b).abs() <= 1e-6 * b.abs(), "{rows} x {columns}: {a} is not {b}");
            }
        }
    }
}

#[test]
fn rows_stay_in_registers_from_phase_to_phase() {
    // Runs of threads that are full and that are not, one run and several, few rows and many.
    for (rows, columns) in
        [(3, 64), (2, 200), (5, 1000), (2, 1024), (1, 4096), (2, 4100), (1030, 64), (1025, 72), (1, 20000)]
    {
        let kernel = softmax_read(rows, columns, 0, 1);
        let code = ptx::compile(&kernel).unwrap();
        let loads = code.text().split("kernel_v4").nth(1).unwrap().matches("ld.global").count();
        let runs = code.text().split("kernel_v4").nth(1).unwrap().matches("st.global").count() / 2;
        assert_eq!(loads, runs, "{rows} x {columns}: each element is read once");
        let (mut actual, mut expected) = (softmax_buffers(rows, columns), softmax_buffers(rows, columns));
        run(&code, &kernel, &mut actual).unwrap();
        run(&tiles::compile(&pyrite_math::expand(&kernel)), &kernel, &mut expected).unwrap();
        for (actual, expected) in actual.iter().zip(&expected) {
            for (a, b) in numbers::<f32>(actual).into_iter().zip(numbers::<f32>(expected)) {
                assert!((a - b).abs() <= 1e-6 * b.abs(), "{rows} x {columns}: {a} is not {b}");
            }
        }
    }
}

/// Runs a softmax whose text has a mistake; gives what the interpreter says.
fn softmax_with(mistake: impl Fn(&str) -> String) -> String {
    let kernel = softmax(3, 200);
    let code = ptx::compile(&kernel).unwrap();
    let text = mistake(code.text());
    assert_ne!(text, code.text(), "no mistake was made");
    let mut buffers = softmax_buffers(3, 200);
    match Arguments::within(&kernel, &mut buffers).run(&code.with_text(&text)) {
        Err(Fault::Trap(what)) => what,
        other => panic!("the mistake was not found: {other:?}\n{text}"),
    }
}

/// A text without the n-th of the lines that contain a word.
fn without(text: &str, word: &str, number: usize) -> String {
    let place = text.lines().enumerate().filter(|(_, line)| line.contains(word)).nth(number).map(|(at, _)| at);
    let kept = text.lines().enumerate().filter(|(at, _)| Some(*at) != place).map(|(_, line)| line);
    kept.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_missing_barrier_is_found() {
    let text = ptx::compile(&softmax(3, 200)).unwrap().text().to_owned();
    let barriers = text.lines().filter(|line| line.contains("bar.sync")).count();
    assert!(barriers >= 3, "{text}");
    let mut found = 0;
    for number in 0..barriers {
        let kernel = softmax(3, 200);
        let code = ptx::compile(&kernel).unwrap();
        let mut buffers = softmax_buffers(3, 200);
        let broken = code.with_text(&without(&text, "bar.sync", number));
        if let Err(Fault::Trap(what)) = Arguments::within(&kernel, &mut buffers).run(&broken) {
            assert!(what.contains("race"), "{what}");
            found += 1;
        }
    }
    // The last one orders the rows of a block, and here every block has one row.
    assert!(found + 1 >= barriers, "{found} of {barriers}\n{text}");
}

#[test]
fn a_barrier_that_some_threads_never_reach_is_found() {
    let what = softmax_with(|text| {
        let guard = text.lines().find_map(|line| line.trim().strip_prefix('@')?.split_once(" st.shared")).unwrap().0;
        text.replacen("bar.sync 0;", &format!("@{guard} ret;\n    bar.sync 0;"), 1)
    });
    assert!(what.contains("does not reach the barrier"), "{what}");
}

#[test]
fn a_wrong_bound_is_found() {
    let what = softmax_with(|text| {
        // The loops that take several positions at a time come first.
        let place = text.rfind("setp.ge.s64").unwrap();
        format!("{}setp.gt{}", &text[..place], &text[place + "setp.ge".len()..])
    });
    // One position too many: the element behind the last row, or one that another row has.
    assert!(what.contains("outside of the launch's memory") || what.contains("race"), "{what}");
}

#[test]
fn a_wrong_stride_is_found() {
    let what = softmax_with(|text| text.replace(", 800, ", ", 804, "));
    assert!(what.contains("outside of the launch's memory"), "{what}");
}

#[test]
fn a_shuffle_of_some_lanes_is_found() {
    let what = softmax_with(|text| {
        let guard = text.lines().find_map(|line| line.trim().strip_prefix('@')?.split_once(" st.shared")).unwrap().0;
        let line = text.lines().filter(|line| line.contains("shfl.sync")).nth(10).unwrap();
        text.replacen(line, &format!("    @{guard} {}", line.trim()), 1)
    });
    assert!(what.contains("not all lanes"), "{what}");
}

#[test]
fn neighbours_are_moved_together_where_they_lie_so() {
    for (dtype, lanes) in [(DType::F32, 4), (DType::BF16, 8), (DType::F64, 2), (DType::U8, 4), (DType::I16, 8)] {
        for len in [64i64, 61] {
            let mut kernel = Kernel { name: "twice".into(), lanes: pyrite_loops::Lanes::Rows, ..Kernel::default() };
            let axis = kernel.add_axis(len.into());
            kernel.rows = vec![axis];
            let (x, y) = (access(&mut kernel, 0, dtype, 0, &[1]), access(&mut kernel, 1, dtype, 0, &[1]));
            let mut only = phase(&[]);
            let value = load(&kernel, &mut only, x);
            let value = only.code.binary(Binary::Add, value, value);
            store(&mut only, y, value);
            kernel.phases = vec![only];
            let code = ptx::compile(&kernel).unwrap();
            assert!(code.text().contains(&format!("kernel_v{lanes}")), "{}", code.text());
            // Memory that begins where vectors may, with numbers that every type has.
            let mut words = [vec![0u64; 128], vec![0u64; 128]];
            let raw: Vec<u8> = (0..len).flat_map(|i| small(dtype, i % 60)).collect();
            let pointers: Vec<*mut u8> = words.iter_mut().map(|words| words.as_mut_ptr().cast::<u8>()).collect();
            // SAFETY: the buffer has room for all elements.
            unsafe { std::ptr::copy_nonoverlapping(raw.as_ptr(), pointers[0], raw.len()) };
            Arguments::new(&kernel, &pointers).run(&code).unwrap();
            let doubled: Vec<u8> = (0..len).flat_map(|i| small(dtype, i % 60 * 2)).collect();
            assert_eq!(bytes(&words[1])[..doubled.len()], doubled[..], "{dtype} {len}");
        }
    }
}

/// A small number as an element.
fn small(dtype: DType, n: i64) -> Vec<u8> {
    match dtype {
        DType::F64 => (n as f64).to_ne_bytes().to_vec(),
        DType::F32 => (n as f32).to_ne_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(n as f64).to_ne_bytes().to_vec(),
        DType::I16 => (n as i16).to_ne_bytes().to_vec(),
        _ => vec![n as u8],
    }
}

#[test]
fn positions_are_counted_alike_with_32_and_with_64_bits() {
    let mut kernel = Kernel { name: "transposed".into(), lanes: pyrite_loops::Lanes::Rows, ..Kernel::default() };
    let axes = [kernel.add_axis(5.into()), kernel.add_axis(7.into()), kernel.add_axis(9.into())];
    kernel.rows = axes.to_vec();
    let (x, y) =
        (access(&mut kernel, 0, DType::I32, 0, &[63, 9, 1]), access(&mut kernel, 1, DType::I32, 0, &[1, 5, 35]));
    let mut only = phase(&[]);
    let value = load(&kernel, &mut only, x);
    store(&mut only, y, value);
    kernel.phases = vec![only];
    let code = ptx::compile(&kernel).unwrap();
    // Every count is above zero, so the long division is taken.
    let wide = code.with_text(&code.text().replace("0xffffffff", "0"));
    let values: Vec<i32> = (0..315).collect();
    let mut results = Vec::new();
    for code in [&code, &wide] {
        let mut buffers = [bytes(&values), bytes(&[0i32; 315])];
        run(code, &kernel, &mut buffers).unwrap();
        results.push(numbers::<i32>(&buffers[1]));
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0][36], values[63 + 1], "element (1, 0, 1)");
}
