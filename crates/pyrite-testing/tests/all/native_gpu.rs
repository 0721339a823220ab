//! Programs on a fake GPU: the driver's functions over memory of the host, launches run by the interpreter of PTX.
//!
//! Kernels are the same as those of `ptx-interp`, so results have the same bits; what is tested is everything around
//! them: one module for all kernels, parameters, the arena, results, faults, kept machine code.

#![expect(unsafe_code, reason = "kernels work on raw memory")]

#[path = "../../../pyrite-cuda/tests/fake/mod.rs"]
mod fake;

use std::cell::RefCell;
use std::sync::Arc;

use fake::Launched;
use parking_lot::Mutex;
use pyrite_codegen::gpu::{Assembled, GpuPlan, GpuProgram, ImageStore, NotLoops};
use pyrite_codegen::{Generator, Program};
use pyrite_compiler::Options;
use pyrite_compiler::aot::{Stages, partition_by_min_cut};
use pyrite_compiler::backend::Direction;
use pyrite_cuda::Context;
use pyrite_ir::{Builder, Eval, Graph, Meta, NodeId, Value};
use pyrite_ops::registry;
use pyrite_passes::{Gate, Table};
use pyrite_ptx::Launch;
use pyrite_ptx::interp::{Module, Region};
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;
use pyrite_testing::sampled;
use rustc_hash::FxHashMap;

/// What the interpreter found wrong last.
static WRONG: Mutex<String> = Mutex::new(String::new());

/// Runs a launch by the interpreter; what it finds wrong is a launch failure.
fn interpret(text: &str, launched: &Launched, memory: &[(u64, u64)]) -> Result<(), i32> {
    let wrong = |what: String| {
        *WRONG.lock() = format!("{what}\n{text}");
        719
    };
    let module = Module::parse(text).map_err(|error| wrong(error.to_string()))?;
    let regions: Vec<Region> =
        memory.iter().map(|(start, bytes)| Region { start: *start, bytes: *bytes, writable: true }).collect();
    let Launched { entry, grid: (grid, block), params } = launched.clone();
    let launch = Launch { entry, grid, block, params, rows_at_once: 0 };
    // SAFETY: the regions are the memory that the fake has allocated.
    unsafe { module.run(&launch, &regions) }.map_err(|trap| wrong(trap.to_string()))
}

fn context() -> Context {
    fake::execute_by(interpret);
    fake::driver(None).unwrap().device(0).unwrap().context().unwrap()
}

/// A graph without writes, decomposed.
fn functional(graph: &Graph) -> Option<Graph> {
    let options = Options { direction: Direction::Forward, ..Options::default() };
    let stages = Stages::of(graph, &partition_by_min_cut(), Table::Loops, &options).ok()?;
    let made = stages.functional.graph;
    (made.placeholders().count() == graph.placeholders().count()).then_some(made)
}

fn constants(graph: &Graph) -> FxHashMap<Arc<str>, Tensor> {
    graph.constants().iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect()
}

fn tensors<'a>(value: &'a Value<Tensor>, found: &mut Vec<&'a Tensor>) {
    match value {
        Value::Tensor(tensor) => found.push(tensor),
        Value::List(items) => items.iter().for_each(|item| tensors(item, found)),
        _ => {}
    }
}

/// Compares a graph on the device with the interpreter of its kernels; tells whether it ran there, and with how many kernels.
fn compared(graph: &Graph, inputs: &[Value<Tensor>], context: &Context) -> Result<Option<usize>, String> {
    let Ok(plan) = GpuPlan::of(graph, registry(), &mut Gate::open()) else { return Ok(None) };
    let kernels = plan.names().count();
    let device = GpuProgram::load(Arc::new(plan), context, None).map_err(|error| error.to_string())?;
    let found = device.run(inputs, &constants(graph)).map(Value::List).map_err(|error| error.to_string());
    drop(device);
    let host = Program::compile(graph, registry(), Generator::PtxInterpreter, &mut Gate::open())
        .map_err(|error| error.to_string())?;
    let expected = host.run(inputs.to_vec(), registry(), &mut TorchGenerator::new(0), &mut |_, _| {});
    let (found, expected) = match (found, expected) {
        (Ok(found), Ok(expected)) => (found, expected),
        (Err(_), Err(_)) => return Ok(Some(kernels)),
        (found, expected) => return Err(format!("{:?} and {:?}\n{}", found.err(), expected.err(), WRONG.lock())),
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    tensors(&found, &mut left);
    tensors(&expected, &mut right);
    if left.len() != right.len() {
        return Err(format!("{} results instead of {}", left.len(), right.len()));
    }
    for (number, (found, expected)) in left.iter().zip(&right).enumerate() {
        if found.shape() != expected.shape() || found.stride() != expected.stride() {
            return Err(format!("result {number} lies as {:?}, not as {:?}", found.layout(), expected.layout()));
        }
        if found.dtype().is_complex() {
            continue;
        }
        let same = |(x, y): &(f64, f64)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
        let pairs = found.to_f64s().into_iter().zip(expected.to_f64s());
        if let Some((x, y)) = pairs.into_iter().find(|pair| !same(pair)) {
            return Err(format!("result {number} has {x:e}, not {y:e}"));
        }
    }
    if fake::state().pieces() != 0 {
        return Err("memory is left".to_owned());
    }
    Ok(Some(kernels))
}

#[test]
fn samples_of_operators_run_on_the_device_as_in_the_interpreter() {
    let _alone = fake::fresh();
    let context = context();
    // All samples at night, one of each third operator by day.
    let nightly = std::env::var_os("PTX_KERNELS").is_some();
    let (mut problems, mut ran) = (Vec::new(), 0);
    for (index, op) in registry().iter().filter(|op| !matches!(op.def.eval, Eval::HigherOrder)).enumerate() {
        for (number, text) in op.def.samples.iter().enumerate() {
            if !nightly && (number > 0 || index % 3 > 0) {
                continue;
            }
            let Some((graph, inputs)) = sampled::graph(op, text) else { continue };
            let Some(graph) = functional(&graph) else { continue };
            match compared(&graph, &inputs, &context) {
                Ok(done) => ran += usize::from(done.is_some()),
                Err(problem) => problems.push(format!("{} on ({text}): {problem}", op.name())),
            }
        }
    }
    println!("{ran} samples ran");
    assert!(ran > 40, "only {ran} samples are loops");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn random_programs_run_on_the_device_as_in_the_interpreter() {
    let _alone = fake::fresh();
    let context = context();
    let count = std::env::var("GPU_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let (mut ran, mut several) = (0, 0);
    for number in 0..count {
        let case = pyrite_testing::random::graph(number);
        let Some(graph) = functional(&case.graph) else { continue };
        let inputs: Vec<Value<Tensor>> = case.inputs.iter().map(|tensor| Value::Tensor(tensor.clone())).collect();
        match compared(&graph, &inputs, &context) {
            Ok(Some(kernels)) => (ran, several) = (ran + 1, several + usize::from(kernels > 1)),
            Ok(None) => {}
            Err(problem) => panic!("program {number}: {problem}\n{graph}"),
        }
    }
    println!("{ran} programs ran, {several} with more than one kernel");
    assert!(ran * 8 > count as usize && several > 0, "{ran} programs ran, {several} with more than one kernel");
}

fn call(builder: &mut Builder, name: &str, args: &[Value<NodeId>]) -> NodeId {
    let op = registry().get(name).unwrap();
    builder.call(op, op.schema.bind_in_order(args).unwrap())
}

/// `table[index]`, row by row.
fn embedding(rows: i64) -> (Graph, Vec<Value<Tensor>>) {
    let table = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4, 1]);
    let index = Tensor::from_slice(&[0i64, rows], &[2]);
    let mut builder = Builder::new();
    let given = [&table, &index].map(|tensor| builder.placeholder("x", Some(Value::Tensor(Meta::of(tensor)))));
    let result = call(&mut builder, "aten.embedding.default", &[given[0].into(), given[1].into()]);
    builder.output(vec![result].into());
    (functional(&builder.finish()).unwrap(), vec![Value::Tensor(table), Value::Tensor(index)])
}

#[test]
fn an_index_out_of_bounds_names_its_kernel_and_the_next_call_is_fine() {
    let _alone = fake::fresh();
    let context = context();
    let (graph, inputs) = embedding(9);
    let plan = Arc::new(GpuPlan::of(&graph, registry(), &mut Gate::open()).unwrap());
    let program = GpuProgram::load(plan, &context, None).unwrap();
    let error = program.run(&inputs, &constants(&graph)).unwrap_err().to_string();
    let told = "an index is out of bounds in embedding: 9, where there are 4 elements";
    assert!(error.contains(told), "{error}");
    let (_, good) = embedding(3);
    let found = program.run(&good, &constants(&graph)).unwrap();
    assert_eq!(found[0].as_tensor().unwrap().to_f64s(), [1.0, 4.0]);
}

#[test]
fn a_launch_that_fails_is_an_error_that_names_the_node() {
    let _alone = fake::fresh();
    let context = context();
    let (graph, inputs) = embedding(3);
    let plan = Arc::new(GpuPlan::of(&graph, registry(), &mut Gate::open()).unwrap());
    let program = GpuProgram::load(plan, &context, None).unwrap();
    fake::state().fails = Some(("cuLaunchKernel", 719));
    let error = program.run(&inputs, &constants(&graph)).unwrap_err().to_string();
    assert!(error.contains("the kernel of embedding was not launched") && error.contains("Help"), "{error}");
    assert_eq!(fake::state().pieces(), 1, "only the words for faults are left");
}

#[test]
fn what_is_no_loop_is_told_with_its_node() {
    let (x, mut builder) = (Tensor::from_slice(&[1.0f32; 4], &[2, 2]), Builder::new());
    let input = builder.placeholder("x", Some(Value::Tensor(Meta::of(&x))));
    let product = call(&mut builder, "aten.mm.default", &[input.into(), input.into()]);
    let result = call(&mut builder, "aten.relu.default", &[product.into()]);
    builder.output(vec![result].into());
    match GpuPlan::of(&builder.finish(), registry(), &mut Gate::open()) {
        Err(NotLoops::Calls(calls)) => assert_eq!(calls, [("mm".to_owned(), "aten.mm.default".to_owned())]),
        _ => panic!("a matmul is not a loop"),
    }
}

/// Keeps machine code in a map.
#[derive(Default)]
struct Kept(RefCell<FxHashMap<[u8; 32], Vec<u8>>>);

// SAFETY: it gives what it was given.
unsafe impl ImageStore for Kept {
    fn read(&self, key: &[u8; 32]) -> Option<Vec<u8>> {
        self.0.borrow().get(key).cloned()
    }

    fn write(&self, key: &[u8; 32], image: &[u8]) {
        self.0.borrow_mut().insert(*key, image.to_vec());
    }
}

#[test]
fn machine_code_is_assembled_once_for_each_program_architecture_and_driver() {
    let _alone = fake::fresh();
    let kept = Kept::default();
    let (graph, inputs) = embedding(3);
    let load = |context: &Context| {
        let plan = Arc::new(GpuPlan::of(&graph, registry(), &mut Gate::open()).unwrap());
        let program = GpuProgram::load(plan, context, Some(&kept)).unwrap();
        assert_eq!(program.run(&inputs, &constants(&graph)).unwrap().len(), 1);
        program.assembled()
    };
    assert_eq!(load(&context()), Assembled::Now);
    assert_eq!(load(&context()), Assembled::Before);
    fake::state().capability = (8, 6);
    assert_eq!(load(&context()), Assembled::Now, "another architecture");
    fake::state().version = 12_040;
    assert_eq!(load(&context()), Assembled::Now, "another driver");
    assert_eq!(fake::state().assembled, 3);
}
