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

/// The graph with every operator of the table decomposed.
pub fn decompose(graph: &Graph, registry: &Registry, table: Table, gate: &mut Gate) -> Result<Graph, NodeError> {
    replay(graph, Tracer::new(registry), &mut |tracer, node, op, args| {
        if table.covers(op) {
            let composite = Table::Composite.covers(op);
            if composite || gate.allows(|| format!("decompose {} at {}", op.name(), node.name)) {
                return Decomposing { tracer, table }.call_op(op, args);
            }
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
}

impl Decomposing<'_, '_> {
    /// Calls an operator with bound arguments.
    pub fn call_op(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        match op.def.decompose {
            Decompose::Rule(_) if self.table.covers(op) => {
                let args = self.tracer.with_number_handles(op, args);
                op.decomposed(self, &args)
            }
            _ => self.tracer.call_op(op, args),
        }
    }
}

impl Emit for Decomposing<'_, '_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let operator = self
            .tracer
            .registry()
            .get(op)
            .ok_or_else(|| OpError::fault(format!("a rule calls {op}, which does not exist")))?;
        let bound = operator.schema.bind_in_order(args).map_err(|e| OpError::fault(e.to_string()))?;
        self.call_op(operator, &bound)
    }

    fn meta(&self, handle: Handle) -> &Meta {
        self.tracer.meta(handle)
    }
}
