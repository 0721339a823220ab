//! A run as one HTML file.
//!
//! [`open`] reads what a run left behind, as a [`Run`]: a trace (`trace.jsonl`, see `pyrite-trace`), a folder of such
//! traces, of which it takes the last, or the folder of a debugging session without a trace. [`html`] makes a page of one
//! run, or of two that are compared.
//!
//! Invariants:
//! - the page is one file, loads nothing and works without a network; its policy forbids it to;
//! - text of the run reaches the page as data, never as markup: a hostile name stays a name;
//! - the same run gives the same page.
//!
//! The page is drawn by plain scripts in `assets/`, one file for each part; `assets/layout.js` explains how graphs are laid
//! out.

mod error;
mod folder;
mod from_trace;
mod modules;
mod page;
mod session;
mod view;

pub use error::ReportError;
pub use folder::open;
pub use page::html;
pub use view::{Divergence, File, GraphView, NodeView, Repro, RunView, SourceLine, SourceView, StepView};
