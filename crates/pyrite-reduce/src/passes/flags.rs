//! Flags of a program: regions of autocast and of gradients, and which inputs want gradients.

use pyrite_ir::{Meta, Switch, Value};
use rustc_hash::FxHashSet;

use crate::Candidate;
use crate::driver::Search;
use crate::rebuild::Parts;
use crate::regions;

pub(super) fn needless(search: &mut Search<'_>) {
    while !search.is_over() {
        let from = search.best().clone();
        let proposals: Vec<Candidate> = [without_gradients(&from, None)]
            .into_iter()
            .flatten()
            .chain(without_regions(&from))
            .chain((0..from.inputs.len()).filter_map(|index| without_gradients(&from, Some(index))))
            .collect();
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// How many flags a candidate has: inputs that want gradients, and switches.
pub(crate) fn count(candidate: &Candidate) -> usize {
    let wants = |meta: Option<&Value<Meta>>| matches!(meta, Some(Value::Tensor(meta)) if meta.requires_grad);
    let inputs = candidate.graph.placeholders().filter(|(_, node)| wants(node.meta.as_ref())).count();
    inputs + regions::count(&candidate.graph)
}

/// The candidate without the gradients of one input, or of any.
fn without_gradients(from: &Candidate, only: Option<usize>) -> Option<Candidate> {
    let mut graph = from.graph.clone();
    let mut changed = false;
    let inputs: Vec<_> = from.graph.placeholders().map(|(id, node)| (id, node.meta.clone())).collect();
    for (index, (id, meta)) in inputs.into_iter().enumerate() {
        if let Some(Value::Tensor(meta)) = meta
            && meta.requires_grad
            && only.is_none_or(|only| only == index)
        {
            graph.set_meta(id, Value::Tensor(Meta { requires_grad: false, ..meta }));
            changed = true;
        }
    }
    changed.then(|| Candidate { graph, ..from.clone() })
}

/// The candidates without all switches, or without those of one region.
pub(super) fn without_regions(from: &Candidate) -> impl Iterator<Item = Candidate> {
    let all: FxHashSet<_> =
        from.graph.nodes().filter(|(_, node)| Switch::of(node).is_some()).map(|(id, _)| id).collect();
    let every = (!all.is_empty()).then_some(all);
    let single = regions::regions(&from.graph).into_iter().map(|region| region.into_iter().collect());
    let choices: Vec<FxHashSet<_>> = every.into_iter().chain(single).collect();
    choices.into_iter().map(|dropped| Parts { dropped, ..Parts::all(&from.graph) }.build(from))
}
