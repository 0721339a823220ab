//! Special functions: gamma, Bessel, zeta and normal functions, orthogonal polynomials.
//!
//! All are pointwise, with integers becoming floats. They are computed in `f64` for every type; the mathematics is in
//! the parts, this file is their table.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tag, Value, invalid};
use pyrite_tensor::{DType, Tensor};

use crate::decompositions::pointwise as by;
use crate::derivatives::special as d;
use crate::kernels::Pointwise;
use crate::rules::{to_float, to_same_float};
use pyrite_kernels::special::gamma::{Precision, Tail};
use pyrite_kernels::special::polynomial::{Chebyshev, Width, chebyshev, shifted_chebyshev};
use pyrite_kernels::special::{bessel, gamma, normal, polynomial};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel("aten::lgamma(Tensor self) -> Tensor", "`ln |Γ(x)|`.", to_float, |call| {
        map(call, Floats::All, libm::lgamma)
    })
    .derivative(d::lgamma)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "bf16[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel("aten::digamma(Tensor self) -> Tensor", "The derivative of `ln Γ(x)`.", to_float, |call| {
        map(call, Floats::All, gamma::digamma)
    })
    .derivative(d::digamma)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "bf16[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::polygamma(int n, Tensor self) -> Tensor",
        "The n-th derivative of `digamma`.",
        polygamma_infer,
        polygamma,
    )
    .derivative(d::polygamma)
    .tags(&[Tag::Pointwise])
    .samples(&["0, f32[4]", "1, f64[5]{-3..9}", "3, bf16[2, 3]", "2, i64[4]"]),
    OpDef::kernel(
        "aten::mvlgamma(Tensor self, int p) -> Tensor",
        "The logarithm of the multivariate gamma function.",
        mvlgamma_infer,
        mvlgamma,
    )
    .derivative(d::mvlgamma)
    .tags(&[Tag::Pointwise])
    .decompose(by::mvlgamma)
    .samples(&["f32[3, 4]{3..9}, 3", "f64[5]{3..9}, 1", "i64[4]{3..9}, 2"]),
    OpDef::kernel(
        "aten::i0(Tensor self) -> Tensor",
        "The modified Bessel function of the first kind of order 0.",
        to_float,
        |call| map(call, Floats::All, bessel::i0),
    )
    .derivative(d::i0)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "bf16[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel("aten::special_i0e(Tensor self) -> Tensor", "`i0(x)·exp(-|x|)`.", to_float, |call| {
        map(call, Floats::All, bessel::i0e)
    })
    .derivative(d::i0e)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "bf16[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_i1(Tensor self) -> Tensor",
        "The modified Bessel function of the first kind of order 1.",
        to_float,
        |call| map(call, Floats::All, bessel::i1),
    )
    .derivative(d::i1)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "bf16[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel("aten::special_i1e(Tensor self) -> Tensor", "`i1(x)·exp(-|x|)`.", to_float, |call| {
        map(call, Floats::All, bessel::i1e)
    })
    .derivative(d::i1e)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "bf16[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::igamma(Tensor self, Tensor other) -> Tensor",
        "The regularized lower incomplete gamma function.",
        to_same_float,
        |call| map2(call, Floats::All, |a, x, _| gamma::incomplete_gamma(a, x, Tail::Lower)),
    )
    .derivative(d::igamma)
    .tags(&[Tag::Pointwise])
    .samples(&[
        "f32[3, 4]{0..9}, f32[4]{0..9}",
        "f64[40]{0..300}, f64[40]{0..300}",
        "bf16[3]{0..5}, bf16[3]{0..5}",
        "i64[4]{1..9}, f64[4]{0.5..9}",
    ]),
    OpDef::kernel(
        "aten::igammac(Tensor self, Tensor other) -> Tensor",
        "The regularized upper incomplete gamma function.",
        to_same_float,
        |call| map2(call, Floats::All, |a, x, _| gamma::incomplete_gamma(a, x, Tail::Upper)),
    )
    .derivative(d::igammac)
    .tags(&[Tag::Pointwise])
    .samples(&[
        "f32[3, 4]{0..9}, f32[4]{0..9}",
        "f64[40]{0..300}, f64[40]{0..300}",
        "bf16[3]{0..5}, bf16[3]{0..5}",
        "i64[4]{1..9}, f64[4]{0.5..9}",
    ]),
    OpDef::kernel(
        "aten::special_zeta(Tensor self, Tensor other) -> Tensor",
        "The Hurwitz zeta function.",
        to_float,
        |call| map2(call, Floats::Wide, |x, q, _| gamma::zeta(x, q)),
    )
    .derivative(d::zeta)
    .tags(&[Tag::Pointwise])
    .samples(&[
        "f32[3, 4]{1..9}, f32[4]{0..9}",
        "f64[5]{1..9}, f64[5]",
        "i64[3]{2..5}, i64[3]{1..5}",
        "i64[3]{2..5}, f64[3]{1..5}",
    ]),
    OpDef::kernel(
        "aten::special_bessel_j0(Tensor self) -> Tensor",
        "The Bessel function of the first kind of order 0.",
        to_float,
        |call| map(call, Floats::Wide, bessel::j0),
    )
    .derivative(d::bessel_j0)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_bessel_j1(Tensor self) -> Tensor",
        "The Bessel function of the first kind of order 1.",
        to_float,
        |call| map(call, Floats::Wide, bessel::j1),
    )
    .derivative(d::bessel_j1)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_bessel_y0(Tensor self) -> Tensor",
        "The Bessel function of the second kind of order 0.",
        to_float,
        |call| map(call, Floats::Wide, bessel::y0),
    )
    .derivative(d::bessel_y0)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_bessel_y1(Tensor self) -> Tensor",
        "The Bessel function of the second kind of order 1.",
        to_float,
        |call| map(call, Floats::Wide, bessel::y1),
    )
    .derivative(d::bessel_y1)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_modified_bessel_i0(Tensor self) -> Tensor",
        "The modified Bessel function of the first kind of order 0.",
        to_float,
        |call| map(call, Floats::Wide, bessel::i0),
    )
    .derivative(d::i0)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_modified_bessel_i1(Tensor self) -> Tensor",
        "The modified Bessel function of the first kind of order 1.",
        to_float,
        |call| map(call, Floats::Wide, bessel::i1),
    )
    .derivative(d::i1)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_modified_bessel_k0(Tensor self) -> Tensor",
        "The modified Bessel function of the second kind of order 0.",
        to_float,
        |call| map(call, Floats::Wide, bessel::k0),
    )
    .derivative(d::bessel_k0)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_modified_bessel_k1(Tensor self) -> Tensor",
        "The modified Bessel function of the second kind of order 1.",
        to_float,
        |call| map(call, Floats::Wide, bessel::k1),
    )
    .derivative(d::bessel_k1)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel("aten::special_entr(Tensor self) -> Tensor", "`-x·ln x`.", to_float, |call| {
        map(call, Floats::All, normal::entr)
    })
    .derivative(d::entr)
    .tags(&[Tag::Pointwise])
    .decompose(by::entr)
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "bf16[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel("aten::special_erfcx(Tensor self) -> Tensor", "`exp(x²)·erfc(x)`.", to_float, |call| {
        map(call, Floats::Wide, normal::erfcx)
    })
    .derivative(d::erfcx)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_log_ndtr(Tensor self) -> Tensor",
        "The logarithm of the normal distribution function.",
        to_float,
        |call| map(call, Floats::Wide, normal::log_ndtr),
    )
    .derivative(d::log_ndtr)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_ndtri(Tensor self) -> Tensor",
        "The inverse of the normal distribution function.",
        to_float,
        |call| map(call, Floats::Wide, normal::ndtri),
    )
    .derivative(d::ndtri)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor",
        "`modified_bessel_k0(x)·exp(x)`.",
        to_float,
        |call| map(call, Floats::Wide, bessel::k0e),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor",
        "`modified_bessel_k1(x)·exp(x)`.",
        to_float,
        |call| map(call, Floats::Wide, bessel::k1e),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_spherical_bessel_j0(Tensor x) -> Tensor",
        "The spherical Bessel function of order 0, `sin(x)/x`.",
        to_float,
        |call| map(call, Floats::Wide, bessel::spherical_j0),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel("aten::special_airy_ai(Tensor x) -> Tensor", "The Airy function Ai.", to_float, |call| {
        map(call, Floats::Wide, bessel::airy_ai)
    })
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]{-30..30}", "i64[4]", "f32[2, 3]<[1, 2]", "f32[0, 2]"]),
    OpDef::kernel(
        "aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the first kind of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| chebyshev(Chebyshev::T, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the second kind of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| chebyshev(Chebyshev::U, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the third kind of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| chebyshev(Chebyshev::V, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the fourth kind of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| chebyshev(Chebyshev::W, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the first kind of degree `n` on the interval from 0 to 1.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| shifted_chebyshev(Chebyshev::T, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the second kind of degree `n` on the interval from 0 to 1.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| shifted_chebyshev(Chebyshev::U, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the third kind of degree `n` on the interval from 0 to 1.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| shifted_chebyshev(Chebyshev::V, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "The Chebyshev polynomial of the fourth kind of degree `n` on the interval from 0 to 1.",
        to_float,
        |call| map2(call, Floats::Wide, |x, n, width| shifted_chebyshev(Chebyshev::W, x, n, width)),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
        "The physicists' Hermite polynomial of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, polynomial::hermite_h),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
        "The probabilists' Hermite polynomial of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, polynomial::hermite_he),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
        "The Laguerre polynomial of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, polynomial::laguerre),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::kernel(
        "aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
        "The Legendre polynomial of degree `n`.",
        to_float,
        |call| map2(call, Floats::Wide, polynomial::legendre),
    )
    .no_derivative("PyTorch has none")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], i64[4]{0..15}", "f64[40]{-3..3}, f64[40]{0..30}", "i64[3], i64[3]{-2..5}"]),
    OpDef::written("aten::lgamma_(Tensor(a!) self) -> Tensor(a!)", "`lgamma` in place.", "aten.lgamma.default")
        .samples(&["f32[3]", "bf16[2, 2]"]),
    OpDef::written("aten::digamma_(Tensor(a!) self) -> Tensor(a!)", "`digamma` in place.", "aten.digamma.default")
        .samples(&["f32[3]", "bf16[2, 2]"]),
    OpDef::written("aten::i0_(Tensor(a!) self) -> Tensor(a!)", "`i0` in place.", "aten.i0.default")
        .samples(&["f32[3]", "bf16[2, 2]"]),
    OpDef::written(
        "aten::igamma_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "`igamma` in place.",
        "aten.igamma.default",
    )
    .samples(&["f32[3]{0..9}, f32[3]{0..9}"]),
    OpDef::written(
        "aten::igammac_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "`igammac` in place.",
        "aten.igammac.default",
    )
    .samples(&["f32[3]{0..9}, f32[3]{0..9}"]),
    OpDef::written(
        "aten::mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)",
        "`mvlgamma` in place.",
        "aten.mvlgamma.default",
    )
    .samples(&["f32[3]{3..9}, 2"]),
];

/// The float types that a function is defined for.
#[derive(Clone, Copy, PartialEq)]
enum Floats {
    /// All.
    All,
    /// Single and double precision.
    Wide,
}

/// An error unless the result's type is one that the function is defined for.
fn check_type(call: &Call<'_>, floats: Floats) -> Result<DType, OpError> {
    let dtype = call.out_meta(0)?.dtype;
    let half = matches!(dtype, DType::F16 | DType::BF16);
    if dtype.is_complex() || (half && floats == Floats::Wide) {
        invalid!("{} is not defined for {dtype}", call.args.schema.name);
    }
    Ok(dtype)
}

/// Applies a function to every element of the first argument.
fn map(call: &Call<'_>, floats: Floats, f: fn(f64) -> f64) -> Result<Value<Tensor>, OpError> {
    check_type(call, floats)?;
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f64(|[x]| f(x)).finish()
}

/// Applies a function to every pair of elements of the first two arguments.
fn map2(call: &Call<'_>, floats: Floats, f: fn(f64, f64, Width) -> f64) -> Result<Value<Tensor>, OpError> {
    let width = if check_type(call, floats)? == DType::F64 { Width::DOUBLE } else { Width::SINGLE };
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?.f64(|[x, y]| f(x, y, width)).finish()
}

fn polygamma_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    if args.int(0)? < 0 {
        invalid!("polygamma of the negative order {}", args.int(0)?);
    }
    to_float(args)
}

fn polygamma(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let double = check_type(call, Floats::All)? == DType::F64;
    let precision = if double { Precision::Double } else { Precision::Single };
    let order = call.args.int(0)?;
    Pointwise::as_result(call, [call.args.tensor(1)?])?.f64(|[x]| gamma::polygamma(order, x, precision)).finish()
}

/// The result lies in order whatever the argument's layout: it is a sum over the dimensions of the function.
fn mvlgamma_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    if args.int(1)? < 1 {
        invalid!("mvlgamma of dimension {}, expected at least 1", args.int(1)?);
    }
    let meta = args.tensor(0)?;
    Ok(meta.fresh(&meta.shape, meta.dtype.to_inexact()).into())
}

fn mvlgamma(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    check_type(call, Floats::All)?;
    let dimension = call.args.int(1)?;
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f64(|[x]| gamma::mvlgamma(x, dimension)).finish()
}

#[cfg(test)]
mod tests {
    use super::{bessel, gamma, normal};

    #[test]
    fn every_function_answers_for_nan_and_infinity() {
        let functions: [fn(f64) -> f64; 19] = [
            bessel::i0,
            bessel::i0e,
            bessel::i1,
            bessel::i1e,
            bessel::j0,
            bessel::j1,
            bessel::y0,
            bessel::y1,
            bessel::k0,
            bessel::k1,
            bessel::k0e,
            bessel::k1e,
            bessel::spherical_j0,
            bessel::airy_ai,
            gamma::digamma,
            normal::entr,
            normal::erfcx,
            normal::log_ndtr,
            normal::ndtri,
        ];
        for (index, function) in functions.iter().enumerate() {
            assert!(function(f64::NAN).is_nan(), "function {index} of NaN");
            for x in [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 0.0, -0.0] {
                function(x);
            }
        }
    }
}
