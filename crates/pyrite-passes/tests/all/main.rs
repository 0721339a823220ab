//! What `pyrite-passes` does, seen from outside: one program, as each costs a link.

mod decompositions;
mod memory;
mod partition;
