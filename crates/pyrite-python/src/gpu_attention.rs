//! Attention on a GPU by a kernel of Pyrite's own, called with torch's tensors.
//!
//! What is worth it is decided by whoever calls. A call whose operands do not lie as the kernel wants them gives `None`, and is
//! torch's.

#![expect(unsafe_code, reason = "torch's memory and streams are raw pointers")]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyrite_ptx::attention::{Addresses, Attention, Mask, Sizes};
use pyrite_tensor::DType;

use crate::bridge::{Located, Shim};
use crate::gpu::{Place, address};
use crate::gpu_kernels::Kernels;

/// Attention in single precision.
#[pyclass(module = "pyrite._native", frozen, weakref)]
pub struct GpuAttention {
    kernels: Kernels<Attention>,
}

#[pymethods]
impl GpuAttention {
    #[new]
    #[pyo3(signature = (*, interpret = false))]
    fn new(interpret: bool) -> Self {
        Self { kernels: Kernels::new(interpret) }
    }

    /// `softmax(q @ k.mT * scale + bias) @ v` with these strides, or `None`. Tensors are `[batch, heads, rows, elements]`.
    #[pyo3(signature = (q, k, v, bias, *, causal, scale, strides))]
    #[expect(clippy::too_many_arguments, reason = "those of the operator")]
    fn __call__<'py>(
        &self,
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
        v: &Bound<'py, PyAny>,
        bias: Option<&Bound<'py, PyAny>>,
        causal: bool,
        scale: f64,
        strides: Vec<i64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = q.py();
        let shim = Shim::get(py)?;
        let locate =
            |object| shim.locate(object).map_err(|_| PyTypeError::new_err("an operand of attention has no memory"));
        let (queries, keys, values) = (locate(q)?, locate(k)?, locate(v)?);
        let added = bias.map(locate).transpose()?;
        let operands: Vec<&Located<'_>> = [&queries, &keys, &values].into_iter().chain(&added).collect();
        if !self.kernels.take(&operands) {
            return Ok(None);
        }
        let device = self.kernels.device_of(operands[0]);
        if operands.iter().any(|each| each.sizes.len() != 4) || strides.len() != 4 {
            return Ok(None);
        }
        let (shape, size) = (queries.sizes, queries.sizes[3]);
        let like = [shape[0], shape[1], keys.sizes[2], size];
        let scores = [shape[0], shape[1], shape[2], keys.sizes[2]];
        let dense = [queries.strides[3], keys.strides[3], values.strides[3], strides[3]] == [1; 4];
        let fits = *keys.sizes == like && *values.sizes == like && dense;
        let repeats =
            |added: &Located<'_>| added.sizes.iter().zip(scores).all(|(size, all)| *size == all || *size == 1);
        if !fits || !added.as_ref().is_none_or(repeats) {
            return Ok(None);
        }
        let mask = if causal { Mask::Causal } else { Mask::None };
        let kind = Attention { size, mask, bias: added.is_some() };
        // A step along what there is only one of is never made.
        let steps = |sizes: &[i64], strides: &[i64]| [0, 1, 2].map(|dim| if sizes[dim] > 1 { strides[dim] } else { 0 });
        let all = [(&queries.sizes, &queries.strides), (&keys.sizes, &keys.strides), (&values.sizes, &values.strides)];
        let [a, b, c] = all.map(|(sizes, strides)| steps(sizes, strides));
        let sizes = Sizes {
            batch: shape[0],
            heads: shape[1],
            queries: shape[2],
            keys: keys.sizes[2],
            apart: [a, b, c, steps(shape, &strides)],
            bias: added.as_ref().map_or([0; 4], |added| {
                [0, 1, 2, 3].map(|dim: usize| if added.sizes[dim] > 1 { added.strides[dim] } else { 0 })
            }),
        };
        let place = Place::of(py, device)?;
        let out = place.empty(shape, &strides, DType::F32)?;
        let to = address(shim, &out)?;
        let tensors = [queries.data as u64, keys.data as u64, values.data as u64, to];
        let addresses = Addresses { tensors, bias: added.as_ref().map_or(0, |added| added.data as u64) };
        if !kind.takes(&sizes, &addresses) {
            return Ok(None);
        }
        let Some(launch) = kind.launch(&sizes, &addresses, scale as f32) else { return Ok(Some(out)) };
        let count: i64 = shape.iter().product();
        // SAFETY: the launch reads the operands, whose sizes were compared, and writes the result.
        unsafe { self.kernels.run(py, &place, (kind, &|| kind.text()), &launch, (&operands, (to, count))) }?;
        Ok(Some(out))
    }
}
