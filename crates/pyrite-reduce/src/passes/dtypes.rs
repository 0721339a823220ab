//! Usual element types in place of unusual ones, throughout the graph.
//!
//! Numbers of another width become f32, i64 or c64 everywhere at once: in inputs, in constants and where an argument names
//! a type. Operators would refuse a mixture.

use pyrite_ir::{NodeId, Value};
use pyrite_tensor::{DType, Tensor};

use super::inputs::rebuilt;
use crate::Candidate;
use crate::driver::Search;

/// The usual type of the same kind.
pub(crate) fn usual(dtype: DType) -> DType {
    match dtype {
        DType::F64 | DType::F16 | DType::BF16 => DType::F32,
        DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::I64,
        narrow if narrow.is_float8() => DType::F32,
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
    let constant = |tensor: &Tensor| converted(tensor, change(tensor.dtype()));
    let literal = |value: Value<NodeId>| match value {
        Value::DType(dtype) => Value::DType(change(dtype)),
        other => other,
    };
    rebuilt(from, inputs, &constant, &literal)
}
