//! Every derivative rule against finite differences, on the samples of its operator in double precision.
//!
//! For a call `y = f(x)`, random tangents `t` and a random direction `v`, the rule's gradient `g` must satisfy
//! `⟨g, v⟩ = ⟨t, (f(x + hv) - f(x - hv)) / 2h⟩`, where `⟨a, b⟩` is the real part of `Σ conj(a)·b`.

use pyrite_autograd::joint;
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Builder, Meta, OpRef, Value, Vjp};
use pyrite_ops::{registry, samples};
use pyrite_tensor::random::CounterGenerator;
use pyrite_tensor::{Complex64, DType, Tensor};

const STEP: f64 = 1e-6;

/// Operators whose derivative is zero because PyTorch says so, though their results do move with their arguments.
const CONSTANT_BY_DECREE: &[&str] =
    &["aten.normal.Tensor_Tensor", "aten.normal.Tensor_float", "aten.normal.float_Tensor"];

/// Operators that PyTorch does not differentiate: whoever asks is refused, as there.
const REFUSED_BY_TORCH: &[&str] = &["aten.scatter.reduce", "aten.scatter.value_reduce"];

/// In double precision.
fn widened(tensor: &Tensor) -> Tensor {
    match tensor.dtype() {
        DType::F16 | DType::BF16 | DType::F32 => tensor.cast(DType::F64),
        DType::C64 => tensor.cast(DType::C128),
        _ => tensor.clone(),
    }
}

/// An argument that is a type, in double precision.
fn widened_type(arg: &Value<Tensor>) -> Value<Tensor> {
    match arg {
        Value::DType(DType::F16 | DType::BF16 | DType::F32) => Value::DType(DType::F64),
        Value::DType(DType::C64) => Value::DType(DType::C128),
        other => other.clone(),
    }
}

fn is_continuous(tensor: &Tensor) -> bool {
    matches!(tensor.dtype(), DType::F64 | DType::C128)
}

/// Random numbers of the shape and type of a tensor.
fn random_like(tensor: &Tensor, stream: u64) -> Tensor {
    let made = Tensor::empty(tensor.shape(), tensor.dtype()).unwrap();
    let generator = CounterGenerator::new(0xd1f, stream);
    let count = tensor.numel() as u64;
    if tensor.dtype().is_complex() {
        let pairs: Vec<_> =
            (0..count).map(|i| Complex64::new(generator.normal(2 * i), generator.normal(2 * i + 1))).collect();
        made.write_c128s(&pairs);
    } else {
        made.write_f64s(&(0..count).map(|i| generator.normal(i)).collect::<Vec<_>>());
    }
    made
}

/// `x + h·v`, keeping the strides of `x`.
fn moved(x: &Tensor, v: &Tensor, h: f64) -> Tensor {
    let to = Tensor::empty_strided(x.shape(), x.stride(), x.dtype()).unwrap();
    if x.dtype().is_complex() {
        let sums: Vec<_> = x.to_c128s().iter().zip(v.to_c128s()).map(|(x, v)| x + v * h).collect();
        to.write_c128s(&sums);
    } else {
        to.write_f64s(&x.to_f64s().iter().zip(v.to_f64s()).map(|(x, v)| x + v * h).collect::<Vec<_>>());
    }
    to
}

/// The real part of `Σ conj(a)·b`.
fn inner(a: &Tensor, b: &Tensor) -> f64 {
    a.to_c128s().iter().zip(b.to_c128s()).map(|(a, b)| (a.conj() * b).re).sum()
}

fn size(a: &Tensor) -> f64 {
    a.to_c128s().iter().map(|z| z.norm()).sum()
}

fn tensors(value: &Value<Tensor>) -> Vec<Tensor> {
    let mut found = Vec::new();
    value.each(&mut |t| found.push(t.clone()));
    found
}

/// Matrices of which PyTorch's derivatives are those, wherever else the operator is defined.
#[derive(Clone, Copy)]
enum Domain {
    Hermitian,
    Lower,
    Upper,
}

impl Domain {
    /// The domain of a parameter, where it has one.
    fn of(op: &OpRef, args: &[Value<Tensor>], param: usize) -> Option<Self> {
        let flag = |index: usize| matches!(args[index], Value::Bool(true));
        let triangle = |upper: bool| if upper { Self::Upper } else { Self::Lower };
        match (op.name(), param) {
            (
                "aten._linalg_eigh.default" | "aten.linalg_cholesky_ex.default" | "aten.linalg_matrix_sqrth.default",
                0,
            ) => Some(Self::Hermitian),
            ("aten.linalg_pinv.atol_rtol_tensor", 0) if flag(3) => Some(Self::Hermitian),
            ("aten.cholesky_inverse.default", 0) => Some(triangle(flag(1))),
            ("aten.cholesky_solve.default", 1) => Some(triangle(flag(2))),
            _ => None,
        }
    }

    /// Makes matrices of this domain: `x·xᴴ + 1`, or one triangle.
    fn point(self, x: &Tensor) -> Tensor {
        self.changed(x, |m, n, i, j| {
            let product: Complex64 = (0..n).map(|k| m[i * n + k] * m[j * n + k].conj()).sum();
            product + if i == j { 1.0 } else { 0.0 }
        })
    }

    /// Makes directions that stay in this domain.
    fn direction(self, v: &Tensor) -> Tensor {
        self.changed(v, |m, n, i, j| (m[i * n + j] + m[j * n + i].conj()) / 2.0)
    }

    fn changed(self, x: &Tensor, hermitian: impl Fn(&[Complex64], usize, usize, usize) -> Complex64) -> Tensor {
        let n = x.shape().last().map_or(0, |n| *n as usize);
        let mut data = Vec::new();
        for m in x.to_c128s().chunks((n * n).max(1)) {
            data.extend((0..n * n).map(|at| {
                let (i, j) = (at / n, at % n);
                match self {
                    Self::Hermitian => hermitian(m, n, i, j),
                    Self::Lower if i >= j => m[at],
                    Self::Upper if i <= j => m[at],
                    _ => Complex64::new(0.0, 0.0),
                }
            }));
        }
        let made = Tensor::empty(x.shape(), x.dtype()).unwrap();
        if x.dtype().is_complex() {
            made.write_c128s(&data);
        } else {
            made.write_f64s(&data.iter().map(|z| z.re).collect::<Vec<_>>());
        }
        made
    }
}

enum Outcome {
    /// Gradient and differences agree.
    Agrees,
    /// The sample says nothing: no float argument, one whose gradient is refused, or values outside of the domain.
    Silent,
}

/// Checks a sample; arguments whose gradient the rule refuses are held fixed.
fn check(op: &OpRef, text: &str) -> Result<Outcome, String> {
    let mut fixed = Vec::new();
    loop {
        let outcome = check_all_but(op, text, &fixed);
        let refused =
            outcome.as_ref().err().and_then(|e| Some(e.split_once("with respect to `")?.1.split_once('`')?.0));
        match refused.and_then(|name| op.schema.param(name)) {
            Some(index) if !fixed.contains(&index) => fixed.push(index),
            _ => return outcome,
        }
    }
}

fn check_all_but(op: &OpRef, text: &str, fixed: &[usize]) -> Result<Outcome, String> {
    let args = samples::read(&op.schema, text).map_err(|e| e.to_string())?;
    let mut inputs = Vec::new();
    let mut moves = Vec::new();
    let mut domains = Vec::new();
    let mut builder = Builder::new();
    let bound: Vec<_> = args
        .iter()
        .enumerate()
        .map(|(index, arg)| {
            let arg = widened_type(arg);
            arg.map(&mut |tensor: &Tensor| {
                let domain = Domain::of(op, &args, index);
                let tensor = widened(tensor);
                let tensor = domain.map_or(tensor.clone(), |domain| domain.point(&tensor));
                domains.push(domain);
                let requires_grad = is_continuous(&tensor) && !fixed.contains(&index);
                let meta = Meta { requires_grad, ..Meta::of(&tensor) };
                inputs.push(tensor);
                moves.push(requires_grad);
                builder.placeholder("x", Some(Value::Tensor(meta)))
            })
        })
        .collect();
    if !moves.contains(&true) {
        return Ok(Outcome::Silent);
    }
    let result = builder.call(op, bound);
    let run = |graph, inputs: Vec<Tensor>| -> Result<Vec<Value<Tensor>>, String> {
        let context = Context::new(registry(), 7);
        let interpreter = Interpreter { context: &context, mode: Mode::Eager };
        let values = inputs.into_iter().map(Value::Tensor).collect();
        match interpreter.run(graph, values).map_err(|e| e.to_string())? {
            Value::List(items) => Ok(items),
            other => Err(format!("a graph returned {}", other.kind())),
        }
    };
    // How many tensors the call returns is known by calling it.
    let probe = {
        let mut probe = Builder::new();
        let mut at = 0;
        let args = args
            .iter()
            .map(|a| {
                widened_type(a).map(&mut |_: &Tensor| {
                    at += 1;
                    probe.placeholder("x", None)
                })
            })
            .collect();
        let out = probe.call(op, args);
        probe.output(Value::List(vec![Value::Tensor(out)]));
        probe.finish()
    };
    let function = |inputs: &[Tensor]| -> Result<Vec<Tensor>, String> {
        Ok(run(&probe, inputs.to_vec())?.iter().flat_map(tensors).collect())
    };
    let y = function(&inputs)?;
    let single = run(&probe, inputs.clone())?.first().is_some_and(|v| v.as_tensor().is_some());
    let outputs = if single {
        vec![Value::Tensor(result)]
    } else {
        let Some(Value::List(items)) = run(&probe, inputs.clone())?.into_iter().next() else {
            return Ok(Outcome::Silent);
        };
        (0..items.len())
            .filter(|i| items[*i].as_tensor().is_some())
            .map(|i| Value::Tensor(builder.get_item(result, i as i64)))
            .collect()
    };
    builder.output(Value::List(outputs));
    let made = joint(&builder.finish(), registry()).map_err(|e| e.to_string())?;
    let tangents: Vec<Tensor> = made.tangents.iter().map(|i| random_like(&y[*i], 1000 + *i as u64)).collect();
    if tangents.is_empty() {
        return Ok(Outcome::Silent);
    }
    let direction = |(i, x): (usize, &Tensor)| {
        let any = random_like(x, i as u64);
        domains[i].map_or(any.clone(), |domain| domain.direction(&any))
    };
    let directions: Vec<Tensor> = inputs.iter().enumerate().map(direction).collect();
    let mut all = inputs.clone();
    all.extend(tangents.clone());
    let results = run(&made.graph, all)?;
    let mut by_rule = 0.0;
    let mut scale = 1e-3;
    for ((x, v), grad) in inputs.iter().zip(&directions).zip(&results[made.outputs..]) {
        if let Value::Tensor(grad) = grad {
            if grad.shape() != x.shape() || grad.dtype() != x.dtype() {
                return Err(format!(
                    "the gradient is {:?} {} for {:?} {}",
                    grad.shape(),
                    grad.dtype(),
                    x.shape(),
                    x.dtype()
                ));
            }
            by_rule += inner(grad, v);
            scale += size(grad);
        }
    }
    let at = |h: f64| {
        let moved: Vec<Tensor> = inputs
            .iter()
            .zip(&directions)
            .zip(&moves)
            .map(|((x, v), moves)| if *moves { moved(x, v, h) } else { x.clone() })
            .collect();
        function(&moved)
    };
    let (ahead, behind) = (at(STEP)?, at(-STEP)?);
    let mut by_difference = 0.0;
    for (t, i) in tangents.iter().zip(&made.tangents) {
        by_difference += (inner(t, &ahead[*i]) - inner(t, &behind[*i])) / (2.0 * STEP);
    }
    if !by_difference.is_finite() {
        return Ok(Outcome::Silent);
    }
    if (by_rule - by_difference).abs() <= 1e-5 * scale.max(by_difference.abs()) {
        Ok(Outcome::Agrees)
    } else {
        Err(format!("the rule says {by_rule}, differences say {by_difference}"))
    }
}

/// Whether an operator is among those that `PYRITE_TEST_OPS=gelu,relu` names, by a part of their names; without it all are.
fn is_asked_for(op: &OpRef) -> bool {
    let only = std::env::var("PYRITE_TEST_OPS").unwrap_or_default();
    only.is_empty() || only.split(',').any(|name| !name.is_empty() && op.name().contains(name))
}

#[test]
fn every_composite_agrees_with_finite_differences() {
    let mut problems = Vec::new();
    let composites = registry().iter().filter(|op| matches!(op.def.vjp, Vjp::ViaDecomposition));
    for op in composites.filter(|op| is_asked_for(op)) {
        for text in op.def.samples {
            if let Err(error) = check(op, text) {
                problems.push(format!("{} on ({text}): {error}", op.name()));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_rule_agrees_with_finite_differences() {
    let mut problems = Vec::new();
    let mut checked = 0;
    for op in registry().iter().filter(|op| matches!(op.def.vjp, Vjp::Rule(_))) {
        if CONSTANT_BY_DECREE.contains(&op.name()) || REFUSED_BY_TORCH.contains(&op.name()) {
            continue;
        }
        if !is_asked_for(op) {
            continue;
        }
        let mut agreed = false;
        for text in op.def.samples {
            match check(op, text) {
                Ok(Outcome::Agrees) => agreed = true,
                Ok(Outcome::Silent) => {}
                Err(error) => problems.push(format!("{} on ({text}): {error}", op.name())),
            }
        }
        if !agreed {
            problems.push(format!("{}: no sample tests the derivative; add a smooth one", op.name()));
        }
        checked += 1;
    }
    assert!(checked > 0 || std::env::var_os("PYRITE_TEST_OPS").is_some());
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn what_torch_does_not_differentiate_is_refused() {
    for op in registry().iter().filter(|op| REFUSED_BY_TORCH.contains(&op.name())) {
        let refusals = op.def.samples.iter().filter_map(|text| check(op, text).err());
        let known = refusals.filter(|error| error.contains("which PyTorch does not have either")).count();
        assert!(known > 0, "{}: no sample is refused", op.name());
    }
}
