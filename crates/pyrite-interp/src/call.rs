//! One operator call on real tensors.

use std::cell::RefCell;
use std::collections::BTreeSet;

use pyrite_ir::args::tensors_from_numbers;
use pyrite_ir::infer::{infer, written};
use pyrite_ir::{Args, Call, Decompose, Emit, Eval, Handle, Meta, OpError, Operator, Overlap, Registry, Value};
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

/// What calls share: the operators and the random generator.
pub struct Context<'a> {
    /// The operators.
    pub registry: &'a Registry,
    /// The program's random generator.
    pub rng: RefCell<TorchGenerator>,
    /// Operators that modes which check every call leave alone.
    pub unchecked: Option<&'a dyn Fn(&Operator) -> bool>,
    /// Storages, by their identity, of computed views and of what these view: a write to one would not reach the other.
    pub viewed: RefCell<BTreeSet<usize>>,
}

impl<'a> Context<'a> {
    /// A context with a seeded generator.
    pub fn new(registry: &'a Registry, seed: u64) -> Self {
        Self::with_generator(registry, TorchGenerator::new(seed))
    }

    /// A context that goes on drawing from a generator.
    pub fn with_generator(registry: &'a Registry, generator: TorchGenerator) -> Self {
        Self { registry, rng: RefCell::new(generator), unchecked: None, viewed: RefCell::default() }
    }
}

/// Runs an operator on bound arguments.
pub fn call(context: &Context<'_>, op: &Operator, mut args: Vec<Value<Tensor>>) -> Result<Value<Tensor>, OpError> {
    tensors_from_numbers(&op.schema, &mut args);
    match op.def.eval {
        Eval::Kernel(kernel) => {
            let out = infer(context.registry, op, &metas(&args))?;
            let result =
                kernel(&Call { args: Args { schema: &op.schema, values: &args }, out: &out, rng: &context.rng })?;
            if op.is_computed_view() {
                let mut viewed = context.viewed.borrow_mut();
                for value in args.iter().chain([&result]) {
                    value.each(&mut |tensor| _ = viewed.insert(tensor.storage().id()));
                }
            }
            Ok(result)
        }
        Eval::View => view(context, op, &args),
        Eval::WriteBack(functional) => write_back(context, op, functional, &args),
        Eval::ViaDecomposition => {
            let Decompose::Rule(rule) = op.def.decompose else {
                return Err(OpError::fault(format!("{} has no decomposition to run", op.name())));
            };
            let mut emitter = EagerEmitter { context, tensors: Vec::new(), metas: Vec::new() };
            let handles: Vec<Value<Handle>> = args.iter().map(|v| v.map(&mut |t| emitter.keep(t.clone()))).collect();
            let result = rule(&mut emitter, &Args { schema: &op.schema, values: &handles })?;
            Ok(result.map(&mut |h| emitter.tensors[h.0 as usize].clone()))
        }
        Eval::HigherOrder => Err(OpError::unsupported(format!("{} outside of a graph", op.name()))),
    }
}

/// The metadata of arguments.
pub fn metas(args: &[Value<Tensor>]) -> Vec<Value<Meta>> {
    args.iter().map(|v| v.map(&mut |t| Meta::of(t))).collect()
}

/// The views that inference describes, of the argument that the results alias.
fn view(context: &Context<'_>, op: &Operator, args: &[Value<Tensor>]) -> Result<Value<Tensor>, OpError> {
    let base = op
        .schema
        .params
        .iter()
        .zip(args)
        .find_map(|(param, value)| param.alias.as_ref().and_then(|_| value.as_tensor()))
        .or_else(|| args.iter().find_map(Value::as_tensor))
        .ok_or_else(|| OpError::fault(format!("{} is a view of nothing", op.name())))?;
    let out = infer(context.registry, op, &metas(args))?;
    out.try_map(&mut |meta| Ok(Value::Tensor(base.view(meta.dtype, meta.layout()?)?)))
}

/// Runs the functional operator and copies its results into the written arguments.
fn write_back(
    context: &Context<'_>,
    op: &Operator,
    functional: &str,
    args: &[Value<Tensor>],
) -> Result<Value<Tensor>, OpError> {
    let target = context
        .registry
        .get(functional)
        .ok_or_else(|| OpError::fault(format!("{} writes back {functional}, which does not exist", op.name())))?;
    // Out arguments are keyword-only and written; the functional operator does not have them.
    let is_written = |index: usize| op.schema.params[index].alias.as_ref().is_some_and(|a| a.written);
    let passed: Vec<Value<Tensor>> = args
        .iter()
        .enumerate()
        .filter(|(index, _)| !(is_written(*index) && op.schema.params[*index].keyword_only))
        .map(|(_, value)| value.clone())
        .collect();
    let bound = target.schema.bind_in_order(&passed).map_err(|e| OpError::fault(e.to_string()))?;
    if let Some(refused) = Overlap::refused_by(target) {
        refuse_overlaps(op, args, &is_written, refused)?;
    }
    let result = call(context, target, bound)?;
    let results: Vec<&Value<Tensor>> = match &result {
        Value::List(items) => items.iter().collect(),
        one => vec![one],
    };
    let targets = (0..args.len()).filter(|index| is_written(*index)).map(|index| &args[index]);
    for (target, result) in targets.zip(results) {
        copy_all(context, op, target, result)?;
    }
    Ok(written(op, args))
}

/// Refuses a written tensor that shares memory with another operand in a way that PyTorch's operator would get wrong.
fn refuse_overlaps(
    op: &Operator,
    args: &[Value<Tensor>],
    is_written: &dyn Fn(usize) -> bool,
    refused: Overlap,
) -> Result<(), OpError> {
    let mut tensors: Vec<(usize, Tensor)> = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        arg.each(&mut |tensor| tensors.push((index, tensor.clone())));
    }
    for (place, (_, to)) in tensors.iter().enumerate().filter(|(_, (index, _))| is_written(*index)) {
        for (_, (_, from)) in tensors.iter().enumerate().filter(|(other, _)| *other != place) {
            if to.storage().same(from.storage()) {
                let (a, b) = (Meta::of(to), Meta::of(from));
                if Overlap::between(&a, &b).is_some_and(|found| found >= refused) {
                    return Err(Overlap::refusal(op.name(), &a, &b));
                }
            }
        }
    }
    Ok(())
}

fn copy_all(
    context: &Context<'_>,
    op: &Operator,
    target: &Value<Tensor>,
    result: &Value<Tensor>,
) -> Result<(), OpError> {
    match (target, result) {
        (Value::Tensor(to), Value::Tensor(from)) => {
            if to.shape() != from.shape() {
                return Err(OpError::Invalid(format!(
                    "{} cannot write a result of shape {:?} into a tensor of shape {:?}",
                    op.name(),
                    from.shape(),
                    to.shape()
                )));
            }
            if from.dtype().category() > to.dtype().category() {
                return Err(OpError::Invalid(format!(
                    "{} cannot write a result of type {} into a tensor of type {}",
                    op.name(),
                    from.dtype(),
                    to.dtype()
                )));
            }
            if to.layout().may_overlap() {
                return Err(OpError::Invalid(format!(
                    "{} writes to a tensor some of whose elements share memory (shape {:?}, stride {:?}); clone it first",
                    op.name(),
                    to.shape(),
                    to.stride()
                )));
            }
            if context.viewed.borrow().contains(&to.storage().id()) {
                return Err(OpError::unsupported("a write to a tensor that another views conjugated or negated"));
            }
            to.write_from(from);
            Ok(())
        }
        (Value::List(to), Value::List(from)) => {
            to.iter().zip(from).try_for_each(|(to, from)| copy_all(context, op, to, from))
        }
        _ => Ok(()),
    }
}

/// Carries out a rule on real tensors.
struct EagerEmitter<'a> {
    context: &'a Context<'a>,
    tensors: Vec<Tensor>,
    metas: Vec<Meta>,
}

impl EagerEmitter<'_> {
    fn keep(&mut self, tensor: Tensor) -> Handle {
        self.metas.push(Meta::of(&tensor));
        self.tensors.push(tensor);
        Handle(self.tensors.len() as u32 - 1)
    }
}

impl Emit for EagerEmitter<'_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let context = self.context;
        let tensors: Vec<Value<Tensor>> =
            args.iter().map(|v| v.map(&mut |h| self.tensors[h.0 as usize].clone())).collect();
        let (operator, bound) = context.registry.bound(op, &tensors)?;
        let result = call(context, operator, bound)?;
        Ok(result.map(&mut |t| self.keep(t.clone())))
    }

    fn meta(&self, handle: Handle) -> &Meta {
        &self.metas[handle.0 as usize]
    }
}
