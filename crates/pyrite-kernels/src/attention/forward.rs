//! Attention itself.

use pyrite_matmul::{Matrix, Onto, Shape};

use super::soften::{Score, Soften, Times, run};
use super::{Block, Heads, Mask, Operand, Problem, Target, even};

/// Queries of a block, at most.
const QUERIES: usize = 112;
/// Keys of a block, at most: with as many queries, scores of 112 KiB in single precision.
const KEYS: usize = 256;
/// Tasks for each thread, so that threads end at about the same time.
const SHARE: usize = 4;

/// Computes the output, and for each query the logarithm of its sum of exponentials. The rows of `logs` are single
/// numbers.
///
/// # Panics
/// When a tensor is shorter than the problem says.
pub fn forward<T: Score>(
    p: &Problem,
    [query, key, value]: [Heads<'_, T>; 3],
    mask: Option<Mask<'_, T>>,
    out: &Target<'_, T>,
    logs: &Target<'_, T>,
) {
    let heads = p.batch * p.heads;
    if heads == 0 || p.queries == 0 || p.width == 0 {
        return;
    }
    let size = even(p.queries, QUERIES);
    let blocks = p.queries.div_ceil(size);
    let parts = (SHARE * pyrite_threads::count()).div_ceil(heads).clamp(1, blocks);
    pyrite_threads::each(heads * parts, |task| {
        let (head, part) = (task / parts, task % parts);
        let rows = [part, part + 1].map(|part| (part * blocks / parts * size).min(p.queries));
        let task = Task { p, head: (head / p.heads, head % p.heads), query, key, value, mask, out, logs };
        task.run(rows[0], rows[1]);
    });
}

/// Some queries of one head. No other task has them.
struct Task<'a, T> {
    p: &'a Problem,
    head: (usize, usize),
    query: Heads<'a, T>,
    key: Heads<'a, T>,
    value: Heads<'a, T>,
    mask: Option<Mask<'a, T>>,
    out: &'a Target<'a, T>,
    logs: &'a Target<'a, T>,
}

impl<T: Score> Task<'_, T> {
    fn run(&self, begin: usize, end: usize) {
        let (p, rows) = (self.p, end - begin);
        let shared = (self.head.0, self.head.1 / p.group);
        let (mut most, mut sum) = (vec![T::LEAST; rows], vec![T::ZERO; rows]);
        let mut scores = Vec::new();
        // Keys that the last query does not see are seen by none.
        let seen = p.seen(end - 1);
        let (width, height) = (even(seen, KEYS), even(rows, QUERIES));
        for first in (0..seen).step_by(width) {
            let cols = width.min(seen - first);
            let keys = Operand::new(self.key.rows(shared, first, (cols, p.width)).transposed(), rows);
            let values = Operand::new(self.value.rows(shared, first, (cols, p.width)), rows);
            for query in (begin..end).step_by(height) {
                let count = height.min(end - query);
                // Every query has seen the first key, so there is no row that this leaves unwritten.
                if p.seen(query + count - 1) <= first {
                    continue;
                }
                let block = Block { head: self.head, queries: (query, count), keys: (first, cols) };
                let scores = p.scores(block, &self.query, &keys, self.mask.as_ref(), &mut scores);
                self.add(block, scores, &values, (&mut most[query - begin..], &mut sum[query - begin..]));
            }
        }
        self.finish(begin, &most, &sum);
    }

    /// Adds the values of a block of keys to the rows of its queries.
    fn add(&self, block: Block, scores: &mut [T], values: &Operand<'_, T>, (most, sum): (&mut [T], &mut [T])) {
        let ((query, count), (first, cols)) = (block.queries, block.keys);
        let mut factor = [T::ONE; QUERIES];
        run(Soften { scores, cols, most, sum, factor: &mut factor });
        if first > 0 {
            for (i, factor) in factor[..count].iter().enumerate().filter(|(_, factor)| **factor != T::ONE) {
                // SAFETY: no other task has this query.
                #[expect(unsafe_code, reason = "threads write different rows of one tensor")]
                let row = unsafe { self.out.row(self.head, query + i, self.p.width) };
                run(Times { row, factor: *factor });
            }
        }
        let weights = Matrix { data: &*scores, shape: Shape::rows_first(count, cols) };
        let onto = if first == 0 { Onto::Nothing } else { Onto::Scaled(T::ONE) };
        // SAFETY: no other task has these queries.
        #[expect(unsafe_code, reason = "threads write different rows of one tensor")]
        unsafe {
            self.out.product((self.head, query), weights, values, T::ONE, onto);
        }
    }

    fn finish(&self, begin: usize, most: &[T], sum: &[T]) {
        for (i, (most, sum)) in most.iter().zip(sum).enumerate() {
            // SAFETY: no other task has this query.
            #[expect(unsafe_code, reason = "threads write different rows of one tensor")]
            let (row, log) =
                unsafe { (self.out.row(self.head, begin + i, self.p.width), self.logs.row(self.head, begin + i, 1)) };
            if *most == T::LEAST {
                // All keys are masked out, or there are none.
                row.fill(T::ZERO);
                log[0] = T::ZERO;
                continue;
            }
            run(Times { row, factor: sum.inverse() });
            log[0] = most.plus(sum.ln());
        }
    }
}
