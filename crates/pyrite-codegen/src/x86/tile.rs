//! Tiles: what lies across the lanes, transposed in registers.
//!
//! A phase may read or write a buffer whose neighbours in memory lie along another axis than the lanes, as `x + y.t()`
//! does. Element by element that takes a gather or a scatter for each vector, and a line of the cache for each element.
//! So where the axis around the lanes is the one along which memory goes on, as many of its positions as there are
//! lanes are taken together: a square of elements is read in rows as they lie, transposed, and put into the frame, from
//! where the body takes it vector by vector; what is written across goes the other way.
//!
//! Whole squares are done when the loop around the lanes comes to their first position; what the lanes leave over, and
//! positions beyond the last square, go element by element.

use iced_x86::code_asm::{
    ptr,
    registers::gpr64::{r11, r15, rax, rcx, rdx},
};
use pyrite_loops::{AccessId, AxisId, Inst, Kernel};

use super::emitter::{Done, Emitter, X, Y, Z, frame, mr, rm, rrr};
use super::layout::Layout;
use super::shape::Shape;
use super::vector::Kind;

/// How many vector registers turning a square needs beside the emitter's own.
pub(super) const REGISTERS: usize = 6;

/// Bytes from one vector of a square in the frame to the next.
const APART: u32 = 64;

/// The squares of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tiling {
    /// The axis around the lanes.
    pub(super) across: AxisId,
    /// The accesses that read across the lanes, and where their squares are in the frame.
    pub(super) loads: Vec<(AccessId, u32)>,
    /// The accesses that write across the lanes.
    pub(super) stores: Vec<(AccessId, u32)>,
}

/// Which way a square is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transpose {
    /// From memory to the frame.
    In,
    /// From the frame to memory.
    Out,
}

impl Tiling {
    /// How a phase is tiled, if it can be and gains from it: it reduces nothing, does not read what it writes, and has
    /// an access of 32-bit elements across the lanes.
    pub(super) fn of(kernel: &Kernel, number: usize, shape: &Shape, layout: &mut Layout) -> Option<Self> {
        let phase = &kernel.phases[number];
        let (lane, outer) = phase.axes.split_last()?;
        if shape.rows.is_some() || !phase.reduces.is_empty() || shape.lanes < 4 {
            return None;
        }
        let across = match outer.last() {
            Some(axis) => *axis,
            // Phases of one row follow each other, so several rows at once are only for a phase that is alone.
            None if kernel.phases.len() == 1 => *kernel.rows.last()?,
            None => return None,
        };
        let (mut read, mut written, mut loads, mut stores) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for inst in phase.code.insts() {
            let Some(id) = inst.access() else { continue };
            let access = kernel.access(id);
            if inst.writes() {
                written.push(access.buffer);
            } else {
                read.push(access.buffer);
            }
            let transposed = access.dtype.size() == 4
                && access.step(across).as_int() == Some(1)
                && !matches!(access.step(*lane).as_int(), Some(0 | 1));
            match inst {
                Inst::Load(_) if transposed && !loads.contains(&id) => loads.push(id),
                Inst::Store { .. } if transposed && !stores.contains(&id) => stores.push(id),
                Inst::Scatter { .. } => return None,
                _ => {}
            }
        }
        if loads.is_empty() && stores.is_empty() || written.iter().any(|buffer| read.contains(buffer)) {
            return None;
        }
        let mut placed = |accesses: Vec<AccessId>| -> Vec<(AccessId, u32)> {
            accesses.into_iter().map(|access| (access, layout.vectors(shape.lanes))).collect()
        };
        Some(Self { across, loads: placed(loads), stores: placed(stores) })
    }

    /// Where the square of an access is in the frame.
    pub(super) fn slot(&self, access: AccessId) -> Option<u32> {
        self.loads.iter().chain(&self.stores).find(|(id, _)| *id == access).map(|(_, slot)| *slot)
    }
}

/// The vector of a square that a copy of the body takes.
pub(super) fn part(slot: u32, copy: usize) -> u32 {
    slot + APART * copy as u32
}

impl Emitter<'_> {
    /// Transposes the square of an access at the present position of the lanes, `r11`. Uses `rax`, `rcx`, `rdx`, `r15`, the
    /// emitter's own registers and those given.
    pub(super) fn transpose(
        &mut self,
        transpose: Transpose,
        access: AccessId,
        lane: AxisId,
        slot: u32,
        own: &[u8],
    ) -> Done {
        let (lanes, w) = (self.shape.lanes, self.bytes(Kind::W32));
        let mut given = own.iter().map(|register| *register as usize);
        let mut next = || given.next().unwrap_or(0);
        let (a, t) = ([0, 1, next(), next()], [next(), next(), next(), next()]);
        let cursor = frame(self.layout.cursors[access.0 as usize]);
        self.asm.mov(r15, cursor)?;
        self.step_bytes(access, lane)?;
        self.asm.mov(rax, rcx)?;
        self.asm.imul_2(rax, r11)?;
        self.asm.add(r15, rax)?;
        // Four positions across at a time: quarters of rows `k`, `k + 4`, … lie side by side in register `k`.
        for four in 0..lanes / 4 {
            let ahead = 16 * four as i32;
            if transpose == Transpose::Out {
                for (k, register) in a.into_iter().enumerate() {
                    let from = frame(part(slot, 4 * four + k));
                    rm!(self, vmovups, w, register, from);
                }
                self.transpose_quarters(w, a, t)?;
            }
            self.asm.mov(rdx, r15)?;
            self.asm.lea(rax, ptr(r15 + rcx * 4))?;
            for register in a {
                let rows = [ptr(rdx + ahead), ptr(rax + ahead), ptr(rdx + rcx * 8 + ahead), ptr(rax + rcx * 8 + ahead)];
                for (quarter, row) in rows.into_iter().enumerate().take(lanes / 4) {
                    let i = quarter as i32;
                    match (transpose, quarter, w) {
                        (Transpose::In, 0, _) => self.asm.vmovups(X[register], row)?,
                        (Transpose::In, _, 32) => self.asm.vinsertf128(Y[register], Y[register], row, i)?,
                        (Transpose::In, ..) => self.asm.vinsertf32x4(Z[register], Z[register], row, i)?,
                        (Transpose::Out, 0, _) => self.asm.vmovups(row, X[register])?,
                        (Transpose::Out, _, 32) => self.asm.vextractf128(row, Y[register], i)?,
                        (Transpose::Out, ..) => self.asm.vextractf32x4(row, Z[register], i)?,
                    }
                }
                self.asm.add(rdx, rcx)?;
                self.asm.add(rax, rcx)?;
            }
            if transpose == Transpose::In {
                self.transpose_quarters(w, a, t)?;
                for (k, register) in a.into_iter().enumerate() {
                    let to = frame(part(slot, 4 * four + k));
                    mr!(self, vmovups, w, to, register);
                }
            }
        }
        Ok(())
    }

    /// Transposes the four-by-four squares in the quarters of four registers.
    fn transpose_quarters(&mut self, w: usize, a: [usize; 4], t: [usize; 4]) -> Done {
        rrr!(self, vunpcklps, w, t[0], a[0], a[1]);
        rrr!(self, vunpckhps, w, t[1], a[0], a[1]);
        rrr!(self, vunpcklps, w, t[2], a[2], a[3]);
        rrr!(self, vunpckhps, w, t[3], a[2], a[3]);
        rrr!(self, vunpcklpd, w, a[0], t[0], t[2]);
        rrr!(self, vunpckhpd, w, a[1], t[0], t[2]);
        rrr!(self, vunpcklpd, w, a[2], t[1], t[3]);
        rrr!(self, vunpckhpd, w, a[3], t[1], t[3]);
        Ok(())
    }
}
