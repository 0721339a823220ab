//! Discrete Fourier transforms of any length, in double precision.
//!
//! Lengths whose prime factors are small are split by those factors; other lengths become a convolution of a power of
//! two (Bluestein's algorithm). Both take `n log n` steps. Nothing is scaled.

use std::f64::consts::PI;

use num_complex::Complex64;

/// Prime factors up to this are worth a step of their own.
const LARGEST_FACTOR: usize = 31;
/// Fewer elements than this stay on one thread.
const PARALLEL: usize = 1 << 14;

/// The sign of the exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `exp(-2πi·jk/n)`.
    Forward,
    /// `exp(2πi·jk/n)`.
    Backward,
}

/// What transforms of one length share.
pub struct Plan {
    len: usize,
    method: Method,
}

enum Method {
    /// Split by these factors; the table holds all roots of unity of the length.
    Factors(Vec<usize>, Vec<Complex64>),
    /// A convolution of the inner length with a chirp, whose transform is kept.
    Chirp { chirp: Vec<Complex64>, kernel: Vec<Complex64>, inner: Box<Plan> },
}

/// `exp(-2πi·k/n)`
fn root(k: usize, n: usize) -> Complex64 {
    let angle = -2.0 * PI * (k % n) as f64 / n as f64;
    Complex64::new(angle.cos(), angle.sin())
}

impl Plan {
    /// Prepares forward transforms of a length of at least one.
    pub fn new(len: usize) -> Self {
        let (mut rest, mut factors) = (len, Vec::new());
        for factor in [4, 2, 3].into_iter().chain((5..=LARGEST_FACTOR).step_by(2)) {
            while rest.is_multiple_of(factor) {
                factors.push(factor);
                rest /= factor;
            }
        }
        if rest == 1 {
            let table = (0..len).map(|k| root(k, len)).collect();
            return Self { len, method: Method::Factors(factors, table) };
        }
        let size = (2 * len - 1).next_power_of_two();
        let inner = Box::new(Self::new(size));
        let chirp: Vec<Complex64> =
            (0..len).map(|k| root((k as u128 * k as u128 % (2 * len as u128)) as usize, 2 * len)).collect();
        let mut kernel = vec![Complex64::ZERO; size];
        for (k, value) in chirp.iter().enumerate() {
            kernel[k] = value.conj();
            kernel[(size - k) % size] = value.conj();
        }
        inner.forward(&mut kernel);
        Self { len, method: Method::Chirp { chirp, kernel, inner } }
    }

    /// Transforms one line in place.
    pub fn run(&self, line: &mut [Complex64], direction: Direction) {
        if direction == Direction::Forward {
            return self.forward(line);
        }
        line.iter_mut().for_each(|v| *v = v.conj());
        self.forward(line);
        line.iter_mut().for_each(|v| *v = v.conj());
    }

    fn forward(&self, line: &mut [Complex64]) {
        match &self.method {
            Method::Factors(factors, table) => {
                let input = line.to_vec();
                split(&input, 1, line, factors, table);
            }
            Method::Chirp { chirp, kernel, inner } => {
                let mut buffer = vec![Complex64::ZERO; kernel.len()];
                for ((to, value), factor) in buffer.iter_mut().zip(&*line).zip(chirp) {
                    *to = value * factor;
                }
                inner.forward(&mut buffer);
                for (value, factor) in buffer.iter_mut().zip(kernel) {
                    *value = (*value * factor).conj();
                }
                inner.forward(&mut buffer);
                let scale = 1.0 / kernel.len() as f64;
                for ((to, value), factor) in line.iter_mut().zip(&buffer).zip(chirp) {
                    *to = value.conj() * factor * scale;
                }
            }
        }
    }
}

/// Transforms every `step`-th element of `input` into `out`: the parts that the first factor makes, each by itself,
/// then combined.
fn split(input: &[Complex64], step: usize, out: &mut [Complex64], factors: &[usize], table: &[Complex64]) {
    let Some((&factor, rest)) = factors.split_first() else {
        out[0] = input[0];
        return;
    };
    let part = out.len() / factor;
    for r in 0..factor {
        split(&input[r * step..], step * factor, &mut out[r * part..(r + 1) * part], rest, table);
    }
    let all = table.len();
    let turn = all / factor;
    let mut terms = [Complex64::ZERO; LARGEST_FACTOR];
    for k in 0..part {
        for r in 0..factor {
            terms[r] = out[r * part + k] * table[r * k * step];
        }
        for q in 0..factor {
            out[q * part + k] = (1..factor).fold(terms[0], |sum, r| sum + terms[r] * table[(r * q % factor) * turn]);
        }
    }
}

/// Transforms a dense tensor along one dimension.
pub fn along(data: &mut [Complex64], shape: &[usize], dim: usize, direction: Direction) {
    let (len, inner) = (shape[dim], shape[dim + 1..].iter().product::<usize>());
    if data.is_empty() || len <= 1 {
        return;
    }
    let plan = Plan::new(len);
    let block = |block: &mut [Complex64]| {
        if inner == 1 {
            return plan.run(block, direction);
        }
        let mut line = vec![Complex64::ZERO; plan.len];
        for offset in 0..inner {
            for (j, value) in line.iter_mut().enumerate() {
                *value = block[j * inner + offset];
            }
            plan.run(&mut line, direction);
            for (j, value) in line.iter().enumerate() {
                block[j * inner + offset] = *value;
            }
        }
    };
    if data.len() < PARALLEL {
        data.chunks_mut(len * inner).for_each(block);
    } else {
        pyrite_threads::chunks(data, len * inner, |_, part| block(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_agrees_with_the_sum_that_defines_it() {
        for n in (1..70).chain([97, 128, 211]) {
            let line: Vec<Complex64> =
                (0..n).map(|k| Complex64::new((k as f64 * 1.3).sin(), (k as f64 * 0.7).cos())).collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let mut fast = line.clone();
                Plan::new(n).run(&mut fast, direction);
                for (k, value) in fast.iter().enumerate() {
                    let factor = |j: usize| match direction {
                        Direction::Forward => root(j * k, n),
                        Direction::Backward => root(j * k, n).conj(),
                    };
                    let slow: Complex64 = line.iter().enumerate().map(|(j, v)| v * factor(j)).sum();
                    assert!((slow - value).norm() < 1e-12 * n as f64, "length {n}, {direction:?}, element {k}");
                }
            }
        }
    }
}
