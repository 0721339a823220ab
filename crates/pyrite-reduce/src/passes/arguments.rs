//! Arguments as the operator takes them by default.

use pyrite_ir::{Kind, Target, Value};
use pyrite_ops::registry;
use pyrite_passes::replay::replay;

use crate::Candidate;
use crate::driver::Search;
use crate::rebuild::Parts;

pub(super) fn defaults(search: &mut Search<'_>) {
    while !search.is_over() {
        let from = search.best().clone();
        let mut proposals = Vec::new();
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
                proposals.extend(inferred(parts.build(&from)));
            }
        }
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
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
    let graph = pyrite_passes::cleanup::dead_code(&graph.ok()?);
    Some(Candidate { graph, inputs: candidate.inputs })
}
