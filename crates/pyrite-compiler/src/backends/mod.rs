//! The built-in backends, under the names PyTorch's users know.

mod eager;
mod interpreted;
mod native;
mod nested;
mod planted;
mod serialized;
mod testing;

pub use eager::EagerCallable;
pub(crate) use eager::{copied, gradients};
pub use interpreted::interpreted;
pub use native::{compile_native, compiled, decisions, native, native_by, schedule_at};

use pyrite_interp::Mode;
use pyrite_passes::Table;

use crate::aot::{aot_autograd, partition_by_default};
use crate::backend::Backend;

/// All of them, in the order they are listed.
pub(crate) fn built_in() -> Vec<Backend> {
    let decomposed = || aot_autograd(interpreted(None)).decompositions(Table::Core);
    let mut all = vec![
        Backend::new("eager", "interprets the graph with the reference kernels", |graph, options| {
            eager::compile(&graph, options, options.mode)
        }),
        Backend::new(
            "eager_noexcept",
            "as eager; reports an error at run time as a bug in capture",
            |graph, options| eager::compile_noexcept(&graph, options),
        ),
        Backend::new(
            "eager_debug",
            "as eager; checks that operators write to and alias only what they declare",
            |graph, options| eager::compile(&graph, options, Mode::SchemaCheck),
        ),
        Backend::new(
            "pre_dispatch_eager",
            "retraces the graph, keeps composite operators, and interprets the result",
            |graph, options| eager::compile_retraced(&graph, options),
        ),
        aot_autograd(interpreted(None))
            .backend("aot_eager", "differentiates ahead of time, partitions by min-cut, and interprets both graphs"),
        aot_autograd(interpreted(None))
            .partition_fn(partition_by_default())
            .backend("aot_eager_default_partitioner", "as aot_eager, with the default partitioner, which saves every value that the backward graph reads"),
        decomposed().backend("aot_eager_decomp_partition", "as aot_eager, after decomposition to core operators"),
        aot_autograd(interpreted::with_call_mode()).decompositions(Table::Core).backend(
            "aot_eager_decomp_partition_with_mode",
            "as aot_eager_decomp_partition, with a dispatch mode that observes every call",
        ),
        aot_autograd(interpreted(Some(Mode::CrossReference))).decompositions(Table::Core).backend(
            "aot_eager_decomp_partition_crossref",
            "as aot_eager_decomp_partition, with a check of inferred metadata at every call",
        ),
        aot_autograd(nested::compiler())
            .backend("invoke_subgraph", "as aot_eager, with each graph nested in a call of an outer graph"),
        Backend::new("ts", "prints the graph, parses the text, and interprets the result", |graph, options| {
            serialized::compile(&graph, options)
        }),
        aot_autograd(serialized::compiler())
            .backend("aot_ts", "as aot_eager, with both graphs printed and parsed"),
        aot_autograd(native())
            .decompositions(Table::Loops)
            .backend("native", "differentiates ahead of time and compiles both graphs to machine code"),
        aot_autograd(crate::gpu::cuda()).decompositions(Table::Loops).backend(
            "cuda",
            "differentiates ahead of time and compiles both graphs for the first GPU; supports programs without extern calls",
        ),
    ];
    all.extend(testing::backends());
    all.push(planted::backend());
    all
}
