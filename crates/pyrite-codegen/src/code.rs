//! Kernels that are ready to run.

#![expect(unsafe_code, reason = "machine code is called")]

use std::ops::Range;

/// What a call of a kernel gets. Several threads share the work of a kernel by calls for parts of an axis.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// For each access the address of the element at which this call begins: that of the buffer, moved by the offset
    /// and by the indices at which axes begin.
    pub bases: &'a [*mut u8],
    /// How many positions of each axis are run; zero runs nothing along it.
    pub extents: &'a [i64],
    /// The index at which each axis begins, for code that computes with indices.
    pub begins: &'a [i64],
    /// How many elements a step along each axis is, for the first access, then for the second, and so on.
    pub steps: &'a [i64],
    /// The numbers of the kernel.
    pub numbers: &'a [i64],
    /// What each access may touch, for code that checks its accesses ([`Code::checks_memory`]); else nothing.
    pub reach: &'a [Reach],
}

/// The memory that accesses of a call may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The addresses of a buffer.
    Buffer(Range<usize>),
    /// Memory in which a row puts aside what its later phases use; nobody looks at it afterwards.
    Scratch,
    /// As much as the access reaches within the extents.
    Access,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An index read from memory is outside of its buffer.
    #[error("an index is out of bounds")]
    OutOfBounds,
    /// The code did what it must not do.
    #[error("the compiled code is wrong: {0}")]
    Trap(String),
}

/// Machine code for people.
#[derive(Clone, Debug)]
pub struct MachineCode {
    /// The bytes of the instructions.
    pub instructions: Vec<u8>,
    /// How many bytes of data follow them.
    pub data: usize,
    disassembler: fn(&[u8]) -> String,
}

impl MachineCode {
    /// Code with who makes text of it.
    pub fn new(instructions: &[u8], data: usize, disassembler: fn(&[u8]) -> String) -> Self {
        Self { instructions: instructions.to_vec(), data, disassembler }
    }

    /// An offset and an instruction a line.
    pub fn disassembly(&self) -> String {
        (self.disassembler)(&self.instructions)
    }
}

/// A kernel that is ready to run, for all sizes.
pub trait Code: Send + Sync {
    /// Runs it.
    ///
    /// # Safety
    /// Every element that an access reaches from its base within the extents lies in memory that the caller owns, and
    /// nothing else writes to what is read or accesses what is written. Gathers and scatters stay within their buffer
    /// when their index is bounded.
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), Fault>;

    /// Whether it compares its accesses with what they may touch.
    fn checks_memory(&self) -> bool {
        false
    }

    /// Its machine code; nothing where it is interpreted.
    fn machine(&self) -> Option<MachineCode> {
        None
    }

    /// The code as bytes that another process can take, if it can.
    fn written(&self) -> Option<Vec<u8>> {
        None
    }
}
