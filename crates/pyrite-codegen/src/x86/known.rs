//! Loops along rows whose length is known when the code is made.
//!
//! A reduction over a short row is over after a few instructions, so what a loop asks before and after costs as much as what it
//! computes. Where a phase has as many positions in every call, nothing is asked: whole rounds come first, then the whole vectors
//! that are left, then the lanes that are left.
//!
//! A phase of one axis that is no longer than a chunk ([`Emitter::chunk`]) is *short*. Its sums are those of one chunk: there is
//! nothing that their totals could lose, and the first pass sets the totals instead of adding to them.

use pyrite_loops::AxisId;

use super::emitter::{Done, Emitter};
use super::lower::{self, Count, RowGrouping};
use super::region::{LoopForm, Rounds, Start, Stores, Traversal};

/// Longer rows count their rounds: what is saved is small beside them, and distances stay within 32 bits.
const LONGEST: i64 = 1 << 20;

impl Emitter<'_> {
    /// The extent of an axis where it is the same in every call: a call may be given bounds of rows, and of the axes of a kernel
    /// that reduces nothing.
    pub(super) fn known_extent(&self, axis: AxisId) -> Option<i64> {
        let reduces = self.kernel.phases.iter().any(|phase| !phase.reduces.is_empty());
        let bounded = self.kernel.rows.contains(&axis) || !reduces;
        self.kernel.extent(axis).as_int().filter(|extent| !bounded && (1..=LONGEST).contains(extent))
    }

    /// Whether the positions of a phase are those of one chunk.
    pub(super) fn is_short(&self, number: usize) -> bool {
        let phase = &self.kernel.phases[number];
        let [axis] = phase.axes[..] else { return false };
        let chunk = i64::from(self.chunk());
        !phase.is_ordered() && self.known_extent(axis).is_some_and(|extent| extent <= chunk)
    }

    /// What the totals of a phase are when its loops begin.
    pub(super) fn start(&self, number: usize) -> Start {
        let phase = &self.kernel.phases[number];
        let whole = |axis: &AxisId| self.known_extent(*axis).is_some_and(|extent| extent >= self.shape.lanes as i64);
        let unset = self.shape.rows.is_none() && self.is_short(number) && phase.axes.iter().all(whole);
        if unset { Start::Unset } else { Start::Begun }
    }

    /// The regions of a phase whose innermost loop has so many positions along the lanes, all of them.
    pub(super) fn known_body(&mut self, number: usize, extent: i64) -> Done {
        let lanes = self.shape.lanes as i64;
        let lane = self.kernel.phases[number].axes.last().copied();
        let plan = LoopForm {
            run: Traversal::Lanes,
            count: Count::Full,
            copies: 1,
            lane,
            accumulators: &[],
            totals: None,
            stores: Stores::Cached,
            tiling: None,
            rounds: Rounds::Counted,
            start: self.start(number),
        };
        let region = |e: &Self, count| lower::region(e.kernel, number, &e.shape, &e.layout, count, RowGrouping::Single);
        let (vectors, rest) = (extent / lanes, extent % lanes);
        if vectors > 0 {
            let region = region(self, Count::Full);
            let copies = (self.copies(number, &region) as i64).min(vectors);
            let (rounds, left) = (vectors / copies, vectors % copies);
            let form = LoopForm { copies: copies as usize, rounds: Rounds::Known(rounds), ..plan };
            self.pass(number, &region, form, true)?;
            if left > 0 {
                let form = LoopForm { copies: left as usize, rounds: Rounds::Known(1), start: Start::Begun, ..plan };
                self.pass(number, &region, form, true)?;
            }
        }
        if rest > 0 {
            let region = region(self, Count::Rest);
            let form = LoopForm { count: Count::Rest, rounds: Rounds::Last(rest), start: Start::Begun, ..plan };
            self.pass(number, &region, form, false)?;
        }
        Ok(())
    }
}
