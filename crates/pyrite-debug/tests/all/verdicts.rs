//! What is a failure, what is noise, and which questions have no answer.

use std::sync::atomic::{AtomicU64, Ordering};

use pyrite_compiler::backend::{Backend, Executable, Forward, Observer, register};
use pyrite_compiler::find;
use pyrite_debug::{Accuracy, Fp64, Judged, Question, Switches, command_backend, judge};
use pyrite_ir::{Graph, Meta, NodeError, OpError, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{DType, Scalar, Tensor};

type Outputs = Value<Tensor>;

/// `eager` with something done to the inputs before and to the outputs after.
struct Wrapped {
    inner: Box<dyn Executable>,
    before: fn(&Tensor) -> Tensor,
    after: Box<dyn Fn(Outputs) -> Result<Outputs, NodeError> + Send + Sync>,
}

impl Executable for Wrapped {
    fn run(
        &self,
        inputs: Vec<Outputs>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let inputs = inputs.iter().map(|value| value.map(&mut |tensor| (self.before)(tensor))).collect();
        let forward = self.inner.run(inputs, random, observe)?;
        Ok(Forward { outputs: (self.after)(forward.outputs)?, backward: None })
    }
}

fn backend(
    name: &str,
    before: fn(&Tensor) -> Tensor,
    after: impl Fn(Outputs) -> Result<Outputs, NodeError> + Clone + Send + Sync + 'static,
) {
    register(Backend::new(name, "for tests", move |graph, options| {
        let eager = find("eager").expect("eager");
        let inner = (eager.compile)(graph, options)?;
        Ok(Box::new(Wrapped { inner, before, after: Box::new(after.clone()) }))
    }));
}

/// A compiler that keeps what is between in single precision, and multiplies the first of every so many elements.
fn wide(name: &str, every: usize, factor: f64) {
    register(Backend::new(name, "for tests", move |graph: Graph, options| {
        let mut graph = graph;
        graph.map_dtypes(&|dtype| if dtype == DType::BF16 || dtype == DType::F16 { DType::F32 } else { dtype });
        let eager = find("eager").expect("eager");
        let inner = (eager.compile)(graph, options)?;
        let after = move |outputs: Outputs| {
            Ok(outputs.map(&mut |tensor| {
                let mut values = tensor.to_f64s();
                values.iter_mut().step_by(every).for_each(|value| *value *= factor);
                let scaled = Tensor::empty(tensor.shape(), DType::F32).expect("a tensor");
                scaled.write_f64s(&values);
                scaled.cast(DType::BF16)
            }))
        };
        Ok(Box::new(Wrapped { inner, before: |tensor| tensor.cast(DType::F32), after: Box::new(after) }))
    }));
}

fn program(body: &str, inputs: Vec<Tensor>) -> (Graph, Vec<Outputs>) {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let lines: String = body.lines().map(|line| format!("        {}\n", line.trim())).collect();
    let text =
        format!("import torch\n\nclass Repro(torch.nn.Module):\n    def forward(self, {}):\n{lines}", names.join(", "));
    let mut graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let ids: Vec<_> = graph.placeholders().map(|(id, _)| id).collect();
    for (id, input) in ids.into_iter().zip(&inputs) {
        graph.set_meta(id, Value::Tensor(Meta::of(input)));
    }
    (graph, inputs.into_iter().map(Value::Tensor).collect())
}

fn ask(program: &(Graph, Vec<Outputs>), backend: &str, question: Question) -> Judged {
    let question = Question { backend: backend.to_owned(), reference: reference(&question), ..question };
    judge(&program.0, &program.1, &question, &mut |_| {}, &mut |_, _| {})
}

fn reference(question: &Question) -> String {
    if question.reference.is_empty() { "eager".to_owned() } else { question.reference.clone() }
}

fn switched(switches: Switches) -> Question {
    Question { switches, ..Question::default() }
}

fn doubled() -> (Graph, Vec<Outputs>) {
    program("y = torch.ops.aten.mul.Tensor(x0, 2.0)\nreturn (y,)", vec![Tensor::from_slice(&[0.5f32, 1.5, 0.3], &[3])])
}

fn layers(dtype: DType, rows: i64, seed: u64) -> (Graph, Vec<Outputs>) {
    let mut random = TorchGenerator::new(seed);
    let mut normal = |shape: &[i64], scale: f64| {
        let tensor = Tensor::empty(shape, DType::F32).expect("a tensor");
        random.normal(&tensor, 0.0, scale).expect("numbers");
        tensor.cast(dtype)
    };
    let inputs = vec![normal(&[rows, 64], 1.0), normal(&[64, 64], 0.125), normal(&[64, 32], 0.125)];
    program(
        "a = torch.ops.aten.mm.default(x0, x1)
        b = torch.ops.aten.gelu.default(a)
        c = torch.ops.aten.mul.Tensor(b, b)
        d = torch.ops.aten.sub.Tensor(c, a)
        e = torch.ops.aten.mm.default(d, x2)
        f = torch.ops.aten._softmax.default(e, -1, False)
        return (e, f)",
        inputs,
    )
}

#[test]
fn a_reference_that_differs_from_itself_makes_the_question_invalid() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    backend("drifting", Tensor::clone, |outputs| {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        Ok(outputs.map(&mut |tensor| Tensor::scalar(Scalar::Float(run as f64), tensor.dtype())))
    });
    let question = Question { reference: "drifting".to_owned(), ..Question::default() };
    let Verdict::Invalid(why) = ask(&doubled(), "eager", question).verdict else { panic!("an answer") };
    assert!(why.contains("unstable reference"), "{why}");
}

#[test]
fn dying_where_an_error_belongs_is_a_failure() {
    backend("raising", Tensor::clone, |_| Err(OpError::invalid("no").into()));
    backend("dying", Tensor::clone, |_| {
        let (kind, stage) = ("signal 11".to_owned(), "forward".to_owned());
        Err(OpError::Outside { kind, place: None, message: "gone".to_owned(), stage }.into())
    });
    let against = |reference: &str| Question { reference: reference.to_owned(), ..Question::default() };
    let dead = ask(&doubled(), "dying", against("raising")).verdict;
    assert!(matches!(&dead, Verdict::Fail(signature) if signature.class == Class::Signal(11)), "{dead:?}");
    assert!(matches!(ask(&doubled(), "raising", against("raising")).verdict, Verdict::Invalid(_)));
    assert!(matches!(ask(&doubled(), "dying", against("dying")).verdict, Verdict::Invalid(_)));
    assert!(matches!(ask(&doubled(), "eager", against("raising")).verdict, Verdict::Invalid(_)));
}

#[test]
fn half_precision_is_fine_with_fp64_and_different_without() {
    wide("single", 1, 1.0);
    let x = Tensor::from_slice(&[0.7f32, 1.3, 123.4], &[3]).cast(DType::BF16);
    let program = program(
        "a = torch.ops.aten.mul.Tensor(x0, 655.0)
        b = torch.ops.aten.mul.Tensor(a, 100.0)
        y = torch.ops.aten.sub.Tensor(x0, b)
        z = torch.ops.aten.add.Tensor(y, b)
        return (z,)",
        vec![x],
    );
    assert_eq!(ask(&program, "single", Question::default()).verdict, Verdict::Noise);
    let without = switched(Switches { fp64: Fp64::Unused, ..Switches::default() });
    assert!(matches!(ask(&program, "single", without).verdict, Verdict::Fail(_)));
}

#[test]
fn fp64_that_is_required_and_cannot_be_had_is_an_error() {
    backend(
        "singles-only",
        |tensor| if tensor.dtype() == DType::F64 { Tensor::number(Scalar::Int(1)) } else { tensor.clone() },
        |outputs| {
            let mut shape = Vec::new();
            outputs.each(&mut |tensor| shape = tensor.shape().to_vec());
            if shape.is_empty() { Err(OpError::invalid("only single precision").into()) } else { Ok(outputs) }
        },
    );
    let asked = |fp64| Question {
        reference: "singles-only".to_owned(),
        switches: Switches { fp64, ..Switches::default() },
        ..Question::default()
    };
    let Verdict::Invalid(why) = ask(&doubled(), "eager", asked(Fp64::Required)).verdict else { panic!("an answer") };
    assert!(why.contains("fp64 was required"), "{why}");
    assert_eq!(ask(&doubled(), "eager", asked(Fp64::Used)).verdict, Verdict::Pass);
}

#[test]
fn a_difference_of_integers_is_another_failure_than_one_of_floats_unless_strict() {
    backend("one-more", Tensor::clone, |outputs| {
        Ok(outputs.map(&mut |tensor| {
            let more: Vec<i64> = tensor.to_i64s().iter().map(|v| v + 1).collect();
            let result = Tensor::empty(tensor.shape(), tensor.dtype()).expect("a tensor");
            result.write_i64s(&more);
            result
        }))
    });
    let floats =
        program("y = torch.ops.aten.mul.Tensor(x0, 3.0)\nreturn (y,)", vec![Tensor::from_slice(&[1f32], &[1])]);
    let ints = program("y = torch.ops.aten.mul.Tensor(x0, 3)\nreturn (y,)", vec![Tensor::from_slice(&[1i64], &[1])]);
    let signature = |program, accuracy| {
        let verdict = ask(program, "one-more", Question { accuracy, ..Question::default() }).verdict;
        verdict.signature().cloned().expect("a failure")
    };
    let float = signature(&floats, Accuracy::Fp);
    assert!(!float.holds(&signature(&ints, Accuracy::Fp)));
    assert!(float.holds(&signature(&floats, Accuracy::Fp)));
    assert!(signature(&floats, Accuracy::Strict).holds(&signature(&ints, Accuracy::Strict)));
}

#[test]
fn programs_that_answer_by_exit_code_are_backends() {
    command_backend::register(std::time::Duration::from_secs(5), None);
    let verdict = |line: &str| ask(&doubled(), line, Question::default()).verdict;
    assert_eq!(verdict("cmd:true"), Verdict::Pass);
    assert!(matches!(verdict("cmd:false"), Verdict::Fail(signature) if signature.class == Class::Exit(1)));
    assert!(matches!(verdict("cmd:grep -q aten.mul"), Verdict::Pass));
    assert!(find("cmd:").is_none());
}

#[test]
fn rounding_is_noise_and_planted_bugs_are_not() {
    for (name, every, factor, noise) in [
        ("fused", 1, 1.0, true),
        ("all-off-by-a-tenth", 1, 1.1, false),
        ("all-off-by-three-percent", 1, 1.03, false),
        ("one-in-a-hundred-doubled", 100, 2.0, false),
        ("one-row-in-eight-off-by-half", 8, 1.5, false),
    ] {
        wide(name, every, factor);
        let judged = ask(&layers(DType::BF16, 16, 7), name, Question::default());
        if noise {
            assert!(matches!(judged.verdict, Verdict::Noise | Verdict::Pass), "{name}: {:?}", judged.verdict);
        } else {
            assert!(matches!(judged.verdict, Verdict::Fail(_)), "{name}: {:?}", judged.report);
        }
    }
}

#[test]
fn over_many_programs_rounding_is_never_a_bug_and_a_factor_always_is() {
    wide("rounding-only", 1, 1.0);
    wide("factor", 1, 1.08);
    for seed in 0..60 {
        // Few elements: mean errors scatter, and double precision alone takes luck for skill.
        let program = layers(DType::BF16, 1 + seed as i64 % 3, seed);
        let judged = ask(&program, "rounding-only", Question::default());
        assert!(matches!(judged.verdict, Verdict::Noise | Verdict::Pass), "seed {seed}: {:?}", judged.report);
        let judged = ask(&program, "factor", Question::default());
        assert!(matches!(judged.verdict, Verdict::Fail(_)), "seed {seed}: {:?}", judged.report);
    }
}

/// `eager` on the inputs in the opposite order, and a factor on what comes out.
struct Reversed {
    inner: Box<dyn Executable>,
    factor: f64,
}

impl Executable for Reversed {
    fn run(
        &self,
        mut inputs: Vec<Outputs>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        inputs.reverse();
        let forward = self.inner.run(inputs, random, observe)?;
        let scaled = forward.outputs.map(&mut |tensor| {
            let values: Vec<f64> = tensor.to_f64s().iter().map(|value| value * self.factor).collect();
            let result = Tensor::empty(tensor.shape(), tensor.dtype()).expect("a tensor");
            result.write_f64s(&values);
            result
        });
        Ok(Forward { outputs: scaled, backward: None })
    }
}

#[test]
fn another_order_of_summation_is_noise_though_eager_was_luckier() {
    for (name, factor) in [("reversed", 1.0), ("reversed-and-wrong", 2.0)] {
        register(Backend::new(name, "for tests", move |graph, options| {
            let inner = (find("eager").expect("eager").compile)(graph, options)?;
            Ok(Box::new(Reversed { inner, factor }))
        }));
    }
    let body: String = (1..24)
        .map(|i| {
            format!(
                "y{i} = torch.ops.aten.add.Tensor({}, x{i})\n",
                if i == 1 { "x0".into() } else { format!("y{}", i - 1) }
            )
        })
        .chain(["return (y23,)".to_owned()])
        .collect();
    // A reference outside of Pyrite rounds as it does; what rounding does is found out inside.
    register(Backend::new("outside:eager", "for tests", |graph, options| {
        (find("eager").expect("eager").compile)(graph, options)
    }));
    let (mut by_error_model, mut found) = (0, 0);
    for seed in 0..60 {
        let question = || Question {
            reference: if seed % 2 == 0 { "eager" } else { "outside:eager" }.to_owned(),
            ..Question::default()
        };
        let mut random = TorchGenerator::new(seed);
        let mut input = || {
            let tensor = Tensor::empty(&[2], DType::F32).expect("a tensor");
            random.uniform(&tensor, -1.0, 1.0).expect("numbers");
            tensor.cast(DType::BF16)
        };
        let program = program(&body, (0..24).map(|_| input()).collect());
        let judged = ask(&program, "reversed", question());
        let Some(report) = &judged.report else { panic!("a comparison") };
        assert!(matches!(judged.verdict, Verdict::Noise | Verdict::Pass), "seed {seed}: {report:?}");
        by_error_model += report.notes.iter().filter(|note| note.to_string().contains("other rounding")).count();
        let wrong = ask(&program, "reversed-and-wrong", question());
        found += usize::from(matches!(wrong.verdict, Verdict::Fail(_)));
    }
    // A sum that is nearly zero is nothing but noise, twice as large or not.
    assert!(found >= 55, "{found} of 60 wrong results were found");
    assert!(by_error_model > 0, "the error model was never needed");
}

/// Gives its first input back whatever it is asked.
struct Lenient;

impl Executable for Lenient {
    fn run(
        &self,
        inputs: Vec<Outputs>,
        _: Option<&mut TorchGenerator>,
        _: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        Ok(Forward { outputs: Value::List(vec![inputs[0].clone()]), backward: None })
    }
}

/// `eager`, raising its errors as torch does.
struct AsTorch(Box<dyn Executable>);

impl Executable for AsTorch {
    fn run(
        &self,
        inputs: Vec<Outputs>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        self.0.run(inputs, random, observe).map_err(|error| {
            let (kind, stage) = ("IndexError".to_owned(), "forward".to_owned());
            OpError::Outside { kind, place: None, message: error.error.to_string(), stage }.into()
        })
    }
}

#[test]
fn a_result_where_torch_itself_raises_an_error_is_a_failure() {
    register(Backend::new("torch:eager", "for tests", |graph, options| {
        let eager = find("eager").expect("eager");
        Ok(Box::new(AsTorch((eager.compile)(graph, options)?)))
    }));
    register(Backend::new("torch:lenient", "for tests", |_, _| Ok(Box::new(Lenient))));
    let x = || vec![Tensor::from_slice(&[1.0f32, -2.0], &[2])];
    let far = "far = torch.ops.aten.full.default([1], 99, dtype=torch.int64)\nb = torch.ops.aten.index_select.default(x0, 0, far)";
    let used = program(&format!("{far}\nreturn (b,)"), x());
    let judged = ask(&used, "torch:lenient", Question::default());
    let signature = judged.verdict.signature().unwrap_or_else(|| panic!("{:?}", judged.verdict));
    assert_eq!(signature.class, Class::MissingError);
    assert!(signature.to_string().ends_with("missing error IndexError"), "{signature}");

    let unused = program(&format!("{far}\nc = torch.ops.aten.relu.default(x0)\nreturn (c,)"), x());
    let judged = ask(&unused, "torch:lenient", Question::default());
    assert!(matches!(&judged.verdict, Verdict::Invalid(why) if why.contains("nobody uses")), "{:?}", judged.verdict);
    // A number is above itself by rounding alone.
    let nearly = program(
        "a = torch.ops.aten.mul.Tensor(x0, 0.1)
        c = torch.ops.aten.mul.Tensor(a, 10.0)
        m = torch.ops.aten.gt.Tensor(c, x0)
        i = torch.ops.aten._to_copy.default(m, dtype=torch.int64)
        far = torch.ops.aten.mul.Tensor(i, 99)
        b = torch.ops.aten.index_select.default(x0, 0, far)
        return (b,)",
        vec![Tensor::from_slice(&[25.0f32 / 7.0], &[1])],
    );
    let judged = ask(&nearly, "torch:lenient", Question::default());
    assert!(matches!(&judged.verdict, Verdict::Invalid(why) if why.contains("rounding")), "{:?}", judged.verdict);
    let own = ask(&used, "native", Question::default());
    assert!(matches!(own.verdict, Verdict::Invalid(_)), "{:?}", own.verdict);
}
