//! The assembler with what all parts of the emitter share: registers by number, constants, vectors in the frame.

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterK, AsmRegisterXmm, AsmRegisterYmm, AsmRegisterZmm, CodeAssembler,
    CodeLabel, ptr, registers,
};
use pyrite_loops::Kernel;

use super::calls::RuntimeCall;
use super::layout::Layout;
use super::shape::Shape;
use super::vector::Kind;
use super::{EmitError, Width};

pub(super) type Done = Result<(), EmitError>;

pub(super) const X: [AsmRegisterXmm; 32] = {
    use registers::xmm::{
        xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7, xmm8, xmm9, xmm10, xmm11, xmm12, xmm13, xmm14, xmm15, xmm16,
        xmm17, xmm18, xmm19, xmm20, xmm21, xmm22, xmm23, xmm24, xmm25, xmm26, xmm27, xmm28, xmm29, xmm30, xmm31,
    };
    [
        xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7, xmm8, xmm9, xmm10, xmm11, xmm12, xmm13, xmm14, xmm15, xmm16,
        xmm17, xmm18, xmm19, xmm20, xmm21, xmm22, xmm23, xmm24, xmm25, xmm26, xmm27, xmm28, xmm29, xmm30, xmm31,
    ]
};
pub(super) const Y: [AsmRegisterYmm; 32] = {
    use registers::ymm::{
        ymm0, ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm7, ymm8, ymm9, ymm10, ymm11, ymm12, ymm13, ymm14, ymm15, ymm16,
        ymm17, ymm18, ymm19, ymm20, ymm21, ymm22, ymm23, ymm24, ymm25, ymm26, ymm27, ymm28, ymm29, ymm30, ymm31,
    };
    [
        ymm0, ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm7, ymm8, ymm9, ymm10, ymm11, ymm12, ymm13, ymm14, ymm15, ymm16,
        ymm17, ymm18, ymm19, ymm20, ymm21, ymm22, ymm23, ymm24, ymm25, ymm26, ymm27, ymm28, ymm29, ymm30, ymm31,
    ]
};
pub(super) const Z: [AsmRegisterZmm; 32] = {
    use registers::zmm::{
        zmm0, zmm1, zmm2, zmm3, zmm4, zmm5, zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15, zmm16,
        zmm17, zmm18, zmm19, zmm20, zmm21, zmm22, zmm23, zmm24, zmm25, zmm26, zmm27, zmm28, zmm29, zmm30, zmm31,
    };
    [
        zmm0, zmm1, zmm2, zmm3, zmm4, zmm5, zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15, zmm16,
        zmm17, zmm18, zmm19, zmm20, zmm21, zmm22, zmm23, zmm24, zmm25, zmm26, zmm27, zmm28, zmm29, zmm30, zmm31,
    ]
};
pub(super) const K: [AsmRegisterK; 8] = {
    use registers::k::{k0, k1, k2, k3, k4, k5, k6, k7};
    [k0, k1, k2, k3, k4, k5, k6, k7]
};

/// Registers that hold where accesses are during a region.
pub(super) const POINTERS: [AsmRegister64; 9] = {
    use registers::gpr64::{r8, r9, r12, r13, r14, rbp, rbx, rdi, rsi};
    [rbx, rbp, rsi, rdi, r8, r9, r12, r13, r14]
};

/// An instruction of three registers of one width.
macro_rules! rrr {
    ($e:expr, $name:ident, $w:expr, $d:expr, $a:expr, $b:expr) => {
        match $w {
            16 => $e.asm.$name(X[$d], X[$a], X[$b])?,
            32 => $e.asm.$name(Y[$d], Y[$a], Y[$b])?,
            _ => $e.asm.$name(Z[$d], Z[$a], Z[$b])?,
        }
    };
}

/// An instruction of two registers of one width.
macro_rules! rr {
    ($e:expr, $name:ident, $w:expr, $d:expr, $a:expr) => {
        match $w {
            16 => $e.asm.$name(X[$d], X[$a])?,
            32 => $e.asm.$name(Y[$d], Y[$a])?,
            _ => $e.asm.$name(Z[$d], Z[$a])?,
        }
    };
}

/// An instruction of two registers of one width and a number.
macro_rules! rri {
    ($e:expr, $name:ident, $w:expr, $d:expr, $a:expr, $i:expr) => {
        match $w {
            16 => $e.asm.$name(X[$d], X[$a], $i)?,
            32 => $e.asm.$name(Y[$d], Y[$a], $i)?,
            _ => $e.asm.$name(Z[$d], Z[$a], $i)?,
        }
    };
}

/// An instruction of a register and an operand that is no register.
macro_rules! rm {
    ($e:expr, $name:ident, $w:expr, $d:expr, $m:expr) => {
        match $w {
            16 => $e.asm.$name(X[$d], $m)?,
            32 => $e.asm.$name(Y[$d], $m)?,
            _ => $e.asm.$name(Z[$d], $m)?,
        }
    };
}

/// An instruction of an operand that is no register and a register.
macro_rules! mr {
    ($e:expr, $name:ident, $w:expr, $m:expr, $d:expr) => {
        match $w {
            16 => $e.asm.$name($m, X[$d])?,
            32 => $e.asm.$name($m, Y[$d])?,
            _ => $e.asm.$name($m, Z[$d])?,
        }
    };
}

pub(super) use {mr, rm, rr, rri, rrr};

/// What lies behind the code.
enum Datum {
    Word(u64),
    /// The number of each lane, of 32 bits or of 64.
    Lanes(Kind),
    /// Eight or sixteen lanes of ones, then as many of zeros.
    Window,
    /// Which bytes of a 128-bit lane are the low ones of its 32-bit lanes: their low byte, or their low two.
    Packing(usize),
}

impl Datum {
    fn bytes(&self) -> usize {
        match self {
            Self::Word(_) => 8,
            Self::Lanes(_) => 64,
            Self::Window => 128,
            Self::Packing(_) => 16,
        }
    }
}

/// The assembler and what it assembles for.
pub(super) struct Emitter<'a> {
    pub(super) asm: CodeAssembler,
    pub(super) kernel: &'a Kernel,
    pub(super) shape: Shape,
    pub(super) layout: Layout,
    pub(super) fault: CodeLabel,
    /// How many vectors of rows that lie side by side are taken together.
    pub(super) blocks: usize,
    /// How much of the frame regions have used at most.
    pub(super) deepest: u32,
    data: Vec<(Datum, CodeLabel)>,
    /// How many bytes of data stand behind the code.
    pub(super) placed: usize,
    /// What called functions need to know.
    #[expect(clippy::vec_box, reason = "the code holds their addresses")]
    pub(super) runtime_calls: Vec<Box<RuntimeCall>>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(kernel: &'a Kernel, shape: Shape, layout: Layout) -> Result<Self, EmitError> {
        let mut asm = CodeAssembler::new(64)?;
        asm.set_prefer_vex(shape.width == Width::Avx2);
        let fault = asm.create_label();
        let deepest = layout.size();
        let (data, runtime_calls) = (Vec::new(), Vec::new());
        Ok(Self { asm, kernel, shape, layout, fault, blocks: 1, deepest, data, placed: 0, runtime_calls })
    }

    pub(super) fn is_wide(&self) -> bool {
        self.shape.width == Width::Avx512
    }

    /// How many bytes a value of a kind takes.
    pub(super) fn bytes(&self, kind: Kind) -> usize {
        self.shape.bytes(kind)
    }

    /// Keeps a runtime call for as long as the code lives.
    pub(super) fn keep(&mut self, runtime_call: RuntimeCall) -> *const RuntimeCall {
        self.runtime_calls.push(Box::new(runtime_call));
        &raw const **self.runtime_calls.last().expect("one was just added")
    }

    fn datum(&mut self, same: impl Fn(&Datum) -> bool, datum: Datum) -> AsmMemoryOperand {
        if let Some((_, label)) = self.data.iter().find(|(known, _)| same(known)) {
            return ptr(*label);
        }
        let label = self.asm.create_label();
        self.data.push((datum, label));
        ptr(label)
    }

    /// Eight bytes behind the code.
    pub(super) fn word(&mut self, bits: u64) -> AsmMemoryOperand {
        self.datum(|known| matches!(known, Datum::Word(b) if *b == bits), Datum::Word(bits))
    }

    /// The numbers of the lanes.
    pub(super) fn lanes(&mut self, kind: Kind) -> AsmMemoryOperand {
        self.datum(|known| matches!(known, Datum::Lanes(k) if *k == kind), Datum::Lanes(kind))
    }

    /// A window over masks of 32-bit lanes: ones for 16 lanes, then zeros.
    pub(super) fn window(&mut self) -> AsmMemoryOperand {
        self.datum(|known| matches!(known, Datum::Window), Datum::Window)
    }

    /// The bytes that make narrow elements of 32-bit lanes.
    pub(super) fn packing(&mut self, size: usize) -> AsmMemoryOperand {
        self.datum(|known| matches!(known, Datum::Packing(s) if *s == size), Datum::Packing(size))
    }

    /// Writes the data behind the code.
    pub(super) fn place_data(&mut self) -> Done {
        for (datum, mut label) in std::mem::take(&mut self.data) {
            self.asm.set_label(&mut label)?;
            self.placed += datum.bytes();
            match datum {
                Datum::Word(bits) => self.asm.dq(&[bits])?,
                Datum::Lanes(Kind::W64) => self.asm.dq(&[0, 1, 2, 3, 4, 5, 6, 7])?,
                Datum::Lanes(_) => self.asm.dd(&std::array::from_fn::<u32, 16, _>(|i| i as u32))?,
                Datum::Window => {
                    self.asm.dd(&[u32::MAX; 16])?;
                    self.asm.dd(&[0; 16])?;
                }
                Datum::Packing(1) => self.asm.db(&packing(1))?,
                Datum::Packing(_) => self.asm.db(&packing(2))?,
            }
        }
        Ok(())
    }

    /// Loads a vector from memory.
    pub(super) fn fetch(&mut self, kind: Kind, d: usize, from: AsmMemoryOperand) -> Done {
        if kind == Kind::Mask && self.is_wide() {
            self.asm.kmovw(K[d], from)?;
        } else {
            rm!(self, vmovups, self.bytes(kind), d, from);
        }
        Ok(())
    }

    /// Stores a vector to memory.
    pub(super) fn put(&mut self, kind: Kind, to: AsmMemoryOperand, s: usize) -> Done {
        if kind == Kind::Mask && self.is_wide() {
            self.asm.kmovw(to, K[s])?;
        } else {
            mr!(self, vmovups, self.bytes(kind), to, s);
        }
        Ok(())
    }

    /// Copies a register.
    pub(super) fn copy(&mut self, kind: Kind, d: usize, s: usize) -> Done {
        if d == s {
            return Ok(());
        }
        if kind == Kind::Mask && self.is_wide() {
            self.asm.kmovw(K[d], K[s])?;
        } else {
            rr!(self, vmovaps, self.bytes(kind), d, s);
        }
        Ok(())
    }

    /// The same bits in every lane.
    pub(super) fn constant(&mut self, bits: u64, kind: Kind, d: usize) -> Done {
        let w = self.bytes(kind);
        match kind {
            Kind::Mask if self.is_wide() => match bits {
                0 => self.asm.kxorw(K[d], K[d], K[d])?,
                _ => self.asm.kxnorw(K[d], K[d], K[d])?,
            },
            _ if bits == 0 => rrr!(self, vxorps, w, d, d, d),
            Kind::Mask => match w {
                16 => self.asm.vpcmpeqd(X[d], X[d], X[d])?,
                _ => self.asm.vpcmpeqd(Y[d], Y[d], Y[d])?,
            },
            Kind::W32 => {
                let word = self.word(bits);
                rm!(self, vbroadcastss, w, d, word);
            }
            Kind::W64 => {
                let word = self.word(bits);
                match w {
                    32 => self.asm.vbroadcastsd(Y[d], word)?,
                    _ => self.asm.vbroadcastsd(Z[d], word)?,
                }
            }
        }
        Ok(())
    }
}

/// A place in the frame.
pub(super) fn frame(offset: u32) -> AsmMemoryOperand {
    ptr(registers::gpr64::rsp + offset as i32)
}

fn packing(size: usize) -> [u8; 16] {
    std::array::from_fn(|i| if i < 4 * size { (i / size * 4 + i % size) as u8 } else { 0x80 })
}
