//! The state of a trace: bases with their current values, and the program's tensors as views of them.

use std::sync::Arc;

use pyrite_ir::{
    Args, Decompose, Emit, Eval, Graph, Handle, Kind, Meta, Node, NodeId, OpError, OpRef, Origin, Overlap, Registry,
    Switch, Target, Tracer, Value, Vjp,
};
use pyrite_tensor::{MemoryFormat, Scalar, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Reading, forms, inverse, plain};
use crate::decompose::{Decomposing, Random, Table};
use crate::replay::{item, resolve};

/// Handles of the new graph. The program's tensors are plain [`Handle`]s, numbered by their place in `slots`.
pub(super) type Pure = Handle;

/// A storage of the program.
pub(super) struct Base {
    /// The program's tensor that is all of it.
    pub(super) root: Handle,
    /// How often it was written.
    pub(super) generation: u32,
    /// What it is.
    pub(super) origin: BaseOrigin,
}

#[derive(Clone, PartialEq)]
pub(super) enum BaseOrigin {
    /// An input of the functional graph, by its position.
    Input(usize),
    Constant(Arc<str>),
    Fresh,
}

/// A view operator applied to a tensor.
#[derive(Clone)]
pub(super) struct ViewStep {
    pub(super) op: OpRef,
    /// The arguments; tensors among them are the program's.
    pub(super) args: Vec<Value<Handle>>,
    /// Which argument is viewed.
    pub(super) viewed: usize,
    /// Which of several results it is.
    pub(super) item: Option<usize>,
}

/// A tensor of the program, or a number that stands for one.
pub(super) struct Slot {
    pub(super) meta: Meta,
    place: SlotValue,
}

pub(super) enum SlotValue {
    Number(Scalar),
    /// A base, or a view of another tensor. The pure value is right while the base has the generation it was made in.
    Tensor {
        base: usize,
        parent: Option<(Handle, ViewStep)>,
        pure: Pure,
        generation: u32,
    },
}

pub(super) struct State<'a> {
    pub(super) tracer: Tracer<'a>,
    registry: &'a Registry,
    pub(super) slots: Vec<Slot>,
    pub(super) bases: Vec<Base>,
    /// Tensors whose shape was changed in place, with what they are now.
    rebound: FxHashMap<Handle, Handle>,
    /// Whether gradients pass through what is traced; some decompositions ask.
    grad_enabled: bool,
}

impl<'a> State<'a> {
    pub(super) fn new(registry: &'a Registry, graph: &Graph) -> Self {
        let mut tracer = Tracer::new(registry);
        tracer.builder().copy_surroundings(graph);
        Self {
            tracer,
            registry,
            slots: Vec::new(),
            bases: Vec::new(),
            rebound: FxHashMap::default(),
            grad_enabled: true,
        }
    }

    /// What follows comes from this node.
    pub(super) fn at(&mut self, node: &Node) {
        self.tracer.origin = Origin::of(node);
    }

    fn slot(&mut self, meta: Meta, place: SlotValue) -> Handle {
        self.slots.push(Slot { meta, place });
        Handle(self.slots.len() as u32 - 1)
    }

    fn root(&mut self, pure: Pure, meta: Meta, origin: BaseOrigin) -> Handle {
        let base = self.bases.len();
        let root = self.slot(meta, SlotValue::Tensor { base, parent: None, pure, generation: 0 });
        self.bases.push(Base { root, generation: 0, origin });
        root
    }

    pub(super) fn input(&mut self, name: &str, meta: Meta, position: usize) -> Handle {
        let pure = self.tracer.placeholder(name, meta.clone());
        self.root(pure, meta, BaseOrigin::Input(position))
    }

    pub(super) fn plain_input(&mut self, node: &Node) -> Value<Handle> {
        self.tracer.plain_placeholder(&node.name, node.meta.clone());
        plain(node.meta.as_ref())
    }

    pub(super) fn constant(&mut self, name: &Arc<str>, tensor: &Tensor) -> Handle {
        let pure = self.tracer.constant(name, tensor);
        let meta = self.tracer.meta(pure).clone();
        self.root(pure, meta, BaseOrigin::Constant(name.clone()))
    }

    /// An input as a view of the memory that it shares with others.
    pub(super) fn view_of_whole(&mut self, whole: Handle, meta: &Meta) -> Result<Value<Handle>, OpError> {
        let op = self.operator("aten.as_strided.default")?;
        let args = vec![whole.into(), (&*meta.shape).into(), (&*meta.stride).into(), (&meta.offset).into()];
        self.view(&op, &args)
    }

    fn operator(&self, name: &str) -> Result<OpRef, OpError> {
        let found = self.registry.get(name).cloned();
        found.ok_or_else(|| OpError::fault(format!("functionalization needs {name}, which does not exist")))
    }

    /// A node that switches a state is kept where it stands.
    pub(super) fn switch(&mut self, node: &Node) -> Value<Handle> {
        if let Some(Switch::Grad(enabled)) = Switch::of(node) {
            self.grad_enabled = enabled;
        }
        self.tracer.append(node.clone());
        Value::None
    }

    /// An operator that is not known reads the current values of its arguments. Whether it writes cannot be known.
    pub(super) fn opaque(
        &mut self,
        node: &Node,
        _: &[Value<Handle>],
        values: &[Value<Handle>],
    ) -> Result<Value<Handle>, OpError> {
        let Some(meta) = node.meta.clone() else {
            return Err(OpError::unsupported(format!(
                "{} is an operator that Pyrite does not know, and nothing is known of its result",
                if let Kind::Call(target) = &node.kind { target.name() } else { "it" }
            )));
        };
        let mut lower = |value: &Value<NodeId>| -> Result<Value<NodeId>, OpError> {
            let pure = self.pure(&resolve(value, values))?;
            Ok(self.tracer.lower(&pure))
        };
        let args = node.args.iter().map(&mut lower).collect::<Result<_, _>>()?;
        let kwargs =
            node.kwargs.iter().map(|(k, v)| Ok((k.clone(), lower(v)?))).collect::<Result<Vec<_>, OpError>>()?;
        let id = self.tracer.append(Node { args, kwargs, ..node.clone() });
        let pure = self.tracer.results(id, &meta);
        Ok(self.fresh(&pure))
    }

    /// A call of the program.
    pub(super) fn node(
        &mut self,
        graph: &Graph,
        node: &Node,
        op: &OpRef,
        args: &[Value<Handle>],
    ) -> Result<Value<Handle>, OpError> {
        if !matches!(op.def.eval, Eval::HigherOrder) {
            return self.call_op(op, args);
        }
        if let ("higher_order.invoke_subgraph.default", Some(Value::Graph(name)), Some(Value::List(operands))) =
            (op.name(), args.first(), args.get(2))
        {
            let nested = graph.subgraphs().get(name);
            let nested = nested.ok_or_else(|| OpError::invalid(format!("there is no nested graph `{name}`")))?;
            return self.inline(nested, operands);
        }
        if graph.subgraphs().values().any(writes) {
            return Err(OpError::unsupported(format!("{} with a nested graph that writes", op.name())));
        }
        let meta = node.meta.clone().ok_or_else(|| OpError::fault("a nested call without metadata"))?;
        let pure: Vec<Value<Pure>> = args.iter().map(|v| self.pure(v)).collect::<Result<_, _>>()?;
        let lowered = pure.iter().map(|v| self.tracer.lower(v)).collect();
        let result = self.tracer.append_call(op, lowered, meta);
        Ok(self.fresh(&result))
    }

    /// A nested graph in place of its call.
    fn inline(&mut self, nested: &Graph, operands: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let mut values: Vec<Value<Handle>> = vec![Value::None; nested.id_bound()];
        let mut operands = operands.iter();
        let outer = self.tracer.origin.clone();
        let mut result = Value::None;
        for (id, node) in nested.nodes() {
            if node.stack.is_some() {
                self.at(node);
            }
            let args: Vec<Value<Handle>> = node.args.iter().map(|arg| resolve(arg, &values)).collect();
            values[id.0 as usize] = match &node.kind {
                Kind::Placeholder => operands.next().cloned().unwrap_or(Value::None),
                Kind::GetAttr(name) => match nested.constants().get(name) {
                    Some(tensor) => Value::Tensor(self.constant(name, tensor)),
                    None => Value::Graph(name.clone()),
                },
                Kind::Output => {
                    result = args.first().cloned().unwrap_or(Value::None);
                    Value::None
                }
                Kind::Call(Target::GetItem) => item(&args)?,
                Kind::Call(Target::Op(op)) => self.node(nested, node, op, &args)?,
                Kind::Call(Target::Opaque(_)) => self.opaque(node, &args, &values)?,
            };
        }
        self.tracer.origin = outer;
        Ok(result)
    }

    /// What a tensor is now.
    pub(super) fn current(&self, handle: Handle) -> Handle {
        let mut handle = handle;
        while let Some(now) = self.rebound.get(&handle) {
            handle = *now;
        }
        handle
    }

    /// Calls an operator of the program with bound arguments.
    fn call_op(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let args: Vec<Value<Handle>> = args.iter().map(|v| v.map(&mut |h| self.current(*h))).collect();
        if let (Eval::ViaDecomposition, Decompose::Rule(rule)) = (op.def.eval, op.def.decompose) {
            let args = self.with_number_handles(op, &args);
            return rule(self, &Args { schema: &op.schema, values: &args });
        }
        if let (true, Some(Value::Tensor(of))) = (op.is_computed_view(), args.first()) {
            return self.reading(op, *of, &args);
        }
        if let (Some(resolved), Some(Value::Tensor(of))) = (forms::resolved(op), args.first())
            && resolved(self.reading_of(*of))
        {
            return self
                .call_op(&self.operator("aten.clone.default")?, &[(*of).into(), MemoryFormat::Contiguous.into()]);
        }
        // A resized tensor may have left its storage, which no operator without writes can say.
        if let Some(form) = forms::functional_form(op, &args)
            && self.registry.get(&form.name).is_some()
        {
            return self.write_back(op, &form, &args);
        }
        match op.def.eval {
            Eval::View if op.schema.is_mutable() => {
                let name = forms::view_of_in_place(op)?;
                let viewed = args.first().and_then(Value::as_tensor).copied();
                let result = self.view(&self.operator(&name)?, &args)?;
                if let (Some(viewed), Value::Tensor(now)) = (viewed, &result) {
                    self.rebound.insert(viewed, *now);
                }
                Ok(result)
            }
            Eval::View => self.view(op, &args),
            _ if op.schema.is_mutable() => {
                Err(OpError::unsupported(format!("{} writes to its argument and has no functional form", op.name())))
            }
            _ => {
                let pure: Vec<Value<Pure>> = args.iter().map(|v| self.pure(v)).collect::<Result<_, _>>()?;
                let result = self.tracer.call_op(op, &pure)?;
                let result = self.fresh(&result);
                if self.grad_enabled && !matches!(op.def.vjp, Vjp::NonDifferentiable(_)) && self.wants_grad(&args) {
                    result.each(&mut |h| {
                        let meta = &mut self.slots[h.0 as usize].meta;
                        meta.requires_grad = meta.dtype.is_float() || meta.dtype.is_complex();
                    });
                }
                Ok(result)
            }
        }
    }

    /// Whether a gradient is wanted of a tensor among the arguments.
    fn wants_grad(&self, args: &[Value<Handle>]) -> bool {
        let mut wanted = false;
        for arg in args {
            arg.each(&mut |h| wanted |= self.slots[h.0 as usize].meta.requires_grad);
        }
        wanted
    }

    fn with_number_handles(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Vec<Value<Handle>> {
        let schema = op.schema.clone();
        pyrite_ir::args::with_number_handles(&schema, args, &mut |scalar| {
            self.slot(Meta::number(scalar), SlotValue::Number(scalar))
        })
    }

    /// New tensors of the program for pure results.
    fn fresh(&mut self, pure: &Value<Pure>) -> Value<Handle> {
        pure.map(&mut |h| {
            let meta = self.tracer.meta(*h).clone();
            self.root(*h, meta, BaseOrigin::Fresh)
        })
    }

    /// A view operator: its results are windows on the storage of its argument.
    fn view(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let viewed = forms::viewed(op, args)?;
        let Some(Value::Tensor(of)) = args.get(viewed) else {
            return Err(OpError::invalid(format!("{} is a view of no tensor", op.name())));
        };
        if op.name() == "aten.as_strided.default" {
            return self.place(op, *of, args);
        }
        self.window(op, viewed, *of, args.to_vec())
    }

    /// `as_strided`: its sizes and offset are those of the storage, whatever view it is called on. Gradients pass through
    /// the view that it is called on, so that what lies outside of that view has none.
    fn place(&mut self, op: &OpRef, of: Handle, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        if self.reading_of(of) != Reading::default() {
            return Err(OpError::unsupported("as_strided of a tensor that is conjugated or negated when it is read"));
        }
        let mut args = args.to_vec();
        let called_on = self.slots[of.0 as usize].meta.clone();
        if args[3] == Value::None {
            args[3] = called_on.offset.clone().into();
        }
        let root = self.bases[self.base_of(of)?].root;
        args[0] = root.into();
        let result = self.window(op, 0, root, args)?;
        let Some(&placed) = result.as_tensor() else { return Ok(result) };
        self.check_gaps(placed)?;
        let meta = &self.slots[placed.0 as usize].meta;
        if meta.requires_grad && !called_on.requires_grad {
            return self.window(&self.operator("aten.detach.default")?, 0, placed, vec![placed.into()]);
        }
        if meta.requires_grad && self.grad_enabled && self.slots[root.0 as usize].meta.is_expanded() {
            return Err(OpError::unsupported("the gradient of as_strided on a tensor whose elements share memory"));
        }
        if meta.requires_grad && of != root && self.grad_enabled && !reaches(&called_on, meta) {
            return Err(OpError::unsupported(
                "the gradient of as_strided on a view where it reaches memory outside of that view",
            ));
        }
        Ok(result)
    }

    /// A view operator applied to a tensor.
    fn window(
        &mut self,
        op: &OpRef,
        viewed: usize,
        of: Handle,
        args: Vec<Value<Handle>>,
    ) -> Result<Value<Handle>, OpError> {
        let step = ViewStep { op: op.clone(), args, viewed, item: None };
        let parent = self.read_slot(of)?;
        let base = self.base_of(of)?;
        let generation = self.bases[base].generation;
        let pure = self.step(&step, parent)?;
        let mut at = 0;
        let single = matches!(pure, Value::Tensor(_));
        Ok(pure.map(&mut |h| {
            let step = ViewStep { item: (!single).then_some(at), ..step.clone() };
            at += 1;
            let meta = self.tracer.meta(*h).clone();
            // The pure graph may hold the value in other memory; the program's window is where the program has it.
            let requires_grad = self.slots[of.0 as usize].meta.requires_grad && op.name() != "aten.detach.default";
            let meta = Meta { offset: self.offset_of(of, parent, &meta), requires_grad, ..meta };
            self.slot(meta, SlotValue::Tensor { base, parent: Some((of, step)), pure: *h, generation })
        }))
    }

    /// A tensor in the memory of another that is conjugated or negated when it is read; its pure value is computed.
    fn reading(&mut self, op: &OpRef, of: Handle, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let result = self.window(op, 0, of, args.to_vec())?;
        if let Value::Tensor(reading) = result {
            let offset = self.slots[of.0 as usize].meta.offset.clone();
            self.slots[reading.0 as usize].meta.offset = offset;
        }
        Ok(result)
    }

    /// How a tensor is read from the memory of its base.
    pub(super) fn reading_of(&self, handle: Handle) -> Reading {
        let SlotValue::Tensor { parent: Some((of, step)), .. } = &self.slots[handle.0 as usize].place else {
            return Reading::default();
        };
        let Reading { conjugated, negated } = self.reading_of(*of);
        match step.op.name() {
            "aten._conj.default" => Reading { conjugated: !conjugated, negated },
            "aten._neg_view.default" => Reading { conjugated, negated: !negated },
            "aten.real.default" => Reading { conjugated: false, negated },
            "aten.imag.default" => Reading { conjugated: false, negated: negated != conjugated },
            _ => Reading { conjugated, negated },
        }
    }

    /// The pure value that the base of a tensor has, read as the tensor is.
    pub(super) fn base_as_read(&mut self, base: usize, reading: Reading) -> Result<Pure, OpError> {
        let mut pure = self.read_slot(self.bases[base].root)?;
        if reading.conjugated {
            pure = self.call_pure("aten._conj.default", &[pure.into()])?;
        }
        if reading.negated {
            pure = self.call_pure("aten._neg_view.default", &[pure.into()])?;
        }
        Ok(pure)
    }

    /// Where a view of a tensor begins in the program's storage, from where it begins in the pure value.
    fn offset_of(&self, of: Handle, parent: Pure, view: &Meta) -> pyrite_sym::SymInt {
        let (program, pure) = (&self.slots[of.0 as usize].meta, self.tracer.meta(parent));
        &view.offset - &pure.offset + &program.offset
    }

    pub(super) fn base_of(&self, handle: Handle) -> Result<usize, OpError> {
        match &self.slots[handle.0 as usize].place {
            SlotValue::Tensor { base, .. } => Ok(*base),
            SlotValue::Number(_) => Err(OpError::invalid("a number has no memory")),
        }
    }

    /// Applies a view to a pure value.
    fn step(&mut self, step: &ViewStep, parent: Pure) -> Result<Value<Pure>, OpError> {
        let mut args: Vec<Value<Pure>> = Vec::with_capacity(step.args.len());
        for (index, arg) in step.args.iter().enumerate() {
            args.push(if index == step.viewed { parent.into() } else { self.pure(arg)? });
        }
        if step.op.name() == "aten.as_strided.default" {
            // The pure value of a base that was written begins elsewhere than the base itself.
            let base = self.base_of(*step.args[0].as_tensor().ok_or_else(|| OpError::fault("a view of nothing"))?)?;
            let root = &self.slots[self.bases[base].root.0 as usize].meta;
            if let Value::Int(offset) = &args[3] {
                let begin = offset - &root.offset;
                if begin.is_lt(0) && self.bases[base].generation > 0 {
                    return Err(OpError::unsupported("as_strided of memory before a tensor that was written"));
                }
                args[3] = (begin + &self.tracer.meta(parent).offset).into();
            }
        }
        self.tracer.call_op(&step.op, &args)
    }

    /// The pure value that a tensor of the program has now.
    pub(super) fn read(&mut self, handle: Handle) -> Result<Pure, OpError> {
        self.read_slot(self.current(handle))
    }

    /// The pure value that a slot has now. A tensor whose shape was changed in place is a view of the slot that it was:
    /// parents of views are slots, never what a tensor became.
    pub(super) fn read_slot(&mut self, handle: Handle) -> Result<Pure, OpError> {
        let (base, parent, pure, generation) = match &self.slots[handle.0 as usize].place {
            SlotValue::Number(scalar) => {
                let scalar = *scalar;
                return Ok(self.tracer.number(scalar));
            }
            SlotValue::Tensor { base, parent, pure, generation } => (*base, parent.clone(), *pure, *generation),
        };
        if generation == self.bases[base].generation {
            return Ok(pure);
        }
        let Some((of, step)) = parent else {
            return Err(OpError::fault("the current value of a base is out of date"));
        };
        if step.op.name() == "aten.as_strided.default" {
            self.check_gaps(handle)?;
        }
        let parent = self.read_slot(of)?;
        let result = self.step(&step, parent)?;
        let picked = match (&result, step.item) {
            (Value::Tensor(h), _) => Some(*h),
            (Value::List(items), Some(at)) => items.get(at).and_then(Value::as_tensor).copied(),
            _ => None,
        };
        let pure = picked.ok_or_else(|| OpError::fault(format!("{} returned something else", step.op.name())))?;
        self.remember(handle, pure);
        Ok(pure)
    }

    /// Refuses a placed view that reads between the elements of a base that was written: the pure value of that base
    /// holds its elements alone.
    fn check_gaps(&self, placed: Handle) -> Result<(), OpError> {
        let base = &self.bases[self.base_of(placed)?];
        let root = &self.slots[base.root.0 as usize].meta;
        if base.generation == 0 || root.is_dense() || reaches(root, &self.slots[placed.0 as usize].meta) {
            return Ok(());
        }
        Err(OpError::unsupported("as_strided of memory between the elements of a tensor that was written"))
    }

    fn remember(&mut self, handle: Handle, now: Pure) {
        if let SlotValue::Tensor { base, pure, generation, .. } = &mut self.slots[handle.0 as usize].place {
            *pure = now;
            *generation = self.bases[*base].generation;
        }
    }

    /// A value with every tensor as it is now.
    pub(super) fn pure(&mut self, value: &Value<Handle>) -> Result<Value<Pure>, OpError> {
        value.try_map(&mut |h| match &self.slots[h.0 as usize].place {
            SlotValue::Number(scalar) => Ok(Value::from(*scalar)),
            SlotValue::Tensor { .. } => Ok(Value::Tensor(self.read(*h)?)),
        })
    }

    /// Runs the functional form of an operator and writes its results.
    fn write_back(&mut self, op: &OpRef, form: &forms::Form, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let functional = self.operator(&form.name)?;
        let passed: Vec<Value<Handle>> = form.passed.iter().map(|index| args[*index].clone()).collect();
        let bound = functional.schema.bind_in_order(&passed).map_err(|e| OpError::fault(e.to_string()))?;
        if let Some(overlap) = Overlap::refused_by(&functional) {
            self.refuse_overlaps(op, form, args, overlap)?;
        }
        let result = self.call_op(&functional, &bound)?;
        let mut results = match result {
            Value::List(items) => items,
            one => vec![one],
        };
        let contents = results.split_off(form.kept.min(results.len()));
        for (index, content) in form.written.iter().zip(&contents) {
            let content = self.with_history(op, &functional, args, *index, content)?;
            self.write_all(op, &args[*index], &content)?;
        }
        if form.kept > 0 {
            return Ok(if results.len() == 1 { results.remove(0) } else { Value::List(results) });
        }
        Ok(pyrite_ir::infer::written(op, args))
    }

    /// What an operator without a derivative writes: torch records the write nevertheless. A comparison has gradients of
    /// zero for what it compares.
    fn with_history(
        &mut self,
        op: &OpRef,
        functional: &OpRef,
        args: &[Value<Handle>],
        written: usize,
        content: &Value<Handle>,
    ) -> Result<Value<Handle>, OpError> {
        const COMPARISONS: [&str; 6] = ["aten.eq.", "aten.ne.", "aten.lt.", "aten.le.", "aten.gt.", "aten.ge."];
        let (Value::Tensor(to), Value::Tensor(_)) = (&args[written], content) else { return Ok(content.clone()) };
        let target = &self.slots[to.0 as usize].meta;
        let has_derivatives = target.dtype.is_float() || target.dtype.is_complex();
        if !self.grad_enabled || !has_derivatives || !matches!(functional.def.vjp, Vjp::NonDifferentiable(_)) {
            return Ok(content.clone());
        }
        let mut watched = Vec::new();
        args.iter().for_each(|arg| arg.each(&mut |h| watched.push(*h)));
        watched.retain(|h| self.slots[h.0 as usize].meta.requires_grad);
        if !COMPARISONS.iter().any(|name| functional.name().starts_with(name)) {
            if watched.contains(to) {
                return Err(OpError::unsupported(format!("the gradient of {}, which has none", op.name())));
            }
            return Ok(content.clone());
        }
        let mut content = content.clone();
        if !watched.is_empty() {
            // Never true, and of the result's shape.
            let never = self.call_op(&self.operator("aten.ne.Tensor")?, &[content.clone(), content.clone()])?;
            for h in watched {
                let args = [never.clone(), h.into(), content];
                content = self.call_op(&self.operator("aten.where.self")?, &args)?;
            }
        }
        Ok(content)
    }

    /// Refuses a written tensor that shares memory with another operand in a way that the operator would get wrong. As
    /// PyTorch does, only dense tensors are looked at.
    fn refuse_overlaps(
        &self,
        op: &OpRef,
        form: &forms::Form,
        args: &[Value<Handle>],
        refused: Overlap,
    ) -> Result<(), OpError> {
        let mut tensors: Vec<(usize, Handle)> = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            arg.each(&mut |h| tensors.push((index, self.current(*h))));
        }
        for (place, (_, to)) in tensors.iter().enumerate().filter(|(_, (index, _))| form.written.contains(index)) {
            for (_, (_, from)) in tensors.iter().enumerate().filter(|(other, _)| *other != place) {
                let (Ok(ours), Ok(theirs)) = (self.base_of(*to), self.base_of(*from)) else { continue };
                let (a, b) = (&self.slots[to.0 as usize].meta, &self.slots[from.0 as usize].meta);
                if ours == theirs && Overlap::between(a, b).is_some_and(|found| found >= refused) {
                    return Err(Overlap::refusal(op.name(), a, b));
                }
            }
        }
        Ok(())
    }

    fn write_all(&mut self, op: &OpRef, to: &Value<Handle>, content: &Value<Handle>) -> Result<(), OpError> {
        match (to, content) {
            (Value::Tensor(to), Value::Tensor(content)) => self.write_checked(op, *to, *content),
            (Value::List(to), Value::List(content)) => {
                to.iter().zip(content).try_for_each(|(to, content)| self.write_all(op, to, content))
            }
            _ => Ok(()),
        }
    }

    fn write_checked(&mut self, op: &OpRef, to: Handle, content: Handle) -> Result<(), OpError> {
        let to = self.current(to);
        let pure = self.read(content)?;
        let (target, found) = (self.slots[to.0 as usize].meta.clone(), self.tracer.meta(pure).clone());
        let same =
            target.shape.len() == found.shape.len() && target.shape.iter().zip(&found.shape).all(|(a, b)| a.is_eq(b));
        if !same {
            return Err(OpError::Invalid(format!("{} cannot write a result {found} into {target}", op.name())));
        }
        if found.dtype.category() > target.dtype.category() {
            return Err(OpError::Invalid(format!(
                "{} cannot write a result of type {} into a tensor of type {}",
                op.name(),
                found.dtype,
                target.dtype
            )));
        }
        let empty = target.shape.iter().any(|size| size.is_eq(0));
        if !empty && target.is_expanded() {
            return Err(OpError::Invalid(format!(
                "{} writes to a tensor some of whose elements share memory ({target}); clone it first",
                op.name()
            )));
        }
        let brings_grad = self.slots[content.0 as usize].meta.requires_grad;
        if self.grad_enabled && (brings_grad || target.requires_grad) && self.is_one_of_several(to) {
            return Err(OpError::Invalid(format!(
                "{} writes to one of several views that one operator made ({target}), while gradients are recorded; \
                 clone it first",
                op.name()
            )));
        }
        if brings_grad && !target.requires_grad {
            let written = self.base_of(to)?;
            for slot in &mut self.slots {
                if matches!(slot.place, SlotValue::Tensor { base, .. } if base == written) {
                    slot.meta.requires_grad = true;
                }
            }
        }
        let mut pure = pure;
        if found.dtype != target.dtype {
            pure = self.call_pure("aten._to_copy.default", &[pure.into(), target.dtype.into()])?;
        }
        self.write(to, pure)
    }

    /// Whether a tensor is a view by an operator that returns several of one tensor, or a view of such a one.
    fn is_one_of_several(&self, handle: Handle) -> bool {
        const SEVERAL: [&str; 4] = ["aten.split.", "aten.split_with_sizes.", "aten.chunk.", "aten.unbind."];
        let mut at = handle;
        while let SlotValue::Tensor { parent: Some((of, step)), .. } = &self.slots[at.0 as usize].place {
            if step.item.is_some() && SEVERAL.iter().any(|name| step.op.name().starts_with(name)) {
                return true;
            }
            at = *of;
        }
        false
    }

    /// Makes a pure value the content of a tensor, and with it of the base it is a view of.
    fn write(&mut self, to: Handle, content: Pure) -> Result<(), OpError> {
        let (base, parent) = match &self.slots[to.0 as usize].place {
            SlotValue::Tensor { base, parent, .. } => (*base, parent.clone()),
            SlotValue::Number(_) => return Err(OpError::invalid("a number cannot be written")),
        };
        if let Some((of, step)) = parent {
            let source = &self.slots[of.0 as usize].meta;
            if step.op.name() == "aten.view.dtype" && self.grad_enabled && source.requires_grad {
                // PyTorch keeps the history of the tensor, which no operator without writes can say.
                return Err(OpError::unsupported("a write through a view of another type to a tensor with gradients"));
            }
            let before = self.read_slot(of)?;
            let whole = inverse::undo(self, &step, before, content)?;
            self.write(of, whole)?;
        } else {
            let content = self.laid_out(to, content)?;
            self.bases[base].generation += 1;
            self.remember(to, content);
            return Ok(());
        }
        // The value just written is the view's value, unless it lies otherwise in memory.
        let (target, found) = (&self.slots[to.0 as usize].meta, self.tracer.meta(content));
        if target.stride.iter().zip(&found.stride).all(|(a, b)| a.is_eq(b)) {
            self.remember(to, content);
        }
        Ok(())
    }

    /// A value with the strides of the base whose content it becomes.
    fn laid_out(&mut self, root: Handle, content: Pure) -> Result<Pure, OpError> {
        let (target, found) = (self.slots[root.0 as usize].meta.clone(), self.tracer.meta(content).clone());
        if target.stride.iter().zip(&found.stride).all(|(a, b)| a.is_eq(b)) {
            return Ok(content);
        }
        let empty = target.shape.iter().any(|size| size.is_eq(0));
        let mut strides = target.shape.iter().zip(target.stride.iter().zip(&found.stride));
        let aligned = empty || strides.all(|(size, (a, b))| a.is_eq(b) || size.is_eq(1));
        if aligned {
            // Only strides that address nothing differ.
            let args = [content.into(), (&*target.shape).into(), (&*target.stride).into(), Value::None];
            return self.call_pure("aten.as_strided.default", &args);
        }
        let before = self.read_slot(root)?;
        if target.is_dense() {
            return self.call_pure("aten.copy.default", &[before.into(), content.into()]);
        }
        let args = [before.into(), content.into(), (&*target.shape).into(), (&*target.stride).into(), Value::None];
        self.call_pure("aten.as_strided_scatter.default", &args)
    }

    /// Calls an operator on pure values.
    pub(super) fn call_pure(&mut self, op: &str, args: &[Value<Pure>]) -> Result<Pure, OpError> {
        let mut emitter = Decomposing { tracer: &mut self.tracer, table: Table::Composite, random: Random::Eager };
        (&mut emitter as &mut dyn Emit).one(op, args)
    }

    /// What a view of a pure value looks like, without adding it to the graph.
    pub(super) fn view_meta(&self, step: &ViewStep, before: Pure) -> Result<Meta, OpError> {
        let viewed = self.tracer.meta(before).clone();
        let args: Vec<Value<Meta>> = step
            .args
            .iter()
            .enumerate()
            .map(|(index, arg)| {
                if index == step.viewed {
                    return Value::Tensor(viewed.clone());
                }
                arg.map(&mut |h| self.slots[h.0 as usize].meta.clone())
            })
            .collect();
        let result = pyrite_ir::infer::infer(self.registry, &step.op, &args)?;
        let found = match (&result, step.item) {
            (Value::Tensor(meta), _) => Some(meta),
            (Value::List(items), Some(at)) => items.get(at).and_then(Value::as_tensor),
            _ => None,
        };
        found.cloned().ok_or_else(|| OpError::fault(format!("{} returns no view", step.op.name())))
    }
}

impl Emit for State<'_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let operator = self.operator(op)?;
        let bound = operator.schema.bind_in_order(args).map_err(|e| OpError::fault(e.to_string()))?;
        self.call_op(&operator, &bound)
    }

    fn meta(&self, handle: Handle) -> &Meta {
        &self.slots[self.current(handle).0 as usize].meta
    }
}

/// Whether every element of a view is one of another tensor in the same memory; no where sizes are not numbers.
fn reaches(tensor: &Meta, view: &Meta) -> bool {
    let (Some(own), Some(asked)) = (cells(tensor), cells(view)) else { return false };
    asked.is_subset(&own)
}

/// The places in memory that a tensor has.
fn cells(meta: &Meta) -> Option<FxHashSet<i64>> {
    let mut cells = FxHashSet::from_iter([meta.offset.as_int()?]);
    for (size, stride) in meta.shape.iter().zip(&meta.stride) {
        let (size, stride) = (size.as_int()?, stride.as_int()?);
        cells = cells.iter().flat_map(|cell| (0..size).map(move |step| cell + step * stride)).collect();
    }
    Some(cells)
}

/// Whether a graph contains a call that writes.
fn writes(graph: &Graph) -> bool {
    graph.nodes().any(|(_, node)| matches!(&node.kind, Kind::Call(Target::Op(op)) if op.schema.is_mutable()))
        || graph.subgraphs().values().any(writes)
}
