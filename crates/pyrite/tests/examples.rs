//! The examples run, and what they assert holds.

#[path = "../examples/compile.rs"]
mod compile;

#[test]
fn a_network_is_built_compiled_and_compared() {
    compile::main().unwrap();
}
