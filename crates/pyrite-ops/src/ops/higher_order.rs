//! Operators that take nested graphs. The interpreter runs them, inference follows them: both hold the graph that
//! owns the nested ones, which a record here does not.

use pyrite_ir::{Eval, Infer, OpDef};

/// The table.
pub const OPS: &[OpDef] = &[
    nested(
        "higher_order::cond(Any pred, Graph true_graph, Graph false_graph, Any[] operands) -> Any",
        "Runs one of two nested graphs on the operands, as a bool says.",
    ),
    nested(
        "higher_order::invoke_subgraph(Graph subgraph, str? identifier, Any[] operands) -> Any",
        "Runs a nested graph on the operands.",
    ),
];

const fn nested(schema: &'static str, doc: &'static str) -> OpDef {
    OpDef { infer: Infer::HigherOrder, eval: Eval::HigherOrder, ..OpDef::written(schema, doc, "") }
}
