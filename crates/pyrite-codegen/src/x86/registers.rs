//! Which register holds which value, within a region.
//!
//! Operations are taken in order. When registers run out, the value whose next use is furthest away gives up its own;
//! if it has no home in memory it gets one in the frame and is stored there first. Registers that are *pinned* hold
//! accumulators and invariant values for the length of a loop and are never given up.
//!
//! Registers 0 and 1 are left to the emitter, as are opmasks 0, 6 and 7.

use super::EmitError;
use super::emitter::{Done, Emitter, frame};
use super::vector::{Kind, Region, V, VectorOp};

/// Where a value can be loaded from at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    None,
    /// A constant.
    Const(u64),
    /// The numbers of the lanes.
    Lanes,
    /// A vector in the frame.
    Frame(u32),
}

const NEVER: u32 = u32::MAX;

/// The state of an allocation.
pub(super) struct Registers {
    /// The positions at which each value is used, in order.
    uses: Vec<Vec<u32>>,
    pub(super) home: Vec<Home>,
    held: Vec<Option<u8>>,
    vectors: Bank,
    masks: Bank,
    /// The register of each accumulator, of the present copy of the loop's body.
    pub(super) accumulators: Vec<Option<u8>>,
    /// Operands of the present operation, which keep their registers.
    locked: Vec<V>,
}

/// Registers of one class.
struct Bank {
    owners: Vec<Option<V>>,
    free: Vec<bool>,
    /// Those that may be given out.
    usable: std::ops::Range<usize>,
}

impl Bank {
    fn new(usable: std::ops::Range<usize>) -> Self {
        let mut free = vec![false; 32];
        free[usable.clone()].fill(true);
        Self { owners: vec![None; 32], free, usable }
    }
}

impl Registers {
    pub(super) fn new(region: &Region, wide: bool) -> Self {
        let mut uses = vec![Vec::new(); region.ops.len()];
        for (position, op) in region.ops.iter().enumerate() {
            op.each_operand(|v: V| uses[v.0 as usize].push(position as u32));
        }
        let home = region
            .ops
            .iter()
            .map(|op| match *op {
                VectorOp::Const(bits, _) => Home::Const(bits),
                VectorOp::Lanes(_) => Home::Lanes,
                VectorOp::Slot(offset, _) => Home::Frame(offset),
                _ => Home::None,
            })
            .collect();
        Self {
            uses,
            home,
            held: vec![None; region.ops.len()],
            vectors: Bank::new(2..if wide { 32 } else { 16 }),
            masks: Bank::new(1..6),
            accumulators: Vec::new(),
            locked: Vec::new(),
        }
    }

    fn bank(&mut self, kind: Kind, wide: bool) -> &mut Bank {
        if kind == Kind::Mask && wide { &mut self.masks } else { &mut self.vectors }
    }

    /// How many vector registers are free.
    pub(super) fn free_vectors(&self) -> usize {
        self.vectors.free.iter().filter(|f| **f).count()
    }

    /// Keeps a register out of the allocation.
    pub(super) fn pin(&mut self) -> Option<u8> {
        let found = self.vectors.usable.clone().find(|r| self.vectors.free[*r])?;
        self.vectors.free[found] = false;
        Some(found as u8)
    }

    /// Keeps a certain register out of the allocation.
    pub(super) fn reserve(&mut self, register: u8) {
        self.vectors.free[register as usize] = false;
    }

    /// Says that a value is in a pinned register for good.
    pub(super) fn hold(&mut self, v: V, register: u8) {
        self.held[v.0 as usize] = Some(register);
    }

    /// The vector registers and opmasks that hold something.
    pub(super) fn occupied(&self, wide: bool) -> (Vec<usize>, Vec<usize>) {
        let busy = |bank: &Bank| bank.usable.clone().filter(|r| !bank.free[*r]).collect();
        (busy(&self.vectors), if wide { busy(&self.masks) } else { Vec::new() })
    }

    /// Forgets the values of a body, so that it can be emitted again; pinned ones stay.
    pub(super) fn forget(&mut self, region: &Region) {
        for bank in [&mut self.vectors, &mut self.masks] {
            for register in bank.usable.clone() {
                if let Some(v) = bank.owners[register].take() {
                    bank.free[register] = true;
                    self.held[v.0 as usize] = None;
                }
            }
        }
        for (index, op) in region.ops.iter().enumerate() {
            if !region.invariant[index] {
                self.held[index] = None;
                self.home[index] = match *op {
                    VectorOp::Slot(offset, _) => Home::Frame(offset),
                    _ => Home::None,
                };
            }
        }
    }

    pub(super) fn only_use(&self, v: V) -> Option<u32> {
        match self.uses[v.0 as usize][..] {
            [only] => Some(only),
            _ => None,
        }
    }

    fn next_use(&self, v: V, position: u32) -> u32 {
        self.uses[v.0 as usize].iter().copied().find(|p| *p >= position).unwrap_or(NEVER)
    }

    /// Whether a value is not used after a position.
    pub(super) fn dies(&self, v: V, position: u32) -> bool {
        self.next_use(v, position + 1) == NEVER
    }
}

impl Emitter<'_> {
    /// A free register of a class, freed if need be.
    fn take(&mut self, regs: &mut Registers, region: &Region, kind: Kind, position: u32) -> Result<usize, EmitError> {
        let wide = self.is_wide();
        let bank = regs.bank(kind, wide);
        if let Some(found) = bank.usable.clone().find(|r| bank.free[*r]) {
            bank.free[found] = false;
            return Ok(found);
        }
        let candidates: Vec<(usize, V)> = bank.usable.clone().filter_map(|r| bank.owners[r].map(|v| (r, v))).collect();
        let victim = candidates
            .into_iter()
            .filter(|(_, v)| !regs.locked.contains(v))
            .max_by_key(|(_, v)| regs.next_use(*v, position));
        let Some((register, v)) = victim else {
            return Err(EmitError::Registers);
        };
        if regs.home[v.0 as usize] == Home::None {
            let slot = self.layout.vector();
            let place = frame(slot);
            self.put(region.kind(v), place, register)?;
            regs.home[v.0 as usize] = Home::Frame(slot);
        }
        regs.held[v.0 as usize] = None;
        regs.bank(kind, wide).owners[register] = None;
        Ok(register)
    }

    /// The register of an operand, loaded if it is not in one.
    pub(super) fn source(
        &mut self,
        regs: &mut Registers,
        region: &Region,
        v: V,
        position: u32,
    ) -> Result<usize, EmitError> {
        regs.locked.push(v);
        if let Some(register) = regs.held[v.0 as usize] {
            return Ok(register as usize);
        }
        let kind = region.kind(v);
        let register = self.take(regs, region, kind, position)?;
        self.load_home(regs, region, v, register)?;
        let wide = self.is_wide();
        regs.bank(kind, wide).owners[register] = Some(v);
        regs.held[v.0 as usize] = Some(register as u8);
        Ok(register)
    }

    /// Loads a value from its home.
    pub(super) fn load_home(&mut self, regs: &Registers, region: &Region, v: V, register: usize) -> Done {
        let kind = region.kind(v);
        match regs.home[v.0 as usize] {
            Home::None => Err(EmitError::Registers),
            Home::Const(bits) => self.constant(bits, kind, register),
            Home::Lanes => {
                let lanes = self.lanes(kind);
                self.fetch(kind, register, lanes)
            }
            Home::Frame(offset) => {
                let place = frame(offset);
                self.fetch(kind, register, place)
            }
        }
    }

    /// Gives back the registers of operands that are not used any more.
    pub(super) fn release(&mut self, regs: &mut Registers, region: &Region, position: u32) {
        let wide = self.is_wide();
        for v in std::mem::take(&mut regs.locked) {
            if !regs.dies(v, position) {
                continue;
            }
            let Some(register) = regs.held[v.0 as usize] else { continue };
            let bank = regs.bank(region.kind(v), wide);
            if bank.owners[register as usize] == Some(v) {
                bank.owners[register as usize] = None;
                bank.free[register as usize] = true;
                regs.held[v.0 as usize] = None;
            }
        }
    }

    /// The register for what an operation gives; `preferred` if that is free.
    pub(super) fn target(
        &mut self,
        regs: &mut Registers,
        region: &Region,
        v: V,
        position: u32,
        preferred: &[usize],
    ) -> Result<usize, EmitError> {
        let kind = region.kind(v);
        let wide = self.is_wide();
        let bank = regs.bank(kind, wide);
        let wanted = preferred.iter().copied().find(|r| bank.usable.contains(r) && bank.free[*r]);
        let register = match wanted {
            Some(register) => {
                bank.free[register] = false;
                register
            }
            None => self.take(regs, region, kind, position)?,
        };
        regs.bank(kind, wide).owners[register] = Some(v);
        regs.held[v.0 as usize] = Some(register as u8);
        Ok(register)
    }
}
