//! Random programs that write: in-place operators on tensors, on views and on views of views, over inputs that may share
//! memory.
//!
//! [`program`] makes one from a number. [`check`] is the property: the functionalized program has no write, and run in
//! the program's place it gives the same outputs, leaves the same contents in the inputs, and shares memory between
//! the same outputs and inputs.

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Kind, Meta, NodeId, Target, Value};
use pyrite_ops::registry;
use pyrite_passes::functionalize;
use pyrite_tensor::{Layout, Tensor};

use crate::random::{Case, Maker};

const UNARY: &[&str] = &["aten.tanh.default", "aten.sin.default", "aten.neg.default", "aten.clone.default"];
const BINARY: &[&str] = &["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"];
const IN_PLACE: &[&str] = &["aten.relu_.default", "aten.tanh_.default", "aten.neg_.default", "aten.zero_.default"];
const IN_PLACE_BINARY: &[&str] = &["aten.add_.Tensor", "aten.mul_.Tensor", "aten.copy_.default"];

/// The program of a number.
pub fn program(number: u64) -> Case {
    let mut maker = Maker::new(number.wrapping_mul(0x9e37_79b9).wrapping_add(7));
    let mut inputs = maker.inputs(number);
    if maker.draw(3) == 0 {
        // One more input that lies in the memory of the first.
        let first = inputs[0].clone();
        let shape: Vec<i64> = first.shape().iter().map(|d| (d + 1) / 2).collect();
        let shared = first.view(first.dtype(), Layout::new(&shape, first.stride(), first.layout().offset));
        if let Ok(shared) = shared {
            let id = maker.builder.placeholder("arg", Some(Value::Tensor(Meta::of(&shared))));
            maker.live.push(id);
            inputs.push(shared);
        }
    }
    for _ in 0..3 + maker.draw(12) {
        step(&mut maker);
    }
    let count = 1 + maker.draw(4);
    let kept: Vec<NodeId> = (0..count).map(|_| maker.pick()).collect();
    maker.builder.output(kept.into());
    Case { graph: maker.builder.finish(), inputs }
}

fn step(maker: &mut Maker) {
    let x = maker.pick();
    let meta = maker.meta(x);
    let rank = meta.rank();
    let dim = maker.draw(rank) as i64;
    let size = meta.shape.get(dim as usize).and_then(pyrite_sym::SymInt::as_int).unwrap_or(1);
    match maker.draw(10) {
        0 => {
            let op = UNARY[maker.draw(UNARY.len())];
            maker.call(op, &[x.into()]);
        }
        1 => {
            let (op, y) = (BINARY[maker.draw(BINARY.len())], maker.pick());
            maker.call(op, &[x.into(), y.into()]);
        }
        2..=5 => view(maker, x, rank, dim, size),
        6 | 7 => {
            let op = IN_PLACE[maker.draw(IN_PLACE.len())];
            maker.call(op, &[x.into()]);
        }
        8 => {
            let value = maker.draw(5) as f64 - 2.0;
            maker.call("aten.fill_.Scalar", &[x.into(), value.into()]);
        }
        _ => {
            let (op, y) = (IN_PLACE_BINARY[maker.draw(IN_PLACE_BINARY.len())], maker.pick());
            // The result must have the shape of what is written.
            let other = maker.meta(y);
            let fits = other.rank() <= rank
                && meta.shape.iter().rev().zip(other.shape.iter().rev()).all(|(a, b)| a.is_eq(b) || b.is_eq(1));
            if fits {
                maker.call(op, &[x.into(), y.into()]);
            }
        }
    }
}

fn view(maker: &mut Maker, x: NodeId, rank: usize, dim: i64, size: i64) {
    match maker.draw(12) {
        0 if rank > 1 => {
            let other = maker.draw(rank) as i64;
            maker.call("aten.transpose.int", &[x.into(), dim.into(), other.into()]);
        }
        1 | 2 if rank > 0 && size > 0 => {
            let index = maker.draw(size as usize) as i64;
            maker.call("aten.select.int", &[x.into(), dim.into(), index.into()]);
        }
        3 | 4 if rank > 0 => {
            let (start, step) = (maker.draw(2) as i64, 1 + maker.draw(2) as i64);
            maker.call("aten.slice.Tensor", &[x.into(), dim.into(), start.into(), size.into(), step.into()]);
        }
        5 => {
            maker.call("aten.unsqueeze.default", &[x.into(), dim.into()]);
        }
        6 => {
            maker.call("aten.squeeze.default", &[x.into()]);
        }
        7 if rank > 1 => {
            maker.call("aten.diagonal.default", &[x.into()]);
        }
        8 => {
            maker.call("aten.view.default", &[x.into(), vec![-1i64].into()]);
        }
        9 => {
            maker.call("aten.detach.default", &[x.into()]);
        }
        10 if rank > 0 && size > 1 => {
            maker.call("aten.unfold.default", &[x.into(), dim.into(), Value::from(2i64), Value::from(2i64)]);
        }
        _ => {
            let order: Vec<i64> = (0..rank as i64).rev().collect();
            maker.call("aten.permute.default", &[x.into(), order.into()]);
        }
    }
}

/// The inputs copied, sharing memory as they do.
fn copies(inputs: &[Tensor]) -> Vec<Tensor> {
    let mut storages: Vec<(Tensor, Tensor)> = Vec::new();
    inputs
        .iter()
        .map(|tensor| {
            let known = storages.iter().find(|(old, _)| old.storage().same(tensor.storage()));
            let whole = if let Some((_, copy)) = known {
                copy.clone()
            } else {
                let count = (tensor.storage().nbytes() / tensor.dtype().size()) as i64;
                let flat = tensor.view(tensor.dtype(), Layout::contiguous(&[count])).expect("all of a storage");
                let copy = crate::random::copy(&flat);
                storages.push((tensor.clone(), copy.clone()));
                copy
            };
            whole.view(tensor.dtype(), tensor.layout().clone()).expect("the same view of a copy")
        })
        .collect()
}

/// For each pair of tensors, whether they share memory, and where each begins in it.
fn sharing(tensors: &[Tensor]) -> Vec<Vec<bool>> {
    tensors.iter().map(|a| tensors.iter().map(|b| a.storage().same(b.storage())).collect()).collect()
}

fn tensors(value: &Value<Tensor>) -> Vec<Tensor> {
    let mut found = Vec::new();
    value.each(&mut |t| found.push(t.clone()));
    found
}

/// Whether the program was one, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Both agree.
    Agrees,
    /// The program writes to memory that is shared within a tensor or with an operand, and both refuse it.
    Refused,
}

/// Checks a program; the error says what does not hold.
pub fn check(case: &Case) -> Result<Checked, String> {
    let text = || print(&case.graph, &PrintOptions::default());
    let (ours, theirs) = (copies(&case.inputs), copies(&case.inputs));
    let context = Context::new(registry(), 0);
    let interpreter = Interpreter { context: &context, mode: Mode::Eager };
    let values = |tensors: &[Tensor]| tensors.iter().cloned().map(Value::Tensor).collect::<Vec<_>>();
    let expected = interpreter.run(&case.graph, values(&theirs));
    let functional = functionalize(&case.graph, registry(), &[]);
    let (expected, functional) = match (expected, functional) {
        (Ok(expected), Ok(functional)) => (expected, functional),
        (Err(_), Err(_)) => return Ok(Checked::Refused),
        (Ok(_), Err(error)) => return Err(format!("cannot be functionalized: {error}\n{}", text())),
        (Err(error), Ok(_)) => return Err(format!("is functionalized although it fails: {error}\n{}", text())),
    };
    let pure = || print(&functional.graph, &PrintOptions::default());
    for (_, node) in functional.graph.nodes() {
        if matches!(&node.kind, Kind::Call(Target::Op(op)) if op.schema.is_mutable()) {
            return Err(format!("node {} still writes\n{}", node.name, pure()));
        }
    }
    let both = || format!("{}\nbecame\n{}\n{:?}", text(), pure(), functional.produced);
    let entered = functional.enter(&values(&ours), case.graph.constants()).map_err(|e| format!("{e}\n{}", both()))?;
    let results =
        interpreter.run(&functional.graph, entered.clone()).map_err(|e| format!("does not run: {e}\n{}", both()))?;
    let Value::List(results) = results else { return Err("returns no list".to_owned()) };
    let actual = functional.leave(&entered, results).map_err(|e| format!("{e}\n{}", both()))?;
    let (mut want, mut have) = (tensors(&expected), tensors(&actual));
    for (index, (want, have)) in want.iter().zip(&have).enumerate() {
        if (want.shape(), want.stride()) != (have.shape(), have.stride()) {
            let differs = format!("{:?} {:?} not {:?} {:?}", have.shape(), have.stride(), want.shape(), want.stride());
            return Err(format!("output {index} has the layout {differs}\n{}", both()));
        }
    }
    want.extend(theirs);
    have.extend(ours);
    for (index, (want, have)) in want.iter().zip(&have).enumerate() {
        let same = want.to_f64s().iter().zip(have.to_f64s()).all(|(a, b)| *a == b || (a.is_nan() && b.is_nan()));
        if !same {
            return Err(format!("tensor {index} is {:?} not {:?}\n{}", have.to_f64s(), want.to_f64s(), both()));
        }
    }
    if sharing(&want) != sharing(&have) {
        return Err(format!("memory is shared otherwise\n{}", both()));
    }
    Ok(Checked::Agrees)
}
