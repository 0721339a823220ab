//! What `pyrite-tensor` does, seen from outside: one program, as each costs a link.

mod formats;
mod torch_generator;
