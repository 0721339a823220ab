//! Products by our own microkernels.

use std::ops::Range;

use crate::blocked::{self, Gemm, run};
use crate::library::Library;
use crate::pack::{Source, View};
use crate::packed::Packed;
use crate::tile::{Isa, Lane, Start};
use crate::{Matrix, Onto, Provider, Shape, Threads, check};

/// Our own provider; see the crate's text.
pub struct Panels;

impl<S> View<S> {
    /// A matrix that lies within its slice.
    pub(crate) fn of(matrix: Matrix<'_, S>) -> Self {
        let shape = matrix.shape;
        // A stride along a single row or column is never walked, whatever it says.
        Self {
            data: matrix.data.as_ptr(),
            row_stride: if shape.rows == 1 { shape.cols * shape.col_stride } else { shape.row_stride },
            col_stride: if shape.cols == 1 { shape.rows * shape.row_stride } else { shape.col_stride },
        }
    }
}

impl Threads {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::All => pyrite_threads::count(),
        }
    }
}

impl<T: Lane> Provider<T> for Panels
where
    Library: Provider<T>,
    T: Source<T>,
{
    fn gemm(
        &self,
        (out, shape): (&mut [T], Shape),
        lhs: Matrix<'_, T>,
        rhs: Matrix<'_, T>,
        scale: T,
        onto: Onto<T>,
        threads: Threads,
    ) {
        let (shape, lhs, rhs) = transposed(shape, lhs, rhs);
        match T::isas().first() {
            Some(isa) if takes(shape) => {
                shape.check(out.len());
                let (rhs, onto) = (Right::Plain(rhs), Base::Out(onto));
                let request = Request { lhs, rhs, scale, onto, threads, finish: None };
                // SAFETY: the output is borrowed exclusively and has been checked.
                #[expect(unsafe_code, reason = "microkernels work on raw memory")]
                unsafe {
                    by(out.as_mut_ptr(), shape, &request, isa);
                }
            }
            _ => Library.gemm((out, shape), lhs, rhs, scale, onto, threads),
        }
    }

    fn takes_rows(&self) -> bool {
        !T::isas().is_empty()
    }

    fn gemm_rows(&self, out: (&mut [T], Shape), lhs: Matrix<'_, T>, rhs: Rows<'_, T>, threads: Threads) {
        indirect(out, lhs, Right::Rows(rhs), Onto::Nothing, threads);
    }

    fn gemm_columns(&self, out: (&mut [T], Shape), lhs: Matrix<'_, T>, rhs: Rows<'_, T>, threads: Threads) {
        indirect(out, lhs, Right::Columns(rhs), Onto::Scaled(T::ONE), threads);
    }
}

fn indirect<T: Lane + Source<T>>(
    (out, shape): (&mut [T], Shape),
    lhs: Matrix<'_, T>,
    rhs: Right<'_, T, T>,
    onto: Onto<T>,
    threads: Threads,
) {
    shape.check(out.len());
    let onto = Base::Out(onto);
    let request: Request<'_, T, T> = Request { lhs, rhs, scale: T::ONE, onto, threads, finish: None };
    // SAFETY: the output is borrowed exclusively and has been checked.
    #[expect(unsafe_code, reason = "microkernels work on raw memory")]
    unsafe {
        multiply_into(out.as_mut_ptr(), shape, &request);
    }
}

/// The product, or that of the transposed matrices, whichever has an output with dense rows; of a vector that is the
/// one with a single row.
fn transposed<'a, T>(shape: Shape, lhs: Matrix<'a, T>, rhs: Matrix<'a, T>) -> (Shape, Matrix<'a, T>, Matrix<'a, T>) {
    let dense = |stride: usize, size: usize| stride == 1 || size == 1;
    let transposes = dense(shape.row_stride, shape.rows) && (!dense(shape.col_stride, shape.cols) || shape.cols == 1);
    if transposes { (shape.transposed(), rhs.transposed(), lhs.transposed()) } else { (shape, lhs, rhs) }
}

/// Whether microkernels can write the output, and are worth it: tiles of a single column are not.
fn takes(shape: Shape) -> bool {
    if shape.cols == 1 { shape.rows == 1 } else { shape.col_stride == 1 }
}

/// The right operand of a [`Request`].
#[derive(Clone, Copy)]
pub enum Right<'a, S, T: Lane> {
    /// As it lies in memory.
    Plain(Matrix<'a, S>),
    /// In panels.
    Packed(&'a Packed<T>),
    /// Rows that begin anywhere.
    Rows(Rows<'a, T>),
    /// Their transpose: columns that begin anywhere.
    Columns(Rows<'a, T>),
}

/// A right operand whose rows begin anywhere: row `i` is the elements from `starts[i]` on. Rows may have elements in common,
/// as the windows of an image have.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    /// The elements of all rows, and [`SLACK`] more behind the last row.
    pub data: &'a [T],
    /// Where rows begin.
    pub starts: &'a [usize],
    /// Elements of a row.
    pub cols: usize,
}

impl<T> Rows<'_, T> {
    /// # Panics
    /// When a row leaves the elements.
    fn check(&self) {
        let last = self.starts.iter().max().copied().unwrap_or(0);
        let end = last.checked_add(self.cols).and_then(|end| end.checked_add(SLACK));
        assert!(end.is_some_and(|end| end <= self.data.len()), "a row behind the elements that there are");
    }
}

/// Elements behind a row that are read in vain, at most.
pub const SLACK: usize = 32;

/// What is to be multiplied, and how.
#[derive(Clone, Copy)]
pub struct Request<'a, S, T: Lane> {
    /// The left operand.
    pub lhs: Matrix<'a, S>,
    /// The right operand.
    pub rhs: Right<'a, S, T>,
    /// The factor of the product.
    pub scale: T,
    /// What it is added to.
    pub onto: Base<'a, T>,
    /// Who works on it.
    pub threads: Threads,
    /// Is told of rows of the output that are complete, on the thread that completed them.
    pub finish: Option<&'a (dyn Fn(Range<usize>) + Sync)>,
}

/// What a [`Request`]'s product is added to.
#[derive(Clone, Copy)]
pub enum Base<'a, T> {
    /// What [`Provider::gemm`] knows.
    Out(Onto<T>),
    /// The same row for all rows.
    Row(&'a [T]),
}

/// Computes a product into raw memory, so that `finish` can read rows that are complete.
///
/// # Panics
/// When sizes do not fit each other, a size is zero, an operand leaves its slice, the output's rows are not dense, a bias is
/// too short or the processor has no microkernels.
///
/// # Safety
/// The output has every element that its shape reaches, and until the call returns nobody else reads or writes it but
/// `finish`, which keeps to the rows that it is told of.
#[expect(unsafe_code, reason = "rows are read by others while the rest is computed")]
pub unsafe fn multiply_into<S: Source<T>, T: Lane>(out: *mut T, shape: Shape, request: &Request<'_, S, T>) {
    let isa = match request.rhs {
        Right::Plain(_) => S::isa(),
        Right::Packed(packed) => Some(packed.isa()),
        Right::Rows(_) | Right::Columns(_) => T::isas().first().copied(),
    };
    let Some(isa) = isa else { panic!("there are no microkernels for this processor") };
    // SAFETY: as above.
    unsafe { by(out, shape, request, isa) };
}

// SAFETY: as for `multiply_into`; the table of microkernels is one of this processor's, and the panels are made for it.
#[expect(unsafe_code, reason = "microkernels work on raw memory")]
unsafe fn by<S: Source<T>, T: Lane>(out: *mut T, shape: Shape, request: &Request<'_, S, T>, isa: &Isa<T>) {
    let (rhs, sizes) = match request.rhs {
        Right::Plain(matrix) => {
            matrix.shape.check(matrix.data.len());
            (blocked::Right::Plain(View::of(matrix)), (matrix.shape.rows, matrix.shape.cols))
        }
        Right::Packed(packed) => (blocked::Right::Packed(packed), packed.sizes()),
        Right::Rows(rows) => {
            rows.check();
            (blocked::Right::Rows(rows.data.as_ptr(), rows.starts), (rows.starts.len(), rows.cols))
        }
        Right::Columns(rows) => {
            rows.check();
            (blocked::Right::Columns(rows.data.as_ptr(), rows.starts), (rows.cols, rows.starts.len()))
        }
    };
    check(shape, request.lhs, sizes);
    assert!(shape.col_stride == 1 || shape.cols == 1, "the rows of {shape:?} are not dense");
    let start = match request.onto {
        Base::Out(Onto::Nothing) => Start::Nothing,
        Base::Out(Onto::Scaled(factor)) => Start::Scaled(factor),
        Base::Row(bias) => {
            assert!(bias.len() >= shape.cols, "a bias of {} for {} columns", bias.len(), shape.cols);
            Start::Row(bias.as_ptr())
        }
    };
    let gemm = Gemm {
        sizes: (shape.rows, shape.cols, request.lhs.shape.cols),
        lhs: View::of(request.lhs),
        rhs,
        out,
        out_step: shape.row_stride,
        scale: request.scale,
        start,
        finish: request.finish,
    };
    // SAFETY: the operands lie within their slices and positions of the output are apart, as was checked; the rest is
    // what callers promise.
    unsafe { run(&gemm, isa, request.threads.count()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pair;

    fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919 + seed) % 23) as f64 - 11.0).collect()
    }

    fn naive(a: &[f64], b: &[f64], (m, n, k): (usize, usize, usize)) -> Vec<f64> {
        (0..m * n).map(|at| (0..k).map(|l| a[at / n * k + l] * b[l * n + at % n]).sum()).collect()
    }

    fn transposed_copy(data: &[f64], rows: usize, cols: usize) -> Vec<f64> {
        (0..rows * cols).map(|i| data[(i % rows) * cols + i / rows]).collect()
    }

    const SIZES: [(usize, usize, usize); 14] = [
        (1, 1, 1),
        (2, 3, 4),
        (15, 33, 17),
        (14, 32, 256),
        (29, 65, 257),
        (64, 96, 300),
        (5, 700, 530),
        (200, 31, 64),
        (130, 600, 70),
        (300, 130, 129),
        (40, 113, 200),
        (17, 5, 2000),
        (250, 40, 1100),
        (33, 70, 321),
    ];

    /// A product into memory of its own.
    fn gemm<S: Source<T>, T: Lane>(out: &mut [T], shape: Shape, request: &Request<'_, S, T>, isa: &Isa<T>) {
        shape.check(out.len());
        // SAFETY: the output is borrowed exclusively and has been checked; tests take tables of this processor.
        #[expect(unsafe_code, reason = "microkernels work on raw memory")]
        unsafe {
            by(out.as_mut_ptr(), shape, request, isa);
        }
    }

    fn every_order_agrees<T: Lane + Source<T> + std::fmt::Debug>(of: fn(f64) -> T) {
        for isa in T::isas() {
            for (m, n, k) in SIZES {
                let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
                let (at, bt) = (transposed_copy(&a, m, k), transposed_copy(&b, k, n));
                let expected: Vec<T> = naive(&a, &b, (m, n, k)).into_iter().map(|x| of(3.0 * x)).collect();
                let cast = |data: &[f64]| data.iter().map(|x| of(*x)).collect::<Vec<T>>();
                for (left, left_shape) in [(&a, Shape::rows_first(m, k)), (&at, Shape::rows_first(k, m).transposed())] {
                    for (right, right_shape) in
                        [(&b, Shape::rows_first(k, n)), (&bt, Shape::rows_first(n, k).transposed())]
                    {
                        for threads in [Threads::One, Threads::All] {
                            let (left, right) = (cast(left), cast(right));
                            let lhs = Matrix { data: &left, shape: left_shape };
                            let rhs = Matrix { data: &right, shape: right_shape };
                            let shape = Shape::rows_first(m, n);
                            let mut out = vec![of(f64::NAN); m * n];
                            let plain = Request {
                                lhs,
                                rhs: Right::Plain(rhs),
                                scale: of(3.0),
                                onto: Base::Out(Onto::Nothing),
                                threads,
                                finish: None,
                            };
                            gemm(&mut out, shape, &plain, isa);
                            assert_eq!(out, expected, "{m} {n} {k}");
                            let onto = Base::Out(Onto::Scaled(of(-1.0)));
                            gemm(&mut out, shape, &Request { scale: of(6.0), onto, ..plain }, isa);
                            assert_eq!(out, expected, "{m} {n} {k}, onto itself");
                            let packed = Packed::by(isa, rhs);
                            let bias: Vec<T> = (0..n).map(|at| of(at as f64 - 3.0)).collect();
                            let biased = |factor: f64| -> Vec<T> {
                                let sum = |(at, x): (usize, f64)| of(factor * x + (at % n) as f64 - 3.0);
                                naive(&a, &b, (m, n, k)).into_iter().enumerate().map(sum).collect()
                            };
                            for rhs in [Right::Plain(rhs), Right::Packed(&packed)] {
                                for factor in [1.0, 3.0] {
                                    let onto = Base::Row(&bias);
                                    gemm(&mut out, shape, &Request { rhs, onto, scale: of(factor), ..plain }, isa);
                                    assert_eq!(out, biased(factor), "{m} {n} {k}, with a bias");
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn matmuls_of_single_precision_agree_in_every_order_on_every_processor() {
        every_order_agrees(|x| x as f32);
    }

    #[test]
    fn matmuls_of_double_precision_agree_in_every_order_on_every_processor() {
        every_order_agrees(|x| x);
    }

    /// A matrix with gaps between its rows, or columns, that begins in the middle of a vector.
    fn scattered<S: Copy>(
        data: &[f64],
        (rows, cols): (usize, usize),
        transposed: bool,
        read: fn(f64) -> S,
    ) -> (Vec<S>, Shape) {
        let (outer, inner) = if transposed { (cols, rows) } else { (rows, cols) };
        let shape = Shape { row_stride: inner + 3, ..Shape::rows_first(outer, inner) };
        let shape = if transposed { shape.transposed() } else { shape };
        let mut all = vec![read(f64::NAN); 5 + outer * (inner + 3)];
        for (at, value) in data.iter().enumerate() {
            all[5 + at / cols * shape.row_stride + at % cols * shape.col_stride] = read(*value);
        }
        (all, shape)
    }

    fn few_rows_agree<S: Source<T>, T: Lane + std::fmt::Debug>(isa: &Isa<T>, read: fn(f64) -> S, of: fn(f64) -> T) {
        let sizes = [(1, 1), (2, 1), (1, 9), (7, 3), (5, 17), (33, 31), (48, 20), (130, 66), (1030, 150), (70, 1100)];
        for (n, k) in sizes {
            for m in (1..=17).chain([23, 31, 32, 33]).filter(|m| n * k < 10_000 || [1, 2, 3, 4, 7, 17].contains(m)) {
                let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
                let sums = naive(&a, &b, (m, n, k));
                let bias: Vec<T> = (0..n).map(|at| of(at as f64 - 3.0)).collect();
                for (left, right) in [(false, false), (false, true), (true, false), (true, true)] {
                    let (left, left_shape) = scattered(&a, (m, k), left, read);
                    let (right, right_shape) = scattered(&b, (k, n), right, read);
                    let plain = Request {
                        lhs: Matrix { data: &left[5..], shape: left_shape },
                        rhs: Right::Plain(Matrix { data: &right[5..], shape: right_shape }),
                        scale: of(2.0),
                        onto: Base::Out(Onto::Nothing),
                        threads: Threads::All,
                        finish: None,
                    };
                    let shape = Shape { rows: m, cols: n, row_stride: n + 2, col_stride: 1 };
                    let twice = Base::Out(Onto::Scaled(of(-1.0)));
                    for (onto, first, kept) in
                        [(plain.onto, f64::NAN, 0.0), (twice, 4.0, -4.0), (Base::Row(&bias), 9.0, 0.0)]
                    {
                        let seen = std::sync::atomic::AtomicUsize::new(0);
                        let finish = |rows: Range<usize>| {
                            seen.fetch_add(rows.len(), std::sync::atomic::Ordering::Relaxed);
                        };
                        let mut out = vec![of(first); m * (n + 2)];
                        let request = Request { onto, finish: Some(&finish), ..plain };
                        gemm(&mut out, shape, &request, isa);
                        let added = |at: usize| if matches!(onto, Base::Row(_)) { (at % n) as f64 - 3.0 } else { kept };
                        let expected: Vec<T> =
                            sums.iter().enumerate().map(|(at, sum)| of(2.0 * sum + added(at))).collect();
                        let found: Vec<T> = out.chunks(n + 2).flat_map(|row| row[..n].to_vec()).collect();
                        assert_eq!(found, expected, "{m} {n} {k} {left_shape:?} {right_shape:?}");
                        let gaps = out.chunks(n + 2).flat_map(|row| row[n..].to_vec());
                        assert!(
                            first.is_nan() || gaps.into_iter().all(|gap| gap == of(first)),
                            "{m} {n} {k}: written between rows"
                        );
                        assert_eq!(seen.into_inner(), m, "rows that were announced");
                        let mut again = vec![of(first); m * (n + 2)];
                        gemm(&mut again, shape, &Request { onto, threads: Threads::One, ..plain }, isa);
                        let again: Vec<T> = again.chunks(n + 2).flat_map(|row| row[..n].to_vec()).collect();
                        assert_eq!(again, expected, "{m} {n} {k}: one thread");
                    }
                }
            }
        }
    }

    #[test]
    fn few_rows_agree_with_any_strides_on_every_processor() {
        pyrite_threads::choose(Some(3));
        f32::isas().iter().for_each(|isa| few_rows_agree::<f32, f32>(isa, |x| x as f32, |x| x as f32));
        f64::isas().iter().for_each(|isa| few_rows_agree::<f64, f64>(isa, |x| x, |x| x));
        f32::isas().iter().for_each(|isa| few_rows_agree::<half::bf16, f32>(isa, half::bf16::from_f64, |x| x as f32));
        f32::isas().iter().for_each(|isa| few_rows_agree::<half::f16, f32>(isa, half::f16::from_f64, |x| x as f32));
    }

    /// Sums of few rows round no further away than those of tiles do.
    #[test]
    fn long_sums_of_few_rows_stay_near_those_of_double_precision() {
        let (n, k) = (9, 40_000);
        let number = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 1009.0;
        let (a, b): (Vec<f32>, Vec<f32>) = ((0..4 * k).map(number).collect(), (0..n * k).map(number).collect());
        for isa in f32::isas() {
            for (m, shape) in [1, 2, 4]
                .into_iter()
                .flat_map(|m| [(m, Shape::rows_first(n, k).transposed()), (m, Shape::rows_first(k, n))])
            {
                let exact = |i: usize, j: usize| -> f64 {
                    let right = |l: usize| b[l * shape.row_stride + j * shape.col_stride];
                    (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(right(l))).sum()
                };
                let lhs = Matrix { data: &a[..m * k], shape: Shape::rows_first(m, k) };
                let (rhs, onto) = (Right::Plain(Matrix { data: &b, shape }), Base::Out(Onto::Nothing));
                let request = Request { lhs, rhs, scale: 1.0, onto, threads: Threads::One, finish: None };
                let mut out = vec![0.0f32; m * n];
                gemm(&mut out, Shape::rows_first(m, n), &request, isa);
                for (at, found) in out.iter().enumerate() {
                    let exact = exact(at / n, at % n);
                    assert!((f64::from(*found) - exact).abs() <= 3e-6 * exact, "{m} {shape:?}: {found} {exact}");
                }
            }
        }
    }

    #[test]
    fn rows_that_begin_anywhere_are_read_where_they_lie() {
        for isa in f32::isas() {
            for (m, n, k) in SIZES {
                let a = numbers(m * k, 1);
                let starts: Vec<usize> = (0..k).map(|i| (i * 37) % 91).collect();
                let data = numbers(91 + n + SLACK, 2);
                let b: Vec<f64> = (0..k * n).map(|at| data[starts[at / n] + at % n]).collect();
                let cast = |data: &[f64]| data.iter().map(|x| *x as f32).collect::<Vec<f32>>();
                let (left, right) = (cast(&a), cast(&data));
                let lhs = Matrix { data: &left, shape: Shape::rows_first(m, k) };
                let rhs = Right::Rows(Rows { data: &right, starts: &starts, cols: n });
                let onto = Base::Out(Onto::Nothing);
                let request: Request<'_, f32, f32> =
                    Request { lhs, rhs, scale: 1.0, onto, threads: Threads::All, finish: None };
                let mut out = vec![f32::NAN; m * n];
                gemm(&mut out, Shape::rows_first(m, n), &request, isa);
                assert_eq!(out, cast(&naive(&a, &b, (m, n, k))), "{m} {n} {k}");
                // The same elements as the columns of another product.
                let other = numbers(m * n, 3);
                let left = cast(&other);
                let rhs = Right::Columns(Rows { data: &right, starts: &starts, cols: n });
                let (lhs, onto) =
                    (Matrix { data: &left, shape: Shape::rows_first(m, n) }, Base::Out(Onto::Scaled(1.0)));
                let mut out = vec![2.0; m * k];
                gemm(&mut out, Shape::rows_first(m, k), &Request { lhs, rhs, onto, ..request }, isa);
                let sums = naive(&other, &transposed_copy(&b, k, n), (m, k, n));
                assert_eq!(out, cast(&sums.iter().map(|sum| sum + 2.0).collect::<Vec<_>>()), "{m} {k} {n}, columns");
            }
        }
    }

    #[test]
    #[should_panic(expected = "a row behind the elements")]
    fn a_row_that_leaves_the_elements_is_refused() {
        let data = [0.0f32; 40];
        let lhs = Matrix { data: &data[..4], shape: Shape::rows_first(2, 2) };
        let rows = Rows { data: &data, starts: &[0, 5], cols: 4 };
        Panels.gemm_rows((&mut [0.0; 8], Shape::rows_first(2, 4)), lhs, rows, Threads::One);
    }

    #[test]
    fn an_output_in_columns_and_one_with_gaps_are_written_where_they_lie() {
        let (m, n, k) = (30, 40, 50);
        let (a, b) = (numbers(m * k, 3), numbers(k * n, 4));
        let expected = naive(&a, &b, (m, n, k));
        let lhs = Matrix { data: &a, shape: Shape::rows_first(m, k) };
        let rhs = Matrix { data: &b, shape: Shape::rows_first(k, n) };
        let columns = Shape::rows_first(n, m).transposed();
        let gaps = Shape { rows: m, cols: n, row_stride: 2 * n, col_stride: 2 };
        for shape in [columns, gaps] {
            let mut out = vec![-7.0; 2 * m * n];
            Panels.gemm((&mut out, shape), lhs, rhs, 1.0, Onto::Nothing, Threads::All);
            for i in 0..m {
                for j in 0..n {
                    assert_eq!(out[i * shape.row_stride + j * shape.col_stride], expected[i * n + j]);
                }
            }
            assert!(out.iter().filter(|x| **x == -7.0).count() >= m * n);
        }
    }

    #[test]
    fn half_precision_is_converted_on_the_way() {
        let (m, n, k) = (20, 70, 300);
        let (a, b) = (numbers(m * k, 5), numbers(k * n, 6));
        let half = |data: &[f64]| data.iter().map(|x| half::bf16::from_f64(*x)).collect::<Vec<_>>();
        let (left, right) = (half(&a), half(&transposed_copy(&b, k, n)));
        let rhs = Matrix { data: &right, shape: Shape::rows_first(n, k).transposed() };
        let Some(packed) = Packed::<f32>::new(rhs) else { return };
        let mut out = vec![0.0f32; m * n];
        let lhs = Matrix { data: &left, shape: Shape::rows_first(m, k) };
        for rhs in [Right::Plain(rhs), Right::Packed(&packed)] {
            let onto = Base::Out(Onto::Nothing);
            let request = Request { lhs, rhs, scale: 1.0, onto, threads: Threads::All, finish: None };
            gemm(&mut out, Shape::rows_first(m, n), &request, packed.isa());
        }
        let expected: Vec<f32> = naive(&a, &b, (m, n, k)).into_iter().map(|x| x as f32).collect();
        assert_eq!(out, expected);
    }

    #[test]
    fn pairs_of_bf16_are_multiplied_where_the_processor_can() {
        for (m, n, k) in
            [(20, 70, 300), (3, 33, 2), (64, 40, 1026), (1, 5, 30), (2, 90, 2600), (6, 7, 62), (13, 50, 34)]
        {
            let (a, b) = (numbers(m * k, 5), numbers(k * n, 6));
            let half = |data: &[f64]| data.iter().map(|x| half::bf16::from_f64(*x)).collect::<Vec<_>>();
            let (left, right) = (half(&a), half(&transposed_copy(&b, k, n)));
            let rows = |data, rows| Pair::of_rows(Matrix { data, shape: Shape::rows_first(rows, k) });
            let (Some(lhs), Some(rhs)) = (rows(&left, m), rows(&right, n)) else { return };
            let packed = Packed::<f32>::new(rhs.transposed()).unwrap();
            for rhs in [Right::Plain(rhs.transposed()), Right::Packed(&packed)] {
                let mut out = vec![0.0f32; m * n];
                let onto = Base::Out(Onto::Nothing);
                let request = Request { lhs, rhs, scale: 1.0, onto, threads: Threads::All, finish: None };
                gemm(&mut out, Shape::rows_first(m, n), &request, packed.isa());
                let expected: Vec<f32> = naive(&a, &b, (m, n, k)).into_iter().map(|x| x as f32).collect();
                assert_eq!(out, expected, "{m} {n} {k}");
            }
        }
    }

    #[test]
    fn what_is_no_row_of_pairs_is_not_taken_for_one() {
        let data = [half::bf16::ONE; 16];
        let shape = Shape::rows_first(2, 4);
        let odd = Shape { cols: 3, ..shape };
        let apart = Shape { row_stride: 5, ..shape };
        for shape in [odd, apart, shape.transposed()] {
            assert!(Pair::of_rows(Matrix { data: &data, shape }).is_none(), "{shape:?}");
        }
        let unaligned = usize::from(data.as_ptr().addr().is_multiple_of(4));
        assert!(Pair::of_rows(Matrix { data: &data[unaligned..], shape }).is_none());
    }

    #[test]
    fn every_row_is_announced_once_when_it_is_complete() {
        let (m, n, k) = (100, 90, 600);
        let (a, b) = (numbers(m * k, 7), numbers(k * n, 8));
        let rhs = Matrix { data: &b, shape: Shape::rows_first(k, n) };
        let Some(packed) = Packed::<f64>::new(rhs) else { return };
        let seen = std::sync::Mutex::new(vec![0; m]);
        let mut out = vec![0.0; m * n];
        let lhs = Matrix { data: &a, shape: Shape::rows_first(m, k) };
        let finish = |rows: Range<usize>| rows.for_each(|row| seen.lock().unwrap()[row] += 1);
        let (rhs, onto) = (Right::Packed(&packed), Base::Out(Onto::Nothing));
        let request = Request { lhs, rhs, scale: 1.0, onto, threads: Threads::All, finish: Some(&finish) };
        gemm(&mut out, Shape::rows_first(m, n), &request, packed.isa());
        assert_eq!(seen.into_inner().unwrap(), vec![1; m]);
        assert_eq!(out, naive(&a, &b, (m, n, k)));
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_matrix_that_leaves_its_slice_is_refused() {
        let mut out = [0.0f32; 4];
        let matrix = Matrix { data: &[1.0f32; 3], shape: Shape::rows_first(2, 2) };
        Panels.gemm((&mut out, Shape::rows_first(2, 2)), matrix, matrix, 1.0, Onto::Nothing, Threads::One);
    }
}
