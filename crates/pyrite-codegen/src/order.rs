//! Brings together what a chain can be made of.
//!
//! Between the kernel that fills the left operand of a product of batches and the product there may be pieces that need
//! neither: copies of the right operand, above all. They run before, so that the product comes right behind its kernel.

use pyrite_ir::Value;
use pyrite_loops::BufferId;
use rustc_hash::FxHashSet;

use crate::chain::Batch;
use crate::pieces::Piece;
use crate::schedule::{inputs_of, outputs_of};

/// Puts products of batches right behind the kernels that fill their left operands, where what lies between can run
/// before.
pub fn bring_together(pieces: &mut [Piece]) {
    for at in 0..pieces.len() {
        let Some(lhs) = left_of(&pieces[at]) else { continue };
        let Some(leader) = pieces[..at].iter().rposition(|piece| outputs_of(piece).contains(&lhs)) else { continue };
        if leader + 1 == at || !matches!(pieces[leader], Piece::Loops(_)) {
            continue;
        }
        // What the leader follows is to stay before it.
        let follows = leader > 0 && left_of(&pieces[leader - 1]).is_some();
        let first = if follows { leader - 1 } else { leader };
        let filled: FxHashSet<BufferId> = pieces[first..=leader].iter().flat_map(outputs_of).collect();
        let between = &pieces[leader + 1..at];
        let apart = between.iter().all(|piece| can_move(piece) && inputs_of(piece).iter().all(|b| !filled.contains(b)));
        if apart {
            pieces[first..at].rotate_left(leader + 1 - first);
        }
    }
}

/// The buffer of the left operand of a product of batches.
fn left_of(piece: &Piece) -> Option<BufferId> {
    match piece {
        Piece::Outside(call) if Batch::takes(call) => call.args.first().and_then(Value::as_tensor).map(|p| p.buffer),
        _ => None,
    }
}

/// Whether a piece only computes: what draws random numbers keeps its turn.
fn can_move(piece: &Piece) -> bool {
    match piece {
        Piece::Loops(_) => true,
        Piece::Outside(call) => matches!(call.op.name(), "aten.mm.default" | "aten.addmm.default"),
    }
}
