//! Two kernels become one.
//!
//! Kernels are fused when their rows can be made the same, and what the second reads of the first lies within its own
//! row: then a row of the first is computed, stays in the cache or in registers, and is used at once. The rows of a
//! kernel that reduces nothing can be split and handed down to its phases to fit; those of a reduction stay.

use pyrite_loops::{Access, AxisId, BufferId, Direction, Inst, Kernel, Phase, Val};
use pyrite_sym::SymInt;

use crate::axes::{append, normalize, sink, split, with_access};

/// How much code a fused kernel may have.
const MOST_CODE: usize = 400;
/// How many ways through memory a fused kernel may have.
const MOST_ACCESSES: usize = 40;
/// How many rows there must be for the rest of the work to be done one row at a time.
const FEWEST_ROWS: i64 = 4;

/// The two kernels as one, where that is right; `second` runs after `first` or could.
pub fn fused(first: &Kernel, second: &Kernel) -> Option<Kernel> {
    let code = |kernel: &Kernel| kernel.phases.iter().map(|phase| phase.code.len()).sum::<usize>();
    if code(first) + code(second) > MOST_CODE || first.accesses.len() + second.accesses.len() > MOST_ACCESSES {
        return None;
    }
    if scatters(first) || scatters(second) || overlap(&first.written(), &second.written()) {
        return None;
    }
    if overlap(&first.read(), &second.written()) {
        return None;
    }
    if dependence(first, second).is_none() {
        return side_by_side(first, second);
    }
    by_order(first, second).or_else(|| by_steps(first, second))
}

/// Kernels that only read the same are fused where their rows are the same as they stand, and so is what they read:
/// then it is loaded once.
fn side_by_side(first: &Kernel, second: &Kernel) -> Option<Kernel> {
    let rows = first.rows.len();
    let alike = rows == second.rows.len()
        && first.rows.iter().zip(&second.rows).all(|(a, b)| first.extent(*a) == second.extent(*b));
    let shares = first.accesses.iter().any(|a| {
        second.accesses.iter().any(|b| {
            let steps = first.rows.iter().zip(&second.rows).all(|(x, y)| a.step(*x) == b.step(*y));
            a.buffer == b.buffer && a.offset == b.offset && steps
        })
    });
    if alike && shares { joined(first, second, rows) } else { None }
}

/// Whether a kernel writes to places that it computes.
pub fn scatters(kernel: &Kernel) -> bool {
    kernel.phases.iter().any(|phase| phase.code.insts().iter().any(|inst| matches!(inst, Inst::Scatter { .. })))
}

fn overlap(a: &[BufferId], b: &[BufferId]) -> bool {
    a.iter().any(|buffer| b.contains(buffer))
}

/// Pairs rows in their order, splitting those that are too long.
fn by_order(first: &Kernel, second: &Kernel) -> Option<Kernel> {
    let (mut first, mut second) = (first.clone(), second.clone());
    let mut common = 0;
    while common < first.rows.len().min(second.rows.len()) {
        let extents = (first.extent(first.rows[common]).clone(), second.extent(second.rows[common]).clone());
        if extents.0 != extents.1 {
            let (Some(a), Some(b)) = (extents.0.as_int(), extents.1.as_int()) else { break };
            let done = if a > b { split(&mut first, common, b) } else { split(&mut second, common, a) };
            if !done {
                break;
            }
        }
        common += 1;
    }
    // A shorter common part may be right where a longer one is not.
    (0..=common).rev().find_map(|count| joined(&first, &second, count))
}

/// Pairs the rows along which the first writes and the second reads in the same steps, in whatever order.
fn by_steps(first: &Kernel, second: &Kernel) -> Option<Kernel> {
    let (write, read) = dependence(first, second)?;
    let matches = |a: AxisId, b: AxisId| {
        write.step(a) == read.step(b) && write.step(a).as_int() != Some(0) && first.extent(a) == second.extent(b)
    };
    let mut pairs = Vec::new();
    for a in &first.rows {
        if let Some(b) = second.rows.iter().find(|b| matches(*a, **b)) {
            pairs.push((*a, *b));
        }
    }
    let complete = pairs.len() == first.rows.len() || pairs.len() == second.rows.len();
    if pairs.is_empty() || !complete {
        return None;
    }
    let ordered = |kernel: &Kernel, chosen: Vec<AxisId>| {
        let mut kernel = kernel.clone();
        let rest: Vec<AxisId> = kernel.rows.iter().copied().filter(|axis| !chosen.contains(axis)).collect();
        kernel.rows = chosen.into_iter().chain(rest).collect();
        kernel
    };
    let first = ordered(first, pairs.iter().map(|pair| pair.0).collect());
    let second = ordered(second, pairs.iter().map(|pair| pair.1).collect());
    joined(&first, &second, pairs.len())
}

/// A write of the first that the second reads.
fn dependence<'a>(first: &'a Kernel, second: &'a Kernel) -> Option<(&'a Access, &'a Access)> {
    let mut found = None;
    first.each_access(|write, direction| {
        if direction == Direction::Write {
            second.each_access(|read, direction| {
                let (write, read) = (first.access(write), second.access(read));
                if direction == Direction::Read && write.buffer == read.buffer && found.is_none() {
                    found = Some((write, read));
                }
            });
        }
    });
    found
}

/// The kernels with their first rows in common, the others handed down to phases.
fn joined(first: &Kernel, second: &Kernel, common: usize) -> Option<Kernel> {
    let (mut first, mut second) = (first.clone(), second.clone());
    let left = (first.rows.len() - common, second.rows.len() - common);
    if (left.0 > 0 && !first.results.is_empty()) || (left.1 > 0 && !second.results.is_empty()) {
        return None;
    }
    let rows = first.rows[..common].iter().fold(SymInt::Int(1), |n, axis| n * first.extent(*axis));
    if left != (0, 0) && rows.as_int().is_some_and(|rows| rows < FEWEST_ROWS) {
        return None;
    }
    sink(&mut first, common);
    sink(&mut second, common);
    if !is_row_local(&first, &second) {
        return None;
    }
    let pairs: Vec<(AxisId, AxisId)> = first.rows.iter().copied().zip(second.rows.iter().copied()).collect();
    let before = first.phases.len();
    append(&mut first, &second, &pairs);
    first.name = format!("{}_{}", first.name, second.name);
    let mut at = before;
    while at < first.phases.len() {
        if !join_phase(&mut first, at) {
            at += 1;
        }
    }
    drop_unused(&mut first);
    Some(first)
}

/// Whether everything that the second reads of the first is written in the same row. Both have the same rows.
fn is_row_local(first: &Kernel, second: &Kernel) -> bool {
    let mut local = true;
    for (writer, write) in writes(first) {
        second_reads(second, write.buffer, &mut |phase, inst, read| {
            let rows = first.rows.iter().zip(&second.rows).all(|(a, b)| write.step(*a) == read.step(*b));
            let touched = footprint(first, writer, write);
            let within = match inst {
                Inst::Load(_) => touched == footprint(second, phase, read),
                Inst::Gather { at, .. } => {
                    footprint(second, phase, read).is_empty() && is_bounded_by(second, phase, *at, &touched)
                }
                _ => false,
            };
            local &= within && rows && write.offset == read.offset && write.dtype == read.dtype;
        });
    }
    local
}

fn writes(kernel: &Kernel) -> impl Iterator<Item = (&Phase, &Access)> {
    kernel.phases.iter().flat_map(move |phase| {
        let stores = phase.code.insts().iter().filter(|inst| inst.writes()).filter_map(Inst::access);
        stores.map(move |id| (phase, kernel.access(id)))
    })
}

/// Whether a distance stays within a row that was written element by element.
fn is_bounded_by(kernel: &Kernel, phase: &Phase, at: Val, touched: &[(SymInt, SymInt)]) -> bool {
    let ([(extent, step)], Inst::Bounded { extent: bound, .. }) = (touched, phase.code.inst(at)) else { return false };
    let bound = match phase.code.inst(*bound) {
        Inst::Const(pyrite_loops::Number::Int(number), _) => SymInt::Int(*number),
        Inst::Size(number) => kernel.numbers[*number as usize].clone(),
        _ => return false,
    };
    step.as_int() == Some(1) && bound == *extent
}

fn second_reads(kernel: &Kernel, buffer: BufferId, f: &mut dyn FnMut(&Phase, &Inst, &Access)) {
    for phase in &kernel.phases {
        for inst in phase.code.insts() {
            if let (Some(id), false) = (inst.access(), inst.writes())
                && kernel.access(id).buffer == buffer
            {
                f(phase, inst, kernel.access(id));
            }
        }
    }
}

/// What a phase touches through an access within a row: extents and steps, neighbours merged.
fn footprint(kernel: &Kernel, phase: &Phase, access: &Access) -> Vec<(SymInt, SymInt)> {
    let mut found: Vec<(SymInt, SymInt)> = Vec::new();
    for axis in &phase.axes {
        let (extent, step) = (kernel.extent(*axis).clone(), access.step(*axis).clone());
        if step.as_int() == Some(0) {
            continue;
        }
        match found.last_mut() {
            Some((outer, outer_step)) if *outer_step == step.clone() * extent.clone() => {
                *outer = outer.clone() * extent;
                *outer_step = step;
            }
            _ => found.push((extent, step)),
        }
    }
    found
}

/// Moves a phase into an earlier one with the same axes, where nothing between them is in the way; what the earlier one
/// stored is then used without a load.
fn join_phase(kernel: &mut Kernel, at: usize) -> bool {
    let mut target = None;
    for earlier in (0..at).rev() {
        if same_axes(kernel, earlier, at) && fits(kernel, earlier, at) {
            target = Some(earlier);
        }
        if depends(kernel, earlier, at) {
            break;
        }
    }
    let Some(target) = target else { return false };
    let moved = kernel.phases.remove(at);
    let names: Vec<(AxisId, AxisId)> =
        moved.axes.iter().copied().zip(kernel.phases[target].axes.iter().copied()).collect();
    // The accesses of the moved phase go along the axes of the one it joins.
    let rename = |kernel: &mut Kernel, id: pyrite_loops::AccessId| {
        let mut access = kernel.access(id).clone();
        for (old, new) in &names {
            if old != new {
                let step = std::mem::replace(&mut access.steps[old.0 as usize], SymInt::Int(0));
                let slot = &mut access.steps[new.0 as usize];
                *slot = slot.clone() + step;
            }
        }
        kernel.add_access(access)
    };
    let mut code = std::mem::take(&mut kernel.phases[target].code);
    let mut values: Vec<Val> = Vec::with_capacity(moved.code.len());
    for (value, inst) in moved.code.iter() {
        let inst = match *inst {
            Inst::Index(axis) => Inst::Index(names.iter().find(|(old, _)| *old == axis).map_or(axis, |(_, new)| *new)),
            inst => match inst.access() {
                Some(id) => {
                    let id = rename(kernel, id);
                    with_access(inst, &|_| id)
                }
                None => inst,
            },
        };
        let inst = inst.map_operands(&mut |v| values[v.0 as usize]);
        let known = match inst {
            // A buffer is written once, so what was loaded before is still there.
            Inst::Load(id) => code.iter().rev().find_map(|(known, stored)| match *stored {
                Inst::Store { access, value } if access == id => Some(value),
                Inst::Load(access) if access == id => Some(known),
                _ => None,
            }),
            _ => None,
        };
        values.push(known.unwrap_or_else(|| code.push(inst, moved.code.ty(value))));
    }
    let phase = &mut kernel.phases[target];
    phase.code = code;
    phase.reduces.extend(moved.reduces.iter().map(|r| pyrite_loops::Reduce {
        value: values[r.value.0 as usize],
        index: r.index.map(|v| values[v.0 as usize]),
        ..*r
    }));
    true
}

fn same_axes(kernel: &Kernel, a: usize, b: usize) -> bool {
    let (a, b) = (&kernel.phases[a].axes, &kernel.phases[b].axes);
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| kernel.extent(*a) == kernel.extent(*b))
}

/// Whether a phase can run in the same loop as an earlier one: it uses none of its reductions, and reads what it wrote
/// at the same position only.
fn fits(kernel: &Kernel, earlier: usize, later: usize) -> bool {
    let (first, second) = (&kernel.phases[earlier], &kernel.phases[later]);
    if uses_results(first, second) {
        return false;
    }
    let mut fits = true;
    for store in first.code.insts().iter().filter(|inst| inst.writes()).filter_map(Inst::access) {
        let write = kernel.access(store);
        for inst in second.code.insts() {
            let Some(read) = inst.access().map(|id| kernel.access(id)) else { continue };
            if read.buffer == write.buffer && !inst.writes() {
                let rows = kernel.rows.iter().all(|axis| write.step(*axis) == read.step(*axis));
                let own = first.axes.iter().zip(&second.axes).all(|(a, b)| write.step(*a) == read.step(*b));
                let place = write.offset == read.offset && write.dtype == read.dtype;
                fits &= matches!(inst, Inst::Load(_)) && rows && own && place;
            }
        }
    }
    fits
}

fn uses_results(first: &Phase, second: &Phase) -> bool {
    second.code.insts().iter().any(|inst| match inst {
        Inst::Result(result) => first.reduces.iter().any(|reduce| reduce.result == *result),
        _ => false,
    })
}

/// Whether a phase needs an earlier one to be over.
fn depends(kernel: &Kernel, earlier: usize, later: usize) -> bool {
    let (first, second) = (&kernel.phases[earlier], &kernel.phases[later]);
    let written: Vec<BufferId> = first
        .code
        .insts()
        .iter()
        .filter(|inst| inst.writes())
        .filter_map(|inst| inst.access().map(|id| kernel.access(id).buffer))
        .collect();
    let reads = second
        .code
        .insts()
        .iter()
        .any(|inst| !inst.writes() && inst.access().is_some_and(|id| written.contains(&kernel.access(id).buffer)));
    uses_results(first, second) || reads
}

/// Forgets accesses that no code makes.
pub fn drop_unused(kernel: &mut Kernel) {
    let mut used = vec![false; kernel.accesses.len()];
    kernel.each_access(|id, _| used[id.0 as usize] = true);
    let mut names = vec![pyrite_loops::AccessId(0); used.len()];
    let mut kept = Vec::new();
    for (index, access) in std::mem::take(&mut kernel.accesses).into_iter().enumerate() {
        if used[index] {
            names[index] = pyrite_loops::AccessId(kept.len() as u32);
            kept.push(access);
        }
    }
    kernel.accesses = kept;
    for phase in &mut kernel.phases {
        phase.code = crate::code_map::rebuilt(&phase.code, &mut phase.reduces, &mut |inst| {
            Some(with_access(inst, &|id| names[id.0 as usize]))
        });
    }
}

/// A kernel as it came from its operator, ready to be fused.
pub fn prepared(mut kernel: Kernel) -> Kernel {
    normalize(&mut kernel);
    kernel
}
