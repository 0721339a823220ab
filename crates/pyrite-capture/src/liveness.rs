//! Which slots of a frame are still needed.

use crate::code::Code;
use crate::opcode::Op;

/// For each slot, whether it may be read before it is written, from an instruction on.
pub fn live_slots(code: &Code, from: usize) -> Vec<bool> {
    let slots = code.slot_count();
    let count = code.instructions.len();
    let mut live: Vec<Vec<bool>> = vec![vec![false; slots]; count + 1];
    let mut changed = true;
    while changed {
        changed = false;
        for place in (0..count).rev() {
            let instruction = &code.instructions[place];
            let mut now = vec![false; slots];
            let mut join = |other: &[bool]| now.iter_mut().zip(other).for_each(|(now, other)| *now |= other);
            let ends = matches!(
                instruction.op,
                Op::ReturnValue | Op::RaiseVarargs | Op::Reraise | Op::JumpForward | Op::JumpBackward
            );
            if !ends {
                join(&live[place + 1]);
            }
            if let Some(target) = instruction.target {
                join(&live[target]);
            }
            let slot = instruction.arg as usize;
            if matches!(instruction.op, Op::StoreFast | Op::DeleteFast | Op::LoadFastAndClear) {
                now[slot] = false;
            }
            // An exception may leave before the write.
            if let Some(handler) = code.handler(place) {
                let target = live[handler.target].clone();
                now.iter_mut().zip(target).for_each(|(now, other)| *now |= other);
            }
            match instruction.op {
                Op::LoadFast | Op::LoadFastCheck | Op::LoadFastAndClear | Op::DeleteFast => now[slot] = true,
                Op::LoadClosure | Op::LoadDeref | Op::StoreDeref | Op::DeleteDeref | Op::LoadClassderef => {
                    now[slot] = true;
                }
                _ => {}
            }
            if now != live[place] {
                live[place] = now;
                changed = true;
            }
        }
    }
    live.swap_remove(from)
}
