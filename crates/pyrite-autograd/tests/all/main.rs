//! What `pyrite-autograd` does, seen from outside: one program, as each costs a link.

mod derivatives;
mod partition;
mod symbolic;
