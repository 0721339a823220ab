//! Random kernels: machine code of both widths against the tile interpreter, bit for bit.
//!
//! The interpreter runs the kernel with its functions written out, as targets print them. Kernels keep to what has one right answer in any order: sums are of small integers, products of ones. Every kernel
//! comes from a seed, which a failure prints; `SEED=n` runs that one alone, `KERNELS=n` so many.

use crate::generator;
use crate::generator::{Generated, first_difference};
use crate::harness::run;
use pyrite_codegen::x86::{self, Width};
use pyrite_codegen::{Code, tiles};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn check(seed: u64) {
    let Generated { kernel, buffers, dtypes } = generator::generate(seed);
    let mut expected = buffers.clone();
    let outcome = run(&tiles::compile(&pyrite_math::expand(&kernel)), &kernel, &mut expected);
    for width in [Width::Avx2, Width::Avx512] {
        if !width.is_available() {
            continue;
        }
        let code: Box<dyn Code> = match x86::compile(&kernel, width) {
            Ok(code) => Box::new(code),
            Err(error) => panic!("seed {seed}, {width:?}: {error}\n{kernel}"),
        };
        let mut actual = buffers.clone();
        let got = run(&*code, &kernel, &mut actual);
        assert_eq!(got, outcome, "seed {seed}, {width:?}\n{kernel}");
        if outcome.is_err() {
            continue;
        }
        for (index, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            if let Some(at) = first_difference(actual, expected, dtypes[index]) {
                let size = dtypes[index].size();
                panic!(
                    "seed {seed}, {width:?}: buf{index}[{at}] of {} is {:x?}, not {:x?}\n{kernel}",
                    dtypes[index],
                    &actual[at * size..][..size],
                    &expected[at * size..][..size],
                );
            }
        }
    }
}

#[test]
fn machine_code_computes_what_the_tile_interpreter_computes() {
    match number("SEED") {
        Some(seed) => check(seed),
        None => (0..number("KERNELS").unwrap_or(150)).for_each(check),
    }
}
