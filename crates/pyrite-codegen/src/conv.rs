//! Convolution statements.
//!
//! A convolution by windows of three by three, and the gradient of its input, is computed in transformed tiles
//! ([`winograd`]) where its sizes are worth it. What sizes decide is decided in every call alike, so
//! that calls of equal sizes round alike. The transformed windows of a weight are kept when a second call brings the
//! same bytes ([`Weight`]).

use std::any::TypeId;

use pyrite_ir::lower::Place;
use pyrite_ir::{ExternKind, Lower, Meta, OpError, Value};
use pyrite_kernels::convolution::{Geometry, winograd};
use pyrite_kernels::dense;
use pyrite_tensor::{DType, Tensor};

use crate::gemm::Weight;
use crate::schedule::{Buffer, ExternCall, Origin};

/// A convolution; see the module's text.
pub struct Conv {
    /// The call that it stands for.
    pub call: ExternCall,
    /// What is left of a call that gives more than the gradient of the input.
    pub rest: Option<Box<ExternCall>>,
    terms: Terms,
    /// Whether the weight is an input or a constant.
    weighted: bool,
}

/// What is convolved with what.
struct Terms {
    way: Way,
    image: Place,
    weight: Place,
    bias: Option<Place>,
    out: Place,
    padding: [usize; 2],
}

/// Which way a convolution goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    /// From the gradient of the output to that of the input.
    Backward,
}

/// The tensors of a call.
pub struct ConvOperands {
    image: Tensor,
    weight: Tensor,
    bias: Option<Tensor>,
    /// The result.
    pub out: Tensor,
}

impl Conv {
    /// A call as a convolution in tiles, if it is one that is worth it.
    pub fn of(call: ExternCall, buffers: &[Buffer]) -> Result<Self, Box<ExternCall>> {
        let Some(terms) = Terms::of(&call) else {
            return Err(Box::new(call));
        };
        let origin = &buffers[terms.weight.buffer.0 as usize].origin;
        let weighted = matches!(origin, Origin::Input(_) | Origin::Constant(_));
        Ok(Self { rest: rest(&call), call, terms, weighted })
    }

    /// The tensors of a call, each from its place.
    pub fn operands(&self, mut tensor: impl FnMut(&Place) -> Result<Tensor, OpError>) -> Result<ConvOperands, OpError> {
        let Terms { image, weight, bias, out, .. } = &self.terms;
        Ok(ConvOperands {
            image: tensor(image)?,
            weight: tensor(weight)?,
            bias: bias.as_ref().map(&mut tensor).transpose()?,
            out: tensor(out)?,
        })
    }

    /// Computes it, if the sizes of the call suit; says whether they did.
    pub fn run(&self, operands: &ConvOperands, weight: &Weight) -> Ran {
        let ConvOperands { image, weight: windows, bias, out } = operands;
        let sizes = self.terms.geometries(image.shape(), windows.shape(), out.shape());
        let Some((convolution, computed)) = sizes else {
            return Ran::No;
        };
        dense::read::<f32, _>(windows, |numbers| {
            let make = || match self.terms.way {
                Way::Forward => winograd::Weights::forward(&convolution, numbers),
                Way::Backward => winograd::Weights::backward(&convolution, numbers),
            };
            let read_as = TypeId::of::<winograd::Weights>();
            let keep = || weight.kept(windows, read_as, || Some(make()), winograd::Weights::nbytes);
            let kept = if self.weighted { keep() } else { None };
            let fresh = if kept.is_none() { Some(make()) } else { None };
            let Some(weights) = kept.as_ref().map(|kept| &kept.made).or(fresh.as_ref()) else {
                return;
            };
            let bias = bias.as_ref().map(Tensor::to_f32s);
            dense::read::<f32, _>(image, |x| {
                dense::fill::<f32, _>(out, |y| winograd::convolve(&computed, x, weights, bias.as_deref(), y));
            });
        });
        Ran::Yes
    }
}

impl Terms {
    fn of(call: &ExternCall) -> Option<Self> {
        let tensor = |index: usize| call.args.get(index).and_then(Value::as_tensor).cloned();
        let (way, options) = match call.op.def.lower {
            Lower::Extern(ExternKind::Conv) => (Way::Forward, 3),
            Lower::Extern(ExternKind::ConvBackward) => (Way::Backward, 4),
            _ => return None,
        };
        let (image, weight, out, bias) = match &call.results {
            Value::Tensor(out) => (tensor(0)?, tensor(1)?, out.clone(), tensor(2)),
            Value::List(results) => (tensor(0)?, tensor(2)?, results.first()?.as_tensor()?.clone(), None),
            _ => return None,
        };
        let each = |index: usize| pair(call.args.get(options + index)?);
        let plain = each(0)? == [1, 1] && each(2)? == [1, 1];
        let transposed = !matches!(call.args.get(options + 3)?, Value::Bool(false));
        let groups = call.args.get(options + 5)?.as_scalar()?.to_i64();
        let shape: Vec<i64> = weight.meta.shape.iter().filter_map(pyrite_sym::SymInt::as_int).collect();
        let single = [&image, &weight, &out].into_iter().chain(&bias).all(|place| place.meta.dtype == DType::F32);
        if !plain || transposed || groups != 1 || !single || image.meta.rank() != 4 || shape.get(2..) != Some(&[3, 3]) {
            return None;
        }
        let padding = each(1)?.map(|size| size as usize);
        let found = Self { way, image, weight, bias, out, padding };
        // Sizes that are known only in a call are looked at there.
        let known = |meta: &Meta| meta.shape.iter().map(pyrite_sym::SymInt::as_int).collect::<Option<Vec<_>>>();
        match (known(&found.image.meta), known(&found.out.meta)) {
            (Some(image), Some(out)) => found.geometries(&image, &shape, &out).map(|_| found),
            _ => Some(found),
        }
    }

    /// The convolution, and the one that is computed, which is another for a gradient; nothing where sizes do not suit.
    fn geometries(&self, image: &[i64], weight: &[i64], out: &[i64]) -> Option<(Geometry, Geometry)> {
        let (x, y) = if self.way == Way::Forward { (image, out) } else { (out, image) };
        let sizes = (0..2).all(|dim| y[dim + 2] + 2 == x[dim + 2] + 2 * self.padding[dim] as i64);
        if !sizes || x[0] != y[0] || x[1] != weight[1] || y[1] != weight[0] {
            return None;
        }
        let plane = |shape: &[i64]| [1, shape[2] as usize, shape[3] as usize];
        let convolution = Geometry {
            batch: x[0] as usize,
            groups: 1,
            channels: (weight[1] as usize, weight[0] as usize),
            input: plane(x),
            output: plane(y),
            kernel: [1, 3, 3],
            stride: [1; 3],
            padding: [0, self.padding[0], self.padding[1]],
            dilation: [1; 3],
        };
        let computed = if self.way == Way::Forward { convolution } else { winograd::backward(&convolution)? };
        winograd::suits(&computed).then_some((convolution, computed))
    }
}

/// Whether a step did its work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// It did.
    Yes,
    /// The call that it stands for has to.
    No,
}

/// The call for the gradients of weight and bias alone, if they are wanted beside that of the input.
fn rest(call: &ExternCall) -> Option<Box<ExternCall>> {
    let (Value::List(results), Value::List(mask)) = (&call.results, call.args.get(10)?) else {
        return None;
    };
    if !mask.iter().skip(1).any(|wanted| matches!(wanted, Value::Bool(true))) {
        return None;
    }
    let without = |values: &[Value<Place>], first: Value<Place>| {
        Value::List(std::iter::once(first).chain(values.iter().skip(1).cloned()).collect())
    };
    let mut rest = call.clone();
    rest.args[10] = without(mask, Value::Bool(false));
    rest.results = without(results, Value::None);
    Some(Box::new(rest))
}

/// A number for each of two dimensions.
fn pair(value: &Value<Place>) -> Option<[i64; 2]> {
    let Value::List(items) = value else {
        return None;
    };
    let number = |index: usize| items.get(index)?.as_scalar().map(pyrite_tensor::Scalar::to_i64);
    match items.len() {
        1 => Some([number(0)?; 2]),
        2 => Some([number(0)?, number(1)?]),
        _ => None,
    }
}
