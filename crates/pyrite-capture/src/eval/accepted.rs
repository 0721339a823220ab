//! Whether torch takes a call as the graph does.
//!
//! Operators take more than torch's functions: a number for a tuple, types of elements that a kernel does not have. A call is
//! therefore shown to torch before it becomes a node. Its parser judges the arguments of every function written in C; where
//! the types of elements are none of those that every kernel has, or differ, the function itself is run, on tensors of those
//! shapes and types. What torch raises is raised. No size and no number is guarded for the question.

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
            return Ok(());
        }
        let raised = if types.are_common() {
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
}

impl Types {
    fn see(&mut self, value: &GraphValue<Meta>) {
        match value {
            GraphValue::Tensor(meta) if !self.seen.contains(&meta.dtype) => self.seen.push(meta.dtype),
            GraphValue::List(items) => items.iter().for_each(|item| self.see(item)),
            GraphValue::Complex(_) => self.has_complex = true,
            _ => {}
        }
    }

    /// Whether they are one type that every kernel has.
    fn are_common(&self) -> bool {
        !self.has_complex && matches!(self.seen[..], [DType::F32 | DType::F64 | DType::BF16])
    }
}
