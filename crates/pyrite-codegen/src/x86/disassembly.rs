//! Machine code as text, for people.

use std::fmt::Write as _;

use iced_x86::{Decoder, DecoderOptions, FastFormatter, Instruction};

/// An offset and an instruction a line; nothing of the data that follows the code.
pub(super) fn disassembled(code: &[u8]) -> String {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut formatter = FastFormatter::new();
    let mut instruction = Instruction::default();
    let mut text = String::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let _ = write!(text, "{:05x}  ", instruction.ip());
        formatter.format(&instruction, &mut text);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_has_a_line_with_its_offset() {
        assert_eq!(disassembled(&[0x31, 0xc0, 0xc3]), "00000  xor eax,eax\n00002  ret\n");
    }
}
