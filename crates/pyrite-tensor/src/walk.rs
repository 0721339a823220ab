//! Visiting the elements of several strided operands together.
//!
//! A [`Walk`] merges dimensions that are adjacent in memory for every operand, so that the innermost loop is as long
//! as the layouts allow, and hands out one row at a time.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::layout::Dims;

/// A loop nest over operands that share a shape.
pub struct Walk {
    /// Outer sizes, slowest first.
    outer: Dims,
    /// Strides of the outer dimensions, per operand.
    outer_strides: Vec<Dims>,
    /// The length of a row.
    pub row: usize,
    /// The stride of each operand along a row.
    pub row_strides: SmallVec<[i64; 4]>,
}

impl Walk {
    /// Plans a visit in the order of the shape's dimensions, the last fastest.
    pub fn new(shape: &[i64], strides: &[&[i64]]) -> Self {
        let mut sizes = Dims::new();
        let mut merged: Vec<Dims> = vec![Dims::new(); strides.len()];
        for d in (0..shape.len()).rev() {
            if shape[d] == 1 {
                continue;
            }
            let joins = sizes.last().is_some_and(|inner| {
                merged
                    .iter()
                    .zip(strides)
                    .all(|(m, s)| m.last().is_some_and(|inner_stride| s[d] == inner_stride * inner))
            });
            if joins {
                if let Some(size) = sizes.last_mut() {
                    *size *= shape[d];
                }
            } else {
                sizes.push(shape[d]);
                for (m, s) in merged.iter_mut().zip(strides) {
                    m.push(s[d]);
                }
            }
        }
        let row = if shape.contains(&0) { 0 } else { sizes.first().copied().unwrap_or(1) };
        let row_strides = merged.iter().map(|m| m.first().copied().unwrap_or(1)).collect();
        let outward = |dims: &Dims| dims.iter().skip(1).rev().copied().collect::<Dims>();
        Self {
            outer: outward(&sizes),
            outer_strides: merged.iter().map(outward).collect(),
            row: row as usize,
            row_strides,
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        if self.row == 0 { 0 } else { self.outer.iter().product::<i64>() as usize }
    }

    /// Calls `visit` with the offset of each operand's row start, relative to the operand's first element.
    pub fn each_row(&self, visit: impl FnMut(&[i64])) {
        self.rows_in(0..self.rows(), visit);
    }

    /// As [`Self::each_row`], for some of the rows: several threads share a walk by taking a range each.
    pub fn rows_in(&self, range: Range<usize>, mut visit: impl FnMut(&[i64])) {
        let operands = self.outer_strides.len();
        let mut offsets: SmallVec<[i64; 4]> = smallvec![0; operands];
        let mut index: Dims = smallvec![0; self.outer.len()];
        let mut rest = range.start as i64;
        for d in (0..index.len()).rev() {
            if self.outer[d] > 0 {
                index[d] = rest % self.outer[d];
                rest /= self.outer[d];
            }
            for (offset, strides) in offsets.iter_mut().zip(&self.outer_strides) {
                *offset += strides[d] * index[d];
            }
        }
        for _ in range {
            visit(&offsets);
            for d in (0..index.len()).rev() {
                index[d] += 1;
                for (offset, strides) in offsets.iter_mut().zip(&self.outer_strides) {
                    *offset += strides[d];
                }
                if index[d] < self.outer[d] {
                    break;
                }
                for (offset, strides) in offsets.iter_mut().zip(&self.outer_strides) {
                    *offset -= strides[d] * self.outer[d];
                }
                index[d] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(shape: &[i64], stride: &[i64]) -> Vec<i64> {
        let walk = Walk::new(shape, &[stride]);
        let mut seen = Vec::new();
        walk.each_row(|start| seen.extend((0..walk.row as i64).map(|i| start[0] + i * walk.row_strides[0])));
        seen
    }

    #[test]
    fn a_contiguous_operand_is_one_row() {
        assert_eq!(Walk::new(&[2, 3, 4], &[&[12, 4, 1]]).rows(), 1);
        assert_eq!(offsets(&[2, 3], &[3, 1]), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_order_is_that_of_the_shape() {
        assert_eq!(offsets(&[2, 3], &[1, 2]), [0, 2, 4, 1, 3, 5]);
        assert_eq!(offsets(&[2, 2, 2], &[0, 1, 4]), [0, 4, 1, 5, 0, 4, 1, 5]);
    }

    #[test]
    fn a_range_of_rows_starts_where_it_says() {
        let walk = Walk::new(&[2, 3, 4], &[&[100, 10, 1]]);
        let mut starts = Vec::new();
        walk.rows_in(2..5, |at| starts.push(at[0]));
        assert_eq!(starts, [20, 100, 110]);
    }

    #[test]
    fn empty_and_scalar_shapes_work() {
        assert!(offsets(&[2, 0], &[1, 1]).is_empty());
        assert_eq!(offsets(&[], &[]), [0]);
        assert_eq!(offsets(&[1, 1], &[7, 9]), [0]);
    }
}
