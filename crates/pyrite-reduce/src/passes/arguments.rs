//! Arguments as the operator takes them by default.

use pyrite_ir::{Kind, Target, Value};
use pyrite_ops::registry;
use pyrite_passes::replay::replay;

use crate::Candidate;
use crate::driver::Search;
use crate::rebuild::Parts;
use crate::regions::tied;

pub(super) fn defaults(search: &mut Search<'_>) {
    while !search.is_over() {
        let proposals = with_defaults(search.best());
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// The candidates with the default in place of one argument.
pub(super) fn with_defaults(from: &Candidate) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (id, node) in from.graph.nodes() {
        let Kind::Call(Target::Op(op)) = &node.kind else { continue };
        for (index, param) in op.schema.params.iter().enumerate() {
            let Some(default) = &param.default else { continue };
            let plain = default.try_map::<pyrite_ir::NodeId, ()>(&mut |()| Err(()));
            let (Ok(plain), Some(arg)) = (plain, node.args.get(index)) else { continue };
            if *arg == plain {
                continue;
            }
            let mut args = node.args.clone();
            args[index] = plain;
            let mut parts = Parts::all(&from.graph);
            parts.args.insert(id, args);
            found.extend(inferred(parts.build(from)));
        }
    }
    found
}

/// A candidate with metadata that fits it, if it is a program still.
pub(super) fn inferred(candidate: Candidate) -> Option<Candidate> {
    let tracer = pyrite_ir::Tracer::new(registry());
    let graph = replay(&candidate.graph, tracer, &mut |tracer, node, op, args| {
        if matches!(op.def.eval, pyrite_ir::Eval::HigherOrder) {
            let lowered = args.iter().map(|v| tracer.lower(v)).collect();
            return Ok(tracer.append_call(op, lowered, node.meta.clone().unwrap_or(Value::None)));
        }
        tracer.call_op(op, args)
    });
    let graph = pyrite_passes::cleanup::dead_code(&tied(graph.ok()?, &candidate.graph));
    Some(Candidate { graph, ..candidate })
}
