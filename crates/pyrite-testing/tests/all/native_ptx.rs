//! Operators on their samples, as PTX run by its interpreter, against machine code: bit for bit where nothing is reduced.

use pyrite_codegen::{Generator, Program};
use pyrite_compiler::Options;
use pyrite_compiler::aot::{Stages, partition_by_min_cut};
use pyrite_compiler::backend::Direction;
use pyrite_ir::{Eval, Graph, Value};
use pyrite_loops::{Inst, Kernel};
use pyrite_ops::registry;
use pyrite_passes::{Gate, Table};
use pyrite_ptx::assemble::Assembler;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;
use pyrite_testing::sampled;

/// The graph of an operator on arguments, without writes and decomposed, with its inputs.
fn functional(op: &pyrite_ir::OpRef, text: &str) -> Option<(Graph, Vec<Value<Tensor>>)> {
    let (graph, inputs) = sampled::graph(op, text)?;
    let options = Options { direction: Direction::Forward, ..Options::default() };
    let stages = Stages::of(&graph, &partition_by_min_cut(), Table::Loops, &options).ok()?;
    let graph = stages.functional.graph;
    (graph.placeholders().count() == inputs.len()).then_some((graph, inputs))
}

/// Whether results do not depend on an order: nothing is reduced, and no scatter replaces or adds floats.
fn is_pointwise(kernel: &Kernel) -> bool {
    let scatters = |inst: &Inst| matches!(inst, Inst::Scatter { .. });
    kernel.phases.iter().all(|phase| phase.reduces.is_empty() && !phase.code.insts().iter().any(scatters))
}

fn tensors<'a>(value: &'a Value<Tensor>, found: &mut Vec<&'a Tensor>) {
    match value {
        Value::Tensor(tensor) => found.push(tensor),
        Value::List(items) => items.iter().for_each(|item| tensors(item, found)),
        _ => {}
    }
}

fn run(program: &Program, inputs: &[Value<Tensor>]) -> Result<Value<Tensor>, String> {
    let done = program.run(inputs.to_vec(), registry(), &mut TorchGenerator::new(0), &mut |_, _| {});
    done.map_err(|error| error.to_string())
}

/// How PTX differs from machine code on a sample, if it does; whether its kernels are pointwise.
fn difference(graph: &Graph, inputs: &[Value<Tensor>]) -> (Option<String>, bool) {
    let compile = |generator| Program::compile(graph, registry(), generator, &mut Gate::open());
    let (Ok(machine), Ok(ptx)) = (compile(Generator::best()), compile(Generator::PtxInterpreter)) else {
        return (None, false);
    };
    let pointwise = ptx.kernels().all(is_pointwise) && ptx.fallbacks().is_empty();
    let (expected, found) = match (run(&machine, inputs), run(&ptx, inputs)) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(_), Err(found)) if !found.contains("compiled code is wrong") => return (None, false),
        (expected, found) => return (Some(format!("{:?} and {:?}", expected.err(), found.err())), pointwise),
    };
    if !pointwise {
        return (None, false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    tensors(&expected, &mut left);
    tensors(&found, &mut right);
    for (expected, found) in left.into_iter().zip(right) {
        if expected.dtype().is_complex() {
            continue;
        }
        for (index, (x, y)) in expected.to_f64s().into_iter().zip(found.to_f64s()).enumerate() {
            if x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan()) {
                return (Some(format!("element {index} is {y:e}, not {x:e}")), true);
            }
        }
    }
    (None, true)
}

#[test]
fn pointwise_samples_of_every_operator_have_the_bits_of_machine_code() {
    let (mut problems, mut pointwise, mut kernels) = (Vec::new(), 0, 0);
    let assembler = Assembler::find();
    if assembler.is_none() {
        println!("ptxas is not installed (PYRITE_PTXAS names one): nothing is assembled");
    }
    // Assembling takes longer than all else: a sample of some operators by day, all of them at night.
    let nightly = std::env::var_os("PTX_KERNELS").is_some();
    for (index, op) in registry().iter().filter(|op| !matches!(op.def.eval, Eval::HigherOrder)).enumerate() {
        for (number, text) in op.def.samples.iter().enumerate() {
            let Some((graph, inputs)) = functional(op, text) else { continue };
            let (problem, compared) = difference(&graph, &inputs);
            pointwise += usize::from(compared);
            problems.extend(problem.map(|problem| format!("{} on ({text}): {problem}", op.name())));
            if !nightly && (number > 0 || index % 16 > 0) {
                continue;
            }
            let Ok(program) = Program::compile(&graph, registry(), Generator::Tiles, &mut Gate::open()) else {
                continue;
            };
            for kernel in program.kernels() {
                kernels += 1;
                let listing = pyrite_codegen::ptx::listing(kernel);
                for architecture in ["sm_80", "sm_90"] {
                    let refused = assembler.as_ref().and_then(|known| known.assemble(&listing, architecture).err());
                    problems.extend(refused.map(|error| format!("{} on ({text}): {error}", op.name())));
                }
            }
        }
    }
    println!("{pointwise} samples were compared bit for bit, {kernels} kernels assembled");
    assert!(pointwise > 300, "only {pointwise} samples are pointwise");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
