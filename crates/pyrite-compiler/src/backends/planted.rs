//! The native compiler with a bug in it, for testing what looks for bugs in compilers, and for `pyrite demo`.
//!
//! The bug is of a kind that compilers have: each kernel is right, and one of the fusions is not. Where a fused kernel
//! computes an error function, the number 0.5 in it becomes 0.5625, so that a gelu is an eighth too large. Without the
//! guilty fusion the program is right.

use std::sync::Arc;

use pyrite_codegen::decisions::Decisions;
use pyrite_codegen::{Generator, Program};
use pyrite_interp::Mode;
use pyrite_loops::{Block, Inst, Kernel, Number, Phase, Unary};
use pyrite_ops::registry;
use pyrite_passes::Table;

use super::compiled;
use crate::aot::{GraphCompiler, aot_autograd};
use crate::backend::Backend;

pub(super) fn backend() -> Backend {
    let compiler: GraphCompiler = Arc::new(|graph, options| {
        if options.mode != Mode::Eager {
            return super::interpreted(None)(graph, options);
        }
        let mut gate = options.gate().logged();
        let mut spoil = |decision: &str, kernel: &mut Kernel| {
            if decision.starts_with("fuse ") {
                with_wrong_halves(kernel);
            }
        };
        let decisions = &mut Decisions::spoiled(&mut gate, &mut spoil);
        let program = Program::compile_by(&graph, registry(), Generator::chosen(), decisions)?;
        Ok(compiled(program, gate.into_log()))
    });
    let help = "for tests: as native, with a wrong fusion around error functions";
    aot_autograd(compiler).decompositions(Table::Loops).backend("native_fusion_error_TESTING_ONLY", help)
}

fn with_wrong_halves(kernel: &mut Kernel) {
    let bends = |phase: &Phase| phase.code.insts().iter().any(|inst| matches!(inst, Inst::Unary(Unary::Erf, _)));
    if !kernel.phases.iter().any(bends) {
        return;
    }
    for phase in &mut kernel.phases {
        let mut code = Block::default();
        let mut alike = true;
        for (value, inst) in phase.code.iter() {
            let changed = match *inst {
                Inst::Const(Number::Float(0.5), ty) => Inst::Const(Number::Float(0.5625), ty),
                inst => inst,
            };
            // Values are named by their places, so code in which two instructions became one is not taken.
            alike &= code.push(changed, phase.code.ty(value)) == value;
        }
        if alike {
            phase.code = code;
        }
    }
}
