//! Small matmuls on a GPU by a kernel of Pyrite's own, called with torch's tensors.
//!
//! What is worth it is decided by whoever calls: libraries have larger tiles, which leave most of a device idle where a matmul
//! is small. A call whose operands do not lie as the kernel wants them gives `None`, and is torch's.

#![expect(unsafe_code, reason = "torch's memory and streams are raw pointers")]

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyrite_codegen::gpu::{Gemm, GpuGemm};
use pyrite_compiler::gpu;
use pyrite_ptx::gemm::{Addresses, Dense, Sizes};
use pyrite_ptx::interp::{Module, Region};
use pyrite_tensor::DType;

use crate::bridge::{Located, Shim};
use crate::errors;
use crate::gpu::{Engine, Place, address};

/// Matmuls of matrices, or of batches of them, in single precision.
#[pyclass(module = "pyrite._native", frozen, weakref)]
pub struct GpuMatmul {
    engine: Engine,
    /// What was loaded on each device.
    loaded: Mutex<Vec<(i32, Gemm, Arc<GpuGemm>)>>,
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
        Self { engine: if interpret { Engine::Interpreted } else { Engine::Device }, loaded: Mutex::default() }
    }

    /// `lhs @ rhs + bias`, or `None`.
    #[pyo3(signature = (lhs, rhs, bias = None))]
    fn __call__<'py>(
        &self,
        lhs: &Bound<'py, PyAny>,
        rhs: &Bound<'py, PyAny>,
        bias: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = lhs.py();
        let shim = Shim::get(py)?;
        let locate =
            |object| shim.locate(object).map_err(|_| PyTypeError::new_err("an operand of a matmul has no memory"));
        let (left, right, added) = (locate(lhs)?, locate(rhs)?, bias.map(locate).transpose()?);
        let device = (self.engine == Engine::Device).then_some(left.index);
        let fits = |each: &Located<'_>| {
            each.is_cuda == device.is_some() && each.index == left.index && each.dtype == Some(DType::F32)
        };
        if ![&left, &right].into_iter().chain(&added).all(fits) {
            return Ok(None);
        }
        let Some((gemm, sizes)) = described(&left, &right, added.as_ref()) else { return Ok(None) };
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
        if let Some(device) = device {
            let own = self.on(py, device, gemm)?;
            let stream = place.stream()?;
            // SAFETY: torch's current stream belongs to the primary context of the device and outlives the call. Memory
            // comes from torch: its allocator gives it to others only behind this work, in the order of the stream.
            let done = unsafe { own.enqueue(&launch, &own.context().foreign_stream(stream)) };
            done.map_err(|error| errors::failed(&error.into(), None))?;
            return Ok(Some(out));
        }
        let region = |each: &Located<'_>| {
            let last: i64 = each.sizes.iter().zip(each.strides).map(|(size, stride)| (size - 1) * stride).sum();
            Region { start: each.data as u64, bytes: (last + 1) as u64 * 4, writable: false }
        };
        let mut regions: Vec<Region> = [&left, &right].into_iter().chain(&added).map(region).collect();
        let bytes = (sizes.batch * sizes.rows * sizes.columns * 4) as u64;
        regions.push(Region { start: addresses.out, bytes, writable: true });
        let module = Module::parse(&gemm.text()).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        // SAFETY: the regions are the memory of tensors that the caller and this function hold.
        let done = unsafe { module.run(&launch, &regions) };
        done.map_err(|trap| PyRuntimeError::new_err(format!("the kernel of a matmul is wrong: {trap}")))?;
        Ok(Some(out))
    }
}

/// The kind and the sizes of a matmul; nothing if its kernel cannot have it.
fn described(left: &Located<'_>, right: &Located<'_>, added: Option<&Located<'_>>) -> Option<(Gemm, Sizes)> {
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
    let sizes = Sizes { batch, rows, steps, columns, lhs: lhs_apart, rhs: rhs_apart, apart };
    Some((Gemm { lhs, rhs, bias: added.is_some() }, sizes))
}

impl GpuMatmul {
    /// A kind of GEMM on a device.
    fn on(&self, py: Python<'_>, device: i32, gemm: Gemm) -> PyResult<Arc<GpuGemm>> {
        let known = |(on, of, _): &&(i32, Gemm, Arc<GpuGemm>)| *on == device && *of == gemm;
        if let Some((_, _, own)) = self.loaded.lock().iter().find(known) {
            return Ok(own.clone());
        }
        let made = py.detach(|| errors::guarded(|| Ok(gpu::load_gemm(gemm, device as usize)?)));
        let own = Arc::new(made.map_err(|error| errors::failed(&error, None))?);
        self.loaded.lock().push((device, gemm, own.clone()));
        Ok(own)
    }
}
