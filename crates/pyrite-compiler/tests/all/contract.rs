//! Programs on inputs that lie otherwise than those they were compiled for: equal to what they compute, or an error.

use pyrite_compiler::backend::{Backend, Direction, Executable, Options};
use pyrite_ir::{Builder, Graph, Meta, NodeId, Value};
use pyrite_ops::registry;
use pyrite_tensor::{DType, Layout, Storage, Tensor};

const BACKENDS: [&str; 4] = ["eager", "aot_eager", "aot_eager_decomp_partition", "native"];

fn row(storage: &Storage, offset: i64, length: i64) -> Tensor {
    Tensor::new(storage.clone(), DType::F32, Layout::new(&[length], &[1], offset)).expect("it lies within")
}

fn numbers(count: u16) -> Storage {
    Storage::from_slice(&(0..count).map(f32::from).collect::<Vec<f32>>())
}

/// A graph of inputs that lie as these do.
fn graph_of(inputs: &[&Tensor], body: impl FnOnce(&mut Builder, &[NodeId]) -> NodeId) -> Graph {
    let mut builder = Builder::new();
    let ids: Vec<NodeId> =
        inputs.iter().map(|tensor| builder.placeholder("x", Some(Value::Tensor(Meta::of(tensor))))).collect();
    let result = body(&mut builder, &ids);
    builder.output(vec![result].into());
    builder.finish()
}

fn call(builder: &mut Builder, name: &str, args: Vec<Value<NodeId>>) -> NodeId {
    let op = registry().get(name).expect("it is known");
    let args = op.schema.bind_in_order(&args).expect("they fit");
    builder.call(op, args)
}

fn compiled(graph: &Graph) -> Vec<(&'static str, Box<dyn Executable>)> {
    let options = Options { direction: Direction::Forward, ..Options::default() };
    let make = |name| {
        let backend: Backend = pyrite_compiler::find(name).expect("it is built in");
        (name, (backend.compile)(graph.clone(), &options).expect("it compiles"))
    };
    BACKENDS.into_iter().map(make).collect()
}

fn run(program: &dyn Executable, inputs: &[&Tensor]) -> Tensor {
    let inputs = inputs.iter().map(|tensor| Value::Tensor((*tensor).clone())).collect();
    let outputs = program.run(inputs, None, &mut |_, _| {}).expect("it runs").outputs;
    let Value::List(outputs) = outputs else { panic!("no list") };
    outputs[0].as_tensor().expect("a tensor").clone()
}

#[test]
fn inputs_that_shared_memory_need_not_share_it_in_another_call() {
    let shared = numbers(16);
    let (a, b) = (row(&shared, 0, 8), row(&shared, 8, 8));
    let graph = graph_of(&[&a, &b], |builder, x| call(builder, "aten.sub.Tensor", vec![x[0].into(), x[1].into()]));
    for (name, program) in compiled(&graph) {
        assert_eq!(run(&*program, &[&a, &b]).to_f64s(), [-8.0; 8], "{name}");
        let (one, zero) = (Tensor::from_slice(&[1f32; 8], &[8]), Tensor::from_slice(&[0f32; 8], &[8]));
        assert_eq!(run(&*program, &[&one, &zero]).to_f64s(), [1.0; 8], "{name}");
    }
}

#[test]
fn a_view_of_an_input_moves_with_it() {
    let storage = numbers(32);
    let first = row(&storage, 0, 8);
    let graph = graph_of(&[&first], |builder, x| {
        call(builder, "aten.slice.Tensor", vec![x[0].into(), 0.into(), 1.into(), 8.into()])
    });
    for (name, program) in compiled(&graph) {
        for offset in [0, 5, 24] {
            let view = run(&*program, &[&row(&storage, offset, 8)]);
            assert!(view.storage().same(&storage) && view.layout().offset == offset + 1, "{name}: {:?}", view.layout());
        }
    }
}

#[test]
fn a_program_that_names_places_or_writes_refuses_inputs_that_lie_otherwise() {
    let storage = numbers(32);
    let (first, second) = (row(&storage, 0, 8), row(&storage, 8, 8));
    let size = |n: i64| Value::List(vec![Value::from(n)]);
    let places = graph_of(&[&first], |builder, x| {
        let view = call(builder, "aten.as_strided.default", vec![x[0].into(), size(4), size(1), 2.into()]);
        call(builder, "aten.neg.default", vec![view.into()])
    });
    let writes = graph_of(&[&first, &second], |builder, x| {
        call(builder, "aten.mul_.Scalar", vec![x[0].into(), 2.into()]);
        call(builder, "aten.neg.default", vec![x[1].into()])
    });
    let given = |tensor: &Tensor| Value::Tensor(tensor.clone());
    for name in ["aot_eager", "native"] {
        let backend = pyrite_compiler::find(name).expect("it is built in");
        let program = (backend.compile)(places.clone(), &Options::default()).expect("it compiles");
        assert!(program.run(vec![given(&first)], None, &mut |_, _| {}).is_ok(), "{name}");
        let moved = program.run(vec![given(&second)], None, &mut |_, _| {}).map(|_| ()).unwrap_err();
        assert!(moved.to_string().contains("begins at element 8"), "{name}: {moved}");
        let program = (backend.compile)(writes.clone(), &Options::default()).expect("it compiles");
        let apart = Tensor::from_slice(&[1f32; 8], &[8]);
        let refused = program.run(vec![given(&first), given(&apart)], None, &mut |_, _| {}).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("shares memory"), "{name}: {refused}");
    }
}

#[test]
fn prepared_inputs_are_read_as_they_are_in_each_run_and_can_be_given_other_memory() {
    use pyrite_tensor::random::TorchGenerator;
    use std::ptr::NonNull;

    /// Memory of somebody else, as torch's is.
    #[expect(unsafe_code, reason = "memory that is not ours")]
    fn external(numbers: &mut [f32], offset: i64, length: i64) -> Tensor {
        let start = NonNull::new(numbers.as_mut_ptr().cast()).expect("there is memory");
        // SAFETY: the numbers outlive the tensor, and are written only while no program runs.
        let storage = unsafe { Storage::external(start, numbers.len() * 4, Box::new(())) };
        Tensor::new(storage, DType::F32, Layout::new(&[length], &[1], offset)).expect("it lies within")
    }
    let (mut left, mut right) = ([1f32, 2.0, 3.0, 4.0], [10f32, 20.0, 30.0, 40.0, 50.0]);
    let (x, w) = (external(&mut left, 0, 4), external(&mut right, 0, 4));
    // The input dies in the first statement of several: it is there in the next run all the same.
    let graph = graph_of(&[&x, &w], |builder, inputs| {
        let sum = call(builder, "aten.add.Tensor", vec![inputs[0].into(), inputs[1].into()]);
        let sorted = call(builder, "aten.cumsum.default", vec![sum.into(), 0.into()]);
        call(builder, "aten.mul.Tensor", vec![sorted.into(), inputs[1].into()])
    });
    let sums = |x: &[f32], w: &[f32]| -> Vec<f64> {
        let mut total = 0.0;
        let product = |(x, w): (&f32, &f32)| {
            total += f64::from(x + w);
            total * f64::from(*w)
        };
        x.iter().zip(w).map(product).collect()
    };
    let mut prepared_one = false;
    for (name, program) in compiled(&graph) {
        let Some(mut prepared) = program.prepare(&[Value::Tensor(x.clone()), Value::Tensor(w.clone())]) else {
            continue;
        };
        prepared_one |= name == "native";
        let run = |prepared: &mut dyn pyrite_compiler::backend::Prepared| {
            let forward = prepared.run(&mut TorchGenerator::new(0), &mut |_, _| {}).expect("it runs");
            let Value::List(outputs) = forward.outputs else { panic!("no list") };
            outputs[0].as_tensor().expect("a tensor").clone()
        };
        let first = run(&mut *prepared);
        assert_eq!(first.to_f64s(), sums(&left, &right[..4]), "{name}");
        left[2] = -7.0;
        let second = run(&mut *prepared);
        assert_eq!(second.to_f64s(), sums(&left, &right[..4]), "{name}: content changes between runs");
        assert!(!first.storage().same(second.storage()), "{name}: what a run gave is not written by the next");
        let moved = external(&mut right, 1, 4);
        assert!(prepared.replace(1, &moved), "{name}");
        assert_eq!(run(&mut *prepared).to_f64s(), sums(&left, &right[1..]), "{name}: an input lies elsewhere");
        let shorter = external(&mut right, 0, 3);
        assert!(!prepared.replace(1, &shorter), "{name}: an input of another size is not taken");
        left[2] = 3.0;
    }
    assert!(prepared_one, "native programs can be prepared");
}

#[test]
fn each_run_of_a_prepared_program_has_a_backward_half_of_its_own() {
    use pyrite_tensor::random::TorchGenerator;

    let (x, w) = (Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]), Tensor::from_slice(&[4f32, 5.0, 6.0], &[3]));
    let mut builder = Builder::new();
    let wanted = |tensor: &Tensor| Value::Tensor(Meta { requires_grad: true, ..Meta::of(tensor) });
    let ids = [builder.placeholder("x", Some(wanted(&x))), builder.placeholder("w", Some(wanted(&w)))];
    // The gradient reads both inputs, and what the forward half computed.
    let product = call(&mut builder, "aten.mul.Tensor", vec![ids[0].into(), ids[1].into()]);
    let result = call(&mut builder, "aten.exp.default", vec![product.into()]);
    builder.output(vec![result].into());
    let graph = builder.finish();
    let backend = pyrite_compiler::find("native").expect("it is built in");
    let program = (backend.compile)(graph, &Options::default()).expect("it compiles");
    let mut prepared =
        program.prepare(&[Value::Tensor(x.clone()), Value::Tensor(w.clone())]).expect("it only reads its inputs");
    let mut forward = || prepared.run(&mut TorchGenerator::new(0), &mut |_, _| {}).expect("it runs");
    let gradients = |backward: Box<dyn pyrite_compiler::backend::Backward>, scale: f32| {
        let found = backward.run(vec![Tensor::from_slice(&[scale; 3], &[3])], &mut |_, _| {}).expect("it runs");
        found.inputs.into_iter().map(|gradient| gradient.expect("it is wanted").to_f64s()).collect::<Vec<_>>()
    };
    let (first, second) = (forward(), forward());
    let expected = |scale: f32| {
        let each = |of: &Tensor| {
            let (x, w) = (x.to_f64s(), w.to_f64s());
            let power = |at: usize| f64::from(scale) * (x[at] * w[at]).exp() * of.to_f64s()[at];
            (0..3).map(power).collect::<Vec<_>>()
        };
        vec![each(&w), each(&x)]
    };
    let close = |found: &[Vec<f64>], expected: &[Vec<f64>]| {
        found.iter().flatten().zip(expected.iter().flatten()).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs())
    };
    for (run, scale) in [(second, 2.0), (first, 1.0)] {
        let found = gradients(run.backward.expect("there is a backward half"), scale);
        assert!(close(&found, &expected(scale)), "{found:?}");
    }
}
