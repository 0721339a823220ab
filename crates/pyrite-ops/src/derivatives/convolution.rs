//! Derivatives of convolutions.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};

use super::Calculus;
use super::backward::{gradients, mask};

/// `convolution`.
pub fn convolution(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (x, weight) = (e.conj(p.tensor(0)?)?, e.conj(p.tensor(1)?)?);
    let bias = match p.args.opt_tensor(2)? {
        Some(bias) => e.shape(*bias).to_vec().into(),
        None => vec![0i64].into(),
    };
    let mut args = vec![p.grad()?.into(), x.into(), weight.into(), bias];
    args.extend((3..9).map(|index| p.value(index)));
    args.push(mask(p, &[0, 1, 2]));
    gradients(e, "aten.convolution_backward.default", &args, &[0, 1, 2])
}

/// `convolution_backward`, which is linear in the gradient, the input and the weight: where the gradients `tx`, `tw`
/// and `tb` of its results come in, its gradient's own is `tx * weight + x * tw + tb`, and the others follow from
/// `⟨tx, dx⟩ = ⟨tx * weight, g⟩` and `⟨tw, dw⟩ = ⟨x * tw, g⟩`.
pub fn convolution_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (grad, x, weight) = (p.tensor(0)?, e.conj(p.tensor(1)?)?, e.conj(p.tensor(2)?)?);
    let options: Vec<Value<Handle>> = (4..10).map(|index| p.value(index)).collect();
    let convolve = |e: &mut dyn Emit, x: Handle, weight: Handle| {
        let mut args = vec![x.into(), weight.into(), Value::None];
        args.extend(options.iter().cloned());
        e.one("aten.convolution.default", &args)
    };
    let backward = |e: &mut dyn Emit, x: Handle, weight: Handle, of: usize| {
        let mut args = vec![grad.into(), x.into(), weight.into(), vec![0i64].into()];
        args.extend(options.iter().cloned());
        args.push(Value::List((0..3).map(|index| (index == of).into()).collect()));
        Ok::<_, OpError>(gradients(e, "aten.convolution_backward.default", &args, &[0, 1, 2])?.remove(0).1)
    };
    let mut grads = Vec::new();
    if p.wants(0) {
        let mut terms = Vec::new();
        if let Some(tx) = p.grad_of(0) {
            terms.push(convolve(e, tx, weight)?);
        }
        if let Some(tw) = p.grad_of(1) {
            terms.push(convolve(e, x, tw)?);
        }
        if let Some(tb) = p.grad_of(2) {
            let mut shape = vec![1i64; e.rank(grad)];
            shape[1] = -1;
            let channels = e.one("aten.view.default", &[tb.into(), shape.into()])?;
            let whole = e.shape(grad);
            terms.push(e.expand(channels, &whole)?);
        }
        let mut terms = terms.into_iter();
        if let Some(first) = terms.next() {
            let sum = terms.try_fold(first, |sum, term| e.add(sum, term))?;
            grads.push((0, sum.into()));
        }
    }
    if let Some(tw) = p.grad_of(1).filter(|_| p.wants(1)) {
        let tw = e.conj(tw)?;
        grads.push((1, backward(e, x, tw, 0)?));
    }
    if let Some(tx) = p.grad_of(0).filter(|_| p.wants(2)) {
        let tx = e.conj(tx)?;
        grads.push((2, backward(e, tx, weight, 1)?));
    }
    Ok(grads)
}
