//! Where the buffers of a program on a GPU lie.
//!
//! Results get memory of their own; everything else that is computed lies in one arena. A buffer has a place there from
//! the statement that fills it first until the last one that uses it, so kernels, which run in order, never find their
//! operands written over. A result that takes over the memory of what its kernel is the last to read takes its place.

use std::sync::Arc;

use pyrite_ir::{OpError, Symbols};
use pyrite_loops::BufferId;
use pyrite_tensor::DType;
use rustc_hash::FxHashMap;

use crate::schedule::{Origin, Schedule, places};

/// Where places begin: at a multiple of this, which vectors and transactions of memory want.
const ALIGNED: u64 = 256;

/// Where a buffer lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lives {
    /// In the memory of an input.
    Input(usize),
    /// In that of a constant.
    Constant(Arc<str>),
    /// In memory that is new in each call.
    Fresh(usize),
    /// So many bytes behind the beginning of the arena.
    Arena(u64),
    /// Nothing of it is in memory.
    Nowhere,
}

/// What the rows of a statement put aside through an access.
pub(super) struct Aside {
    pub(super) access: usize,
    pub(super) buffer: BufferId,
    /// How many bytes a row has.
    pub(super) pitch: u64,
    /// How many bytes all rows have that are computed at the same time.
    pub(super) bytes: u64,
}

/// The memory of a call.
pub(super) struct Memory {
    pub(super) lives: Vec<Lives>,
    /// Where the rows of each statement put something aside, in the order they were told in.
    pub(super) aside: Vec<Vec<u64>>,
    pub(super) arena: u64,
    pub(super) fresh: Vec<(u64, DType)>,
}

/// Free and taken parts of the arena.
#[derive(Default)]
struct Arena {
    /// Where free parts begin and end, in order; no two touch.
    free: Vec<(u64, u64)>,
    end: u64,
}

impl Arena {
    /// A place for so many bytes: the smallest that is free, else behind all others.
    fn take(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.max(1).next_multiple_of(ALIGNED);
        let fitting = self.free.iter().enumerate().filter(|(_, (begin, end))| end - begin >= bytes);
        if let Some((index, _)) = fitting.min_by_key(|(_, (begin, end))| end - begin) {
            let (begin, end) = &mut self.free[index];
            let found = *begin;
            *begin += bytes;
            if begin == end {
                self.free.remove(index);
            }
            return found;
        }
        // The last part may be free and touch the end.
        let begin = match self.free.last() {
            Some((begin, end)) if *end == self.end => {
                let begin = *begin;
                self.free.pop();
                begin
            }
            _ => self.end,
        };
        self.end = begin + bytes;
        begin
    }

    fn give_back(&mut self, begin: u64, bytes: u64) {
        let mut part = (begin, begin + bytes.max(1).next_multiple_of(ALIGNED));
        self.free.retain(|other| {
            let touches = other.0 == part.1 || other.1 == part.0;
            if touches {
                part = (part.0.min(other.0), part.1.max(other.1));
            }
            !touches
        });
        let at = self.free.partition_point(|other| *other < part);
        self.free.insert(at, part);
    }
}

/// Plans the memory of a schedule of loops.
pub(super) fn plan(schedule: &Schedule, symbols: &Symbols, aside: &[Vec<Aside>]) -> Result<Memory, OpError> {
    let mut lives = Vec::with_capacity(schedule.buffers.len());
    let mut bytes = Vec::with_capacity(schedule.buffers.len());
    let returned = places(&schedule.output);
    let mut fresh = Vec::new();
    for (index, buffer) in schedule.buffers.iter().enumerate() {
        let computed = buffer.origin == Origin::Computed;
        let elements = if computed { symbols.eval(&buffer.elements)?.max(0) as u64 } else { 0 };
        bytes.push(elements * buffer.dtype.size() as u64);
        lives.push(match &buffer.origin {
            Origin::Input(number) => Lives::Input(*number),
            Origin::Constant(name) => Lives::Constant(name.clone()),
            Origin::Computed if returned.contains(&BufferId(index as u32)) => {
                fresh.push((bytes[index], buffer.dtype));
                Lives::Fresh(fresh.len() - 1)
            }
            Origin::Computed | Origin::Scratch => Lives::Nowhere,
        });
    }
    let mut arena = Arena::default();
    // How many bytes each place has that is taken.
    let mut taken: FxHashMap<BufferId, (u64, u64)> = FxHashMap::default();
    let mut asides = Vec::new();
    for (number, statement) in schedule.statements.iter().enumerate() {
        for reuse in &statement.reuses {
            let fits = bytes[reuse.dead.0 as usize] == bytes[reuse.result.0 as usize];
            let wanted = lives[reuse.result.0 as usize] == Lives::Nowhere;
            if let Some(place) = taken.get(&reuse.dead).copied().filter(|_| fits && wanted) {
                taken.remove(&reuse.dead);
                taken.insert(reuse.result, place);
                lives[reuse.result.0 as usize] = Lives::Arena(place.0);
            }
        }
        for buffer in statement.op.writes() {
            let at = buffer.0 as usize;
            if lives[at] == Lives::Nowhere && schedule.buffers[at].origin == Origin::Computed {
                let place = arena.take(bytes[at]);
                taken.insert(buffer, (place, bytes[at]));
                lives[at] = Lives::Arena(place);
            }
        }
        let mut own: Vec<(BufferId, u64, u64)> = Vec::new();
        let mut offsets = Vec::new();
        for row in aside.get(number).into_iter().flatten() {
            let known = own.iter().find(|(buffer, ..)| *buffer == row.buffer).map(|(_, place, _)| *place);
            offsets.push(known.unwrap_or_else(|| {
                let place = arena.take(row.bytes);
                own.push((row.buffer, place, row.bytes));
                place
            }));
        }
        own.iter().for_each(|(_, place, bytes)| arena.give_back(*place, *bytes));
        asides.push(offsets);
        for buffer in &statement.frees {
            if let Some((place, bytes)) = taken.remove(buffer) {
                arena.give_back(place, bytes);
            }
        }
    }
    Ok(Memory { lives, aside: asides, arena: arena.end, fresh })
}

#[cfg(test)]
mod tests {
    use super::Arena;

    #[test]
    fn places_that_are_taken_never_overlap_and_what_is_free_is_joined() {
        let (mut arena, mut taken, mut state) = (Arena::default(), Vec::<(u64, u64)>::new(), 7u64);
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if state >> 63 == 0 && !taken.is_empty() {
                let (begin, bytes) = taken.swap_remove((state >> 33) as usize % taken.len());
                arena.give_back(begin, bytes);
                continue;
            }
            let bytes = (state >> 40) % 5000;
            let begin = arena.take(bytes);
            assert_eq!(begin % 256, 0);
            assert!(taken.iter().all(|(other, size)| begin + bytes <= *other || other + size.max(&1) <= begin));
            taken.push((begin, bytes));
        }
        taken.iter().for_each(|(begin, bytes)| arena.give_back(*begin, *bytes));
        assert_eq!(arena.free, [(0, arena.end)]);
    }
}
