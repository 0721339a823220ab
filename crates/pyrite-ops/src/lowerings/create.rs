//! Tensors from nothing.

use pyrite_ir::lower::{Lowering, Place};
use pyrite_ir::{Meta, OpError};
use pyrite_loops::{Binary, Inst, Type};
use pyrite_tensor::DType;
use pyrite_tensor::random::stream::uniform_bits;

type Lowered = Result<(), OpError>;

/// One number everywhere: the argument of a position.
fn filled(l: &mut Lowering<'_>, index: usize) -> Lowered {
    l.map(|p| {
        let ty = p.ty()?;
        p.number(index, ty)
    })
}

/// The second argument everywhere.
pub fn full(l: &mut Lowering<'_>) -> Lowered {
    filled(l, 1)
}

/// The first argument, once.
pub fn scalar_tensor(l: &mut Lowering<'_>) -> Lowered {
    filled(l, 0)
}

/// Numbers at equal distances. Floats are computed in double precision.
pub fn arange(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = if p.ty()?.is_float() { Type::F64 } else { Type::I64 };
        let axis = p.axes[0];
        let index = p.nest.index(axis);
        let index = p.code().cast(ty, index);
        let (start, step) = (p.number(0, ty)?, p.number(2, ty)?);
        let way = p.code().binary(Binary::Mul, index, step);
        Ok(p.code().binary(Binary::Add, start, way))
    })
}

/// Uniform numbers of a stream: random bits of each position, as a part of how many numbers they tell apart.
pub fn uniform(l: &mut Lowering<'_>) -> Lowered {
    let (seed, result) = (l.args.tensor(0)?, l.result()?);
    // Positions are counted in the order of the sizes, wherever the result lies.
    let counter = Place { buffer: seed.buffer, meta: Meta::contiguous(&result.meta.shape, DType::I64) };
    let bits = uniform_bits(result.meta.dtype);
    l.map(|p| {
        let (stream, ty) = (p.own(0)?, p.ty()?);
        let axes: Vec<_> = p.axes.iter().copied().map(Some).collect();
        let position = p.nest.access(&counter, &axes);
        let code = p.code();
        let position = code.push(Inst::Offset(position), Type::I64);
        let drawn = code.binary(Binary::Draw, stream, position);
        let mask = code.integer((1 << bits) - 1, Type::I64);
        let mut number = code.binary(Binary::And, drawn, mask);
        if ty == Type::F32 {
            // AVX2 converts from 32 bits, and has to call a function for 64.
            number = code.cast(Type::I32, number);
        }
        let (number, scale) = (code.cast(ty, number), code.number(0.5f64.powi(bits), ty));
        Ok(code.binary(Binary::Mul, number, scale))
    })
}
