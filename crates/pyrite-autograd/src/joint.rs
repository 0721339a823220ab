//! The joint graph: outputs and gradients in one.
//!
//! The functional graph is traced once more. Every call that a wanted gradient passes through is written on a tape;
//! an operator that is differentiated through its decomposition is decomposed while it is traced, so that its parts
//! are on the tape. Then the tape is walked backward: each call's derivative rule turns the gradients of its results
//! into those of its arguments, which are brought to the argument's shape and type and added up.
//!
//! In: a graph without writes, one flat list of outputs; placeholders that want gradients say so in their metadata.
//! Out: placeholders `primals_1…` then `tangents_1…`; outputs are the forward outputs, then one entry per primal, its
//! gradient or `None`.
//!
//! A call without a derivative rule is an error only when a gradient reaches it.

use pyrite_ir::{
    Args, Decompose, Emit, Graph, Handle, Kind, Meta, Node, NodeError, NodeId, OpError, OpRef, Origin, Pullback,
    Registry, StorageId, Switch, Target, Tracer, Value, Vjp,
};
use pyrite_passes::replay::{arguments, item, placeholder, resolve};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

/// A joint graph; see the module's text.
#[derive(Clone, Debug)]
pub struct Joint {
    /// The graph.
    pub graph: Graph,
    /// How many of its placeholders are inputs of the original graph; the rest are tangents.
    pub primals: usize,
    /// How many of its outputs are outputs of the original graph; the rest are gradients.
    pub outputs: usize,
    /// For each tangent, the output it is the gradient of.
    pub tangents: Vec<usize>,
    /// For each primal, how derivative rules read it.
    pub reads: Vec<Read>,
}

/// How the backward half reads an input, as PyTorch would have saved it: a tensor that is saved itself shows what its
/// object has become by then; a view of it shows the storage that it was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Read {
    /// Not at all, or only through views of it.
    #[default]
    Storage,
    /// Only as it is.
    Itself,
    /// Both ways.
    Both,
}

/// Differentiates a graph with respect to all of its outputs; see the module's text.
pub fn joint(graph: &Graph, registry: &Registry) -> Result<Joint, NodeError> {
    joint_of(graph, registry, &|_| true)
}

/// Differentiates a graph with respect to the outputs that are chosen by their position.
pub fn joint_of(graph: &Graph, registry: &Registry, chosen: &dyn Fn(usize) -> bool) -> Result<Joint, NodeError> {
    let mut tape = Tape {
        tracer: Tracer::new(registry),
        tracked: FxHashMap::default(),
        hidden: FxHashSet::default(),
        records: Vec::new(),
    };
    let mut values: Vec<Value<Handle>> = vec![Value::None; graph.id_bound()];
    // A node that is not a tensor stands for its number, or for nothing.
    let mut primals = Vec::new();
    let mut output: &Value<NodeId> = &Value::None;
    let mut grad_enabled = true;
    for (id, node) in graph.nodes() {
        tape.tracer.origin = Origin::of(node);
        let located = |error| NodeError::at(node, error);
        values[id.0 as usize] = match &node.kind {
            Kind::Placeholder => {
                let name = format!("primals_{}", primals.len() + 1);
                let value = tape.input(&name, node);
                primals.push(value.as_tensor().copied());
                value
            }
            Kind::GetAttr(name) => match graph.constants().get(name) {
                Some(tensor) => Value::Tensor(tape.tracer.constant(name, tensor)),
                None => Value::Graph(name.clone()),
            },
            Kind::Output => {
                output = node.args.first().unwrap_or(&Value::None);
                Value::None
            }
            Kind::Call(target) => {
                let args = arguments(node, &values);
                match target {
                    Target::GetItem => item(&args).map_err(located)?,
                    Target::Op(op) if grad_enabled => tape.call_op(op, &args).map_err(located)?,
                    Target::Op(op) => tape.tracer.call_op(op, &args).map_err(located)?,
                    Target::Opaque(_) if let Some(switch) = Switch::of(node) => {
                        if let Switch::Grad(enabled) = switch {
                            grad_enabled = enabled;
                        }
                        Value::None
                    }
                    Target::Opaque(name) => {
                        let what = format!("the derivative of {name}, an operator that Pyrite does not know");
                        return Err(located(OpError::unsupported(what)));
                    }
                }
            }
        };
    }
    let Value::List(items) = output else {
        return Err(OpError::fault("the joint graph wants one flat list of outputs").into());
    };
    let outputs: Vec<Value<Handle>> = items.iter().map(|item| resolve(item, &values)).collect();
    tape.finish(&primals, outputs, chosen)
}

struct Tape<'a> {
    tracer: Tracer<'a>,
    /// Whose gradients are wanted, with metadata that says so to decompositions.
    tracked: FxHashMap<Handle, Meta>,
    /// Those of them that are constants to the program.
    hidden: FxHashSet<Handle>,
    records: Vec<Record>,
}

/// A call on the tape.
struct Record {
    op: OpRef,
    args: Vec<Value<Handle>>,
    out: Value<Handle>,
    origin: Origin,
}

/// Whether values of a type have derivatives.
fn is_continuous(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

impl Tape<'_> {
    fn input(&mut self, name: &str, node: &Node) -> Value<Handle> {
        let value = placeholder(&mut self.tracer, node, name);
        if let (Value::Tensor(handle), Some(Value::Tensor(meta))) = (&value, &node.meta)
            && meta.requires_grad
        {
            self.track(*handle);
        }
        value
    }

    /// Wants the gradient of a tensor, if its values have derivatives.
    fn track(&mut self, handle: Handle) {
        let meta = self.tracer.meta(handle);
        if is_continuous(meta.dtype) {
            let meta = Meta { requires_grad: true, ..meta.clone() };
            self.tracked.insert(handle, meta);
        }
    }

    /// Whether all tensors of a value that are tracked are constants to the program.
    fn is_hidden(&self, value: &Value<Handle>) -> bool {
        let mut hidden = true;
        value.each(&mut |h| hidden &= !self.tracked.contains_key(h) || self.hidden.contains(h));
        hidden
    }

    fn is_tracked(&self, value: &Value<Handle>) -> bool {
        let mut found = false;
        value.each(&mut |h| found |= self.tracked.contains_key(h));
        found
    }

    /// Calls an operator and writes it on the tape where a gradient passes through it.
    fn call_op(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let is_backward = op.name().contains("_backward");
        if !args.iter().any(|arg| self.is_tracked(arg) && (is_backward || !self.is_hidden(arg))) {
            return self.tracer.call_op(op, args);
        }
        match (op.def.vjp, op.def.decompose) {
            (Vjp::ViaDecomposition, Decompose::Rule(_)) => {
                let args = self.tracer.with_number_handles(op, args);
                op.decomposed(self, &args)
            }
            (Vjp::NonDifferentiable(_), _) => self.tracer.call_op(op, args),
            _ => {
                let out = self.tracer.call_op(op, args)?;
                let results = if let Value::List(items) = &out { items } else { std::slice::from_ref(&out) };
                for (index, result) in results.iter().enumerate() {
                    if !op.def.constants.contains(&index) {
                        result.each(&mut |h| self.track(*h));
                    }
                    if op.def.statistics.contains(&index) {
                        result.each(&mut |h| _ = self.hidden.insert(*h));
                    }
                }
                self.records.push(Record {
                    op: op.clone(),
                    args: args.to_vec(),
                    out: out.clone(),
                    origin: self.tracer.origin.clone(),
                });
                Ok(out)
            }
        }
    }

    /// Adds the backward half.
    fn finish(
        mut self,
        primals: &[Option<Handle>],
        outputs: Vec<Value<Handle>>,
        chosen: &dyn Fn(usize) -> bool,
    ) -> Result<Joint, NodeError> {
        let mut grads: FxHashMap<Handle, Handle> = FxHashMap::default();
        let mut tangents = Vec::new();
        self.tracer.origin = Origin::default();
        for (index, output) in outputs.iter().enumerate() {
            let is_wanted = |h: &&Handle| self.tracked.contains_key(h) && !self.hidden.contains(h) && chosen(index);
            let tracked = output.as_tensor().filter(is_wanted);
            let Some(handle) = tracked.copied() else { continue };
            let meta = tangent_of(self.tracer.meta(handle));
            tangents.push(index);
            let tangent = self.tracer.placeholder(&format!("tangents_{}", tangents.len()), meta);
            accumulate(&mut self.tracer, &mut grads, handle, tangent)?;
        }
        for record in std::mem::take(&mut self.records).iter().rev() {
            self.tracer.origin = record.origin.clone();
            self.backward(record, &mut grads)
                .map_err(|error| NodeError::from_origin(&record.origin, error).of_op(record.op.name()))?;
        }
        let mut returned: Vec<Value<NodeId>> = outputs.iter().map(|value| self.tracer.lower(value)).collect();
        for primal in primals {
            let grad = primal.filter(|h| self.tracked.contains_key(h)).and_then(|h| grads.get(&h));
            returned.push(grad.map_or(Value::None, |h| self.tracer.value(*h).clone()));
        }
        let graph = self.tracer.finish(Value::List(returned));
        let reads = reads(&graph, primals.len());
        Ok(Joint { graph, primals: primals.len(), outputs: outputs.len(), tangents, reads })
    }

    fn backward(&mut self, record: &Record, grads: &mut FxHashMap<Handle, Handle>) -> Result<(), OpError> {
        let results: Vec<Option<Handle>> = match &record.out {
            Value::List(items) => items.iter().map(|item| item.as_tensor().copied()).collect(),
            one => vec![one.as_tensor().copied()],
        };
        let gradients: Vec<Option<Handle>> = results.iter().map(|r| r.and_then(|h| grads.get(&h).copied())).collect();
        if gradients.iter().all(Option::is_none) {
            return Ok(());
        }
        let Vjp::Rule(rule) = record.op.def.vjp else {
            return Err(OpError::unsupported(format!("the derivative of {}", record.op.name())));
        };
        let is_backward = record.op.name().contains("_backward");
        let is_wanted = |arg: &Value<Handle>| self.is_tracked(arg) && (is_backward || !self.is_hidden(arg));
        let wanted: Vec<bool> = record.args.iter().map(is_wanted).collect();
        let pullback = Pullback {
            args: Args { schema: &record.op.schema, values: &record.args },
            out: &record.out,
            grads: &gradients,
            wanted: &wanted,
        };
        for (index, grad) in rule(&mut self.tracer, &pullback)? {
            if wanted[index] {
                self.distribute(&record.args[index], &grad, grads)?;
            }
        }
        Ok(())
    }

    /// Adds the gradients of an argument to those of the tensors in it.
    fn distribute(
        &mut self,
        arg: &Value<Handle>,
        grad: &Value<Handle>,
        grads: &mut FxHashMap<Handle, Handle>,
    ) -> Result<(), OpError> {
        match (arg, grad) {
            (Value::Tensor(arg), Value::Tensor(grad)) if self.tracked.contains_key(arg) => {
                let fitted = fit(&mut self.tracer, *grad, *arg)?;
                accumulate(&mut self.tracer, grads, *arg, fitted)
            }
            (Value::List(args), Value::List(parts)) => {
                args.iter().zip(parts).try_for_each(|(arg, part)| self.distribute(arg, part, grads))
            }
            _ => Ok(()),
        }
    }
}

/// How what comes after the tangents, which derivative rules have emitted, reads the primals.
fn reads(graph: &Graph, primals: usize) -> Vec<Read> {
    let mut reads = vec![Read::default(); primals];
    let Some((first, _)) = graph.placeholders().nth(primals) else { return reads };
    // Which primal a node is, or is a view of.
    let mut roots: FxHashMap<NodeId, (usize, Read)> = FxHashMap::default();
    for (index, (id, _)) in graph.placeholders().take(primals).enumerate() {
        roots.insert(id, (index, Read::Itself));
    }
    for (id, node) in graph.nodes().filter(|(_, node)| matches!(node.kind, Kind::Call(_))) {
        if id.0 < first.0 {
            let viewed = match &node.kind {
                Kind::Call(Target::Op(op)) if op.schema.returns.iter().any(|given| given.alias.is_some()) => {
                    op.schema.params.iter().position(|param| param.alias.is_some()).and_then(|at| node.args.get(at))
                }
                Kind::Call(Target::GetItem) => node.args.first(),
                _ => None,
            };
            if let Some((index, _)) = viewed.and_then(Value::as_tensor).and_then(|of| roots.get(of).copied()) {
                roots.insert(id, (index, Read::Storage));
            }
            continue;
        }
        node.each_input(&mut |input| {
            if let Some((index, Read::Itself)) = roots.get(&input).copied() {
                reads[index] = if reads[index] == Read::Storage { Read::Itself } else { reads[index] };
            }
        });
    }
    for (_, node) in graph.nodes().filter(|(id, node)| matches!(node.kind, Kind::Call(_)) && id.0 > first.0) {
        node.each_input(&mut |input| {
            if let Some((index, Read::Storage)) = roots.get(&input).copied()
                && reads[index] == Read::Itself
            {
                reads[index] = Read::Both;
            }
        });
    }
    reads
}

impl Emit for Tape<'_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let (operator, bound) = self.tracer.registry().bound(op, args)?;
        self.call_op(operator, &bound)
    }

    fn meta(&self, handle: Handle) -> &Meta {
        self.tracked.get(&handle).unwrap_or_else(|| self.tracer.meta(handle))
    }
}

/// What the gradient of an output looks like: as dense as the output, or else in the usual order.
fn tangent_of(meta: &Meta) -> Meta {
    let like = if meta.is_dense() {
        Meta::strided(&meta.shape, &meta.stride, meta.dtype)
    } else {
        Meta::contiguous(&meta.shape, meta.dtype)
    };
    Meta { device: meta.device.clone(), storage: StorageId::fresh(), ..like }
}

fn accumulate(
    e: &mut Tracer<'_>,
    grads: &mut FxHashMap<Handle, Handle>,
    of: Handle,
    grad: Handle,
) -> Result<(), OpError> {
    let sum = match grads.get(&of) {
        Some(old) => (e as &mut dyn Emit).one("aten.add.Tensor", &[(*old).into(), grad.into()])?,
        None => grad,
    };
    grads.insert(of, sum);
    Ok(())
}

/// A gradient with the shape and type of what it is the gradient of.
fn fit(e: &mut dyn Emit, grad: Handle, like: Handle) -> Result<Handle, OpError> {
    let target = e.meta(like).clone();
    let mut grad = grad;
    if e.dtype(grad).is_complex() && !target.dtype.is_complex() {
        grad = e.one("aten.real.default", &[grad.into()])?;
    }
    grad = sum_to(e, grad, &target.shape)?;
    if e.dtype(grad) != target.dtype {
        grad = e.one("aten._to_copy.default", &[grad.into(), target.dtype.into()])?;
    }
    Ok(grad)
}

/// The sum over the dimensions along which a shape was broadcast.
fn sum_to(e: &mut dyn Emit, grad: Handle, shape: &[SymInt]) -> Result<Handle, OpError> {
    let from = e.shape(grad);
    let same = |a: &[SymInt], b: &[SymInt]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_eq(b));
    if same(&from, shape) {
        return Ok(grad);
    }
    if from.len() < shape.len() {
        return e.one("aten.expand.default", &[grad.into(), shape.into()]);
    }
    let leading = from.len() - shape.len();
    let mut dims: Vec<i64> = (0..leading as i64).collect();
    for (index, size) in shape.iter().enumerate() {
        if size.is_eq(1) && !from[leading + index].is_eq(1) {
            dims.push((leading + index) as i64);
        }
    }
    let mut summed = grad;
    if !dims.is_empty() {
        summed = e.one("aten.sum.dim_IntList", &[grad.into(), dims.into(), true.into()])?;
    }
    if same(&e.shape(summed), shape) {
        return Ok(summed);
    }
    if leading > 0 {
        summed = e.one("aten.view.default", &[summed.into(), shape.into()])?;
    }
    if same(&e.shape(summed), shape) {
        return Ok(summed);
    }
    e.one("aten.expand.default", &[summed.into(), shape.into()])
}
