//! What `pyrite-debug` does, seen from outside: one program, as each costs a link.

mod devices;
mod double;
mod faults;
mod freedom;
mod signals;
mod tipping;
mod verdicts;
mod wrapper;
