//! Whether torch takes a call as the graph does.
//!
//! Operators take more than torch's functions: a number for a tuple, types of elements that a kernel does not have. A call is
//! therefore shown to torch before it becomes a node. Its parser judges the arguments of every function written in C; where
//! the types of elements are none of those that every kernel has, or differ, or a number may be too large for them, the function
//! itself is run, on tensors of those shapes and types. What torch raises is raised. No size and no number is guarded for the
//! question.

use pyrite_ir::{Meta, Value as GraphValue};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::host::{Kind, Object};
use crate::value::Value;

impl Evaluator<'_, '_> {
    /// Raises what torch raises for a call of a function, where it refuses it whatever the data.
    pub(super) fn check_accepted(&mut self, function: Option<Object>, args: &[Value], kwargs: &Keywords) -> Run<()> {
        let Some(function) = function.filter(|_| !self.autocasted) else { return Ok(()) };
        if let Some((_, Value::Known(device, _))) = kwargs.iter().find(|(key, _)| &**key == "device")
            && self.host.as_str(*device).is_some()
            && let Some(class) = self.host.member("torch", "device")
        {
            self.host.call(class, &[*device], &[]).map_err(|raised| self.raised(raised))?;
        }
        let Some(described) = self.described(args)? else { return Ok(()) };
        let values: Vec<Value> = kwargs.iter().map(|(_, value)| value.clone()).collect();
        let Some(named) = self.described(&values)? else { return Ok(()) };
        let named: Vec<(String, GraphValue<Meta>)> =
            kwargs.iter().zip(named).map(|((key, _), value)| (key.to_string(), value)).collect();
        let mut types = Types::default();
        described.iter().chain(named.iter().map(|(_, value)| value)).for_each(|value| types.see(value));
        if types.seen.is_empty() {
            // A tensor is made of numbers: they have to fit the type that it is asked to have.
            let dtype = named.iter().find_map(|(key, value)| match value {
                GraphValue::DType(dtype) if key == "dtype" => Some(*dtype),
                _ => None,
            });
            let is_tensor = self.host.member("torch", "tensor") == Some(function);
            let numbers = described.iter().chain(named.iter().map(|(_, value)| value));
            if dtype.is_none_or(|dtype| numbers.clone().all(|number| fits(number, dtype, is_tensor))) {
                return Ok(());
            }
            let raised = self.host.refusal_of(function, &described, &named);
            return raised.map_or(Ok(()), |raised| Err(self.raised(raised)));
        }
        // These read the numbers of the tensors that they are given, which what stands for a tensor does not have.
        let reads = ["tensor", "as_tensor", "asarray"].iter().any(|it| self.host.member("torch", it) == Some(function));
        let raised = if types.are_common() && !reads {
            self.host.misparse_of(function, &described, &named)
        } else {
            self.host.refusal_of(function, &described, &named)
        };
        raised.map_or(Ok(()), |raised| Err(self.raised(raised)))
    }

    /// What torch is shown of arguments; nothing when one of them cannot be shown.
    fn described(&mut self, values: &[Value]) -> Run<Option<Vec<GraphValue<Meta>>>> {
        let mut described = Vec::with_capacity(values.len());
        for value in values {
            match self.for_torch(value)? {
                Some(value) => described.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(described))
    }

    fn for_torch(&mut self, value: &Value) -> Run<Option<GraphValue<Meta>>> {
        Ok(match value {
            Value::Tensor(tensor) => match self.calls.meta(tensor.node) {
                Some(GraphValue::Tensor(meta)) => hinted(meta).map(GraphValue::Tensor),
                _ => None,
            },
            Value::Symbol(symbol) => symbol.size.hint().map(|hint| GraphValue::Int(SymInt::Int(hint))),
            Value::Number(number) => self.object_for_torch(number.hint),
            Value::Known(object, _) => self.object_for_torch(*object),
            Value::Tuple(_) | Value::List(_) => {
                let items = self.items_of(value)?;
                self.described(&items)?.map(GraphValue::List)
            }
            Value::Lazy(_) => {
                let value = self.force(value)?;
                self.for_torch(&value)?
            }
            _ => None,
        })
    }

    fn object_for_torch(&self, object: Object) -> Option<GraphValue<Meta>> {
        if matches!(self.host.kind(object), Kind::Tuple | Kind::NamedTuple) {
            let items = self.constant_items(object);
            return items
                .into_iter()
                .map(|item| self.object_for_torch(item))
                .collect::<Option<_>>()
                .map(GraphValue::List);
        }
        self.host.to_graph(object)?.try_map(&mut |_| Err(())).ok()
    }
}

/// Metadata with what sizes are in this call.
fn hinted(meta: &Meta) -> Option<Meta> {
    let mut shown = meta.clone();
    for size in shown.shape.iter_mut().chain(&mut shown.stride) {
        *size = SymInt::Int(size.hint()?);
    }
    Some(shown)
}

/// The types of elements among the arguments of a call.
#[derive(Default)]
struct Types {
    seen: Vec<DType>,
    has_complex: bool,
    /// Whether a number is finite and too large for `f32`.
    has_large: bool,
}

impl Types {
    fn see(&mut self, value: &GraphValue<Meta>) {
        match value {
            GraphValue::Tensor(meta) if !self.seen.contains(&meta.dtype) => self.seen.push(meta.dtype),
            GraphValue::List(items) => items.iter().for_each(|item| self.see(item)),
            GraphValue::Complex(_) => self.has_complex = true,
            GraphValue::Float(number) => self.has_large |= !fits(&GraphValue::Float(*number), DType::F32, false),
            _ => {}
        }
    }

    /// Whether they are one type that every kernel has.
    fn are_common(&self) -> bool {
        let is_common = matches!(self.seen[..], [DType::F32 | DType::F64 | DType::BF16]);
        is_common && !self.has_complex && !self.has_large
    }
}

/// Whether torch can make a number an element of a type: whole numbers are those of the type, or negative ones that wrap around
/// in an unsigned one; floats are not larger than the type's, or infinite. Items of lists are looked at where they are elements.
fn fits(value: &GraphValue<Meta>, dtype: DType, of_lists: bool) -> bool {
    let (low, high) = match dtype {
        DType::U8 => (-255.0, 255.0),
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::I64 => (i64::MIN as f64, i64::MAX as f64),
        DType::F16 => (-65504.0, 65504.0),
        DType::BF16 => (-BF16_MAX, BF16_MAX),
        DType::F32 | DType::C64 => (f64::from(f32::MIN), f64::from(f32::MAX)),
        DType::F64 | DType::C128 => (f64::MIN, f64::MAX),
        // torch says what these hold: frames with them are not captured.
        DType::U16 | DType::U32 | DType::U64 => return false,
        DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz => return false,
        // Some functions make no bools at all.
        DType::Bool => (0.0, 1.0),
    };
    let floating = dtype.is_float() || dtype.is_complex();
    match value {
        GraphValue::Int(number) => number.as_int().is_none_or(|number| (low..=high).contains(&(number as f64))),
        GraphValue::Float(number) if floating && !number.is_finite() => true,
        GraphValue::Float(number) => (low..=high).contains(number),
        GraphValue::Complex(_) => dtype.is_complex(),
        GraphValue::List(items) => !of_lists || items.iter().all(|item| fits(item, dtype, of_lists)),
        _ => true,
    }
}

/// The largest finite number of `bfloat16`.
const BF16_MAX: f64 = 3.389_531_389_251_535_5e38;
