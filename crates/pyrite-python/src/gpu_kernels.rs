//! Kernels that are no loops (matmuls, convolutions, attention), loaded on each device that they are called for, or interpreted.

#![expect(unsafe_code, reason = "torch's memory and streams are raw pointers")]

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyrite_codegen::gpu::GpuKernel;
use pyrite_compiler::gpu;
use pyrite_ptx::Launch;
use pyrite_ptx::interp::{Module, Region};
use pyrite_tensor::DType;

use crate::bridge::Located;
use crate::errors;
use crate::gpu::{Engine, Place};

/// Kernels of a kind `K`, by device.
pub(crate) struct Kernels<K> {
    engine: Engine,
    loaded: Mutex<Vec<(i32, K, Arc<GpuKernel>)>>,
}

impl<K: Copy + PartialEq> Kernels<K> {
    pub(crate) fn new(interpret: bool) -> Self {
        Self { engine: if interpret { Engine::Interpreted } else { Engine::Device }, loaded: Mutex::default() }
    }

    /// Whether operands are in single precision, and all where these kernels run.
    pub(crate) fn take(&self, operands: &[&Located<'_>]) -> bool {
        operands.iter().all(|each| {
            each.is_cuda == (self.engine == Engine::Device)
                && each.index == operands[0].index
                && each.dtype == Some(DType::F32)
        })
    }

    /// The device of an operand; nothing for the CPU, where kernels are interpreted.
    pub(crate) fn device_of(&self, operand: &Located<'_>) -> Option<i32> {
        (self.engine == Engine::Device).then_some(operand.index)
    }

    /// Runs a launch of a kind: on the place's device, in torch's current stream, or in the interpreter.
    ///
    /// # Safety
    /// The launch touches the operands and the result only, which are tensors that the caller holds, of the place's device.
    pub(crate) unsafe fn run(
        &self,
        py: Python<'_>,
        place: &Place<'_>,
        (kind, text): (K, &dyn Fn() -> String),
        launch: &Launch,
        (operands, result): (&[&Located<'_>], (u64, i64)),
    ) -> PyResult<()> {
        if let Some(device) = place.device {
            let own = self.on(py, device, kind, text, &launch.entry)?;
            let stream = place.stream()?;
            // SAFETY: torch's current stream belongs to the primary context of the device and outlives the call. Memory
            // comes from torch: its allocator gives it to others only behind this work, in the order of the stream.
            let done = unsafe { own.enqueue(launch, &own.context().foreign_stream(stream)) };
            return done.map_err(|error| errors::failed(&error.into(), None));
        }
        let region = |each: &&Located<'_>| {
            let last: i64 = each.sizes.iter().zip(each.strides).map(|(size, stride)| (size - 1) * stride).sum();
            Region { start: each.data as u64, bytes: (last + 1) as u64 * 4, writable: false }
        };
        let mut regions: Vec<Region> = operands.iter().map(region).collect();
        regions.push(Region { start: result.0, bytes: result.1 as u64 * 4, writable: true });
        let module = Module::parse(&text()).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        // SAFETY: the regions are the memory of tensors that the caller holds.
        let done = unsafe { module.run(launch, &regions) };
        done.map_err(|trap| PyRuntimeError::new_err(format!("the kernel `{}` is wrong: {trap}", launch.entry)))
    }

    /// A kind of kernel on a device.
    fn on(
        &self,
        py: Python<'_>,
        device: i32,
        kind: K,
        text: &dyn Fn() -> String,
        entry: &str,
    ) -> PyResult<Arc<GpuKernel>> {
        let known = |(on, of, _): &&(i32, K, Arc<GpuKernel>)| *on == device && *of == kind;
        if let Some((_, _, own)) = self.loaded.lock().iter().find(known) {
            return Ok(own.clone());
        }
        let text = text();
        let made = py.detach(|| errors::guarded(|| Ok(gpu::load_kernel(&text, entry, device as usize)?)));
        let own = Arc::new(made.map_err(|error| errors::failed(&error, None))?);
        self.loaded.lock().push((device, kind, own.clone()));
        Ok(own)
    }
}
