//! Reading and writing at computed positions.
//!
//! [`Plan`] is PyTorch's indexing by tensors: some dimensions are replaced by the shape that the index tensors
//! broadcast to. [`along`] is indexing along one dimension by a tensor of the result's shape (`gather`, `scatter`).

use pyrite_ir::{OpError, invalid, unsupported};
use pyrite_tensor::walk::Walk;
use pyrite_tensor::{DType, Tensor, layout};

/// What a negative index means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negative {
    /// It counts from the end.
    Wrap,
    /// It is an error.
    Refuse,
    /// Every index is moved into the range.
    Clamp,
}

/// An index within `size`.
pub fn bounded(index: i64, size: i64, negative: Negative) -> Result<i64, OpError> {
    let wrapped = match negative {
        Negative::Wrap if index < 0 => index.saturating_add(size),
        Negative::Clamp => index.clamp(0, (size - 1).max(0)),
        _ => index,
    };
    if !(0..size).contains(&wrapped) {
        return Err(OpError::OutOfRange(format!("index {index} is out of range for a dimension of size {size}")));
    }
    Ok(wrapped)
}

/// The places of the true elements, one list of coordinates per dimension.
pub fn nonzero(mask: &Tensor) -> Vec<Vec<i64>> {
    let shape = mask.shape();
    let mut found = vec![Vec::new(); shape.len()];
    for (at, _) in mask.to_bools().into_iter().enumerate().filter(|(_, v)| *v) {
        let mut rest = at as i64;
        for d in (0..shape.len()).rev() {
            found[d].push(rest % shape[d]);
            rest /= shape[d];
        }
    }
    found
}

/// The index tensors of a call after masks became coordinates: a dimension, its indices, and their shape.
fn expanded(shape: &[i64], indices: &[Option<&Tensor>]) -> Result<Vec<(usize, Vec<i64>, Vec<i64>)>, OpError> {
    let mut result = Vec::new();
    let mut dim = 0;
    for index in indices {
        let Some(index) = index else {
            dim += 1;
            continue;
        };
        match index.dtype() {
            DType::Bool | DType::U8 => {
                if index.rank() == 0 {
                    unsupported!("a mask without dimensions as an index");
                }
                let fits = shape.get(dim..dim + index.rank()).is_some_and(|sizes| sizes == index.shape());
                if !fits {
                    invalid!("a mask of shape {:?} does not fit shape {shape:?} at dimension {dim}", index.shape());
                }
                for coordinates in nonzero(index) {
                    let count = coordinates.len() as i64;
                    result.push((dim, coordinates, vec![count]));
                    dim += 1;
                }
            }
            dtype if dtype.is_integral() => {
                result.push((dim, index.to_i64s(), index.shape().to_vec()));
                dim += 1;
            }
            dtype => invalid!("an index tensor must hold integers or bools, not {dtype}"),
        }
    }
    if dim > shape.len() {
        invalid!("too many indices: {dim} for a tensor of {} dimensions", shape.len());
    }
    Ok(result)
}

/// Where the elements of an indexed tensor lie.
pub struct Plan {
    /// The shape of the result: kept dimensions, indexed ones, kept dimensions.
    pub shape: Vec<i64>,
    /// Sizes and strides of the kept dimensions before the indexed ones.
    before: (Vec<i64>, Vec<i64>),
    /// Number of dimensions that the indices have together.
    indexed: usize,
    /// The offset of each combination of indices.
    offsets: Vec<i64>,
    /// Sizes and strides of the kept dimensions after the indexed ones.
    after: (Vec<i64>, Vec<i64>),
}

impl Plan {
    /// Plans the indexing of a tensor of this shape and these strides.
    pub fn new(
        shape: &[i64],
        strides: &[i64],
        indices: &[Option<&Tensor>],
        negative: Negative,
    ) -> Result<Self, OpError> {
        let indices = expanded(shape, indices)?;
        let broadcast = broadcast(indices.iter().map(|(_, _, shape)| shape.as_slice()))?;
        let mut offsets = vec![0; layout::numel(&broadcast) as usize];
        for (dim, values, own) in &indices {
            let steps = pyrite_tensor::tensor::broadcast_strides(own, &layout::contiguous_strides(own), &broadcast);
            let walk = Walk::new(&broadcast, &[&steps]);
            let mut next = 0;
            let mut problem = None;
            walk.each_row(|at| {
                for j in 0..walk.row {
                    let value = values[(at[0] + j as i64 * walk.row_strides[0]) as usize];
                    match bounded(value, shape[*dim], negative) {
                        Ok(value) => offsets[next] += value * strides[*dim],
                        Err(error) => problem = Some(error),
                    }
                    next += 1;
                }
            });
            if let Some(problem) = problem {
                return Err(problem);
            }
        }
        let dims: Vec<usize> = indices.iter().map(|(dim, ..)| *dim).collect();
        let lead = lead(&dims, shape.len());
        let kept: Vec<usize> = (0..shape.len()).filter(|d| !dims.contains(d)).collect();
        let pick = |dims: &[usize]| -> (Vec<i64>, Vec<i64>) {
            (dims.iter().map(|d| shape[*d]).collect(), dims.iter().map(|d| strides[*d]).collect())
        };
        let (before, after) = (pick(&kept[..lead]), pick(&kept[lead..]));
        let shape = [before.0.as_slice(), &broadcast, &after.0].concat();
        Ok(Self { shape, before, indexed: broadcast.len(), offsets, after })
    }

    /// Visits the result row by row, in order: `visit(at, other, row)` gets the offset in the indexed tensor, the
    /// offset in a tensor of the result's shape with the given strides, and the row's length and two strides.
    pub fn each_row(&self, other: &[i64], mut visit: impl FnMut(i64, i64, (usize, i64, i64))) {
        let lead = self.before.0.len();
        let middle = lead + self.indexed;
        let outer = positions(&self.before.0, [&self.before.1, &other[..lead]]);
        let inner = positions(&self.shape[lead..middle], [&vec![0; self.indexed], &other[lead..middle]]);
        let walk = Walk::new(&self.after.0, &[&self.after.1, &other[middle..]]);
        let row = (walk.row, walk.row_strides[0], walk.row_strides[1]);
        for (at, to) in outer {
            for (offset, (_, place)) in self.offsets.iter().zip(&inner) {
                if row.0 == 1 && walk.rows() == 1 {
                    visit(at + offset, to + place, row);
                } else {
                    walk.each_row(|start| visit(at + offset + start[0], to + place + start[1], row));
                }
            }
        }
    }
}

/// How many kept dimensions come before the indexed ones: those in front when the indexed ones are neighbours, else
/// none.
pub fn lead(dims: &[usize], rank: usize) -> usize {
    match (dims.first(), dims.last()) {
        (Some(first), Some(last)) if last - first + 1 == dims.len() => *first,
        (Some(_), _) => 0,
        _ => rank,
    }
}

fn broadcast<'a>(shapes: impl Iterator<Item = &'a [i64]> + Clone) -> Result<Vec<i64>, OpError> {
    let rank = shapes.clone().map(<[i64]>::len).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for shape in shapes {
        for (slot, size) in result[rank - shape.len()..].iter_mut().zip(shape) {
            if *slot == 1 {
                *slot = *size;
            } else if *size != 1 && size != slot {
                invalid!("index tensors of different shapes that do not broadcast");
            }
        }
    }
    Ok(result)
}

/// The offsets of all positions of a shape under two lists of strides, in order.
fn positions(shape: &[i64], strides: [&[i64]; 2]) -> Vec<(i64, i64)> {
    let walk = Walk::new(shape, &strides);
    let mut result = Vec::with_capacity(layout::numel(shape) as usize);
    walk.each_row(|at| {
        let step = |j: usize, k: usize| at[k] + j as i64 * walk.row_strides[k];
        result.extend((0..walk.row).map(|j| (step(j, 0), step(j, 1))));
    });
    result
}

/// Visits the positions of an index tensor, in order: `visit(at, other)` gets the offset in a tensor with the given
/// strides, moved along `dim` by the index, and the offset in one with the strides `other`.
///
/// Tensors without dimensions count as having one of size 1.
pub fn along(
    index: &Tensor,
    dim: usize,
    (size, strides): (i64, &[i64]),
    other: &[i64],
    mut visit: impl FnMut(usize, usize),
) -> Result<(), OpError> {
    let (mut still, step) = (strides.to_vec(), strides.get(dim).copied().unwrap_or(1));
    if let Some(stride) = still.get_mut(dim) {
        *stride = 0;
    }
    let indices = index.to_i64s();
    // Checked beforehand, so that an error leaves nothing half-written.
    for value in &indices {
        bounded(*value, size, Negative::Refuse)?;
    }
    let walk = Walk::new(index.shape(), &[&still, other]);
    let mut next = indices.iter();
    walk.each_row(|at| {
        for (j, index) in next.by_ref().take(walk.row).enumerate() {
            let place = |k: usize| at[k] + j as i64 * walk.row_strides[k];
            visit((place(0) + index * step) as usize, place(1) as usize);
        }
    });
    Ok(())
}

/// Runs a body with a type as wide as an element of a data type bound to a name, for kernels that only move elements.
#[macro_export]
macro_rules! moved {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = i16;
                $body
            }
            4 => {
                type $T = i32;
                $body
            }
            8 => {
                type $T = i64;
                $body
            }
            _ => {
                type $T = pyrite_tensor::Complex64;
                $body
            }
        }
    };
}

/// Whether PyTorch adds slices along a dimension to the memory of the result, where every sum is rounded, or beside it.
pub fn adds_in_place(rank: usize, dim: usize) -> bool {
    rank < 2 || (dim > 0 && dim + 1 < rank)
}
