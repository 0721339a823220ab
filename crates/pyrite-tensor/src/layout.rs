//! Shapes and strides.

use smallvec::SmallVec;

/// Sizes or strides, one per dimension.
pub type Dims = SmallVec<[i64; 6]>;

/// The orders of dimensions in memory that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryFormat {
    /// The last dimension is the fastest.
    Contiguous,
    /// Batch, height, width, channels: for four dimensions.
    ChannelsLast,
    /// Batch, depth, height, width, channels: for five dimensions.
    ChannelsLast3d,
    /// As the input has it.
    Preserve,
}

impl MemoryFormat {
    /// The name in the `torch` module.
    pub fn torch_name(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous_format",
            Self::ChannelsLast => "channels_last",
            Self::ChannelsLast3d => "channels_last_3d",
            Self::Preserve => "preserve_format",
        }
    }

    /// The format of that name.
    pub fn from_torch_name(name: &str) -> Option<Self> {
        [Self::Contiguous, Self::ChannelsLast, Self::ChannelsLast3d, Self::Preserve]
            .into_iter()
            .find(|f| f.torch_name() == name)
    }
}

/// Where a tensor's elements lie in its storage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Size per dimension.
    pub shape: Dims,
    /// Distance between neighbours per dimension, in elements.
    pub stride: Dims,
    /// The first element.
    pub offset: i64,
}

impl Layout {
    /// A layout from its parts.
    pub fn new(shape: &[i64], stride: &[i64], offset: i64) -> Self {
        Self { shape: shape.into(), stride: stride.into(), offset }
    }

    /// A dense layout, last dimension fastest.
    pub fn contiguous(shape: &[i64]) -> Self {
        Self { shape: shape.into(), stride: contiguous_strides(shape), offset: 0 }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements; `i64::MAX` when it does not fit.
    pub fn numel(&self) -> i64 {
        numel(&self.shape)
    }

    /// Elements of storage it needs, counted from the storage's start; `None` when that does not fit 64 bits.
    pub fn span(&self) -> Option<i64> {
        if self.shape.contains(&0) {
            return Some(self.offset);
        }
        let mut last = self.offset;
        for (size, stride) in self.shape.iter().zip(&self.stride) {
            last = last.checked_add(stride.checked_mul(size - 1)?)?;
        }
        last.checked_add(1)
    }

    /// Whether it is dense with the last dimension fastest.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (size, stride) in self.shape.iter().zip(&self.stride).rev() {
            if *size == 0 {
                return true;
            }
            if *size != 1 {
                if *stride != expected {
                    // A zero further out still makes the tensor empty, hence contiguous.
                    return self.shape.contains(&0);
                }
                expected = expected.saturating_mul(*size);
            }
        }
        true
    }

    /// Whether every element of a dense block is addressed exactly once, in whatever order.
    pub fn is_dense(&self) -> bool {
        let mut order: SmallVec<[usize; 6]> = (0..self.rank()).filter(|d| self.shape[*d] != 1).collect();
        order.sort_by_key(|d| self.stride[*d]);
        let mut expected = 1;
        for d in order {
            if self.stride[d] != expected {
                return false;
            }
            expected = expected.saturating_mul(self.shape[d]);
        }
        true
    }

    /// Whether two positions may share a memory cell. Exact for layouts whose dimensions nest (every layout that
    /// slicing, permuting and expanding a dense tensor gives); otherwise it answers yes.
    pub fn may_overlap(&self) -> bool {
        if self.numel() <= 1 {
            return false;
        }
        let mut order: SmallVec<[usize; 6]> = (0..self.rank()).filter(|d| self.shape[*d] > 1).collect();
        order.sort_by_key(|d| self.stride[*d]);
        let mut reach = 0i64;
        for d in order {
            if self.stride[d] <= reach {
                return true;
            }
            reach = reach.saturating_add(self.stride[d].saturating_mul(self.shape[d] - 1));
        }
        false
    }
}

/// The number of elements of a shape; `i64::MAX` when it does not fit.
pub fn numel(shape: &[i64]) -> i64 {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |n: i64, d| n.saturating_mul(*d)) }
}

/// The strides of a dense tensor, last dimension fastest. A dimension of size 0 counts as 1, as in PyTorch.
pub fn contiguous_strides(shape: &[i64]) -> Dims {
    let mut strides: Dims = shape.into();
    let mut next = 1i64;
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = next.saturating_mul((*size).max(1));
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_contiguous_are_different_things() {
        let transposed = Layout::new(&[2, 3], &[1, 2], 0);
        assert!(transposed.is_dense() && !transposed.is_contiguous());
        let expanded = Layout::new(&[2, 3], &[0, 1], 0);
        assert!(!expanded.is_dense() && expanded.may_overlap());
        let sliced = Layout::new(&[2, 3], &[8, 2], 1);
        assert!(!sliced.is_dense() && !sliced.may_overlap());
        assert_eq!(sliced.span(), Some(14));
    }

    #[test]
    fn a_window_view_overlaps() {
        assert!(Layout::new(&[4, 3], &[1, 1], 0).may_overlap());
        assert!(!Layout::new(&[1, 3], &[0, 1], 0).may_overlap());
    }

    #[test]
    fn sizes_that_overflow_are_noticed() {
        assert_eq!(Layout::new(&[i64::MAX, 2], &[2, 1], 0).span(), None);
        assert_eq!(numel(&[i64::MAX, 4]), i64::MAX);
        assert_eq!(numel(&[i64::MAX, 4, 0]), 0);
    }
}
