//! The pass `lower`: a functional graph becomes a schedule.
//!
//! Every tensor of the graph becomes a [`Place`] in a buffer. Views are other places in the same buffer and make no
//! statement. An operator with a lowering becomes loop nests; one whose record says that it is an extern call becomes the
//! statement of that kind. Only the statements of one operator write to one buffer.

use pyrite_ir::infer::infer;
use pyrite_ir::lower::{Lowering, Place};
use pyrite_ir::{
    Args, Eval, ExternKind, Graph, Kind, Lower, Meta, Node, NodeError, OpError, OpRef, Registry, StorageId, Switch,
    Target, Value,
};
use pyrite_loops::{BufferId, verify};
use rustc_hash::FxHashMap;

use super::elide_copy::Copied;
use super::fuse_kernels::prepared;
use crate::bmm::Bmm;
use crate::conv::Conv;
use crate::decisions::Decisions;
use crate::gemm::Gemm;
use crate::schedule::{Buffer, ExternCall, Op, Origin, Schedule, extent};

/// A schedule that is being made.
struct Lowerer<'a, 'd> {
    registry: &'a Registry,
    decisions: &'a mut Decisions<'d>,
    schedule: Schedule,
    copies: Vec<Copied>,
    /// The buffer of each storage of metadata.
    storages: FxHashMap<StorageId, BufferId>,
}

/// Lowers a functional graph, and lists the copies it asks for. Each lowering is a decision.
pub fn lower(
    graph: &Graph,
    registry: &Registry,
    decisions: &mut Decisions<'_>,
) -> Result<(Schedule, Vec<Copied>), NodeError> {
    let mut lowerer = Lowerer {
        registry,
        decisions,
        schedule: Schedule {
            buffers: Vec::new(),
            statements: Vec::new(),
            inputs: Vec::new(),
            reaches: Vec::new(),
            output: Value::None,
            fallbacks: Vec::new(),
        },
        copies: Vec::new(),
        storages: FxHashMap::default(),
    };
    let mut values: Vec<Option<Value<Place>>> = vec![None; graph.id_bound()];
    for (id, node) in graph.nodes() {
        let at = |error: OpError| NodeError::at(node, error);
        let look_up = |values: &[Option<Value<Place>>], arg: &Value<pyrite_ir::NodeId>| {
            arg.try_map(&mut |id| {
                values[id.0 as usize].clone().ok_or_else(|| at(OpError::fault(format!("node {} has no value", id.0))))
            })
        };
        let value = match &node.kind {
            Kind::Placeholder => {
                let input = lowerer.schedule.inputs.len();
                let value = lowerer.input(node, input).map_err(at)?;
                lowerer.schedule.inputs.push(value.clone());
                value
            }
            Kind::GetAttr(name) => match graph.constants().get(name) {
                Some(tensor) => {
                    let meta = Meta::of(tensor);
                    let buffer = lowerer.buffer(Origin::Constant(name.clone()), &meta);
                    Value::Tensor(Place { buffer, meta })
                }
                None => return Err(at(OpError::unsupported("nested graphs in compiled programs"))),
            },
            Kind::Output => {
                let output = node.args.first().map_or(Ok(Value::None), |arg| look_up(&values, arg))?;
                lowerer.schedule.output = output;
                Value::None
            }
            Kind::Call(target) => {
                let args = node.args.iter().map(|arg| look_up(&values, arg)).collect::<Result<Vec<_>, _>>()?;
                match target {
                    Target::GetItem => item(&args).map_err(at)?,
                    Target::Opaque(_) if matches!(Switch::of(node), Some(Switch::Grad(_))) => Value::None,
                    Target::Opaque(name) => {
                        return Err(at(OpError::unsupported(format!("{name} in compiled programs"))));
                    }
                    Target::Op(op) => lowerer.call(op, args, node).map_err(at)?,
                }
            }
        };
        values[id.0 as usize] = Some(value);
    }
    Ok((lowerer.schedule, lowerer.copies))
}

fn item(args: &[Value<Place>]) -> Result<Value<Place>, OpError> {
    let (Some(Value::List(items)), Some(index)) = (args.first(), args.get(1).and_then(Value::as_scalar)) else {
        return Err(OpError::invalid("an item of no list"));
    };
    let (index, len) = (index.to_i64(), items.len() as i64);
    let wrapped = if index < 0 { index + len } else { index };
    let found = usize::try_from(wrapped).ok().and_then(|index| items.get(index));
    found.cloned().ok_or_else(|| OpError::invalid(format!("item {index} of a list of {len}")))
}

impl Lowerer<'_, '_> {
    fn buffer(&mut self, origin: Origin, meta: &Meta) -> BufferId {
        let id = BufferId(self.schedule.buffers.len() as u32);
        self.schedule.buffers.push(Buffer { origin, dtype: meta.dtype, elements: extent(meta) });
        self.storages.insert(meta.storage, id);
        id
    }

    /// An input. Each has a buffer of its own, whether or not it shares memory with another: nothing is written that
    /// the other would have to see.
    fn input(&mut self, node: &Node, index: usize) -> Result<Value<Place>, OpError> {
        match &node.meta {
            Some(Value::Tensor(meta)) => {
                let meta = Meta { storage: StorageId::fresh(), ..meta.clone() };
                let buffer = self.buffer(Origin::Input(index), &meta);
                Ok(Value::Tensor(Place { buffer, meta }))
            }
            Some(Value::Int(size)) => Ok(Value::Int(size.clone())),
            Some(Value::None) => Ok(Value::None),
            _ => Err(OpError::unsupported(format!("the input {} of unknown kind in compiled programs", node.name))),
        }
    }

    /// A number where a view wants a tensor, as a tensor of one element.
    fn number(&mut self, scalar: pyrite_tensor::Scalar) -> Result<Place, OpError> {
        let full = self.registry.get("aten.scalar_tensor.default").ok_or_else(|| OpError::fault("no scalar_tensor"))?;
        let meta = Meta::number(scalar);
        let place = Place { buffer: self.buffer(Origin::Computed, &meta), meta };
        let Lower::Rule(rule) = full.def.lower else { return Err(OpError::fault("scalar_tensor has no loops")) };
        let args = full.schema.bind_in_order(&[scalar.into()]).map_err(|e| OpError::fault(e.to_string()))?;
        let results = [place.clone()];
        let mut lowering = Lowering::new(Args { schema: &full.schema, values: &args }, &results);
        rule(&mut lowering)?;
        let kernels = lowering.into_kernels().into_iter().map(prepared);
        self.schedule.statements.extend(kernels.map(|kernel| Op::Loop(kernel).into()));
        Ok(place)
    }

    fn call(&mut self, op: &OpRef, mut args: Vec<Value<Place>>, node: &Node) -> Result<Value<Place>, OpError> {
        if matches!(op.def.lower, Lower::View)
            && let (Some(first), Some(true)) =
                (args.first().and_then(Value::as_scalar), op.schema.params.first().map(|p| p.alias.is_some()))
        {
            args[0] = Value::Tensor(self.number(first)?);
        }
        let mut metas: Vec<Value<Meta>> = args.iter().map(|arg| arg.map(&mut |place| place.meta.clone())).collect();
        pyrite_ir::args::tensors_from_numbers(&op.schema, &mut metas);
        let inferred = infer(self.registry, op, &metas)?;
        if depends_on_data(&inferred) {
            return Err(OpError::unsupported(format!(
                "{}, whose sizes depend on data, in compiled programs",
                op.name()
            )));
        }
        if matches!(op.def.lower, Lower::View) || matches!(op.def.eval, Eval::View) {
            return inferred.try_map(&mut |meta| {
                let buffer = self.storages.get(&meta.storage);
                let buffer = *buffer.ok_or_else(|| OpError::fault(format!("{} is a view of nothing", op.name())))?;
                let place = Place { buffer, meta: meta.clone() };
                let known = &self.schedule.buffers[buffer.0 as usize];
                let strided = op.schema.params.iter().any(|param| &*param.name == "storage_offset");
                if matches!(known.origin, Origin::Input(_)) && (strided || known.dtype != meta.dtype) {
                    self.schedule.reaches.push(place.clone());
                }
                Ok(Value::Tensor(place))
            });
        }
        let results = inferred.map(&mut |meta| {
            let known = self.storages.get(&meta.storage).copied();
            let buffer = known.unwrap_or_else(|| self.buffer(Origin::Computed, meta));
            Place { buffer, meta: meta.clone() }
        });
        let mut flat = Vec::new();
        results.each(&mut |place| flat.push(place.clone()));
        if flat.is_empty() {
            // Sizes are known without running anything; other numbers are not.
            let of_sizes = op.name().contains("sym_") || op.name().starts_with("_operator.");
            return match results {
                Value::Int(_) | Value::Float(_) | Value::Bool(_) if of_sizes => Ok(results),
                _ => Err(OpError::unsupported(format!("{} in compiled programs", op.name()))),
            };
        }
        if let ("aten.clone.default", Some(from), [to]) =
            (op.name(), args.first().and_then(Value::as_tensor), &flat[..])
        {
            self.copies.push(Copied { from: from.clone(), to: to.clone() });
        }
        let decision = format!("lower {} at {}", op.name(), node.name);
        if let Lower::Rule(rule) = op.def.lower
            && self.decisions.allow(&decision)
        {
            let mut lowering = Lowering::new(Args { schema: &op.schema, values: &args }, &flat);
            match rule(&mut lowering) {
                Ok(()) => {
                    for mut kernel in lowering.into_kernels() {
                        kernel.name.clone_from(&node.name);
                        self.decisions.made(&decision, &mut kernel);
                        if let Some(problem) = verify(&kernel).first() {
                            return Err(OpError::fault(format!("the loops of {} are wrong: {problem}", op.name())));
                        }
                        self.schedule.statements.push(Op::Loop(prepared(kernel)).into());
                    }
                    return Ok(results);
                }
                Err(OpError::Unsupported(_)) => {}
                Err(other) => return Err(other),
            }
        }
        let call = ExternCall { op: op.clone(), args, results: results.clone(), node: node.clone() };
        let op = self.extern_op(call);
        self.schedule.statements.push(op.into());
        Ok(results)
    }

    /// The statement of a call: of the kind that the operator's record names, where the operands suit.
    fn extern_op(&mut self, call: ExternCall) -> Op {
        let buffers = &self.schedule.buffers;
        let left = match call.op.def.lower {
            Lower::Extern(ExternKind::Mm | ExternKind::Addmm) => match Gemm::of(call, buffers) {
                Ok(gemm) => return Op::Gemm(Box::new(gemm)),
                Err(call) => call,
            },
            Lower::Extern(ExternKind::Bmm) => match Bmm::of(call) {
                Ok(bmm) => return Op::Bmm(Box::new(bmm.into())),
                Err(call) => call,
            },
            Lower::Extern(ExternKind::Conv | ExternKind::ConvBackward) => match Conv::of(call, buffers) {
                Ok(conv) if self.decisions.allow(&format!("winograd {}", conv.call.node.name)) => {
                    return Op::Conv(Box::new(conv));
                }
                Ok(conv) => Box::new(conv.call),
                Err(call) => call,
            },
            Lower::Extern(ExternKind::Kernel) => Box::new(call),
            _ => {
                self.schedule.fallbacks.push(call.op.name().to_owned());
                Box::new(call)
            }
        };
        Op::Call(left)
    }
}

/// Whether a size of a result is known only when it has been computed.
fn depends_on_data(value: &Value<Meta>) -> bool {
    let mut found = matches!(value, Value::Int(size) if size.hint().is_none());
    value.each(&mut |meta| found |= meta.shape.iter().chain(&meta.stride).any(|size| size.hint().is_none()));
    found
}
