//! Passes over the structure of a graph.

use pyrite_ir::{Kind, Meta, NodeId, Value};

use super::bottom_up::reaching_floats;
use crate::Candidate;
use crate::driver::{Follow, Search};
use crate::rebuild::Parts;
use crate::saved::Saved;

fn outputs_of(candidate: &Candidate) -> Vec<NodeId> {
    Parts::all(&candidate.graph).outputs
}

/// Returns fewer values: halves, then quarters, then single ones.
pub(super) fn outputs(search: &mut Search<'_>) {
    let mut chunk = outputs_of(search.best()).len().div_ceil(2).min(search.granularity());
    while chunk >= 1 && !search.is_over() {
        let all = outputs_of(search.best());
        if all.len() < 2 {
            return;
        }
        let chunk_now = chunk.min(all.len() - 1);
        // First a chunk alone, then all but a chunk.
        let alone = all.chunks(chunk_now).map(<[NodeId]>::to_vec);
        let without = (0..all.len()).step_by(chunk_now).map(|start| {
            let end = (start + chunk_now).min(all.len());
            [&all[..start], &all[end..]].concat()
        });
        let proposals: Vec<Candidate> = alone
            .chain(without)
            .filter(|outputs| !outputs.is_empty() && outputs.len() < all.len())
            .map(|outputs| Parts { outputs, ..Parts::default() }.build(search.best()))
            .collect();
        if search.first_failing(proposals).is_none() {
            if chunk == 1 {
                return;
            }
            chunk = chunk_now.div_ceil(2).max(1).min(chunk - 1);
        }
    }
}

/// Ends at an earlier node: by bisection, which is right where longer graphs fail whenever shorter ones do, and then
/// one node at a time from the end.
pub(super) fn truncate(search: &mut Search<'_>) {
    let follow = search.follow();
    let calls = |candidate: &Candidate| -> Vec<NodeId> {
        let reaching = (follow == Follow::Floats).then(|| reaching_floats(&candidate.graph));
        let tensors = candidate.graph.nodes().filter(|(id, node)| {
            let counts = reaching.as_ref().is_none_or(|reaching| reaching.contains(id));
            counts && matches!(node.kind, Kind::Call(_)) && matches!(node.meta, Some(Value::Tensor(_)))
        });
        tensors.map(|(id, _)| id).collect()
    };
    let from = search.best().clone();
    let all = calls(&from);
    let (mut low, mut high) = (0, all.len());
    while low < high && !search.is_over() {
        let middle = usize::midpoint(low, high);
        let ended = Parts { outputs: vec![all[middle]], ..Parts::default() }.build(&from);
        if search.probe(std::slice::from_ref(&ended)).is_some() {
            search.first_failing(vec![ended]);
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // What each output alone needs, the last calls first.
    loop {
        let from = search.best().clone();
        let current = outputs_of(&from);
        let proposals: Vec<Candidate> = calls(&from)
            .into_iter()
            .rev()
            .filter(|id| !current.contains(id))
            .take(8)
            .map(|id| Parts { outputs: vec![id], ..Parts::default() }.build(&from))
            .collect();
        if search.is_over() || search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// The candidates with calls replaced by inputs that hold their values, the largest chunks first.
pub(super) fn fed(from: &Candidate, values: &Saved) -> Vec<Candidate> {
    let calls = feedable(from, values);
    let mut found = Vec::new();
    let mut chunk = calls.len().next_power_of_two() / 2;
    while chunk >= 1 {
        found.extend(calls.chunks(chunk).map(|chunk| with_fed(from, values, chunk)));
        chunk /= 2;
    }
    found
}

/// The calls whose values can be inputs.
fn feedable(from: &Candidate, values: &Saved) -> Vec<NodeId> {
    let calls = from.graph.nodes().filter(|(id, node)| matches!(node.kind, Kind::Call(_)) && values.has(*id));
    calls.map(|(id, _)| id).collect()
}

fn with_fed(from: &Candidate, values: &Saved, calls: &[NodeId]) -> Candidate {
    let fed = calls.iter().filter_map(|id| Some((*id, values.tensor(*id)?))).collect();
    Parts { fed, ..Parts::all(&from.graph) }.build(from)
}

/// Replaces calls by inputs: chunks of halving size, each chunk alone, starting over after a success.
pub(super) fn delta(search: &mut Search<'_>) {
    let mut chunk = search.granularity();
    while !search.is_over() {
        let from = search.best().clone();
        let Some(values) = search.values_of(&from) else { return };
        let calls = feedable(&from, &values);
        if calls.is_empty() {
            return;
        }
        chunk = chunk.min(calls.len().next_power_of_two() / 2).max(1);
        let proposals = calls.chunks(chunk).map(|chunk| with_fed(&from, &values, chunk));
        if search.first_failing(proposals).is_none() {
            if chunk == 1 {
                return;
            }
            chunk /= 2;
        }
    }
}

/// Returns an ancestor in place of an output: those far away first, then nearer ones, then the operands.
pub(super) fn ascend(search: &mut Search<'_>) {
    while !search.is_over() {
        let proposals = ascended(search.best());
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// The candidates with an ancestor in place of one output. An output whose ancestors are inputs alone has none.
pub(super) fn ascended(from: &Candidate) -> Vec<Candidate> {
    let outputs = outputs_of(from);
    let mut found: Vec<(usize, usize, NodeId)> = Vec::new();
    for (place, output) in outputs.iter().enumerate() {
        let (mut level, mut distance) = (vec![*output], 0);
        let mut seen: Vec<NodeId> = level.clone();
        while !level.is_empty() {
            let mut above = Vec::new();
            for id in level {
                from.graph.node(id).each_input(&mut |input| {
                    if !seen.contains(&input) && matches!(from.graph.node(input).kind, Kind::Call(_)) {
                        seen.push(input);
                        above.push(input);
                    }
                });
            }
            // What is not a tensor, such as the parts of a split, is passed by.
            let is_tensor = |id: &NodeId| matches!(from.graph.node(*id).meta, Some(Value::Tensor(_)));
            distance += usize::from(distance == 0 || above.iter().any(is_tensor));
            if distance.is_power_of_two() {
                found.extend(above.iter().filter(|id| is_tensor(id)).map(|id| (distance, place, *id)));
            }
            level = above;
        }
    }
    found.sort_by_key(|(distance, place, _)| (std::cmp::Reverse(*distance), *place));
    let proposal = |(_, place, ancestor): (usize, usize, NodeId)| {
        let mut outputs = outputs.clone();
        if outputs.contains(&ancestor) {
            outputs.remove(place);
        } else {
            outputs[place] = ancestor;
        }
        Parts { outputs, ..Parts::default() }.build(from)
    };
    found.into_iter().map(proposal).collect()
}

/// Uses an operand of the same shape and type in place of a call: of many at a time where no value can be had to feed them
/// from, which leaves them all until here; then of single ones.
pub(super) fn bypass(search: &mut Search<'_>) {
    if search.values_of(search.best()).is_none() {
        bypass_many(search);
    }
    while !search.is_over() {
        let proposals = bypassed(search.best());
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// Uses operands in place of calls in chunks of halving size, each chunk alone, starting over after a success.
fn bypass_many(search: &mut Search<'_>) {
    let mut chunk = search.granularity();
    while !search.is_over() {
        let from = search.best().clone();
        let calls: Vec<(NodeId, NodeId)> =
            from.graph.nodes().filter_map(|(id, _)| Some((id, *like(&from, id).first()?))).collect();
        chunk = chunk.min(calls.len());
        if chunk < 2 {
            return;
        }
        let without = |calls: &[(NodeId, NodeId)]| {
            let mut parts = Parts::all(&from.graph);
            parts.instead.extend(calls.iter().copied());
            parts.build(&from)
        };
        if search.first_failing(calls.chunks(chunk).map(without)).is_none() {
            chunk /= 2;
        }
    }
}

/// The candidates with an operand in place of one call.
pub(super) fn bypassed(from: &Candidate) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (id, _) in from.graph.nodes() {
        for operand in like(from, id) {
            let mut parts = Parts::all(&from.graph);
            parts.instead.insert(id, operand);
            found.push(parts.build(from));
        }
    }
    found
}

/// The operands of a call that have its shape and type.
fn like(from: &Candidate, id: NodeId) -> Vec<NodeId> {
    let meta = |id: NodeId| -> Option<&Meta> { from.graph.node(id).meta.as_ref().and_then(Value::as_tensor) };
    let node = from.graph.node(id);
    let (Kind::Call(_), Some(own)) = (&node.kind, meta(id)) else { return Vec::new() };
    let mut operands = Vec::new();
    node.each_input(&mut |input| operands.push(input));
    operands.retain(|operand| meta(*operand).is_some_and(|m| m.shape == own.shape && m.dtype == own.dtype));
    operands
}
