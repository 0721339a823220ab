//! From the bottom up: which few nodes fail on their own?
//!
//! Every node is fed from the eager values of what it uses and returns its value: one graph of unconnected parts, one
//! query. Where the failure survives that, the verdict may say which output differs most, and so which part to try alone;
//! otherwise the first part that fails is found by halving. Where the failure does not survive, it needs nodes together:
//! first the groups that a compiler would probably fuse, then windows of two, four, eight … neighbouring nodes are tried in the same way, in two tilings so that no pair of
//! neighbours is always torn apart.
//!
//! Models repeat themselves. Of calls that differ in nothing but the contents of their operands the first query has one
//! each; all of them follow only if that passes.

use pyrite_ir::{Graph, Kind, Node, NodeId, Tag, Target, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Candidate;
use crate::driver::{Follow, Search};
use crate::rebuild::Parts;
use crate::saved::{Keep, Saved};

/// Graphs with fewer calls are reduced as fast from the top.
const SMALL: usize = 8;

/// A part of the graph that is connected inside.
type Tile = Vec<NodeId>;

/// The first thing that is asked about a start, if the search begins from the bottom.
pub(crate) fn first_question(start: &Candidate, follow: Follow) -> Option<Candidate> {
    let calls = calls_of(&start.graph, follow);
    if calls.len() < SMALL {
        return None;
    }
    let values = Saved::of(start, Keep::InMemory)?;
    let tiles =
        representatives(&start.graph, &calls).unwrap_or_else(|| calls.chunks(1).map(<[NodeId]>::to_vec).collect());
    Some(separate(start, &values, &tiles).0)
}

pub(super) fn windows(search: &mut Search<'_>) {
    let from = search.best().clone();
    let calls = calls_of(&from.graph, search.follow());
    // What is kept on disk is too large to be fed to one question.
    if calls.len() < SMALL || search.keep() != Keep::InMemory {
        return;
    }
    let Some(values) = search.values_of(&from) else { return };
    if let Some(tiles) = representatives(&from.graph, &calls)
        && let Some(tile) = guilty(search, &from, &values, tiles)
    {
        search.first_failing(vec![separate(&from, &values, &[tile]).0]);
        return;
    }
    if let Some(tiles) = fusions(&from.graph, &calls)
        && let Some(tile) = guilty(search, &from, &values, tiles)
    {
        search.first_failing(vec![separate(&from, &values, &[tile]).0]);
        return;
    }
    let mut width = 1;
    while width <= calls.len() / 2 && !search.is_over() {
        for offset in [0, width / 2] {
            let mut tiles: Vec<Tile> = Vec::new();
            if offset > 0 {
                tiles.push(calls[..offset].to_vec());
            }
            tiles.extend(calls[offset..].chunks(width).map(<[NodeId]>::to_vec));
            if let Some(tile) = guilty(search, &from, &values, tiles) {
                search.first_failing(vec![separate(&from, &values, &[tile]).0]);
                return;
            }
            if width == 1 {
                break;
            }
        }
        width *= 2;
    }
}

/// The calls that count.
fn calls_of(graph: &Graph, follow: Follow) -> Vec<NodeId> {
    let all: Vec<NodeId> =
        graph.nodes().filter(|(_, node)| matches!(node.kind, Kind::Call(_))).map(|(id, _)| id).collect();
    match follow {
        Follow::Everything => all,
        Follow::Floats => {
            let reaching = reaching_floats(graph);
            all.into_iter().filter(|id| reaching.contains(id)).collect()
        }
    }
}

/// The nodes whose value reaches a floating-point result through floating-point values, or through what is not a tensor; all
/// nodes where there is no such result.
pub(super) fn reaching_floats(graph: &Graph) -> FxHashSet<NodeId> {
    let carries = |id: NodeId| match &graph.node(id).meta {
        Some(Value::Tensor(meta)) => meta.dtype.is_float() || meta.dtype.is_complex(),
        _ => true,
    };
    let mut stack = Vec::new();
    graph.output().each(&mut |id| stack.extend(Some(*id).filter(|id| carries(*id))));
    if stack.is_empty() {
        return graph.nodes().map(|(id, _)| id).collect();
    }
    let mut reaching: FxHashSet<NodeId> = FxHashSet::default();
    while let Some(id) = stack.pop() {
        if reaching.insert(id) {
            graph.node(id).each_input(&mut |input| stack.extend(Some(input).filter(|id| carries(*id))));
        }
    }
    reaching
}

/// One call of each kind, where that is at most half of them.
fn representatives(graph: &Graph, calls: &[NodeId]) -> Option<Vec<Tile>> {
    let mut seen: FxHashSet<String> = FxHashSet::default();
    let tiles: Vec<Tile> =
        calls.iter().filter(|id| seen.insert(likeness(graph, graph.node(**id), 3))).map(|id| vec![*id]).collect();
    (tiles.len() <= calls.len() / 2).then_some(tiles)
}

/// What a compiler would probably fuse: pointwise calls that feed each other, and what they feed at last. Only where that
/// joins calls, and leaves every group smaller than half of the graph.
fn fusions(graph: &Graph, calls: &[NodeId]) -> Option<Vec<Tile>> {
    let is_pointwise =
        |id: NodeId| matches!(&graph.node(id).kind, Kind::Call(Target::Op(op)) if op.has(Tag::Pointwise));
    let mut group: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut tiles: FxHashMap<NodeId, Tile> = FxHashMap::default();
    for id in calls {
        let mut home = *id;
        tiles.insert(*id, vec![*id]);
        group.insert(*id, *id);
        let mut feeding = Vec::new();
        graph.node(*id).each_input(&mut |input| feeding.extend(group.get(&input).filter(|_| is_pointwise(input))));
        for other in feeding {
            if other != home {
                let (joined, kept) = (tiles.remove(&home)?, other);
                group.extend(joined.iter().map(|id| (*id, kept)));
                tiles.get_mut(&kept)?.extend(joined);
                home = kept;
            }
        }
    }
    let mut tiles: Vec<Tile> = tiles.into_values().collect();
    tiles.iter_mut().for_each(|tile| tile.sort_unstable());
    tiles.sort_unstable();
    let largest = tiles.iter().map(Vec::len).max()?;
    (largest > 1 && largest <= calls.len() / 2).then_some(tiles)
}

/// What calls of one kind have in common: the operator, plain arguments, and the form of operands. What is not a tensor
/// has the form of the call that makes it, so many calls up.
fn likeness(graph: &Graph, node: &Node, depth: usize) -> String {
    let Kind::Call(target) = &node.kind else { return String::new() };
    let form = |value: &Value<NodeId>| {
        let formed = value.map(&mut |id| match &graph.node(*id).meta {
            Some(Value::Tensor(meta)) => {
                format!("{:?} {:?} {:?} {}", meta.dtype, meta.shape, meta.stride, meta.requires_grad)
            }
            _ if depth > 0 && matches!(graph.node(*id).kind, Kind::Call(_)) => {
                format!("({})", likeness(graph, graph.node(*id), depth - 1))
            }
            _ => format!("%{}", id.0),
        });
        format!("{formed:?}")
    };
    let args: Vec<String> = node.args.iter().map(form).collect();
    let kwargs: Vec<String> = node.kwargs.iter().map(|(name, value)| format!("{name}={}", form(value))).collect();
    format!("{} {} {}", target.name(), args.join(", "), kwargs.join(", "))
}

/// The tile that fails on its own, if all of them together do.
fn guilty(search: &mut Search<'_>, from: &Candidate, values: &Saved, tiles: Vec<Tile>) -> Option<Tile> {
    let (together, homes) = separate(from, values, &tiles);
    let (_, found) = search.probe(std::slice::from_ref(&together))?;
    let named = found.detail.value.as_deref().and_then(output_of).and_then(|output| homes.get(output));
    if let Some(tile) = named
        && search.follow() == Follow::Floats
        && tiles.len() > 1
        && search.probe(&[separate(from, values, &tiles[*tile..=*tile]).0]).is_some()
    {
        return Some(tiles[*tile].clone());
    }
    let mut tiles = tiles;
    while tiles.len() > 1 {
        let half = tiles.len().div_ceil(2);
        let halves: Vec<Vec<Tile>> = tiles.chunks(half).map(<[Tile]>::to_vec).collect();
        let proposals: Vec<Candidate> = halves.iter().map(|half| separate(from, values, half).0).collect();
        // Both halves are asked about at once where there are jobs for it; the first that fails is followed.
        let (found, _) = search.probe(&proposals)?;
        tiles.clone_from(&halves[found]);
    }
    tiles.pop()
}

/// The output that the detail of a signature names, as in `outputs[3]`.
fn output_of(place: &str) -> Option<usize> {
    place.strip_prefix("outputs[")?.split(']').next()?.parse().ok()
}

/// The graph of tiles that are connected inside and fed from eager values outside, and the tile of each output.
fn separate(from: &Candidate, values: &Saved, tiles: &[Tile]) -> (Candidate, Vec<usize>) {
    let mut home: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (index, tile) in tiles.iter().enumerate() {
        home.extend(tile.iter().map(|id| (*id, index)));
    }
    // What is not a tensor stays connected: lists have no form as inputs. The call that makes it joins the part that uses
    // it, so that its operands are fed too; without that, all of its ancestors would come along.
    let nodes: Vec<(NodeId, &Node)> = from.graph.nodes().collect();
    for (id, node) in nodes.iter().rev() {
        let Some(tile) = home.get(id).copied() else { continue };
        node.each_input(&mut |used| {
            if matches!(from.graph.node(used).kind, Kind::Call(_)) && !values.has(used) {
                home.entry(used).or_insert(tile);
            }
        });
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
            if !matches!(from.graph.node(used).kind, Kind::GetAttr(_))
                && let Some(tensor) = values.tensor(used)
            {
                parts.cut.insert((id, used), tensor);
            }
        });
    }
    let mut homes = Vec::new();
    for (index, tile) in tiles.iter().enumerate() {
        for id in tile {
            if values.has(*id) && !used_inside.contains(id) {
                parts.outputs.push(*id);
                homes.push(index);
            }
        }
    }
    (parts.build(from), homes)
}
