//! Fourier transforms of real and complex tensors.
//!
//! A transform's result is dense, with the dimensions that are not transformed slowest, in the order of the argument's
//! strides, and the transformed ones fastest.

use num_complex::Complex64;
use pyrite_ir::meta::strides_in_order;
use pyrite_ir::{Args, Call, Meta, OpDef, OpError, SymDims, Tag, Value, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use crate::derivatives::fft as d;
use crate::rules::{preserved_strides, wrap_dims};
use pyrite_kernels::fourier::{Direction, along};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
        "The discrete Fourier transform of complex numbers over some dimensions.",
        c2c_infer,
        c2c,
    )
    .derivative(d::c2c)
    .samples(&[
        "c64[3, 4], [0], 0, True",
        "c128[2, 3, 5], [2, 0], 1, False",
        "c64[2, 3, 4]<[1, 8, 2], [0, 1, 2], 2, True",
        "c64[2, 0], [0], 0, True",
        "c64[5], [], 1, True",
    ]),
    OpDef::kernel(
        "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        "The discrete Fourier transform of real numbers; `onesided` leaves out the half that follows by symmetry.",
        r2c_infer,
        r2c,
    )
    .derivative(d::r2c)
    .tags(&[Tag::Core])
    .samples(&[
        "f32[3, 4], [1], 0, True",
        "f64[2, 3, 5], [0, 2], 1, False",
        "f32[4, 3]<[1, 4], [0], 2, True",
        "f64[37], [0], 0, True",
    ]),
    OpDef::kernel(
        "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
        "The real numbers whose one-sided transform this is; `last_dim_size` tells even from odd lengths.",
        c2r_infer,
        c2r,
    )
    .derivative(d::c2r)
    .tags(&[Tag::Core])
    .samples(&[
        "c64[3, 4], [1], 0, 6",
        "c64[3, 4], [0, 1], 2, 7",
        "c128[4, 3]<[1, 4], [1, 0], 1, 7",
        "c64[1], [0], 1, 1",
    ]),
];

/// More dimensions at once than this are done in several steps, whose layout is not described here.
const MOST_DIMS: usize = 7;

fn check_normalization(mode: i64) -> Result<(), OpError> {
    if !(0..=2).contains(&mode) {
        invalid!("normalization must be 0, 1 or 2, not {mode}");
    }
    Ok(())
}

/// The dimensions to transform, counted from the front.
fn transformed<T>(args: &Args<'_, T>, rank: usize) -> Result<Vec<usize>, OpError> {
    let dims = args.ints(1)?;
    if rank == 0 && !dims.is_empty() {
        invalid!("a Fourier transform of a tensor without dimensions");
    }
    if dims.len() > MOST_DIMS {
        unsupported!("a Fourier transform over {} dimensions at once", dims.len());
    }
    check_normalization(args.int(2)?)?;
    wrap_dims(&dims, rank)
}

/// Dimensions from the largest stride to the smallest; equal ones keep their order.
fn by_stride(dims: &mut [usize], stride: &SymDims) {
    pyrite_ir::meta::sort_dims(dims, |a, b| stride[a].is_gt(&stride[b]));
}

/// The strides of a result of the given shape: kept dimensions by stride, then the transformed ones.
fn result_strides(meta: &Meta, shape: &[SymInt], transformed: &[usize]) -> SymDims {
    let mut order: Vec<usize> = (0..meta.rank()).filter(|d| !transformed.contains(d)).collect();
    by_stride(&mut order, &meta.stride);
    order.extend(transformed);
    strides_in_order(shape, &order)
}

fn c2c_meta(meta: &Meta, mut dims: Vec<usize>) -> Meta {
    by_stride(&mut dims, &meta.stride);
    let stride = if dims.is_empty() { preserved_strides(meta) } else { result_strides(meta, &meta.shape, &dims) };
    Meta { device: meta.device.clone(), ..Meta::strided(&meta.shape, &stride, meta.dtype) }
}

fn c2c_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let meta = args.tensor(0)?;
    if !meta.dtype.is_complex() {
        invalid!("_fft_c2c takes complex numbers, not {}", meta.dtype);
    }
    Ok(c2c_meta(meta, transformed(args, meta.rank())?).into())
}

fn r2c_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let meta = args.tensor(0)?;
    if !matches!(meta.dtype, DType::F32 | DType::F64) {
        invalid!("_fft_r2c takes f32 or f64, not {}", meta.dtype);
    }
    let mut dims = transformed(args, meta.rank())?;
    let Some(last) = dims.pop() else { invalid!("_fft_r2c needs a dimension") };
    let mut shape = meta.shape.clone();
    if shape[last].is_lt(1) {
        invalid!("a Fourier transform of no numbers");
    }
    if args.bool(3)? {
        shape[last] = shape[last].floor_div(&SymInt::Int(2)) + 1;
    }
    by_stride(&mut dims, &meta.stride);
    dims.push(last);
    let stride = result_strides(meta, &shape, &dims);
    Ok(Meta { device: meta.device.clone(), ..Meta::strided(&shape, &stride, meta.dtype.to_complex()) }.into())
}

fn c2r_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let meta = args.tensor(0)?;
    if !meta.dtype.is_complex() {
        invalid!("_fft_c2r takes complex numbers, not {}", meta.dtype);
    }
    let mut dims = transformed(args, meta.rank())?;
    let Some(last) = dims.pop() else { invalid!("_fft_c2r needs a dimension") };
    let size = args.sym(3)?;
    let half = size.floor_div(&SymInt::Int(2)) + 1;
    if size.is_lt(1) || (!meta.shape[last].is_eq(&half) && !meta.shape[last].is_eq(&size)) {
        invalid!("{} transformed numbers cannot come from {size} real ones", meta.shape[last]);
    }
    // All dimensions but the last are transformed first; the layout follows from that of the intermediate result.
    let between = if dims.is_empty() { meta.clone() } else { c2c_meta(meta, dims) };
    let mut shape = meta.shape.clone();
    shape[last] = size;
    let stride = result_strides(&between, &shape, &[last]);
    Ok(Meta { device: meta.device.clone(), ..Meta::strided(&shape, &stride, meta.dtype.to_real()) }.into())
}

/// What every element is multiplied with, for a transform of so many numbers.
fn scale(mode: i64, count: usize) -> f64 {
    match mode {
        1 => 1.0 / (count as f64).sqrt(),
        2 => 1.0 / count as f64,
        _ => 1.0,
    }
}

fn sizes(shape: &[i64]) -> Vec<usize> {
    shape.iter().map(|d| *d as usize).collect()
}

fn c2c(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let dims = transformed(&call.args, input.rank())?;
    let direction = if call.args.bool(3)? { Direction::Forward } else { Direction::Backward };
    let shape = sizes(input.shape());
    let mut data = input.to_c128s();
    for dim in &dims {
        along(&mut data, &shape, *dim, direction);
    }
    if !dims.is_empty() {
        let factor = scale(call.args.int(2)?, dims.iter().map(|d| shape[*d]).product());
        data.iter_mut().for_each(|v| *v *= factor);
    }
    let out = call.allocate(0)?;
    out.write_c128s(&data);
    Ok(out.into())
}

fn r2c(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let dims = transformed(&call.args, input.rank())?;
    let shape = sizes(input.shape());
    let factor = scale(call.args.int(2)?, dims.iter().map(|d| shape[*d]).product());
    let mut data: Vec<Complex64> = input.to_f64s().into_iter().map(|v| Complex64::new(v * factor, 0.0)).collect();
    for dim in dims.iter().rev() {
        along(&mut data, &shape, *dim, Direction::Forward);
    }
    let out = call.allocate(0)?;
    match dims.last() {
        Some(last) => out.write_c128s(&cut(&data, &shape, *last, out.shape()[*last] as usize)),
        None => out.write_c128s(&data),
    }
    Ok(out.into())
}

/// The first `keep` slices along a dimension.
fn cut(data: &[Complex64], shape: &[usize], dim: usize, keep: usize) -> Vec<Complex64> {
    let inner: usize = shape[dim + 1..].iter().product();
    let block = shape[dim] * inner;
    if block == 0 {
        return Vec::new();
    }
    data.chunks(block).flat_map(|block| &block[..keep * inner]).copied().collect()
}

fn c2r(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let dims = transformed(&call.args, input.rank())?;
    let out = call.allocate(0)?;
    let Some((&last, others)) = dims.split_last() else { invalid!("_fft_c2r needs a dimension") };
    let mut shape = sizes(input.shape());
    let mut data = input.to_c128s();
    for dim in others {
        along(&mut data, &shape, *dim, Direction::Backward);
    }
    let size = out.shape()[last] as usize;
    let half = size / 2 + 1;
    let inner: usize = shape[last + 1..].iter().product();
    let block = shape[last] * inner;
    let mut full = Vec::with_capacity(out.numel());
    if block > 0 {
        for block in data.chunks(block) {
            full.extend_from_slice(&block[..half.min(size) * inner]);
            for k in half..size {
                let mirrored = (size - k) * inner;
                full.extend(block[mirrored..mirrored + inner].iter().map(Complex64::conj));
            }
        }
    }
    shape[last] = size;
    along(&mut full, &shape, last, Direction::Backward);
    let factor = scale(call.args.int(2)?, dims.iter().map(|d| shape[*d]).product());
    out.write_f64s(&full.iter().map(|v| v.re * factor).collect::<Vec<_>>());
    Ok(out.into())
}
