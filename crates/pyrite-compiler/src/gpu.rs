//! Graphs as programs on a GPU: the pipeline up to [`GpuPlan`], kept machine code, and the backend `cuda`.

use std::sync::Arc;

use pyrite_codegen::CodeKey;
use pyrite_codegen::gpu::{GpuKernel, GpuPlan, GpuProgram, ImageStore, NotLoops};
use pyrite_cuda::{Context, Driver};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_ops::registry;
use pyrite_passes::{Table, decompose};
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;
use rustc_hash::FxHashMap;

use crate::aot::{Compiled, GraphCompiler, cleaned};
use crate::backend::{Observer, Options};
use crate::cache::{self, Entry, Folder};

/// Decomposes a functional graph and compiles it.
pub fn plan(graph: &Graph, options: &Options) -> Result<GpuPlan, NotLoops> {
    let mut gate = options.gate();
    let graph = decompose(graph, registry(), Table::Loops, options.random, &mut gate)?;
    GpuPlan::of(&cleaned(&graph, &mut gate), registry(), &mut gate)
}

/// Machine code in the cache's folder.
struct Kept(Arc<Folder>);

// SAFETY: files have their key in their sum, and lie in a folder that nobody but the user can write to; see `Folder`.
#[expect(unsafe_code, reason = "a promise about code that runs")]
unsafe impl ImageStore for Kept {
    fn read(&self, key: &[u8; 32]) -> Option<Vec<u8>> {
        Some(self.0.read(key)?.get(&CodeKey(*key))?.to_vec())
    }

    fn write(&self, key: &[u8; 32], image: &[u8]) {
        // A disk that is full costs the next process some milliseconds and nothing else.
        let _ = self.0.write(key, &Entry::new([(CodeKey(*key), image.to_vec())].into()));
    }
}

/// Loads a program on the device of a number; machine code is kept in the cache's folder where there is one.
pub fn load(plan: Arc<GpuPlan>, ordinal: usize) -> Result<GpuProgram, OpError> {
    let kept = cache::shared().folder().map(Kept);
    GpuProgram::load(plan, &context(ordinal)?, kept.as_ref().map(|kept| kept as &dyn ImageStore))
}

/// Loads a module of one entry on the device of a number, likewise.
pub fn load_kernel(text: &str, entry: &str, ordinal: usize) -> Result<GpuKernel, OpError> {
    let kept = cache::shared().folder().map(Kept);
    GpuKernel::load(text, entry, &context(ordinal)?, kept.as_ref().map(|kept| kept as &dyn ImageStore))
}

fn context(ordinal: usize) -> Result<Context, OpError> {
    let failed = |error: pyrite_cuda::CudaError| OpError::invalid(format!("{error}\nHelp: {}", error.remedy()));
    Driver::get().and_then(|driver| driver.device(ordinal)?.context()).map_err(failed)
}

/// Compiles graphs for the first GPU. What is not a loop is an error.
pub fn cuda() -> GraphCompiler {
    Arc::new(|graph, options| {
        let mut gate = options.gate().logged();
        let plan = GpuPlan::of(&graph, registry(), &mut gate).map_err(|error| match error {
            NotLoops::Node(error) => error,
            calls @ NotLoops::Calls(_) => OpError::unsupported(calls.to_string()).into(),
        })?;
        let program = load(Arc::new(plan), 0)?;
        let constants = graph.constants().iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        Ok(Arc::new(OnDevice { program, constants, rewrites: gate.into_log() }) as Arc<dyn Compiled>)
    })
}

/// A program on a device, whose tensors are copied there and back.
struct OnDevice {
    program: GpuProgram,
    constants: FxHashMap<Arc<str>, Tensor>,
    rewrites: Vec<String>,
}

impl Compiled for OnDevice {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        _: &mut TorchGenerator,
        _: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        Ok(self.program.run(&inputs, &self.constants)?)
    }

    fn rewrites(&self) -> &[String] {
        &self.rewrites
    }
}
