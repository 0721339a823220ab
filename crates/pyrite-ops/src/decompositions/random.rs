//! Random operators by the fast stream: other numbers than PyTorch draws, of the same distributions.
//!
//! A rule draws the number of a stream, `pyrite::seed`, for each tensor of uniform numbers it needs, and computes the
//! distribution from those. All but the seed depends on arguments alone, so kernels fuse it and a backward half computes
//! it again. Rules refuse what they cannot draw before they call anything.

use std::f64::consts::{PI, TAU};

use pyrite_ir::{Args, Emit, Handle, Meta, OpError, Value};
use pyrite_tensor::DType;

use super::{Operand, Rule, Sheet, Term};

/// The smallest exponential number: that of the largest uniform number below one.
const LEAST: f64 = 1.0 / 33_554_432.0;
/// Whole numbers below this are exact in double precision.
const EXACT: i64 = 1 << 53;

/// What is to be drawn.
struct Draw<'s, 'e> {
    sheet: &'s Sheet<'e>,
    like: &'s Meta,
}

impl<'s> Draw<'s, '_> {
    /// Uniform numbers between 0 and 1 in a type, from a stream of their own.
    fn uniform(&self, dtype: DType) -> Term<'s> {
        let seed = self.sheet.call_anew("pyrite.seed.default", &[]);
        seed.of("pyrite.uniform.default", &[self.like.shape[..].into(), dtype.into()])
    }

    /// The same in the type to compute in.
    fn wide(&self) -> Term<'s> {
        self.uniform(self.like.dtype.to_compute())
    }

    /// Normal numbers, by the transform of Box and Muller.
    fn normal(&self) -> Term<'s> {
        let (radius, angle) = (self.wide(), self.wide());
        let radius = -radius.of("aten.neg.default", &[]).of("aten.log1p.default", &[]) * 2.0;
        radius.of("aten.sqrt.default", &[]) * (angle * TAU).of("aten.cos.default", &[])
    }

    /// Exponential numbers.
    fn exponential(&self) -> Term<'s> {
        (-self.wide().of("aten.neg.default", &[]).of("aten.log1p.default", &[])).clamp(LEAST, Value::None)
    }

    /// Whole numbers from `low` up to `high`.
    fn integer(&self, low: i64, high: i64) -> Term<'s> {
        let range = (high - low) as f64;
        let from_zero = (self.uniform(DType::F64) * range).of("aten.floor.default", &[]);
        from_zero.to(DType::I64).of("aten.add.Tensor", &[low.into()])
    }
}

/// The only tensor that is to be drawn, of floating-point numbers.
fn floats(promised: &Value<Meta>) -> Result<&Meta, OpError> {
    let like = tensor(promised)?;
    if like.dtype.is_float() { Ok(like) } else { Err(OpError::unsupported(format!("a stream of {}", like.dtype))) }
}

fn tensor(promised: &Value<Meta>) -> Result<&Meta, OpError> {
    promised.as_tensor().ok_or_else(|| OpError::fault("one tensor is drawn"))
}

/// Rules for floating-point numbers: the arguments, and what draws.
macro_rules! streams {
    ($($name:ident |$a:ident, $draw:ident| $formula:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        pub fn $name(e: &mut dyn Emit, $a: &Args<'_, Handle>, promised: &Value<Meta>) -> Rule {
            let like = floats(promised)?;
            let sheet = Sheet::new(e);
            let $draw = Draw { sheet: &sheet, like };
            let term = $formula;
            sheet.result_of(term)
        }
    )*};
}

streams! {
    rand |_a, draw| draw.uniform(draw.like.dtype);
    randn |_a, draw| draw.normal();
    uniform |a, draw| draw.wide() * (a.float(2)? - a.float(1)?) + a.float(1)?;
    exponential |a, draw| draw.exponential() * (1.0 / a.float(1)?);
    cauchy |a, draw| {
        let turned = ((draw.wide() - 0.5) * PI).of("aten.tan.default", &[]);
        turned * a.float(2)? + a.float(1)?
    };
    log_normal |a, draw| (draw.normal() * a.float(2)? + a.float(1)?).of("aten.exp.default", &[]);
    normal |a, draw| draw.normal() * a.float(2)? + a.float(1)?;
    normal_all |a, draw| draw.normal() * a.float(1)? + a.float(0)?;
    normal_each |a, draw| draw.normal() * draw.sheet.wide(a, 1) + draw.sheet.wide(a, 0);
}

/// `geometric`: how often an exponential number is past one of the same chance.
pub fn geometric(e: &mut dyn Emit, a: &Args<'_, Handle>, promised: &Value<Meta>) -> Rule {
    let (p, like) = (a.float(1)?, Meta { dtype: DType::F64, ..tensor(promised)?.clone() });
    let sheet = Sheet::new(e);
    let trials = Draw { sheet: &sheet, like: &like }.exponential() * (-1.0 / (1.0 - p).ln());
    sheet.result_of(trials.of("aten.ceil.default", &[]).clamp(1.0, Value::None))
}

/// `bernoulli`: bool with the probability that each element gives.
pub fn bernoulli(e: &mut dyn Emit, a: &Args<'_, Handle>, promised: &Value<Meta>) -> Rule {
    let like = floats(promised)?;
    let sheet = Sheet::new(e);
    let p = sheet.wide(a, 0);
    let drawn = Draw { sheet: &sheet, like }.wide().of("aten.lt.Tensor", &[p.value()]);
    sheet.result_of(drawn)
}

/// `bernoulli` of one probability.
pub fn bernoulli_p(e: &mut dyn Emit, a: &Args<'_, Handle>, promised: &Value<Meta>) -> Rule {
    let (p, like) = (a.float(1)?, tensor(promised)?);
    let sheet = Sheet::new(e);
    let dtype = if like.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let drawn = Draw { sheet: &sheet, like }.uniform(dtype).of("aten.lt.Scalar", &[p.into()]);
    sheet.result_of(drawn)
}

/// Dropout: `bernoulli` of one probability in its decomposition draws from the stream.
pub fn native_dropout(e: &mut dyn Emit, a: &Args<'_, Handle>, _: &Value<Meta>) -> Rule {
    super::copy::native_dropout(e, a)
}

fn integers(e: &mut dyn Emit, promised: &Value<Meta>, (low, high): (i64, i64)) -> Rule {
    let like = tensor(promised)?;
    // An empty range is for the operator to refuse.
    if high.checked_sub(low).is_none_or(|range| !(1..EXACT).contains(&range)) || like.dtype.is_complex() {
        return Err(OpError::unsupported(format!("whole numbers from {low} up to {high} of a stream")));
    }
    let sheet = Sheet::new(e);
    sheet.result_of(Draw { sheet: &sheet, like }.integer(low, high))
}

/// Whole numbers between the limits at two positions, or from zero.
macro_rules! limits {
    ($($name:ident |$a:ident| $limits:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        pub fn $name(e: &mut dyn Emit, $a: &Args<'_, Handle>, promised: &Value<Meta>) -> Rule {
            integers(e, promised, $limits)
        }
    )*};
}

limits! {
    randint |a| (0, a.int(0)?);
    randint_low |a| (a.int(0)?, a.int(1)?);
    randint_like |a| (0, a.int(1)?);
    randint_like_low |a| (a.int(1)?, a.int(2)?);
}
