//! The pass `fuse-epilogue`: a kernel that reads the rows of a matmul runs on them as they are completed.
//!
//! It runs before `fuse-prologue`: a kernel that could be either stays with the matmul that makes what it reads.
//!
//! Whether a kernel can be an epilogue is decided by [`Gemm::rows_of`](crate::gemm::Gemm::rows_of) and
//! [`FusedBmm::rows_of_epilogue`](crate::bmm::FusedBmm::rows_of_epilogue).

use super::State;
use crate::decisions::Decisions;
use crate::gemm::Epilogue;
use crate::schedule::{Buffer, Op, Schedule, Statement};

/// Makes epilogues of the kernels that come right behind a matmul and can be; each is a decision.
pub fn fuse_epilogues(program: &mut Schedule, state: &mut State<'_, '_>) {
    let mut done: Vec<Statement> = Vec::with_capacity(program.statements.len());
    for statement in std::mem::take(&mut program.statements) {
        let left = fused(done.last_mut(), statement, &program.buffers, state.decisions);
        done.extend(left);
    }
    program.statements = done;
}

/// Makes a statement the epilogue of the one before, or gives it back.
pub fn fused(
    before: Option<&mut Statement>,
    statement: Statement,
    buffers: &[Buffer],
    decisions: &mut Decisions<'_>,
) -> Option<Statement> {
    let (Op::Loop(kernel), Some(before)) = (&statement.op, before) else { return Some(statement) };
    let (name, rows) = match &before.op {
        Op::Gemm(gemm) if gemm.epilogue.is_none() => (&gemm.call.node.name[..], gemm.rows_of(kernel)),
        Op::Bmm(bmm) => (bmm.last_name(), bmm.rows_of_epilogue(kernel)),
        _ => return Some(statement),
    };
    let Some(rows) = rows else { return Some(statement) };
    if !decisions.allow(&format!("fuse-epilogue {} of {name}", kernel.name)) {
        return Some(statement);
    }
    match (&mut before.op, statement.op) {
        (Op::Gemm(gemm), Op::Loop(kernel)) => gemm.epilogue = Some(Epilogue { kernel, rows }),
        (Op::Bmm(bmm), Op::Loop(kernel)) => bmm.push_epilogue(kernel, rows, buffers),
        (_, op) => return Some(op.into()),
    }
    None
}
