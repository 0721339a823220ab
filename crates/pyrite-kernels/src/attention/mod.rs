//! Attention, `softmax(scale·query·keyᵀ + mask)·value`, and its gradients, without the scores in memory.
//!
//! Keys are taken a block at a time, and queries a block at a time against them, so that the scores in flight stay in
//! the second-level cache for any length of either. Each block of keys is packed once for all queries of a task. What
//! one block of keys adds to a row is weighed against the row's largest score so far ([`forward`]); the gradients start
//! from the logarithm of each row's sum of exponentials, so they need no second look at a row ([`backward`]).
//!
//! A row whose keys are all masked out gives zeros, and a logarithm of zero. NaN in a score makes its row NaN.

mod backward;
mod forward;
mod soften;

pub use backward::{Gradients, Saved, backward};
pub use forward::forward;
use pyrite_matmul::{Base, Lane, Matrix, Onto, Packed, Request, Right, Shape, Threads, multiply_into, provider};
pub use soften::Score;

/// Sizes, and how queries see keys.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// Sequences.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// How many heads of queries share one of keys and values.
    pub group: usize,
    /// Queries of a head.
    pub queries: usize,
    /// Keys of a head.
    pub keys: usize,
    /// Numbers in a query, a key, a value.
    pub width: usize,
    /// The factor of the scores.
    pub scale: f64,
    /// Whether a query sees only the keys up to its own position.
    pub causal: bool,
}

impl Problem {
    /// Heads of keys and values.
    pub fn shared_heads(&self) -> usize {
        self.heads / self.group
    }

    /// How many keys a query sees.
    fn seen(&self, query: usize) -> usize {
        if self.causal { self.keys.min(query + 1) } else { self.keys }
    }
}

/// A tensor of shape (batch, heads, rows, width) whose rows are dense.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a, T> {
    /// Its elements from the first on.
    pub data: &'a [T],
    /// Elements from one sequence to the next, one head to the next, one row to the next.
    pub stride: [usize; 3],
}

impl<'a, T> Heads<'a, T> {
    /// One row.
    fn row(&self, (b, h): (usize, usize), row: usize, width: usize) -> &'a [T] {
        &self.data[b * self.stride[0] + h * self.stride[1] + row * self.stride[2]..][..width]
    }

    /// The rows of one head.
    fn rows(&self, (b, h): (usize, usize), first: usize, (rows, width): (usize, usize)) -> Matrix<'a, T> {
        let start = b * self.stride[0] + h * self.stride[1] + first * self.stride[2];
        Matrix {
            data: &self.data[start..],
            shape: Shape { rows, cols: width, row_stride: self.stride[2], col_stride: 1 },
        }
    }
}

/// The same to be written. Tasks write different rows of it at the same time.
#[derive(Debug)]
pub struct Target<'a, T> {
    data: *mut T,
    len: usize,
    stride: [usize; 3],
    memory: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: tasks write different rows, as each of the functions here that take one says, so sharing it is like sharing parts of
// the slice that it was made from.
#[expect(unsafe_code, reason = "threads write different rows of one tensor")]
unsafe impl<T: Send> Sync for Target<'_, T> {}

impl<'a, T> Target<'a, T> {
    /// The rows of a slice whose elements have these strides.
    pub fn new(data: &'a mut [T], stride: [usize; 3]) -> Self {
        Self { data: data.as_mut_ptr(), len: data.len(), stride, memory: std::marker::PhantomData }
    }

    fn at(&self, (b, h): (usize, usize), row: usize) -> usize {
        b * self.stride[0] + h * self.stride[1] + row * self.stride[2]
    }

    /// One row.
    // SAFETY: callers make sure that nobody else reads or writes the row meanwhile.
    #[expect(unsafe_code, clippy::mut_from_ref, reason = "threads write different rows of one tensor")]
    unsafe fn row(&self, head: (usize, usize), row: usize, width: usize) -> &mut [T] {
        let start = self.at(head, row);
        assert!(start + width <= self.len, "a row behind the last one");
        // SAFETY: the row lies within the slice, and callers have it to themselves.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), width) }
    }

    /// `out = keep·out + scale·(lhs @ rhs)` for some rows.
    // SAFETY: callers make sure that nobody else reads or writes these rows meanwhile.
    #[expect(unsafe_code, reason = "threads write different rows of one tensor")]
    unsafe fn product(
        &self,
        (head, first): ((usize, usize), usize),
        lhs: Matrix<'_, T>,
        rhs: &Operand<'_, T>,
        scale: T,
        onto: Onto<T>,
    ) where
        T: Score,
    {
        let start = self.at(head, first);
        let shape =
            Shape { rows: lhs.shape.rows, cols: rhs.plain.shape.cols, row_stride: self.stride[2], col_stride: 1 };
        assert!(shape.span().is_some_and(|span| start + span <= self.len), "rows behind the last one");
        // SAFETY: the rows lie within the slice, and callers have them to themselves.
        unsafe { product(self.data.add(start), shape, lhs, rhs, scale, onto) };
    }
}

/// What is added to the scores.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a, T> {
    /// Its elements.
    pub data: &'a [T],
    /// Elements from one sequence, head, query and key to the next; 0 repeats one.
    pub stride: [usize; 4],
}

impl<T: Copy> Mask<'_, T> {
    fn start(&self, (b, h): (usize, usize), query: usize, key: usize) -> usize {
        let s = &self.stride;
        b * s[0] + h * s[1] + query * s[2] + key * s[3]
    }
}

/// A right operand, in panels where the processor has microkernels and several rows are multiplied with it.
struct Operand<'a, T: Lane> {
    plain: Matrix<'a, T>,
    packed: Option<Packed<T>>,
}

impl<'a, T: Score> Operand<'a, T> {
    fn new(plain: Matrix<'a, T>, rows: usize) -> Self {
        let packed = if rows > 1 { Packed::for_now(plain) } else { None };
        Self { plain, packed }
    }
}

/// `out = keep·out + scale·(lhs @ rhs)` on the calling thread.
// SAFETY: callers make sure that the output has every element of the shape, and that nobody else reads or writes them
// meanwhile.
#[expect(unsafe_code, reason = "threads write different rows of one tensor")]
unsafe fn product<T: Score>(
    out: *mut T,
    shape: Shape,
    lhs: Matrix<'_, T>,
    rhs: &Operand<'_, T>,
    scale: T,
    onto: Onto<T>,
) {
    if shape.rows > 1
        && let Some(packed) = &rhs.packed
    {
        let (rhs, onto) = (Right::Packed(packed), Base::Out(onto));
        let request: Request<'_, T, T> = Request { lhs, rhs, scale, onto, threads: Threads::One, finish: None };
        // SAFETY: as above.
        unsafe { multiply_into(out, shape, &request) };
    } else {
        let Some(span) = shape.span() else { panic!("an output larger than memory") };
        // SAFETY: as above.
        let out = unsafe { std::slice::from_raw_parts_mut(out, span) };
        provider::<T>().gemm((out, shape), lhs, rhs.plain, scale, onto, Threads::One);
    }
}

/// Cuts a length into blocks of at most `most`, as equal as can be: the size of each but the last.
fn even(length: usize, most: usize) -> usize {
    length.div_ceil(length.div_ceil(most).max(1)).max(1)
}

/// A block of scores of one head.
#[derive(Clone, Copy)]
struct Block {
    head: (usize, usize),
    /// The first query and how many.
    queries: (usize, usize),
    /// The first key and how many.
    keys: (usize, usize),
}

impl Problem {
    /// The scores of a block, scaled and masked: -inf where a key is not seen. Rows lie `keys` apart.
    fn scores<'s, T: Score>(
        &self,
        block: Block,
        query: &Heads<'_, T>,
        keys: &Operand<'_, T>,
        mask: Option<&Mask<'_, T>>,
        memory: &'s mut Vec<T>,
    ) -> &'s mut [T] {
        let ((first, rows), (key, cols)) = (block.queries, block.keys);
        if memory.len() < rows * cols {
            memory.resize(rows * cols, T::ZERO);
        }
        let scores = &mut memory[..rows * cols];
        let lhs = query.rows(block.head, first, (rows, self.width));
        // SAFETY: the scores are borrowed exclusively.
        #[expect(unsafe_code, reason = "microkernels work on raw memory")]
        unsafe {
            product(
                scores.as_mut_ptr(),
                Shape::rows_first(rows, cols),
                lhs,
                keys,
                T::rounded(self.scale),
                Onto::Nothing,
            );
        }
        for (i, row) in scores.chunks_exact_mut(cols).enumerate() {
            if let Some(mask) = mask {
                let start = mask.start(block.head, first + i, key);
                match mask.stride[3] {
                    1 => row.iter_mut().zip(&mask.data[start..start + cols]).for_each(|(s, m)| *s = s.plus(*m)),
                    step => row.iter_mut().enumerate().for_each(|(j, s)| *s = s.plus(mask.data[start + j * step])),
                }
            }
            let seen = self.seen(first + i).saturating_sub(key);
            if seen < cols {
                row[seen..].fill(T::LEAST);
            }
        }
        scores
    }
}

#[cfg(test)]
mod tests;
