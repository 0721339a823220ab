//! Short forms of the records that families write again and again.

use pyrite_ir::op::{InferFn, KernelFn};
use pyrite_ir::{OpDef, Tag};

/// A pointwise operator of PyTorch's core set.
pub const fn core_pointwise(
    schema: &'static str,
    doc: &'static str,
    infer: InferFn,
    eval: KernelFn,
    samples: &'static [&'static str],
) -> OpDef {
    OpDef::kernel(schema, doc, infer, eval).tags(&[Tag::Core, Tag::Pointwise]).samples(samples)
}

/// A pointwise operator outside of the core set.
pub const fn plain_pointwise(
    schema: &'static str,
    doc: &'static str,
    infer: InferFn,
    eval: KernelFn,
    samples: &'static [&'static str],
) -> OpDef {
    OpDef::kernel(schema, doc, infer, eval).tags(&[Tag::Pointwise]).samples(samples)
}

/// The in-place variant of a pointwise operator.
pub const fn in_place(schema: &'static str, functional: &'static str, samples: &'static [&'static str]) -> OpDef {
    OpDef::written(schema, "Writes the result of its functional form to its first argument.", functional)
        .tags(&[Tag::Pointwise])
        .samples(samples)
}
