//! What `pyrite-codegen` does, seen from outside: one program, as each costs a link.

mod functions;
mod generator;
mod harness;
mod machine;
mod ptx;
mod random;
mod tiles;
mod transposed;
