//! Tensors that are put together of parts, in compiled programs: kernels that read them are cut along the parts.

use std::collections::BTreeSet;

use pyrite_codegen::{Generator, Program};
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::infer::infer;
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Builder, Graph, Meta, NodeId, Value};
use pyrite_ops::registry;
use pyrite_passes::Gate;
use pyrite_sym::SymEnv;
use pyrite_tensor::random::{CounterGenerator, TorchGenerator};
use pyrite_tensor::{DType, Tensor};

/// A graph that is being written, with tensors for its inputs.
struct Draft {
    builder: Builder,
    inputs: Vec<Tensor>,
    live: Vec<NodeId>,
}

impl Draft {
    fn new(shapes: &[&[i64]]) -> Self {
        let mut draft = Self { builder: Builder::new(), inputs: Vec::new(), live: Vec::new() };
        for (seed, shape) in shapes.iter().enumerate() {
            let tensor = Tensor::empty(shape, DType::F32).unwrap();
            // Whole numbers, so that sums of any order are the same.
            let random = CounterGenerator::new(7, seed as u64);
            tensor.write_f64s(&(0..tensor.numel()).map(|i| random.integer(i as u64, -1, 2) as f64).collect::<Vec<_>>());
            let id = draft.builder.placeholder("x", Some(Value::Tensor(Meta::of(&tensor))));
            draft.live.push(id);
            draft.inputs.push(tensor);
        }
        draft
    }

    /// A call, if the operator takes these arguments and gives at least one element.
    fn call(&mut self, name: &str, args: &[Value<NodeId>]) -> Option<NodeId> {
        let op = registry().get(name).unwrap();
        let bound = op.schema.bind_in_order(args).unwrap();
        let metas: Vec<Value<Meta>> = bound.iter().map(|arg| arg.map(&mut |id| self.meta(*id))).collect();
        let result = infer(registry(), op, &metas).ok()?;
        let id = self.builder.call(op, bound);
        self.builder.set_meta(id, result);
        self.live.push(id);
        Some(id)
    }

    fn meta(&self, id: NodeId) -> Meta {
        match &self.builder.node(id).meta {
            Some(Value::Tensor(meta)) => meta.clone(),
            other => unreachable!("only tensors are live, not {other:?}"),
        }
    }

    fn slice(&mut self, x: NodeId, dim: i64, from: i64, to: i64) -> NodeId {
        self.call("aten.slice.Tensor", &[x.into(), dim.into(), from.into(), to.into(), 1.into()]).unwrap()
    }

    /// `x * c + cat((-x[..., half:], x[..., :half]), -1) * s`
    fn rotary(&mut self, half: i64) -> NodeId {
        let (x, c, s) = (self.live[0], self.live[1], self.live[2]);
        let dim = self.meta(x).rank() as i64 - 1;
        let plain = self.call("aten.mul.Tensor", &[x.into(), c.into()]).unwrap();
        let right = self.slice(x, dim, half, 2 * half);
        let transposed = self.call("aten.neg.default", &[right.into()]).unwrap();
        let left = self.slice(x, dim, 0, half);
        let whole = self.call("aten.cat.default", &[vec![transposed, left].into(), dim.into()]).unwrap();
        let scaled = self.call("aten.mul.Tensor", &[whole.into(), s.into()]).unwrap();
        self.call("aten.add.Tensor", &[plain.into(), scaled.into(), 1.into()]).unwrap()
    }

    fn returning(mut self, nodes: &[NodeId]) -> (Graph, Vec<Tensor>) {
        self.builder.output(nodes.to_vec().into());
        (self.builder.finish(), self.inputs)
    }
}

fn values(value: &Value<Tensor>) -> Vec<f64> {
    let mut all = Vec::new();
    value.each(&mut |t| all.extend(t.to_f64s()));
    all
}

/// Compares a graph on all generators with the interpreter, and gives its program by the best of them.
fn checked(graph: &Graph, inputs: &[Tensor]) -> Program {
    let context = Context::new(registry(), 0);
    let arguments = || inputs.iter().cloned().map(Value::Tensor).collect::<Vec<_>>();
    let expected = values(&Interpreter { context: &context, mode: Mode::Eager }.run(graph, arguments()).unwrap());
    let compile = |generator| Program::compile(graph, registry(), generator, &mut Gate::open()).unwrap();
    for generator in Generator::NAMES.iter().filter_map(|name| Generator::named(name)) {
        let program = compile(generator);
        let found = program.run(arguments(), registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
        let found = values(&found);
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
        let right = found.len() == expected.len() && found.iter().zip(&expected).all(close);
        assert!(right, "by {}:\n{}\n{program}", generator.name(), print(graph, &PrintOptions::default()));
    }
    compile(Generator::best())
}

#[test]
fn a_rotary_embedding_is_one_kernel_without_memory_of_its_own() {
    let mut draft = Draft::new(&[&[6, 3, 64], &[6, 1, 64], &[6, 1, 64]]);
    let result = draft.rotary(32);
    let (graph, inputs) = draft.returning(&[result]);
    let program = checked(&graph, &inputs);
    assert_eq!(program.kernels().count(), 1, "{program}");
    let kernel = program.kernels().next().unwrap();
    assert_eq!((kernel.written().len(), kernel.read().len(), kernel.phases.len()), (1, 3, 1), "{program}");
}

#[test]
fn a_rotary_embedding_of_any_length_is_one_kernel() {
    let op = |name: &str| registry().get(name).unwrap();
    let env = SymEnv::new();
    let mut builder = Builder::new();
    let meta = Meta::contiguous(&[env.size(6), 64.into()], DType::F32);
    let x = builder.placeholder("x", Some(Value::Tensor(meta)));
    let half = |from: i64, to: i64| vec![x.into(), 1.into(), from.into(), to.into(), 1.into()];
    let right = builder.call(op("aten.slice.Tensor"), half(32, 64));
    let transposed = builder.call(op("aten.neg.default"), vec![right.into()]);
    let left = builder.call(op("aten.slice.Tensor"), half(0, 32));
    let whole = builder.call(op("aten.cat.default"), vec![vec![transposed, left].into(), 1.into()]);
    let result = builder.call(op("aten.mul.Tensor"), vec![x.into(), whole.into()]);
    builder.output(vec![result].into());
    let program = Program::compile(&builder.finish(), registry(), Generator::best(), &mut Gate::open()).unwrap();
    assert_eq!(program.kernels().count(), 1, "{program}");
    for rows in [1, 6, 40] {
        let input = Tensor::empty(&[rows, 64], DType::F32).unwrap();
        CounterGenerator::new(1, 1).fill_normal(&input);
        let given = input.to_f64s();
        let value = program.run(vec![input.into()], registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
        for (at, found) in values(&value).into_iter().enumerate() {
            let other = if at % 64 < 32 { -given[at + 32] } else { given[at - 32] };
            assert!((found - given[at] * other).abs() < 1e-6, "{rows} rows, element {at}");
        }
    }
}

#[test]
fn what_is_put_together_is_there_for_those_that_need_the_whole() {
    let mut draft = Draft::new(&[&[5, 16], &[5, 24]]);
    let (a, b) = (draft.live[0], draft.live[1]);
    let whole = draft.call("aten.cat.default", &[vec![a, b].into(), 1.into()]).unwrap();
    let tanh = draft.call("aten.tanh.default", &[whole.into()]).unwrap();
    let sum = draft.call("aten.sum.dim_IntList", &[whole.into(), vec![1i64].into(), true.into()]).unwrap();
    let of_parts = draft.call("aten.sum.dim_IntList", &[tanh.into(), vec![0i64].into(), true.into()]).unwrap();
    let (graph, inputs) = draft.returning(&[whole, tanh, sum, of_parts]);
    checked(&graph, &inputs);
}

#[test]
fn a_result_in_parts_does_not_move_between_its_parts() {
    let mut draft = Draft::new(&[&[9, 24], &[9, 24]]);
    let (a, b) = (draft.live[0], draft.live[1]);
    let whole = draft.call("aten.cat.default", &[vec![a, b].into(), 1.into()]).unwrap();
    let square = draft.call("aten.mul.Tensor", &[whole.into(), whole.into()]).unwrap();
    let sum = draft.call("aten.sum.dim_IntList", &[square.into(), vec![0i64].into(), true.into()]).unwrap();
    let cube = draft.call("aten.mul.Tensor", &[whole.into(), square.into()]).unwrap();
    let (graph, inputs) = draft.returning(&[cube, sum]);
    checked(&graph, &inputs);
}

#[test]
fn what_reads_all_parts_waits_for_all_of_them() {
    let mut draft = Draft::new(&[&[8, 24]]);
    let x = draft.live[0];
    let tanh = draft.call("aten.tanh.default", &[x.into()]).unwrap();
    let whole = draft.call("aten.cat.default", &[vec![tanh, x, x].into(), 0.into()]).unwrap();
    let square = draft.call("aten.mul.Tensor", &[whole.into(), whole.into()]).unwrap();
    let transposed = draft.call("aten.transpose.int", &[square.into(), 0.into(), 1.into()]).unwrap();
    let sum = draft.call("aten.sum.dim_IntList", &[transposed.into(), vec![0i64].into(), true.into()]).unwrap();
    let scaled = draft.call("aten.mul.Tensor", &[sum.into(), whole.into()]).unwrap();
    let (graph, inputs) = draft.returning(&[scaled, sum]);
    checked(&graph, &inputs);
}

#[test]
fn what_is_read_and_written_around_parts_is_cut_with_them() {
    let mut draft = Draft::new(&[&[6, 3, 64], &[6, 1, 32]]);
    let angles = draft.live[1];
    let whole = draft.call("aten.cat.default", &[vec![angles, angles].into(), 2.into()]).unwrap();
    let (cos, sin) = (
        draft.call("aten.cos.default", &[whole.into()]).unwrap(),
        draft.call("aten.sin.default", &[whole.into()]).unwrap(),
    );
    draft.live.splice(1..3, [cos, sin]);
    let result = draft.rotary(32);
    let transposed = draft.call("aten.transpose.int", &[result.into(), 0.into(), 1.into()]).unwrap();
    let result = draft.call("aten.neg.default", &[transposed.into()]).unwrap();
    let (graph, inputs) = draft.returning(&[result]);
    let program = checked(&graph, &inputs);
    let buffers: BTreeSet<_> = program.kernels().flat_map(pyrite_loops::Kernel::written).collect();
    assert!(program.kernels().count() <= 2 && buffers.len() <= 3, "{program}");
}

#[test]
fn random_programs_with_parts_are_computed_alike() {
    let mut cut = 0;
    for number in 0..150 {
        let random = CounterGenerator::new(number, 3);
        let mut drawn = 0;
        let mut draw = |bound: usize| {
            drawn += 1;
            random.integer(drawn, 0, bound.max(1) as i64) as usize
        };
        let sizes: Vec<i64> = (0..3).map(|_| [2, 8, 9, 16, 24][draw(5)]).collect();
        let (rows, width, other) = (sizes[0], sizes[1], sizes[2]);
        let mut draft = Draft::new(&[&[rows, width], &[rows, width], &[rows, other], &[1, width]]);
        for _ in 0..6 + draw(8) {
            // What came last is taken most often, so that there are kernels to fuse.
            let late = draft.live.len() - 1 - draw(draft.live.len().min(4));
            let (x, y) = (draft.live[late], draft.live[draw(draft.live.len())]);
            let dim = draw(2) as i64;
            let size = draft.meta(x).shape[dim as usize].as_int().unwrap();
            match draw(9) {
                0..=2 if size < 100 => {
                    let third = draft.live[draw(draft.live.len())];
                    let parts = if draw(2) == 0 { vec![x, y] } else { vec![y, x, third] };
                    if let Some(whole) = draft.call("aten.cat.default", &[parts.into(), dim.into()])
                        && draw(2) == 0
                    {
                        draft.call("aten.mul.Tensor", &[whole.into(), whole.into()]);
                    }
                }
                3 | 4 => {
                    draft.call("aten.mul.Tensor", &[x.into(), y.into()]);
                }
                5 => {
                    draft.call("aten.relu.default", &[x.into()]);
                }
                6 if size > 1 => {
                    draft.slice(x, dim, size / 2, size);
                }
                7 => {
                    let transposed = draft.call("aten.transpose.int", &[x.into(), 0.into(), 1.into()]).unwrap();
                    draft.call("aten.neg.default", &[transposed.into()]);
                }
                _ => {
                    draft.call("aten.sum.dim_IntList", &[x.into(), vec![dim].into(), true.into()]);
                }
            }
        }
        let count = draft.live.len();
        let kept = [draft.live[count - 1], draft.live[count - 2], draft.live[draw(count)]];
        let (graph, inputs) = draft.returning(&kept);
        let mut gate = Gate::open().logged();
        Program::compile(&graph, registry(), Generator::Tiles, &mut gate).unwrap();
        cut += usize::from(gate.log().iter().any(|decision| decision.starts_with("split-concat ")));
        checked(&graph, &inputs);
    }
    assert!(cut > 20, "only {cut} programs were cut");
}
