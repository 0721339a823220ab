//! The gradients of attention.
//!
//! With weights `P = exp(scores - logs)`: `dV = Pᵀ·dO`, `dS = P·(dO·Vᵀ - rowsum(dO·O))`, `dQ = scale·dS·K`,
//! `dK = scale·dSᵀ·Q`. Heads that share keys add up. A task has a head of keys with all queries that see it, so no two
//! tasks add to the same row.

use pyrite_matmul::{Matrix, Onto, Shape};

use super::soften::{Dot, Score, Slopes, run};
use super::{Block, Heads, Mask, Operand, Problem, Target, even};

/// Queries of a block, at most.
const QUERIES: usize = 128;
/// Keys of a block, at most.
const KEYS: usize = 256;

/// What the forward pass took and gave.
#[derive(Clone, Copy, Debug)]
pub struct Saved<'a, T> {
    /// The queries.
    pub query: Heads<'a, T>,
    /// The keys.
    pub key: Heads<'a, T>,
    /// The values.
    pub value: Heads<'a, T>,
    /// The output.
    pub out: Heads<'a, T>,
    /// The logarithm of each query's sum of exponentials; rows are single numbers.
    pub logs: Heads<'a, T>,
    /// The mask.
    pub mask: Option<Mask<'a, T>>,
}

/// Where the gradients go.
#[derive(Debug)]
pub struct Gradients<'a, T> {
    /// Of the queries.
    pub query: Target<'a, T>,
    /// Of the keys.
    pub key: Target<'a, T>,
    /// Of the values.
    pub value: Target<'a, T>,
}

/// Computes the gradients of queries, keys and values from that of the output.
///
/// # Panics
/// When a tensor is shorter than the problem says.
pub fn backward<T: Score>(p: &Problem, grad: Heads<'_, T>, saved: &Saved<'_, T>, to: &Gradients<'_, T>) {
    if p.heads == 0 || p.width == 0 {
        return;
    }
    let heads = p.shared_heads();
    pyrite_threads::each(p.batch * heads, |task| {
        let task = Task { p, shared: (task / heads, task % heads), grad, saved, to, inner: Vec::new() };
        task.run();
    });
}

/// A head of keys and the heads of queries that share it. No other task has them.
struct Task<'a, T> {
    p: &'a Problem,
    shared: (usize, usize),
    grad: Heads<'a, T>,
    saved: &'a Saved<'a, T>,
    to: &'a Gradients<'a, T>,
    /// For each query of each head `rowsum(dO·O)`, and the logarithm of its sum of exponentials.
    inner: Vec<(T, T)>,
}

impl<T: Score> Task<'_, T> {
    fn head(&self, member: usize) -> (usize, usize) {
        (self.shared.0, self.shared.1 * self.p.group + member)
    }

    fn run(mut self) {
        let p = self.p;
        let (mut scores, mut slopes) = (Vec::new(), Vec::new());
        self.inner = (0..p.group)
            .flat_map(|member| (0..p.queries).map(move |query| (member, query)))
            .map(|(member, query)| {
                let head = self.head(member);
                let (grad, out) = (self.grad.row(head, query, p.width), self.saved.out.row(head, query, p.width));
                (run(Dot(grad, out)), self.saved.logs.row(head, query, 1)[0])
            })
            .collect();
        let (width, height) = (even(p.keys, KEYS), even(p.queries, QUERIES));
        for first in (0..p.keys).step_by(width) {
            let cols = width.min(p.keys - first);
            let key = self.saved.key.rows(self.shared, first, (cols, p.width));
            let value = self.saved.value.rows(self.shared, first, (cols, p.width));
            let packed = Keys {
                first,
                cols,
                transposed: Operand::new(key.transposed(), p.queries),
                plain: Operand::new(key, p.queries),
                values: Operand::new(value.transposed(), p.queries),
            };
            let mut reached = false;
            for member in 0..p.group {
                for query in (0..p.queries).step_by(height) {
                    let count = height.min(p.queries - query);
                    // Every query sees the first key, so no query is left without a gradient.
                    if p.seen(query + count - 1) <= first {
                        continue;
                    }
                    let onto = if reached { Onto::Scaled(T::ONE) } else { Onto::Nothing };
                    self.block(&packed, member, (query, count), onto, (&mut scores, &mut slopes));
                    reached = true;
                }
            }
            if !reached {
                self.clear(first..first + cols);
            }
        }
        if p.keys == 0 {
            for (member, query) in (0..p.group).flat_map(|m| (0..p.queries).map(move |q| (m, q))) {
                // SAFETY: no other task has this head.
                #[expect(unsafe_code, reason = "threads write different rows of one tensor")]
                unsafe { self.to.query.row(self.head(member), query, p.width) }.fill(T::ZERO);
            }
        }
    }

    /// Keys that no query sees have no gradient.
    fn clear(&self, keys: std::ops::Range<usize>) {
        for key in keys {
            for target in [&self.to.key, &self.to.value] {
                // SAFETY: no other task has this head.
                #[expect(unsafe_code, reason = "threads write different rows of one tensor")]
                unsafe { target.row(self.shared, key, self.p.width) }.fill(T::ZERO);
            }
        }
    }

    /// What a block of scores adds to the gradients.
    fn block(
        &self,
        keys: &Keys<'_, T>,
        member: usize,
        (query, count): (usize, usize),
        onto: Onto<T>,
        (scores, slopes): (&mut Vec<T>, &mut Vec<T>),
    ) {
        let (p, head, saved) = (self.p, self.head(member), self.saved);
        let block = Block { head, queries: (query, count), keys: (keys.first, keys.cols) };
        let scores = p.scores(block, &saved.query, &keys.transposed, saved.mask.as_ref(), scores);
        if slopes.len() < scores.len() {
            slopes.resize(scores.len(), T::ZERO);
        }
        let slopes = &mut slopes[..scores.len()];
        let grad = self.grad.rows(head, query, (count, p.width));
        let shape = Shape::rows_first(count, keys.cols);
        // SAFETY: the slopes are borrowed exclusively.
        #[expect(unsafe_code, reason = "microkernels work on raw memory")]
        unsafe {
            super::product(slopes.as_mut_ptr(), shape, grad, &keys.values, T::ONE, Onto::Nothing);
        }
        let known = &self.inner[member * p.queries + query..][..count];
        let (mut inner, mut logs) = ([T::ZERO; QUERIES], [T::ZERO; QUERIES]);
        for (i, (dot, log)) in known.iter().enumerate() {
            (inner[i], logs[i]) = (*dot, *log);
        }
        run(Slopes {
            scores: &mut *scores,
            slopes: &mut *slopes,
            cols: keys.cols,
            logs: &logs[..count],
            inner: &inner[..count],
        });
        let (weights, slopes) = (Matrix { data: &*scores, shape }, Matrix { data: &*slopes, shape });
        let scale = T::rounded(p.scale);
        let queries = Operand::new(saved.query.rows(head, query, (count, p.width)), keys.cols);
        let grads = Operand::new(grad, keys.cols);
        let first = if keys.first == 0 { Onto::Nothing } else { Onto::Scaled(T::ONE) };
        // SAFETY: no other task has these heads.
        #[expect(unsafe_code, reason = "threads write different rows of one tensor")]
        unsafe {
            self.to.value.product((self.shared, keys.first), weights.transposed(), &grads, T::ONE, onto);
            self.to.key.product((self.shared, keys.first), slopes.transposed(), &queries, scale, onto);
            self.to.query.product((head, query), slopes, &keys.plain, scale, first);
        }
    }
}

/// A block of keys and values, packed for the matmuls that read them.
struct Keys<'a, T: Score> {
    first: usize,
    cols: usize,
    transposed: Operand<'a, T>,
    plain: Operand<'a, T>,
    values: Operand<'a, T>,
}
