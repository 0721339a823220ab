//! Usual element types in place of unusual ones, throughout the graph.
//!
//! Numbers of another width become f32, i64 or c64 everywhere at once: in inputs, in constants and where an argument names
//! a type. Operators would refuse a mixture.

use pyrite_ir::{Builder, Kind, Meta, Node, NodeId, StorageId, Value};
use pyrite_tensor::{DType, Tensor};

use super::arguments::inferred;
use crate::Candidate;
use crate::driver::Search;

/// The usual type of the same kind.
pub(crate) fn usual(dtype: DType) -> DType {
    match dtype {
        DType::F64 | DType::F16 | DType::BF16 => DType::F32,
        DType::I32 | DType::I16 | DType::I8 | DType::U8 => DType::I64,
        DType::C128 => DType::C64,
        other => other,
    }
}

pub(super) fn usual_types(search: &mut Search<'_>) {
    while !search.is_over() {
        let from = search.best().clone();
        let mut unusual: Vec<DType> = Vec::new();
        each_dtype(&from, &mut |dtype| {
            if usual(dtype) != dtype && !unusual.contains(&dtype) {
                unusual.push(dtype);
            }
        });
        let mut proposals: Vec<Candidate> = Vec::new();
        if unusual.len() > 1 {
            proposals.extend(retyped(&from, &usual));
        }
        for dtype in unusual {
            proposals.extend(retyped(&from, &|found| if found == dtype { usual(dtype) } else { found }));
        }
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// Every element type that inputs, constants and arguments name.
pub(crate) fn each_dtype(candidate: &Candidate, f: &mut dyn FnMut(DType)) {
    candidate.inputs.iter().for_each(|input| input.each(&mut |tensor| f(tensor.dtype())));
    candidate.graph.constants().values().for_each(|tensor| f(tensor.dtype()));
    for (_, node) in candidate.graph.nodes() {
        for value in node.args.iter().chain(node.kwargs.iter().map(|(_, value)| value)) {
            if let Value::DType(dtype) = value {
                f(*dtype);
            }
        }
    }
}

/// A tensor with another element type and the same strides.
fn converted(tensor: &Tensor, dtype: DType) -> Tensor {
    if tensor.dtype() == dtype {
        return tensor.clone();
    }
    let made = if tensor.layout().may_overlap() {
        Tensor::empty(tensor.shape(), dtype)
    } else {
        Tensor::empty_strided(tensor.shape(), tensor.stride(), dtype)
    };
    made.map_or_else(
        |_| tensor.clone(),
        |made| {
            made.write_from(tensor);
            made
        },
    )
}

/// The candidate with types replaced, if that is a program.
fn retyped(from: &Candidate, change: &dyn Fn(DType) -> DType) -> Option<Candidate> {
    let inputs: Vec<Value<Tensor>> =
        from.inputs.iter().map(|input| input.map(&mut |t| converted(t, change(t.dtype())))).collect();
    let mut builder = Builder::new();
    builder.copy_surroundings(&from.graph);
    let mut copies: Vec<NodeId> = vec![NodeId(0); from.graph.id_bound()];
    let mut given = inputs.iter();
    for (id, node) in from.graph.nodes() {
        let copy = match &node.kind {
            Kind::Placeholder => {
                let old = node.meta.as_ref().and_then(Value::as_tensor);
                let meta = given.next()?.as_tensor().map(|tensor| {
                    Value::Tensor(Meta {
                        storage: StorageId::fresh(),
                        requires_grad: old.is_some_and(|m| m.requires_grad),
                        is_leaf: old.is_none_or(|m| m.is_leaf),
                        ..Meta::of(tensor)
                    })
                });
                Node { meta: meta.or_else(|| node.meta.clone()), ..node.clone() }
            }
            Kind::GetAttr(name) => {
                if let Some(tensor) = from.graph.constants().get(name) {
                    builder.add_constant(name, converted(tensor, change(tensor.dtype())));
                }
                node.clone()
            }
            _ => {
                let mut renamed = |value: &Value<NodeId>| match value {
                    Value::DType(dtype) => Value::DType(change(*dtype)),
                    other => other.map(&mut |id| copies[id.0 as usize]),
                };
                let args = node.args.iter().map(&mut renamed).collect();
                let kwargs = node.kwargs.iter().map(|(name, value)| (name.clone(), renamed(value))).collect();
                Node { args, kwargs, ..node.clone() }
            }
        };
        copies[id.0 as usize] = builder.push(copy);
    }
    inferred(Candidate { graph: builder.finish(), inputs })
}
