//! What `pyrite-compare` does, seen from outside: one program, as each costs a link.

mod contract;
mod numbers;
mod properties;
