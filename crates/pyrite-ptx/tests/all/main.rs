//! What `pyrite-ptx` does, seen from outside: one program, as each costs a link.

mod attention;
mod gemm;
mod interp;
