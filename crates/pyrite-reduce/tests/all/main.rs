//! What `pyrite-reduce` does, seen from outside: one program, as each costs a link.

mod flags;
mod flaky;
mod laws;
mod nested;
mod one_step;
mod passes;
mod scenarios;
mod sizes;
