//! Partitioners on random programs: chains, diamonds, matmuls, views, lists and random numbers.
//!
//! Whatever is saved, forward and backward graph together give the joint graph's results bit for bit, random numbers are
//! drawn once, and no matmul is computed twice unless the memory budget asks for it.

use pyrite_autograd::{Joint, MinCut, Partition, default_partition, joint, min_cut_partition};
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Emit, Graph, Handle, Kind, Meta, Tag, Target, Tracer, Value};
use pyrite_ops::registry;
use pyrite_passes::cleanup::dead_code;
use pyrite_tensor::random::{CounterGenerator, TorchGenerator};
use pyrite_tensor::{DType, Tensor};

const SIZE: i64 = 4;
const SEEDS: u64 = 150;

/// A source of choices.
struct Dice {
    generator: CounterGenerator,
    drawn: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { generator: CounterGenerator::new(0x9a27, seed), drawn: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        self.generator.integer(self.drawn, 0, bound as i64) as usize
    }

    fn pick(&mut self, values: &[Handle]) -> Handle {
        // Recent values are picked more often, so that chains grow long.
        let back = self.below(values.len()).min(self.below(values.len()));
        values[values.len() - 1 - back]
    }
}

const UNARY: &[&str] = &["aten.sin.default", "aten.tanh.default", "aten.relu.default", "aten.sigmoid.default"];
const BINARY: &[&str] = &["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor", "aten.maximum.default"];

/// A program of square matrices; those of even seeds draw random numbers.
fn program(seed: u64, length: usize) -> Graph {
    let mut dice = Dice::new(seed);
    let mut tracer = Tracer::new(registry());
    let mut values: Vec<Handle> = (0..3)
        .map(|index| {
            let meta = Meta::contiguous(&[SIZE.into(), SIZE.into()], DType::F64);
            tracer.placeholder(&format!("x{index}"), Meta { requires_grad: index < 2, ..meta })
        })
        .collect();
    for _ in 0..length {
        let e: &mut dyn Emit = &mut tracer;
        let (a, b) = (dice.pick(&values), dice.pick(&values));
        let made = match dice.below(9) {
            0 | 1 => e.one(UNARY[dice.below(UNARY.len())], &[a.into()]),
            2 | 3 => e.one(BINARY[dice.below(BINARY.len())], &[a.into(), b.into()]),
            4 => e.one("aten.mm.default", &[a.into(), b.into()]),
            5 => e.one("aten._softmax.default", &[a.into(), 1i64.into(), false.into()]),
            6 => e.one("aten.t.default", &[a.into()]),
            7 if seed.is_multiple_of(2) => {
                e.many("aten.native_dropout.default", &[a.into(), 0.5f64.into(), true.into()]).map(|results| results[0])
            }
            _ => e.one("aten.sum.dim_IntList", &[a.into(), vec![0i64].into(), true.into()]).and_then(|sum| {
                let shape: Value<Handle> = vec![SIZE, SIZE].into();
                e.one("aten.expand.default", &[sum.into(), shape])
            }),
        };
        values.push(made.unwrap());
    }
    let last = values.len() - 1;
    let outputs = [values[last], values[last - 1], dice.pick(&values)];
    let outputs = outputs.map(|handle| tracer.value(handle).clone());
    tracer.finish(Value::List(outputs.to_vec()))
}

fn matrix(stream: u64) -> Value<Tensor> {
    let generator = CounterGenerator::new(1, stream);
    let tensor = Tensor::empty(&[SIZE, SIZE], DType::F64).unwrap();
    tensor.write_f64s(&(0..(SIZE * SIZE) as u64).map(|i| generator.normal(i)).collect::<Vec<_>>());
    Value::Tensor(tensor)
}

/// Runs a graph; the generator goes on from where it is.
fn run(graph: &Graph, inputs: Vec<Value<Tensor>>, random: &mut TorchGenerator) -> Vec<Value<Tensor>> {
    let context = Context::with_generator(registry(), random.clone());
    let result = Interpreter { context: &context, mode: Mode::Eager }.run(graph, inputs).unwrap();
    *random = context.rng.into_inner();
    let Value::List(items) = result else { panic!("a joint graph returns a list") };
    items
}

fn bits(values: &[Value<Tensor>]) -> Vec<Option<Vec<u64>>> {
    values.iter().map(|v| v.as_tensor().map(|t| t.to_f64s().iter().map(|x| x.to_bits()).collect())).collect()
}

fn count(graph: &Graph, counted: impl Fn(&Target) -> bool) -> usize {
    graph.nodes().filter(|(_, node)| matches!(&node.kind, Kind::Call(target) if counted(target))).count()
}

fn is_random(target: &Target) -> bool {
    matches!(target, Target::Op(op) if op.has(Tag::Random))
}

fn is_matmul(target: &Target) -> bool {
    target.name() == "aten.mm.default"
}

/// The results of the two halves: outputs, then gradients.
fn run_halves(joint: &Joint, partition: &Partition) -> Vec<Value<Tensor>> {
    let mut random = TorchGenerator::new(3);
    let primals = (0..joint.primals as u64).map(matrix).collect();
    let mut outputs = run(&partition.forward, primals, &mut random);
    let mut inputs = outputs.split_off(partition.outputs);
    inputs.extend((0..partition.tangents.len() as u64).map(|i| matrix(100 + i)));
    outputs.extend(run(&partition.backward, inputs, &mut random));
    outputs
}

fn run_whole(joint: &Joint) -> Vec<Value<Tensor>> {
    let mut inputs: Vec<_> = (0..joint.primals as u64).map(matrix).collect();
    inputs.extend((0..joint.tangents.len() as u64).map(|i| matrix(100 + i)));
    run(&joint.graph, inputs, &mut TorchGenerator::new(3))
}

/// A random program's joint graph, if a gradient reaches an input.
fn random_joint(seed: u64) -> Option<Joint> {
    let mut made = joint(&program(seed, 6 + (seed % 40) as usize), registry()).unwrap();
    made.graph = dead_code(&made.graph);
    (!made.tangents.is_empty()).then_some(made)
}

fn budget(memory_budget: f64) -> MinCut {
    MinCut { memory_budget }
}

#[test]
fn both_halves_give_the_results_of_the_joint_graph() {
    let mut checked = 0;
    for seed in 0..SEEDS {
        let Some(joint) = random_joint(seed) else { continue };
        let expected = bits(&run_whole(&joint));
        let partitions = [1.0, 0.5, 0.0].map(|part| min_cut_partition(&joint, budget(part)));
        for (index, partition) in partitions.iter().chain([&default_partition(&joint)]).enumerate() {
            assert_eq!(bits(&run_halves(&joint, partition)), expected, "seed {seed}, partition {index}");
        }
        checked += 1;
    }
    assert!(checked > SEEDS / 2);
}

#[test]
fn the_minimum_cut_saves_no_more_than_the_default_and_a_smaller_budget_no_more_than_a_larger_one() {
    for seed in 0..SEEDS {
        let Some(joint) = random_joint(seed) else { continue };
        let bytes = [0.0, 0.5, 1.0].map(|part| min_cut_partition(&joint, budget(part)).saved_bytes);
        assert!(bytes[0] <= bytes[1] && bytes[1] <= bytes[2], "seed {seed}: {bytes:?}");
        let by_default = default_partition(&joint).saved_bytes;
        assert!(bytes[2] <= by_default, "seed {seed}: {} against {by_default}", bytes[2]);
    }
}

#[test]
fn without_a_budget_only_inputs_and_random_numbers_are_saved() {
    let mut checked = 0;
    for seed in 0..SEEDS {
        let Some(joint) = random_joint(seed) else { continue };
        if count(&joint.graph, is_random) == 0 {
            let inputs = joint.primals as u64 * (SIZE * SIZE) as u64 * 8;
            assert!(min_cut_partition(&joint, budget(0.0)).saved_bytes <= inputs, "seed {seed}");
            checked += 1;
        }
    }
    assert!(checked > 10);
}

#[test]
fn random_numbers_are_drawn_once_and_forward() {
    for seed in 0..SEEDS {
        let Some(joint) = random_joint(seed) else { continue };
        let drawn = count(&joint.graph, is_random);
        for partition in [min_cut_partition(&joint, budget(0.0)), default_partition(&joint)] {
            assert_eq!(count(&partition.forward, is_random), drawn, "seed {seed}");
            assert_eq!(count(&partition.backward, is_random), 0, "seed {seed}");
        }
    }
}

#[test]
fn no_matmul_is_computed_twice_unless_the_budget_asks_for_it() {
    let mut recomputed = 0;
    for seed in 0..SEEDS {
        let Some(joint) = random_joint(seed) else { continue };
        let matmuls = count(&joint.graph, is_matmul);
        let halves = |p: &Partition| count(&p.forward, is_matmul) + count(&p.backward, is_matmul);
        assert_eq!(halves(&min_cut_partition(&joint, budget(1.0))), matmuls, "seed {seed}");
        recomputed += halves(&min_cut_partition(&joint, budget(0.0))) - matmuls;
    }
    assert!(recomputed > 0);
}
