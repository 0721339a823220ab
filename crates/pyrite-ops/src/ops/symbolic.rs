//! Numbers in graphs: sizes of tensors, Python's operators, reading an element, assertions.
//!
//! Programs with symbolic sizes compute with numbers between their tensor operators. Python's own operators
//! (`_operator.mul`) are composites: on numbers they compute at once, symbolically where a size is; on tensors they
//! are the ATen operators that Python would have called.

use pyrite_ir::{Args, Decompose, Emit, Handle, Meta, OpDef, OpError, Tag, Value, Vjp, invalid, unsupported};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::{DType, MemoryFormat, Scalar, Tensor};

use crate::rules::{specialized, wrap_dim};

/// The table.
pub const OPS: &[OpDef] = &[
    number_of("aten::sym_size.int(Tensor self, int dim) -> SymInt", "The size of a dimension.", |a| {
        let x = a.tensor(0)?;
        indexed(&x.shape, a.int(1)?)
    })
    .tags(&[Tag::Core])
    .samples(&["f32[2, 3], -1"]),
    number_of("aten::sym_stride.int(Tensor self, int dim) -> SymInt", "The stride of a dimension.", |a| {
        let x = a.tensor(0)?;
        indexed(&x.stride, a.int(1)?)
    })
    .tags(&[Tag::Core])
    .samples(&["f32[2, 3]<[1, 2], -1"]),
    number_of("aten::sym_size(Tensor self) -> SymInt[]", "The sizes of all dimensions.", |a| {
        Ok((&*a.tensor(0)?.shape).into())
    })
    .samples(&["f32[2, 3]"]),
    number_of("aten::sym_stride(Tensor self) -> SymInt[]", "The strides of all dimensions.", |a| {
        Ok((&*a.tensor(0)?.stride).into())
    })
    .samples(&["f32[2, 3]"]),
    number_of("aten::sym_numel(Tensor self) -> SymInt", "The number of elements.", |a| Ok(a.tensor(0)?.numel().into()))
        .tags(&[Tag::Core])
        .samples(&["f32[2, 3]", "f32[]"]),
    number_of("aten::sym_storage_offset(Tensor self) -> SymInt", "The first element's place in its storage.", |a| {
        Ok((&a.tensor(0)?.offset).into())
    })
    .tags(&[Tag::Core])
    .samples(&["f32[2, 3]"]),
    number_of(
        "aten::sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool",
        "Whether a tensor is dense in a format.",
        |a| {
            let x = a.tensor(0)?;
            Ok(match a.memory_format(1)? {
                Some(MemoryFormat::ChannelsLast) => x.is_channels_last(),
                Some(MemoryFormat::ChannelsLast3d) => x.is_channels_last_3d(),
                _ => x.is_contiguous(),
            }
            .into())
        },
    )
    .tags(&[Tag::Core])
    .samples(&["f32[2, 3]", "f32[2, 3]<[1, 2]"]),
    number_of("aten::is_same_size(Tensor self, Tensor other) -> bool", "Whether two tensors have one shape.", |a| {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        Ok((x.rank() == y.rank() && x.shape.iter().zip(&y.shape).all(|(a, b)| a.is_eq(b))).into())
    })
    .samples(&["f32[2, 3], i64[2, 3]", "f32[2], f32[3]"]),
    item("aten::_local_scalar_dense(Tensor self) -> Scalar").every_type().tags(&[Tag::Core, Tag::DataDependentShape]),
    item("aten::item(Tensor self) -> Scalar").tags(&[Tag::DataDependentShape]),
    operator("_operator::add(Any a, Any b) -> Any", &["2, 3", "2.5, 1", "f32[2], 3"]),
    operator("_operator::sub(Any a, Any b) -> Any", &["2, 3", "2, f32[2]"]),
    operator("_operator::mul(Any a, Any b) -> Any", &["2, 3", "2.5, True", "f32[2], f32[2]"]),
    operator("_operator::floordiv(Any a, Any b) -> Any", &["-7, 2", "7.5, 2"]),
    operator("_operator::truediv(Any a, Any b) -> Any", &["7, 2", "f32[2], 2"]),
    operator("_operator::mod(Any a, Any b) -> Any", &["-7, 2", "7.5, -2"]),
    operator("_operator::pow(Any a, Any b) -> Any", &["2, 10", "2, -1", "2.0, 0.5"]),
    operator("_operator::neg(Any a) -> Any", &["2", "f32[2]"]),
    operator("_operator::pos(Any a) -> Any", &["2"]),
    operator("_operator::abs(Any a) -> Any", &["-2", "-2.5"]),
    operator("_operator::eq(Any a, Any b) -> Any", &["2, 3", "2, 2.0"]),
    operator("_operator::ne(Any a, Any b) -> Any", &["2, 3"]),
    operator("_operator::lt(Any a, Any b) -> Any", &["2, 3"]),
    operator("_operator::le(Any a, Any b) -> Any", &["2, 2.5"]),
    operator("_operator::gt(Any a, Any b) -> Any", &["2, 3"]),
    operator("_operator::ge(Any a, Any b) -> Any", &["2, 3"]),
    operator("_operator::and_(Any a, Any b) -> Any", &["True, False", "6, 3"]),
    operator("_operator::or_(Any a, Any b) -> Any", &["True, False", "6, 3"]),
    operator("_operator::xor(Any a, Any b) -> Any", &["True, False", "6, 3"]),
    operator("_operator::not_(Any a) -> Any", &["True", "0"]),
    operator("torch::sym_not(Any a) -> Any", &["True"]),
    operator("torch::sym_float(Any a) -> Any", &["2"]),
    operator("torch::sym_int(Any a) -> Any", &["2.5", "-2.5"]),
    operator("torch::sym_max(Any a, Any b) -> Any", &["2, 3", "2, 2.5"]),
    operator("torch::sym_min(Any a, Any b) -> Any", &["2, 3"]),
    operator("torch::sym_sum(Any a) -> Any", &["[1, 2, 3]"]),
    operator("torch::sym_ite(Any a, Any b, Any c) -> Any", &["True, 2, 3"]),
    operator("math::floor(Any a) -> Any", &["2.5"]),
    operator("math::ceil(Any a) -> Any", &["2.5"]),
    operator("math::trunc(Any a) -> Any", &["-2.5"]),
    operator("math::sqrt(Any a) -> Any", &["2"]),
    assertion("aten::_assert_async(Tensor self) -> ()", &["f32[]{1..2}"]),
    assertion("aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", &["f32[]{1..2}, 'text'"]),
    assertion("aten::_assert_scalar(Scalar self, str assert_msg) -> ()", &["True, 'text'"]),
    assertion("aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", &["3, min=0, max=5"]),
    assertion("aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", &["3, min=0"]),
    assertion(
        "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
        &["f32[2, 3], [2, 3], None, f32"],
    ),
];

/// An operator that reads a number off a tensor's metadata; real tensors have metadata too.
const fn number_of(schema: &'static str, doc: &'static str, infer: pyrite_ir::op::InferFn) -> OpDef {
    OpDef::kernel(schema, doc, infer, |call| call.out.try_map(&mut |_: &Meta| Ok(Value::None)))
        .vjp(Vjp::NonDifferentiable("a number, not a tensor"))
}

fn indexed(dims: &[SymInt], dim: i64) -> Result<Value<Meta>, OpError> {
    match dims.get(wrap_dim(dim, dims.len())?) {
        Some(size) => Ok(size.into()),
        None => invalid!("a tensor without dimensions has no size"),
    }
}

/// Reads the only element. What it will be is not known before: an integer is a fresh symbol, for the other types any
/// number of the right kind stands in.
const fn item(schema: &'static str) -> OpDef {
    OpDef::kernel(
        schema,
        "The only element of a tensor as a number.",
        |a| {
            let x = a.tensor(0)?;
            if !x.numel().is_eq(1) {
                invalid!("a tensor of {} elements is no number", x.numel());
            }
            Ok(match x.dtype {
                DType::Bool => Value::Bool(true),
                d if d.is_integral() => SymEnv::new().unbacked().into(),
                d if d.is_float() => f64::NAN.into(),
                _ => pyrite_tensor::Complex64::new(f64::NAN, f64::NAN).into(),
            })
        },
        |call| Ok(call.args.tensor(0)?.item().into()),
    )
    .vjp(Vjp::NonDifferentiable("a number, not a tensor"))
    .samples(&["f32[]", "i64[1, 1]", "b8[]", "c64[]"])
}

const fn operator(schema: &'static str, samples: &'static [&'static str]) -> OpDef {
    OpDef::composite(schema, "Python's operator, on numbers; on tensors the ATen operator behind it.", compute)
        .samples(samples)
}

/// Operators whose only effect is to stop a program that is wrong.
const fn assertion(schema: &'static str, samples: &'static [&'static str]) -> OpDef {
    let checked = OpDef::kernel(
        schema,
        "Nothing, unless what is asserted does not hold.",
        |a| {
            check_metadata(a)?;
            Ok(Value::None)
        },
        |call| {
            check_value(&call.args)?;
            Ok(Value::None)
        },
    );
    OpDef { decompose: Decompose::Primitive, vjp: Vjp::NonDifferentiable("it returns nothing"), ..checked }
        .samples(samples)
}

fn check_metadata(a: &Args<'_, Meta>) -> Result<(), OpError> {
    if !a.schema.name.contains("metadata") {
        return Ok(());
    }
    let x = a.tensor(0)?;
    let differs = |wanted: Option<Vec<SymInt>>, found: &[SymInt]| {
        wanted.is_some_and(|w| w.len() != found.len() || w.iter().zip(found).any(|(a, b)| !a.is_eq(b)))
    };
    if differs(a.opt_syms(1)?, &x.shape)
        || differs(a.opt_syms(2)?, &x.stride)
        || a.dtype(3)?.is_some_and(|dtype| dtype != x.dtype)
    {
        invalid!("the program asserts other metadata than {x} with strides {:?}", x.stride);
    }
    Ok(())
}

fn check_value(a: &Args<'_, Tensor>) -> Result<(), OpError> {
    let message = || a.values.get(1).and_then(|v| if let Value::Str(s) = v { Some(&**s) } else { None }).unwrap_or("");
    let value = match a.value(0) {
        Value::Tensor(t) if a.schema.name.contains("async") => match t.to_bools()[..] {
            [is_bool] => Scalar::Bool(is_bool),
            _ => invalid!("an assertion wants one bool, not {:?}", t.shape()),
        },
        Value::Tensor(_) => return Ok(()),
        _ => a.scalar(0)?,
    };
    if a.schema.name.contains("constrain_range") {
        let size = value.to_i64();
        if a.opt_int(1)?.is_some_and(|min| size < min) || a.opt_int(2)?.is_some_and(|max| size > max) {
            invalid!("the size {size} leaves the range that the program asserts");
        }
    } else if !value.to_bool() {
        invalid!("the program's assertion failed: {}", message());
    }
    Ok(())
}

/// Computes a Python operator.
fn compute(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let name = a.schema.name.split('.').nth(1).unwrap_or_default();
    if a.values.iter().any(|v| matches!(v, Value::Tensor(_))) {
        return on_tensors(e, name, a);
    }
    let left = a.value(0);
    if name == "sym_sum" {
        let Value::List(items) = left else { invalid!("sym_sum wants a list of numbers") };
        return items.iter().try_fold(Value::Int(0.into()), |sum, item| binary("add", &sum, item));
    }
    if name == "sym_ite" {
        return Ok(a.value(if as_bool(left)? { 1 } else { 2 }).clone());
    }
    match a.values.get(1) {
        Some(right) => binary(name, left, right),
        None => unary(name, left),
    }
}

fn on_tensors(e: &mut dyn Emit, name: &str, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let tensor_left = matches!(a.value(0), Value::Tensor(_));
    let op = match (name, a.values.len()) {
        ("add" | "sub" | "mul" | "eq" | "ne" | "lt" | "le" | "gt" | "ge", 2) => format!("aten.{name}.Tensor"),
        ("truediv", 2) => "aten.div.Tensor".to_owned(),
        ("floordiv", 2) => "aten.floor_divide.default".to_owned(),
        ("mod", 2) => "aten.remainder.Tensor".to_owned(),
        ("pow", 2) => match (a.value(0), a.value(1)) {
            (Value::Tensor(_), Value::Tensor(_)) => "aten.pow.Tensor_Tensor".to_owned(),
            (Value::Tensor(_), _) => "aten.pow.Tensor_Scalar".to_owned(),
            _ => "aten.pow.Scalar".to_owned(),
        },
        ("and_" | "or_" | "xor", 2) => format!("aten.bitwise_{}.Tensor", name.trim_end_matches('_')),
        ("neg" | "abs", 1) => format!("aten.{name}.default"),
        ("pos", 1) => return Ok(a.value(0).clone()),
        _ => unsupported!("{} of tensors", a.schema.name),
    };
    if tensor_left || name == "pow" {
        return e.call(&op, a.values);
    }
    // A number on the left stands in as a tensor without dimensions that counts as a number in promotion.
    e.call(&op, &[a.value(0).clone(), a.value(1).clone()])
}

fn as_bool(value: &Value<Handle>) -> Result<bool, OpError> {
    match value {
        Value::Int(v) => Ok(!v.is_eq(0)),
        other => match other.as_scalar() {
            Some(scalar) => Ok(scalar.to_bool()),
            None => invalid!("{} is neither true nor false", other.kind()),
        },
    }
}

/// It as an integer, if it is one.
fn whole(value: &Value<Handle>) -> Option<SymInt> {
    match value {
        Value::Int(v) => Some(v.clone()),
        Value::Bool(v) => Some(SymInt::Int(i64::from(*v))),
        _ => None,
    }
}

/// It as a real number; a symbolic one is taken to be its captured value.
fn real(value: &Value<Handle>) -> Result<f64, OpError> {
    match value {
        Value::Int(v) => Ok(specialized(v)? as f64),
        other => match other.as_scalar() {
            Some(Scalar::Complex(_)) | None => unsupported!("arithmetic on {} in a graph", other.kind()),
            Some(scalar) => Ok(scalar.to_f64()),
        },
    }
}

fn unary(name: &str, value: &Value<Handle>) -> Result<Value<Handle>, OpError> {
    if name == "not_" || name == "sym_not" {
        return Ok((!as_bool(value)?).into());
    }
    if let Some(v) = whole(value) {
        return Ok(match name {
            "neg" => (-&v).into(),
            "abs" => (if v.is_lt(0) { -&v } else { v }).into(),
            "sym_float" => real(value)?.into(),
            "sqrt" => real(value)?.sqrt().into(),
            _ => v.into(),
        });
    }
    let v = real(value)?;
    let rounded = match name {
        "neg" => return Ok((-v).into()),
        "abs" => return Ok(v.abs().into()),
        "pos" | "sym_float" => return Ok(v.into()),
        "sqrt" => return Ok(v.sqrt().into()),
        "floor" => v.floor(),
        "ceil" => v.ceil(),
        _ => v.trunc(),
    };
    if !(-9.0e18..9.0e18).contains(&rounded) {
        invalid!("{v} is too large for an integer");
    }
    Ok((rounded as i64).into())
}

fn binary(name: &str, left: &Value<Handle>, right: &Value<Handle>) -> Result<Value<Handle>, OpError> {
    if let (Value::Bool(x), Value::Bool(y)) = (left, right) {
        match name {
            "and_" => return Ok((*x && *y).into()),
            "or_" => return Ok((*x || *y).into()),
            "xor" => return Ok((x != y).into()),
            _ => {}
        }
    }
    if let (Some(x), Some(y)) = (whole(left), whole(right)) {
        if matches!(name, "floordiv" | "mod" | "truediv") && y.is_eq(0) {
            invalid!("division by zero");
        }
        let bits = |f: fn(i64, i64) -> i64| Ok(f(specialized(&x)?, specialized(&y)?).into());
        return match name {
            "add" => Ok((x + y).into()),
            "sub" => Ok((x - y).into()),
            "mul" => Ok((x * y).into()),
            "floordiv" => Ok(x.floor_div(&y).into()),
            "mod" => Ok(x.modulo(&y).into()),
            "truediv" => Ok((real(left)? / real(right)?).into()),
            "pow" => power(&x, &y),
            "eq" | "ne" | "lt" | "le" | "gt" | "ge" => Ok(compared(name, &x, &y)?.into()),
            "sym_max" => Ok(x.max(&y).into()),
            "sym_min" => Ok(x.min(&y).into()),
            "and_" => bits(|x, y| x & y),
            "or_" => bits(|x, y| x | y),
            "xor" => bits(|x, y| x ^ y),
            other => unsupported!("the operator {other} on integers"),
        };
    }
    let (x, y) = (real(left)?, real(right)?);
    if matches!(name, "floordiv" | "mod" | "truediv") && y == 0.0 {
        invalid!("division by zero");
    }
    Ok(match name {
        "add" => (x + y).into(),
        "sub" => (x - y).into(),
        "mul" => (x * y).into(),
        "truediv" => (x / y).into(),
        "floordiv" => (x / y).floor().into(),
        "mod" => (x - (x / y).floor() * y).into(),
        "pow" => x.powf(y).into(),
        "eq" => (x == y).into(),
        "ne" => (x != y).into(),
        "lt" => (x < y).into(),
        "le" => (x <= y).into(),
        "gt" => (x > y).into(),
        "ge" => (x >= y).into(),
        "sym_max" => x.max(y).into(),
        "sym_min" => x.min(y).into(),
        other => unsupported!("the operator {other} on real numbers"),
    })
}

/// How two integers compare. Of a size that only a run can tell, most comparisons cannot be decided before.
fn compared(name: &str, x: &SymInt, y: &SymInt) -> Result<bool, OpError> {
    let unknown = (x - y).hint().is_none();
    let (holds, fails) = match name {
        "eq" => (x.is_eq(y), unknown && (x.is_lt(y) || x.is_gt(y))),
        "ne" => (if unknown { x.is_lt(y) || x.is_gt(y) } else { !x.is_eq(y) }, unknown && x.is_eq(y)),
        "lt" => (x.is_lt(y), unknown && x.is_ge(y)),
        "le" => (x.is_le(y), unknown && x.is_gt(y)),
        "gt" => (x.is_gt(y), unknown && x.is_le(y)),
        _ => (x.is_ge(y), unknown && x.is_lt(y)),
    };
    if unknown && !holds && !fails {
        unsupported!("a comparison of {x} and {y}, which only a run can tell, in a graph");
    }
    Ok(holds)
}

fn power(base: &SymInt, exponent: &SymInt) -> Result<Value<Handle>, OpError> {
    let exponent = specialized(exponent)?;
    if exponent < 0 {
        return Ok((specialized(base)? as f64).powf(exponent as f64).into());
    }
    let mut result = SymInt::Int(1);
    // More factors than this overflow for every base but the trivial ones.
    for _ in 0..exponent.min(64) {
        result = result * base;
    }
    Ok(result.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_divides_toward_minus_infinity() {
        let number = |v: i64| Value::<Handle>::Int(v.into());
        assert_eq!(binary("floordiv", &number(-7), &number(2)).unwrap(), number(-4));
        assert_eq!(binary("mod", &number(-7), &number(2)).unwrap(), number(1));
        assert!(binary("mod", &number(1), &number(0)).is_err());
    }

    #[test]
    fn what_only_a_run_can_tell_is_not_decided_before() {
        let size = Value::<Handle>::Int(SymEnv::new().unbacked());
        let three = Value::Int(3.into());
        for name in ["eq", "ne", "lt", "le", "gt", "ge"] {
            assert!(matches!(binary(name, &size, &three), Err(OpError::Unsupported(_))), "{name}");
            assert!(binary(name, &size, &size).is_ok(), "{name}");
        }
    }

    #[test]
    fn arithmetic_on_symbolic_sizes_stays_symbolic() {
        let size = SymEnv::new().size(5);
        let doubled = binary("mul", &Value::Int(size.clone()), &Value::Int(2.into())).unwrap();
        assert_eq!(doubled, Value::Int(size * 2));
    }
}
