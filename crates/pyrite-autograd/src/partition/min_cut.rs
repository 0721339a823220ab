//! The partition that saves the fewest bytes.
//!
//! **The problem as a flow.** Every value that does not depend on a tangent is an edge, from the value as it is computed
//! to the value as it is used, with its bytes as the capacity: cutting the edge means saving the value. A value flows
//! unhindered into what is computed from it, from the source into the primals and into every value that must not be
//! computed twice, and from every value that the backward half reads into the sink. A cut between source and sink
//! then says for each value that the backward half needs that it, or enough of what it is computed from, is saved;
//! the minimum cut saves the fewest bytes. Among cuts of equal size the one nearest to the sink is taken: it
//! recomputes least.
//!
//! **What must not be computed twice.** Operators whose work is more than reading and writing memory once
//! ([`is_costly`]), and operators that draw random numbers: a second draw would be another mask. With a memory budget
//! below 1, costly values are released from this rule, those first that free most bytes for their work, and as few as
//! the budget allows. Releasing more never saves more, so the number is found by halving: a program of `n` values takes
//! `log n` cuts.
//!
//! **What is not saved.** PyTorch's derivative rules read inputs at the time of the backward pass, where a tensor that
//! was given other data (`x.data = other`) shows the new data. A value that only the backward half computes from such an
//! input, say the mask of `maximum`, is therefore computed there, and the input itself is saved, as by PyTorch.

use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use pyrite_ir::{Kind, Node, NodeId, Tag, Target, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Partition, Roles, bytes_of, has_effect, split};
use crate::{Joint, Read};

/// How the min-cut partitioner trades memory for work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinCut {
    /// How many bytes may be saved, as a part of what is saved without recomputing anything costly: at 1, nothing
    /// costly is recomputed; at 0, everything that can be.
    pub memory_budget: f64,
}

impl Default for MinCut {
    fn default() -> Self {
        Self { memory_budget: 1.0 }
    }
}

/// More than any graph saves.
const UNBOUNDED: u64 = 1 << 52;

/// Saves as few bytes as the options allow.
pub fn min_cut_partition(joint: &Joint, options: MinCut) -> Partition {
    let roles = Roles::of(joint);
    let problem = Problem::of(joint, &roles);
    let (mut saved, bytes) = problem.solve(&FxHashSet::default());
    let allowed = (options.memory_budget.clamp(0.0, 1.0) * bytes as f64) as u64;
    if bytes > allowed {
        let costly = problem.costly();
        let release = |count: usize| problem.solve(&costly[..count].iter().copied().collect());
        let least;
        (saved, least) = release(costly.len());
        // Fewer than `low` are too few; `high` are enough, or all there are.
        let (mut low, mut high) = (if least > allowed { costly.len() } else { 1 }, costly.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let (cut, bytes) = release(middle);
            if bytes <= allowed {
                (saved, high) = (cut, middle);
            } else {
                low = middle + 1;
            }
        }
    }
    split(joint, &roles, saved)
}

struct Problem<'a> {
    joint: &'a Joint,
    /// Values that the cut can choose: needed by the backward half and independent of tangents.
    candidates: Vec<NodeId>,
    /// The candidates that the backward half reads.
    read: FxHashSet<NodeId>,
    /// The candidates that derivative rules compute from inputs as they are at the time of the backward pass.
    late: FxHashSet<NodeId>,
}

impl<'a> Problem<'a> {
    fn of(joint: &'a Joint, roles: &Roles) -> Self {
        let graph = &joint.graph;
        let mut read = FxHashSet::default();
        for (id, node) in graph.nodes() {
            if roles.needed_backward[id.0 as usize] && roles.tangent[id.0 as usize] {
                node.each_input(&mut |input| {
                    if !roles.tangent[input.0 as usize] {
                        read.insert(input);
                    }
                });
            }
        }
        read.extend(roles.gradients.iter().filter(|id| !roles.tangent[id.0 as usize]));
        let mut needed = vec![false; graph.id_bound()];
        read.iter().for_each(|id| super::mark(graph, *id, &mut needed));
        let candidates: Vec<NodeId> = graph.nodes().map(|(id, _)| id).filter(|id| needed[id.0 as usize]).collect();
        let primals = graph.placeholders().take(joint.primals).zip(&joint.reads);
        let reread: FxHashSet<NodeId> =
            primals.filter(|(_, read)| **read != Read::Storage).map(|((id, _), _)| id).collect();
        let mut late = FxHashSet::default();
        for id in &candidates {
            let node = graph.node(*id);
            if roles.forward[id.0 as usize] || node.kind == Kind::Placeholder || is_pinned(node) || has_effect(node) {
                continue;
            }
            let mut is_late = false;
            node.each_input(&mut |input| is_late |= reread.contains(&input) || late.contains(&input));
            if is_late {
                late.insert(*id);
            }
        }
        Self { joint, candidates, read, late }
    }

    fn node(&self, id: NodeId) -> &Node {
        self.joint.graph.node(id)
    }

    /// The values of the minimum cut, in order, and their bytes.
    fn solve(&self, released: &FxHashSet<NodeId>) -> (Vec<NodeId>, u64) {
        let mut flow: DiGraph<(), u64> =
            DiGraph::with_capacity(2 * self.candidates.len() + 2, 4 * self.candidates.len());
        let (source, sink) = (flow.add_node(()), flow.add_node(()));
        let mut ends: FxHashMap<NodeId, (NodeIndex, NodeIndex)> = FxHashMap::default();
        for id in &self.candidates {
            let (made, used) = (flow.add_node(()), flow.add_node(()));
            ends.insert(*id, (made, used));
            let node = self.node(*id);
            flow.add_edge(made, used, if self.late.contains(id) { UNBOUNDED } else { capacity(node) });
            let constant = matches!(node.kind, Kind::GetAttr(_));
            if constant {
                continue;
            }
            if node.kind == Kind::Placeholder || (is_pinned(node) && !released.contains(id)) || has_effect(node) {
                flow.add_edge(source, made, UNBOUNDED);
            }
            if self.read.contains(id) {
                flow.add_edge(used, sink, UNBOUNDED);
            }
        }
        for id in &self.candidates {
            let (made, _) = ends[id];
            self.node(*id).each_input(&mut |input| {
                if let Some((_, used)) = ends.get(&input) {
                    flow.add_edge(*used, made, UNBOUNDED);
                }
            });
        }
        let (_, flows) = dinics(&flow, source, sink);
        // What still reaches the sink in the residual graph is computed by the backward half.
        let mut reaches = vec![false; flow.node_count()];
        let mut stack = vec![sink];
        reaches[sink.index()] = true;
        while let Some(node) = stack.pop() {
            for edge in flow.edges_directed(node, petgraph::Direction::Incoming) {
                if flows[edge.id().index()] < *edge.weight() && !reaches[edge.source().index()] {
                    reaches[edge.source().index()] = true;
                    stack.push(edge.source());
                }
            }
            for edge in flow.edges(node) {
                if flows[edge.id().index()] > 0 && !reaches[edge.target().index()] {
                    reaches[edge.target().index()] = true;
                    stack.push(edge.target());
                }
            }
        }
        let saved: Vec<NodeId> = self
            .candidates
            .iter()
            .copied()
            .filter(|id| !reaches[ends[id].0.index()] && reaches[ends[id].1.index()])
            .collect();
        let bytes = saved.iter().map(|id| bytes_of(self.node(*id).meta.as_ref())).sum();
        (saved, bytes)
    }

    /// The calls that may be released, those first that free most bytes for the work of computing them again.
    fn costly(&self) -> Vec<NodeId> {
        let releasable = |id: &NodeId| is_pinned(self.node(*id)) && !draws(self.node(*id));
        let mut ranked: Vec<(f64, NodeId)> = self
            .candidates
            .iter()
            .filter(|id| releasable(id))
            .map(|id| (bytes_of(self.node(*id).meta.as_ref()) as f64 / self.work(self.node(*id)), *id))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.into_iter().map(|(_, id)| id).collect()
    }

    /// Bytes read and written, and for matmuls the bytes of an operand again for each column of the result.
    fn work(&self, node: &Node) -> f64 {
        let mut bytes = bytes_of(node.meta.as_ref()) as f64;
        let mut depth = 1.0f64;
        node.each_input(&mut |input| {
            let meta = self.node(input).meta.as_ref();
            bytes += bytes_of(meta) as f64;
            if let Some(Value::Tensor(meta)) = meta {
                let last = meta.shape.last().and_then(pyrite_sym::SymInt::hint).unwrap_or(1);
                depth = depth.max(last as f64);
            }
        });
        if is_product(node) { bytes * depth } else { bytes }.max(1.0)
    }
}

/// What saving a value costs.
fn capacity(node: &Node) -> u64 {
    match &node.meta {
        // A list is saved by its items.
        Some(Value::List(_)) => UNBOUNDED,
        Some(Value::Tensor(_)) => bytes_of(node.meta.as_ref()).max(1),
        // Numbers travel beside the tensors.
        _ => 1,
    }
}

/// Whether a value is not to be computed again unless the budget asks for it.
fn is_pinned(node: &Node) -> bool {
    match &node.kind {
        Kind::Call(Target::Op(op)) => is_costly(op.name()) || op.has(Tag::Random) || op.has(Tag::DataDependentShape),
        Kind::Call(Target::Opaque(_)) => true,
        _ => false,
    }
}

fn draws(node: &Node) -> bool {
    matches!(&node.kind, Kind::Call(Target::Op(op)) if op.has(Tag::Random) || op.has(Tag::DataDependentShape))
        || matches!(&node.kind, Kind::Call(Target::Opaque(_)))
}

fn is_product(node: &Node) -> bool {
    matches!(&node.kind, Kind::Call(Target::Op(op)) if MATMULS.contains(&stem(op.name())))
}

/// Matmuls, convolutions, attention.
const MATMULS: &[&str] = &[
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "addbmm",
    "addmv",
    "addr",
    "mv",
    "dot",
    "vdot",
    "linear",
    "matmul",
    "convolution",
    "convolution_backward",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_attention_math",
    "scaled_dot_product_attention",
    "_trilinear",
    "_cdist_forward",
    "_euclidean_dist",
];

/// Other operators that do more work than reading and writing memory once.
const SLOW: &[&str] = &[
    "sort",
    "topk",
    "kthvalue",
    "median",
    "mode",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "logcumsumexp",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "index_put",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "unique",
    "_unique2",
    "embedding_dense_backward",
];

/// Whether an operator does more work than reading its arguments and writing its result once.
pub fn is_costly(name: &str) -> bool {
    let stem = stem(name);
    MATMULS.contains(&stem) || SLOW.contains(&stem) || stem.contains("linalg") || stem.starts_with("_fft")
}

fn stem(name: &str) -> &str {
    name.split('.').nth(1).unwrap_or(name)
}
