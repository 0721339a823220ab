//! Decomposition: operators expressed by simpler ones.
//!
//! Every operator has at most one decomposition, in its record; a [`Table`] says which operators are replaced by
//! theirs. What a decomposition calls is decomposed in turn.

use pyrite_ir::{
    Decompose, Emit, Eval, Graph, Handle, Meta, NodeError, OpError, OpRef, Operator, Registry, Tag, Tracer, Value,
};

use crate::gate::Gate;
use crate::replay::replay;

/// Which operators are decomposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Table {
    /// Those that are nothing but a name for others.
    #[default]
    Composite,
    /// All that are not in PyTorch's core set.
    Core,
    /// All that a compiler of loops can express by pointwise operators and reductions, core ones too.
    Loops,
}

impl Table {
    /// All of them, the smallest first.
    pub const ALL: [Self; 3] = [Self::Composite, Self::Core, Self::Loops];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Composite => "composite",
            Self::Core => "core",
            Self::Loops => "loops",
        }
    }

    /// The one with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Whether an operator is to be replaced by its decomposition.
    pub fn covers(self, op: &Operator) -> bool {
        let Decompose::Rule(_) = op.def.decompose else { return false };
        let composite = matches!(op.def.eval, Eval::ViaDecomposition);
        match self {
            Self::Composite => composite,
            Self::Core => composite || !op.has(Tag::Core),
            Self::Loops => true,
        }
    }
}

/// Where random numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Random {
    /// From PyTorch's generator, in its order: they are the numbers that an eager run draws.
    #[default]
    Eager,
    /// From the fast stream, of which kernels compute what they need. A few operators, such as `randperm`, have no other
    /// numbers than PyTorch's.
    Stream,
}

impl Random {
    /// Whether an operator is to draw from the stream. One that was given a generator draws from that.
    fn streams(self, op: &Operator, args: &[Value<Handle>]) -> bool {
        let mut given = op.schema.params.iter().zip(args).filter(|(arg, _)| &*arg.name == "generator");
        self == Self::Stream && op.def.stream.is_some() && given.all(|(_, value)| matches!(value, Value::None))
    }
}

/// The graph with every operator of the table decomposed.
pub fn decompose(
    graph: &Graph,
    registry: &Registry,
    table: Table,
    random: Random,
    gate: &mut Gate,
) -> Result<Graph, NodeError> {
    replay(graph, Tracer::new(registry), &mut |tracer, node, op, args| {
        let asked = |word: &str| format!("{word} {} at {}", op.name(), node.name);
        if random.streams(op, args) {
            if gate.allows(|| asked("stream")) {
                return Decomposing { tracer, table, random }.call_op(op, args);
            }
        } else if table.covers(op) && (Table::Composite.covers(op) || gate.allows(|| asked("decompose"))) {
            return Decomposing { tracer, table, random }.call_op(op, args);
        }
        tracer.call_op(op, args)
    })
}

/// An emitter that decomposes what a table covers and writes down the rest.
pub struct Decomposing<'t, 'a> {
    /// Where the calls end up.
    pub tracer: &'t mut Tracer<'a>,
    /// What is decomposed.
    pub table: Table,
    /// Where random numbers come from.
    pub random: Random,
}

impl Decomposing<'_, '_> {
    /// Calls an operator with bound arguments.
    pub fn call_op(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        if self.random.streams(op, args) {
            let args = self.tracer.with_number_handles(op, args);
            match op.streamed(self, &args) {
                Err(OpError::Unsupported(_)) => {}
                done => return done,
            }
        }
        match op.def.decompose {
            Decompose::Rule(_) if self.table.covers(op) => {
                let with_handles = self.tracer.with_number_handles(op, args);
                match op.decomposed(self, &with_handles) {
                    // A rule may leave some types to the kernel.
                    Err(OpError::Unsupported(_)) if matches!(op.def.eval, Eval::Kernel(_)) => {
                        self.tracer.call_op(op, args)
                    }
                    done => done,
                }
            }
            _ => self.tracer.call_op(op, args),
        }
    }
}

impl Emit for Decomposing<'_, '_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let (operator, bound) = self.tracer.registry().bound(op, args)?;
        self.call_op(operator, &bound)
    }

    fn meta(&self, handle: Handle) -> &Meta {
        self.tracer.meta(handle)
    }
}
