//! The pass `elide-copy`: bmms read and write past copies.
//!
//! The operator `bmm` takes matrices that lie one after the other, so a graph copies heads that lie side by side before it
//! multiplies them, and copies the results back. Our bmms take matrices wherever they begin: an operand that is a copy is
//! read where it was copied from, and a result that is only copied is written where the copy goes. Each is a decision. A
//! copy that nothing reads any more is dropped.
//!
//! Such an operand or result has several dimensions that number its matrices instead of one.

use pyrite_ir::Meta;
use pyrite_ir::lower::Place;
use pyrite_loops::BufferId;
use pyrite_sym::SymInt;
use rustc_hash::{FxHashMap, FxHashSet};

use super::State;
use crate::bmm::{Bmm, Link};
use crate::schedule::{Op, Schedule, Statement, buffer_name, places};

/// A copy: the same elements in another order.
#[derive(Clone, Debug)]
pub struct Copied {
    /// What is copied.
    pub from: Place,
    /// Where it lies then, in a buffer of its own.
    pub to: Place,
}

/// Lets bmms read and write past copies.
pub fn elide_copies(program: &mut Schedule, state: &mut State<'_, '_>) {
    let copies = std::mem::take(&mut state.copies);
    if copies.is_empty() {
        return;
    }
    let returned: FxHashSet<BufferId> = places(&program.output).into_iter().collect();
    let mut uses = Uses::of(&program.statements);
    let mut idle = FxHashSet::default();
    for copy in &copies {
        let name = |buffer| buffer_name(&program.buffers, buffer);
        let (from, to) = (copy.from.buffer, copy.to.buffer);
        let readers = uses.readers(to).to_vec();
        let reads = |at: &usize| bmm(&program.statements[*at]).is_some_and(|bmm| read_past(bmm, copy).is_some());
        if !returned.contains(&to) && !readers.is_empty() && readers.iter().all(reads) {
            if state.decisions.allow(&format!("elide-copy {} for {}", name(from), name(to))) {
                for at in readers {
                    let Some(bmm) = bmm_mut(&mut program.statements[at]) else { continue };
                    if let Some((lhs, rhs)) = read_past(bmm, copy) {
                        (bmm.lhs, bmm.rhs) = (lhs, rhs);
                        uses.readers.entry(from).or_default().push(at);
                    }
                }
                idle.extend(uses.writers(to).iter().copied());
                uses.forget(&program.statements, to);
            }
            continue;
        }
        let [writer] = uses.writers(from) else { continue };
        let (writer, copier) = (*writer, uses.writers(to).to_vec());
        if returned.contains(&from) || uses.readers(from) != copier {
            continue;
        }
        let Some(out) = bmm(&program.statements[writer]).and_then(|bmm| written_past(bmm, copy)) else { continue };
        if state.decisions.allow(&format!("elide-copy {} for {}", name(to), name(from))) {
            if let Op::Bmm(fused) = &mut program.statements[writer].op
                && let Some(bmm) = fused.single()
            {
                let bmm = Bmm { out, ..bmm.clone() };
                **fused = bmm.into();
            }
            idle.extend(copier);
        }
    }
    let mut at = 0;
    program.statements.retain(|_| {
        at += 1;
        !idle.contains(&(at - 1))
    });
}

/// Which statements read and write each buffer.
struct Uses {
    readers: FxHashMap<BufferId, Vec<usize>>,
    writers: FxHashMap<BufferId, Vec<usize>>,
}

impl Uses {
    fn of(statements: &[Statement]) -> Self {
        let mut uses = Self { readers: FxHashMap::default(), writers: FxHashMap::default() };
        let add = |map: &mut FxHashMap<BufferId, Vec<usize>>, buffer, at| {
            let list: &mut Vec<usize> = map.entry(buffer).or_default();
            if list.last() != Some(&at) {
                list.push(at);
            }
        };
        for (at, statement) in statements.iter().enumerate() {
            statement.op.reads().into_iter().for_each(|buffer| add(&mut uses.readers, buffer, at));
            statement.op.writes().into_iter().for_each(|buffer| add(&mut uses.writers, buffer, at));
        }
        uses
    }

    fn readers(&self, buffer: BufferId) -> &[usize] {
        self.readers.get(&buffer).map_or(&[], Vec::as_slice)
    }

    fn writers(&self, buffer: BufferId) -> &[usize] {
        self.writers.get(&buffer).map_or(&[], Vec::as_slice)
    }

    /// Forgets the statements that write a buffer: they are gone.
    fn forget(&mut self, statements: &[Statement], buffer: BufferId) {
        for at in self.writers.remove(&buffer).unwrap_or_default() {
            for read in statements[at].op.reads() {
                if let Some(readers) = self.readers.get_mut(&read) {
                    readers.retain(|reader| *reader != at);
                }
            }
        }
    }
}

/// A bmm.
fn bmm(statement: &Statement) -> Option<&Bmm> {
    match &statement.op {
        Op::Bmm(fused) => fused.single(),
        _ => None,
    }
}

fn bmm_mut(statement: &mut Statement) -> Option<&mut Bmm> {
    match &mut statement.op {
        Op::Bmm(fused) => match &mut fused.links[..] {
            [Link::Bmm(bmm)] => Some(bmm),
            _ => None,
        },
        _ => None,
    }
}

/// The operands of a bmm that reads what was copied instead of the copy.
fn read_past(bmm: &Bmm, copy: &Copied) -> Option<(Place, Place)> {
    let past = |place: &Place| {
        if place.buffer != copy.to.buffer {
            return Some(place.clone());
        }
        let meta = carried(&place.meta, &copy.to.meta, &copy.from.meta)?;
        let rank = meta.rank();
        // Panels are filled along dense rows or columns.
        let dense = meta.stride[rank - 2..].iter().any(|stride| stride.as_int() == Some(1));
        dense.then(|| Place { buffer: copy.from.buffer, meta })
    };
    Some((past(&bmm.lhs)?, past(&bmm.rhs)?))
}

/// The result of a bmm that writes where its result is copied to.
fn written_past(bmm: &Bmm, copy: &Copied) -> Option<Place> {
    let meta = carried(&bmm.out.meta, &copy.from.meta, &copy.to.meta)?;
    let dense = meta.stride.last().and_then(SymInt::as_int) == Some(1);
    dense.then(|| Place { buffer: copy.to.buffer, meta })
}

/// Where the elements of a batch of matrices, which lies in the memory of `from`, lie in that of `to`, a copy of `from`
/// or what it is a copy of.
fn carried(batch: &Meta, from: &Meta, to: &Meta) -> Option<Meta> {
    let [count, rows, cols] = &batch.shape[..] else { return None };
    if from.dtype != to.dtype || from.shape != to.shape || batch.offset != from.offset {
        return None;
    }
    if [rows, cols].into_iter().any(|size| size.as_int() == Some(1)) {
        return None;
    }
    let mut rest: Vec<usize> = (0..from.rank()).filter(|d| from.shape[*d].as_int() != Some(1)).collect();
    let mut take = |size: &SymInt, stride: &SymInt| {
        let at = rest.iter().position(|d| from.shape[*d] == *size && from.stride[*d] == *stride)?;
        Some(rest.remove(at))
    };
    let matrix = [take(rows, &batch.stride[1])?, take(cols, &batch.stride[2])?];
    let (mut counted, mut step) = (SymInt::Int(1), batch.stride[0].clone());
    for d in rest.iter().rev() {
        if from.stride[*d] != step {
            return None;
        }
        counted = counted * &from.shape[*d];
        step = step * &from.shape[*d];
    }
    if counted != *count {
        return None;
    }
    let dims: Vec<usize> = rest.into_iter().chain(matrix).collect();
    let pick = |sizes: &[SymInt]| dims.iter().map(|d| sizes[*d].clone()).collect::<Vec<_>>();
    Some(to.view(&pick(&to.shape), &pick(&to.stride), to.offset.clone()))
}
