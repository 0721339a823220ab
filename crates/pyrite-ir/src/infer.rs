//! Inference: what a call returns, from metadata alone.

use crate::args::tensors_from_numbers;
use pyrite_tensor::DType;

use crate::op::Elements;
use crate::{Args, Decompose, Emit, Eval, Handle, Infer, Meta, OpError, Operator, Registry, Value};

/// What an operator returns for bound arguments.
pub fn infer(registry: &Registry, op: &Operator, args: &[Value<Meta>]) -> Result<Value<Meta>, OpError> {
    let unusual = barebones(op, args);
    match op.def.infer {
        // The operators that it is composed of say whether they take the type.
        Infer::Rule(_) if unusual.is_some() && matches!(op.def.eval, Eval::ViaDecomposition) => {
            decomposed(registry, op, args)
        }
        Infer::ViaDecomposition => decomposed(registry, op, args),
        Infer::HigherOrder => Err(OpError::unsupported(format!("{} outside of a graph", op.name()))),
        Infer::Rule(_) | Infer::Written if unusual.is_some() => {
            let name = unusual.map_or("", DType::torch_name);
            Err(OpError::unsupported(format!("{} of {name} tensors; torch:eager runs it", op.name())))
        }
        Infer::Rule(rule) => rule(&Args { schema: &op.schema, values: args }),
        Infer::Written => Ok(written(op, args)),
    }
}

/// An element type among the arguments that the operator's record does not admit.
fn barebones(op: &Operator, args: &[Value<Meta>]) -> Option<DType> {
    if op.def.elements == Elements::Every || matches!(op.def.eval, Eval::View) {
        return None;
    }
    let mut found = None;
    for value in args {
        if let Value::DType(dtype) = value
            && dtype.is_barebones()
        {
            found = Some(*dtype);
        }
        value.each(&mut |meta| {
            if meta.dtype.is_barebones() {
                found = Some(meta.dtype);
            }
        });
    }
    found
}

/// What an operator returns that is expressed by others.
fn decomposed(registry: &Registry, op: &Operator, args: &[Value<Meta>]) -> Result<Value<Meta>, OpError> {
    let Decompose::Rule(rule) = op.def.decompose else {
        return Err(OpError::fault(format!("{} has no decomposition to infer through", op.name())));
    };
    let mut emitter = MetaEmitter { registry, metas: Vec::new() };
    let handles: Vec<Value<Handle>> = args.iter().map(|v| v.map(&mut |m| emitter.keep(m.clone()))).collect();
    let result = rule(&mut emitter, &Args { schema: &op.schema, values: &handles })?;
    Ok(result.map(&mut |h| emitter.metas[h.0 as usize].clone()))
}

/// The arguments an operator writes to, as its result: one, or a list of several.
pub fn written<T: Clone>(op: &Operator, args: &[Value<T>]) -> Value<T> {
    let mut written: Vec<Value<T>> = op
        .schema
        .params
        .iter()
        .zip(args)
        .filter(|(param, _)| param.alias.as_ref().is_some_and(|a| a.written))
        .map(|(_, value)| value.clone())
        .collect();
    match (written.len(), op.schema.returns.len()) {
        (_, 0) => Value::None,
        (1, _) => written.remove(0),
        _ => Value::List(written),
    }
}

/// Carries out a rule on metadata.
struct MetaEmitter<'a> {
    registry: &'a Registry,
    metas: Vec<Meta>,
}

impl MetaEmitter<'_> {
    fn keep(&mut self, meta: Meta) -> Handle {
        self.metas.push(meta);
        Handle(self.metas.len() as u32 - 1)
    }
}

impl Emit for MetaEmitter<'_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let metas: Vec<Value<Meta>> = args.iter().map(|v| v.map(&mut |h| self.metas[h.0 as usize].clone())).collect();
        let (operator, mut bound) = self.registry.bound(op, &metas)?;
        tensors_from_numbers(&operator.schema, &mut bound);
        let result = infer(self.registry, operator, &bound)?;
        Ok(result.map(&mut |m| self.keep(m.clone())))
    }

    fn meta(&self, handle: Handle) -> &Meta {
        &self.metas[handle.0 as usize]
    }
}
