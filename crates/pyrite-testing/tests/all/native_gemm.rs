//! GEMMs in compiled programs: packed weights that are kept, fused epilogues.

use pyrite_codegen::{Generator, Program};
use pyrite_ir::{Builder, Graph, Meta, Value};
use pyrite_ops::registry;
use pyrite_passes::Gate;
use pyrite_tensor::{DType, Tensor};

use crate::programs::{assert_close, expected, run};

/// A tensor of numbers that differ with the seed.
fn tensor(shape: &[i64], dtype: DType, seed: usize) -> Tensor {
    let tensor = Tensor::empty(shape, dtype).unwrap();
    tensor.write_f64s(&numbers(tensor.numel(), seed));
    tensor
}

fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 31 + seed * 17) % 29) as f64 / 29.0 - 0.5).collect()
}

/// `then(bias + x @ weightᵀ)` over operators that take one tensor and some numbers.
fn layer(inputs: &[Tensor], then: &[(&str, Vec<Value<pyrite_ir::NodeId>>)]) -> Graph {
    let op = |name: &str| registry().get(name).unwrap();
    let mut builder = Builder::new();
    let ids: Vec<_> =
        inputs.iter().map(|input| builder.placeholder("x", Some(Value::Tensor(Meta::of(input))))).collect();
    let transposed = builder.call(op("aten.t.default"), vec![ids[1].into()]);
    let mut value = builder
        .call(op("aten.addmm.default"), vec![ids[2].into(), ids[0].into(), transposed.into(), 1.into(), 1.into()]);
    for (name, rest) in then {
        value = builder.call(op(name), [vec![value.into()], rest.clone()].concat());
    }
    builder.output(vec![value].into());
    builder.finish()
}

fn compile(graph: &Graph, gate: &mut Gate) -> Program {
    Program::compile(graph, registry(), Generator::best(), gate).unwrap()
}

#[test]
fn a_weight_that_is_written_to_or_replaced_is_never_missed() {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13), (DType::BF16, 0.04), (DType::F16, 0.005)] {
        let mut inputs = [tensor(&[20, 70], dtype, 1), tensor(&[50, 70], dtype, 2), tensor(&[50], dtype, 3)];
        let graph = layer(&inputs, &[("aten.relu.default", vec![])]);
        let program = compile(&graph, &mut Gate::open());
        let agree = |inputs: &[Tensor], what: &str| {
            assert_close(&run(&program, inputs), &expected(&graph, inputs), tolerance, &format!("{dtype}, {what}"));
        };
        for call in ["first call", "second call", "third call"] {
            agree(&inputs, call);
        }
        inputs[1].write_f64s(&numbers(50 * 70, 4));
        agree(&inputs, "written weight");
        agree(&inputs, "written weight again");
        inputs[1].permuted(&[1, 0]).write_from(&tensor(&[70, 50], dtype, 5));
        agree(&inputs, "weight written through a view");
        inputs[1] = tensor(&[50, 70], dtype, 6);
        agree(&inputs, "another weight");
        agree(&inputs, "another weight again");
        inputs[0] = tensor(&[20, 70], dtype, 7);
        agree(&inputs, "another input");
    }
}

#[test]
fn a_kernel_that_reads_row_by_row_is_fused_as_an_epilogue() {
    for shape in [[64, 40], [200, 33], [129, 600]] {
        let (rows, cols) = (shape[0], shape[1]);
        let inputs =
            [tensor(&[rows, 70], DType::F32, 1), tensor(&[cols, 70], DType::F32, 2), tensor(&[cols], DType::F32, 3)];
        let softmax = vec![Value::List(vec![1.into()]), true.into()];
        for (what, then) in [
            ("pointwise", vec![("aten.exp.default", vec![]), ("aten.neg.default", vec![])]),
            ("reduced", vec![("aten.exp.default", vec![]), ("aten.amax.default", softmax)]),
        ] {
            let graph = layer(&inputs, &then);
            let program = compile(&graph, &mut Gate::open());
            let follows = program.to_string().contains(", epilogue ");
            assert!(follows || cols < 64, "{what} {shape:?}:\n{program}");
            assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, what);
        }
    }
}

#[test]
fn whether_a_kernel_follows_is_a_decision() {
    let inputs = [tensor(&[64, 70], DType::F32, 1), tensor(&[80, 70], DType::F32, 2), tensor(&[80], DType::F32, 3)];
    let graph = layer(&inputs, &[("aten.exp.default", vec![])]);
    let mut gate = Gate::open().logged();
    compile(&graph, &mut gate);
    let log = gate.into_log();
    let fused = log.iter().position(|decision| decision.starts_with("fuse-epilogue "));
    let program = compile(&graph, &mut Gate::up_to(fused.expect("a decision to fuse an epilogue") as u64));
    assert!(!program.to_string().contains(", epilogue "), "{program}");
    assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, "refused");
}

#[test]
fn a_kernel_that_reads_columns_waits_for_the_whole_gemm() {
    let inputs = [tensor(&[128, 70], DType::F32, 1), tensor(&[80, 70], DType::F32, 2), tensor(&[80], DType::F32, 3)];
    let over_rows = vec![Value::List(vec![0.into()]), false.into()];
    let graph = layer(&inputs, &[("aten.amax.default", over_rows)]);
    let program = compile(&graph, &mut Gate::open());
    assert!(!program.to_string().contains(", epilogue "), "{program}");
    assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, "columns");
}

#[test]
fn a_bias_of_any_shape_and_factor_is_added() {
    let x = [tensor(&[70, 64], DType::F32, 1), tensor(&[80, 64], DType::F32, 2)];
    for (shape, beta, alpha) in
        [(&[70, 80][..], 1.0, 1.0), (&[80], 0.5, 2.0), (&[1, 80], 1.0, 1.0), (&[70, 1], -2.0, 1.0)]
    {
        let inputs = [x[0].clone(), x[1].clone(), tensor(shape, DType::F32, 3)];
        let op = |name: &str| registry().get(name).unwrap();
        let mut builder = Builder::new();
        let ids: Vec<_> =
            inputs.iter().map(|input| builder.placeholder("x", Some(Value::Tensor(Meta::of(input))))).collect();
        let transposed = builder.call(op("aten.t.default"), vec![ids[1].into()]);
        let args = vec![ids[2].into(), ids[0].into(), transposed.into(), beta.into(), alpha.into()];
        let sum = builder.call(op("aten.addmm.default"), args);
        let result = builder.call(op("aten.exp.default"), vec![sum.into()]);
        builder.output(vec![result].into());
        let graph = builder.finish();
        let program = compile(&graph, &mut Gate::open());
        assert!(program.to_string().contains(", epilogue "), "{program}");
        for call in 0..3 {
            let what = format!("{shape:?} {beta} {alpha}, call {call}");
            assert_close(&run(&program, &inputs), &expected(&graph, &inputs), 1e-5, &what);
        }
    }
    let unseen = [x[0].clone(), x[1].clone(), Tensor::from_slice(&[f32::NAN; 80], &[80])];
    let op = |name: &str| registry().get(name).unwrap();
    let mut builder = Builder::new();
    let ids: Vec<_> =
        unseen.iter().map(|input| builder.placeholder("x", Some(Value::Tensor(Meta::of(input))))).collect();
    let transposed = builder.call(op("aten.t.default"), vec![ids[1].into()]);
    let args = vec![ids[2].into(), ids[0].into(), transposed.into(), 0.into(), 1.into()];
    let result = builder.call(op("aten.addmm.default"), args);
    builder.output(vec![result].into());
    let graph = builder.finish();
    let program = compile(&graph, &mut Gate::open());
    assert_close(&run(&program, &unseen), &expected(&graph, &unseen), 1e-5, "a factor of zero");
}

/// A tensor over numbers that belong to somebody else, who writes to them without telling.
#[expect(unsafe_code, reason = "memory that is not ours")]
fn external(numbers: &mut [f32], shape: &[i64]) -> Tensor {
    let start = std::ptr::NonNull::new(numbers.as_mut_ptr().cast()).unwrap();
    // SAFETY: the numbers outlive the tensor, and are written only between calls.
    let storage = unsafe { pyrite_tensor::Storage::external(start, std::mem::size_of_val(numbers), Box::new(())) };
    Tensor::new(storage, DType::F32, pyrite_tensor::Layout::contiguous(shape)).unwrap()
}

#[test]
fn external_weights_are_kept_by_their_content_and_seen_to_change() {
    let (rows, cols, depth) = (40, 96, 64);
    let inputs =
        [tensor(&[rows, depth], DType::F32, 1), tensor(&[cols, depth], DType::F32, 2), tensor(&[cols], DType::F32, 3)];
    let graph = layer(&inputs, &[]);
    let program = compile(&graph, &mut Gate::open());
    let mut weights: Vec<f32> = inputs[1].to_f32s();
    // Twice the same, then a change in each call, then the same again.
    for call in 0..12usize {
        if (3..9).contains(&call) {
            weights[call * 7] += 1.0;
        }
        let given = [inputs[0].clone(), external(&mut weights, &[cols, depth]), inputs[2].clone()];
        let known = [inputs[0].clone(), Tensor::from_slice(&weights, &[cols, depth]), inputs[2].clone()];
        assert_close(&run(&program, &given), &expected(&graph, &known), 1e-5, &format!("call {call}"));
    }
}
