//! Convolutions: what they are given and give. The work is done by [`kernels::convolution`](pyrite_kernels::convolution).

use pyrite_ir::{
    Args, Call, Emit, ExternKind, Handle, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, args, invalid,
};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, MemoryFormat, Tensor};

use crate::derivatives::convolution as d;
use crate::rules::{image_strides, suggests_channels_last};
use pyrite_kernels::carried;
use pyrite_kernels::convolution::{Geometry, forward, into_windows, onto_weight};
use pyrite_kernels::gemm::Factor;
use pyrite_kernels::{Carrier, dense};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
        "A convolution over one to three dimensions, or its transpose.",
        convolution_infer,
        convolution,
    )
    .as_call(ExternKind::Conv).tags(&[Tag::Core])
    .tolerance(Tolerance::Times(8.0))
    .derivative(d::convolution)
    .samples(&[
        "f32[2, 3, 8, 8], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1",
        "f32[2, 4, 8, 7], f32[6, 2, 3, 2], None, [2, 1], [0, 1], [1, 2], False, [0, 0], 2",
        "f64[2, 3, 8], f64[4, 3, 3], None, [2], [1], [1], False, [0], 1",
        "f32[1, 2, 4, 5, 6], f32[3, 2, 2, 2, 2], f32[3], [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0, 0, 0], 1",
        "f32[2, 4, 5, 5], f32[4, 3, 3, 3], f32[6], [2, 2], [1, 1], [1, 1], True, [1, 1], 2",
        "f32[2, 3, 8, 8]<[192, 1, 24, 3], f32[4, 3, 1, 1], None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1",
        "bf16[2, 3, 8, 8], bf16[4, 3, 3, 3], None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1",
        "f32[0, 3, 8, 8], f32[4, 3, 3, 3], None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1",
    ]),
    OpDef::kernel(
        "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        "The gradients of a convolution's input, weight and bias, those that are wanted.",
        backward_infer,
        backward,
    )
    .as_call(ExternKind::ConvBackward).tags(&[Tag::Core])
    .tolerance(Tolerance::Times(8.0))
    .derivative(d::convolution_backward)
    .samples(&[
        "f32[2, 4, 8, 8], f32[2, 3, 8, 8], f32[4, 3, 3, 3], [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]",
        "f64[2, 6, 3, 7], f64[2, 4, 8, 7], f64[6, 2, 3, 2], None, [2, 1], [0, 1], [1, 2], False, [0, 0], 2, [True, True, False]",
        "f32[2, 6, 10, 10], f32[2, 4, 5, 5], f32[4, 3, 3, 3], [6], [2, 2], [1, 1], [1, 1], True, [1, 1], 2, [True, True, True]",
        "f32[2, 4, 8], f32[2, 3, 8], f32[4, 3, 3], [4], [1], [1], [1], False, [0], 1, [False, True, False]",
        "f32[2, 4, 8, 8]<[256, 1, 32, 4], f32[2, 3, 8, 8]<[192, 1, 24, 3], f32[4, 3, 1, 1], [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]",
    ]),
    OpDef::composite(
        "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        "A convolution over one dimension.",
        |e, a| conv(e, a, 1),
    )
    .samples(&["f32[2, 3, 8], f32[4, 3, 3], f32[4]", "f32[3, 8], f32[4, 3, 3]"]),
    OpDef::composite(
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        "A convolution over two dimensions.",
        |e, a| conv(e, a, 2),
    )
    .samples(&["f32[2, 3, 8, 8], f32[4, 3, 3, 3], f32[4], [2, 2], [1, 1]", "c64[2, 3, 8, 8], c64[4, 3, 3, 3]"]),
    OpDef::composite(
        "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        "A convolution over three dimensions.",
        |e, a| conv(e, a, 3),
    )
    .samples(&["f32[2, 3, 4, 4, 4], f32[4, 3, 2, 2, 2]"]),
    OpDef::composite(
        "aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        "A convolution over one dimension, padded by name.",
        |e, a| conv_padded(e, a, 1),
    )
    .samples(&["f32[2, 3, 8], f32[4, 3, 3], None, [1], 'same'"]),
    OpDef::composite(
        "aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        "A convolution over two dimensions, padded by name.",
        |e, a| conv_padded(e, a, 2),
    )
    .samples(&["f32[2, 3, 8, 8], f32[4, 3, 3, 3], f32[4], [1, 1], 'same'", "f32[2, 3, 8, 8], f32[4, 3, 3, 3]"]),
    OpDef::composite(
        "aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        "A convolution over three dimensions, padded by name.",
        |e, a| conv_padded(e, a, 3),
    )
    .samples(&["f32[2, 3, 4, 4, 4], f32[4, 3, 3, 3, 3], None, [1, 1, 1], 'same'"]),
    OpDef::composite(
        "aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
        "A transposed convolution over one dimension.",
        |e, a| conv_transpose(e, a, 1),
    )
    .samples(&["f32[2, 3, 8], f32[3, 4, 3], f32[4], [2]"]),
    OpDef::composite(
        "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor",
        "A transposed convolution over two dimensions.",
        |e, a| conv_transpose(e, a, 2),
    )
    .samples(&["f32[2, 3, 5, 5], f32[3, 4, 3, 3], f32[4], [2, 2], [1, 1], [1, 1]"]),
    OpDef::composite(
        "aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> Tensor",
        "A transposed convolution over three dimensions.",
        |e, a| conv_transpose(e, a, 3),
    )
    .samples(&["f32[2, 3, 3, 3, 3], f32[3, 4, 2, 2, 2]"]),
    OpDef::composite(
        "aten::_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
        "`convolution` with options of other devices, which do nothing here.",
        |e, a| e.call("aten.convolution.default", &a.values[..9]),
    )
    .samples(&["f32[2, 3, 8], f32[4, 3, 3], None, [1], [0], [1], False, [0], 1, False, False, False, False"]),
];

/// A list of one number per dimension; a single number counts for all.
fn per_dim(what: &str, list: Vec<SymInt>, dims: usize) -> Result<Vec<SymInt>, OpError> {
    match list.len() {
        1 => Ok(vec![list[0].clone(); dims]),
        len if len == dims => Ok(list),
        len => invalid!("{what} has {len} numbers for {dims} dimensions"),
    }
}

/// What a call says besides its tensors.
struct Options {
    stride: Vec<SymInt>,
    padding: Vec<SymInt>,
    dilation: Vec<SymInt>,
    transposed: bool,
    output_padding: Vec<SymInt>,
    groups: SymInt,
}

impl Options {
    /// Reads the six options that start at a position.
    fn read<T>(args: &Args<'_, T>, at: usize, dims: usize) -> Result<Self, OpError> {
        let options = Self {
            stride: per_dim("stride", args.syms(at)?, dims)?,
            padding: per_dim("padding", args.syms(at + 1)?, dims)?,
            dilation: per_dim("dilation", args.syms(at + 2)?, dims)?,
            transposed: args.bool(at + 3)?,
            output_padding: per_dim("output_padding", args.syms(at + 4)?, dims)?,
            groups: args.sym(at + 5)?,
        };
        let below = |list: &[SymInt], least: i64| list.iter().any(|v| v.is_lt(least));
        if below(&options.stride, 1) || below(&options.dilation, 1) || options.groups.is_lt(1) {
            invalid!("a convolution wants positive strides, dilations and groups");
        }
        if below(&options.padding, 0) || below(&options.output_padding, 0) {
            invalid!("a convolution cannot be padded by a negative number");
        }
        Ok(options)
    }
}

/// Checks operands against each other and returns the number of spatial dimensions.
fn check(x: &Meta, weight: &Meta) -> Result<usize, OpError> {
    if weight.rank() != x.rank() || !(3..=5).contains(&x.rank()) {
        invalid!("a convolution of {} dimensions by a weight of {}", x.rank(), weight.rank());
    }
    if x.dtype != weight.dtype {
        invalid!("a convolution of type {} by a weight of type {}", x.dtype, weight.dtype);
    }
    if weight.shape[2..].iter().any(|k| k.is_lt(1)) {
        invalid!("a convolution by an empty window");
    }
    Ok(x.rank() - 2)
}

/// Whether PyTorch's kernels for these operands answer channels-last with channels-last.
fn channels_last(x: &Meta, weight: &Meta, options: &Options) -> bool {
    if x.numel().is_eq(0) || weight.numel().is_eq(0) {
        return false;
    }
    match x.rank() {
        // One dimension is computed as two, of which the first has size 1; the input is made dense before.
        3 => {
            let shape = [&weight.shape[0], &weight.shape[1], &SymInt::Int(1), &weight.shape[2]].map(Clone::clone);
            let middle = &weight.shape[2] * &weight.stride[2];
            let stride = [&weight.stride[0], &weight.stride[1], &middle, &weight.stride[2]].map(Clone::clone);
            suggests_channels_last(&weight.view(&shape, &stride, SymInt::Int(0)))
        }
        4 => suggests_channels_last(x) || suggests_channels_last(weight),
        // Volumes of other types, with much output padding or with little to do go to a kernel that knows no
        // channels-last.
        _ => {
            let padded =
                options.output_padding.iter().zip(&options.stride).any(|(padding, stride)| !padding.is_lt(stride));
            let small = x.dtype == DType::F32
                && options.groups.is_eq(1)
                && x.shape[0].is_lt(2)
                && weight.shape[3..].iter().any(|k| k.is_lt(4))
                && x.shape[1..4].iter().fold(SymInt::Int(1), |n, d| n * d).is_lt(20_481);
            matches!(x.dtype, DType::F32 | DType::BF16)
                && !(options.transposed && padded)
                && !small
                && (suggests_channels_last(x) || suggests_channels_last(weight))
        }
    }
}

/// Strides of a result, dense, the channels fastest if asked for.
fn strides(shape: &[SymInt], channels_last: bool) -> SymDims {
    if shape.len() == 3 && channels_last {
        return pyrite_ir::meta::strides_in_order(shape, &[0, 2, 1]);
    }
    image_strides(shape, if channels_last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous })
}

fn convolution_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, weight, bias) = (args.tensor(0)?, args.tensor(1)?, args.opt_tensor(2)?);
    let dims = check(x, weight)?;
    let options = Options::read(args, 3, dims)?;
    if options.transposed && x.dtype.is_integral() && x.dtype != DType::I64 {
        invalid!("a transposed convolution is not defined for {}", x.dtype);
    }
    let mut shape: SymDims = [x.shape[0].clone()].into_iter().collect();
    let channels = if options.transposed { &weight.shape[1] * &options.groups } else { weight.shape[0].clone() };
    let wanted = if options.transposed { weight.shape[0].clone() } else { &weight.shape[1] * &options.groups };
    if !x.shape[1].is_eq(&wanted) {
        invalid!(
            "a convolution by a weight of shape {:?} in {} groups wants {wanted} channels, not {}",
            weight.shape,
            options.groups,
            x.shape[1]
        );
    }
    if !weight.shape[0].modulo(&options.groups).is_eq(0) {
        invalid!("{} channels cannot be split into {} groups", weight.shape[0], options.groups);
    }
    if let Some(bias) = bias
        && (bias.rank() != 1 || !bias.shape[0].is_eq(&channels) || bias.dtype != x.dtype)
    {
        invalid!(
            "a bias of type {} and shape {:?} for {channels} channels of type {}",
            bias.dtype,
            bias.shape,
            x.dtype
        );
    }
    // Without input channels PyTorch's result has none either.
    shape.push(if x.shape[1].is_eq(0) { SymInt::Int(0) } else { channels });
    for d in 0..dims {
        let (size, kernel) = (&x.shape[d + 2], &weight.shape[d + 2]);
        let reach = &options.dilation[d] * (kernel - 1);
        let padding = &options.padding[d] * 2;
        let out = if options.transposed {
            (size - 1) * &options.stride[d] - padding + reach + &options.output_padding[d] + 1
        } else {
            (size + padding - reach - 1).floor_div(&options.stride[d]) + 1
        };
        if out.is_lt(1) {
            invalid!("a window of {kernel} over a size of {size} gives a size of {out}, which is too small");
        }
        if options.transposed && !options.output_padding[d].is_lt(options.stride[d].max(&options.dilation[d])) {
            invalid!("output padding must be smaller than stride or dilation");
        }
        shape.push(out);
    }
    let stride = strides(&shape, channels_last(x, weight, &options));
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&shape, &stride, x.dtype) }.into())
}

/// The sizes of a convolution from those of its tensors.
fn geometry(x: &[i64], weight: &[i64], y: &[i64], options: &Options) -> Result<Geometry, OpError> {
    let known = |list: &[SymInt], rest: usize| -> Result<[usize; 3], OpError> {
        let mut result = [rest; 3];
        for (slot, value) in result[3 - list.len()..].iter_mut().zip(list) {
            *slot = value.as_int().ok_or_else(|| OpError::fault("a symbolic option at run time"))? as usize;
        }
        Ok(result)
    };
    let sizes = |list: &[i64]| {
        let mut result = [1; 3];
        for (slot, value) in result[5 - list.len()..].iter_mut().zip(&list[2..]) {
            *slot = *value as usize;
        }
        result
    };
    let groups = options.groups.as_int().ok_or_else(|| OpError::fault("a symbolic option at run time"))? as usize;
    Ok(Geometry {
        batch: x[0] as usize,
        groups,
        channels: (weight[1] as usize, weight[0] as usize / groups),
        input: sizes(x),
        output: sizes(y),
        kernel: sizes(weight),
        stride: known(&options.stride, 1)?,
        padding: known(&options.padding, 0)?,
        dilation: known(&options.dilation, 1)?,
    })
}

fn convolution(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, weight, bias) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.opt_tensor(2)?);
    let out = call.allocate(0)?;
    let options = Options::read(&call.args, 3, x.rank() - 2)?;
    if x.dtype() == DType::Bool {
        invalid!("a convolution of bools");
    }
    let (small, large) = if options.transposed { (x, &out) } else { (&out, x) };
    let g = geometry(large.shape(), weight.shape(), small.shape(), &options)?;
    carried!(carrier(x.dtype(), &g), T => {
        let bias = bias.map(T::load);
        dense::read::<T, _>(x, |x| dense::read::<T, _>(weight, |w| dense::fill::<T, _>(&out, |y| {
            if options.transposed {
                into_windows(&g, x, w, y);
                if let Some(bias) = &bias {
                    add_bias(y, bias, g.planes().0);
                }
            } else {
                forward(&g, x, w, bias.as_deref(), y);
            }
        })));
    });
    Ok(out.into())
}

/// The type to compute in. A convolution of few products is summed in double precision: it costs little, and the order
/// of summation then does not matter. That matters less for short sums, and a convolution of points is a matmul, which is
/// summed as matmuls are: it reads each weight so few times that converting weights would take most of the time.
fn carrier(dtype: DType, g: &Geometry) -> DType {
    let few = if g.has_short_sums() { 1 << 16 } else { 1 << 20 };
    if dtype.is_float() && g.products() <= few && !g.is_of_points() { DType::F64 } else { dtype }
}

fn add_bias<T: Factor>(y: &mut [T], bias: &[T], plane: usize) {
    for (channel, y) in y.chunks_mut(plane.max(1)).enumerate() {
        let bias = bias[channel % bias.len()];
        y.iter_mut().for_each(|y| *y = y.plus(bias));
    }
}

/// Which gradients are wanted.
fn mask<T>(args: &Args<'_, T>) -> Result<[bool; 3], OpError> {
    match args.value(10) {
        Value::List(items) => match items.as_slice() {
            [Value::Bool(x), Value::Bool(weight), Value::Bool(bias)] => Ok([*x, *weight, *bias]),
            _ => invalid!("output_mask wants three bools"),
        },
        _ => invalid!("output_mask wants three bools"),
    }
}

fn backward_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (grad, x, weight) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let dims = check(x, weight)?;
    let options = Options::read(args, 4, dims)?;
    let last = channels_last(x, weight, &options);
    let like = |meta: &Meta| Meta {
        device: x.device.clone(),
        ..Meta::strided(&meta.shape, &strides(&meta.shape, last), x.dtype)
    };
    if grad.rank() != x.rank() {
        invalid!("a gradient of {} dimensions for a convolution of {}", grad.rank(), x.rank());
    }
    let [of_x, of_weight, of_bias] = mask(args)?;
    Ok(Value::List(vec![
        of_x.then(|| like(x)).into(),
        of_weight.then(|| like(weight)).into(),
        of_bias.then(|| x.fresh(&[grad.shape[1].clone()], x.dtype)).into(),
    ]))
}

fn backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, x, weight) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let options = Options::read(&call.args, 4, x.rank() - 2)?;
    let [of_x, of_weight, of_bias] = mask(&call.args)?;
    let place = |wanted: bool, index: usize| wanted.then(|| call.allocate(index)).transpose();
    let (to_x, to_weight, to_bias) = (place(of_x, 0)?, place(of_weight, 1)?, place(of_bias, 2)?);
    let (small, large) = if options.transposed { (x, grad) } else { (grad, x) };
    let g = geometry(large.shape(), weight.shape(), small.shape(), &options)?;
    let fits = |t: &Tensor, channels: usize, plane: usize| t.numel() == g.batch * g.groups * channels * plane;
    if !fits(small, g.channels.1, g.planes().1) || !fits(large, g.channels.0, g.planes().0) {
        invalid!("the shapes {:?}, {:?} and {:?} are of no convolution", grad.shape(), x.shape(), weight.shape());
    }
    carried!(carrier(x.dtype(), &g), T => {
        dense::read::<T, _>(grad, |dy| {
            if let Some(to) = &to_x {
                dense::read::<T, _>(weight, |w| dense::fill::<T, _>(to, |dx| {
                    if options.transposed { forward(&g, dy, w, None, dx) } else { into_windows(&g, dy, w, dx) }
                }));
            }
            if let Some(to) = &to_weight {
                dense::read::<T, _>(x, |x| dense::fill::<T, _>(to, |dw| {
                    if options.transposed { onto_weight(&g, x, dy, dw) } else { onto_weight(&g, dy, x, dw) }
                }));
            }
            if let Some(to) = &to_bias {
                let channels = to.numel();
                let plane = grad.numel() / (g.batch * channels).max(1);
                dense::fill::<T, _>(to, |db| {
                    db.fill(T::ZERO);
                    for (at, row) in dy.chunks(plane.max(1)).enumerate() {
                        db[at % channels] = db[at % channels].plus(sum(row));
                    }
                });
            }
        });
    });
    Ok(Value::List(vec![to_x.into(), to_weight.into(), to_bias.into()]))
}

/// A sum by halves, so that its error grows with the logarithm of the length only.
fn sum<T: Factor>(values: &[T]) -> T {
    if values.len() <= 64 {
        return values.iter().fold(T::ZERO, |sum, v| sum.plus(*v));
    }
    let (left, right) = values.split_at(values.len() / 2);
    sum(left).plus(sum(right))
}

/// Adds a batch dimension to an input that has none; says whether it did.
fn batched(e: &mut dyn Emit, x: Handle, dims: usize) -> Result<(Handle, bool), OpError> {
    if e.rank(x) == dims + 1 {
        return Ok((e.one("aten.unsqueeze.default", args![x, 0])?, true));
    }
    Ok((x, false))
}

fn unbatched(e: &mut dyn Emit, y: Handle, added: bool) -> Result<Value<Handle>, OpError> {
    Ok(if added { e.one("aten.squeeze.dim", args![y, 0])? } else { y }.into())
}

fn conv(e: &mut dyn Emit, a: &Args<'_, Handle>, dims: usize) -> Result<Value<Handle>, OpError> {
    let (x, added) = batched(e, *a.tensor(0)?, dims)?;
    let none = Value::from(vec![0i64; dims]);
    let [weight, bias, stride, padding, dilation, groups] = [1, 2, 3, 4, 5, 6].map(|at| a.value(at).clone());
    let y = e.one(
        "aten.convolution.default",
        &[x.into(), weight, bias, stride, padding, dilation, false.into(), none, groups],
    )?;
    unbatched(e, y, added)
}

fn conv_padded(e: &mut dyn Emit, a: &Args<'_, Handle>, dims: usize) -> Result<Value<Handle>, OpError> {
    let (mut x, added) = batched(e, *a.tensor(0)?, dims)?;
    let weight = *a.tensor(1)?;
    let (stride, dilation) = (per_dim("stride", a.syms(3)?, dims)?, per_dim("dilation", a.syms(5)?, dims)?);
    if e.rank(weight) != dims + 2 {
        invalid!("a convolution over {dims} dimensions by a weight of {}", e.rank(weight));
    }
    let mut padding = vec![SymInt::Int(0); dims];
    match a.str(4)? {
        "valid" => {}
        "same" => {
            if stride.iter().any(|s| !s.is_eq(1)) {
                invalid!("padding 'same' wants strides of 1");
            }
            let kernel = e.shape(weight);
            // What cannot be split evenly is padded at the end beforehand.
            let mut uneven = Vec::new();
            for d in 0..dims {
                let total = &dilation[d] * (&kernel[d + 2] - 1);
                padding[d] = total.floor_div(&SymInt::Int(2));
                uneven.push(total - &padding[d] * 2);
            }
            if uneven.iter().any(|extra| !extra.is_eq(0)) {
                let pads: Vec<SymInt> = uneven.iter().rev().flat_map(|extra| [SymInt::Int(0), extra.clone()]).collect();
                x = e.one("aten.constant_pad_nd.default", args![x, pads, 0])?;
            }
        }
        other => invalid!("padding must be 'valid' or 'same', not '{other}'"),
    }
    let none = vec![0i64; dims];
    let (bias, groups) = (a.value(2).clone(), a.value(6).clone());
    let y = e.one(
        "aten.convolution.default",
        &[
            x.into(),
            weight.into(),
            bias,
            stride.into(),
            padding.into(),
            dilation.into(),
            false.into(),
            none.into(),
            groups,
        ],
    )?;
    unbatched(e, y, added)
}

fn conv_transpose(e: &mut dyn Emit, a: &Args<'_, Handle>, dims: usize) -> Result<Value<Handle>, OpError> {
    let (x, added) = batched(e, *a.tensor(0)?, dims)?;
    let [weight, bias, stride, padding, output_padding, groups, dilation] =
        [1, 2, 3, 4, 5, 6, 7].map(|at| a.value(at).clone());
    let y = e.one(
        "aten.convolution.default",
        &[x.into(), weight, bias, stride, padding, dilation, true.into(), output_padding, groups],
    )?;
    unbatched(e, y, added)
}
