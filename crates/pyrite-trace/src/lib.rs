//! Seeing what Pyrite does: typed events, timings, the debug directory, and the table of logs.
//!
//! ```text
//! stages ──emit──▶ Record ─┬─▶ trace.jsonl ──rebuild──▶ files of the debug directory
//!                          ├─▶ the same files, as the run goes on
//!                          └─▶ logs (PYRITE_LOGS)
//! ```
//!
//! A stage tells what it does with [`emit`], [`log`] and [`step`]; while nobody listens each costs one relaxed load. A
//! listener is a trace ([`start`], [`stop`]) or the logs ([`set_logs`]). What can be told is a table ([`TOPICS`]), and what
//! was asked for a set of its rows ([`Topics`], [`LogLevels`]).
//!
//! # The debug directory
//!
//! ```text
//! pyrite_debug/run_<time>-pid_<pid>/
//!   trace.jsonl               every event, one JSON object a line
//!   timings.txt               every step with its time, as it ended
//!   compile_profile.json      the same for trace viewers of browsers
//!   graph_breaks.txt          breaks with the user's lines
//!   recompiles.txt            which guard failed
//!   <stage>/debug.log         what the stage did, a line each
//!   <stage>/<graph>/          its files: graph_readable.py, guards.txt, joint.py, output_code.txt, …
//! ```
//!
//! Stages are `capture`, `aot`, `native` and `debug`. Every file of text names the version that wrote it.
//!
//! # The lines of `trace.jsonl`
//!
//! Every line has `event`, `time` (seconds since the run began), `stage` and `graph` (or `null`), and the fields of its
//! kind, which [`Event`] defines and `docs/trace-format.md` lists. [`read`] gives the records, [`rebuild`] all other files.
//! Readers ignore fields that they do not know; fields are added, never given another meaning.

mod active;
mod directory;
pub mod event;
mod files;
mod select;
mod topic;
mod writer;

pub use active::{
    LogSink, Scope, Setup, current_graph, emit, flush, folder, graph, graph_name, is_on, later, limit, log, record,
    set_logs, stage, start, step, stop, wanted, within,
};
pub use directory::{Files, TRACE_FILE, TraceError, read, rebuild, run_folder};
pub use event::{Event, Level, Record, Stage};
pub use files::describe;
pub use select::{LogLevels, Topics};
pub use topic::{TOPICS, Topic, TopicKind, TopicRow, UnknownTopic};
