//! A program's module on a device.
//!
//! Machine code is assembled by the driver, or taken from a store by what decides it: the text, the architecture and the
//! driver. A fault, an index out of bounds, is noted in memory of the host that the device writes to: it is seen when the
//! kernel has run, so [`GpuProgram::fault`] tells of earlier calls unless the stream was waited for.

use std::sync::Arc;

use pyrite_cuda::{Context, Function, Grid, Image, Memory, Module, Pinned, Stream};
use pyrite_ir::{Given, OpError, Value};
use pyrite_ptx::{FaultNote, Launch};
use pyrite_tensor::{Layout, Storage, Tensor};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::{Addresses, GpuPlan, Lives, Output, Sizes};
use crate::store::VERSION;

/// Keeps machine code.
///
/// # Safety
/// What is given back runs: [`Self::read`] gives only bytes that [`Self::write`] was given for the same key and that nobody
/// else can have changed.
#[expect(unsafe_code, reason = "a promise about code that runs")]
pub unsafe trait ImageStore {
    /// The machine code of a key.
    fn read(&self, key: &[u8; 32]) -> Option<Vec<u8>>;

    /// Is told of machine code that was made.
    fn write(&self, key: &[u8; 32], image: &[u8]);
}

/// Whether the driver's assembler had to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assembled {
    /// It was.
    Now,
    /// The code was kept.
    Before,
}

/// A program on a device.
pub struct GpuProgram {
    plan: Arc<GpuPlan>,
    context: Context,
    functions: FxHashMap<String, Function>,
    /// A note for each statement.
    faults: Pinned,
    assembled: Assembled,
}

/// An error of the driver, with its remedy.
fn failed(error: pyrite_cuda::CudaError) -> OpError {
    OpError::invalid(format!("{error}\nHelp: {}", error.remedy()))
}

/// The error of an index that a kernel has met.
pub fn out_of_bounds(kernel: &str, note: &FaultNote) -> OpError {
    let FaultNote { index, extent, .. } = note;
    OpError::OutOfRange(format!("an index is out of bounds in {kernel}: {index}, where there are {extent} elements"))
}

/// Loads a module on a device: its machine code is kept, or assembled.
fn loaded(
    text: &str,
    what: &str,
    context: &Context,
    store: Option<&dyn ImageStore>,
) -> Result<(Module, Assembled), OpError> {
    let device = context.device();
    let mut sum = Sha256::new();
    sum.update(format!("cubin {VERSION} {} {}\n", device.architecture(), device.driver_version()));
    sum.update(text);
    let key: [u8; 32] = sum.finalize().into();
    let kept = store.and_then(|store| store.read(&key));
    // SAFETY: stores promise that bytes are those of the key, which names text, architecture and driver.
    #[expect(unsafe_code, reason = "code that was written down runs")]
    let kept = kept.map(|bytes| unsafe { Image::from_bytes(&bytes) });
    let (image, assembled) = if let Some(image) = kept {
        (image, Assembled::Before)
    } else {
        let image = context.assemble(text, what).map_err(failed)?;
        if let Some(store) = store {
            store.write(&key, image.bytes());
        }
        (image, Assembled::Now)
    };
    Ok((context.load(&image, what).map_err(failed)?, assembled))
}

/// A kernel that is no loop, such as a GEMM, on a device.
pub struct GpuKernel {
    context: Context,
    function: Function,
}

impl GpuKernel {
    /// Loads a module of one entry on a device.
    pub fn load(text: &str, entry: &str, context: &Context, store: Option<&dyn ImageStore>) -> Result<Self, OpError> {
        let (module, _) = loaded(text, entry, context, store)?;
        Ok(Self { context: context.clone(), function: module.function(entry).map_err(failed)? })
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Puts a launch of it into a stream.
    ///
    /// # Safety
    /// The addresses of the launch are of memory of the device that has as much room as its sizes say, and lives until the
    /// work is done.
    #[expect(unsafe_code, reason = "kernels work on raw memory")]
    pub unsafe fn enqueue(&self, launch: &Launch, stream: &Stream) -> Result<(), OpError> {
        let grid = Grid { blocks: launch.grid, threads: launch.block };
        // SAFETY: the parameters are those of the entry, and by the contract of this function memory is there.
        unsafe { stream.launch(&self.function, &launch.entry, grid, &launch.params) }.map_err(failed)
    }
}

impl GpuProgram {
    /// Loads a program's module on a device.
    pub fn load(plan: Arc<GpuPlan>, context: &Context, store: Option<&dyn ImageStore>) -> Result<Self, OpError> {
        let what = plan.names().next().unwrap_or("a program").to_owned();
        let mut functions = FxHashMap::default();
        let mut assembled = Assembled::Before;
        if !plan.kernels.is_empty() {
            let module;
            (module, assembled) = loaded(plan.text(), &what, context, store)?;
            for name in plan.kernels.iter().flat_map(pyrite_ptx::Ptx::entry_names) {
                functions.insert(name.clone(), module.function(&name).map_err(failed)?);
            }
        }
        let faults = context.pinned(size_of::<FaultNote>() * plan.runs.len().max(1)).map_err(failed)?;
        Ok(Self { plan, context: context.clone(), functions, faults, assembled })
    }

    /// The plan.
    pub fn plan(&self) -> &GpuPlan {
        &self.plan
    }

    /// Whether the driver's assembler had to be asked.
    pub fn assembled(&self) -> Assembled {
        self.assembled
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The error of a kernel that has met an index out of bounds since it was last asked.
    pub fn fault(&self) -> Option<OpError> {
        self.plan.names().enumerate().find_map(|(number, name)| {
            let first = number * FaultNote::WORDS;
            let flag = self.faults.take(first);
            let words = std::array::from_fn(|word| if word == 0 { flag } else { self.faults.take(first + word) });
            (flag != 0).then(|| out_of_bounds(name, &FaultNote::of(words)))
        })
    }

    /// Puts the launches of a call into a stream.
    ///
    /// # Safety
    /// The addresses are of memory of the device that has as much room as the sizes say, and lives until the work is done.
    #[expect(unsafe_code, reason = "kernels work on raw memory")]
    pub unsafe fn enqueue(
        &self,
        sizes: &Sizes,
        stream: &Stream,
        inputs: &[u64],
        fresh: &[u64],
        arena: u64,
        constant: &dyn Fn(&str) -> u64,
    ) -> Result<(), OpError> {
        let fault = |number: usize| self.faults.address(number * FaultNote::WORDS);
        let addresses = Addresses { inputs, constant, fresh, arena, fault: &fault };
        for (number, launch) in self.plan.launches(sizes, &addresses) {
            let function = self.functions.get(&launch.entry);
            let function = function.ok_or_else(|| OpError::fault(format!("there is no entry {}", launch.entry)))?;
            let grid = Grid { blocks: launch.grid, threads: launch.block };
            // SAFETY: the parameters are those of the entry, and by the contract of this function memory is there.
            let done = unsafe { stream.launch(function, &launch.entry, grid, &launch.params) };
            done.map_err(|error| {
                let name = self.plan.names().nth(number).unwrap_or_default();
                OpError::invalid(format!("the kernel of {name} was not launched: {error}\nHelp: {}", error.remedy()))
            })?;
        }
        Ok(())
    }

    /// Runs the program on tensors of the host: they are copied there and back.
    pub fn run(
        &self,
        inputs: &[Value<Tensor>],
        constants: &FxHashMap<Arc<str>, Tensor>,
    ) -> Result<Vec<Value<Tensor>>, OpError> {
        let sizes = self.plan.sizes(|index| inputs.get(index).map_or(Given::Other, Given::of))?;
        let stream = self.context.stream().map_err(failed)?;
        let mut taken: Vec<Option<(Memory, Tensor)>> = Vec::new();
        for (index, wanted) in sizes.inputs.iter().enumerate() {
            let Some((layout, dtype)) = wanted else {
                taken.push(None);
                continue;
            };
            let given = inputs.get(index).and_then(Value::as_tensor);
            let given = given.filter(|given| given.dtype() == *dtype && *given.shape() == *layout.shape);
            let given = given.ok_or_else(|| OpError::invalid(format!("input {index} is not what was compiled for")))?;
            let laid = laid_out(given, layout)?;
            taken.push(Some((copied(&laid, &stream)?, laid)));
        }
        let mut kept: FxHashMap<&str, Memory> = FxHashMap::default();
        for name in self.plan.constants() {
            let tensor = constants.get(name).ok_or_else(|| OpError::fault(format!("no constant {name}")))?;
            kept.insert(name, copied(tensor, &stream)?);
        }
        let allocate = |bytes: u64| stream.allocate(bytes as usize).map_err(failed);
        let fresh = sizes.fresh.iter().map(|(bytes, _)| allocate(*bytes)).collect::<Result<Vec<_>, _>>()?;
        let arena = allocate(sizes.arena)?;
        let first = |taken: &Option<(Memory, Tensor)>| {
            taken.as_ref().map_or(0, |(memory, tensor)| {
                memory.address().wrapping_add_signed(tensor.layout().offset * tensor.dtype().size() as i64)
            })
        };
        let given: Vec<u64> = taken.iter().map(first).collect();
        let results: Vec<u64> = fresh.iter().map(Memory::address).collect();
        let constant = |name: &str| kept.get(name).map_or(0, Memory::address);
        // SAFETY: all memory was allocated above as the sizes say, and is freed in the order of the stream.
        #[expect(unsafe_code, reason = "kernels work on raw memory")]
        unsafe {
            self.enqueue(&sizes, &stream, &given, &results, arena.address(), &constant)?;
        }
        stream.wait_for(self.plan.names().last().unwrap_or_default()).map_err(failed)?;
        if let Some(error) = self.fault() {
            return Err(error);
        }
        let mut read = Vec::new();
        for (memory, (bytes, _)) in fresh.iter().zip(&sizes.fresh) {
            let mut found = vec![0u8; *bytes as usize];
            memory.read(&mut found).map_err(failed)?;
            read.push(Storage::from_slice(&found));
        }
        let output = |output: &Output| {
            Ok(match output {
                Output::Number(number) => Value::Int((*number).into()),
                Output::None => Value::None,
                Output::Tensor(lives, layout, dtype) => {
                    let (storage, layout) = match lives {
                        Lives::Fresh(number) => (read[*number].clone(), layout.clone()),
                        Lives::Input(number) => {
                            let (wanted, _) = sizes.inputs[*number].as_ref().ok_or_else(missing)?;
                            let (_, given) = taken[*number].as_ref().ok_or_else(missing)?;
                            let offset = given.layout().offset + layout.offset - wanted.offset;
                            (given.storage().clone(), Layout { offset, ..layout.clone() })
                        }
                        Lives::Constant(name) => {
                            let constant = constants.get(name).ok_or_else(missing)?;
                            (constant.storage().clone(), layout.clone())
                        }
                        Lives::Arena(_) | Lives::Nowhere => return Err(missing()),
                    };
                    Value::Tensor(Tensor::new(storage, *dtype, layout)?)
                }
            })
        };
        sizes.outputs.iter().map(output).collect()
    }
}

/// The storage of a tensor on the device.
fn copied(tensor: &Tensor, stream: &Stream) -> Result<Memory, OpError> {
    let bytes = tensor.storage().to_bytes();
    let memory = stream.allocate(bytes.len()).map_err(failed)?;
    memory.write(&bytes).map_err(failed)?;
    Ok(memory)
}

fn missing() -> OpError {
    OpError::fault("a result has no memory")
}

/// A tensor with the strides that a program was compiled for.
fn laid_out(tensor: &Tensor, wanted: &Layout) -> Result<Tensor, OpError> {
    let alike = |(index, size): (usize, &i64)| *size <= 1 || tensor.stride()[index] == wanted.stride[index];
    if wanted.shape.iter().enumerate().all(alike) {
        return Ok(tensor.clone());
    }
    let last: i64 = wanted.shape.iter().zip(&wanted.stride).map(|(size, stride)| (size - 1) * stride).sum();
    let bytes = if tensor.numel() == 0 { 0 } else { (last + 1) as usize * tensor.dtype().size() };
    let copy = Tensor::new(Storage::zeroed(bytes), tensor.dtype(), Layout { offset: 0, ..wanted.clone() })?;
    copy.write_from(tensor);
    Ok(copy)
}
