//! The pass `fuse-column-sums`, for GPUs: sums over the columns of matrices that a kernel reads row by row anyway.
//!
//! The gradients of a norm are a kernel for the rows, whose blocks keep a row in registers, and sums over all rows for the
//! parameters. Both read the same matrices. One kernel reads them once: a block takes some neighbouring rows, adds its part of
//! the sums up in registers, and a second kernel adds up what the blocks gave, in their order.
//!
//! The sums of a block are adding scatters without an index to memory that begins as zero. That is what every reader of
//! kernels makes of it; the PTX of a kernel that keeps its rows ([`pyrite_ptx::keeps_rows`]) adds in registers, since such a
//! scatter stays where it is from row to row.

use pyrite_loops::{Access, BufferId, Inst, Kernel, Lanes, Number, Phase, Reduction, Type, Write};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::State;
use super::fuse_kernels::drop_unused;
use crate::axes::{append, is_counted, split};
use crate::schedule::{Buffer, Op, Origin, Schedule, Statement};

/// Fewer elements than this are read twice.
const SMALL: i64 = 1 << 20;
/// How many blocks take rows of so many elements on a large device: one for each multiprocessor, which loads a row ahead.
const BLOCKS: (i64, i64) = (132, 4096);
/// The fewest rows of a block, so that what it gives is little beside what it reads.
const FEWEST_ROWS: i64 = 4;

/// Fuses the column sums of a program with kernels of the same rows.
pub fn fuse_column_sums(program: &mut Schedule, state: &mut State<'_, '_>) {
    let mut at = 0;
    while at < program.statements.len() {
        let found = (0..program.statements.len()).find_map(|other| {
            let (Op::Loop(sums), Op::Loop(rows)) = (&program.statements[at].op, &program.statements[other].op) else {
                return None;
            };
            let parts = parts(sums, rows)?;
            let decision = format!("fuse-column-sums {} with {}", sums.name, rows.name);
            let fits = may_meet(&program.statements, at.min(other), at.max(other))
                && pyrite_ptx::keeps_rows(&fused(sums, rows, parts, &mut program.buffers.len()).1);
            (fits && state.decisions.allow(&decision)).then_some((other, parts, decision))
        });
        let Some((other, parts, decision)) = found else {
            at += 1;
            continue;
        };
        let (Op::Loop(sums), Op::Loop(rows)) = (&program.statements[at].op, &program.statements[other].op) else {
            return;
        };
        let mut next = program.buffers.len();
        let (zeros, mut both, last) = fused(sums, rows, parts, &mut next);
        state.decisions.made(&decision, &mut both);
        let elements: SymInt = zeros.axes[0].extent.clone();
        while program.buffers.len() < next {
            program.buffers.push(Buffer { origin: Origin::Computed, dtype: DType::F32, elements: elements.clone() });
        }
        let (first, second) = (at.min(other), at.max(other));
        let made = [zeros, both, last].map(|kernel| Op::Loop(kernel).into());
        program.statements.splice(second..=second, made);
        program.statements.remove(first);
        at = first;
    }
}

/// Whether a statement may run right before a later one instead: nothing in between, nor that one, uses what it writes or
/// writes what it reads.
fn may_meet(statements: &[Statement], first: usize, second: usize) -> bool {
    let (reads, writes) = (statements[first].op.reads(), statements[first].op.writes());
    let touches = |statement: &Statement| {
        let (theirs, own) = (statement.op.reads(), statement.op.writes());
        theirs.iter().any(|buffer| writes.contains(buffer))
            || own.iter().any(|buffer| reads.contains(buffer) || writes.contains(buffer))
    };
    first < second && !statements[first + 1..=second].iter().any(touches)
}

/// How many blocks share the rows of a kernel whose columns another one sums up; nothing if the two do not fit.
fn parts(sums: &Kernel, rows: &Kernel) -> Option<i64> {
    let (first, later) = sums.phases.split_first()?;
    let (&[column], &[axis], &[row]) = (&sums.rows[..], &first.axes[..], &rows.rows[..]) else { return None };
    let (width, height) = (sums.extent(column).as_int()?, sums.extent(axis).as_int()?);
    let adds = !first.reduces.is_empty()
        && first.reduces.iter().all(|reduce| reduce.op == Reduction::Sum && first.code.ty(reduce.value) == Type::F32)
        && later.iter().all(|phase| phase.axes.is_empty() && phase.reduces.is_empty())
        && !is_counted(sums, column)
        && !is_counted(sums, axis);
    let goes_by_rows = rows.lanes == Lanes::Phase
        && rows.extent(row).as_int() == Some(height)
        && !is_counted(rows, row)
        && rows.phases.iter().all(|phase| match phase.axes[..] {
            [] => true,
            [own] => rows.extent(own).as_int() == Some(width),
            _ => false,
        });
    if !adds || !goes_by_rows || width.checked_mul(height)? < SMALL {
        return None;
    }
    // What is as large as the matrix is read by both; the rest is read again at little cost.
    for inst in first.code.insts() {
        match inst {
            Inst::Load(id) => {
                let access = sums.access(*id);
                let (along, down) = (access.step(column).as_int()?, access.step(axis).as_int()?);
                if along != 0 && down != 0 && !reads(rows, access, along, down) {
                    return None;
                }
            }
            inst if inst.access().is_some() => return None,
            Inst::Bounded { .. } | Inst::Before(_) | Inst::Result(_) => return None,
            _ => {}
        }
    }
    let wanted = (BLOCKS.0 * BLOCKS.1 / width).max(1);
    let whole = |parts: &i64| height % parts == 0 && height / parts >= FEWEST_ROWS;
    let share = |parts: i64| (parts * 1000 / ((parts + wanted - 1) / wanted * wanted), -parts);
    ((wanted / 4).max(1)..=wanted * 4).filter(whole).max_by_key(|parts| share(*parts))
}

/// Whether a kernel reads a matrix by rows, by these steps along them and from one to the next.
fn reads(rows: &Kernel, access: &Access, along: i64, down: i64) -> bool {
    rows.phases.iter().filter(|phase| !phase.axes.is_empty()).any(|phase| {
        phase.code.insts().iter().any(|inst| {
            let Inst::Load(id) = inst else { return false };
            let own = rows.access(*id);
            own.buffer == access.buffer
                && own.dtype == access.dtype
                && own.offset == access.offset
                && own.step(phase.axes[0]).as_int() == Some(along)
                && own.step(rows.rows[0]).as_int() == Some(down)
        })
    })
}

/// The three kernels: zeros, both, and the sums of what the blocks gave. New buffers get the next numbers.
fn fused(sums: &Kernel, rows: &Kernel, parts: i64, next: &mut usize) -> (Kernel, Kernel, Kernel) {
    let (column, axis) = (sums.rows[0], sums.phases[0].axes[0]);
    let width = sums.extent(column).clone();
    let mut zeros = Kernel { name: format!("{}_zeros", sums.name), ..Kernel::default() };
    let element = zeros.add_axis(width.clone() * SymInt::Int(parts));
    zeros.rows.push(element);
    zeros.phases.push(Phase::default());
    let nothing = zeros.phases[0].code.push(Inst::Const(Number::Float(0.0), Type::F32), Type::F32);

    // The sums row by row: what was summed up over the rows is added where it is.
    let mut adding = sums.clone();
    adding.rows = vec![axis];
    adding.phases.truncate(1);
    adding.phases[0].axes = vec![column];
    split(&mut adding, 0, parts);
    let part = adding.rows[0];
    let mut last = sums.clone();
    let again = last.add_axis(parts.into());
    let mut reducing = Phase { axes: vec![again], ..Phase::default() };
    let at = adding.phases[0].code.push(Inst::Const(Number::Int(0), Type::I64), Type::I64);
    for mut reduce in std::mem::take(&mut adding.phases[0].reduces) {
        let buffer = BufferId(*next as u32);
        *next += 1;
        let place = |axes: usize, down: pyrite_loops::AxisId, along: pyrite_loops::AxisId| {
            let mut steps = vec![SymInt::Int(0); axes];
            steps[down.0 as usize] = width.clone();
            steps[along.0 as usize] = 1.into();
            Access { buffer, dtype: DType::F32, offset: 0.into(), steps }
        };
        let access = zeros.add_access(Access { buffer, dtype: DType::F32, offset: 0.into(), steps: vec![1.into()] });
        zeros.phases[0].code.push(Inst::Store { access, value: nothing }, Type::F32);
        let access = adding.add_access(place(adding.axes.len(), part, column));
        let add = Inst::Scatter { access, at, value: reduce.value, write: Write::Add };
        adding.phases[0].code.push(add, Type::F32);
        let access = last.add_access(place(last.axes.len(), again, column));
        reduce.value = reducing.code.push(Inst::Load(access), Type::F32);
        reducing.reduces.push(reduce);
    }
    adding.results.clear();
    last.phases[0] = reducing;
    last.name = format!("{}_of_blocks", sums.name);
    drop_unused(&mut last);
    let mut both = rows.clone();
    split(&mut both, 0, parts);
    let pairs = [(both.rows[0], adding.rows[0]), (both.rows[1], adding.rows[1])];
    append(&mut both, &adding, &pairs);
    both.name = format!("{}_{}", rows.name, sums.name);
    drop_unused(&mut both);
    (zeros, both, last)
}
