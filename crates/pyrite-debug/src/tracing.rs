//! Whether a program that is written down keeps its symbolic sizes.

use pyrite_ir::{Meta, StorageId, Tracer, Value};
use pyrite_ops::registry;
use pyrite_passes::replay::replay;
use pyrite_reduce::Candidate;

/// Which sizes a repro has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// Those of the captured program: symbolic where it was captured so.
    #[default]
    Symbolic,
    /// The numbers of the call that is written down.
    Real,
}

impl Tracing {
    /// The program with such sizes. One that cannot be traced with the numbers stays as it is.
    pub(crate) fn of(self, program: Candidate) -> Candidate {
        match self {
            Self::Symbolic => program,
            Self::Real => with_numbers(&program).unwrap_or(program),
        }
    }
}

/// The program traced anew with the sizes of its inputs.
fn with_numbers(program: &Candidate) -> Option<Candidate> {
    let mut graph = program.graph.clone();
    let inputs: Vec<_> = program.graph.placeholders().map(|(id, node)| (id, node.meta.clone())).collect();
    for ((id, meta), value) in inputs.into_iter().zip(&program.inputs) {
        let known = match (value, meta) {
            (Value::Tensor(tensor), Some(Value::Tensor(meta))) => Value::Tensor(Meta {
                storage: StorageId::fresh(),
                requires_grad: meta.requires_grad,
                is_leaf: meta.is_leaf,
                device: meta.device.clone(),
                ..Meta::of(tensor)
            }),
            (Value::Int(size), _) => Value::Int(size.clone()),
            _ => continue,
        };
        graph.set_meta(id, known);
    }
    let traced = replay(&graph, Tracer::new(registry()), &mut |tracer, _, op, args| tracer.call_op(op, args));
    Some(Candidate { graph: traced.ok()?, ..program.clone() })
}
