//! Times kernels on one thread: `cargo run --release -p pyrite-codegen --example kernels [FOLDER]`.
//!
//! A pointwise kernel with erf-gelu, softmax and layer norm, a column sum and an embedding, small and large. With a
//! folder, writes the machine code there for a disassembler.

#[path = "../tests/all/harness/mod.rs"]
mod harness;

use std::time::{Duration, Instant};

use harness::{Arguments, access, bytes, load, phase, store};
use pyrite_codegen::x86::{self, Width};
use pyrite_codegen::{Code, tiles};
use pyrite_loops::{Binary, Inst, Kernel, Lanes, Reduce, Reduction, Type, Unary};
use pyrite_tensor::DType;

/// A kernel over `rows` times `columns` elements, its buffers, and how many bytes it moves at least.
type Case = (Kernel, Vec<Vec<u8>>, usize);

fn empty(name: &str, rows: i64, columns: i64) -> (Kernel, pyrite_loops::AxisId, pyrite_loops::AxisId) {
    let mut kernel = Kernel { name: name.into(), ..Kernel::default() };
    let (i, j) = (kernel.add_axis(rows.into()), kernel.add_axis(columns.into()));
    (kernel, i, j)
}

fn data(len: i64) -> Vec<u8> {
    bytes(&(0..len).map(|i| ((i * 7919) % 2003) as f32 / 400.0 - 2.5).collect::<Vec<f32>>())
}

/// `gelu(x + bias) + residual`.
fn gelu(rows: i64, columns: i64) -> Case {
    let (mut kernel, i, j) = empty("gelu", rows, columns);
    kernel.rows = vec![i, j];
    kernel.lanes = Lanes::Rows;
    let [x, residual, out] = [0, 2, 3].map(|b| access(&mut kernel, b, DType::F32, 0, &[columns, 1]));
    let bias = access(&mut kernel, 1, DType::F32, 0, &[0, 1]);
    let mut only = phase(&[]);
    let (a, b) = (load(&kernel, &mut only, x), load(&kernel, &mut only, bias));
    let t = only.code.binary(Binary::Add, a, b);
    let root = only.code.number(std::f64::consts::FRAC_1_SQRT_2, Type::F32);
    let u = only.code.binary(Binary::Mul, t, root);
    let u = only.code.unary(Unary::Erf, u);
    let one = only.code.number(1.0, Type::F32);
    let u = only.code.binary(Binary::Add, u, one);
    let half = only.code.number(0.5, Type::F32);
    let h = only.code.binary(Binary::Mul, t, half);
    let y = only.code.binary(Binary::Mul, h, u);
    let r = load(&kernel, &mut only, residual);
    let y = only.code.binary(Binary::Add, y, r);
    store(&mut only, out, y);
    kernel.phases = vec![only];
    let len = rows * columns;
    (kernel, vec![data(len), data(columns), data(len), data(len)], len as usize * 12)
}

fn softmax(rows: i64, columns: i64) -> Case {
    let (mut kernel, i, j) = empty("softmax", rows, columns);
    kernel.rows = vec![i];
    let [x, out] = [0, 1].map(|b| access(&mut kernel, b, DType::F32, 0, &[columns, 1]));
    let (most, sum) = (kernel.add_result(Type::F32), kernel.add_result(Type::F32));
    let mut first = phase(&[j]);
    let value = load(&kernel, &mut first, x);
    first.reduces.push(Reduce { op: Reduction::Max, value, index: None, result: most });
    let mut second = phase(&[j]);
    let value = load(&kernel, &mut second, x);
    let top = second.code.push(Inst::Result(most), Type::F32);
    let value = second.code.binary(Binary::Sub, value, top);
    let value = second.code.unary(Unary::Exp, value);
    store(&mut second, out, value);
    second.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result: sum });
    let mut third = phase(&[j]);
    let value = load(&kernel, &mut third, out);
    let total = third.code.push(Inst::Result(sum), Type::F32);
    let value = third.code.binary(Binary::Div, value, total);
    store(&mut third, out, value);
    kernel.phases = vec![first, second, third];
    let len = rows * columns;
    (kernel, vec![data(len), data(len)], len as usize * 8)
}

fn layer_norm(rows: i64, columns: i64) -> Case {
    let (mut kernel, i, j) = empty("layer-norm", rows, columns);
    kernel.rows = vec![i];
    let [x, out] = [0, 3].map(|b| access(&mut kernel, b, DType::F32, 0, &[columns, 1]));
    let [weight, bias] = [1, 2].map(|b| access(&mut kernel, b, DType::F32, 0, &[0, 1]));
    let (sum, squares) = (kernel.add_result(Type::F32), kernel.add_result(Type::F32));
    let mut first = phase(&[j]);
    let value = load(&kernel, &mut first, x);
    first.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result: sum });
    let centred = |kernel: &Kernel, phase: &mut pyrite_loops::Phase| {
        let value = load(kernel, phase, x);
        let total = phase.code.push(Inst::Result(sum), Type::F32);
        let share = phase.code.number(1.0 / columns as f64, Type::F32);
        let mean = phase.code.binary(Binary::Mul, total, share);
        phase.code.binary(Binary::Sub, value, mean)
    };
    let mut second = phase(&[j]);
    let value = centred(&kernel, &mut second);
    let value = second.code.binary(Binary::Mul, value, value);
    second.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result: squares });
    let mut third = phase(&[j]);
    let value = centred(&kernel, &mut third);
    let total = third.code.push(Inst::Result(squares), Type::F32);
    let share = third.code.number(1.0 / columns as f64, Type::F32);
    let variance = third.code.binary(Binary::Mul, total, share);
    let least = third.code.number(1e-5, Type::F32);
    let variance = third.code.binary(Binary::Add, variance, least);
    let scale = third.code.unary(Unary::Rsqrt, variance);
    let value = third.code.binary(Binary::Mul, value, scale);
    let (w, b) = (load(&kernel, &mut third, weight), load(&kernel, &mut third, bias));
    let value = third.code.binary(Binary::Mul, value, w);
    let value = third.code.binary(Binary::Add, value, b);
    store(&mut third, out, value);
    kernel.phases = vec![first, second, third];
    let len = rows * columns;
    (kernel, vec![data(len), data(columns), data(columns), data(len)], len as usize * 8)
}

/// The sum over the first axis.
fn column_sum(rows: i64, columns: i64) -> Case {
    let (mut kernel, i, j) = empty("column-sum", rows, columns);
    kernel.rows = vec![j];
    kernel.lanes = Lanes::Rows;
    let x = access(&mut kernel, 0, DType::F32, 0, &[columns, 1]);
    let out = access(&mut kernel, 1, DType::F32, 0, &[0, 1]);
    let sum = kernel.add_result(Type::F32);
    let mut first = phase(&[i]);
    let value = load(&kernel, &mut first, x);
    first.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result: sum });
    let mut last = phase(&[]);
    let value = last.code.push(Inst::Result(sum), Type::F32);
    store(&mut last, out, value);
    kernel.phases = vec![first, last];
    (kernel, vec![data(rows * columns), data(columns)], (rows * columns) as usize * 4)
}

fn embedding(rows: i64, columns: i64) -> Case {
    let (mut kernel, i, j) = empty("embedding", rows, columns);
    kernel.rows = vec![i];
    let indices = access(&mut kernel, 0, DType::I64, 0, &[1, 0]);
    let table = access(&mut kernel, 1, DType::F32, 0, &[0, 1]);
    let out = access(&mut kernel, 2, DType::F32, 0, &[columns, 1]);
    let mut only = phase(&[j]);
    let index = load(&kernel, &mut only, indices);
    let extent = only.code.integer(rows, Type::I64);
    let index = only.code.push(Inst::Bounded { index, extent }, Type::I64);
    let width = only.code.integer(columns, Type::I64);
    let at = only.code.binary(Binary::Mul, index, width);
    let value = only.code.push(Inst::Gather { access: table, at }, Type::F32);
    store(&mut only, out, value);
    kernel.phases = vec![only];
    let len = rows * columns;
    let indices: Vec<i64> = (0..rows).map(|i| (i * 7919) % rows).collect();
    (kernel, vec![bytes(&indices), data(len), data(len)], len as usize * 8)
}

/// A piece of memory that begins where a cache line does.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; 64]);

fn lines(bytes: &[u8]) -> Vec<Line> {
    let line = |chunk: &[u8]| {
        let mut line = Line([0; 64]);
        line.0[..chunk.len()].copy_from_slice(chunk);
        line
    };
    bytes.chunks(64).map(line).collect()
}

/// The shortest time of a call.
fn time(code: &dyn Code, arguments: &Arguments) -> Duration {
    let (mut best, begin) = (Duration::MAX, Instant::now());
    while begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        arguments.run(code).expect("indices are in bounds");
        best = best.min(start.elapsed());
    }
    best
}

fn main() {
    let folder = std::env::args().nth(1);
    println!("{:<12} {:>14} {:>10} {:>22} {:>22} {:>12}", "kernel", "elements", "compile", "avx2", "avx512", "tiles");
    for (rows, columns) in [(64, 512), (16384, 1024)] {
        for make in [gelu, softmax, layer_norm, column_sum, embedding] {
            let (kernel, buffers, moved) = make(rows, columns);
            let mut buffers: Vec<Vec<Line>> = buffers.iter().map(|b| lines(b)).collect();
            let pointers: Vec<*mut u8> = buffers.iter_mut().map(|b| b.as_mut_ptr().cast()).collect();
            let arguments = Arguments::new(&kernel, &pointers);
            let start = Instant::now();
            let narrow = x86::compile(&kernel, Width::Avx2);
            let compile = start.elapsed();
            let mut cells = Vec::new();
            for machine in [narrow, x86::compile(&kernel, Width::Avx512)] {
                let Ok(machine) = machine else { continue };
                if let Some(folder) = &folder {
                    let path = format!("{folder}/{}-{}.bin", kernel.name, cells.len());
                    std::fs::write(path, machine.bytes()).expect("the folder can be written to");
                }
                let time = time(&machine, &arguments);
                cells.push(format!("{time:>12.2?} {:5.1} GB/s", moved as f64 / time.as_secs_f64() / 1e9));
            }
            cells.push(format!("{:>12.2?}", time(&tiles::compile(&kernel), &arguments)));
            println!("{:<12} {rows:>8}x{columns:<5} {compile:>10.2?} {}", kernel.name, cells.join(" "));
        }
    }
    let len = 16384 * 1024 * 4;
    let (from, mut to) = (vec![1u8; len], vec![0u8; len]);
    let mut best = Duration::MAX;
    for _ in 0..8 {
        let start = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        best = best.min(start.elapsed());
    }
    println!("copying 64 MB: {best:.2?} {:.1} GB/s", 2.0 * len as f64 / best.as_secs_f64() / 1e9);
}
