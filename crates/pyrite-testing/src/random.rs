//! Random well-typed graphs, and what must hold for each.
//!
//! [`graph`] makes a small graph from a number: pointwise operators, views, reductions, matmuls and in-place
//! operators over a few inputs. [`check`] is the property: the graph verifies, prints and reads back equal, runs, infers
//! what it computes, keeps its schemas' promises, and gives in double precision nearly what it gives in single.

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::infer::infer;
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::verify::verify;
use pyrite_ir::{Builder, Graph, Meta, NodeId, Value};
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::random::CounterGenerator;
use pyrite_tensor::{DType, Tensor};

/// A graph and inputs for it.
pub struct Case {
    /// The graph.
    pub graph: Graph,
    /// A tensor per placeholder.
    pub inputs: Vec<Tensor>,
}

/// Bounded functions of one tensor, so that values stay in range however they are chained.
const UNARY: &[&str] = &[
    "aten.tanh.default",
    "aten.sigmoid.default",
    "aten.sin.default",
    "aten.relu.default",
    "aten.neg.default",
    "aten.abs.default",
    "aten.gelu.default",
    "aten.cos.default",
];
const BINARY: &[&str] =
    &["aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.maximum.default", "aten.minimum.default"];
const IN_PLACE: &[&str] = &["aten.relu_.default", "aten.tanh_.default", "aten.neg_.default"];

/// The graph of a number.
pub fn graph(number: u64) -> Case {
    let mut maker = Maker::new(number);
    let inputs = maker.inputs(number);
    for _ in 0..3 + maker.draw(10) {
        maker.step();
    }
    let kept: Vec<NodeId> = maker.live.iter().rev().take(2).copied().collect();
    maker.builder.output(kept.into());
    Case { graph: maker.builder.finish(), inputs }
}

/// Makes a graph step by step from random draws.
pub(crate) struct Maker {
    random: CounterGenerator,
    drawn: u64,
    pub(crate) builder: Builder,
    /// The tensors so far.
    pub(crate) live: Vec<NodeId>,
}

impl Maker {
    pub(crate) fn new(number: u64) -> Self {
        Self { random: CounterGenerator::new(number, 1), drawn: 0, builder: Builder::new(), live: Vec::new() }
    }

    pub(crate) fn draw(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        self.random.integer(self.drawn, 0, bound.max(1) as i64) as usize
    }

    pub(crate) fn inputs(&mut self, number: u64) -> Vec<Tensor> {
        let count = 1 + self.draw(3);
        (0..count)
            .map(|index| {
                let shape: Vec<i64> = (0..=self.draw(3)).map(|_| [1, 2, 3, 4, 5][self.draw(5)]).collect();
                let tensor = Tensor::empty(&shape, DType::F32).expect("a small tensor");
                CounterGenerator::new(number, 100 + index as u64).fill_normal(&tensor);
                // A third of the inputs lie transposed in memory.
                let order: Vec<usize> =
                    if self.draw(3) == 0 { (0..shape.len()).rev().collect() } else { (0..shape.len()).collect() };
                let tensor = tensor.permuted(&order);
                let id = self.builder.placeholder("arg", Some(Value::Tensor(Meta::of(&tensor))));
                self.live.push(id);
                tensor
            })
            .collect()
    }

    pub(crate) fn pick(&mut self) -> NodeId {
        let at = self.draw(self.live.len());
        self.live[at]
    }

    pub(crate) fn meta(&self, id: NodeId) -> Meta {
        match &self.builder.node(id).meta {
            Some(Value::Tensor(meta)) => meta.clone(),
            other => unreachable!("only tensors are live, not {other:?}"),
        }
    }

    /// Adds a call if the operator exists and takes these arguments; `None` when it refuses.
    pub(crate) fn call(&mut self, op: &str, args: &[Value<NodeId>]) -> Option<NodeId> {
        let op = registry().get(op)?;
        let bound = op.schema.bind_in_order(args).ok()?;
        let metas: Vec<Value<Meta>> = bound.iter().map(|v| v.map(&mut |id| self.meta(*id))).collect();
        let result = infer(registry(), op, &metas).ok()?;
        let Value::Tensor(_) = &result else { return None };
        let id = self.builder.call(op, bound);
        self.builder.set_meta(id, result);
        self.live.push(id);
        Some(id)
    }

    fn step(&mut self) {
        let x = self.pick();
        let meta = self.meta(x);
        let (rank, wide) = (meta.rank(), meta.numel().is_gt(0));
        let dim = self.draw(rank) as i64;
        match self.draw(9) {
            0 | 1 => {
                let op = UNARY[self.draw(UNARY.len())];
                self.call(op, &[x.into()]);
            }
            2 | 3 => {
                let (op, y) = (BINARY[self.draw(BINARY.len())], self.pick());
                self.call(op, &[x.into(), y.into()]);
            }
            4 if rank > 1 => {
                let other = self.draw(rank) as i64;
                self.call("aten.transpose.int", &[x.into(), dim.into(), other.into()]);
            }
            5 if rank > 0 => {
                self.call(
                    "aten.slice.Tensor",
                    &[x.into(), dim.into(), Value::from(0i64), Value::from(2i64), Value::from(1i64)],
                );
            }
            6 if rank > 0 && wide => {
                self.call("aten.sum.dim_IntList", &[x.into(), vec![dim].into(), true.into()]);
            }
            7 => {
                let y = self.pick();
                self.call("aten.mm.default", &[x.into(), y.into()]);
            }
            _ => {
                // Writing is kept to fresh copies, so that double and single precision see the same program.
                if let Some(copy) = self.call("aten.clone.default", &[x.into()]) {
                    let op = IN_PLACE[self.draw(IN_PLACE.len())];
                    self.call(op, &[copy.into()]);
                }
            }
        }
    }
}

/// Checks a case; the error says what does not hold.
pub fn check(case: &Case) -> Result<(), String> {
    let problems = verify(&case.graph, None);
    if let Some(problem) = problems.first() {
        return Err(format!("does not verify: {problem}"));
    }
    let text = print(&case.graph, &PrintOptions::default());
    let again = read_text(&text, None, registry(), &ReadOptions::default())
        .map_err(|d| format!("cannot be read back: {d}\n{text}"))?;
    if again.graph != case.graph {
        return Err(format!("is read back as another graph:\n{text}"));
    }
    let run = |mode: Mode| {
        let context = Context::new(registry(), 0);
        let inputs = case.inputs.iter().map(|t| Value::Tensor(copy(t))).collect();
        Interpreter { context: &context, mode }.run(&case.graph, inputs).map_err(|e| format!("{mode:?}: {e}\n{text}"))
    };
    let eager = run(Mode::Eager)?;
    for mode in [Mode::CrossReference, Mode::SchemaCheck] {
        if !close(&eager, &run(mode)?, 0.0) {
            return Err(format!("{mode:?} gives another result\n{text}"));
        }
    }
    if !close(&eager, &run(Mode::Fp64)?, 1e-3) {
        return Err(format!("double precision is far away\n{text}"));
    }
    Ok(())
}

/// A copy with the same strides.
pub(crate) fn copy(tensor: &Tensor) -> Tensor {
    let fresh =
        Tensor::empty_strided(tensor.shape(), tensor.stride(), tensor.dtype()).expect("a copy of a small tensor");
    fresh.write_from(tensor);
    fresh
}

fn close(left: &Value<Tensor>, right: &Value<Tensor>, tolerance: f64) -> bool {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    left.each(&mut |t| a.push(t.clone()));
    right.each(&mut |t| b.push(t.clone()));
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| {
            a.shape() == b.shape()
                && a.to_f64s().iter().zip(b.to_f64s()).all(|(x, y)| {
                    (x.is_nan() && y.is_nan()) || *x == y || (x - y).abs() <= tolerance * (1.0 + x.abs().max(y.abs()))
                })
        })
}
