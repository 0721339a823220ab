//! From the bottom up: which few nodes fail on their own?
//!
//! Every node is fed from the eager values of what it uses and returns its value: one graph of unconnected parts, one
//! query. Where the failure survives that, the part that fails is found by halving. Where it does not, it needs nodes
//! together: windows of two, four, eight … neighbouring nodes are tried in the same way, in two tilings so that no pair
//! of neighbours is always torn apart.

use pyrite_ir::{Kind, NodeId, Value};
use pyrite_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use super::structure::as_input;
use crate::Candidate;
use crate::driver::Search;
use crate::rebuild::Parts;

/// Graphs with fewer calls are reduced as fast from the top.
const SMALL: usize = 8;

pub(super) fn windows(search: &mut Search<'_>) {
    let from = search.best().clone();
    let calls: Vec<NodeId> =
        from.graph.nodes().filter(|(_, node)| matches!(node.kind, Kind::Call(_))).map(|(id, _)| id).collect();
    if calls.len() < SMALL {
        return;
    }
    let Some(values) = from.values() else { return };
    let mut width = 1;
    while width <= calls.len() / 2 && !search.is_over() {
        for offset in [0, width / 2] {
            let mut tiles: Vec<Vec<NodeId>> = Vec::new();
            if offset > 0 {
                tiles.push(calls[..offset].to_vec());
            }
            tiles.extend(calls[offset..].chunks(width).map(<[NodeId]>::to_vec));
            if let Some(tile) = guilty(search, &from, &values, tiles) {
                search.first_failing(vec![separate(&from, &values, &[tile])]);
                return;
            }
            if width == 1 {
                break;
            }
        }
        width *= 2;
    }
}

/// The tile that fails on its own, if all of them together do.
fn guilty(
    search: &mut Search<'_>,
    from: &Candidate,
    values: &[Option<Value<Tensor>>],
    tiles: Vec<Vec<NodeId>>,
) -> Option<Vec<NodeId>> {
    search.probe(vec![separate(from, values, &tiles)])?;
    let mut tiles = tiles;
    while tiles.len() > 1 {
        let half = tiles.len().div_ceil(2);
        let halves: Vec<Vec<Vec<NodeId>>> = tiles.chunks(half).map(<[Vec<NodeId>]>::to_vec).collect();
        let proposals = halves.iter().map(|half| separate(from, values, half)).collect();
        // Both halves are asked about at once where there are jobs for it; the first that fails is followed.
        let found = search.probe(proposals)?;
        tiles.clone_from(&halves[found]);
    }
    tiles.pop()
}

/// The graph of tiles that are connected inside and fed from eager values outside.
fn separate(from: &Candidate, values: &[Option<Value<Tensor>>], tiles: &[Vec<NodeId>]) -> Candidate {
    let mut home: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (index, tile) in tiles.iter().enumerate() {
        home.extend(tile.iter().map(|id| (*id, index)));
    }
    let mut parts = Parts::default();
    let mut used_inside: FxHashSet<NodeId> = FxHashSet::default();
    for (id, node) in from.graph.nodes() {
        let Some(tile) = home.get(&id) else { continue };
        node.each_input(&mut |used| {
            if home.get(&used) == Some(tile) {
                used_inside.insert(used);
                return;
            }
            // What is no tensor stays connected: lists have no form as inputs.
            if let Some(tensor) = as_input(values[used.0 as usize].as_ref())
                && !matches!(from.graph.node(used).kind, Kind::GetAttr(_))
            {
                parts.cut.insert((id, used), tensor.clone());
            }
        });
    }
    for tile in tiles {
        for id in tile {
            let tensor = as_input(values[id.0 as usize].as_ref()).is_some();
            if tensor && !used_inside.contains(id) {
                parts.outputs.push(*id);
            }
        }
    }
    parts.build(from)
}
