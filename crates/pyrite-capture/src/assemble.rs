//! Instructions to bytes: code, line table, exception table.

use crate::code::{Instruction, Protected};
use crate::opcode::{Jump, Op, Version};

/// The three byte strings of a code object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembled {
    /// `co_code`.
    pub code: Vec<u8>,
    /// `co_linetable`.
    pub lines: Vec<u8>,
    /// `co_exceptiontable`.
    pub exceptions: Vec<u8>,
}

/// Assembles instructions for a version; `None` when it does not have one of them. Jumps must go the way their
/// instruction goes; what a loop skips when it ends must stand before its target.
pub fn assemble(
    version: Version,
    instructions: &[Instruction],
    protected: &[Protected],
    first_line: u32,
) -> Option<Assembled> {
    let folded = instructions.iter().map(|i| i.op.folded(version, i.arg));
    let (ops, mut args): (Vec<Op>, Vec<u32>) = folded.unzip();
    let mut sizes: Vec<usize> = ops.iter().map(|op| units(version, *op, 0)).collect();
    let mut offsets = vec![0; instructions.len() + 1];
    // Arguments of jumps and the room they take depend on each other; sizes only grow, so this ends.
    loop {
        for (place, size) in sizes.iter().enumerate() {
            offsets[place + 1] = offsets[place] + size;
        }
        let mut changed = false;
        for (place, instruction) in instructions.iter().enumerate() {
            if let Some(target) = instruction.target {
                let skipped = if ops[place] == Op::ForIter { version.skipped_after_loop() } else { 0 };
                let (from, to) = (offsets[place + 1], offsets[target] - skipped);
                args[place] = match ops[place].jump() {
                    Jump::Backward => from.saturating_sub(to),
                    _ => to.saturating_sub(from),
                } as u32;
            }
            let size = units(version, ops[place], args[place]);
            if size > sizes[place] {
                sizes[place] = size;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let mut out = Assembled::default();
    let mut line_before = first_line;
    for (place, instruction) in instructions.iter().enumerate() {
        let caches = ops[place].caches(version);
        let extensions = sizes[place] - 1 - caches;
        for shift in (1..=extensions).rev() {
            out.code.extend([Op::ExtendedArg.number(version)?, (args[place] >> (8 * shift)) as u8]);
        }
        out.code.extend([ops[place].number(version)?, args[place] as u8]);
        out.code.resize(out.code.len() + 2 * caches, 0);
        line_entries(&mut out.lines, sizes[place], instruction.line, &mut line_before);
    }
    for part in protected {
        let start = offsets[part.start];
        exception_number(&mut out.exceptions, start, 128);
        exception_number(&mut out.exceptions, offsets[part.end] - start, 0);
        exception_number(&mut out.exceptions, offsets[part.target], 0);
        exception_number(&mut out.exceptions, part.depth << 1 | usize::from(part.push_place), 0);
    }
    Some(out)
}

/// How many code units an instruction takes with an argument.
fn units(version: Version, op: Op, arg: u32) -> usize {
    let extensions = match arg {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        0x1_0000..=0xff_ffff => 2,
        _ => 3,
    };
    extensions + 1 + op.caches(version)
}

/// The entries of the line table for one instruction: the form without columns, or the one without a line.
fn line_entries(out: &mut Vec<u8>, units: usize, line: u32, before: &mut u32) {
    const NO_COLUMNS: u8 = 13;
    const NO_LINE: u8 = 15;
    let mut left = units;
    while left > 0 {
        let length = left.min(8);
        let form = if line == 0 { NO_LINE } else { NO_COLUMNS };
        out.push(128 | form << 3 | (length - 1) as u8);
        if line != 0 {
            let step = i64::from(line) - i64::from(*before);
            let mut zigzag = (step.unsigned_abs() as u32) << 1 | u32::from(step < 0);
            while zigzag >= 64 {
                out.push(64 | (zigzag & 63) as u8);
                zigzag >>= 6;
            }
            out.push(zigzag as u8);
            *before = line;
        }
        left -= length;
    }
}

/// A number of the exception table: six bits a byte, the highest first; `mark` is set in the first byte.
fn exception_number(out: &mut Vec<u8>, value: usize, mark: u8) {
    let mut digits = vec![(value & 63) as u8];
    let mut rest = value >> 6;
    while rest > 0 {
        digits.push((rest & 63) as u8 | 64);
        rest >>= 6;
    }
    digits.reverse();
    digits[0] |= mark;
    out.extend(digits);
}
