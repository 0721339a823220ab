//! The functions of machine code against double precision: how far off they are, in units of the last place.

use crate::harness::{access, bytes, load, numbers, phase, run, store};
use pyrite_codegen::x86::{self, Width};
use pyrite_codegen::{Code, tiles};
use pyrite_loops::{Binary, Kernel, Lanes, Unary};
use pyrite_tensor::DType;

fn kernel(op: Unary, dtype: DType, len: usize) -> Kernel {
    let mut kernel = Kernel { name: format!("{op:?}"), lanes: Lanes::Rows, ..Kernel::default() };
    let axis = kernel.add_axis(len.into());
    kernel.rows = vec![axis];
    let (x, y) = (access(&mut kernel, 0, dtype, 0, &[1]), access(&mut kernel, 1, dtype, 0, &[1]));
    let mut only = phase(&[]);
    let value = load(&kernel, &mut only, x);
    let value = only.code.unary(op, value);
    store(&mut only, y, value);
    kernel.phases = vec![only];
    kernel
}

/// Numbers of all sizes and both signs, those near the places where functions change, and the special ones.
fn inputs() -> Vec<f32> {
    let mut inputs = vec![
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        f32::MAX,
        f32::MIN,
        1.0,
        -1.0,
        f32::from_bits(1),
        -f32::from_bits(1),
        f32::from_bits(0x007f_ffff),
    ];
    inputs.extend((0..=u32::MAX >> 14).map(|i| f32::from_bits(i << 14 | (i.wrapping_mul(2_654_435_761) >> 18))));
    let mut state = 1u32;
    for scale in [1e-3f32, 0.5, 1.0, 2.0, 4.0, 10.0, 90.0, 150.0, 1e4] {
        for _ in 0..30_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            inputs.push((state as f32 / u32::MAX as f32 * 2.0 - 1.0) * scale);
        }
    }
    inputs
}

/// The distance between a result and the exact one in units of the last place of single precision.
fn distance(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got.is_nan() || rounded.is_nan() {
        return if got.is_nan() == rounded.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == rounded {
        return if got == 0.0 && got.is_sign_negative() != rounded.is_sign_negative() { f64::INFINITY } else { 0.0 };
    }
    if got.is_infinite() || rounded.is_infinite() {
        let limit = f64::from(f32::MAX);
        return if exact.abs() > limit * (1.0 - 1e-7) && got.abs() >= f32::MAX { 1.0 } else { f64::INFINITY };
    }
    let exponent = exact.abs().log2().floor().max(-126.0);
    (f64::from(got) - exact).abs() / (exponent - 23.0).exp2()
}

fn worst(op: Unary, width: Width, inputs: &[f32], exact: &[f64]) -> (f64, f32, f32) {
    let kernel = kernel(op, DType::F32, inputs.len());
    let mut buffers = [bytes(inputs), bytes(&vec![0f32; inputs.len()])];
    let code = x86::compile(&kernel, width).unwrap();
    run(&code, &kernel, &mut buffers).unwrap();
    let mut worst = (0.0, 0.0, 0.0);
    for ((got, exact), x) in numbers::<f32>(&buffers[1]).into_iter().zip(exact).zip(inputs) {
        let d = distance(got, *exact);
        if d > worst.0 {
            worst = (d, *x, got);
        }
    }
    worst
}

fn exact(op: Unary, inputs: &[f32]) -> Vec<f64> {
    let kernel = kernel(op, DType::F64, inputs.len());
    let wide: Vec<f64> = inputs.iter().map(|x| f64::from(*x)).collect();
    let mut buffers = [bytes(&wide), bytes(&vec![0f64; inputs.len()])];
    let code: Box<dyn Code> = Box::new(tiles::compile(&kernel));
    run(&*code, &kernel, &mut buffers).unwrap();
    numbers(&buffers[1])
}

#[test]
fn functions_of_single_precision_are_near_enough() {
    let bounds = [
        (Unary::Sqrt, 0.5),
        (Unary::Rsqrt, 1.5),
        (Unary::Exp, 2.0),
        (Unary::Exp2, 2.0),
        (Unary::Expm1, 2.0),
        (Unary::Log, 2.0),
        (Unary::Log2, 2.0),
        (Unary::Log10, 2.0),
        (Unary::Log1p, 2.0),
        (Unary::Sin, 2.0),
        (Unary::Cos, 2.0),
        (Unary::Tan, 4.0),
        (Unary::Asin, 2.0),
        (Unary::Acos, 2.0),
        (Unary::Atan, 2.0),
        (Unary::Sinh, 2.0),
        (Unary::Cosh, 2.0),
        (Unary::Tanh, 2.0),
        (Unary::Asinh, 2.0),
        (Unary::Acosh, 2.0),
        (Unary::Atanh, 2.0),
        (Unary::Erf, 4.0),
        (Unary::Erfc, 4.0),
    ];
    let inputs = inputs();
    // What is exact is computed once for all widths, and functions are dealt out to threads.
    let check = |(op, bound): (Unary, f64)| {
        let (exact, mut beyond) = (exact(op, &inputs), Vec::new());
        for width in [Width::Avx2, Width::Avx512].into_iter().filter(|width| width.is_available()) {
            let (off, x, got) = worst(op, width, &inputs, &exact);
            println!("{width:?} {op:?}: {off:.3} at {x:e}, which gives {got:e}");
            if off > bound {
                beyond.push(format!("{width:?} {op:?}: {off:.3} at {x:e}, which gives {got:e}"));
            }
        }
        beyond
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let beyond: Vec<String> = std::thread::scope(|scope| {
        let deal = |first: usize| bounds.into_iter().skip(first).step_by(threads).flat_map(check).collect::<Vec<_>>();
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || deal(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(beyond.is_empty(), "{beyond:#?}");
}

#[test]
fn functions_of_double_precision_are_near_enough() {
    let mut inputs: Vec<f64> = inputs().into_iter().step_by(5).map(f64::from).collect();
    inputs.extend([f64::MAX, f64::MIN, f64::MIN_POSITIVE, f64::from_bits(1), 5e-324, 709.7, 709.8, -745.1, -745.2]);
    let mut state = 1u64;
    for scale in [1e-300, 1e-3, 0.5, 1.0, 2.0, 30.0, 750.0, 9e4, 1e9, 1e300] {
        for _ in 0..4_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            inputs.push((state as f64 / u64::MAX as f64 * 2.0 - 1.0) * scale);
        }
    }
    // The reference is itself off by up to one unit.
    let most = |op: Unary| match op {
        Unary::Sinh | Unary::Cosh | Unary::Asinh | Unary::Acosh | Unary::Atanh | Unary::Erfc => 6,
        _ => 3,
    };
    let functions = Unary::ALL.iter().filter(|op| !matches!(op, Unary::Not));
    let order = |x: f64| if x < 0.0 { -((x.to_bits() << 1 >> 1) as i64) } else { x.to_bits() as i64 };
    let mut beyond = Vec::new();
    for width in [Width::Avx2, Width::Avx512] {
        if !width.is_available() {
            continue;
        }
        for &op in functions.clone() {
            let kernel = kernel(op, DType::F64, inputs.len());
            let mut buffers = [bytes(&inputs), bytes(&vec![0f64; inputs.len()])];
            let mut expected = buffers.clone();
            run(&x86::compile(&kernel, width).unwrap(), &kernel, &mut buffers).unwrap();
            run(&tiles::compile(&kernel), &kernel, &mut expected).unwrap();
            let pairs = numbers::<f64>(&buffers[1]).into_iter().zip(numbers::<f64>(&expected[1]));
            let mut worst = (0, 0.0);
            for ((got, expected), x) in pairs.zip(&inputs) {
                if got.is_nan() && expected.is_nan() {
                    continue;
                }
                assert_eq!(got.is_nan(), expected.is_nan(), "{width:?} {op:?} of {x:e} is {got:e}, not {expected:e}");
                assert_eq!(got.is_sign_negative(), expected.is_sign_negative(), "{width:?} {op:?} of {x:e} is {got:e}");
                let off = order(got).abs_diff(order(expected));
                if off > worst.0 {
                    worst = (off, *x);
                }
            }
            println!("{width:?} {op:?}: {} units at {:e}", worst.0, worst.1);
            if worst.0 > most(op) {
                beyond.push(format!("{width:?} {op:?}: {} units at {:e}", worst.0, worst.1));
            }
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// `out = x ^ y`
fn power(dtype: DType, len: usize) -> Kernel {
    let mut kernel = Kernel { name: "pow".to_owned(), lanes: Lanes::Rows, ..Kernel::default() };
    let axis = kernel.add_axis(len.into());
    kernel.rows = vec![axis];
    let mut place = |buffer| access(&mut kernel, buffer, dtype, 0, &[1]);
    let (x, y, out) = (place(0), place(1), place(2));
    let mut only = phase(&[]);
    let (x, y) = (load(&kernel, &mut only, x), load(&kernel, &mut only, y));
    let value = only.code.binary(Binary::Pow, x, y);
    store(&mut only, out, value);
    kernel.phases = vec![only];
    kernel
}

/// Bases and exponents: every pair of special ones, and pairs whose powers are of all sizes.
fn pairs() -> Vec<(f64, f64)> {
    let special = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        7.0,
        0.1,
        1e-5,
        30.0,
        1e5,
        1e30,
        9_007_199_254_740_992.0,
        1e300,
        1e-310,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::INFINITY,
        f64::NAN,
    ];
    let special: Vec<f64> = special.into_iter().flat_map(|x| [x, -x]).collect();
    let mut pairs: Vec<(f64, f64)> = special.iter().flat_map(|x| special.iter().map(move |y| (*x, *y))).collect();
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for _ in 0..30_000 {
        // The power is e to something within what double precision holds, and beyond.
        let base = ((random() - 0.5) * if random() < 0.5 { 1400.0 } else { 2.0 }).exp();
        pairs.push((base, (random() - 0.5) * 1500.0 / base.ln()));
        pairs.push((base, (random() - 0.5) * 10.0));
        let whole = ((random() - 0.5) * 60.0).round();
        pairs.push((-base.powf(0.1), whole));
        pairs.push((1.0 + (random() - 0.5) * 1e-3, (random() - 0.5) * 1e5));
    }
    pairs
}

#[test]
fn powers_are_near_enough_and_special_where_they_are() {
    let pairs = pairs();
    let order = |x: f64| if x < 0.0 { -((x.to_bits() << 1 >> 1) as i64) } else { x.to_bits() as i64 };
    for width in [Width::Avx2, Width::Avx512].into_iter().filter(|width| width.is_available()) {
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let kernel = power(DType::F64, pairs.len());
        let mut buffers = [bytes(&x), bytes(&y), bytes(&vec![0f64; pairs.len()])];
        run(&x86::compile(&kernel, width).unwrap(), &kernel, &mut buffers).unwrap();
        let mut worst = 0;
        for (got, (x, y)) in numbers::<f64>(&buffers[2]).into_iter().zip(&pairs) {
            let exact = x.powf(*y);
            let off = match (got.is_nan(), exact.is_nan()) {
                (true, true) => 0,
                (false, false) if got.is_sign_negative() == exact.is_sign_negative() => {
                    order(got).abs_diff(order(exact))
                }
                _ => u64::MAX,
            };
            assert!(off <= 4, "{width:?}: {x:e} to the {y:e} is {got:e}, not {exact:e}");
            worst = worst.max(off);
        }
        println!("{width:?}: {worst} units");
        let (x, y): (Vec<f32>, Vec<f32>) = pairs.iter().map(|(x, y)| (*x as f32, *y as f32)).unzip();
        let kernel = power(DType::F32, pairs.len());
        let mut buffers = [bytes(&x), bytes(&y), bytes(&vec![0f32; pairs.len()])];
        run(&x86::compile(&kernel, width).unwrap(), &kernel, &mut buffers).unwrap();
        for (got, (x, y)) in numbers::<f32>(&buffers[2]).into_iter().zip(x.iter().zip(&y)) {
            let off = distance(got, f64::from(*x).powf(f64::from(*y)));
            assert!(off <= 0.51, "{width:?}: {x:e} to the {y:e} is {got:e}, {off} units off");
        }
    }
}
