//! The tile interpreter: runs kernels on any processor, without compiling them.
//!
//! For each row and each phase it walks the lane axis in tiles of up to [`TILE`] positions and computes one instruction
//! after the other over the whole tile, in loops that the Rust compiler turns into vector code. It is the oracle that
//! machine code is tested against, so it prefers the plain way: functions of single precision are computed in double
//! precision and rounded, sums of single precision are kept in double precision.
//!
//! Invariants: every register of a phase has room for a tile; literals and sizes are filled in when a call begins,
//! reduced numbers when a phase begins, and all else for each tile. The pointers of a [`Run`] are at the position that
//! its indices tell, and back at the base when a loop has ended.

#![expect(unsafe_code, reason = "compiled code works on raw memory")]

mod eval;
pub(crate) mod math;
mod memory;
mod reduce;
mod slow;

use std::sync::Arc;

use pyrite_loops::{AxisId, Inst, Kernel, Lanes, Phase, Type};

pub(crate) use self::eval::{Reg, to_i64};
pub(crate) use self::memory::LanePointer;
use self::reduce::Accumulator;
pub(crate) use self::slow::{slow_path_f32, slow_path_f64};
use crate::target::{Target, Unsupported};
use crate::{Call, Code, Fault};

/// How many positions are computed together.
const TILE: usize = 256;

/// Makes a kernel ready for any processor.
pub fn compile(kernel: &Kernel) -> Tiles {
    Tiles { kernel: kernel.clone() }
}

/// The tile interpreter as a target.
#[derive(Clone, Copy, Debug)]
pub struct TileInterpreter;

impl Target for TileInterpreter {
    fn name(&self) -> &'static str {
        "tiles"
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Code>, Unsupported> {
        Ok(Arc::new(compile(kernel)))
    }
}

/// A kernel that is interpreted.
#[derive(Clone, Debug)]
pub struct Tiles {
    kernel: Kernel,
}

impl Code for Tiles {
    // SAFETY: what the trait asks of the caller is all that is relied on.
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), Fault> {
        let kernel = &self.kernel;
        let lane = kernel.rows.last().filter(|_| kernel.lanes == Lanes::Rows).copied();
        let outer = &kernel.rows[..kernel.rows.len() - usize::from(lane.is_some())];
        let mut run = Run::new(kernel, call, lane);
        run.each(outer, &mut |run| match lane {
            None => run.row(1),
            Some(axis) => run.tiles(axis, &mut Run::row),
        })
    }
}

/// The state of a call.
struct Run<'a> {
    kernel: &'a Kernel,
    call: &'a Call<'a>,
    /// The axis that tiles lie along in every phase, if rows lie side by side.
    lane: Option<AxisId>,
    /// Where each access is.
    pointers: Vec<*mut u8>,
    /// The index of each axis, counted from where the call begins.
    at: Vec<i64>,
    /// The values of each phase.
    regs: Vec<Vec<Reg>>,
    /// The reduced numbers; one for each lane, if rows lie side by side.
    results: Vec<Reg>,
    /// What each phase reduces.
    accumulators: Vec<Vec<Accumulator>>,
}

impl<'a> Run<'a> {
    fn new(kernel: &'a Kernel, call: &'a Call<'a>, lane: Option<AxisId>) -> Self {
        let longest = |phase: &Phase| match lane.or(phase.axes.last().copied()) {
            Some(axis) => usize::try_from(call.extents[axis.0 as usize]).unwrap_or(0).min(TILE),
            None => 1,
        };
        let registers = |phase: &Phase| {
            let room = longest(phase);
            phase.code.iter().map(|(value, inst)| Reg::start(inst, phase.code.ty(value), room, call.numbers)).collect()
        };
        let lanes = match lane {
            Some(axis) => usize::try_from(call.extents[axis.0 as usize]).unwrap_or(0).min(TILE),
            None => 1,
        };
        Self {
            kernel,
            call,
            lane,
            pointers: call.bases.to_vec(),
            at: vec![0; kernel.axes.len()],
            regs: kernel.phases.iter().map(registers).collect(),
            results: kernel.results.iter().map(|ty| Reg::zeros(*ty, lanes)).collect(),
            accumulators: kernel
                .phases
                .iter()
                .map(|phase| {
                    phase.reduces.iter().map(|r| Accumulator::new(r.op, phase.code.ty(r.value), lanes)).collect()
                })
                .collect(),
        }
    }

    /// Moves every access along an axis.
    fn advance(&mut self, axis: AxisId, positions: i64) {
        self.at[axis.0 as usize] += positions;
        let axes = self.kernel.axes.len();
        for (index, (pointer, access)) in self.pointers.iter_mut().zip(&self.kernel.accesses).enumerate() {
            let step = self.call.steps[index * axes + axis.0 as usize];
            let bytes = positions.wrapping_mul(step).wrapping_mul(access.dtype.size() as i64);
            *pointer = pointer.wrapping_offset(bytes as isize);
        }
    }

    /// Does something at each position of some axes.
    fn each(&mut self, axes: &[AxisId], f: &mut dyn FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        let Some((&axis, inner)) = axes.split_first() else { return f(self) };
        let extent = self.call.extents[axis.0 as usize].max(0);
        for _ in 0..extent {
            self.each(inner, f)?;
            self.advance(axis, 1);
        }
        self.advance(axis, -extent);
        Ok(())
    }

    /// Does something for each tile of an axis, with the tile's length.
    fn tiles(&mut self, axis: AxisId, f: &mut dyn FnMut(&mut Self, usize) -> Result<(), Fault>) -> Result<(), Fault> {
        let extent = self.call.extents[axis.0 as usize].max(0);
        let mut done = 0;
        while done < extent {
            let len = (extent - done).min(TILE as i64);
            f(self, len as usize)?;
            self.advance(axis, len);
            done += len;
        }
        self.advance(axis, -extent);
        Ok(())
    }

    /// Runs the phases, for one row or for as many as lie side by side.
    fn row(&mut self, rows: usize) -> Result<(), Fault> {
        let kernel = self.kernel;
        for (number, phase) in kernel.phases.iter().enumerate() {
            for (value, inst) in phase.code.iter() {
                if let Inst::Result(result) = inst {
                    let reg = &mut self.regs[number][value.0 as usize];
                    reg.assign(&self.results[result.0 as usize], if self.lane.is_some() { rows } else { 1 });
                }
            }
            self.accumulators[number].iter_mut().for_each(Accumulator::reset);
            match (self.lane, phase.axes.split_last()) {
                (Some(_), _) => self.each(&phase.axes, &mut |run| run.tile(number, rows))?,
                (None, None) => self.tile(number, 1)?,
                (None, Some((&last, outer))) => {
                    self.each(outer, &mut |run| run.tiles(last, &mut |run, len| run.tile(number, len)))?;
                }
            }
            for (reduce, accumulator) in phase.reduces.iter().zip(&self.accumulators[number]) {
                accumulator.finish(&mut self.results[reduce.result.0 as usize]);
            }
        }
        Ok(())
    }

    /// Runs the code of a phase over one tile and reduces what it reduces.
    fn tile(&mut self, number: usize, len: usize) -> Result<(), Fault> {
        let phase = &self.kernel.phases[number];
        let along = self.lane.or(phase.axes.last().copied());
        for (value, inst) in phase.code.iter() {
            let mut out = std::mem::take(&mut self.regs[number][value.0 as usize]);
            let outcome = self.step(number, inst, along, &mut out, len);
            self.regs[number][value.0 as usize] = out;
            outcome?;
        }
        let regs = &self.regs[number];
        for (reduce, accumulator) in phase.reduces.iter().zip(&mut self.accumulators[number]) {
            let index = reduce.index.map(|v| &regs[v.0 as usize]);
            match self.lane {
                Some(_) => accumulator.each(&regs[reduce.value.0 as usize], index, len),
                None => accumulator.all(&regs[reduce.value.0 as usize], index, len),
            }
        }
        Ok(())
    }

    fn step(&self, number: usize, inst: &Inst, along: Option<AxisId>, out: &mut Reg, len: usize) -> Result<(), Fault> {
        let regs = &self.regs[number];
        let reg = |v: pyrite_loops::Val| &regs[v.0 as usize];
        let place = |id: pyrite_loops::AccessId| {
            let index = id.0 as usize;
            let access = &self.kernel.accesses[index];
            let step = along.map_or(0, |a| self.call.steps[index * self.kernel.axes.len() + a.0 as usize]);
            LanePointer { pointer: self.pointers[index], step, dtype: access.dtype }
        };
        match *inst {
            Inst::Const(..) | Inst::Size(_) | Inst::Result(_) => {}
            Inst::Offset(_) => unreachable!("a finished kernel counts by its axes"),
            Inst::Before(result) => {
                let reduces = self.kernel.phases[number].reduces.iter().zip(&self.accumulators[number]);
                reduces.filter(|(reduce, _)| reduce.result == result).for_each(|(_, so_far)| so_far.finish(out));
            }
            Inst::Index(axis) => {
                let first = self.call.begins[axis.0 as usize] + self.at[axis.0 as usize];
                let by = i64::from(along == Some(axis));
                out.count(first, by, len);
            }
            // SAFETY: the caller of the kernel warrants that what its accesses reach is in memory that it owns.
            Inst::Load(access) => unsafe { place(access).load(None, out, len) },
            // SAFETY: as above; the caller warrants it for indices that the kernel has bounded.
            Inst::Gather { access, at } => unsafe { place(access).load(Some(reg(at)), out, len) },
            // SAFETY: as for loads.
            Inst::Store { access, value } => unsafe { place(access).store(reg(value), len) },
            // SAFETY: as for gathers.
            Inst::Scatter { access, at, value, write } => unsafe {
                place(access).scatter(reg(at), reg(value), write, len);
            },
            Inst::Bounded { index, extent } => eval::bounded(reg(index), reg(extent), out, len)?,
            _ => eval::compute(inst, &|v| reg(v), out, len),
        }
        Ok(())
    }
}

impl Default for Reg {
    fn default() -> Self {
        Self::zeros(Type::Bool, 0)
    }
}
