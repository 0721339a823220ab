//! Every method of convolution gives what a plain loop gives. Numbers are small integers, so that sums are exact in
//! whatever order they are taken.

use proptest::prelude::*;
use pyrite_kernels::convolution::{
    Geometry, depthwise, direct, forward, indirect, into_windows, onto_weight, points, windows, winograd,
};
use pyrite_kernels::gemm::Factor;

/// Calls `visit(element of y, element of the weight, element of x)` for every product of a convolution.
fn each_product(g: &Geometry, mut visit: impl FnMut(usize, usize, usize)) {
    let ((input, output), (inner, outer)) = (g.planes(), g.channels);
    let grid =
        |[a, b, c]: [usize; 3]| (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k])));
    let flat = |sizes: [usize; 3], at: [usize; 3]| (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
    let window: usize = g.kernel.iter().product();
    for [image, group, out] in grid([g.batch, g.groups, outer]) {
        for (channel, o) in (0..inner).flat_map(|channel| grid(g.output).map(move |o| (channel, o))) {
            for k in grid(g.kernel) {
                let at = [0, 1, 2].map(|d| (o[d] * g.stride[d] + k[d] * g.dilation[d]).wrapping_sub(g.padding[d]));
                if (0..3).all(|d| at[d] < g.input[d]) {
                    visit(
                        ((image * g.groups + group) * outer + out) * output + flat(g.output, o),
                        ((group * outer + out) * inner + channel) * window + flat(g.kernel, k),
                        ((image * g.groups + group) * inner + channel) * input + flat(g.input, at),
                    );
                }
            }
        }
    }
}

fn numbers<T: Factor>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|at| T::from_i64(((at + seed) * 7919 % 9) as i64 - 4)).collect()
}

type Forward<T> = fn(&Geometry, &[T], &[T], Option<&[T]>, &mut [T]);
type Gradient<T> = fn(&Geometry, &[T], &[T], &mut [T]);

/// Compares the three sums of a method with the plain loop.
fn agrees<T: Factor + std::fmt::Debug>(g: &Geometry, name: &str, (f, dx, dw): (Forward<T>, Gradient<T>, Gradient<T>)) {
    let ((input, output), (inner, outer)) = (g.planes(), g.channels);
    let (images, channels) = (g.batch * g.groups, g.groups * outer);
    let x: Vec<T> = numbers(images * inner * input, 1);
    let y: Vec<T> = numbers(images * outer * output, 2);
    let weight: Vec<T> = numbers(channels * inner * g.kernel.iter().product::<usize>(), 3);
    let bias: Vec<T> = numbers(channels, 4);
    let garbage = T::from_i64(77);
    let add = |sum: &mut T, a: T, b: T| *sum = sum.plus(a.times(b));

    let mut expected: Vec<T> = (0..y.len()).map(|at| bias[at / output.max(1) % channels]).collect();
    each_product(g, |to, w, from| add(&mut expected[to], weight[w], x[from]));
    let mut found = vec![garbage; y.len()];
    f(g, &x, &weight, Some(&bias), &mut found);
    assert_eq!(found, expected, "{name}, forward, {g:?}");
    f(g, &x, &weight, None, &mut found);
    let minus = |at: usize| bias[at / output % channels].times(T::from_i64(-1));
    let expected: Vec<T> = expected.iter().enumerate().map(|(at, y)| y.plus(minus(at))).collect();
    assert_eq!(found, expected, "{name}, forward without bias, {g:?}");

    let mut expected = vec![T::ZERO; x.len()];
    each_product(g, |from, w, to| add(&mut expected[to], weight[w], y[from]));
    let mut found = vec![garbage; x.len()];
    dx(g, &y, &weight, &mut found);
    assert_eq!(found, expected, "{name}, gradient of the input, {g:?}");

    let mut expected = vec![T::ZERO; weight.len()];
    each_product(g, |a, to, b| add(&mut expected[to], y[a], x[b]));
    let mut found = vec![garbage; weight.len()];
    dw(g, &y, &x, &mut found);
    assert_eq!(found, expected, "{name}, gradient of the weight, {g:?}");
}

/// A dimension: the sizes of input and window, stride, padding, dilation.
fn dimension() -> impl Strategy<Value = [usize; 5]> {
    (1..4usize, 1..4usize, 1..4usize, 0..4usize, 0..8usize).prop_map(|(kernel, stride, dilation, padding, more)| {
        let reach = dilation * (kernel - 1) + 1;
        [reach.saturating_sub(2 * padding).max(1) + more, kernel, stride, padding, dilation]
    })
}

fn geometry() -> impl Strategy<Value = Geometry> {
    let channels = (1..4usize, 1..7usize, 1..10usize);
    (0..3usize, channels, dimension(), dimension(), dimension(), 1..4usize)
        .prop_map(|(batch, (groups, inner, outer), first, second, third, rank)| {
            let flat = [1, 1, 1, 0, 1];
            let dims = [if rank < 3 { flat } else { first }, if rank < 2 { flat } else { second }, third];
            let each = |of: usize| [0, 1, 2].map(|d| dims[d][of]);
            let [input, kernel, stride, padding, dilation] = [0, 1, 2, 3, 4].map(each);
            let out = |d: usize| (input[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
            let output = [0, 1, 2].map(out);
            Geometry { batch, groups, channels: (inner, outer), input, output, kernel, stride, padding, dilation }
        })
        .prop_filter("too much for a plain loop", |g| g.products() < 50_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_method_gives_what_a_plain_loop_gives(g in geometry()) {
        agrees::<f64>(&g, "chosen", (forward, into_windows, onto_weight));
        agrees::<f64>(&g, "windows", (windows::forward, windows::into_windows, windows::onto_weight));
        if g.batch > 0 && g.planes().0 > 0 && f32::takes_rows() {
            agrees::<f32>(&g, "indirect", (indirect::forward, indirect::into_windows, indirect::onto_weight));
            agrees::<f64>(&g, "indirect", (indirect::forward, indirect::into_windows, indirect::onto_weight));
        }
        if g.batch > 0 {
            agrees::<f64>(&g, "direct", (direct::forward, direct::into_windows, direct::onto_weight));
            agrees::<f32>(&g, "direct", (direct::forward, direct::into_windows, direct::onto_weight));
            agrees::<i64>(&g, "direct", (direct::forward, direct::into_windows, direct::onto_weight));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn channels_side_by_side_give_what_a_plain_loop_gives(g in geometry(), groups in 1..40usize) {
        let g = Geometry { batch: g.batch.max(1), groups, channels: (1, 1), ..g };
        prop_assume!(g.products() < 50_000);
        agrees::<f64>(&g, "depthwise", (depthwise::forward, depthwise::into_windows, depthwise::onto_weight));
        agrees::<f32>(&g, "depthwise", (depthwise::forward, depthwise::into_windows, depthwise::onto_weight));
        agrees::<i64>(&g, "depthwise", (depthwise::forward, depthwise::into_windows, depthwise::onto_weight));
        agrees::<f32>(&g, "chosen", (forward, into_windows, onto_weight));
    }
}

#[test]
fn images_of_one_position_give_what_a_plain_loop_gives() {
    for (batch, inner, outer) in [(1, 1, 1), (2, 5, 3), (4, 48, 70), (9, 33, 17), (20, 7, 64)] {
        let ones = [1; 3];
        let g = Geometry {
            batch,
            groups: 1,
            channels: (inner, outer),
            input: ones,
            output: ones,
            kernel: ones,
            stride: ones,
            padding: [0; 3],
            dilation: ones,
        };
        agrees::<f64>(&g, "points", (points::forward, points::into_windows, points::onto_weight));
        agrees::<f32>(&g, "points", (points::forward, points::into_windows, points::onto_weight));
        agrees::<i64>(&g, "chosen", (forward, into_windows, onto_weight));
    }
}

/// A convolution by windows of three by three.
fn threes() -> impl Strategy<Value = Geometry> {
    (1..4usize, 1..8usize, 1..8usize, 1..13usize, 1..13usize, 0..4usize, 0..4usize).prop_map(
        |(batch, inner, outer, height, width, above, beside)| {
            let input = [1, height.max(3usize.saturating_sub(2 * above)), width.max(3usize.saturating_sub(2 * beside))];
            let padding = [0, above, beside];
            let output = [1, input[1] + 2 * above - 2, input[2] + 2 * beside - 2];
            let (channels, kernel, ones) = ((inner, outer), [1, 3, 3], [1; 3]);
            Geometry { batch, groups: 1, channels, input, output, kernel, stride: ones, padding, dilation: ones }
        },
    )
}

fn in_tiles(g: &Geometry, x: &[f32], weight: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    winograd::convolve(g, x, &winograd::Weights::forward(g, weight), bias, y);
}

/// The gradient is a convolution of its own unless the padding is wider than windows.
fn gradient_in_tiles(g: &Geometry, y: &[f32], weight: &[f32], x: &mut [f32]) {
    match winograd::backward(g) {
        Some(turned) => winograd::convolve(&turned, y, &winograd::Weights::backward(g, weight), None, x),
        None => into_windows(g, y, weight, x),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tiles_give_what_a_plain_loop_gives(g in threes()) {
        // Transforms add and halve, which is exact for small integers.
        agrees::<f32>(&g, "tiles", (in_tiles, gradient_in_tiles, onto_weight));
    }
}

#[test]
fn several_channels_of_many_and_of_large_images_are_summed_right() {
    // Channels that are taken eight, four, two and one at a time; images that are summed together, and one in parts; sizes on both
    // sides of where another method is chosen.
    for (batch, channels, [height, width], stride) in [
        (11, (2, 15), [5, 5], 1),
        (3, (8, 16), [5, 9], 2),
        (1, (1, 7), [66, 70], 1),
        (5, (4, 8), [9, 16], 2),
        (2, (32, 31), [7, 7], 1),
        (2, (33, 32), [7, 6], 1),
        (2, (16, 16), [14, 13], 2),
        (1, (8, 3), [20, 17], 1),
        (1, (3, 2), [21, 16], 1),
        (1, (4, 32), [13, 19], 1),
    ] {
        let size = |input: usize| (input - 1) / stride + 1;
        let g = Geometry {
            batch,
            groups: 2,
            channels,
            input: [1, height, width],
            output: [1, size(height), size(width)],
            kernel: [1, 3, 3],
            stride: [1, stride, stride],
            padding: [0, 1, 1],
            dilation: [1; 3],
        };
        agrees::<f64>(&g, "direct", (direct::forward, direct::into_windows, direct::onto_weight));
        agrees::<f32>(&g, "direct", (direct::forward, direct::into_windows, direct::onto_weight));
        agrees::<f32>(&g, "chosen", (forward, into_windows, onto_weight));
    }
}

#[test]
fn large_images_of_few_channels_are_summed_right_whatever_the_stride() {
    for (kernel, stride, dilation) in [(7, 1, 1), (3, 2, 1), (5, 1, 3), (2, 3, 2), (1, 2, 1)] {
        let size = |input: usize, padding: usize| (input + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
        let (padding, [height, width]) = (dilation * (kernel - 1) / 2, [19, 40]);
        let g = Geometry {
            batch: 2,
            groups: 3,
            channels: (1, 1),
            input: [1, height, width],
            output: [1, size(height, padding), size(width, padding)],
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            padding: [0, padding, padding],
            dilation: [1, dilation, dilation],
        };
        agrees::<f32>(&g, "direct", (direct::forward, direct::into_windows, direct::onto_weight));
        agrees::<f32>(&g, "chosen", (forward, into_windows, onto_weight));
    }
}
