//! How many lanes a kernel has, and which of its values are the same in all of them.

use pyrite_loops::{AccessId, AxisId, Inst, Kernel, Phase, Type, Val};

use super::Width;
use super::vector::Kind;

/// How many lanes a kernel has, and along what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) width: Width,
    pub(super) lanes: usize,
    /// The axis of the rows that lies along the lanes, if rows lie side by side.
    pub(super) rows: Option<AxisId>,
}

impl Shape {
    pub(super) fn new(kernel: &Kernel, width: Width, rows: Option<AxisId>) -> Self {
        let wide = kernel.phases.iter().any(|phase| {
            let lane = rows.or(phase.axes.last().copied());
            needs_wide_lanes(kernel, phase, lane)
        });
        Self { width, lanes: width.bytes() / if wide { 8 } else { 4 }, rows }
    }

    /// How many bytes a value of a kind takes.
    pub(super) fn bytes(&self, kind: Kind) -> usize {
        match kind {
            Kind::W64 => (self.lanes * 8).min(self.width.bytes()),
            Kind::W32 | Kind::Mask => self.lanes * 4,
        }
    }

    /// Whether a 64-bit value has fewer lanes than the kernel.
    pub(super) fn is_narrow(&self, kind: Kind) -> bool {
        kind == Kind::W64 && self.lanes * 8 > self.width.bytes()
    }
}

/// Which values are the same in all lanes.
pub(super) fn uniform(kernel: &Kernel, phase: &Phase, lane: Option<AxisId>, rows: bool) -> Vec<bool> {
    let mut uniform: Vec<bool> = Vec::with_capacity(phase.code.len());
    for (_, inst) in phase.code.iter() {
        let own = match *inst {
            Inst::Load(access) | Inst::Gather { access, .. } => stays(kernel, access, lane),
            Inst::Index(axis) => lane != Some(axis),
            Inst::Result(_) | Inst::Before(_) => !rows,
            Inst::Store { .. } | Inst::Scatter { .. } => false,
            _ => true,
        };
        let mut all = own;
        inst.each_operand(|v| all &= uniform[v.0 as usize]);
        uniform.push(all);
    }
    uniform
}

/// Whether an access is at the same element in all positions of an axis.
pub(super) fn stays(kernel: &Kernel, access: AccessId, axis: Option<AxisId>) -> bool {
    axis.is_none_or(|axis| kernel.access(access).step(axis).as_int() == Some(0))
}

fn needs_wide_lanes(kernel: &Kernel, phase: &Phase, lane: Option<AxisId>) -> bool {
    let uniform = uniform(kernel, phase, lane, kernel.lanes == pyrite_loops::Lanes::Rows);
    let wide = |v: Val| phase.code.ty(v).bytes() == 8;
    let steps_by_one = |access: AccessId| lane.is_some_and(|a| kernel.access(access).step(a).as_int() == Some(1));
    phase.code.iter().any(|(value, inst)| match *inst {
        Inst::Scatter { access, at, value, .. } => {
            wide(value) || !uniform[at.0 as usize] || !steps_by_one(access) || phase.code.ty(value) == Type::Bool
        }
        Inst::Store { access, .. } => wide(value) && !stays(kernel, access, lane),
        Inst::Gather { access, at } => {
            wide(value) && !uniform[value.0 as usize]
                || !uniform[at.0 as usize]
                || !(stays(kernel, access, lane) || steps_by_one(access))
        }
        _ => wide(value) && !uniform[value.0 as usize],
    }) || phase.reduces.iter().any(|r| wide(r.value) || r.index.is_some())
}
