//! Results of a decomposition, made to look as the operator promises.
//!
//! A decomposition says what is computed. Which type, which strides and whose memory the results have is what the
//! operator's own inference says, so rules need not care: half precision is computed in `f32` and rounded here, sums
//! come out in whatever order and are laid out here, and a result that is an argument is copied here.

use pyrite_sym::SymInt;
use pyrite_tensor::MemoryFormat;

use crate::meta::sort_dims;
use crate::{Args, Decompose, Emit, Handle, Infer, Meta, OpError, Operator, StorageId, Value};

/// Computes results by calls, given what inference says of them where it has a rule.
type Rule<'a> = dyn Fn(&mut dyn Emit, &Args<'_, Handle>, Option<&Value<Meta>>) -> Result<Value<Handle>, OpError> + 'a;

impl Operator {
    /// Its results by simpler operators.
    pub fn decomposed(&self, e: &mut dyn Emit, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let Decompose::Rule(rule) = self.def.decompose else {
            return Err(OpError::fault(format!("{} has no decomposition", self.name())));
        };
        self.by_rule(e, args, &|e, args, _| rule(e, args))
    }

    /// Its results by random numbers of the fast stream. What the rule cannot draw is `OpError::Unsupported`, and
    /// nothing was called then.
    pub fn streamed(&self, e: &mut dyn Emit, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let rule = self.def.stream.ok_or_else(|| OpError::fault(format!("{} has no stream", self.name())))?;
        self.by_rule(e, args, &|e, args, promised| {
            rule(e, args, promised.ok_or_else(|| OpError::fault("what is drawn is inferred by a rule"))?)
        })
    }

    fn by_rule(&self, e: &mut dyn Emit, args: &[Value<Handle>], rule: &Rule<'_>) -> Result<Value<Handle>, OpError> {
        let promised = match self.def.infer {
            Infer::Rule(infer) => {
                let metas: Vec<Value<Meta>> = args.iter().map(|v| v.map(&mut |h| e.meta(*h).clone())).collect();
                Some(infer(&Args { schema: &self.schema, values: &metas })?)
            }
            _ => None,
        };
        let mut given = Vec::new();
        args.iter().for_each(|arg| arg.each(&mut |h| given.push(e.meta(*h).storage)));
        let value = rule(e, &Args { schema: &self.schema, values: args }, promised.as_ref())?;
        match promised {
            Some(promised) => fitted(e, value, &promised, &mut given),
            None => Ok(value),
        }
    }
}

/// A value with the types, strides and fresh memory that metadata promises; `taken` are the storages that others use.
fn fitted(
    e: &mut dyn Emit,
    value: Value<Handle>,
    promised: &Value<Meta>,
    taken: &mut Vec<StorageId>,
) -> Result<Value<Handle>, OpError> {
    match (value, promised) {
        (Value::Tensor(handle), Value::Tensor(meta)) => {
            let handle = fitted_tensor(e, handle, meta, taken)?;
            taken.push(e.meta(handle).storage);
            Ok(handle.into())
        }
        (Value::List(items), Value::List(metas)) if items.len() == metas.len() => {
            let items = items.into_iter().zip(metas).map(|(item, meta)| fitted(e, item, meta, taken));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        (value, _) => Ok(value),
    }
}

fn fitted_tensor(e: &mut dyn Emit, from: Handle, to: &Meta, taken: &[StorageId]) -> Result<Handle, OpError> {
    let mut handle = from;
    if e.dtype(handle) != to.dtype {
        handle = e.one("aten._to_copy.default", &[handle.into(), to.dtype.into()])?;
    }
    let same = |have: &Meta| {
        let dims = have.shape.iter().zip(have.stride.iter().zip(&to.stride));
        have.numel().is_eq(0) || dims.into_iter().all(|(size, (have, want))| size.is_eq(1) || have.is_eq(want))
    };
    if same(e.meta(handle)) {
        let shared = taken.contains(&e.meta(handle).storage) && !taken.contains(&to.storage);
        return if shared { e.one("aten.clone.default", &[handle.into()]) } else { Ok(handle) };
    }
    // In the order of the promised strides, slowest first, a dense tensor is contiguous.
    let mut order: Vec<usize> = (0..to.rank()).collect();
    sort_dims(&mut order, |a, b| to.stride[a].is_gt(&to.stride[b]));
    if !to.is_dense_in(&order) {
        let target = e.one("aten.empty_strided.default", &[sizes(&to.shape), sizes(&to.stride), to.dtype.into()])?;
        return e.one("aten.copy.default", &[target.into(), handle.into()]);
    }
    let in_order = order.iter().copied().eq(0..to.rank());
    if !in_order {
        handle = permuted(e, handle, &order)?;
    }
    handle = e.one("aten.clone.default", &[handle.into(), MemoryFormat::Contiguous.into()])?;
    if !in_order {
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, d)| back[*d] = at);
        handle = permuted(e, handle, &back)?;
    }
    Ok(handle)
}

fn sizes(dims: &[SymInt]) -> Value<Handle> {
    dims.into()
}

fn permuted(e: &mut dyn Emit, handle: Handle, order: &[usize]) -> Result<Handle, OpError> {
    let order: Vec<i64> = order.iter().map(|d| *d as i64).collect();
    e.one("aten.permute.default", &[handle.into(), order.into()])
}
