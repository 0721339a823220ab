//! Derivatives of resizing, by the backward operator of each kind, which is linear as the forward operator is.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};

use super::backward::{gradients, packet};

/// All forward operators. Their `.vec` overloads give factors as one list, backward operators one by one.
pub fn resize(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let schema = p.args.schema;
    let shape = e.shape(p.tensor(0)?);
    let dims = shape.len() - 2;
    let size = e.shape(p.grad()?)[2..].to_vec();
    let mut args: Vec<Value<Handle>> = vec![p.grad()?.into(), size.into(), shape.to_vec().into()];
    args.extend(schema.param("align_corners").map(|index| p.value(index)));
    match schema.param("scale_factors") {
        Some(index) => match p.value(index) {
            Value::List(factors) => args.extend(factors),
            _ => args.extend(vec![Value::None; dims]),
        },
        None => args.extend(p.args.values[schema.params.len() - dims..].iter().cloned()),
    }
    gradients(e, &format!("{}_backward.default", packet(p)), &args, &[0])
}

/// All backward operators.
pub fn resize_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let mut args = vec![p.grad()?.into(), p.value(1)];
    args.extend(p.args.values[3..].iter().cloned());
    gradients(e, &packet(p).replace("_backward", ".default"), &args, &[0])
}
