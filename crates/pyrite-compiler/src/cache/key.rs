//! What decides what a graph is compiled to.

use std::fmt::{self, Write as _};

use pyrite_codegen::Generator;
use pyrite_codegen::store::{Summed, VERSION};
use pyrite_ir::{Graph, Kind, Meta, StorageId, Value};

use crate::backend::Options;

/// The two keys of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphKey {
    /// What decides the whole plan; `None` of a graph with symbolic sizes.
    pub plan: Option<[u8; 32]>,
    /// What decides the code of its kernels, which does not know the user's places.
    pub code: [u8; 32],
}

impl GraphKey {
    /// The keys of a functional graph.
    pub fn of(graph: &Graph, options: &Options, generator: Generator) -> Self {
        let (mut code, mut places) = (Text::default(), Summed::default());
        // Writing to a sum cannot fail.
        let _ = code.graph(graph, options, generator);
        for (_, node) in graph.nodes() {
            let _ = write!(places, "{:?} {:?} {:?};", node.stack, node.original, node.span);
        }
        let (symbolic, sum) = (code.symbolic, code.sum.finish());
        let _ = write!(places, "{sum:?}");
        Self { plan: (!symbolic).then(|| places.finish()), code: sum }
    }
}

/// A text that is summed up.
#[derive(Default)]
struct Text {
    sum: Summed,
    symbolic: bool,
    storages: Vec<StorageId>,
}

impl Text {
    fn graph(&mut self, graph: &Graph, options: &Options, generator: Generator) -> fmt::Result {
        writeln!(self.sum, "{VERSION} {} {:?} {:?}", generator.name(), options.rewrites, options.refused)?;
        for (id, node) in graph.nodes() {
            write!(self.sum, "{} {} ", id.0, node.name)?;
            match &node.kind {
                Kind::Placeholder => match &node.meta {
                    Some(Value::Tensor(meta)) => self.meta(meta)?,
                    other => {
                        self.symbolic |= matches!(other, Some(Value::Int(size)) if size.as_int().is_none());
                        write!(self.sum, "{other:?}")?;
                    }
                },
                Kind::GetAttr(name) => {
                    write!(self.sum, "{name} ")?;
                    if let Some(tensor) = graph.constants().get(name) {
                        self.meta(&Meta::of(tensor))?;
                    }
                }
                Kind::Call(target) => write!(self.sum, "{}", target.name())?,
                Kind::Output => self.sum.write_str("output")?,
            }
            writeln!(self.sum, " {:?} {:?}", node.args, node.kwargs)?;
        }
        Ok(())
    }

    /// A tensor, and which of those before share its storage.
    fn meta(&mut self, meta: &Meta) -> fmt::Result {
        let known = self.storages.iter().position(|storage| *storage == meta.storage);
        let storage = known.unwrap_or_else(|| {
            self.storages.push(meta.storage);
            self.storages.len() - 1
        });
        let sizes = || meta.shape.iter().chain(&meta.stride).chain([&meta.offset]);
        self.symbolic |= sizes().any(|size| size.as_int().is_none());
        let Meta { shape, stride, offset, dtype, number, .. } = meta;
        write!(self.sum, "{dtype:?} {shape:?} {stride:?} {offset} {number} in {storage}")
    }
}
