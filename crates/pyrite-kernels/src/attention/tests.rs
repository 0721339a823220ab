//! Against attention written out in double precision, for sizes around those of blocks.

use super::*;

/// Numbers between -1 and 1.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Memory of (batch, heads, rows, width) with the heads inside of the rows, as models have it.
struct Tensor {
    data: Vec<f32>,
    stride: [usize; 3],
}

impl Tensor {
    fn new((batch, heads, rows, width): (usize, usize, usize, usize), seed: u64) -> Self {
        Self { data: numbers(batch * heads * rows * width, seed), stride: [rows * heads * width, width, heads * width] }
    }

    fn heads(&self) -> Heads<'_, f32> {
        Heads { data: &self.data, stride: self.stride }
    }

    fn target(&mut self) -> Target<'_, f32> {
        Target::new(&mut self.data, self.stride)
    }

    fn at(&self, (b, h): (usize, usize), row: usize, col: usize) -> f64 {
        f64::from(self.data[b * self.stride[0] + h * self.stride[1] + row * self.stride[2] + col])
    }
}

struct Case {
    p: Problem,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Option<Vec<f32>>,
}

impl Case {
    fn new((queries, keys, width): (usize, usize, usize), group: usize, causal: bool, masked: bool) -> Self {
        let (batch, heads) = (2, 2 * group);
        let p = Problem { batch, heads, group, queries, keys, width, scale: 0.3, causal };
        let mut mask = masked.then(|| numbers(queries * keys, 4));
        if let Some(mask) = &mut mask {
            // The first query sees nothing, the others not every third key.
            mask.iter_mut().step_by(3).for_each(|m| *m = f32::NEG_INFINITY);
            mask[..keys].fill(f32::NEG_INFINITY);
        }
        Self {
            p,
            query: Tensor::new((batch, heads, queries, width), 1),
            key: Tensor::new((batch, 2, keys, width), 2),
            value: Tensor::new((batch, 2, keys, width), 3),
            mask,
        }
    }

    fn mask(&self) -> Option<Mask<'_, f32>> {
        self.mask.as_ref().map(|data| Mask { data, stride: [0, 0, self.p.keys, 1] })
    }

    /// The weights of a query, and the logarithm of its sum of exponentials.
    fn weights(&self, head: (usize, usize), query: usize) -> (Vec<f64>, f64) {
        let shared = (head.0, head.1 / self.p.group);
        let score = |key: usize| {
            if self.p.causal && key > query {
                return f64::NEG_INFINITY;
            }
            let dot: f64 = (0..self.p.width).map(|c| self.query.at(head, query, c) * self.key.at(shared, key, c)).sum();
            dot * self.p.scale + self.mask.as_ref().map_or(0.0, |mask| f64::from(mask[query * self.p.keys + key]))
        };
        let scores: Vec<f64> = (0..self.p.keys).map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return (vec![0.0; scores.len()], 0.0);
        }
        let sum: f64 = scores.iter().map(|s| (s - most).exp()).sum();
        (scores.iter().map(|s| (s - most).exp() / sum).collect(), most + sum.ln())
    }

    fn every_query(&self) -> impl Iterator<Item = ((usize, usize), usize)> {
        let (batch, heads, queries) = (self.p.batch, self.p.heads, self.p.queries);
        (0..batch * heads * queries).map(move |i| ((i / queries / heads, i / queries % heads), i % queries))
    }

    fn check(&self) {
        let (p, sizes) = (&self.p, (self.p.batch, self.p.heads, self.p.queries, self.p.width));
        let mut out = Tensor::new(sizes, 5);
        let mut logs = Tensor::new((p.batch, p.heads, p.queries, 1), 6);
        let operands = [self.query.heads(), self.key.heads(), self.value.heads()];
        forward(p, operands, self.mask(), &out.target(), &logs.target());
        let near = |got: f64, exact: f64, what: &str| {
            assert!((got - exact).abs() <= 2e-5 * exact.abs().max(1.0), "{what} of {p:?}: {got} is not {exact}");
        };
        let grad = Tensor::new(sizes, 7);
        let (mut dq, mut dk) = (vec![0.0; out.data.len()], vec![0.0; self.key.data.len()]);
        let mut dv = dk.clone();
        let at = |t: &Tensor, (b, h): (usize, usize), row: usize, col: usize| {
            b * t.stride[0] + h * t.stride[1] + row * t.stride[2] + col
        };
        for (head, query) in self.every_query() {
            let shared = (head.0, head.1 / p.group);
            let (weights, log) = self.weights(head, query);
            near(logs.at(head, query, 0), log, "the logarithm");
            let mut inner = 0.0;
            for c in 0..p.width {
                let exact: f64 = (0..p.keys).map(|k| weights[k] * self.value.at(shared, k, c)).sum();
                near(out.at(head, query, c), exact, "the output");
                inner += exact * grad.at(head, query, c);
            }
            for (key, weight) in weights.iter().enumerate() {
                let slope: f64 = (0..p.width).map(|c| grad.at(head, query, c) * self.value.at(shared, key, c)).sum();
                let slope = weight * (slope - inner) * p.scale;
                for c in 0..p.width {
                    dq[at(&self.query, head, query, c)] += slope * self.key.at(shared, key, c);
                    dk[at(&self.key, shared, key, c)] += slope * self.query.at(head, query, c);
                    dv[at(&self.key, shared, key, c)] += weight * grad.at(head, query, c);
                }
            }
        }
        let mut got = [
            Tensor::new(sizes, 8),
            Tensor::new((p.batch, 2, p.keys, p.width), 9),
            Tensor::new((p.batch, 2, p.keys, p.width), 10),
        ];
        let [query, key, value] = &mut got;
        let saved = Saved {
            query: self.query.heads(),
            key: self.key.heads(),
            value: self.value.heads(),
            out: out.heads(),
            logs: logs.heads(),
            mask: self.mask(),
        };
        let to = Gradients { query: query.target(), key: key.target(), value: value.target() };
        backward(p, grad.heads(), &saved, &to);
        for (what, got, exact) in [
            ("a query's gradient", &got[0], dq),
            ("a key's gradient", &got[1], dk),
            ("a value's gradient", &got[2], dv),
        ] {
            got.data.iter().zip(exact).for_each(|(got, exact)| near(f64::from(*got), exact, what));
        }
    }
}

#[test]
fn attention_and_its_gradients_are_those_of_the_formula_at_any_size() {
    for sizes in
        [(1, 1, 1), (5, 7, 3), (64, 64, 16), (65, 513, 8), (130, 257, 20), (1, 700, 16), (200, 3, 33), (2, 1030, 4)]
    {
        Case::new(sizes, 1, false, false).check();
    }
}

#[test]
fn masks_causal_queries_and_shared_keys_are_respected() {
    for sizes in [(5, 7, 3), (65, 513, 8), (150, 40, 8), (40, 530, 8)] {
        Case::new(sizes, 1, true, false).check();
        Case::new(sizes, 1, false, true).check();
        Case::new(sizes, 3, false, false).check();
        Case::new(sizes, 2, true, false).check();
        Case::new(sizes, 2, false, true).check();
    }
}

#[test]
fn a_score_that_is_no_number_makes_its_own_row_nan() {
    let mut case = Case::new((70, 600, 8), 1, false, false);
    let third = 3 * case.query.stride[2];
    case.query.data[third] = f32::NAN;
    let p = case.p;
    let mut out = Tensor::new((p.batch, p.heads, p.queries, p.width), 5);
    let mut logs = Tensor::new((p.batch, p.heads, p.queries, 1), 6);
    let operands = [case.query.heads(), case.key.heads(), case.value.heads()];
    forward(&p, operands, None, &out.target(), &logs.target());
    for (head, query) in case.every_query() {
        let wanted = head == (0, 0) && query == 3;
        assert!((0..p.width).all(|c| out.at(head, query, c).is_nan() == wanted), "query {query} of head {head:?}");
    }
}

#[test]
fn without_keys_everything_is_zero() {
    let case = Case::new((5, 0, 3), 1, false, false);
    case.check();
}
