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
pub use native::{compile_native, compiled, native, native_by, schedule_after};

use pyrite_interp::Mode;
use pyrite_passes::Table;

use crate::aot::{aot_autograd, partition_by_default};
use crate::backend::Backend;

/// All of them, in the order they are listed.
pub(crate) fn built_in() -> Vec<Backend> {
    let decomposed = || aot_autograd(interpreted(None)).decompositions(Table::Core);
    let mut all = vec![
        Backend::new("eager", "runs every operator as it comes, by its reference kernel", |graph, options| {
            eager::compile(&graph, options, options.mode)
        }),
        Backend::new(
            "eager_noexcept",
            "as eager; an error while running is reported as a bug of capture",
            |graph, options| eager::compile_noexcept(&graph, options),
        ),
        Backend::new(
            "eager_debug",
            "as eager; checks that operators write and share only what they declare",
            |graph, options| eager::compile(&graph, options, Mode::SchemaCheck),
        ),
        Backend::new(
            "pre_dispatch_eager",
            "traces the graph again, composite operators kept, and runs the trace",
            |graph, options| eager::compile_retraced(&graph, options),
        ),
        aot_autograd(interpreted(None))
            .backend("aot_eager", "differentiates ahead of time, splits by min-cut, and interprets both halves"),
        aot_autograd(interpreted(None))
            .partition_fn(partition_by_default())
            .backend("aot_eager_default_partitioner", "as aot_eager, saving whatever the backward half reads"),
        decomposed().backend("aot_eager_decomp_partition", "as aot_eager, on core operators: the rest is decomposed"),
        aot_autograd(interpreted::with_call_mode()).decompositions(Table::Core).backend(
            "aot_eager_decomp_partition_with_mode",
            "as aot_eager_decomp_partition, a mode being told every call",
        ),
        aot_autograd(interpreted(Some(Mode::CrossReference))).decompositions(Table::Core).backend(
            "aot_eager_decomp_partition_crossref",
            "as aot_eager_decomp_partition, inference checked at every call",
        ),
        aot_autograd(nested::compiler())
            .backend("invoke_subgraph", "as aot_eager, each half one nested-graph call in an outer graph"),
        Backend::new("ts", "writes the graph as text, reads it again and runs that", |graph, options| {
            serialized::compile(&graph, options)
        }),
        aot_autograd(serialized::compiler())
            .backend("aot_ts", "as aot_eager, both halves written as text and read again"),
        aot_autograd(native())
            .decompositions(Table::Loops)
            .backend("native", "differentiates ahead of time and compiles both halves to machine code"),
        aot_autograd(crate::gpu::cuda()).decompositions(Table::Loops).backend(
            "cuda",
            "differentiates ahead of time and compiles both halves for the first GPU, where all is loops",
        ),
    ];
    all.extend(testing::backends());
    all.push(planted::backend());
    all
}
