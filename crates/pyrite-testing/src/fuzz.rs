//! Damaged texts for the reader and the verifier.
//!
//! [`case`] makes the text of a number: one of the seeds, damaged in a few places. [`check`] reads, verifies, prints and
//! reads it again; whatever comes out is fine, a panic is not. The fuzzer and a smoke test share both. That printing and
//! reading keep a graph is promised for every graph that is not damaged; for damaged ones it is counted.

use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::verify::verify;
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_bytes};
use pyrite_tensor::random::CounterGenerator;

use crate::random;

/// Pieces that are spliced into texts: what readers trip over.
const TOKENS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    ";",
    "'",
    "\"",
    "\"\"\"",
    "\\",
    "\n",
    "\t",
    "    ",
    "#",
    "None",
    "self",
    "-1",
    "0",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999999",
    "1e400",
    "float('nan')",
    "float('inf')",
    "1j",
    "...",
    "*",
    "**",
    "//",
    "%",
    "@",
    "lambda: 0",
    "x for x in y",
    "f'{x}'",
    "torch.ops.aten.",
    "torch.float32",
    "device(type='cuda', index=0)",
    "\"f32[2, 3]\"",
    "\"f32[s0, 2*s0]\"",
    "\"Sym(s0)\"",
    "\"f32[-1]\"",
    "\"f32[9223372036854775807, 9]\"",
    "slice(None, None, None)",
    "def forward(self, x):",
    "return (x,)",
    "class Repro(torch.nn.Module):",
    "import os",
    "\u{0}",
    "\u{feff}",
    "é",
    "𝒳",
    "yield x",
];

/// The bytes of a numbered case.
pub fn case(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let random = CounterGenerator::new(number, 0xf022);
    let mut draw = {
        let mut index = 0;
        move |bound: usize| {
            index += 1;
            random.integer(index, 0, bound.max(1) as i64) as usize
        }
    };
    let mut text = if draw(4) == 0 {
        print(&random::graph(number).graph, &PrintOptions::default()).into_bytes()
    } else {
        seeds[draw(seeds.len())].clone()
    };
    for _ in 0..=draw(6) {
        let at = draw(text.len() + 1);
        let end = (at + draw(24)).min(text.len());
        match draw(7) {
            0 => drop(text.drain(at..end)),
            1 => text.truncate(at),
            2 => drop(text.splice(at..at, TOKENS[draw(TOKENS.len())].bytes())),
            3 => drop(text.splice(at..end, TOKENS[draw(TOKENS.len())].bytes())),
            4 => {
                let copy = text[at..end].to_vec();
                let to = draw(text.len() + 1);
                text.splice(to..to, copy);
            }
            5 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte = draw(256) as u8;
                }
            }
            _ => {
                let token = TOKENS[draw(TOKENS.len())].repeat(draw(400));
                text.splice(at..at, token.into_bytes());
            }
        }
    }
    text
}

/// What came of a damaged text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It was refused with diagnostics.
    Refused,
    /// It was read; printing it and reading that gives the same graph.
    RoundTrip,
    /// It was read, but its print is read as another graph, or not at all: a text that no printer writes, such as a
    /// call with arguments that bind differently once they are normalised.
    Changed,
}

/// Reads a text, verifies what comes out, prints it and reads that again. None of it may panic, whatever the text.
pub fn check(text: &[u8]) -> Reading {
    let Ok(outcome) = read_bytes(text, None, registry(), &ReadOptions::default()) else { return Reading::Refused };
    if !verify(&outcome.graph, None).is_empty() {
        return Reading::Refused;
    }
    let printed = print(&outcome.graph, &PrintOptions::default());
    match read_bytes(printed.as_bytes(), None, registry(), &ReadOptions::default()) {
        Ok(again) if again.graph == outcome.graph => Reading::RoundTrip,
        _ => Reading::Changed,
    }
}
