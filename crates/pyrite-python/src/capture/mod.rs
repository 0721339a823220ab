//! Capturing frames of CPython: the hook, the guards, the run of plans.
//!
//! [`hook`] stands where CPython evaluates frames. A frame of a function that is being compiled is captured by
//! `pyrite-capture` through the [`host`] ([`compile`]) and its plan kept at its code object ([`store`]); when the
//! [`guards`] of a kept plan hold, which [`guard_snapshot`] makes cheap to see, [`run`] carries it out instead of the frame.
//! The host consists of what it knows of libraries ([`library`]), the [`kinds`] of objects, containers and [`iterators`] of
//! Python's own, and the [`world`] that guards look at. [`functions`] makes the functions in which a frame goes on, [`sets`]
//! copies sets with the order of their members, [`records`] tells Python what happened, [`rules`] holds what the user said of code.
//!
//! Invariants: no frame is captured while one is being captured or a plan is run; a failure of ours leaves the frame to
//! Python and is noted; nothing here unwinds into C.

mod compile;
mod functions;
mod guard_snapshot;
mod guards;
mod hook;
mod host;
mod iterators;
mod kinds;
mod library;
mod names;
mod objects;
mod records;
mod rules;
mod run;
mod sets;
mod store;
mod tracing;
mod world;

pub use functions::reassembled;
pub use hook::{Compiler, captures, install, skip_code};
pub use names::{dtype_name, format_name};
pub use records::Captured;
pub use rules::{allow_function, allowed_function, drop_guards, skip_files};
pub use sets::{copy_set, set_layout};
pub use store::forget_captures;
