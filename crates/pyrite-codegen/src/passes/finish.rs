//! The pass `finish-kernels`: the last touches to a kernel, when it is known who uses what it writes.
//!
//! What a row computes for itself alone is computed again where that is cheap, kept in a small buffer of the row where
//! it is not, and stored nowhere in the end if nothing reads it. Then it is decided which positions a vector register
//! holds.

use pyrite_loops::{
    Access, AccessId, AxisId, Binary, Block, BufferId, Direction, Inst, Kernel, Lanes, Phase, Type, Unary, Val,
};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

use super::fuse_kernels::drop_unused;
use super::{Machine, State};
use crate::axes::{merge, split, with_access};
use crate::code_map::{rebuilt, without_dead_code};
use crate::schedule::{Buffer, Op, Origin, Schedule, places};

/// What takes its turn cannot be computed again.
const TURN: usize = 1 << 20;

/// Values that take no more than this are computed again rather than kept.
const CHEAP: usize = 8;

/// Finishes every kernel, now that it is known which buffers only one of them uses.
pub fn finish_all(program: &mut Schedule, state: &mut State<'_, '_>) {
    let parts = &state.parts;
    let mut users: FxHashMap<BufferId, (usize, bool)> = FxHashMap::default();
    let returned: FxHashSet<BufferId> = places(&program.output).into_iter().collect();
    for (at, statement) in program.statements.iter().enumerate() {
        for buffer in statement.op.reads().into_iter().chain(statement.op.writes()) {
            let entry = users.entry(buffer).or_insert((at, true));
            entry.1 &= entry.0 == at;
        }
    }
    let Schedule { buffers, statements, .. } = program;
    let computed: Vec<bool> = buffers.iter().map(|b| b.origin == Origin::Computed).collect();
    for statement in statements.iter_mut() {
        let Op::Loop(kernel) = &mut statement.op else { continue };
        let is_local = |buffer: BufferId| {
            let whole = parts.whole(buffer);
            computed.get(buffer.0 as usize) == Some(&true)
                && users.get(&buffer).is_some_and(|(_, alone)| *alone)
                && (whole == buffer || !users.contains_key(&whole))
                && parts.of(buffer).is_empty()
                && !returned.contains(&whole)
        };
        finish(kernel, state.machine, &is_local, &mut |of, elements| {
            let dtype = buffers[of.0 as usize].dtype;
            buffers.push(Buffer { origin: Origin::Scratch, dtype, elements });
            BufferId(buffers.len() as u32 - 1)
        });
        parts.join(kernel);
    }
    let is_idle = |phase: &Phase| phase.code.is_empty();
    statements.retain(|statement| !matches!(&statement.op, Op::Loop(kernel) if kernel.phases.iter().all(is_idle)));
}

/// Finishes a kernel. `is_local` says of a buffer whether only this kernel uses it; `scratch` makes a buffer of a row.
fn finish(
    kernel: &mut Kernel,
    machine: Machine,
    is_local: &dyn Fn(BufferId) -> bool,
    scratch: &mut dyn FnMut(BufferId, SymInt) -> BufferId,
) {
    inline_phases(kernel, is_local, CHEAP);
    drop_dead_stores(kernel, is_local);
    merge(kernel);
    choose_lanes(kernel, machine);
    if kernel.lanes == Lanes::Phase {
        use_scratch(kernel, is_local, scratch);
    }
    count_offsets(kernel);
    for phase in &mut kernel.phases {
        drop_idle_wraps(phase, &kernel.accesses);
    }
    drop_unused(kernel);
}

/// Rounds what is stored in a half precision and used on, where the end of the chain is looked at closely.
///
/// Arithmetic in a half precision goes on with more digits than it holds. What leaves it, as a conversion or a comparison
/// does, begins with an [`Inst::Wrap`]: then every value on the way is rounded where a program that stores it would.
fn round_observed(kernel: &mut Kernel) {
    let halves: Vec<bool> = kernel.accesses.iter().map(|access| is_half(access.dtype)).collect();
    let accesses = kernel.accesses.clone();
    let observed = |phase: &Phase, value: Val| match *phase.code.inst(value) {
        Inst::Wrap(to, of) if is_half(to) => Some(of),
        _ => None,
    };
    let mut buffers: FxHashSet<BufferId> = FxHashSet::default();
    for phase in &kernel.phases {
        for (value, _) in phase.code.iter() {
            if let Some(of) = observed(phase, value)
                && let Inst::Load(access) = *phase.code.inst(of)
            {
                buffers.insert(accesses[access.0 as usize].buffer);
            }
        }
    }
    for phase in &mut kernel.phases {
        let mut is_seen = vec![false; phase.code.len()];
        for (value, inst) in phase.code.iter().rev() {
            let ends = match *inst {
                Inst::Store { access, value } if buffers.contains(&accesses[access.0 as usize].buffer) => Some(value),
                _ => observed(phase, value),
            };
            if let Some(of) = ends {
                is_seen[of.0 as usize] = true;
            } else if is_seen[value.0 as usize] {
                inst.each_operand(|of| is_seen[of.0 as usize] = true);
            }
        }
        if !is_seen.contains(&true) {
            continue;
        }
        let mut code = Block::default();
        let mut values: Vec<Val> = Vec::with_capacity(phase.code.len());
        for (value, inst) in phase.code.iter() {
            values.push(code.push(inst.map_operands(&mut |v| values[v.0 as usize]), phase.code.ty(value)));
            if let Inst::Store { access, value: stored } = *inst
                && halves[access.0 as usize]
                && is_seen[stored.0 as usize]
            {
                let at = values[stored.0 as usize];
                values[stored.0 as usize] = code.wrap(accesses[access.0 as usize].dtype, at);
            }
        }
        for reduce in &mut phase.reduces {
            reduce.value = values[reduce.value.0 as usize];
            reduce.index = reduce.index.map(|index| values[index.0 as usize]);
        }
        phase.code = code;
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Forgets to bring values to a type that they have already: they were just loaded in it, or brought to it.
fn drop_idle_wraps(phase: &mut Phase, accesses: &[Access]) {
    let mut code = Block::default();
    let mut values: Vec<Val> = Vec::with_capacity(phase.code.len());
    for (value, inst) in phase.code.iter() {
        let inst = inst.map_operands(&mut |v| values[v.0 as usize]);
        let idle = match inst {
            Inst::Wrap(to, of) => match *code.inst(of) {
                Inst::Wrap(before, _) => before == to,
                Inst::Load(access) | Inst::Gather { access, .. } => accesses[access.0 as usize].dtype == to,
                _ => false,
            }
            .then_some(of),
            _ => None,
        };
        values.push(idle.unwrap_or_else(|| code.push(inst, phase.code.ty(value))));
    }
    for reduce in &mut phase.reduces {
        reduce.value = values[reduce.value.0 as usize];
        reduce.index = reduce.index.map(|index| values[index.0 as usize]);
    }
    phase.code = code;
}

/// Counts by the axes what was counted along with them.
fn count_offsets(kernel: &mut Kernel) {
    for at in 0..kernel.phases.len() {
        if !kernel.phases[at].code.insts().iter().any(|inst| matches!(inst, Inst::Offset(_))) {
            continue;
        }
        let mut phase = std::mem::take(&mut kernel.phases[at]);
        let mut code = Block::default();
        let mut values: Vec<Val> = Vec::with_capacity(phase.code.len());
        for (value, inst) in phase.code.iter() {
            values.push(match *inst {
                Inst::Offset(access) => counted(kernel, access, &mut code),
                inst => code.push(inst.map_operands(&mut |v| values[v.0 as usize]), phase.code.ty(value)),
            });
        }
        phase.code = code;
        for reduce in &mut phase.reduces {
            reduce.value = values[reduce.value.0 as usize];
            reduce.index = reduce.index.map(|v| values[v.0 as usize]);
        }
        kernel.phases[at] = phase;
    }
}

/// Which element an access is at, by the indices of the axes.
fn counted(kernel: &mut Kernel, access: AccessId, code: &mut Block) -> Val {
    let Access { offset, steps, .. } = kernel.access(access).clone();
    let mut number = |code: &mut Block, size: &SymInt| {
        if let Some(size) = size.as_int() {
            return code.integer(size, Type::I64);
        }
        let number = kernel.add_number(size.clone());
        code.push(Inst::Size(number), Type::I64)
    };
    let mut sum = (offset.as_int() != Some(0)).then(|| number(code, &offset));
    for (axis, step) in steps.iter().enumerate().filter(|(_, step)| step.as_int() != Some(0)) {
        let mut term = code.push(Inst::Index(AxisId(axis as u32)), Type::I64);
        if step.as_int() != Some(1) {
            let step = number(code, step);
            term = code.binary(Binary::Mul, term, step);
        }
        sum = Some(sum.map_or(term, |sum| code.binary(Binary::Add, sum, term)));
    }
    sum.unwrap_or_else(|| code.integer(0, Type::I64))
}

/// Computes again, in each phase, what earlier phases stored for the row, where that costs no more than `cheap`. Halves are rounded
/// first where that is observed.
pub(super) fn inline_phases(kernel: &mut Kernel, is_local: &dyn Fn(BufferId) -> bool, cheap: usize) {
    round_observed(kernel);
    for at in 1..kernel.phases.len() {
        inline_loads(kernel, at, is_local, cheap);
    }
}

/// The same in one phase.
fn inline_loads(kernel: &mut Kernel, at: usize, is_local: &dyn Fn(BufferId) -> bool, cheap: usize) {
    let later = kernel.phases[at].clone();
    let mut code = Block::default();
    let mut values: Vec<Val> = Vec::with_capacity(later.code.len());
    for (value, inst) in later.code.iter() {
        let again = match *inst {
            Inst::Load(id) => stored_before(kernel, at, id).filter(|(earlier, stored, names)| {
                let buffer = kernel.access(id).buffer;
                let phase = &kernel.phases[*earlier];
                let scalar = phase.axes.is_empty() && !phase.is_ordered();
                cost(&phase.code, *stored) <= if scalar { usize::MAX } else { cheap }
                    && (scalar || is_local(buffer))
                    && names.len() == phase.axes.len()
            }),
            _ => None,
        };
        if let (Inst::Gather { access, at: index }, true) = (*inst, later.axes.is_empty())
            && let Some(value) = picked(kernel, at, access, values[index.0 as usize], &mut code)
        {
            values.push(value);
            continue;
        }
        values.push(match again {
            Some((earlier, stored, names)) => copy_value(kernel, earlier, stored, &names, &mut code),
            None => code.push(inst.map_operands(&mut |v| values[v.0 as usize]), later.code.ty(value)),
        });
    }
    let phase = &mut kernel.phases[at];
    phase.code = code;
    for reduce in &mut phase.reduces {
        reduce.value = values[reduce.value.0 as usize];
        reduce.index = reduce.index.map(|v| values[v.0 as usize]);
    }
}

/// Computes, for one position, what an earlier phase stored for a whole row: its loads become gathers.
fn picked(kernel: &mut Kernel, at: usize, read: AccessId, index: Val, into: &mut Block) -> Option<Val> {
    let buffer = kernel.access(read).buffer;
    let (earlier, stored) = (0..at).rev().find_map(|earlier| {
        let stored = kernel.phases[earlier].code.insts().iter().find_map(|inst| match *inst {
            Inst::Store { access, value } if kernel.access(access).buffer == buffer => Some(value),
            _ => None,
        })?;
        Some((earlier, stored))
    })?;
    let [axis] = kernel.phases[earlier].axes[..] else { return None };
    let code = kernel.phases[earlier].code.clone();
    let needed = needed_for(&code, stored);
    let plain = code.iter().filter(|(value, _)| needed[value.0 as usize]).all(|(_, inst)| match *inst {
        Inst::Load(access) => matches!(kernel.access(access).step(axis).as_int(), Some(0 | 1)),
        Inst::Gather { .. } | Inst::Offset(_) | Inst::Before(_) => false,
        _ => true,
    });
    if !plain {
        return None;
    }
    let mut copies: Vec<Option<Val>> = vec![None; code.len()];
    for (old, inst) in code.iter().filter(|(value, _)| needed[value.0 as usize]) {
        let copy = match *inst {
            Inst::Index(own) if own == axis => index,
            Inst::Load(id) if kernel.access(id).step(axis).as_int() == Some(1) => {
                let mut access = kernel.access(id).clone();
                access.steps[axis.0 as usize] = SymInt::Int(0);
                let access = kernel.add_access(access);
                into.push(Inst::Gather { access, at: index }, code.ty(old))
            }
            inst => into.push(inst.map_operands(&mut |v| copies[v.0 as usize].unwrap_or(v)), code.ty(old)),
        };
        copies[old.0 as usize] = Some(copy);
    }
    copies[stored.0 as usize]
}

/// Which values a value is computed from, itself included.
pub fn needed_for(code: &Block, value: Val) -> Vec<bool> {
    let mut needed = vec![false; code.len()];
    needed[value.0 as usize] = true;
    for (value, inst) in code.iter().rev() {
        if needed[value.0 as usize] {
            inst.each_operand(|v| needed[v.0 as usize] = true);
        }
    }
    needed
}

/// The earlier phase that stored what a phase loads at the same position, the value, and which axis is which.
fn stored_before(kernel: &Kernel, at: usize, load: AccessId) -> Option<(usize, Val, Vec<(AxisId, AxisId)>)> {
    let read = kernel.access(load);
    let later = &kernel.phases[at];
    for earlier in (0..at).rev() {
        let phase = &kernel.phases[earlier];
        for inst in phase.code.insts() {
            let Inst::Store { access, value } = *inst else { continue };
            let write = kernel.access(access);
            if write.buffer != read.buffer {
                continue;
            }
            let rows = kernel.rows.iter().all(|axis| write.step(*axis) == read.step(*axis));
            if !rows || write.offset != read.offset || write.dtype != read.dtype {
                return None;
            }
            if phase.axes.is_empty() {
                let still = later.axes.iter().all(|axis| read.step(*axis).as_int() == Some(0));
                return still.then(|| (earlier, value, Vec::new()));
            }
            let same = phase.axes.len() == later.axes.len()
                && phase
                    .axes
                    .iter()
                    .zip(&later.axes)
                    .all(|(a, b)| kernel.extent(*a) == kernel.extent(*b) && write.step(*a) == read.step(*b));
            let names = phase.axes.iter().copied().zip(later.axes.iter().copied()).collect();
            return same.then_some((earlier, value, names));
        }
    }
    None
}

/// Roughly how many cycles the value takes, loads included.
pub fn cost(code: &Block, value: Val) -> usize {
    let needed = needed_for(code, value);
    let mut sum = 0;
    for (_, inst) in code.iter().filter(|(value, _)| needed[value.0 as usize]) {
        sum += match inst {
            Inst::Const(..) | Inst::Result(_) | Inst::Size(_) | Inst::Index(_) | Inst::Offset(_) => 0,
            Inst::Unary(Unary::Neg | Unary::Abs | Unary::Not, _) => 1,
            Inst::Unary(..) | Inst::Gather { .. } => 20,
            Inst::Before(_) => TURN,
            Inst::Binary(Binary::Div | Binary::Pow | Binary::Fmod | Binary::Atan2 | Binary::Draw, ..) => 20,
            Inst::Load(_) => 2,
            _ => 1,
        };
    }
    sum
}

/// Copies a value of an earlier phase, with all it needs, into the code of another.
fn copy_value(kernel: &mut Kernel, earlier: usize, value: Val, names: &[(AxisId, AxisId)], into: &mut Block) -> Val {
    let code = kernel.phases[earlier].code.clone();
    let needed = needed_for(&code, value);
    let mut copies: Vec<Option<Val>> = vec![None; code.len()];
    for (old, inst) in code.iter() {
        if !needed[old.0 as usize] {
            continue;
        }
        let inst = match *inst {
            Inst::Index(axis) => Inst::Index(names.iter().find(|(from, _)| *from == axis).map_or(axis, |(_, to)| *to)),
            inst => match inst.access() {
                Some(id) => {
                    let mut access = kernel.access(id).clone();
                    for (from, to) in names {
                        if from != to {
                            let step = std::mem::replace(&mut access.steps[from.0 as usize], SymInt::Int(0));
                            let slot = &mut access.steps[to.0 as usize];
                            *slot = slot.clone() + step;
                        }
                    }
                    let id = kernel.add_access(access);
                    with_access(inst, &|_| id)
                }
                None => inst,
            },
        };
        let inst = inst.map_operands(&mut |v| copies[v.0 as usize].unwrap_or(v));
        copies[old.0 as usize] = Some(into.push(inst, code.ty(old)));
    }
    copies[value.0 as usize].unwrap_or(value)
}

/// Removes stores that nothing reads, and what was computed for them alone.
fn drop_dead_stores(kernel: &mut Kernel, is_local: &dyn Fn(BufferId) -> bool) {
    loop {
        let read = kernel.read();
        let before: usize = kernel.phases.iter().map(|phase| phase.code.len()).sum();
        let accesses = kernel.accesses.clone();
        for phase in &mut kernel.phases {
            let code = rebuilt(&phase.code, &mut phase.reduces, &mut |inst| match inst {
                Inst::Store { access, .. } => {
                    let buffer = accesses[access.0 as usize].buffer;
                    (!is_local(buffer) || read.contains(&buffer)).then_some(inst)
                }
                inst => Some(inst),
            });
            phase.code = code;
        }
        drop_dead_results(kernel);
        for phase in &mut kernel.phases {
            phase.code = without_dead_code(&phase.code, &mut phase.reduces);
        }
        kernel.phases.retain(|phase| !phase.code.is_empty());
        if kernel.phases.iter().map(|phase| phase.code.len()).sum::<usize>() == before {
            return;
        }
    }
}

/// Forgets reductions whose result nothing uses.
fn drop_dead_results(kernel: &mut Kernel) {
    let mut used = vec![false; kernel.results.len()];
    for inst in kernel.phases.iter().flat_map(|phase| phase.code.insts()) {
        if let Inst::Result(result) | Inst::Before(result) = inst {
            used[result.0 as usize] = true;
        }
    }
    for phase in &mut kernel.phases {
        phase.reduces.retain(|reduce| used[reduce.result.0 as usize]);
    }
}

/// Decides which positions go side by side, and gives pointwise phases the last row as an axis of their own.
fn choose_lanes(kernel: &mut Kernel, machine: Machine) {
    if kernel.phases.iter().any(Phase::is_ordered) {
        if kernel.rows.is_empty() {
            let only = kernel.add_axis(SymInt::Int(1));
            kernel.rows.push(only);
        }
        kernel.lanes = Lanes::Rows;
        return;
    }
    let reduces = kernel.phases.iter().any(|phase| !phase.reduces.is_empty());
    if !reduces && kernel.phases.iter().all(|phase| phase.axes.is_empty()) {
        if let Some(last) = best_row(kernel) {
            // On a GPU blocks of threads take tiles.
            let last = if machine == Machine::Cpu { in_blocks(kernel, last) } else { last };
            let axis = kernel.rows.remove(last);
            for phase in &mut kernel.phases {
                phase.axes.push(axis);
            }
        }
        kernel.lanes = Lanes::Phase;
        return;
    }
    let runs = |axis: AxisId, phase: &Phase| {
        phase
            .code
            .insts()
            .iter()
            .filter_map(Inst::access)
            .map(|id| match kernel.access(id).step(axis).as_int() {
                Some(1) => 2,
                Some(0) => 0,
                _ => -4,
            })
            .sum::<i64>()
    };
    let along_phases: i64 =
        kernel.phases.iter().filter_map(|phase| phase.axes.last().map(|axis| runs(*axis, phase))).sum();
    let along_rows: i64 = match kernel.rows.last() {
        Some(axis) => kernel.phases.iter().map(|phase| runs(*axis, phase)).sum(),
        None => i64::MIN,
    };
    kernel.lanes = if along_rows > along_phases { Lanes::Rows } else { Lanes::Phase };
}

/// How many positions of the lanes' axis are run through before the next row, where something is read across.
const BLOCK: i64 = 64;

/// Cuts the axis of the lanes into blocks where an access goes element by element along another row: the rows of a
/// block are then run through while what they read across is in the cache. Returns where the lanes' axis is now.
fn in_blocks(kernel: &mut Kernel, lanes: usize) -> usize {
    let axis = kernel.rows[lanes];
    let across = |access: &Access| {
        let far = access.step(axis).as_int().is_some_and(|step| step.abs() > 1);
        let row = kernel.rows.iter().position(|row| access.step(*row).as_int() == Some(1));
        if far { row } else { None }
    };
    let Some(row) = kernel.accesses.iter().find_map(across) else { return lanes };
    let Some(extent) = kernel.extent(axis).as_int() else { return lanes };
    if extent <= BLOCK || !split(kernel, lanes, extent / BLOCK) {
        return lanes;
    }
    let blocks = kernel.rows.remove(lanes);
    kernel.rows.insert(row, blocks);
    kernel.rows.iter().position(|known| *known == axis).unwrap_or(lanes)
}

/// Positions of a row from which on it counts as long: vectors of shorter ones are mostly empty.
const LONG: i64 = 8;

/// The row along which most accesses go element by element, writes above all, weighed by its length if it is short; the
/// last of equals.
fn best_row(kernel: &Kernel) -> Option<usize> {
    let score = |axis: &AxisId| {
        let mut score = 0;
        kernel.each_access(|id, direction| {
            let weight = if direction == Direction::Write { 3 } else { 2 };
            score += match kernel.access(id).step(*axis).as_int() {
                Some(1) => weight,
                Some(0) => 1,
                _ => 0,
            };
        });
        score * kernel.extent(*axis).as_int().map_or(LONG, |extent| extent.clamp(1, LONG))
    };
    (0..kernel.rows.len()).max_by_key(|index| (score(&kernel.rows[*index]), *index))
}

/// Lets buffers that only this kernel uses hold one row.
fn use_scratch(
    kernel: &mut Kernel,
    is_local: &dyn Fn(BufferId) -> bool,
    scratch: &mut dyn FnMut(BufferId, SymInt) -> BufferId,
) {
    for buffer in kernel.written() {
        if !is_local(buffer) {
            continue;
        }
        // Every phase that touches the buffer must go through it in the same loops.
        let users: Vec<(usize, AccessId)> = kernel
            .phases
            .iter()
            .enumerate()
            .flat_map(|(at, phase)| phase.code.insts().iter().map(move |inst| (at, inst)))
            .filter(|(_, inst)| inst.access().is_some_and(|id| kernel.access(id).buffer == buffer))
            .filter_map(|(at, inst)| Some((at, inst.access()?)))
            .collect();
        let Some((first, _)) = users.first().copied() else { continue };
        let shape: Vec<SymInt> = kernel.phases[first].axes.iter().map(|axis| kernel.extent(*axis).clone()).collect();
        let alike = users.iter().all(|(at, id)| {
            let axes = &kernel.phases[*at].axes;
            let access = kernel.access(*id);
            axes.len() == shape.len()
                && axes.iter().zip(&shape).all(|(axis, extent)| kernel.extent(*axis) == extent)
                && axes.iter().all(|axis| access.step(*axis).as_int() != Some(0))
        });
        let direct = kernel.phases.iter().all(|phase| {
            phase.code.insts().iter().all(|inst| {
                let here = inst.access().is_some_and(|id| kernel.access(id).buffer == buffer);
                !here || matches!(inst, Inst::Load(_) | Inst::Store { .. })
            })
        });
        if !alike || !direct {
            continue;
        }
        let size = shape.iter().fold(SymInt::Int(1), |n, extent| n * extent);
        let small = scratch(buffer, size);
        for (at, id) in users {
            let mut steps = vec![SymInt::Int(0); kernel.axes.len()];
            let mut step = SymInt::Int(1);
            for axis in kernel.phases[at].axes.clone().iter().rev() {
                steps[axis.0 as usize] = step.clone();
                step = step * kernel.extent(*axis);
            }
            let access = Access { buffer: small, offset: SymInt::Int(0), steps, ..kernel.access(id).clone() };
            let new = kernel.add_access(access);
            let phase = &mut kernel.phases[at];
            phase.code = rebuilt(&phase.code, &mut phase.reduces, &mut |inst| {
                Some(if inst.access() == Some(id) { with_access(inst, &|_| new) } else { inst })
            });
        }
    }
}
