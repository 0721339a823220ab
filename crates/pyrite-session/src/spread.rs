//! Where in a tensor two results differ, small enough to be drawn.
//!
//! A tensor is looked at as a matrix: its last dimension across, all others down. Cells of equal size cover it, few enough
//! for a picture, and each has the digit of its largest error; a histogram counts the elements of every digit. Errors are
//! parts of the expected value's root mean square: digit 9 is an error of at least 1, digit 8 of at least a tenth, and so
//! on; digit 0 means equal bits or two NaNs.

use pyrite_tensor::Tensor;
use pyrite_trace::event::Spread;

/// Cells down and across, at most.
const CELLS: (usize, usize) = (24, 48);

/// How two tensors of one shape differ; nothing where they do not, or where they cannot be compared by elements.
pub fn spread(expected: &Tensor, actual: &Tensor) -> Option<Spread> {
    let count = expected.numel();
    if expected.shape() != actual.shape() || count == 0 || expected.dtype().is_complex() || actual.dtype().is_complex()
    {
        return None;
    }
    let cols = expected.shape().last().map_or(1, |size| *size as usize);
    let rows = count / cols;
    let cell = (rows.div_ceil(CELLS.0), cols.div_ceil(CELLS.1));
    let (down, across) = (rows.div_ceil(cell.0), cols.div_ceil(cell.1));
    let (expected, actual) = (expected.to_f64s(), actual.to_f64s());
    let finite = expected.iter().filter(|value| value.is_finite());
    let (sum, finite) = finite.fold((0.0, 0usize), |(sum, count), value| (sum + value * value, count + 1));
    let size = (sum / finite.max(1) as f64).sqrt();
    let mut digits = vec![0; down * across];
    let mut histogram = vec![0u64; 10];
    for (index, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        let digit = digit(*expected, *actual, size);
        histogram[digit] += 1;
        let place = index / cols / cell.0 * across + index % cols / cell.1;
        digits[place] = digit.max(digits[place]);
    }
    if histogram[0] == count as u64 {
        return None;
    }
    let line = |row: &[usize]| row.iter().map(|digit| char::from(b'0' + *digit as u8)).collect();
    Some(Spread { map: digits.chunks(across).map(line).collect(), cell: (cell.0 as u64, cell.1 as u64), histogram })
}

/// The digit of an element's error.
fn digit(expected: f64, actual: f64, size: f64) -> usize {
    if expected == actual || (expected.is_nan() && actual.is_nan()) {
        return 0;
    }
    let error = (actual - expected).abs() / if size > 0.0 { size } else { 1.0 };
    if error.is_finite() { (error.log10().floor() + 9.0).clamp(1.0, 9.0) as usize } else { 9 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32], shape: &[i64]) -> Tensor {
        Tensor::from_slice(values, shape)
    }

    #[test]
    fn a_wrong_column_is_a_column_of_the_map() {
        let expected: Vec<f32> = (0..100 * 96).map(|i| 1.0 + (i % 7) as f32).collect();
        let mut actual = expected.clone();
        actual.iter_mut().skip(95).step_by(96).for_each(|value| *value += 100.0);
        let found = spread(&tensor(&expected, &[10, 10, 96]), &tensor(&actual, &[10, 10, 96])).unwrap();
        assert_eq!((found.cell, found.map.len(), found.map[0].len()), ((5, 2), 20, 48));
        assert!(found.map.iter().all(|row| row.ends_with('9') && row[..47].chars().all(|digit| digit == '0')));
        assert_eq!((found.histogram[9], found.histogram[0]), (100, 9500));
    }

    #[test]
    fn digits_are_decades_of_the_error() {
        for (error, digit) in [(3.0, 9), (0.2, 8), (2e-4, 5), (1e-12, 1), (f64::NAN, 9)] {
            assert_eq!(super::digit(1.0, 1.0 + error, 1.0), digit, "{error}");
        }
        assert_eq!(super::digit(f64::NAN, f64::NAN, 1.0), 0);
        assert_eq!(super::digit(f64::INFINITY, 1.0, 1.0), 9);
    }

    #[test]
    fn equal_tensors_and_those_of_other_shapes_have_no_map() {
        let one = tensor(&[1.0, 2.0], &[2]);
        assert!(spread(&one, &one).is_none());
        assert!(spread(&one, &tensor(&[1.0], &[1])).is_none());
        assert!(spread(&tensor(&[], &[0, 3]), &tensor(&[], &[0, 3])).is_none());
    }
}
