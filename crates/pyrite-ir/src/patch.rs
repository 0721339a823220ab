//! Changes to a graph, as values.
//!
//! A [`Patch`] is a labelled list of edits. [`Graph::apply`] checks all of them first and then makes them, so a patch
//! is applied as a whole or not at all. Passes return patches; whoever applies them can number them, log them, or
//! leave one out.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{Graph, Kind, Node, NodeId, Value};

/// One edit.
#[derive(Clone, Debug)]
enum Edit {
    Insert { before: NodeId, id: NodeId, node: Box<Node> },
    ReplaceUses { of: NodeId, with: Value<NodeId> },
    SetArgs { id: NodeId, args: Vec<Value<NodeId>> },
    Remove { id: NodeId },
}

/// Labelled edits; see the module's text.
#[derive(Clone, Debug)]
pub struct Patch {
    /// What the patch does, for logs and bisection.
    pub label: String,
    edits: Vec<Edit>,
    next: u32,
}

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// An edit names a node that is not there.
    #[error("patch `{label}` names node {id}, which the graph does not have")]
    NoSuchNode {
        /// The patch.
        label: String,
        /// The node's number.
        id: u32,
    },
    /// A removed node is still used.
    #[error("patch `{label}` removes `{node}`, which `{user}` uses")]
    StillUsed {
        /// The patch.
        label: String,
        /// The removed node.
        node: String,
        /// Who uses it.
        user: String,
    },
    /// A node would use a value that is computed later.
    #[error("patch `{label}` makes `{user}` use `{node}`, which comes later")]
    TooLate {
        /// The patch.
        label: String,
        /// The value.
        node: String,
        /// Who uses it.
        user: String,
    },
    /// Another patch was applied after this one was made.
    #[error("patch `{label}` was made for another state of the graph")]
    Stale {
        /// The patch.
        label: String,
    },
}

impl Patch {
    /// An empty patch for a graph.
    pub fn new(graph: &Graph, label: impl Into<String>) -> Self {
        Self { label: label.into(), edits: Vec::new(), next: graph.id_bound() as u32 }
    }

    /// Adds a node before another; returns the number it will have.
    pub fn insert_before(&mut self, before: NodeId, node: Node) -> NodeId {
        let id = NodeId(self.next);
        self.next += 1;
        self.edits.push(Edit::Insert { before, id, node: Box::new(node) });
        id
    }

    /// Lets every user of a node use a value instead. Nodes inserted by this patch keep what they were given.
    pub fn replace_uses(&mut self, of: NodeId, with: impl Into<Value<NodeId>>) {
        self.edits.push(Edit::ReplaceUses { of, with: with.into() });
    }

    /// Gives a node other arguments.
    pub fn set_args(&mut self, id: NodeId, args: Vec<Value<NodeId>>) {
        self.edits.push(Edit::SetArgs { id, args });
    }

    /// Removes a node that nobody uses any more.
    pub fn remove(&mut self, id: NodeId) {
        self.edits.push(Edit::Remove { id });
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }
}

impl Graph {
    /// Applies a patch, all of it or, on an error, nothing.
    pub fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        let mut changed = self.clone();
        changed.edit(patch)?;
        changed.check_order(patch)?;
        *self = changed;
        Ok(())
    }

    fn edit(&mut self, patch: &Patch) -> Result<(), PatchError> {
        let label = || patch.label.clone();
        let inserted: HashSet<NodeId> = patch
            .edits
            .iter()
            .filter_map(|edit| if let Edit::Insert { id, .. } = edit { Some(*id) } else { None })
            .collect();
        let first_new = self.nodes.len() as u32;
        if patch.next < first_new || patch.next - first_new != inserted.len() as u32 {
            return Err(PatchError::Stale { label: label() });
        }
        self.nodes.resize(patch.next as usize, None);
        let mut before: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        let mut replaced: HashMap<NodeId, &Value<NodeId>> = HashMap::new();
        let mut removed = HashSet::new();
        for edit in &patch.edits {
            match edit {
                Edit::Insert { before: at, id, node } => {
                    let mut node = (**node).clone();
                    node.name = self.free_name(&node.name);
                    self.nodes[id.0 as usize] = Some(node);
                    before.entry(*at).or_default().push(*id);
                }
                Edit::ReplaceUses { of, with } => {
                    replaced.insert(*of, with);
                }
                Edit::SetArgs { id, args } => match self.nodes.get_mut(id.0 as usize) {
                    Some(Some(node)) => node.args.clone_from(args),
                    _ => return Err(PatchError::NoSuchNode { label: label(), id: id.0 }),
                },
                Edit::Remove { id } => {
                    removed.insert(*id);
                }
            }
        }
        let known = |id: &NodeId| self.order.contains(id);
        if let Some(id) =
            before.keys().chain(replaced.keys()).chain(&removed).find(|id| !known(id) && !inserted.contains(id))
        {
            return Err(PatchError::NoSuchNode { label: label(), id: id.0 });
        }
        let mut order = Vec::with_capacity(self.order.len() + inserted.len());
        for id in &self.order {
            order.extend(before.remove(id).unwrap_or_default());
            order.push(*id);
        }
        order.retain(|id| !removed.contains(id));
        self.order = order;
        for id in &removed {
            self.nodes[id.0 as usize] = None;
        }
        for id in self.order.clone() {
            if let (false, Some(node)) = (inserted.contains(&id), &mut self.nodes[id.0 as usize]) {
                let mut follow = |id: &NodeId| -> Result<Value<NodeId>, std::convert::Infallible> {
                    Ok(replaced.get(id).map_or(Value::Tensor(*id), |with| (*with).clone()))
                };
                for value in node.args.iter_mut().chain(node.kwargs.iter_mut().map(|(_, v)| v)) {
                    let Ok(new) = value.try_map(&mut follow);
                    *value = new;
                }
            }
        }
        Ok(())
    }

    fn check_order(&self, patch: &Patch) -> Result<(), PatchError> {
        let mut seen = vec![false; self.nodes.len()];
        for (id, node) in self.nodes() {
            let mut problem = None;
            node.each_input(&mut |input| {
                if problem.is_none() && !seen.get(input.0 as usize).copied().unwrap_or(false) {
                    problem = Some(input);
                }
            });
            if let Some(input) = problem {
                let (label, user) = (patch.label.clone(), node.name.clone());
                return Err(match self.get(input) {
                    Some(late) => PatchError::TooLate { label, node: late.name.clone(), user },
                    None => PatchError::StillUsed { label, node: format!("node {}", input.0), user },
                });
            }
            seen[id.0 as usize] = true;
        }
        Ok(())
    }

    fn free_name(&self, wanted: &str) -> String {
        let taken: HashSet<&str> = self.nodes.iter().flatten().map(|n| n.name.as_str()).collect();
        if !taken.contains(wanted) {
            return wanted.to_owned();
        }
        (1..=taken.len())
            .map(|n| format!("{wanted}_{n}"))
            .find(|name| !taken.contains(name.as_str()))
            .unwrap_or_default()
    }

    /// A patch that removes every call and attribute whose value nobody uses and that writes to nothing.
    pub fn dead_code(&self) -> Patch {
        let mut patch = Patch::new(self, "dead-code");
        let mut counts = self.use_counts();
        let order: Vec<NodeId> = self.order.clone();
        for id in order.into_iter().rev() {
            let node = self.node(id);
            let effect = match &node.kind {
                Kind::Placeholder | Kind::Output | Kind::Call(crate::Target::Opaque(_)) => true,
                Kind::Call(crate::Target::Op(op)) => op.schema.is_mutable() || op.has(crate::Tag::Random),
                Kind::GetAttr(_) | Kind::Call(crate::Target::GetItem) => false,
            };
            if !effect && counts[id.0 as usize] == 0 {
                node.each_input(&mut |input| counts[input.0 as usize] -= 1);
                patch.remove(id);
            }
        }
        patch
    }
}
