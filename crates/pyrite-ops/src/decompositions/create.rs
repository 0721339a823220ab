//! Decompositions of operators that create tensors.

use pyrite_ir::{Args, Emit, Handle, OpError, SymDims, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Scalar};

use super::{Operand, Rule, Sheet, Term, formulas};
use crate::rules::wrap_dim;

/// `full` of a size and a number, with the options that start at an index.
fn filled<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>, size: usize, number: Value<Handle>, options: usize) -> Term<'s> {
    let mut args = vec![a.value(size).clone(), number];
    args.extend_from_slice(&a.values[options..]);
    // Without a type, `full` takes that of its number.
    if matches!(args[2], Value::None) {
        args[2] = match a.value(0) {
            Value::Tensor(like) => s.term(*like).dtype().into(),
            _ => DType::F32.into(),
        };
    }
    s.call("aten.full.default", &args)
}

/// `full_like` with the options that start at an index.
fn filled_like<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>, number: i64) -> Term<'s> {
    let mut args = vec![a.value(0).clone(), number.into()];
    args.extend_from_slice(&a.values[1..]);
    s.call("aten.full_like.default", &args)
}

/// Where column less row of matrices, the last two dimensions, is as wanted.
fn triangle<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>, op: &str) -> Result<Term<'s>, OpError> {
    let x = s.term(a.value(0).clone());
    let shape = x.shape();
    let (rows, columns) = (&shape[shape.len() - 2], &shape[shape.len() - 1]);
    let apart = s.iota(columns) - s.iota(rows).unsqueeze(1);
    let kept = apart.of(op, &[a.sym(1)?.into()]);
    Ok(kept.select(x, s.full(&[], 0i64, x.dtype().unwrap_or(DType::F32))))
}

fn identity<'s>(s: &'s Sheet<'_>, rows: &SymInt, columns: &SymInt, dtype: Option<DType>) -> Term<'s> {
    s.iota(rows).unsqueeze(1).eq(s.iota(columns)).to(dtype.unwrap_or(DType::F32))
}

formulas! {
    zeros |s, a, []| filled(&s, a, 0, 0i64.into(), 1);
    ones |s, a, []| filled(&s, a, 0, 1i64.into(), 1);
    zeros_like |s, a, []| filled_like(&s, a, 0);
    ones_like |s, a, []| filled_like(&s, a, 1);
    new_zeros |s, a, []| filled(&s, a, 1, 0i64.into(), 2);
    new_ones |s, a, []| filled(&s, a, 1, 1i64.into(), 2);
    new_full |s, a, []| filled(&s, a, 1, a.value(2).clone(), 3);
    zero |s, a, []| s.call("aten.full_like.default", &[a.value(0).clone(), 0i64.into()]);
    fill |s, a, []| {
        let x = s.term(a.value(0).clone());
        s.term(a.value(1).clone()).like(x).expand(&x.shape())
    };
    copied |s, a, []| s.call("aten.clone.default", &a.values[..1]);
    converted |s, a, []| s.call("aten._to_copy.default", &a.values[..2]);
    arange |s, a, []| {
        let mut args = vec![0i64.into(), a.value(0).clone(), 1i64.into()];
        args.extend_from_slice(&a.values[1..]);
        s.call("aten.arange.start_step", &args)
    };
    arange_start |s, a, []| {
        let mut args = vec![a.value(0).clone(), a.value(1).clone(), 1i64.into()];
        args.extend_from_slice(&a.values[2..]);
        s.call("aten.arange.start_step", &args)
    };
    iota |s, a, []| {
        let (length, start, step) = (a.sym(0)?, a.sym(1)?, a.sym(2)?);
        let end = &start + length * &step;
        s.call("aten.arange.start_step", &[start.into(), end.into(), step.into(), a.value(3).clone()])
    };
    eye |s, a, []| identity(&s, &a.sym(0)?, &a.sym(0)?, a.dtype(1)?);
    eye_m |s, a, []| identity(&s, &a.sym(0)?, &a.sym(1)?, a.dtype(2)?);
    tril |s, a, []| triangle(&s, a, "aten.le.Scalar")?;
    triu |s, a, []| triangle(&s, a, "aten.ge.Scalar")?;
    /// The diagonal is repeated along one of the new dimensions, and kept where the two differ by the offset.
    diag_embed |s, a, []| {
        let x = s.term(a.value(0).clone());
        let (offset, rank) = (a.int(1)?, x.rank() + 1);
        let (first, second) = (wrap_dim(a.int(2)?, rank)?, wrap_dim(a.int(3)?, rank)?);
        let pad = if offset > 0 { vec![offset, 0] } else { vec![0, -offset] };
        // Padded so that an element stands in its column.
        let padded = if offset == 0 { x } else { x.of("aten.constant_pad_nd.default", &[pad.into()]) };
        let (low, high) = (first.min(second), first.max(second));
        let side = padded.shape()[rank - 2].clone();
        let (rows, columns) = (s.iota(&side).along(first, rank), s.iota(&side).along(second, rank));
        let mut order: Vec<usize> = (0..rank - 2).collect();
        order.insert(low, if low == second { rank - 2 } else { rank - 1 });
        order.insert(high, if high == second { rank - 2 } else { rank - 1 });
        let spread = padded.unsqueeze(rank - 1).permute(&order);
        let here = (columns - rows).of("aten.eq.Scalar", &[offset.into()]);
        here.select(spread, s.full(&[], 0i64, x.dtype().unwrap_or(DType::F32)))
    };
}

/// `block_diag`: each matrix between zeros, one below the other.
pub fn block_diag(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let one = SymInt::Int(1);
    let blocks: Vec<Term<'_>> = a
        .tensors(0)?
        .into_iter()
        .map(|handle| {
            let x = s.term(*handle);
            match x.rank() {
                0 => x.reshape(&[one.clone(), one.clone()]),
                1 => x.unsqueeze(0),
                _ => x,
            }
        })
        .collect();
    let widths: SymDims = blocks.iter().map(|x| x.shape()[1].clone()).collect();
    let total = |widths: &[SymInt]| widths.iter().fold(SymInt::Int(0), |n, w| n + w);
    let rows: Vec<Value<Handle>> = blocks
        .iter()
        .enumerate()
        .map(|(at, x)| {
            let pad = vec![total(&widths[..at]), total(&widths[at + 1..])];
            x.of("aten.constant_pad_nd.default", &[pad.into()]).value()
        })
        .collect();
    if rows.is_empty() {
        return s.result_of(s.full(&[SymInt::Int(1), SymInt::Int(0)], Scalar::Float(0.0), DType::F32));
    }
    s.result_of(s.call("aten.cat.default", &[Value::List(rows)]))
}
