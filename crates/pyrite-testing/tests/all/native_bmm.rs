//! Batched matmuls in compiled programs: operands that lie anywhere, and kernels before and behind, row by row.

use pyrite_codegen::{Generator, Program};
use pyrite_ir::{Builder, Graph, Meta, NodeId, Value};
use pyrite_ops::registry;
use pyrite_passes::Gate;
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::{DType, MemoryFormat, Tensor};

use crate::programs::{assert_close, expected, run};

/// A tensor of numbers that differ with the seed.
fn tensor(shape: &[i64], dtype: DType, seed: usize) -> Tensor {
    let tensor = Tensor::empty(shape, dtype).unwrap();
    let numbers: Vec<f64> =
        (0..tensor.numel()).map(|i| ((i * 31 + i / 7 * seed + seed * 17) % 29) as f64 / 29.0 - 0.5).collect();
    tensor.write_f64s(&numbers);
    tensor
}

/// Calls operators of the registry, one after the other.
struct Writer(Builder);

impl Writer {
    fn new(inputs: &[Tensor]) -> (Self, Vec<NodeId>) {
        let mut builder = Builder::new();
        let ids = inputs.iter().map(|input| builder.placeholder("x", Some(Value::Tensor(Meta::of(input))))).collect();
        (Self(builder), ids)
    }

    fn call(&mut self, name: &str, args: Vec<Value<NodeId>>) -> NodeId {
        self.0.call(registry().get(name).unwrap_or_else(|| panic!("no operator {name}")), args)
    }

    /// Heads that lie side by side in rows of `[batch, length, heads·width]`, one after the other as `[batch·heads, ..]`.
    fn heads(&mut self, x: NodeId, [batch, length, heads, width]: [i64; 4], order: [i64; 4]) -> NodeId {
        let x = self.call("aten.view.default", vec![x.into(), ints(&[batch, length, heads, width])]);
        let x = self.call("aten.permute.default", vec![x.into(), ints(&order)]);
        let x = self.call("aten.clone.default", vec![x.into(), MemoryFormat::Contiguous.into()]);
        let sizes = [batch, length, heads, width];
        let flat = [batch * heads, sizes[order[2] as usize], sizes[order[3] as usize]];
        self.call("aten.view.default", vec![x.into(), ints(&flat)])
    }

    fn finish(mut self, output: Vec<NodeId>) -> Graph {
        self.0.output(output.into());
        self.0.finish()
    }
}

fn ints(values: &[i64]) -> Value<NodeId> {
    Value::List(values.iter().map(|value| Value::Int(SymInt::Int(*value))).collect())
}

/// What a graph of attention returns besides its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    Nothing,
    /// The weights.
    Weights,
    /// What a backward half wants: the weights and the copies of the heads.
    Everything,
}

/// `softmax(q·kᵀ·0.3 + mask)·v` of heads that lie side by side, written out.
fn attention(inputs: &[Tensor], [batch, heads, width]: [i64; 3], kept: Kept) -> Graph {
    let (queries, keys) = (inputs[0].shape()[1], inputs[1].shape()[1]);
    let (mut w, ids) = Writer::new(inputs);
    let q = w.heads(ids[0], [batch, queries, heads, width], [0, 2, 1, 3]);
    let k = w.heads(ids[1], [batch, keys, heads, width], [0, 2, 3, 1]);
    let scores = w.call("aten.bmm.default", vec![q.into(), k.into()]);
    let scores = w.call("aten.view.default", vec![scores.into(), ints(&[batch, heads, queries, keys])]);
    let scores = w.call("aten.mul.Tensor", vec![scores.into(), 0.3.into()]);
    let scores = w.call("aten.add.Tensor", vec![scores.into(), ids[3].into(), 1.into()]);
    let most = w.call("aten.amax.default", vec![scores.into(), ints(&[-1]), true.into()]);
    let scores = w.call("aten.sub.Tensor", vec![scores.into(), most.into(), 1.into()]);
    let weights = w.call("aten.exp.default", vec![scores.into()]);
    let sums = w.call("aten.sum.dim_IntList", vec![weights.into(), ints(&[-1]), true.into(), Value::None]);
    let weights = w.call("aten.div.Tensor", vec![weights.into(), sums.into()]);
    let v = w.heads(ids[2], [batch, keys, heads, width], [0, 2, 1, 3]);
    let flat = w.call("aten.view.default", vec![weights.into(), ints(&[batch * heads, queries, keys])]);
    let out = w.call("aten.bmm.default", vec![flat.into(), v.into()]);
    let out = w.call("aten.view.default", vec![out.into(), ints(&[batch, heads, queries, width])]);
    let out = w.call("aten.permute.default", vec![out.into(), ints(&[0, 2, 1, 3])]);
    let out = w.call("aten.clone.default", vec![out.into(), MemoryFormat::Contiguous.into()]);
    let out = w.call("aten.view.default", vec![out.into(), ints(&[batch, queries, heads * width])]);
    w.finish(match kept {
        Kept::Nothing => vec![out],
        Kept::Weights => vec![out, weights],
        Kept::Everything => vec![out, weights, q, k, v],
    })
}

fn attention_inputs([batch, heads, width]: [i64; 3], queries: i64, keys: i64, dtype: DType) -> [Tensor; 4] {
    [
        tensor(&[batch, queries, heads * width], dtype, 1),
        tensor(&[batch, keys, heads * width], dtype, 2),
        tensor(&[batch, keys, heads * width], dtype, 3),
        tensor(&[batch, 1, 1, keys], dtype, 4),
    ]
}

fn compile(graph: &Graph, generator: Generator, gate: &mut Gate) -> Program {
    Program::compile(graph, registry(), generator, gate).unwrap()
}

fn generators() -> impl Iterator<Item = Generator> {
    Generator::NAMES.iter().filter_map(|name| Generator::named(name))
}

#[test]
fn attention_that_is_written_out_is_one_chain_without_copies() {
    let sizes = [2, 3, 16];
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
        for (queries, keys) in [(70, 65), (90, 700), (33, 40)] {
            let inputs = attention_inputs(sizes, queries, keys, dtype);
            let graph = attention(&inputs, sizes, Kept::Nothing);
            for generator in generators() {
                let what = format!("{dtype} {queries} {keys} {generator:?}");
                let program = compile(&graph, generator, &mut Gate::open());
                let text = program.to_string();
                assert!(text.contains(", epilogue "), "{what}:\n{text}");
                assert!(text.contains(", prologue of "), "{what}:\n{text}");
                assert!(!text.contains("clone"), "{what}:\n{text}");
                assert_close(&run(&program, &inputs), &expected(&graph, &inputs), tolerance, &what);
            }
        }
    }
}

#[test]
fn weights_that_are_returned_are_all_there() {
    let sizes = [2, 3, 16];
    let inputs = attention_inputs(sizes, 100, 90, DType::F32);
    for kept in [Kept::Weights, Kept::Everything] {
        let graph = attention(&inputs, sizes, kept);
        let program = compile(&graph, Generator::best(), &mut Gate::open());
        assert!(program.to_string().contains(", prologue of "), "{program}");
        assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, &format!("{kept:?}"));
    }
}

#[test]
fn every_decision_about_a_chain_can_be_refused() {
    let sizes = [2, 3, 16];
    let inputs = attention_inputs(sizes, 70, 65, DType::F32);
    let graph = attention(&inputs, sizes, Kept::Nothing);
    let mut gate = Gate::open().logged();
    compile(&graph, Generator::best(), &mut gate);
    let log = gate.into_log();
    for first in ["elide-copy ", "fuse-epilogue ", "fuse-prologue ", "reuse "] {
        assert!(log.iter().any(|decision| decision.starts_with(first)), "{first}: {log:?}");
    }
    let reference = expected(&graph, &inputs);
    for allowed in 0..=log.len() {
        let program = compile(&graph, Generator::best(), &mut Gate::up_to(allowed as u64));
        assert_close(&run(&program, &inputs), &reference, 1e-5, &format!("up to {allowed}"));
    }
}

#[test]
fn matrices_that_are_small_or_thin_are_multiplied_as_well() {
    for (queries, keys, width) in [(5, 4, 3), (1, 80, 16), (80, 1, 16), (100, 2, 1), (64, 3, 2)] {
        let sizes = [2, 3, width];
        let inputs = attention_inputs(sizes, queries, keys, DType::F32);
        let graph = attention(&inputs, sizes, Kept::Nothing);
        let program = compile(&graph, Generator::best(), &mut Gate::open());
        assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, &format!("{queries} {keys} {width}"));
    }
}

#[test]
fn prologue_and_epilogue_are_fused_into_one_bmm() {
    let inputs = [tensor(&[6, 80, 70], DType::F32, 1), tensor(&[6, 70, 72], DType::F32, 2)];
    let (mut w, ids) = Writer::new(&inputs);
    let left = w.call("aten.exp.default", vec![ids[0].into()]);
    let product = w.call("aten.bmm.default", vec![left.into(), ids[1].into()]);
    let out = w.call("aten.relu.default", vec![product.into()]);
    let graph = w.finish(vec![out]);
    for generator in generators() {
        let program = compile(&graph, generator, &mut Gate::open());
        let text = program.to_string();
        assert!(text.contains(", epilogue ") && text.contains(", prologue of "), "{text}");
        assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, "exp and relu");
    }
}

#[test]
fn a_kernel_that_reads_across_matrices_waits() {
    let inputs = [tensor(&[6, 80, 40], DType::F32, 1), tensor(&[6, 40, 72], DType::F32, 2)];
    for dims in [[0], [1]] {
        let (mut w, ids) = Writer::new(&inputs);
        let product = w.call("aten.bmm.default", vec![ids[0].into(), ids[1].into()]);
        let out = w.call("aten.amax.default", vec![product.into(), ints(&dims), false.into()]);
        let graph = w.finish(vec![out]);
        let program = compile(&graph, Generator::best(), &mut Gate::open());
        assert!(!program.to_string().contains(", epilogue "), "{program}");
        assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, "across");
    }
}

#[test]
fn a_matrix_that_is_repeated_is_not_copied() {
    let inputs = [tensor(&[6, 80, 40], DType::F32, 1), tensor(&[2, 1, 40, 72], DType::F32, 2)];
    let (mut w, ids) = Writer::new(&inputs);
    let wide = w.call("aten.expand.default", vec![ids[1].into(), ints(&[2, 3, 40, 72])]);
    let copy = w.call("aten.clone.default", vec![wide.into(), MemoryFormat::Contiguous.into()]);
    let flat = w.call("aten.view.default", vec![copy.into(), ints(&[6, 40, 72])]);
    let out = w.call("aten.bmm.default", vec![ids[0].into(), flat.into()]);
    let graph = w.finish(vec![out]);
    let program = compile(&graph, Generator::best(), &mut Gate::open());
    assert!(!program.to_string().contains("clone"), "{program}");
    assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, "repeated");
}

#[test]
fn a_copy_that_something_else_reads_is_made() {
    let inputs = [tensor(&[2, 80, 3, 40], DType::F32, 1), tensor(&[6, 40, 72], DType::F32, 2)];
    let (mut w, ids) = Writer::new(&inputs);
    let transposed = w.call("aten.permute.default", vec![ids[0].into(), ints(&[0, 2, 1, 3])]);
    let copy = w.call("aten.clone.default", vec![transposed.into(), MemoryFormat::Contiguous.into()]);
    let flat = w.call("aten.view.default", vec![copy.into(), ints(&[6, 80, 40])]);
    let out = w.call("aten.bmm.default", vec![flat.into(), ids[1].into()]);
    let graph = w.finish(vec![out, copy]);
    let program = compile(&graph, Generator::best(), &mut Gate::open());
    assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, "read twice");
}

#[test]
fn heads_of_any_length_are_multiplied_where_they_lie() {
    let env = SymEnv::new();
    let (batch, length) = (env.size(2), env.size(64));
    let meta = Meta::contiguous(&[batch.clone(), length.clone(), 3.into(), 16.into()], DType::F32);
    let op = |name: &str| registry().get(name).unwrap();
    let mut builder = Builder::new();
    let x = builder.placeholder("x", Some(Value::Tensor(meta)));
    let count = batch.clone() * SymInt::Int(3);
    let mut heads = |order: &[i64], flat: [&SymInt; 3]| {
        let transposed = builder.call(op("aten.permute.default"), vec![x.into(), ints(order)]);
        let copy = builder.call(op("aten.clone.default"), vec![transposed.into(), MemoryFormat::Contiguous.into()]);
        let sizes = flat.into_iter().map(|size| Value::Int(size.clone())).collect();
        builder.call(op("aten.view.default"), vec![copy.into(), Value::List(sizes)])
    };
    let left = heads(&[0, 2, 1, 3], [&count, &length, &16.into()]);
    let right = heads(&[0, 2, 3, 1], [&count, &16.into(), &length]);
    let product = builder.call(op("aten.bmm.default"), vec![left.into(), right.into()]);
    let result = builder.call(op("aten.relu.default"), vec![product.into()]);
    builder.output(vec![result].into());
    let graph = builder.finish();
    let program = compile(&graph, Generator::best(), &mut Gate::open());
    assert!(!program.to_string().contains("clone"), "{program}");
    for (batch, length) in [(2, 64), (3, 5), (5, 100), (2, 2)] {
        let input = tensor(&[batch, length, 3, 16], DType::F32, 1);
        let rows = |b: i64, h: i64, i: i64| ((b * length + i) * 3 + h) * 16;
        let values = input.to_f64s();
        let mut expected = Vec::new();
        for (b, h, i, j) in (0..batch * 3 * length * length)
            .map(|at| (at / length / length / 3, at / length / length % 3, at / length % length, at % length))
        {
            let (i, j) = (rows(b, h, i) as usize, rows(b, h, j) as usize);
            let sum: f64 = (0..16).map(|d| values[i + d] * values[j + d]).sum();
            expected.push(sum.max(0.0));
        }
        assert_close(&run(&program, &[input]), &expected, 1e-5, &format!("{batch} {length}"));
    }
}
