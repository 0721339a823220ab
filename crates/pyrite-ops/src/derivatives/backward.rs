//! Rules that are one call of a backward operator.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};

/// One flag per parameter: whether its gradient is wanted. Backward operators call it `output_mask`.
pub fn mask(p: &Pullback<'_>, params: &[usize]) -> Value<Handle> {
    Value::List(params.iter().map(|index| p.wants(*index).into()).collect())
}

/// Calls an operator whose results are the gradients of some parameters, `None` where they were not wanted.
pub fn gradients(e: &mut dyn Emit, op: &str, args: &[Value<Handle>], params: &[usize]) -> Result<Gradients, OpError> {
    let results = match e.call(op, args)? {
        Value::List(items) => items,
        one => vec![one],
    };
    Ok(params.iter().copied().zip(results).filter(|(_, grad)| !matches!(grad, Value::None)).collect())
}

/// The name of the differentiated operator without its overload.
pub fn packet<'a>(p: &Pullback<'a>) -> &'a str {
    let name: &str = &p.args.schema.name;
    name.rsplit_once('.').map_or(name, |(packet, _)| packet)
}
