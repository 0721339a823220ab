//! A graph as pieces: kernels, and calls of operators that stay calls.
//!
//! Every tensor of the graph becomes a [`Place`] in a buffer. Views are other places in the same buffer and make no
//! piece. Buffers are filled before they are read, by the pieces in their order; only the pieces of one operator write
//! to one buffer.

use pyrite_ir::infer::infer;
use pyrite_ir::lower::{Lowering, Place};
use pyrite_ir::{
    Args, Eval, Graph, Kind, Lower, Meta, Node, NodeError, OpError, OpRef, Registry, StorageId, Switch, Target, Value,
};
use pyrite_loops::{BufferId, Kernel, verify};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;
use rustc_hash::FxHashMap;
use std::sync::Arc;

use crate::decisions::Decisions;
use crate::fuse::prepared;

/// Where the content of a buffer comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The input of that number.
    Input(usize),
    /// The constant of that name.
    Constant(Arc<str>),
    /// A piece of the program.
    Computed,
    /// A kernel, for each of its rows.
    Scratch,
}

/// A buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Where its content comes from.
    pub origin: Origin,
    /// The type of its elements.
    pub dtype: DType,
    /// How many elements it has; meaningless for inputs and constants, which bring their memory.
    pub elements: SymInt,
}

/// A call of an operator.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The operator.
    pub op: OpRef,
    /// Its arguments.
    pub args: Vec<Value<Place>>,
    /// Where its results are to be found afterwards.
    pub results: Value<Place>,
    /// The node it comes from.
    pub node: Node,
}

/// What a program does, one thing after the other.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Loops.
    Loops(Kernel),
    /// A call.
    Outside(Box<Outside>),
}

/// A graph as pieces.
#[derive(Debug)]
pub struct Pieces {
    /// All buffers, by [`BufferId`].
    pub buffers: Vec<Buffer>,
    /// The pieces in their order.
    pub pieces: Vec<Piece>,
    /// What each input must look like.
    pub inputs: Vec<Value<Place>>,
    /// Views that may lie outside of the input whose storage they are in, or that have another element type.
    pub reaches: Vec<Place>,
    /// What is returned.
    pub output: Value<Place>,
    /// The operators that stayed calls, though they are not meant to be.
    pub fallbacks: Vec<String>,
    /// The copies that the graph asks for.
    pub copies: Vec<Copied>,
}

/// A copy: the same elements in another order.
#[derive(Clone, Debug)]
pub struct Copied {
    /// What is copied.
    pub from: Place,
    /// Where it lies then, in a buffer of its own.
    pub to: Place,
}

struct Cutter<'a, 'd> {
    registry: &'a Registry,
    decisions: &'a mut Decisions<'d>,
    pieces: Pieces,
    /// The buffer of each storage of metadata.
    storages: FxHashMap<StorageId, BufferId>,
}

/// Cuts a functional graph into pieces. Each lowering is a decision.
pub fn pieces(graph: &Graph, registry: &Registry, decisions: &mut Decisions<'_>) -> Result<Pieces, NodeError> {
    let mut cutter = Cutter {
        registry,
        decisions,
        pieces: Pieces {
            buffers: Vec::new(),
            pieces: Vec::new(),
            inputs: Vec::new(),
            reaches: Vec::new(),
            output: Value::None,
            fallbacks: Vec::new(),
            copies: Vec::new(),
        },
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
                let input = cutter.pieces.inputs.len();
                let value = cutter.input(node, input).map_err(at)?;
                cutter.pieces.inputs.push(value.clone());
                value
            }
            Kind::GetAttr(name) => match graph.constants().get(name) {
                Some(tensor) => {
                    let meta = Meta::of(tensor);
                    let buffer = cutter.buffer(Origin::Constant(name.clone()), &meta);
                    Value::Tensor(Place { buffer, meta })
                }
                None => return Err(at(OpError::unsupported("nested graphs in compiled programs"))),
            },
            Kind::Output => {
                let output = node.args.first().map_or(Ok(Value::None), |arg| look_up(&values, arg))?;
                cutter.pieces.output = output;
                Value::None
            }
            Kind::Call(target) => {
                let args = node.args.iter().map(|arg| look_up(&values, arg)).collect::<Result<Vec<_>, _>>()?;
                match target {
                    Target::GetItem => item(&args).map_err(at)?,
                    Target::Foreign(_) if matches!(Switch::of(node), Some(Switch::Grad(_))) => Value::None,
                    Target::Foreign(name) => {
                        return Err(at(OpError::unsupported(format!("{name} in compiled programs"))));
                    }
                    Target::Op(op) => cutter.call(op, args, node).map_err(at)?,
                }
            }
        };
        values[id.0 as usize] = Some(value);
    }
    Ok(cutter.pieces)
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

impl Cutter<'_, '_> {
    fn buffer(&mut self, origin: Origin, meta: &Meta) -> BufferId {
        let id = BufferId(self.pieces.buffers.len() as u32);
        self.pieces.buffers.push(Buffer { origin, dtype: meta.dtype, elements: extent(meta) });
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
        self.pieces.pieces.extend(lowering.into_kernels().into_iter().map(prepared).map(Piece::Loops));
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
                let known = &self.pieces.buffers[buffer.0 as usize];
                let strided = op.schema.params.iter().any(|param| &*param.name == "storage_offset");
                if matches!(known.origin, Origin::Input(_)) && (strided || known.dtype != meta.dtype) {
                    self.pieces.reaches.push(place.clone());
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
            self.pieces.copies.push(Copied { from: from.clone(), to: to.clone() });
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
                        self.pieces.pieces.push(Piece::Loops(prepared(kernel)));
                    }
                    return Ok(results);
                }
                Err(OpError::Unsupported(_)) => {}
                Err(other) => return Err(other),
            }
        }
        if !matches!(op.def.lower, Lower::Extern) {
            self.pieces.fallbacks.push(op.name().to_owned());
        }
        let outside = Outside { op: op.clone(), args, results: results.clone(), node: node.clone() };
        self.pieces.pieces.push(Piece::Outside(Box::new(outside)));
        Ok(results)
    }
}

/// Whether a size of a result is known only when it has been computed.
fn depends_on_data(value: &Value<Meta>) -> bool {
    let mut found = matches!(value, Value::Int(size) if size.hint().is_none());
    value.each(&mut |meta| found |= meta.shape.iter().chain(&meta.stride).any(|size| size.hint().is_none()));
    found
}

/// How many elements a storage needs for a tensor.
pub fn extent(meta: &Meta) -> SymInt {
    let mut last = meta.offset.clone();
    for (size, stride) in meta.shape.iter().zip(&meta.stride) {
        if size.as_int() == Some(0) {
            return SymInt::Int(0);
        }
        last = last + (size.clone() + SymInt::Int(-1)) * stride.clone();
    }
    last + SymInt::Int(1)
}
