//! What `pyrite-reader` does, seen from outside: one program, as each costs a link.

mod bad_input;
mod common;
mod dumps;
mod fixtures;
mod forms;
mod properties;
