//! Times the methods of convolutions: `cargo run --release -p pyrite-kernels --example convolution [batch in out size kernel
//! stride groups]...`.
//!
//! The times are the smallest of many, in microseconds: the convolution, the gradient of its input, that of its weight. Methods
//! take turns, so that what else the machine does disturbs all of them alike. `chosen` is the method that sizes choose without
//! tiles.

use std::time::Instant;

use pyrite_kernels::convolution::{
    Geometry, depthwise, direct, forward, indirect, into_windows, onto_weight, windows, winograd,
};

const SHAPES: [&str; 12] = [
    "4 64 64 40 3 1 1",
    "1 64 64 56 3 1 1",
    "1 64 64 224 3 1 1",
    "1 32 32 96 3 1 1",
    "4 128 128 20 3 1 1",
    "4 256 256 10 3 1 1",
    "4 64 128 56 3 2 1",
    "4 128 256 28 3 2 1",
    "4 3 64 160 7 2 1",
    "1 128 128 56 3 1 32",
    "4 128 128 56 3 2 32",
    "4 512 512 14 3 2 32",
];

/// What is timed, with its name.
type Contender<'a> = (&'static str, Box<dyn FnMut() + 'a>);

/// The smallest time of each contender, in microseconds.
fn fastest(contenders: &mut [Contender<'_>]) -> Vec<f64> {
    let mut best = vec![f64::MAX; contenders.len()];
    let begin = Instant::now();
    let mut rounds = 0;
    while rounds < 5 || (rounds < 2000 && begin.elapsed().as_secs_f64() < 0.3 * contenders.len() as f64) {
        for ((_, work), best) in contenders.iter_mut().zip(&mut best) {
            let start = Instant::now();
            work();
            *best = best.min(start.elapsed().as_secs_f64() * 1e6);
        }
        rounds += 1;
    }
    best
}

fn time(title: &str, mut contenders: Vec<Contender<'_>>) {
    print!("  {title:8}");
    let times = fastest(&mut contenders);
    for ((name, _), time) in contenders.iter().zip(times) {
        print!(" {name} {time:<8.1}");
    }
    println!();
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let shapes: Vec<String> = if words.is_empty() {
        SHAPES.map(str::to_owned).to_vec()
    } else {
        words.chunks(7).map(|s| s.join(" ")).collect()
    };
    for shape in shapes {
        let sizes: Vec<usize> = shape.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [batch, inner, outer, size, kernel, stride, groups] = sizes[..] else { continue };
        let out = (size + 2 * (kernel / 2) - kernel) / stride + 1;
        let g = Geometry {
            batch,
            groups,
            channels: (inner / groups, outer / groups),
            input: [1, size, size],
            output: [1, out, out],
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            padding: [0, kernel / 2, kernel / 2],
            dilation: [1; 3],
        };
        let numbers = |count: usize| (0..count).map(|i| ((i * 7919) % 23) as f32 / 23.0).collect::<Vec<f32>>();
        let x = numbers(batch * inner * size * size);
        let weight = numbers(outer * (inner / groups) * kernel * kernel);
        let y = numbers(batch * outer * out * out);
        let filled = |count: usize| vec![0.0f32; count];
        println!("{shape}");
        let tiles = winograd::suits(&Geometry { channels: (1024, 1024), ..g });
        let side_by_side = depthwise::suits(&g);

        macro_rules! methods {
            ($method:ident, $to:expr, $($argument:expr),*) => {{
                let mut all: Vec<Contender<'_>> = Vec::new();
                macro_rules! contender {
                    ($name:literal, $function:path) => {{
                        let mut to = filled($to);
                        all.push(($name, Box::new(move || $function(&g, $($argument,)* &mut to))));
                    }};
                }
                contender!("chosen", $method);
                contender!("windows", windows::$method);
                contender!("direct", direct::$method);
                if indirect::suits::<f32>(&g) {
                    contender!("indirect", indirect::$method);
                }
                if side_by_side {
                    contender!("depthwise", depthwise::$method);
                }
                all
            }};
        }
        let (x, weight, gradient) = (&*x, &*weight, &*y);
        let kept = winograd::Weights::forward(&g, weight);
        let mut to = filled(y.len());
        let mut all = methods!(forward, y.len(), x, weight, None);
        if tiles {
            all.push(("tiles", Box::new(|| winograd::convolve(&g, x, &kept, None, &mut to))));
            all.push(("their weight", Box::new(|| drop(winograd::Weights::forward(&g, weight)))));
        }
        time("forward", all);
        let (back, kept) = (winograd::backward(&g).unwrap_or(g), winograd::Weights::backward(&g, weight));
        let mut to = filled(x.len());
        let mut all = methods!(into_windows, x.len(), gradient, weight);
        if tiles {
            all.push(("tiles", Box::new(|| winograd::convolve(&back, gradient, &kept, None, &mut to))));
        }
        time("input", all);
        time("weight", methods!(onto_weight, weight.len(), gradient, x));
    }
}
