//! The pass `fuse-prologue`: whatever fills the left operand of a bmm hands it over row by row.
//!
//! That is a kernel, or a fused bmm whose last link fills it. The links of the bmm that takes it, its epilogues, stay with
//! it as far as they still go through the same rows; what does not is a statement of its own again.

use super::State;
use super::fuse_epilogue::fused;
use crate::bmm::{Bmm, FusedBmm, Link};
use crate::decisions::Decisions;
use crate::schedule::{Buffer, Op, Schedule, Statement};

/// Fuses what fills the left operand of a bmm and comes right before it; each is a decision.
pub fn fuse_prologues(program: &mut Schedule, state: &mut State<'_, '_>) {
    let mut done: Vec<Statement> = Vec::with_capacity(program.statements.len());
    let Schedule { statements, buffers, .. } = program;
    for statement in std::mem::take(statements) {
        match statement.op {
            Op::Bmm(bmm) => place(*bmm, &mut done, buffers, state.decisions),
            // A fused bmm that has grown may take one more epilogue.
            op => {
                let last = done.last_mut().filter(|last| matches!(last.op, Op::Bmm(_)));
                let left = fused(last, op.into(), buffers, state.decisions);
                done.extend(left);
            }
        }
    }
    *statements = done;
}

/// Puts a fused bmm behind the statements so far, fused with the last of them where it can be.
fn place(fused: FusedBmm, done: &mut Vec<Statement>, buffers: &[Buffer], decisions: &mut Decisions<'_>) {
    let mut links = fused.links.into_iter();
    let Some(Link::Bmm(first)) = links.next() else { return };
    let name = first.node.name.clone();
    let mut target = match done.pop().map(|statement| statement.op) {
        Some(Op::Bmm(mut before))
            if before.feeds(&first) && decisions.allow(&format!("fuse-prologue {} of {name}", before.last_name())) =>
        {
            before.push_bmm(first);
            *before
        }
        Some(Op::Loop(kernel)) => {
            let mut alone = FusedBmm::from(*first);
            match alone.rows_of_prologue(&kernel) {
                Some(rows) if decisions.allow(&format!("fuse-prologue {} of {name}", kernel.name)) => {
                    alone.insert_prologue(kernel, rows, buffers);
                }
                _ => done.push(Op::Loop(kernel).into()),
            }
            alone
        }
        other => {
            done.extend(other.map(Statement::from));
            FusedBmm::from(*first)
        }
    };
    let mut left = Vec::new();
    for link in links {
        match link {
            Link::Kernel(kernel, _) if left.is_empty() => match target.rows_of_epilogue(&kernel) {
                Some(rows) => target.push_epilogue(kernel, rows, buffers),
                None => left.push(Op::Loop(kernel)),
            },
            Link::Kernel(kernel, _) => left.push(Op::Loop(kernel)),
            Link::Bmm(bmm) => left.push(Op::Bmm(Box::new(Bmm::clone(&bmm).into()))),
        }
    }
    done.push(Op::Bmm(Box::new(target)).into());
    done.extend(left.into_iter().map(Statement::from));
}
