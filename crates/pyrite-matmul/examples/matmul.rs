//! Times matmuls: `cargo run --release -p pyrite-matmul --example matmul [rows cols depth [t]]...`; `t` transposes the
//! right operand. The times are the smallest of many, in microseconds: ours, ours with the right operand kept in panels,
//! the library's.

use std::time::Instant;

use pyrite_matmul::{
    Base, Library, Matrix, Onto, Packed, Panels, Provider, Request, Right, Shape, Threads, multiply_into,
};

fn fastest(mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    let begin = Instant::now();
    let mut runs = 0;
    while runs < 5 || (runs < 2000 && begin.elapsed().as_secs_f64() < 1.0) {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    best * 1e6
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let default = [
        "64 256 256",
        "64 256 256 t",
        "32 4096 1024",
        "32 4096 1024 t",
        "512 512 512",
        "1024 1024 1024",
        "2048 2048 2048",
    ];
    let lines = if words.is_empty() { default.map(str::to_owned).to_vec() } else { vec![words.join(" ")] };
    for line in lines {
        let sizes: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [m, n, k] = sizes[..] else { continue };
        let number = |i: usize| ((i * 7919) % 23) as f32 / 23.0;
        let (a, b): (Vec<f32>, Vec<f32>) = ((0..m * k).map(number).collect(), (0..k * n).map(number).collect());
        let right = if line.ends_with('t') { Shape::rows_first(n, k).transposed() } else { Shape::rows_first(k, n) };
        let (lhs, rhs) = (Matrix { data: &a, shape: Shape::rows_first(m, k) }, Matrix { data: &b, shape: right });
        let mut out = vec![0.0f32; m * n];
        let shape = Shape::rows_first(m, n);
        let ours = fastest(|| Panels.gemm((&mut out, shape), lhs, rhs, 1.0, Onto::Nothing, Threads::All));
        let Some(packed) = Packed::<f32>::new(rhs) else { return };
        let (right, onto) = (Right::Packed(&packed), Base::Out(Onto::Nothing));
        let request: Request<'_, f32, f32> =
            Request { lhs, rhs: right, scale: 1.0, onto, threads: Threads::All, finish: None };
        // SAFETY: the output has the size that its shape says, and nobody else has it.
        #[expect(unsafe_code, reason = "the output is raw memory")]
        let kept = fastest(|| unsafe { multiply_into(out.as_mut_ptr(), shape, &request) });
        let theirs = fastest(|| Library.gemm((&mut out, shape), lhs, rhs, 1.0, Onto::Nothing, Threads::All));
        let peak = (m * n * k) as f64 / kept / 1e3 * 2.0;
        println!("{line:20} {ours:10.1} {kept:10.1} {theirs:10.1}   {peak:.0} GFLOP/s");
    }
}
