//! What `pyrite-testing` does, seen from outside: one program, as each costs a link.

mod filetests;
mod native;
mod native_bisect;
mod native_bmm;
mod native_convolutions;
mod native_gemm;
mod native_gpu;
mod native_memory;
mod native_overhead;
mod native_ptx;
mod native_random;
mod native_schedule;
mod native_split_concat;
mod programs;
mod random_graphs;
