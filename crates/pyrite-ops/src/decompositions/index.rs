//! Decompositions of indexing and scattering.

use pyrite_ir::{Args, Handle, OpError, Value, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::{Operand, Sheet, Term, formulas};
use crate::kernels::indexing::adds_in_place;
use crate::rules::wrap_dim;

/// `index_put` along the dimension at 1 by the index at 2.
fn put_along<'s>(
    s: &'s Sheet<'_>,
    a: &Args<'_, Handle>,
    values: Value<Handle>,
    accumulate: bool,
) -> Result<Term<'s>, OpError> {
    let x = s.term(a.value(0).clone());
    // A number is a vector of one element.
    let vector = if x.rank() == 0 { x.reshape(&[SymInt::Int(1)]) } else { x };
    let mut indices = vec![Value::None; wrap_dim(a.int(1)?, x.rank())?];
    let index = s.term(a.value(2).clone());
    let index = if index.rank() == 0 { index.reshape(&[SymInt::Int(1)]) } else { index };
    indices.push(index.to(DType::I64).value());
    let put = vector.of("aten.index_put.default", &[Value::List(indices), values, accumulate.into()]);
    Ok(if x.rank() == 0 { put.reshape(&[]) } else { put })
}

/// The source at 3 in the type of the tensor, with at least one dimension.
fn source<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>) -> Term<'s> {
    let source = s.term(a.value(3).clone()).like(s.term(a.value(0).clone()));
    if source.rank() == 0 { source.reshape(&[SymInt::Int(1)]) } else { source }
}

fn flat(x: Term<'_>) -> Term<'_> {
    x.reshape(&[x.numel()])
}

/// The reductions of `scatter` by the names that `scatter_reduce` has for them.
fn reduction(name: &str) -> Result<&'static str, OpError> {
    match name {
        "add" => Ok("sum"),
        "multiply" => Ok("prod"),
        other => invalid!("scatter reduces by 'add' or 'multiply', not by '{other}'"),
    }
}

formulas! {
    unsafe_index |s, a, []| s.call("aten.index.Tensor", a.values);
    unsafe_index_put |s, a, []| s.call("aten.index_put.default", a.values);
    index_add |s, a, []| {
        let x = s.term(a.value(0).clone());
        let narrow = x.dtype().filter(|dtype| *dtype != dtype.to_compute());
        if let Some(dtype) = narrow
            && !adds_in_place(x.rank(), wrap_dim(a.int(1)?, x.rank())?)
        {
            let mut args = a.values.to_vec();
            args[0] = x.wide().value();
            args[3] = s.wide(a, 3).value();
            return s.result_of(s.call("aten.index_add.default", &args).to(dtype));
        }
        let source = source(&s, a);
        let dtype = source.dtype().unwrap_or(DType::F32);
        let factor = source.as_element(a.scalar(4)?);
        let one = matches!(&factor, Value::Int(v) if v.is_eq(1)) || factor == Value::Float(1.0);
        let values = if one { source } else { source.of("aten.mul.Tensor", &[factor]).to(dtype) };
        put_along(&s, a, values.value(), true)?
    };
    index_copy |s, a, []| put_along(&s, a, source(&s, a).value(), false)?;
    index_fill |s, a, []| {
        let x = s.term(a.value(0).clone());
        let dtype = x.dtype().unwrap_or(DType::F32);
        let value = match a.value(3) {
            Value::Tensor(value) => s.term(*value).to(dtype).reshape(&[]),
            number => s.full(&[], number.clone(), dtype),
        };
        put_along(&s, a, value.value(), false)?
    };
    take |s, a, []| {
        let x = s.term(a.value(0).clone());
        flat(x).of("aten.index.Tensor", &[Value::List(vec![a.value(1).clone()])])
    };
    put |s, a, []| {
        let x = s.term(a.value(0).clone());
        let (index, values) = (flat(s.term(a.value(1).clone())), flat(s.term(a.value(2).clone())));
        let list = Value::List(vec![index.value()]);
        flat(x).of("aten.index_put.default", &[list, values.value(), a.value(3).clone()]).reshape(&x.shape())
    };
    scatter_reduce |s, a, []| {
        let mut args = a.values[..4].to_vec();
        args.push(reduction(a.str(4)?)?.into());
        s.call("aten.scatter_reduce.two", &args)
    };
    scatter_value_reduce |s, a, []| {
        let (x, index) = (s.term(a.value(0).clone()), s.term(a.value(2).clone()));
        let source = s.full(&index.shape(), a.value(3).clone(), x.dtype().unwrap_or(DType::F32));
        x.of(
            "aten.scatter_reduce.two",
            &[a.value(1).clone(), index.value(), source.value(), reduction(a.str(4)?)?.into()],
        )
    };
    isin |s, a, []| {
        let (x, tests) = (s.term(a.value(0).clone()), s.term(a.value(1).clone()));
        let invert = a.bool(3)?;
        let found = if tests.is_tensor() && tests.rank() > 0 {
            let each = if x.is_tensor() { x.unsqueeze(x.rank()) } else { x };
            let hit = each.eq(flat(tests));
            hit.of("aten.any.dim", &[(-1i64).into()])
        } else {
            x.eq(tests)
        };
        if invert { found.logical_not() } else { found }
    };
}
