//! Running what was written down and read again.

use std::sync::Arc;

use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_ops::registry;
use pyrite_passes::autocast;
use pyrite_reader::{ReadOptions, read_text};

use super::{eager, interpreted};
use crate::aot::GraphCompiler;
use crate::backend::{Executable, Options};

/// The graph of a text.
pub(super) fn read(text: &str) -> Result<Graph, OpError> {
    let read = read_text(text, None, registry(), &ReadOptions::default());
    Ok(read.map_err(|problems| OpError::fault(format!("the printed graph cannot be read: {problems}")))?.graph)
}

/// The graph that is read from what is printed of a graph, with the metadata of its inputs.
fn again(graph: &Graph) -> Result<Graph, OpError> {
    let mut read = read(&print(graph, &PrintOptions::default()))?;
    if read != *graph {
        return Err(OpError::fault("the printed graph is read as another one"));
    }
    let metas: Vec<Option<Value<pyrite_ir::Meta>>> = graph.placeholders().map(|(_, node)| node.meta.clone()).collect();
    let inputs: Vec<pyrite_ir::NodeId> = read.placeholders().map(|(id, _)| id).collect();
    for (id, meta) in inputs.into_iter().zip(metas) {
        if let Some(meta) = meta {
            read.set_meta(id, meta);
        }
    }
    // Constants too large to be printed are made up when they are read; those of the graph are what counts.
    read.share_constants(graph);
    Ok(read)
}

/// As eager, on the graph that was read again.
pub(super) fn compile(graph: &Graph, options: &Options) -> Result<Box<dyn Executable>, NodeError> {
    let graph = autocast::lower(graph, registry())?;
    eager::compile(&again(&graph)?, options, options.mode)
}

/// Interprets the graph that was read again.
pub(super) fn compiler() -> GraphCompiler {
    let inner = interpreted(None);
    Arc::new(move |graph, options| inner(again(&graph)?, options))
}
