//! Segments of programs on a GPU, called with torch's tensors.
//!
//! [`GpuSegment`] is a functional graph of loops alone. A call finds the addresses of its arguments, takes results and an
//! arena from torch's allocator, and puts the launches into torch's current stream: it neither copies nor waits, so what
//! torch captures in a CUDA graph captures these launches too.
//!
//! The same segment can be interpreted ([`Engine::Interpreted`]): it then takes tensors on the CPU, and its launches are
//! run by the interpreter of PTX. That is how GPU code is tested and debugged without a GPU.
//!
//! An index out of bounds is seen when its kernel has run: it is an `IndexError` of a later call of the segment.

#![expect(unsafe_code, reason = "torch's memory and streams are raw pointers")]

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyrite_codegen::gpu::{Addresses, Assembled, GpuPlan, GpuProgram, Lives, NotLoops, Output, Sizes, out_of_bounds};
use pyrite_compiler::gpu;
use pyrite_ir::{Given, Lower, OpError};
use pyrite_ops::registry;
use pyrite_ptx::FaultNote;
use pyrite_ptx::interp::{Module, Region};
use pyrite_tensor::{DType, Layout};

use crate::bridge::{Located, Shim};
use crate::errors::{self, CompileError};
use crate::graph::{Graph, graph_of};
use crate::options::options;
use crate::program::use_cache;

/// Who runs launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The GPU that the arguments are on.
    Device,
    /// The interpreter of PTX.
    Interpreted,
}

/// A segment: call it with one argument per placeholder, and it returns the list of the graph's outputs.
#[pyclass(module = "pyrite._native", frozen, weakref)]
pub struct GpuSegment {
    plan: Arc<GpuPlan>,
    engine: Engine,
    /// The segment on each device that it was called for.
    loaded: Mutex<Vec<(i32, Arc<GpuProgram>)>>,
    interpreted: Result<Module, String>,
}

/// Compiles a functional graph for a GPU. What is not a loop is a `CompileError`, whose attribute `operators` names
/// the operators.
#[pyfunction]
#[pyo3(name = "compile_gpu", signature = (graph, options = None, *, interpret = false))]
pub fn compile_gpu(
    py: Python<'_>,
    #[pyo3(from_py_with = graph_of)] graph: Graph,
    options: Option<&Bound<'_, PyDict>>,
    interpret: bool,
) -> PyResult<GpuSegment> {
    let settings = self::options(py, options)?;
    use_cache(py)?;
    let made = py.detach(|| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| gpu::plan(&graph.graph, &settings)))
            .unwrap_or_else(|_| Err(OpError::fault("a bug in Pyrite; please report it with the program").into()))
    });
    let plan = match made {
        Ok(plan) => plan,
        Err(NotLoops::Node(error)) => return Err(errors::uncompiled(py, &error)),
        Err(NotLoops::Calls(calls)) => {
            let operators: Vec<String> = calls.iter().map(|(_, operator)| operator.clone()).collect();
            let raised = CompileError::new_err(NotLoops::Calls(calls).to_string());
            raised.value(py).setattr("node", py.None())?;
            raised.value(py).setattr("operators", operators)?;
            return Err(raised);
        }
    };
    if plan.constants().next().is_some() {
        return Err(CompileError::new_err("a segment on a GPU has a constant"));
    }
    let engine = if interpret { Engine::Interpreted } else { Engine::Device };
    let interpreted = match engine {
        Engine::Interpreted => Module::parse(plan.text()).map_err(|error| error.to_string()),
        Engine::Device => Err("the segment is for a GPU".to_owned()),
    };
    Ok(GpuSegment { plan: Arc::new(plan), engine, loaded: Mutex::default(), interpreted })
}

/// The names of the operators that are never loops: matmuls, convolutions and other calls.
#[pyfunction]
pub fn extern_operators() -> Vec<String> {
    let all = registry().iter().filter(|op| matches!(op.def.lower, Lower::Extern(_)));
    all.map(|op| op.schema.name.to_string()).collect()
}

/// What torch is asked for in every call.
struct Torch {
    empty_strided: Py<PyAny>,
    /// Of the current device, with fewer questions.
    empty_on_current: Option<Py<PyAny>>,
    current_device: Option<Py<PyAny>>,
    current_stream: Option<Py<PyAny>>,
    /// Element types, by [`DType`].
    dtypes: Vec<(DType, Py<PyAny>)>,
}

impl Torch {
    fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
        TORCH.get_or_try_init(py, || {
            let torch = py.import("torch")?;
            let native = torch.getattr("_C")?;
            let optional = |from: &Bound<'_, PyAny>, name: &str| from.getattr(name).ok().map(Bound::unbind);
            let guards = py.import("torch._C._dynamo.guards").ok();
            let all = [
                DType::F32,
                DType::F64,
                DType::F16,
                DType::BF16,
                DType::I64,
                DType::I32,
                DType::I16,
                DType::I8,
                DType::U8,
                DType::Bool,
                DType::C64,
                DType::C128,
            ];
            let named = |dtype: DType| Ok((dtype, torch.getattr(dtype.torch_name())?.unbind()));
            Ok(Self {
                empty_strided: torch.getattr("empty_strided")?.unbind(),
                empty_on_current: guards.and_then(|guards| optional(&guards, "_empty_strided_cuda")),
                current_device: optional(&native, "_cuda_getDevice"),
                current_stream: optional(&native, "_cuda_getCurrentRawStream"),
                dtypes: all.into_iter().map(named).collect::<PyResult<_>>()?,
            })
        })
    }

    fn dtype(&self, dtype: DType) -> PyResult<&Py<PyAny>> {
        let found = self.dtypes.iter().find(|(known, _)| *known == dtype).map(|(_, object)| object);
        found.ok_or_else(|| PyTypeError::new_err(format!("a result of {dtype} on a GPU")))
    }
}

/// Where a call runs.
pub(crate) struct Place<'py> {
    torch: &'static Torch,
    /// The number of the GPU; none for the CPU.
    pub(crate) device: Option<i32>,
    /// Whether the GPU is torch's current one.
    is_current: bool,
    object: Bound<'py, PyAny>,
}

impl<'py> Place<'py> {
    pub(crate) fn of(py: Python<'py>, device: Option<i32>) -> PyResult<Self> {
        let torch = Torch::get(py)?;
        let is_current = match (device, &torch.current_device) {
            (Some(device), Some(ask)) => ask.bind(py).call0()?.extract::<i32>()? == device,
            _ => false,
        };
        let object = match device {
            Some(device) => format!("cuda:{device}"),
            None => "cpu".to_owned(),
        };
        Ok(Self { torch, device, is_current, object: object.into_pyobject(py)?.into_any() })
    }

    /// New memory as a tensor.
    pub(crate) fn empty(&self, sizes: &[i64], strides: &[i64], dtype: DType) -> PyResult<Bound<'py, PyAny>> {
        let py = self.object.py();
        let dtype = self.torch.dtype(dtype)?.bind(py);
        let (sizes, strides) = (PyTuple::new(py, sizes)?, PyTuple::new(py, strides)?);
        if let (true, Some(empty)) = (self.is_current, &self.torch.empty_on_current) {
            return empty.bind(py).call1((sizes, strides, dtype));
        }
        let named = PyDict::new(py);
        named.set_item("dtype", dtype)?;
        named.set_item("device", &self.object)?;
        self.torch.empty_strided.bind(py).call((sizes, strides), Some(&named))
    }

    /// Memory of a tensor of type `has` as another, `before` bytes from where its storage begins.
    fn strided(
        &self,
        tensor: &Bound<'py, PyAny>,
        has: DType,
        (layout, dtype): (&Layout, DType),
        before: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let offset = before / dtype.size() as i64 + layout.offset;
        let (sizes, strides) = (layout.shape.to_vec(), layout.stride.to_vec());
        if has == dtype {
            return tensor.call_method1("as_strided", (sizes, strides, offset));
        }
        let bytes: i64 = tensor.call_method0("untyped_storage")?.call_method0("nbytes")?.extract()?;
        let all = tensor.call_method1("as_strided", ([bytes / has.size() as i64], [1], 0))?;
        let all = all.call_method1("view", (self.torch.dtype(dtype)?.bind(tensor.py()),))?;
        all.call_method1("as_strided", (sizes, strides, offset))
    }
}

impl Place<'_> {
    /// The handle of torch's current stream.
    pub(crate) fn stream(&self) -> PyResult<usize> {
        match (&self.torch.current_stream, self.device) {
            (Some(ask), Some(device)) => ask.bind(self.object.py()).call1((device,))?.extract(),
            _ => Err(PyRuntimeError::new_err("this torch was built without CUDA")),
        }
    }
}

/// An argument of a call.
enum Argument<'py> {
    Tensor(Bound<'py, PyAny>),
    Number(i64),
    Other,
}

#[pymethods]
impl GpuSegment {
    /// Runs the segment.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
        let py = arguments.py();
        let shim = Shim::get(py)?;
        let mut given = Vec::with_capacity(arguments.len());
        let mut device = None;
        for object in arguments.iter() {
            given.push(if shim.is_plain(object.get_type_ptr()) {
                Argument::Tensor(object)
            } else if let Ok(number) = object.extract::<i64>() {
                Argument::Number(number)
            } else {
                Argument::Other
            });
        }
        let mut located: Vec<Option<Located<'_>>> = Vec::with_capacity(given.len());
        for (index, argument) in given.iter().enumerate() {
            located.push(match argument {
                Argument::Tensor(object) => {
                    let found = shim.locate(object);
                    let found = found.map_err(|_| PyTypeError::new_err(format!("argument {index} has no memory")))?;
                    let wanted = (self.engine == Engine::Device).then_some(found.index);
                    if found.is_cuda != wanted.is_some() || device.is_some_and(|known| known != wanted) {
                        let expected = if wanted.is_some() { "one GPU" } else { "the CPU" };
                        let text =
                            format!("argument {index} is not where the others are: a segment runs on {expected}");
                        return Err(PyTypeError::new_err(text));
                    }
                    device = Some(wanted);
                    Some(found)
                }
                _ => None,
            });
        }
        let place = Place::of(py, device.unwrap_or((self.engine == Engine::Device).then_some(0)))?;
        let ask = |index: usize| match (&given[index], &located[index]) {
            (_, Some(found)) => Given::Tensor { shape: found.sizes, stride: found.strides },
            (Argument::Number(number), _) => Given::Int(*number),
            _ => Given::Other,
        };
        if given.len() != self.plan.arity() {
            let (wanted, count) = (self.plan.arity(), given.len());
            return Err(PyTypeError::new_err(format!("the segment takes {wanted} arguments, {count} were given")));
        }
        let sizes = self.plan.sizes(ask).map_err(|error| errors::failed(&error.into(), None))?;
        // An argument whose strides are others is copied, as is one that is conjugated or negated when it is read. Torch's own
        // calls return empty tensors of other types than they announce.
        let mut copies: Vec<Option<Bound<'py, PyAny>>> = Vec::new();
        let mut inputs = Vec::with_capacity(given.len());
        for (index, (wanted, found)) in sizes.inputs.iter().zip(&located).enumerate() {
            let (Some((layout, dtype)), Some(found)) = (wanted, found) else {
                inputs.push(0);
                copies.push(None);
                continue;
            };
            let is_empty = layout.shape.contains(&0);
            if *found.sizes != *layout.shape || (found.dtype != Some(*dtype) && !is_empty) {
                let given = found.dtype.map_or_else(|| "of another type".to_owned(), |dtype| dtype.to_string());
                let text = format!(
                    "argument {index} is {given} {:?}, the segment was compiled for {dtype} {:?}",
                    found.sizes, layout.shape
                );
                return Err(PyValueError::new_err(text));
            }
            let is_as_wanted = found.dtype == Some(*dtype) && lies_so(found.strides, layout);
            if is_as_wanted && !shim.is_marked(&arguments.get_item(index)?) {
                inputs.push(found.data as u64);
                copies.push(None);
                continue;
            }
            let copy = place.empty(&layout.shape, &layout.stride, *dtype)?;
            copy.call_method1("copy_", (arguments.get_item(index)?,))?;
            inputs.push(address(shim, &copy)?);
            copies.push(Some(copy));
        }
        let mut made = Vec::with_capacity(sizes.fresh.len());
        for (number, (bytes, dtype)) in sizes.fresh.iter().enumerate() {
            let mut users = sizes.outputs.iter().filter_map(|output| match output {
                Output::Tensor(Lives::Fresh(at), layout, seen) if *at == number => Some((layout, seen)),
                _ => None,
            });
            // A result that is a part of what is computed leaves room for all of it.
            let whole = |layout: &Layout| layout.offset == 0 && bytes_of(layout, *dtype) == *bytes;
            let only = users.next().filter(|(layout, seen)| *seen == dtype && whole(layout) && users.next().is_none());
            made.push(match only {
                Some((layout, _)) => place.empty(&layout.shape, &layout.stride, *dtype)?,
                None => place.empty(&[*bytes as i64 / dtype.size() as i64], &[1], *dtype)?,
            });
        }
        let fresh = made.iter().map(|tensor| address(shim, tensor)).collect::<PyResult<Vec<u64>>>()?;
        let arena = if sizes.arena > 0 { Some(place.empty(&[sizes.arena as i64], &[1], DType::U8)?) } else { None };
        let arena_at = arena.as_ref().map_or(Ok(0), |arena| address(shim, arena))?;
        match place.device {
            Some(device) => self.launch(py, device, &place, &sizes, (&inputs, &fresh, arena_at))?,
            None => self.interpret(&sizes, &located, (&inputs, &fresh, arena_at))?,
        }
        let output = |output: &Output| -> PyResult<Bound<'py, PyAny>> {
            Ok(match output {
                Output::Number(number) => number.into_pyobject(py)?.into_any(),
                Output::None => py.None().into_bound(py),
                Output::Tensor(Lives::Fresh(number), layout, dtype) => {
                    let tensor = &made[*number];
                    let whole = shim.locate(tensor).is_ok_and(|found| {
                        found.dtype == Some(*dtype) && *found.sizes == *layout.shape && lies_so(found.strides, layout)
                    });
                    if whole && layout.offset == 0 {
                        tensor.clone()
                    } else {
                        place.strided(tensor, sizes.fresh[*number].1, (layout, *dtype), 0)?
                    }
                }
                Output::Tensor(Lives::Input(number), layout, dtype) => {
                    let base = copies[*number].clone().map_or_else(|| arguments.get_item(*number), Ok)?;
                    let (began, given) =
                        sizes.inputs[*number].as_ref().map_or((0, *dtype), |(layout, dtype)| (layout.offset, *dtype));
                    let own: i64 = base.call_method0("storage_offset")?.extract()?;
                    place.strided(&base, given, (layout, *dtype), (own - began) * given.size() as i64)?
                }
                Output::Tensor(..) => return Err(PyRuntimeError::new_err("a result has no memory")),
            })
        };
        PyList::new(py, sizes.outputs.iter().map(output).collect::<PyResult<Vec<_>>>()?)
    }

    /// Raises an `IndexError` if a kernel has met an index out of bounds since it was last asked.
    fn check(&self) -> PyResult<()> {
        let faults = self.loaded.lock().iter().find_map(|(_, program)| program.fault());
        faults.map_or(Ok(()), |error| Err(PyIndexError::new_err(format!("{error} (of an earlier call)"))))
    }

    /// Whether a kernel reads an index that may be out of bounds.
    #[getter]
    fn checks_indices(&self) -> bool {
        self.plan.checks_indices()
    }

    /// The PTX of its kernels.
    #[getter]
    fn ptx(&self) -> &str {
        self.plan.text()
    }

    /// The names of the nodes whose kernels run, in order.
    #[getter]
    fn kernels(&self) -> Vec<String> {
        self.plan.names().map(str::to_owned).collect()
    }

    /// How often the driver's assembler was asked for its machine code; else it was kept.
    #[getter]
    fn assembled(&self) -> usize {
        self.loaded.lock().iter().filter(|(_, program)| program.assembled() == Assembled::Now).count()
    }

    fn __repr__(&self) -> String {
        format!("<pyrite.GpuSegment of {} kernels>", self.plan.names().count())
    }
}

/// Whether strides are those of a layout, where they matter.
fn lies_so(strides: &[i64], layout: &Layout) -> bool {
    let empty = layout.shape.contains(&0);
    let each = layout.shape.iter().zip(strides).zip(&layout.stride);
    empty || each.into_iter().all(|((size, given), wanted)| *size <= 1 || given == wanted)
}

/// How many bytes a tensor reaches over, from its first element on.
fn bytes_of(layout: &Layout, dtype: DType) -> u64 {
    if layout.shape.contains(&0) {
        return 0;
    }
    let last: i64 = layout.shape.iter().zip(&layout.stride).map(|(size, stride)| (size - 1) * stride).sum();
    (last + 1) as u64 * dtype.size() as u64
}

pub(crate) fn address(shim: &Shim, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    let found = shim.locate(tensor).map_err(|_| PyRuntimeError::new_err("torch returned a tensor without memory"))?;
    Ok(found.data as u64)
}

impl GpuSegment {
    /// The segment on a device.
    fn on(&self, py: Python<'_>, device: i32) -> PyResult<Arc<GpuProgram>> {
        if let Some((_, program)) = self.loaded.lock().iter().find(|(known, _)| *known == device) {
            return Ok(program.clone());
        }
        let plan = self.plan.clone();
        let made = py.detach(|| errors::guarded(|| Ok(gpu::load(plan, device as usize)?)));
        let program = Arc::new(made.map_err(|error| errors::failed(&error, None))?);
        self.loaded.lock().push((device, program.clone()));
        Ok(program)
    }

    fn launch(
        &self,
        py: Python<'_>,
        device: i32,
        place: &Place<'_>,
        sizes: &Sizes,
        (inputs, fresh, arena): (&[u64], &[u64], u64),
    ) -> PyResult<()> {
        let program = self.on(py, device)?;
        if let Some(error) = program.fault() {
            return Err(PyIndexError::new_err(format!("{error} (of an earlier call of the segment)")));
        }
        let stream = place.stream()?;
        // SAFETY: torch's current stream belongs to the primary context of the device and outlives the call. Memory comes
        // from torch: its allocator gives it to others only behind this work, in the order of the stream.
        let done = unsafe {
            let stream = program.context().foreign_stream(stream);
            program.enqueue(sizes, &stream, inputs, fresh, arena, &|_| 0)
        };
        done.map_err(|error| errors::failed(&error.into(), None))
    }

    fn interpret(
        &self,
        sizes: &Sizes,
        located: &[Option<Located<'_>>],
        (inputs, fresh, arena): (&[u64], &[u64], u64),
    ) -> PyResult<()> {
        let module = self.interpreted.as_ref().map_err(|error| PyRuntimeError::new_err(error.clone()))?;
        let mut fault = FaultNote::default();
        let noted = &raw mut fault as u64;
        let mut regions = vec![Region { start: noted, bytes: size_of::<FaultNote>() as u64, writable: true }];
        let mut add = |start: u64, bytes: u64, writable: bool| {
            if bytes > 0 {
                regions.push(Region { start, bytes, writable });
            }
        };
        for ((found, first), wanted) in located.iter().zip(inputs).zip(&sizes.inputs) {
            let (Some(_), Some((layout, dtype))) = (found, wanted) else { continue };
            add(*first, bytes_of(layout, *dtype), false);
        }
        for (start, (bytes, _)) in fresh.iter().zip(&sizes.fresh) {
            add(*start, *bytes, true);
        }
        add(arena, sizes.arena, true);
        let addresses = Addresses { inputs, constant: &|_| 0, fresh, arena, fault: &|_| noted };
        for (number, launch) in self.plan.launches(sizes, &addresses) {
            let name = self.plan.names().nth(number).unwrap_or_default();
            // SAFETY: the regions are the memory of tensors that the caller holds, and of this function.
            let done = unsafe { module.run(&launch, &regions) };
            done.map_err(|trap| PyRuntimeError::new_err(format!("the kernel of {name} is wrong: {trap}")))?;
            // SAFETY: the note lives on the stack of this function; the interpreter has written it by its address.
            let found = unsafe { (&raw const fault).read_volatile() };
            if found.is_set != 0 {
                return Err(PyIndexError::new_err(out_of_bounds(name, &found).to_string()));
            }
        }
        Ok(())
    }
}
