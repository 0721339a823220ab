//! What `pyrite-cli` does, seen from outside: one program, as each costs a link.

mod code_cache;
mod command_line;
mod compare;
mod compile;
mod contract;
mod faults;
mod install;
mod interrupted;
mod leaving;
mod minify;
mod reference;
mod report;
mod scenarios;
mod strangers;
mod trace;
