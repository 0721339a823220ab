//! The pass `reuse-buffers`: lifetimes, and which result takes the memory of what its kernel is the last to read.
//!
//! A result is written over what is read if no position reads an element that another position may have overwritten.
//! That holds when the kernel writes the result once, each element at one position, and reads what dies there
//!
//! - in the same part of its code along the same way, before it writes; or
//! - in an earlier phase of the same row, which touches just the elements that the row writes.
//!
//! Rows run in any order and on several threads: no two of them share an element. Whether the memory is the program's
//! own and nobody else's, and of the right size, is seen at each call.

use pyrite_loops::{Access, AccessId, AxisId, BufferId, Inst, Kernel};
use pyrite_sym::SymInt;
use rustc_hash::FxHashSet;

use super::State;
use crate::decisions::Decisions;
use crate::schedule::{Buffer, Op, Origin, Reuse, Schedule, Statement, buffer_name, places};

/// Ends lifetimes behind the last use, gives blocks of rows to what only a fused bmm uses, and lets results take the memory
/// of what dies in their statement; each reuse is a decision.
pub fn reuse_buffers(program: &mut Schedule, state: &mut State<'_, '_>) {
    end_lifetimes(program);
    let Schedule { buffers, statements, .. } = program;
    let mut written: FxHashSet<BufferId> = FxHashSet::default();
    for Statement { op, reuses, frees } in statements {
        match op {
            Op::Loop(kernel) => *reuses = allowed(kernel, frees, buffers, state.decisions),
            Op::Gemm(gemm) => {
                // What the GEMM reads is still read when the epilogue runs on the first rows.
                let out = gemm.out();
                let dying: Vec<BufferId> = frees.iter().copied().filter(|id| *id == out).collect();
                if let Some(epilogue) = &gemm.epilogue {
                    *reuses = allowed(&epilogue.kernel, &dying, buffers, state.decisions);
                }
            }
            Op::Bmm(bmm) => {
                bmm.find_blocks(|buffer| frees.contains(&buffer) && !written.contains(&buffer), buffers);
                let mut found = Vec::new();
                for (kernel, dying) in bmm.last_reads(frees) {
                    found.extend(allowed(kernel, &dying, buffers, state.decisions));
                }
                *reuses = bmm.reuse_blocks(found);
            }
            Op::Conv(_) | Op::Call(_) => {}
        }
        written.extend(op.writes());
    }
}

/// Notes for each statement the buffers that nothing uses afterwards.
fn end_lifetimes(program: &mut Schedule) {
    let mut seen: FxHashSet<BufferId> = places(&program.output).into_iter().collect();
    for statement in program.statements.iter_mut().rev() {
        let used = statement.op.reads().into_iter().chain(statement.op.writes());
        statement.frees = used.filter(|buffer| seen.insert(*buffer)).collect();
    }
}

/// The results of a kernel that may be written over what dies in it.
fn allowed(kernel: &Kernel, dying: &[BufferId], buffers: &[Buffer], decisions: &mut Decisions<'_>) -> Vec<Reuse> {
    let mut found = reuses(kernel, dying, buffers);
    found.retain(|Reuse { dead, result }| {
        let name = |id: &BufferId| buffer_name(buffers, *id);
        decisions.allow(&format!("reuse {} for {} in {}", name(dead), name(result), kernel.name))
    });
    found
}

/// Which results of a kernel may take the memory of which of the buffers that nothing reads afterwards.
pub fn reuses(kernel: &Kernel, dying: &[BufferId], buffers: &[Buffer]) -> Vec<Reuse> {
    let mut found: Vec<Reuse> = Vec::new();
    for result in kernel.written() {
        let made = &buffers[result.0 as usize];
        let Some(store) = only_store(kernel, result).filter(|_| made.origin == Origin::Computed) else { continue };
        let dead = dying.iter().copied().find(|&dead| {
            let old = &buffers[dead.0 as usize];
            matches!(old.origin, Origin::Computed | Origin::Input(_))
                && old.dtype.size() == made.dtype.size()
                && (old.origin != Origin::Computed || old.elements == made.elements)
                && found.iter().all(|known| known.dead != dead)
                && reads_before(kernel, dead, &store)
        });
        found.extend(dead.map(|dead| Reuse { dead, result }));
    }
    found
}

/// Where a buffer is written.
struct Store<'a> {
    phase: usize,
    /// Which instruction of the phase it is.
    at: usize,
    access: &'a Access,
}

/// The store of a buffer that is written by one store alone, each element once.
fn only_store(kernel: &Kernel, buffer: BufferId) -> Option<Store<'_>> {
    let mut stores = Vec::new();
    let mut only = true;
    each_inst(kernel, buffer, |phase, at, inst| match inst {
        Inst::Store { access, .. } => stores.push((phase, at, *access)),
        Inst::Scatter { .. } => only = false,
        _ => {}
    });
    let &[(phase, at, access)] = stores.as_slice() else { return None };
    let access = kernel.access(access);
    let once = axes_of(kernel, phase).all(|axis| access.step(axis).as_int() != Some(0) || is_single(kernel, axis));
    (only && once).then_some(Store { phase, at, access })
}

/// Whether a buffer is only read, and only before the store has written over it.
fn reads_before(kernel: &Kernel, buffer: BufferId, store: &Store<'_>) -> bool {
    let mut fine = true;
    each_inst(kernel, buffer, |phase, at, inst| {
        let Inst::Load(access) = inst else {
            fine = false;
            return;
        };
        let access = kernel.access(*access);
        let same_way = access.offset == store.access.offset && access.steps == store.access.steps;
        fine &= match phase.cmp(&store.phase) {
            std::cmp::Ordering::Less => {
                let rows = !kernel.rows.is_empty();
                same_way || rows && touched(kernel, access, phase) == touched(kernel, store.access, store.phase)
            }
            std::cmp::Ordering::Equal => same_way && at < store.at,
            std::cmp::Ordering::Greater => false,
        };
    });
    fine
}

/// Which elements of a row an access reaches: how it moves from row to row, and within one, in whatever order.
fn touched<'a>(kernel: &'a Kernel, access: &'a Access, phase: usize) -> (&'a SymInt, Vec<&'a SymInt>, Vec<String>) {
    let rows = kernel.rows.iter().map(|axis| access.step(*axis)).collect();
    let moves = |axis: &&AxisId| access.step(**axis).as_int() != Some(0) && !is_single(kernel, **axis);
    let moving = kernel.phases[phase].axes.iter().filter(moves);
    let mut within: Vec<String> =
        moving.map(|axis| format!("{} {}", access.step(*axis), kernel.extent(*axis))).collect();
    within.sort_unstable();
    (&access.offset, rows, within)
}

fn axes_of(kernel: &Kernel, phase: usize) -> impl Iterator<Item = AxisId> + '_ {
    kernel.rows.iter().chain(&kernel.phases[phase].axes).copied()
}

fn is_single(kernel: &Kernel, axis: AxisId) -> bool {
    kernel.extent(axis).as_int() == Some(1)
}

fn each_inst(kernel: &Kernel, buffer: BufferId, mut f: impl FnMut(usize, usize, &Inst)) {
    let goes_there = |access: AccessId| kernel.access(access).buffer == buffer;
    for (number, phase) in kernel.phases.iter().enumerate() {
        for (at, inst) in phase.code.insts().iter().enumerate() {
            if inst.access().is_some_and(goes_there) {
                f(number, at, inst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyrite_loops::{Binary, Phase, Reduce, Reduction, Type};
    use pyrite_tensor::DType;

    const DEAD: BufferId = BufferId(0);
    const RESULT: BufferId = BufferId(1);

    fn buffers(elements: i64) -> Vec<Buffer> {
        let computed = || Buffer { origin: Origin::Computed, dtype: DType::F32, elements: elements.into() };
        vec![computed(), computed()]
    }

    fn access(buffer: BufferId, steps: &[i64]) -> Access {
        let steps = steps.iter().map(|step| (*step).into()).collect();
        Access { buffer, dtype: DType::F32, offset: 0.into(), steps }
    }

    /// `result[to] = dead[from] + dead[from]` over four times four positions, all in one phase.
    fn pointwise(from: &[i64], to: &[i64]) -> Kernel {
        let mut kernel = Kernel::default();
        let axes = vec![kernel.add_axis(4.into()), kernel.add_axis(4.into())];
        let (from, to) = (kernel.add_access(access(DEAD, from)), kernel.add_access(access(RESULT, to)));
        let mut phase = Phase { axes, ..Phase::default() };
        let value = phase.code.push(Inst::Load(from), Type::F32);
        let value = phase.code.binary(Binary::Add, value, value);
        phase.code.push(Inst::Store { access: to, value }, Type::F32);
        kernel.phases.push(phase);
        kernel
    }

    /// For each of four rows, the largest of its elements taken off each; the first phase reads with these steps.
    fn rowwise(first: &[i64]) -> Kernel {
        let mut kernel = Kernel::default();
        let row = kernel.add_axis(4.into());
        let (reduced, written) = (kernel.add_axis(4.into()), kernel.add_axis(4.into()));
        kernel.rows = vec![row];
        let once = kernel.add_access(access(DEAD, first));
        let (again, to) = (kernel.add_access(access(DEAD, &[4, 0, 1])), kernel.add_access(access(RESULT, &[4, 0, 1])));
        let result = kernel.add_result(Type::F32);
        let mut phase = Phase { axes: vec![reduced], ..Phase::default() };
        let value = phase.code.push(Inst::Load(once), Type::F32);
        phase.reduces.push(Reduce { op: Reduction::Max, value, index: None, result });
        kernel.phases.push(phase);
        let mut phase = Phase { axes: vec![written], ..Phase::default() };
        let value = phase.code.push(Inst::Load(again), Type::F32);
        let largest = phase.code.push(Inst::Result(result), Type::F32);
        let value = phase.code.binary(Binary::Sub, value, largest);
        phase.code.push(Inst::Store { access: to, value }, Type::F32);
        kernel.phases.push(phase);
        kernel
    }

    fn found(kernel: &Kernel, buffers: &[Buffer]) -> bool {
        let found = reuses(kernel, &[DEAD], buffers);
        assert!(found.is_empty() || found == [Reuse { dead: DEAD, result: RESULT }], "{found:?}");
        !found.is_empty()
    }

    #[test]
    fn a_result_takes_over_what_is_read_along_its_own_way() {
        assert!(found(&pointwise(&[4, 1], &[4, 1]), &buffers(16)));
        assert!(found(&pointwise(&[1, 4], &[1, 4]), &buffers(16)));
        assert!(!found(&pointwise(&[1, 4], &[4, 1]), &buffers(16)), "transposed");
        assert!(!found(&pointwise(&[0, 1], &[4, 1]), &buffers(16)), "broadcast");
    }

    #[test]
    fn memory_of_another_size_or_type_or_of_somebody_else_is_not_taken() {
        let kernel = pointwise(&[4, 1], &[4, 1]);
        let changed = |change: &dyn Fn(&mut Buffer)| {
            let mut buffers = buffers(16);
            change(&mut buffers[0]);
            found(&kernel, &buffers)
        };
        assert!(!changed(&|dead| dead.elements = 32.into()));
        assert!(!changed(&|dead| dead.dtype = DType::F64));
        assert!(!changed(&|dead| dead.origin = Origin::Constant("weight".into())));
        assert!(!changed(&|dead| dead.origin = Origin::Scratch));
        assert!(changed(&|dead| dead.origin = Origin::Input(0)), "its size is seen when it is given");
    }

    #[test]
    fn rows_may_be_read_by_earlier_phases_and_other_rows_may_not() {
        assert!(found(&rowwise(&[4, 1, 0]), &buffers(16)));
        assert!(!found(&rowwise(&[1, 4, 0]), &buffers(16)), "the first phase reads columns");
        assert!(!found(&rowwise(&[0, 1, 0]), &buffers(16)), "every row reads the first one");
    }

    #[test]
    fn what_is_read_after_the_store_keeps_its_memory() {
        let mut kernel = pointwise(&[4, 1], &[4, 1]);
        kernel.phases.push(kernel.phases[0].clone());
        assert!(!found(&kernel, &buffers(16)), "written twice");
        let mut kernel = rowwise(&[4, 1, 0]);
        let first = kernel.phases[0].clone();
        kernel.phases.push(first);
        assert!(!found(&kernel, &buffers(16)), "read by a third phase");
    }

    #[test]
    fn two_results_do_not_take_the_same_memory() {
        let mut kernel = pointwise(&[4, 1], &[4, 1]);
        let other = BufferId(2);
        let to = kernel.add_access(access(other, &[4, 1]));
        let Inst::Store { value, .. } = *kernel.phases[0].code.insts().last().unwrap() else { panic!() };
        kernel.phases[0].code.push(Inst::Store { access: to, value }, Type::F32);
        let mut buffers = buffers(16);
        buffers.push(buffers[1].clone());
        assert_eq!(reuses(&kernel, &[DEAD], &buffers), [Reuse { dead: DEAD, result: RESULT }]);
    }
}
