//! What `pyrite-compiler` does, seen from outside: one program, as each costs a link.

mod cache;
mod contract;
