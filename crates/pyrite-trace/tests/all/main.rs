//! What `pyrite-trace` does, seen from outside: one program, as each costs a link.

mod format_page;
mod rebuild;
