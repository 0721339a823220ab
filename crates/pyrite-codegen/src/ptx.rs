//! Kernels as PTX, run by the interpreter of `pyrite-ptx`: what a GPU would compute, on any processor, and checked.
//!
//! An access outside of its buffer, a race, or a barrier that not all threads reach fails the call and names the line of
//! the text. Memory in which rows put something aside is made here, one for each row that is computed at the same time.

#![expect(unsafe_code, reason = "compiled code works on raw memory")]

use std::sync::Arc;

use pyrite_loops::{BufferId, Kernel};
use pyrite_ptx::interp::{Module, Region};
use pyrite_ptx::{Arguments, FaultNote, Launch, Ptx};

use crate::code::Reach;
use crate::target::{Target, Unsupported};
use crate::{Call, Code, Fault};

/// The name of the entry of a kernel.
const ENTRY: &str = "kernel";

/// PTX and its interpreter as a target.
#[derive(Clone, Copy, Debug)]
pub struct PtxInterpreter;

impl Target for PtxInterpreter {
    fn name(&self) -> &'static str {
        "ptx-interp"
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Code>, Unsupported> {
        match compile(kernel) {
            Ok(code) => Ok(Arc::new(code)),
            Err(error) => Err(Unsupported { target: self.name(), reason: error.to_string() }),
        }
    }
}

/// A kernel as PTX that is interpreted.
#[derive(Debug)]
pub struct Interpreted {
    kernel: Kernel,
    ptx: Ptx,
    text: String,
    module: Result<Module, String>,
}

/// Writes a kernel as PTX and reads it back.
pub fn compile(kernel: &Kernel) -> Result<Interpreted, pyrite_ptx::Unsupported> {
    let ptx = pyrite_ptx::compile(kernel, ENTRY)?;
    let text = ptx.text();
    let module = Module::parse(&text).map_err(|error| error.to_string());
    Ok(Interpreted { kernel: kernel.clone(), ptx, text, module })
}

/// The PTX of a kernel for people, its entry named as the kernel; a remark where it has none.
pub fn listing(kernel: &Kernel) -> String {
    let named = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let entry: String = format!("k_{}", kernel.name).chars().map(named).collect();
    match pyrite_ptx::compile(kernel, &entry) {
        Ok(ptx) => format!("// {}: a thread is {}\n{}", kernel.name, ptx.mapping, ptx.text()),
        Err(error) => format!("// {}: {error}\n", kernel.name),
    }
}

/// The addresses from and to which an access of a kernel reaches from its base.
fn span(kernel: &Kernel, extents: &[i64], steps: &[i64], access: usize) -> (i64, i64) {
    let (axes, size) = (extents.len(), kernel.accesses[access].dtype.size() as i64);
    let (mut low, mut high) = (0, 0);
    for (step, extent) in steps[access * axes..][..axes].iter().zip(extents) {
        let far = step * (extent - 1).max(0);
        low += far.min(0);
        high += far.max(0);
    }
    (low * size, (high + 1) * size)
}

/// How many bytes a row puts aside in the buffer of an access.
pub(crate) fn pitch(kernel: &Kernel, extents: &[i64], steps: &[i64], access: usize) -> u64 {
    let buffer = kernel.accesses[access].buffer;
    let of_buffer = (0..kernel.accesses.len()).filter(|other| kernel.accesses[*other].buffer == buffer);
    let bytes = of_buffer.map(|other| span(kernel, extents, steps, other).1).max().unwrap_or(0);
    (bytes as u64).next_multiple_of(64)
}

impl Interpreted {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same kernel by another text, for instance one with a mistake.
    #[must_use]
    pub fn with_text(&self, text: &str) -> Self {
        let module = Module::parse(text).map_err(|error| error.to_string());
        Self { kernel: self.kernel.clone(), ptx: self.ptx.clone(), text: text.to_owned(), module }
    }

    /// The addresses from and to which an access reaches from its base.
    fn span(&self, call: &Call<'_>, access: usize) -> (i64, i64) {
        span(&self.kernel, call.extents, call.steps, access)
    }

    /// How many bytes a row puts aside in the buffer of an access; zero if it is no such buffer.
    fn pitch(&self, call: &Call<'_>, access: usize) -> u64 {
        match call.reach.get(access) {
            Some(Reach::Scratch) if self.ptx.may_be_scratch(access) => {
                pitch(&self.kernel, call.extents, call.steps, access)
            }
            _ => 0,
        }
    }

    fn launch(&self, call: &Call<'_>, bases: &[u64], fault: u64) -> Option<Launch> {
        let Call { extents, begins, steps, numbers, .. } = *call;
        let arguments = Arguments { bases, extents, begins, steps, numbers, fault };
        self.ptx.launch(&arguments, &|access| self.pitch(call, access))
    }
}

impl Code for Interpreted {
    // SAFETY: what the trait asks of the caller is all that is relied on.
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), Fault> {
        let module = self.module.as_ref().map_err(|error| Fault::Trap(error.clone()))?;
        let mut bases: Vec<u64> = call.bases.iter().map(|base| base.addr() as u64).collect();
        let mut fault = FaultNote::default();
        let noted = &raw mut fault as u64;
        let Some(first) = self.launch(call, &bases, noted) else { return Ok(()) };
        let mut regions = vec![Region { start: noted, bytes: size_of::<FaultNote>() as u64, writable: true }];
        let mut scratch: Vec<(BufferId, Vec<u64>)> = Vec::new();
        for (index, access) in self.kernel.accesses.iter().enumerate() {
            let pitch = self.pitch(call, index);
            if pitch > 0 {
                if !scratch.iter().any(|(buffer, _)| *buffer == access.buffer) {
                    let words = pitch * first.rows_at_once / 8;
                    scratch.push((access.buffer, vec![0; words as usize]));
                }
                for (_, memory) in scratch.iter_mut().filter(|(buffer, _)| *buffer == access.buffer) {
                    bases[index] = memory.as_mut_ptr().addr() as u64;
                    regions.push(Region { start: bases[index], bytes: memory.len() as u64 * 8, writable: true });
                }
                continue;
            }
            let region = if let Some(Reach::Buffer(range)) = call.reach.get(index) {
                Region { start: range.start as u64, bytes: range.len() as u64, writable: true }
            } else {
                let (low, high) = self.span(call, index);
                let start = bases[index].wrapping_add_signed(low);
                Region { start, bytes: (high - low) as u64, writable: true }
            };
            if !regions.contains(&region) {
                regions.push(region);
            }
        }
        let Some(launch) = self.launch(call, &bases, noted) else { return Ok(()) };
        // SAFETY: by the contract of this function the accesses stay within memory that the caller owns; what rows put aside
        // and the note of a fault are owned here.
        let done = unsafe { module.run(&launch, &regions) };
        // SAFETY: the note lives on the stack of this function; the interpreter has written it by its address.
        let fault = unsafe { (&raw const fault).read_volatile() };
        match done {
            Err(trap) => Err(Fault::Trap(trap.to_string())),
            Ok(()) if fault.is_set != 0 => Err(Fault::OutOfBounds),
            Ok(()) => Ok(()),
        }
    }

    fn checks_memory(&self) -> bool {
        true
    }
}
