//! Operators under a second name, and those that are one formula of others.
//!
//! PyTorch keeps them for users: its dispatcher replaces them before any backend sees them, and so does their rule here.

use pyrite_ir::{Args, Emit, Handle, OpDef, OpError, Tag, Value, args, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

type Rule = Result<Value<Handle>, OpError>;

const SMOOTH: &[&str] = &["f32[3, 4]{0.2..0.8}", "f64[5]<[2]{0.2..0.8}"];
const BOTH: &[&str] = &["f32[3, 4], f32[4]{0.5..2}", "f64[3], 2.5", "i64[3], i64[3]{1..4}"];

/// An operator with the arguments of the one that it stands for.
macro_rules! renamed {
    ($schema:literal, $to:literal, $samples:expr) => {
        OpDef::composite($schema, concat!("Another name of `", $to, "`."), |e, a| e.call($to, a.values))
            .tags(&[Tag::Pointwise])
            .samples($samples)
    };
}

/// The table.
pub const OPS: &[OpDef] = &[
    renamed!("aten::absolute(Tensor self) -> Tensor", "aten.abs.default", SMOOTH),
    renamed!("aten::divide.Tensor(Tensor self, Tensor other) -> Tensor", "aten.div.Tensor", BOTH),
    renamed!(
        "aten::divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        "aten.div.Tensor_mode",
        &["f32[3, 4], f32[4]{0.5..2}, rounding_mode='floor'"]
    ),
    renamed!("aten::fix(Tensor self) -> Tensor", "aten.trunc.default", SMOOTH),
    renamed!("aten::multiply.Tensor(Tensor self, Tensor other) -> Tensor", "aten.mul.Tensor", BOTH),
    renamed!("aten::negative(Tensor self) -> Tensor", "aten.neg.default", SMOOTH),
    renamed!("aten::special_exp2(Tensor self) -> Tensor", "aten.exp2.default", SMOOTH),
    renamed!("aten::special_expm1(Tensor self) -> Tensor", "aten.expm1.default", SMOOTH),
    renamed!("aten::special_gammainc(Tensor self, Tensor other) -> Tensor", "aten.igamma.default", GAMMA),
    renamed!("aten::special_gammaincc(Tensor self, Tensor other) -> Tensor", "aten.igammac.default", GAMMA),
    renamed!("aten::special_gammaln(Tensor self) -> Tensor", "aten.lgamma.default", SMOOTH),
    renamed!("aten::special_i0(Tensor self) -> Tensor", "aten.i0.default", SMOOTH),
    renamed!("aten::special_logit(Tensor self, float? eps=None) -> Tensor", "aten.logit.default", SMOOTH),
    renamed!("aten::special_psi(Tensor self) -> Tensor", "aten.digamma.default", SMOOTH),
    renamed!("aten::special_sinc(Tensor self) -> Tensor", "aten.sinc.default", SMOOTH),
    renamed!(
        "aten::subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "aten.sub.Tensor",
        &["f32[3, 4], f32[4]", "f64[3], 2.5, alpha=2"]
    ),
    renamed!("aten::true_divide.Tensor(Tensor self, Tensor other) -> Tensor", "aten.div.Tensor", BOTH),
    OpDef::composite(
        "aten::isfinite(Tensor self) -> Tensor",
        "Whether elements are neither infinite nor NaN.",
        isfinite,
    )
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "i64[3]", "bf16[2, 3]"]),
    OpDef::composite(
        "aten::prelu(Tensor self, Tensor weight) -> Tensor",
        "The element where it is above zero, else the element times the weight of its channel.",
        prelu,
    )
    .samples(&["f32[2, 3, 4], f32[3]", "f64[5], f64[1]"]),
    OpDef::composite(
        "aten::special_ndtr(Tensor self) -> Tensor",
        "The share of a normal distribution that lies below.",
        |e, a| {
            let scaled = e.one("aten.mul.Scalar", args![*a.tensor(0)?, std::f64::consts::FRAC_1_SQRT_2])?;
            let spread = e.one("aten.erf.default", args![scaled])?;
            let above = e.one("aten.add.Scalar", args![spread, 1i64])?;
            e.call("aten.mul.Scalar", args![above, 0.5])
        },
    )
    .tags(&[Tag::Pointwise])
    .samples(SMOOTH),
    OpDef::composite("aten::square(Tensor self) -> Tensor", "The element times itself.", |e, a| {
        e.call("aten.pow.Tensor_Scalar", args![*a.tensor(0)?, 2i64])
    })
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "i64[3]", "c64[2]"]),
];

const GAMMA: &[&str] = &["f32[3, 4]{0.5..2}, f32[4]{0.5..2}"];

fn isfinite(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let x = *a.tensor(0)?;
    let dtype = e.meta(x).dtype;
    if !dtype.is_inexact() {
        return e.call("aten.ones_like.default", args![x, DType::Bool]);
    }
    let size = e.one("aten.abs.default", args![x])?;
    // A NaN is below nothing.
    e.call("aten.lt.Scalar", args![size, f64::INFINITY])
}

fn prelu(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let (x, weight) = (*a.tensor(0)?, *a.tensor(1)?);
    let (of_x, of_weight) = (e.meta(x).dtype, e.meta(weight).dtype);
    if of_x != of_weight {
        invalid!("prelu needs a weight of the input's type, {of_x}, not of {of_weight}");
    }
    let rank = e.shape(x).len();
    let mut shape = vec![SymInt::Int(1); rank];
    if rank > 1 {
        shape[1] = SymInt::Int(-1);
    }
    let weight = e.one("aten.reshape.default", args![weight, shape.as_slice()])?;
    e.call("aten._prelu_kernel.default", args![x, weight])
}
