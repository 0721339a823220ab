//! Times convolutions: `cargo run --release -p pyrite-kernels --example convolution [batch in out size kernel stride]...`; 0 outputs are a depthwise convolution.
//! The times are the smallest of many, in microseconds: the method that sizes choose, the gradients of the input and of the
//! weight, tiles where they suit, and the transform of the weight for them.

use std::time::Instant;

use pyrite_kernels::convolution::{Geometry, direct, forward, into_windows, onto_weight, winograd};

fn fastest(mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    let begin = Instant::now();
    let mut runs = 0;
    while runs < 5 || (runs < 2000 && begin.elapsed().as_secs_f64() < 0.3) {
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
        "4 64 64 40 3 1",
        "4 128 128 20 3 1",
        "4 256 256 10 3 1",
        "4 512 512 5 3 1",
        "4 64 128 40 3 2",
        "4 3 64 160 7 2",
        "2 64 256 40 1 1",
        "2 1024 256 10 1 1",
        "1 32 32 96 3 1",
    ];
    let lines = if words.is_empty() { default.map(str::to_owned).to_vec() } else { vec![words.join(" ")] };
    for line in lines {
        let sizes: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [batch, inner, outer, size, kernel, stride] = sizes[..] else { continue };
        let out = (size + 2 * (kernel / 2) - kernel) / stride + 1;
        let g = Geometry {
            batch,
            groups: if outer == 0 { inner } else { 1 },
            channels: if outer == 0 { (1, 1) } else { (inner, outer) },
            input: [1, size, size],
            output: [1, out, out],
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            padding: [0, kernel / 2, kernel / 2],
            dilation: [1; 3],
        };
        let numbers = |count: usize| (0..count).map(|i| ((i * 7919) % 23) as f32 / 23.0).collect::<Vec<f32>>();
        let weights = if outer == 0 { inner } else { outer * inner };
        let (x, weight) = (numbers(batch * inner * size * size), numbers(weights * kernel * kernel));
        let mut y = vec![0.0; batch * if outer == 0 { inner } else { outer } * out * out];
        let chosen = fastest(|| forward(&g, &x, &weight, None, &mut y));
        let (mut dx, mut dw) = (x.clone(), weight.clone());

        let into = fastest(|| into_windows(&g, &y, &weight, &mut dx));
        let onto = fastest(|| onto_weight(&g, &y, &x, &mut dw));
        print!("{line:20} {chosen:10.1} {into:10.1} {onto:10.1}");
        if outer == 0 {
            let sums = fastest(|| direct::forward(&g, &x, &weight, None, &mut y));
            let into = fastest(|| direct::into_windows(&g, &y, &weight, &mut dx));
            let onto = fastest(|| direct::onto_weight(&g, &y, &x, &mut dw));
            print!(" direct {sums:10.1} {into:10.1} {onto:10.1}");
        }
        if winograd::suits(&g) {
            let kept = winograd::Weights::forward(&g, &weight);
            let tiles = fastest(|| winograd::convolve(&g, &x, &kept, None, &mut y));
            let made = fastest(|| drop(winograd::Weights::forward(&g, &weight)));
            print!(" {tiles:10.1} {made:10.1}");
        }
        println!();
    }
}
