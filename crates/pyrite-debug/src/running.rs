//! Which node is running, for the last words of a process that dies.
//!
//! A backend tells of a node when it is done; what runs is the next one, in the order of the graphs that the backend made.

use std::sync::Arc;

use pyrite_ir::{Graph, Kind, Node};

use crate::signals::{self, Trail};

/// Which node is running: the one after the last that is done.
pub(crate) struct Running {
    backend: Arc<str>,
    /// Graph, node and operator, in the order they run.
    order: Vec<(String, String, String)>,
    next: usize,
    /// A file that is told too.
    pub(crate) trail: Option<Trail>,
}

impl Running {
    /// Before anything ran. A backend that shows no graphs runs the captured one.
    pub(crate) fn new(backend: &Arc<str>, graph: &Graph, graphs: &[(String, Graph)]) -> Self {
        let captured = [("graph".to_owned(), graph.clone())];
        let graphs = if graphs.is_empty() { &captured[..] } else { graphs };
        let nodes = |(name, graph): &(String, Graph)| {
            let row = |node: &Node| match &node.kind {
                Kind::Call(target) => (name.clone(), node.name.clone(), target.name().to_owned()),
                _ => (name.clone(), node.name.clone(), String::new()),
            };
            graph.nodes().map(|(_, node)| row(node)).collect::<Vec<_>>()
        };
        Self { backend: backend.clone(), order: graphs.iter().flat_map(nodes).collect(), next: 0, trail: None }
    }

    /// A node is done.
    pub(crate) fn done(&mut self, node: &Node) {
        if let Some(step) = self.order[self.next..].iter().position(|(_, name, _)| *name == node.name) {
            self.next += step + 1;
            self.say();
        }
    }

    /// Says which node is next.
    pub(crate) fn say(&self) {
        let words = match self.order[self.next.min(self.order.len())..].iter().find(|(_, _, op)| !op.is_empty()) {
            Some((graph, node, op)) => format!("node `{node}` ({op}) of graph `{graph}` with {}", self.backend),
            None => format!("a graph with {}", self.backend),
        };
        signals::running(&words);
        if let Some(trail) = &self.trail {
            trail.running(&words);
        }
    }
}
