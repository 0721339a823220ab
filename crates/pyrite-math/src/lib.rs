//! Mathematical functions as scalar code of the loop IR.
//!
//! [`expand`] replaces each function of a kernel by instructions that targets have themselves: arithmetic rounded as IEEE
//! 754 says, fused multiplications, operations on bits, selections. Targets print these, so a function gives the same
//! bits on all of them. The tile interpreter runs kernels as they are and computes functions in its own way: it is the
//! reference that this code is tested against.
//!
//! Each function is a reduction of its argument to a small interval and a polynomial there, fitted at Chebyshev nodes. Zeros
//! of either sign, infinities, NaN and subnormal numbers give what the function gives. Single precision has code of its own
//! ([`single`]) where that is worth it, with errors of at most 2 units in the last place, 4 for `tan` and `erf`; else
//! it is computed in double precision ([`double`], [`inverse`]) and rounded.
//!
//! What remains for targets: [`Inst::Patch`], whose function [`slow_path`] computes, and the remainder of floats
//! ([`Binary::Fmod`]), which is exact and takes a loop.

mod angle;
mod builder;
mod double;
mod inverse;
mod single;

use pyrite_loops::{AccessId, Binary, Block, Inst, Kernel, Number, Phase, Shift, Type, Unary, Val};
use pyrite_tensor::random::stream;

use crate::builder::Builder;
use crate::double::Rounded;

/// The kernel with all functions written out.
pub fn expand(kernel: &Kernel) -> Kernel {
    Kernel { phases: kernel.phases.iter().map(expand_phase).collect(), ..kernel.clone() }
}

fn expand_phase(phase: &Phase) -> Phase {
    let mut code = Block::default();
    let mut values: Vec<Val> = Vec::with_capacity(phase.code.len());
    for (value, inst) in phase.code.iter() {
        let known = |v: Val| values[v.0 as usize];
        let ty = phase.code.ty(value);
        let found = match *inst {
            Inst::Unary(op, a) => unary(&mut code, op, ty, known(a)),
            Inst::Binary(op, a, b) => {
                let exponent = match phase.code.inst(b) {
                    Inst::Const(Number::Float(p), _) if a != b => Some(*p),
                    _ => None,
                };
                binary(&mut code, op, ty, (known(a), known(b)), exponent)
            }
            _ => None,
        };
        let new = found.unwrap_or_else(|| code.append(inst.map_operands(&mut |v| known(v)), ty));
        values.push(new);
    }
    let mut reduces = phase.reduces.clone();
    for reduce in &mut reduces {
        reduce.value = values[reduce.value.0 as usize];
        reduce.index = reduce.index.map(|index| values[index.0 as usize]);
    }
    Phase { axes: phase.axes.clone(), code, reduces }
}

/// A function of one value; nothing if targets have it themselves.
fn unary(code: &mut Block, op: Unary, ty: Type, x: Val) -> Option<Val> {
    match ty {
        Type::F64 => double::unary(code, op, x),
        Type::F32 => single::unary(code, op, x).or_else(|| {
            if is_basic(op) {
                return None;
            }
            let wide = code.append(Inst::Cast(Type::F64, x), Type::F64);
            let y = double::unary(code, op, wide)?;
            Some(code.append(Inst::Cast(ty, y), ty))
        }),
        Type::Bool | Type::I32 | Type::I64 => None,
    }
}

/// Whether every target has a function itself.
fn is_basic(op: Unary) -> bool {
    matches!(
        op,
        Unary::Neg
            | Unary::Abs
            | Unary::Sign
            | Unary::Not
            | Unary::Sqrt
            | Unary::Rsqrt
            | Unary::Floor
            | Unary::Ceil
            | Unary::Trunc
            | Unary::Round
    )
}

/// A function of two values; nothing if targets have it themselves.
fn binary(code: &mut Block, op: Binary, ty: Type, (a, b): (Val, Val), exponent: Option<f64>) -> Option<Val> {
    match op {
        Binary::Draw => Some(draw(code, a, b)),
        Binary::Pow => Some(exponent.and_then(|p| power(code, ty, a, p)).unwrap_or_else(|| match ty {
            Type::F64 => double::pow(code, a, b, Rounded::Double),
            _ => through_double(code, (a, b), |code, a, b| double::pow(code, a, b, Rounded::Single)),
        })),
        Binary::Atan2 => Some(match ty {
            Type::F64 => double::atan2(code, a, b),
            _ => through_double(code, (a, b), double::atan2),
        }),
        _ => None,
    }
}

fn through_double(code: &mut Block, (a, b): (Val, Val), f: impl Fn(&mut Block, Val, Val) -> Val) -> Val {
    let mut wide = |v| code.append(Inst::Cast(Type::F64, v), Type::F64);
    let (a, b) = (wide(a), wide(b));
    let y = f(code, a, b);
    code.append(Inst::Cast(Type::F32, y), Type::F32)
}

/// A power whose exponent is known, where it is a few multiplications.
fn power(code: &mut Block, ty: Type, x: Val, exponent: f64) -> Option<Val> {
    let mut b = Builder::new(code, ty);
    Some(match exponent {
        1.0 => x,
        2.0 => b.mul(x, x),
        3.0 => {
            let square = b.mul(x, x);
            b.mul(square, x)
        }
        -1.0 => {
            let one = b.c(1.0);
            b.div(one, x)
        }
        -2.0 => {
            let one = b.c(1.0);
            let square = b.mul(x, x);
            b.div(one, square)
        }
        0.5 => {
            // The root of minus infinity is NaN, its power is infinite; the power of minus zero is zero.
            let zero = b.c(0.0);
            let root = b.add(x, zero);
            let root = b.sqrt(root);
            let (least, most) = (b.c(f64::NEG_INFINITY), b.c(f64::INFINITY));
            let lowest = b.cmp(pyrite_loops::Compare::Eq, ty, x, least);
            b.select(lowest, most, root)
        }
        _ => return None,
    })
}

/// Random bits of a position of a stream, as `pyrite_tensor::random::stream` defines them. Of the two halves of a state
/// only the lower 32 bits count, so that no round has to clear the others.
fn draw(code: &mut Block, stream: Val, position: Val) -> Val {
    let mut b = Builder::new(code, Type::F64);
    let begin = b.shift(Shift::Left, stream, 32);
    let mut first = b.int(Binary::Add, position, begin);
    let mut second = b.shift(Shift::Right, first, 32);
    let mut key = b.shift(Shift::Right, stream, 32);
    let (multiplier, growth) = (b.i(i64::from(stream::MULTIPLIER)), b.i(i64::from(stream::GROWTH)));
    for round in 0..stream::ROUNDS {
        if round > 0 {
            key = b.int(Binary::Add, key, growth);
        }
        let product = b.int(Binary::MulLow, first, multiplier);
        let carried = b.int(Binary::Xor, key, second);
        let high = b.shift(Shift::Right, product, 32);
        (first, second) = (b.int(Binary::Xor, high, carried), product);
    }
    let low = b.i(0xffff_ffff);
    let (first, second) = (b.int(Binary::And, first, low), b.shift(Shift::Left, second, 32));
    b.int(Binary::Or, first, second)
}

/// The code of the function of an [`Inst::Patch`], of floats of a type. Its first instruction stands for the argument, the
/// last one gives the value.
pub fn slow_path(op: Unary, ty: Type) -> Block {
    let mut code = Block::default();
    let x = code.append(Inst::Load(AccessId(0)), ty);
    let wide = code.cast(Type::F64, x);
    let y = angle::of_any_size(&mut code, op, wide);
    code.cast(ty, y);
    code
}
