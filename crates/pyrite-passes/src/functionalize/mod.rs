//! Functionalization: a program with writes becomes one without.
//!
//! **The idea.** A tensor of the program is not one value: it is a window on a storage, and the storage changes. So every
//! storage of the program (a *base*) has a current value, a pure tensor in the new graph, and every tensor of the
//! program is either a base itself or a view of another tensor by one view operator. Reading a tensor replays its views
//! on the base's current value, unless nothing was written since it was last read. Writing to a view computes the new
//! value of the tensor it is a view of, by the inverse of the view (`select` is undone by `select_scatter`), and so on
//! down to the base, whose current value is replaced.
//!
//! **What comes out.** [`Functional`]: the pure graph, and as data what remains to be done around it: where its inputs
//! come from, which inputs take which outputs as their new content, and which outputs of the program are inputs, views
//! of inputs, or views of each other. Composite operators are decomposed on the way, because whether they alias depends
//! on strides.
//!
//! Invariants:
//! - no operator of the graph writes; it may contain views, whose results are only read;
//! - the current value of a base has the strides of the base, so that views mean the same after a write;
//! - inputs that share memory are told apart only while none of them is written; once one is, the graph takes the
//!   memory they share as one input and makes the others views of it;
//! - what was assumed of how inputs lie in memory is the [`Contract`], which every run is bound by.

mod forms;
mod inverse;
mod outcome;
mod state;
mod wrapper;

use std::sync::Arc;

use pyrite_ir::{Contract, Graph, Kind, Meta, NodeError, NodeId, OpError, Registry, StorageId, Switch, Target, Value};
use rustc_hash::FxHashMap;

use crate::replay::{item, resolve, without_tensors};
use state::State;

/// Where an input of the functional graph comes from.
#[derive(Clone, Debug)]
pub enum InputSource {
    /// An input of the program.
    Input(usize),
    /// The memory of an input of the program, all of it, in one dimension.
    Storage(usize),
    /// A constant of the program that is written or wants a gradient.
    Constant(Arc<str>),
}

/// What an output of the program is.
#[derive(Clone, Debug)]
pub enum Produced {
    /// An output of the functional graph, by its position.
    Value(usize),
    /// An input of the functional graph itself, by its position.
    Input(usize),
    /// A view of an input's memory: the input's position, and what the view looks like.
    ViewOfInput(usize, Meta),
    /// A view of an output of the functional graph: its position, and what the view looks like; the offset counts from
    /// where that output begins.
    ViewOfValue(usize, Meta),
    /// A value that is not a tensor.
    Plain(Value<()>),
}

/// A program without writes; see the module's text.
#[derive(Clone, Debug)]
pub struct Functional {
    /// The graph. It returns one flat list: the new contents of written inputs, the program's outputs, and bases of
    /// outputs that are views of what the program does not return.
    pub graph: Graph,
    /// For each input of the graph, where it comes from.
    pub sources: Vec<InputSource>,
    /// The inputs of the graph that are written, by their position. Their new contents are the first outputs.
    pub written: Vec<usize>,
    /// For each output of the program, nested lists opened, what it is.
    pub produced: Vec<Produced>,
    /// For each output of the program, where the graph returns its value; `None` for what is not a tensor. The graph
    /// returns values of inputs and views too: gradients flow through them.
    pub positions: Vec<Option<usize>>,
    /// How the outputs are nested: each leaf is the position of an output.
    pub structure: Value<usize>,
    /// For each output of the program, how PyTorch reads it from its memory; here it is computed.
    pub readings: Vec<Reading>,
    /// What the program assumes of its inputs.
    pub contract: Contract,
}

/// How a tensor is read from its memory: PyTorch's conjugates and their imaginary parts are flags on a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reading {
    /// Whether it is the conjugate of what lies there.
    pub conjugated: bool,
    /// Whether it is the negative of what lies there.
    pub negated: bool,
}

impl Functional {
    /// The outputs of the graph that are outputs of the program, and so can have gradients.
    pub fn differentiable(&self) -> Vec<usize> {
        self.positions.iter().flatten().copied().collect()
    }

    /// What the program that this was made of assumes of its inputs, by what is known of sizes now.
    pub fn contract_with(&self, program: &Graph) -> Contract {
        let contract = Contract::of(program).with(&self.graph);
        if self.written.is_empty() { contract.reading() } else { contract }
    }

    /// Which outputs of the program some outputs of the graph are.
    pub fn leaves_of(&self, outputs: &[usize]) -> Vec<usize> {
        let leaf = |output: &usize| self.positions.iter().position(|position| position.as_ref() == Some(output));
        outputs.iter().filter_map(leaf).collect()
    }
}

/// What is known of the inputs and of the writes before a trace.
#[derive(Clone, Debug, Default)]
struct InputPlan {
    /// Constants that become inputs.
    lifted: Vec<Arc<str>>,
    /// The storages that several inputs share and that the graph takes as a whole.
    shared: Vec<StorageId>,
}

/// Removes the writes of a program. Placeholders have metadata; those of inputs that share memory name one storage.
/// Constants in `parameters` want gradients.
pub fn functionalize(graph: &Graph, registry: &Registry, parameters: &[Arc<str>]) -> Result<Functional, NodeError> {
    let mut plan = InputPlan { lifted: parameters.to_vec(), ..InputPlan::default() };
    loop {
        let (functional, missed) = trace(graph, registry, &plan, parameters)?;
        if missed.lifted.is_empty() && missed.shared.is_empty() {
            let contract = functional.contract_with(graph);
            return Ok(Functional { contract, ..functional });
        }
        plan.lifted.extend(missed.lifted);
        plan.shared.extend(missed.shared);
    }
}

/// Traces the program under a plan; returns also what the plan should have had.
fn trace(
    graph: &Graph,
    registry: &Registry,
    plan: &InputPlan,
    parameters: &[Arc<str>],
) -> Result<(Functional, InputPlan), NodeError> {
    let mut state = State::new(registry, graph);
    let mut values: Vec<Value<pyrite_ir::Handle>> = vec![Value::None; graph.id_bound()];
    let mut sources = Vec::new();
    let inputs: Vec<(NodeId, &pyrite_ir::Node)> = graph.placeholders().collect();
    // Memory that inputs share and that is written: one input for all of it.
    let mut wholes: FxHashMap<StorageId, pyrite_ir::Handle> = FxHashMap::default();
    for (index, (id, node)) in inputs.iter().enumerate() {
        let Some(Value::Tensor(meta)) = &node.meta else {
            sources.push(InputSource::Input(index));
            values[id.0 as usize] = state.plain_input(node);
            continue;
        };
        if !plan.shared.contains(&meta.storage) {
            sources.push(InputSource::Input(index));
            values[id.0 as usize] = Value::Tensor(state.input(&node.name, meta.clone(), sources.len() - 1));
            continue;
        }
        let located = |error| NodeError::at(node, error);
        let whole = if let Some(whole) = wholes.get(&meta.storage) {
            *whole
        } else {
            let sharing = inputs.iter().filter_map(|(_, n)| n.meta.as_ref().and_then(Value::as_tensor));
            let whole = whole_storage(meta, sharing.filter(|m| m.storage == meta.storage)).map_err(located)?;
            sources.push(InputSource::Storage(index));
            let handle = state.input(&format!("{}_storage", node.name), whole, sources.len() - 1);
            wholes.insert(meta.storage, handle);
            handle
        };
        values[id.0 as usize] = state.view_of_whole(whole, meta).map_err(located)?;
    }
    let mut constants: FxHashMap<Arc<str>, pyrite_ir::Handle> = FxHashMap::default();
    for name in &plan.lifted {
        if let Some(tensor) = graph.constants().get(name) {
            sources.push(InputSource::Constant(name.clone()));
            let requires_grad = parameters.contains(name);
            let meta = Meta { storage: StorageId::fresh(), requires_grad, ..Meta::of(tensor) };
            constants.insert(name.clone(), state.input(name, meta, sources.len() - 1));
        }
    }
    let mut output = &Value::None;
    for (id, node) in graph.nodes() {
        state.at(node);
        let located = |error| NodeError::at(node, error);
        let value = match &node.kind {
            Kind::Placeholder => continue,
            Kind::GetAttr(name) => match (constants.get(name), graph.constants().get(name)) {
                (Some(handle), _) => Value::Tensor(*handle),
                (None, Some(tensor)) => {
                    let handle = state.constant(name, tensor);
                    constants.insert(name.clone(), handle);
                    Value::Tensor(handle)
                }
                (None, None) => Value::Graph(name.clone()),
            },
            Kind::Output => {
                output = node.args.first().unwrap_or(&Value::None);
                continue;
            }
            Kind::Call(target) => {
                let args: Vec<_> = node.args.iter().map(|arg| resolve(arg, &values)).collect();
                match target {
                    Target::GetItem => item(&args).map_err(located)?,
                    Target::Op(op) => state.node(graph, node, op, &args).map_err(located)?,
                    Target::Opaque(_) if Switch::of(node).is_some() => state.switch(node),
                    Target::Opaque(_) => state.opaque(node, &args, &values).map_err(located)?,
                }
            }
        };
        values[id.0 as usize] = value;
    }
    let missed = state.missed(&inputs, plan);
    let functional = state.finish(&resolve(output, &values), sources).map_err(NodeError::from)?;
    Ok((functional, missed))
}

/// The memory behind an input, in one dimension: as far as the inputs that share it reach.
fn whole_storage<'a>(meta: &Meta, sharing: impl Iterator<Item = &'a Meta>) -> Result<Meta, OpError> {
    let mut end = 0;
    for other in sharing {
        if other.requires_grad {
            return Err(OpError::unsupported("inputs share memory, one of them is written, and a gradient is wanted"));
        }
        if other.dtype != meta.dtype {
            return Err(OpError::unsupported("inputs of different types share memory, and one of them is written"));
        }
        end = end.max(other.layout()?.span().unwrap_or(0));
    }
    Ok(Meta { device: meta.device.clone(), ..Meta::of_shape(&[end], meta.dtype) })
}

/// What the metadata of an input that is not a tensor stands for.
fn plain(meta: Option<&Value<Meta>>) -> Value<pyrite_ir::Handle> {
    meta.map_or(Value::None, without_tensors)
}
