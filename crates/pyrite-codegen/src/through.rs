//! Products look through copies.
//!
//! A product of batches takes matrices that lie one after the other, so a graph copies heads that lie side by side
//! before it multiplies them, and copies the results back. Our products take matrices wherever they begin: an operand
//! that is a copy is read where it was copied from, and a result that is only copied is written where the copy goes.
//! Each is a decision. A copy that nothing reads any more is not made.
//!
//! Such an operand or result has several dimensions that number its matrices instead of one.

use pyrite_ir::lower::Place;
use pyrite_ir::{Meta, Value};
use pyrite_loops::BufferId;
use pyrite_sym::SymInt;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chain::Batch;
use crate::decisions::Decisions;
use crate::listing::buffer_name;
use crate::pieces::{Copied, Outside, Piece, Pieces};
use crate::schedule::{inputs_of, outputs_of, places};

/// Lets products read and write past copies.
pub fn look_through(program: &mut Pieces, decisions: &mut Decisions<'_>) {
    let copies = std::mem::take(&mut program.copies);
    if copies.is_empty() {
        return;
    }
    let returned: FxHashSet<BufferId> = places(&program.output).into_iter().collect();
    let mut uses = Uses::of(&program.pieces);
    let mut idle = FxHashSet::default();
    for copy in &copies {
        let name = |buffer| buffer_name(&program.buffers, buffer);
        let (from, to) = (copy.from.buffer, copy.to.buffer);
        let readers = uses.readers(to).to_vec();
        let reads = |at: &usize| batch(&program.pieces[*at]).is_some_and(|call| read_past(call, copy).is_some());
        if !returned.contains(&to) && !readers.is_empty() && readers.iter().all(reads) {
            if decisions.allow(&format!("through {} for {}", name(from), name(to))) {
                for at in readers {
                    let Piece::Outside(call) = &mut program.pieces[at] else { continue };
                    if let Some(args) = read_past(call, copy) {
                        call.args = args;
                        uses.readers.entry(from).or_default().push(at);
                    }
                }
                idle.extend(uses.writers(to).iter().copied());
                uses.forget(&program.pieces, to);
            }
            continue;
        }
        let [writer] = uses.writers(from) else { continue };
        let (writer, copier) = (*writer, uses.writers(to).to_vec());
        if returned.contains(&from) || uses.readers(from) != copier {
            continue;
        }
        let Some(result) = batch(&program.pieces[writer]).and_then(|call| written_past(call, copy)) else { continue };
        if decisions.allow(&format!("through {} for {}", name(to), name(from))) {
            if let Piece::Outside(call) = &mut program.pieces[writer] {
                call.results = Value::Tensor(result);
            }
            idle.extend(copier);
        }
    }
    let mut at = 0;
    program.pieces.retain(|_| {
        at += 1;
        !idle.contains(&(at - 1))
    });
}

/// Which pieces read and write each buffer.
struct Uses {
    readers: FxHashMap<BufferId, Vec<usize>>,
    writers: FxHashMap<BufferId, Vec<usize>>,
}

impl Uses {
    fn of(pieces: &[Piece]) -> Self {
        let mut uses = Self { readers: FxHashMap::default(), writers: FxHashMap::default() };
        let add = |map: &mut FxHashMap<BufferId, Vec<usize>>, buffer, at| {
            let list: &mut Vec<usize> = map.entry(buffer).or_default();
            if list.last() != Some(&at) {
                list.push(at);
            }
        };
        for (at, piece) in pieces.iter().enumerate() {
            inputs_of(piece).into_iter().for_each(|buffer| add(&mut uses.readers, buffer, at));
            outputs_of(piece).into_iter().for_each(|buffer| add(&mut uses.writers, buffer, at));
        }
        uses
    }

    fn readers(&self, buffer: BufferId) -> &[usize] {
        self.readers.get(&buffer).map_or(&[], Vec::as_slice)
    }

    fn writers(&self, buffer: BufferId) -> &[usize] {
        self.writers.get(&buffer).map_or(&[], Vec::as_slice)
    }

    /// Forgets the pieces that write a buffer: they are gone.
    fn forget(&mut self, pieces: &[Piece], buffer: BufferId) {
        for at in self.writers.remove(&buffer).unwrap_or_default() {
            for read in inputs_of(&pieces[at]) {
                if let Some(readers) = self.readers.get_mut(&read) {
                    readers.retain(|reader| *reader != at);
                }
            }
        }
    }
}

/// A product of batches.
fn batch(piece: &Piece) -> Option<&Outside> {
    match piece {
        Piece::Outside(call) if Batch::takes(call) => Some(call),
        _ => None,
    }
}

/// The arguments of a product that reads what was copied instead of the copy.
fn read_past(call: &Outside, copy: &Copied) -> Option<Vec<Value<Place>>> {
    let past = |arg: &Value<Place>| match arg {
        Value::Tensor(place) if place.buffer == copy.to.buffer => {
            let meta = carried(&place.meta, &copy.to.meta, &copy.from.meta)?;
            let rank = meta.rank();
            // Panels are filled along dense rows or columns.
            let dense = meta.stride[rank - 2..].iter().any(|stride| stride.as_int() == Some(1));
            dense.then(|| Value::Tensor(Place { buffer: copy.from.buffer, meta }))
        }
        other => Some(other.clone()),
    };
    call.args.iter().map(past).collect()
}

/// The result of a product that writes where its result is copied to.
fn written_past(call: &Outside, copy: &Copied) -> Option<Place> {
    let Value::Tensor(out) = &call.results else { return None };
    let meta = carried(&out.meta, &copy.from.meta, &copy.to.meta)?;
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
