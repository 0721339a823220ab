//! The pass `split-reductions`, for GPUs: a long reduction of few rows becomes two kernels.
//!
//! A row is reduced by one block of threads, or by the warps of one where rows lie side by side. Where there are fewer of these
//! than a device has room for, the first kernel reduces parts of each row, and the second one what they gave, in the order of
//! the parts: results depend on sizes alone. Sums of single precision stay in double precision between the two. Only
//! kernels of known sizes are split, along an axis whose extent has a fitting divisor.

use pyrite_loops::{Access, AxisId, Block, BufferId, Inst, Kernel, Lanes, Phase, Reduce, Reduction, Type, Val};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::State;
use super::fuse_kernels::drop_unused;
use crate::axes::is_counted;
use crate::code_map::rebuilt_by;
use crate::schedule::{Buffer, Op, Origin, Schedule, Statement};

/// How many blocks keep a large device busy.
const BLOCKS: i64 = 1056;
/// How many rows side by side a block has.
const COLUMNS: i64 = 32;
/// The fewest positions of a part, where rows lie side by side and where they do not.
const FEWEST: [i64; 2] = [64, 2048];
/// The most positions of a part that stays in registers.
const MOST: i64 = 16384;
/// Fewer elements than this are reduced at once.
const SMALL: i64 = 1 << 19;

/// Splits the reductions of a program.
pub fn split_reductions(program: &mut Schedule, state: &mut State<'_, '_>) {
    let Schedule { buffers, statements, .. } = program;
    let mut placed: Vec<Statement> = Vec::with_capacity(statements.len());
    for statement in statements.drain(..) {
        let Op::Loop(kernel) = &statement.op else {
            placed.push(statement);
            continue;
        };
        let decision = format!("split-reduction {}", kernel.name);
        match parts(kernel) {
            Some(parts) if state.decisions.allow(&decision) => {
                let (first, mut second) = split(kernel, parts, buffers);
                state.decisions.made(&decision, &mut second);
                placed.push(Op::Loop(first).into());
                placed.push(Op::Loop(second).into());
            }
            _ => placed.push(statement),
        }
    }
    *statements = placed;
}

/// Into how many parts the rows of a kernel are split; nothing if they are not.
fn parts(kernel: &Kernel) -> Option<i64> {
    let (first, later) = kernel.phases.split_first()?;
    let axis = *first.axes.first()?;
    let splittable = !first.reduces.is_empty()
        && first.reduces.iter().all(|reduce| reduce.index.is_none())
        && !first.is_ordered()
        && later.iter().all(|phase| phase.axes.is_empty())
        && !is_counted(kernel, axis);
    let product = |axes: &[AxisId]| axes.iter().map(|axis| kernel.extent(*axis).as_int()).product::<Option<i64>>();
    let (rows, positions, extent) = (product(&kernel.rows)?, product(&first.axes)?, kernel.extent(axis).as_int()?);
    if !splittable || rows.checked_mul(positions)? < SMALL {
        return None;
    }
    let (wanted, fewest) = match kernel.lanes {
        Lanes::Rows => (BLOCKS / ((rows + COLUMNS - 1) / COLUMNS), FEWEST[0]),
        Lanes::Phase if rows * 4 > BLOCKS => return None,
        Lanes::Phase => ((BLOCKS / rows).max(positions / MOST), FEWEST[1]),
    };
    let most = wanted.min(positions / fewest);
    (2..=most).rev().find(|parts| extent % parts == 0)
}

/// What holds a reduced number between the kernels.
fn between(reduce: &Reduce, ty: Type) -> (Type, DType) {
    match (reduce.op, ty) {
        (Reduction::Sum, Type::F32) | (_, Type::F64) => (Type::F64, DType::F64),
        (_, Type::F32) => (Type::F32, DType::F32),
        (_, Type::I32) => (Type::I32, DType::I32),
        (_, Type::I64) => (Type::I64, DType::I64),
        (_, Type::Bool) => (Type::Bool, DType::Bool),
    }
}

/// The two kernels.
fn split(kernel: &Kernel, parts: i64, buffers: &mut Vec<Buffer>) -> (Kernel, Kernel) {
    let mut first = kernel.clone();
    let mut phase = first.phases[0].clone();
    let axis = phase.axes[0];
    let inner = kernel.extent(axis).as_int().unwrap_or(parts) / parts;
    let part = first.add_axis(parts.into());
    first.axes[axis.0 as usize].extent = inner.into();
    for access in &mut first.accesses {
        access.steps[part.0 as usize] = access.step(axis).clone() * SymInt::Int(inner);
    }
    let side_by_side = kernel.lanes == Lanes::Rows;
    let at = if side_by_side { 0 } else { first.rows.len() };
    first.rows.insert(at, part);
    first.name = format!("{}_parts", kernel.name);
    let rows: i64 = kernel.rows.iter().filter_map(|row| kernel.extent(*row).as_int()).product();
    // Where a part of a row lies: parts behind each other for rows side by side, else those of a row together.
    let place = |of: &Kernel, part: AxisId, buffer: BufferId, dtype: DType| {
        let mut steps = vec![SymInt::Int(0); of.axes.len()];
        let mut step = if side_by_side { 1 } else { parts };
        for row in kernel.rows.iter().rev() {
            steps[row.0 as usize] = step.into();
            step *= kernel.extent(*row).as_int().unwrap_or(1);
        }
        steps[part.0 as usize] = if side_by_side { rows } else { 1 }.into();
        Access { buffer, dtype, offset: 0.into(), steps }
    };
    let mut second = kernel.clone();
    let again = second.add_axis(parts.into());
    let (mut stores, mut reducing) = (Phase::default(), Phase { axes: vec![again], ..Phase::default() });
    let mut wide = Vec::new();
    for reduce in &mut phase.reduces {
        let ty = phase.code.ty(reduce.value);
        let (kept, dtype) = between(reduce, ty);
        if kept != ty {
            reduce.value = phase.code.push(Inst::Cast(kept, reduce.value), kept);
            wide.push((reduce.result, ty));
        }
        first.results[reduce.result.0 as usize] = kept;
        second.results[reduce.result.0 as usize] = kept;
        let buffer = BufferId(buffers.len() as u32);
        buffers.push(Buffer { origin: Origin::Computed, dtype, elements: (rows * parts).into() });
        let access = first.add_access(place(&first, part, buffer, dtype));
        let value = stores.code.push(Inst::Result(reduce.result), kept);
        stores.code.push(Inst::Store { access, value }, kept);
        let access = second.add_access(place(&second, again, buffer, dtype));
        let value = reducing.code.push(Inst::Load(access), kept);
        reducing.reduces.push(Reduce { op: reduce.op, value, index: None, result: reduce.result });
    }
    first.phases = vec![phase, stores];
    second.phases[0] = reducing;
    for phase in second.phases.iter_mut().skip(1) {
        let code = std::mem::take(&mut phase.code);
        phase.code = rebuilt_by(&code, &mut phase.reduces, &mut |code: &mut Block, ty: Type, inst| -> Val {
            match inst {
                Inst::Result(result) if wide.iter().any(|(known, _)| *known == result) => {
                    let value = code.push(inst, Type::F64);
                    code.push(Inst::Cast(ty, value), ty)
                }
                inst => code.push(inst, ty),
            }
        });
    }
    drop_unused(&mut first);
    drop_unused(&mut second);
    (first, second)
}
