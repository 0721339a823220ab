//! The x86-64 emitter: kernels as machine code with vectors of AVX2 or AVX-512.
//!
//! A kernel becomes one function. Its mathematical functions are written out (`pyrite-math`); the code of each phase is lowered to vector operations ([`lower`], [`vector`]), these
//! get registers ([`registers`]) and become instructions ([`operate`], [`memory`], [`calls`]) inside of the loops that
//! [`nest`], [`known`] and [`region`] build; what lies across the lanes is transposed in registers ([`tile`]). What outlives the innermost loop of a phase is in the stack frame ([`layout`]).
//!
//! Memory of code is written first and made executable then; it is never both.

#![expect(unsafe_code, reason = "bytes become code that runs")]

mod calls;
mod disassembly;
mod emitter;
mod known;
mod layout;
mod lower;
mod memory;
mod nest;
mod operate;
mod reduce;
mod region;
mod registers;
mod shape;
mod tile;
mod vector;

use std::sync::Arc;

use pyrite_loops::{Inst, Kernel, Lanes, Phase};

use self::calls::RuntimeCall;
use self::emitter::Emitter;
use self::layout::Layout;
use self::shape::Shape;
use crate::code::MachineCode;
use crate::target::{self, Target};
use crate::tiles::{self, Tiles};
use crate::{Call, Code, Fault};

/// Which vector instructions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 256 bits: AVX2, FMA, F16C, BMI2.
    Avx2,
    /// 512 bits: AVX-512 F, BW, DQ, VL, and all of the former.
    Avx512,
}

impl Width {
    /// The widest that this processor has.
    pub fn detect() -> Option<Self> {
        [Self::Avx512, Self::Avx2].into_iter().find(|width| width.is_available())
    }

    /// Whether this processor has it.
    pub fn is_available(self) -> bool {
        let base = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("f16c")
            && std::is_x86_feature_detected!("bmi2");
        base && (self == Self::Avx2
            || std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl"))
    }

    fn bytes(self) -> usize {
        match self {
            Self::Avx2 => 32,
            Self::Avx512 => 64,
        }
    }
}

impl Target for Width {
    fn name(&self) -> &'static str {
        match self {
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Code>, target::Unsupported> {
        match compile(kernel, *self) {
            Ok(machine) => Ok(Arc::new(machine)),
            Err(error) => Err(target::Unsupported { target: self.name(), reason: error.to_string() }),
        }
    }

    // SAFETY: what the trait asks of the caller is what `restore` asks.
    unsafe fn restore(&self, kernel: &Kernel, bytes: &[u8]) -> Option<Arc<dyn Code>> {
        // SAFETY: by the contract of this function.
        let machine = unsafe { restore(kernel, *self, bytes) }?;
        Some(Arc::new(machine))
    }
}

/// Why a kernel has no machine code.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// The processor lacks the instructions.
    #[error("the processor does not have these vector instructions")]
    Processor,
    /// One operation needs more registers than there are.
    #[error("an operation needs more registers than there are")]
    Registers,
    /// Words are looked up in a table.
    #[error("the kernel looks words up in a table")]
    Table,
    /// The stack frame would be larger than is safe to take at once.
    #[error("the kernel needs a stack frame of {0} bytes")]
    Frame(u32),
    /// An instruction could not be encoded.
    #[error("an instruction could not be encoded: {0}")]
    Encoding(#[from] iced_x86::IcedError),
    /// Memory for the code could not be had.
    #[error("no memory for code: {0}")]
    Memory(#[from] std::io::Error),
}

/// The largest stack frame; threads have guard pages for less.
const LARGEST_FRAME: u32 = 1 << 16;

/// From how many bytes on results go past the caches.
const STREAMED: i64 = 1 << 24;

type Entry = unsafe extern "sysv64" fn(*const *mut u8, *const i64, *const i64, *const i64, *const i64, i64) -> i64;

/// A kernel as machine code.
#[derive(Debug)]
pub struct X86Code {
    code: memmap2::Mmap,
    /// What called functions read by address.
    #[expect(clippy::vec_box, reason = "the code holds their addresses")]
    runtime_calls: Vec<Box<RuntimeCall>>,
    /// Accesses whose steps go into 32-bit lanes, with the axis.
    narrow: Vec<usize>,
    /// Accesses whose stores may go past the caches, with the size of their elements.
    streams: Vec<(usize, i64)>,
    /// For calls with steps too large for 32-bit lanes.
    fallback: Tiles,
    length: usize,
    /// How many of the bytes, at the end, are data.
    data: usize,
}

impl X86Code {
    /// Whether a call writes so much, and where cache lines begin, that its results should go past the caches.
    fn streams(&self, call: &Call<'_>) -> bool {
        let axes = call.extents.len();
        let large = |(access, size): &(usize, i64)| {
            let steps = &call.steps[access * axes..][..axes];
            let moving = steps.iter().zip(call.extents).filter(|(step, extent)| **step != 0 && **extent > 1);
            let elements: i64 = moving.clone().map(|(_, extent)| extent).product();
            // Every row has to begin where a cache line does; only the lanes go on element by element.
            let aligned = moving.filter(|(step, _)| **step * size % 64 != 0).all(|(step, _)| *step == 1)
                && steps.iter().zip(call.extents).filter(|(step, extent)| **step == 1 && **extent > 1).count() <= 1;
            elements * size >= STREAMED && aligned && call.bases[*access].addr().is_multiple_of(64)
        };
        !self.streams.is_empty() && self.streams.iter().all(large)
    }

    /// The machine code, for people and disassemblers; data follows the instructions.
    pub fn bytes(&self) -> &[u8] {
        &self.code[..self.length]
    }
}

/// Compiles a kernel.
pub fn compile(kernel: &Kernel, width: Width) -> Result<X86Code, EmitError> {
    if !width.is_available() {
        return Err(EmitError::Processor);
    }
    let fallback = tiles::compile(kernel);
    let kernel = pyrite_math::expand(&along_the_lanes(kernel));
    let looks_up = |phase: &Phase| phase.code.insts().iter().any(|inst| matches!(inst, Inst::Table(..)));
    if kernel.phases.iter().any(looks_up) {
        return Err(EmitError::Table);
    }
    let rows = kernel.rows.last().copied().filter(|_| kernel.lanes == Lanes::Rows);
    let shape = Shape::new(&kernel, width, rows);
    let layout = Layout::new(&kernel);
    let narrow = strided(&kernel, rows);
    let streams = match rows {
        None => (0..kernel.phases.len()).flat_map(|number| nest::streams(&kernel, number)).collect(),
        Some(_) => Vec::new(),
    };
    let streams = streams.into_iter().map(|id| (id.0 as usize, kernel.access(id).dtype.size() as i64)).collect();
    let mut emitter = Emitter::new(&kernel, shape, layout)?;
    emitter.kernel()?;
    if emitter.deepest > LARGEST_FRAME {
        return Err(EmitError::Frame(emitter.deepest));
    }
    let code = emitter.asm.assemble(0)?;
    let memory = executable(&code)?;
    let (length, data, runtime_calls) = (code.len(), emitter.placed, emitter.runtime_calls);
    Ok(X86Code { code: memory, runtime_calls, narrow, streams, fallback, length, data })
}

/// Memory that holds code and can no longer be written.
fn executable(code: &[u8]) -> std::io::Result<memmap2::Mmap> {
    let mut memory = memmap2::MmapOptions::new().len(code.len()).map_anon()?;
    memory[..code.len()].copy_from_slice(code);
    memory.make_exec()
}

/// The code of a kernel from what [`Code::written`] gave for it; `None` if it is not that.
///
/// # Safety
/// The bytes are what [`Code::written`] gave for this kernel and width in this version of the compiler.
pub unsafe fn restore(kernel: &Kernel, width: Width, bytes: &[u8]) -> Option<X86Code> {
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        usize::try_from(u32::from_le_bytes(*first)).ok()
    }
    let mut rest = bytes;
    let (accesses, axes) = (kernel.accesses.len(), kernel.axes.len());
    let narrow = (0..number(&mut rest)?)
        .map(|_| number(&mut rest).filter(|place| *place < accesses * axes))
        .collect::<Option<Vec<usize>>>()?;
    let streams = (0..number(&mut rest)?)
        .map(|_| {
            let access = number(&mut rest).filter(|access| *access < accesses)?;
            Some((access, kernel.accesses[access].dtype.size() as i64))
        })
        .collect::<Option<Vec<(usize, i64)>>>()?;
    let data = number(&mut rest)?;
    if rest.len() <= data || !width.is_available() {
        return None;
    }
    let (code, fallback) = (executable(rest).ok()?, tiles::compile(kernel));
    Some(X86Code { code, runtime_calls: Vec::new(), narrow, streams, fallback, length: rest.len(), data })
}

/// A kernel whose only phase has no axes and reduces nothing is a loop along the last axis of its rows.
fn along_the_lanes(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    if let ([phase], Lanes::Rows) = (&mut kernel.phases[..], kernel.lanes)
        && phase.axes.is_empty()
        && phase.reduces.is_empty()
        && let Some(last) = kernel.rows.pop()
    {
        phase.axes.push(last);
        kernel.lanes = Lanes::Phase;
    }
    if kernel.rows.is_empty() {
        kernel.lanes = Lanes::Phase;
    }
    kernel
}

/// The places among the steps of a call that have to fit 32-bit lanes.
fn strided(kernel: &Kernel, rows: Option<pyrite_loops::AxisId>) -> Vec<usize> {
    let mut found = Vec::new();
    for phase in &kernel.phases {
        let Some(lane) = rows.or(phase.axes.last().copied()) else { continue };
        for inst in phase.code.insts() {
            let (Inst::Load(access) | Inst::Store { access, .. }) = inst else { continue };
            if !matches!(kernel.access(*access).step(lane).as_int(), Some(0 | 1)) {
                found.push(access.0 as usize * kernel.axes.len() + lane.0 as usize);
            }
        }
    }
    found
}

impl Code for X86Code {
    fn machine(&self) -> Option<MachineCode> {
        let instructions = &self.bytes()[..self.length - self.data];
        Some(MachineCode::new(instructions, self.data, disassembly::disassembled))
    }

    // SAFETY: what the trait asks of the caller is all that is relied on.
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), Fault> {
        if self.narrow.iter().any(|place| i32::try_from(call.steps[*place].saturating_mul(16)).is_err()) {
            // SAFETY: by the contract of this function.
            return unsafe { self.fallback.run(call) };
        }
        // SAFETY: the memory holds a function of this type, which keeps to the accesses of the kernel.
        let status = unsafe {
            let entry: Entry = std::mem::transmute::<*const u8, Entry>(self.code.as_ptr());
            entry(
                call.bases.as_ptr(),
                call.extents.as_ptr(),
                call.begins.as_ptr(),
                call.steps.as_ptr(),
                call.numbers.as_ptr(),
                i64::from(self.streams(call)),
            )
        };
        if status == 0 { Ok(()) } else { Err(Fault::OutOfBounds) }
    }

    fn written(&self) -> Option<Vec<u8>> {
        if !self.runtime_calls.is_empty() {
            return None;
        }
        let places = self.narrow.iter().copied();
        let streams = self.streams.iter().map(|(access, _)| *access);
        let numbers =
            [self.narrow.len()].into_iter().chain(places).chain([self.streams.len()]).chain(streams).chain([self.data]);
        let mut bytes = Vec::with_capacity(self.length + 64);
        for number in numbers {
            bytes.extend_from_slice(&u32::try_from(number).ok()?.to_le_bytes());
        }
        bytes.extend_from_slice(self.bytes());
        Some(bytes)
    }
}
