//! The pass `reorder-bmm`: brings together what a fused bmm can be made of.
//!
//! Between the kernel that fills the left operand of a bmm and the bmm there may be statements that need neither: copies
//! of the right operand, above all. They run before, so that the bmm comes right behind its kernel.

use pyrite_loops::BufferId;
use rustc_hash::FxHashSet;

use super::State;
use crate::schedule::{Op, Schedule, Statement};

/// Puts bmms right behind the kernels that fill their left operands, where what lies between can run before.
pub fn reorder(program: &mut Schedule, _: &mut State<'_, '_>) {
    let statements = &mut program.statements[..];
    for at in 0..statements.len() {
        let Some(lhs) = left_of(&statements[at]) else { continue };
        let Some(filler) = statements[..at].iter().rposition(|earlier| earlier.op.writes().contains(&lhs)) else {
            continue;
        };
        if filler + 1 == at || !matches!(statements[filler].op, Op::Loop(_)) {
            continue;
        }
        // The bmm whose epilogue the kernel may be stays before it.
        let behind = filler > 0 && left_of(&statements[filler - 1]).is_some();
        let first = if behind { filler - 1 } else { filler };
        let filled: FxHashSet<BufferId> = statements[first..=filler].iter().flat_map(|s| s.op.writes()).collect();
        let between = &statements[filler + 1..at];
        let apart = between.iter().all(|s| can_move(s) && s.op.reads().iter().all(|b| !filled.contains(b)));
        if apart {
            statements[first..at].rotate_left(filler + 1 - first);
        }
    }
}

/// The buffer of the left operand of a bmm.
fn left_of(statement: &Statement) -> Option<BufferId> {
    match &statement.op {
        Op::Bmm(fused) => fused.single().map(|bmm| bmm.lhs.buffer),
        _ => None,
    }
}

/// Whether a statement only computes: a call may draw random numbers and keeps its place.
fn can_move(statement: &Statement) -> bool {
    matches!(statement.op, Op::Loop(_) | Op::Gemm(_))
}
