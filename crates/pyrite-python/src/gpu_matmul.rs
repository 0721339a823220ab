//! Small matmuls and convolutions on a GPU by kernels of Pyrite's own, called with torch's tensors.
//!
//! What is worth it, and with which tile, is decided by whoever calls: libraries have larger tiles, which leave most of a device
//! idle where a matmul is small. A call whose operands do not lie as the kernel wants them gives `None`, and is torch's.

#![expect(unsafe_code, reason = "torch's memory and streams are raw pointers")]

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyrite_ptx::gemm::{Addresses, Dense, Gemm, Images, Sizes, Tile, Windows};
use pyrite_tensor::DType;

use crate::bridge::{Located, Shim};
use crate::gpu::{Place, address};
use crate::gpu_kernels::Kernels;

/// Matmuls of matrices, or of batches of them, and convolutions, in single precision.
#[pyclass(module = "pyrite._native", frozen, weakref)]
pub struct GpuMatmul {
    kernels: Kernels<Gemm>,
}

/// A tile by its number.
fn tile_of(number: usize) -> PyResult<Tile> {
    Tile::ALL.get(number).copied().ok_or_else(|| PyValueError::new_err(format!("there is no tile {number}")))
}

/// How an operand lies whose lines and steps are at these dimensions: what is dense, and how far apart the others are.
fn lies(found: &Located<'_>, lines: usize, steps: usize) -> Option<(Dense, i64)> {
    match (found.strides[lines], found.strides[steps]) {
        (apart, 1) => Some((Dense::Steps, apart)),
        (1, apart) => Some((Dense::Lines, apart)),
        _ => None,
    }
}

#[pymethods]
impl GpuMatmul {
    #[new]
    #[pyo3(signature = (*, interpret = false))]
    fn new(interpret: bool) -> Self {
        Self { kernels: Kernels::new(interpret) }
    }

    /// `lhs @ rhs + bias`, or `None`.
    #[pyo3(signature = (lhs, rhs, bias = None, *, tile = 0))]
    fn __call__<'py>(
        &self,
        lhs: &Bound<'py, PyAny>,
        rhs: &Bound<'py, PyAny>,
        bias: Option<&Bound<'py, PyAny>>,
        tile: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = lhs.py();
        let shim = Shim::get(py)?;
        let locate =
            |object| shim.locate(object).map_err(|_| PyTypeError::new_err("an operand of a matmul has no memory"));
        let (left, right, added) = (locate(lhs)?, locate(rhs)?, bias.map(locate).transpose()?);
        let operands: Vec<&Located<'_>> = [&left, &right].into_iter().chain(&added).collect();
        if !self.kernels.take(&operands) {
            return Ok(None);
        }
        let device = self.kernels.device_of(operands[0]);
        let Some((gemm, sizes)) = described(&left, &right, added.as_ref(), tile_of(tile)?) else { return Ok(None) };
        let place = Place::of(py, device)?;
        let shape: Vec<i64> = match left.sizes.len() {
            3 => vec![sizes.batch, sizes.rows, sizes.columns],
            _ => vec![sizes.rows, sizes.columns],
        };
        let strides = [sizes.rows * sizes.columns, sizes.columns, 1];
        let out = place.empty(&shape, &strides[3 - shape.len()..], DType::F32)?;
        let bias = added.as_ref().map_or(0, |added| added.data as u64);
        let addresses = Addresses { lhs: left.data as u64, rhs: right.data as u64, bias, out: address(shim, &out)? };
        if !gemm.takes(&sizes, &addresses) {
            return Ok(None);
        }
        let Some(launch) = gemm.launch(&sizes, &addresses) else { return Ok(Some(out)) };
        let count = sizes.batch * sizes.rows * sizes.columns;
        // SAFETY: the launch reads the operands, whose sizes were compared, and writes the result.
        unsafe { self.kernels.run(py, &place, (gemm, &|| gemm.text()), &launch, (&operands, (addresses.out, count))) }?;
        Ok(Some(out))
    }

    /// The convolution of images with windows, channel by channel, in parts of its channels: a tensor of one dimension more, whose
    /// parts add up to the result. `None` where its kernel cannot have it.
    #[pyo3(signature = (images, weights, *, stride, padding, parts = 1, tile = 0))]
    fn convolve<'py>(
        &self,
        images: &Bound<'py, PyAny>,
        weights: &Bound<'py, PyAny>,
        stride: [i64; 2],
        padding: [i64; 2],
        parts: i64,
        tile: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = images.py();
        let shim = Shim::get(py)?;
        let locate =
            |object| shim.locate(object).map_err(|_| PyTypeError::new_err("an operand of a convolution has no memory"));
        let (read, windows) = (locate(images)?, locate(weights)?);
        let operands = [&read, &windows];
        if !self.kernels.take(&operands) {
            return Ok(None);
        }
        let device = self.kernels.device_of(operands[0]);
        let ([count, channels, height, width], [made, of, tall, broad]) = (read.sizes, windows.sizes) else {
            return Ok(None);
        };
        let (count, channels, made) = (*count, *channels, *made);
        let steps = channels * tall * broad;
        let fits = channels == *of && parts > 0 && channels % parts == 0 && steps > 0;
        let steps_in = [(*height, stride[0], padding[0], *tall), (*width, stride[1], padding[1], *broad)];
        let made_pixels = steps_in.map(|(size, stride, padding, window)| {
            if stride > 0 && padding >= 0 { (size + 2 * padding - window).div_euclid(stride) + 1 } else { 0 }
        });
        if !fits || !operands.iter().all(|each| is_dense(each)) || made_pixels.iter().any(|size| *size <= 0) {
            return Ok(None);
        }
        let [rows, columns] = made_pixels;
        let results = count * made * rows * columns;
        let sizes = Sizes {
            batch: parts,
            rows: made,
            steps: steps / parts,
            columns: count * rows * columns,
            lhs: steps,
            rhs: 0,
            apart: [steps / parts, 0, results],
            images: Images { read: [*height, *width], made: made_pixels, stride, padding, channels },
        };
        let windows_of = Windows { height: *tall as u32, width: *broad as u32 };
        let (lhs, rhs) = (Dense::Steps, Dense::Lines);
        let gemm = Gemm { lhs, rhs, bias: false, tile: tile_of(tile)?, windows: Some(windows_of) };
        let place = Place::of(py, device)?;
        let shape = [parts, count, made, rows, columns];
        let strides = [results, made * rows * columns, rows * columns, columns, 1];
        let out = place.empty(&shape, &strides, DType::F32)?;
        let to = address(shim, &out)?;
        let addresses = Addresses { lhs: windows.data as u64, rhs: read.data as u64, bias: 0, out: to };
        if !gemm.takes(&sizes, &addresses) {
            return Ok(None);
        }
        let Some(launch) = gemm.launch(&sizes, &addresses) else { return Ok(Some(out)) };
        // SAFETY: the launch reads the operands, which are dense and whose sizes were compared, and writes the result.
        unsafe { self.kernels.run(py, &place, (gemm, &|| gemm.text()), &launch, (&operands, (to, parts * results))) }?;
        Ok(Some(out))
    }
}

/// Whether elements lie one behind the other.
fn is_dense(found: &Located<'_>) -> bool {
    let mut step = 1;
    found.sizes.iter().zip(found.strides).rev().all(|(size, stride)| {
        let lies = *size == 1 || *stride == step;
        step *= size;
        lies
    })
}

/// The kind and the sizes of a matmul; nothing if its kernel cannot have it.
fn described(
    left: &Located<'_>,
    right: &Located<'_>,
    added: Option<&Located<'_>>,
    tile: Tile,
) -> Option<(Gemm, Sizes)> {
    let dims = left.sizes.len();
    if !matches!(dims, 2 | 3) || right.sizes.len() != dims {
        return None;
    }
    let (rows, steps, columns) = (left.sizes[dims - 2], left.sizes[dims - 1], right.sizes[dims - 1]);
    let batch = if dims == 3 { left.sizes[0] } else { 1 };
    let matches = right.sizes[dims - 2] == steps && (dims == 2 || right.sizes[0] == batch);
    let row = added.is_none_or(|added| *added.sizes == [columns] && *added.strides == [1]);
    if !matches || !row || steps == 0 {
        return None;
    }
    let (lhs, lhs_apart) = lies(left, dims - 2, dims - 1)?;
    let (rhs, rhs_apart) = lies(right, dims - 1, dims - 2)?;
    let first = |found: &Located<'_>| if dims == 3 { found.strides[0] } else { 0 };
    let apart = [first(left), first(right), rows * columns];
    let sizes = Sizes { batch, rows, steps, columns, lhs: lhs_apart, rhs: rhs_apart, apart, images: Images::default() };
    Some((Gemm { lhs, rhs, bias: added.is_some(), tile, windows: None }, sizes))
}
