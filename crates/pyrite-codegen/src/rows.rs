//! The rows of a buffer among the positions of a kernel.
//!
//! A buffer is looked at as so many rows of so many elements, one after the other. A kernel goes through it *row by row*
//! if there are axes whose positions are independent of each other and which number the rows in order, like the digits
//! of a number, and if everything the kernel touches at such a position lies within that row. Then any rows of the
//! buffer can be computed, or used, apart from the others: as [`Bounds`] of those axes.

use std::ops::Range;

use pyrite_loops::{AxisId, BufferId, Inst, Kernel, Lanes};

use crate::loops::{Bounds, LoopShape};

/// Vectors that go across rows are worth it from this many positions of a row on.
const GRAIN: i64 = 64;

/// How a kernel goes through rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The axes that number rows, and how many rows each tells apart; the last one is the fastest.
    pub digits: Vec<(AxisId, i64)>,
    /// How many positions of the last axis belong to a row.
    pub positions: i64,
}

impl Rows {
    /// How a kernel goes through a buffer of `rows` rows of `row` elements each, if it does so row by row. Only kernels
    /// of known sizes do.
    pub fn of(kernel: &Kernel, shape: &LoopShape, buffer: BufferId, rows: i64, row: i64) -> Option<Self> {
        let tables = shape.tables.as_ref()?;
        let jumps = kernel.phases.iter().flat_map(|phase| phase.code.insts()).any(|inst| match inst {
            Inst::Gather { access, .. } | Inst::Scatter { access, .. } => kernel.access(*access).buffer == buffer,
            _ => false,
        });
        if jumps || rows < 1 || row < 1 {
            return None;
        }
        let axes = kernel.axes.len();
        let mut found: Option<Self> = None;
        for index in (0..kernel.accesses.len()).filter(|index| kernel.accesses[*index].buffer == buffer) {
            let steps = &tables.steps[index * axes..(index + 1) * axes];
            let way = Self::along((kernel, shape), steps, &tables.extents, tables.offsets[index], (rows, row))?;
            if found.get_or_insert_with(|| way.clone()) != &way {
                return None;
            }
        }
        found
    }

    /// How one access goes through rows.
    fn along(
        (kernel, shape): (&Kernel, &LoopShape),
        steps: &[i64],
        extents: &[i64],
        first: i64,
        (rows, row): (i64, i64),
    ) -> Option<Self> {
        let of = |axis: AxisId| (steps[axis.0 as usize], extents[axis.0 as usize]);
        let crosses = |axis: &AxisId| {
            let (step, extent) = of(*axis);
            extent > 1 && step.checked_mul(extent).is_some_and(|reach| reach > row)
        };
        let mut crossing: Vec<AxisId> = shape.independent(kernel).iter().copied().filter(crosses).collect();
        crossing.sort_by_key(|axis| of(*axis).0);
        let (&last, outer) = crossing.split_first()?;
        let (step, extent) = of(last);
        let positions = if step > 0 && row % step == 0 { row / step } else { return None };
        if extent % positions != 0 || positions < grain(kernel, last) {
            return None;
        }
        let mut digits = vec![(last, extent / positions)];
        let mut reached = step * extent;
        for axis in outer {
            let (step, extent) = of(*axis);
            if step != reached {
                return None;
            }
            digits.push((*axis, extent));
            reached *= extent;
        }
        digits.reverse();
        let others = (0..steps.len()).filter(|at| !crossing.contains(&AxisId(*at as u32)));
        let within: i64 = others.map(|at| steps[at] * (extents[at] - 1).max(0)).sum();
        let forward = steps.iter().all(|step| *step >= 0) && first >= 0;
        let inside = forward && first + within + (positions - 1) * step < row;
        (inside && reached == rows.checked_mul(row)?).then_some(Self { digits, positions })
    }

    /// Some rows as bounds of axes, as few as there are, and the first row of each.
    pub fn bounds(&self, rows: Range<i64>, mut run: impl FnMut(&[Bounds], i64)) {
        let Some(fastest) = self.digits.len().checked_sub(1) else { return };
        let mut bounds: Vec<Bounds> = self.digits.iter().map(|(axis, _)| (*axis, 0, 1)).collect();
        let mut row = rows.start;
        while row < rows.end {
            // The slowest digit that has a position of its own with all rows below it.
            let (mut at, mut below) = (fastest, 1);
            while at > 0 && row % (below * self.digits[at].1) == 0 && row + below * self.digits[at].1 <= rows.end {
                below *= self.digits[at].1;
                at -= 1;
            }
            let mut rest = row / below;
            let count = ((rows.end - row) / below).min(self.digits[at].1 - rest % self.digits[at].1);
            for (outer, (axis, size)) in self.digits[..=at].iter().enumerate().rev() {
                bounds[outer] = (*axis, rest % size, if outer == at { count } else { 1 });
                rest /= size;
            }
            for (inner, (axis, size)) in self.digits.iter().enumerate().skip(at + 1) {
                bounds[inner] = (*axis, 0, *size);
            }
            let (axis, begin, several) = bounds[fastest];
            bounds[fastest] = (axis, begin * self.positions, several * self.positions);
            run(&bounds, row);
            row += count * below;
        }
    }
}

/// How many positions of an axis are worth a run.
fn grain(kernel: &Kernel, axis: AxisId) -> i64 {
    let lanes = if kernel.rows.is_empty() {
        kernel.phases.first().is_some_and(|phase| phase.axes.last() == Some(&axis))
    } else {
        kernel.lanes == Lanes::Rows && kernel.rows.last() == Some(&axis)
    };
    if lanes { GRAIN } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of some bounds, in order.
    fn rows_of(way: &Rows, bounds: &[Bounds]) -> Vec<i64> {
        let mut found = vec![0];
        for (at, (_, begin, count)) in bounds.iter().enumerate() {
            let positions = if at + 1 == bounds.len() { way.positions } else { 1 };
            assert!(begin % positions == 0 && count % positions == 0 && *count > 0, "{bounds:?}");
            let digits = begin / positions..(begin + count) / positions;
            assert!(digits.end <= way.digits[at].1, "{bounds:?}");
            found =
                found.iter().flat_map(|row| digits.clone().map(move |digit| row * way.digits[at].1 + digit)).collect();
        }
        found
    }

    #[test]
    fn bounds_cover_every_row_once_and_in_order() {
        let digits = |sizes: &[i64]| sizes.iter().enumerate().map(|(at, size)| (AxisId(at as u32), *size)).collect();
        for (sizes, positions) in [(&[7][..], 1), (&[5, 4], 3), (&[2, 3, 4], 1), (&[3, 1, 2], 2)] {
            let way = Rows { digits: digits(sizes), positions };
            let all: i64 = sizes.iter().product();
            for begin in 0..all {
                for end in begin..=all {
                    let mut found = Vec::new();
                    way.bounds(begin..end, |bounds, first| {
                        assert_eq!(first, begin + found.len() as i64, "{sizes:?} {begin}..{end}");
                        found.extend(rows_of(&way, bounds));
                    });
                    assert_eq!(found, (begin..end).collect::<Vec<_>>(), "{sizes:?} {begin}..{end}");
                }
            }
        }
    }

    #[test]
    fn whole_positions_of_a_slow_axis_are_one_run() {
        let way = Rows { digits: vec![(AxisId(0), 65), (AxisId(1), 4)], positions: 1 };
        let mut runs = Vec::new();
        way.bounds(6..23, |bounds, _| runs.push(bounds.to_vec()));
        let axes = |slow: (i64, i64), fast: (i64, i64)| vec![(AxisId(0), slow.0, slow.1), (AxisId(1), fast.0, fast.1)];
        assert_eq!(runs, [axes((1, 1), (2, 2)), axes((2, 3), (0, 4)), axes((5, 1), (0, 3))]);
    }
}
