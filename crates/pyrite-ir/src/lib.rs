//! The graph IR.
//!
//! One [`Graph`] of [`Node`]s in FX's shape serves every stage; what differs between stages is the set of operators.
//! An operator is described by one record, [`OpDef`], found in a [`Registry`] by its name. This crate defines the
//! types, the checks ([`verify`]), the only way to change a graph ([`Patch`]), inference over metadata ([`infer`]) and
//! the text form ([`print`]). The operators themselves are in `pyrite-ops`, the reader of the text in
//! `pyrite-reader`.

pub mod args;
pub mod contract;
pub mod dump;
pub mod emit;
pub mod error;
mod fit;
pub mod graph;
pub mod infer;
pub mod inputs;
pub mod lower;
pub mod meta;
pub mod op;
pub mod overlap;
pub mod patch;
pub mod print;
pub mod pullback;
pub mod schema;
mod storages;
pub mod switch;
pub mod trace;
pub mod value;
pub mod verify;

pub use args::{Args, FromNumber};
pub use contract::{Contract, Given, Symbols, any_true};
pub use emit::{Emit, Handle};
pub use error::{NodeError, OpError};
pub use graph::{Builder, Graph, Kind, Node, NodeId, Target};
pub use inputs::InputSpec;
pub use lower::{Lowering, Place};
pub use meta::{Device, Meta, StorageId, SymDims};
pub use op::{
    Call, Decompose, Eval, ExternKind, Freedom, Infer, Lower, OpDef, OpRef, Operator, Registry, Tag, Tolerance, Vjp,
};
pub use overlap::Overlap;
pub use patch::Patch;
pub use pullback::{Gradients, Pullback};
pub use schema::{Schema, Type};
pub use storages::{NotFound, StorageSearch};
pub use switch::Switch;
pub use trace::{Origin, Tracer};
pub use value::Value;
