//! A small registry, so that these tests need no operator library.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::sync::OnceLock;

use pyrite_diag::Diagnostics;
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::verify::verify;
use pyrite_ir::{Args, Call, Graph, Infer, Meta, OpDef, OpError, Registry, SymDims, Value};
use pyrite_reader::{ReadOptions, ReadOutcome, read_text};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

type Inferred = Result<Value<Meta>, OpError>;

fn no_kernel(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Err(OpError::unsupported(call.args.schema.name.to_string()))
}

/// A result like the first argument.
fn like(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    Ok(Value::Tensor(meta.fresh(&meta.shape, meta.dtype)))
}

/// Broadcasting of two arguments.
fn binary(args: &Args<'_, Meta>) -> Inferred {
    let a = args.tensor(0)?;
    let Ok(b) = args.tensor(1) else { return like(args) };
    if b.number {
        return like(args);
    }
    let rank = a.rank().max(b.rank());
    let size = |m: &Meta, d: usize| (d + m.rank()).checked_sub(rank).map_or(SymInt::Int(1), |d| m.shape[d].clone());
    let mut shape = SymDims::new();
    for d in 0..rank {
        let (x, y) = (size(a, d), size(b, d));
        shape.push(if x.is_eq(1) {
            y
        } else if y.is_eq(1) || x.is_eq(&y) {
            x
        } else {
            return Err(OpError::invalid(format!("sizes {x} and {y} do not broadcast")));
        });
    }
    Ok(Value::Tensor(a.fresh(&shape, a.dtype.promote(b.dtype))))
}

fn compare(args: &Args<'_, Meta>) -> Inferred {
    let Value::Tensor(meta) = binary(args)? else { return like(args) };
    Ok(Value::Tensor(meta.fresh(&meta.shape, DType::Bool)))
}

fn matmul(args: &Args<'_, Meta>) -> Inferred {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    if a.rank() != 2 || b.rank() != 2 || !a.shape[1].is_eq(&b.shape[0]) {
        return Err(OpError::invalid(format!("{:?} and {:?} do not multiply", a.shape, b.shape)));
    }
    Ok(Value::Tensor(a.fresh(&[a.shape[0].clone(), b.shape[1].clone()], a.dtype)))
}

fn scalar_out(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    Ok(Value::Tensor(meta.fresh(&[], meta.dtype)))
}

fn to_dtype(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    Ok(Value::Tensor(meta.fresh(&meta.shape, args.dtype(1)?.unwrap_or(meta.dtype))))
}

fn transpose(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    let flip = |dims: &SymDims| dims.iter().rev().cloned().collect::<SymDims>();
    Ok(Value::Tensor(meta.view(&flip(&meta.shape), &flip(&meta.stride), meta.offset.clone())))
}

fn split(args: &Args<'_, Meta>) -> Inferred {
    let (meta, size) = (args.tensor(0)?, args.int(1)?);
    let dim = args.int(2)?.rem_euclid(meta.rank() as i64) as usize;
    let count = meta.shape[dim].hint().unwrap_or(0) / size;
    let mut shape = meta.shape.clone();
    shape[dim] = size.into();
    Ok(Value::List((0..count).map(|_| Value::Tensor(meta.view(&shape, &meta.stride, 0.into()))).collect()))
}

fn view(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    Ok(Value::Tensor(meta.fresh(&args.syms(1)?, meta.dtype)))
}

fn select(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    let (mut shape, mut stride) = (meta.shape.clone(), meta.stride.clone());
    let dim = args.int(1)? as usize;
    shape.remove(dim);
    stride.remove(dim);
    Ok(Value::Tensor(meta.view(&shape, &stride, 0.into())))
}

fn slice(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    let dim = args.int(1)? as usize;
    let start = args.opt_sym(2)?.unwrap_or(0.into());
    let stop = args.opt_sym(3)?.unwrap_or_else(|| meta.shape[dim].clone());
    let mut shape = meta.shape.clone();
    shape[dim] = stop - start;
    Ok(Value::Tensor(meta.view(&shape, &meta.stride, 0.into())))
}

fn unsqueeze(args: &Args<'_, Meta>) -> Inferred {
    let meta = args.tensor(0)?;
    let (mut shape, mut stride) = (meta.shape.clone(), meta.stride.clone());
    let dim = args.int(1)? as usize;
    shape.insert(dim, 1.into());
    stride.insert(dim, 1.into());
    Ok(Value::Tensor(meta.view(&shape, &stride, 0.into())))
}

fn sym_size(args: &Args<'_, Meta>) -> Inferred {
    Ok(Value::Int(args.tensor(0)?.shape[args.int(1)? as usize].clone()))
}

fn sym_mul(args: &Args<'_, Meta>) -> Inferred {
    Ok(Value::Int(args.sym(0)? * args.sym(1)?))
}

fn arange(args: &Args<'_, Meta>) -> Inferred {
    Ok(Value::Tensor(Meta::contiguous(&[args.sym(0)?], DType::I64)))
}

fn linear(args: &Args<'_, Meta>) -> Inferred {
    let (x, w) = (args.tensor(0)?, args.tensor(1)?);
    let mut shape = x.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = w.shape[0].clone();
    }
    Ok(Value::Tensor(x.fresh(&shape, x.dtype)))
}

const fn op(schema: &'static str, infer: pyrite_ir::op::InferFn) -> OpDef {
    OpDef::kernel(schema, "For tests.", infer, no_kernel)
}

const OPS: &[OpDef] = &[
    op("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", binary),
    op("aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", like),
    op("aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", binary),
    op("aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", like),
    op("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", binary),
    op("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", binary),
    op("aten::reciprocal(Tensor self) -> Tensor", like),
    op("aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", like),
    op("aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", binary),
    op("aten::gt.Scalar(Tensor self, Scalar other) -> Tensor", compare),
    op("aten::gt.Tensor(Tensor self, Tensor other) -> Tensor", compare),
    OpDef::written(
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "For tests.",
        "aten.add.Tensor",
    ),
    OpDef::written("aten::relu_(Tensor(a!) self) -> Tensor(a!)", "For tests.", "aten.relu.default"),
    OpDef::written(
        "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
        "For tests.",
        "aten.copy.default",
    ),
    OpDef::written("aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", "For tests.", "aten.fill.Scalar"),
    op("aten::neg(Tensor self) -> Tensor", like),
    op("aten::relu(Tensor self) -> Tensor", like),
    op("aten::sin(Tensor self) -> Tensor", like),
    op("aten::cos(Tensor self) -> Tensor", like),
    op("aten::dropout(Tensor input, float p, bool train) -> Tensor", like),
    op("aten::gelu(Tensor self, *, str approximate='none') -> Tensor", like),
    op(
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
        like,
    ),
    op(
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        like,
    ),
    op("aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", linear),
    op("aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", like),
    op("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", scalar_out),
    op(
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        scalar_out,
    ),
    op(
        "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
        to_dtype,
    ),
    op("aten::matmul(Tensor self, Tensor other) -> Tensor", matmul),
    op("aten::mm(Tensor self, Tensor mat2) -> Tensor", matmul),
    op("aten::numpy_T(Tensor(a) self) -> Tensor(a)", transpose),
    op("aten::t(Tensor(a) self) -> Tensor(a)", transpose),
    op("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", split),
    op("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", |args| {
        let first = args.tensors(0)?;
        let meta = first.first().ok_or_else(|| OpError::invalid("nothing to join"))?;
        Ok(Value::Tensor(meta.fresh(&meta.shape, meta.dtype)))
    }),
    op("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", view),
    op(
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |args| Ok(Value::Tensor(Meta::contiguous(&args.syms(0)?, args.dtype(2)?.unwrap_or(DType::F32)))),
    ),
    op("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", select),
    op(
        "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
        slice,
    ),
    op("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze),
    op("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", like),
    op("aten::lift_fresh_copy(Tensor self) -> Tensor", like),
    op("aten::sym_size.int(Tensor self, int dim) -> SymInt", sym_size),
    op("_operator::mul(Any a, Any b) -> Any", sym_mul),
    op(
        "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        arange,
    ),
    OpDef {
        infer: Infer::HigherOrder,
        ..op("higher_order::cond(Any pred, Graph true_graph, Graph false_graph, Any[] operands) -> Any", like)
    },
];

/// The registry.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry::new(&[OPS]).unwrap())
}

/// Reads a text that is called `test.py`.
pub fn read(text: &str) -> Result<ReadOutcome, Diagnostics> {
    read_text(text, Some(Path::new("test.py")), registry(), &ReadOptions::default())
}

/// Reads a text that must be right, and checks that the graph is well formed and survives a round trip.
pub fn read_ok(text: &str) -> ReadOutcome {
    let outcome = read(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    round_trip(&outcome.graph);
    outcome
}

/// Checks that a graph is well formed, that its text is read back to an equal graph, and that it prints the same.
pub fn round_trip(graph: &Graph) {
    let wrong = verify(graph, None);
    assert!(wrong.is_empty(), "{wrong:?}");
    for options in
        [PrintOptions::default(), PrintOptions { annotations: false, releases: false, ..PrintOptions::default() }]
    {
        let text = print(graph, &options);
        let again = read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(again.graph == *graph, "{text}\n{}", print(&again.graph, &options));
        if options.annotations {
            assert_eq!(print(&again.graph, &options), text);
        }
    }
}

/// The statements of a graph's `forward`, without annotations and releases.
pub fn body(graph: &Graph) -> Vec<String> {
    let options = PrintOptions { annotations: false, releases: false, ..PrintOptions::default() };
    let text = print(graph, &options);
    let from = text.rfind("def forward").unwrap();
    text[from..].lines().skip(1).map(|line| line.trim().to_owned()).collect()
}
