//! What `pyrite-ops` does, seen from outside: one program, as each costs a link.

mod higher_order;
mod samples;
