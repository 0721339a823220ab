//! Moving elements by a table of indices per dimension.
//!
//! A table says for every index of a result's dimension which index of the source's dimension it shows. Flips, rolls
//! and paddings are such tables; their gradients run the same tables backwards and add where indices meet.

use num_complex::Complex64;
use pyrite_tensor::{DType, Element, Tensor};

/// Fills `out` from `source`: `out[i, j, …] = source[tables[0][i], tables[1][j], …]`. Both have the same type.
pub fn remap(source: &Tensor, out: &Tensor, tables: &[Vec<i64>]) {
    // Elements are only moved, so any type of their size serves.
    match source.dtype().size() {
        1 => moved::<u8>(source, out, tables),
        2 => moved::<i16>(source, out, tables),
        4 => moved::<i32>(source, out, tables),
        8 => moved::<i64>(source, out, tables),
        _ => moved::<Complex64>(source, out, tables),
    }
}

fn moved<T: Element>(source: &Tensor, out: &Tensor, tables: &[Vec<i64>]) {
    let read = source.storage().read::<T>();
    let mut written = out.storage().write::<T>();
    each_pair(source, out, tables, |from, to| written[to] = read[from]);
}

/// The reverse of [`remap`]: adds every element of `grad` to the element of the result that it was moved from. The
/// sums are in double precision; `out` has the type of `grad` and is overwritten.
pub fn accumulate(grad: &Tensor, out: &Tensor, tables: &[Vec<i64>]) {
    if grad.dtype().is_complex() {
        let sums = summed(&grad.cast(DType::C128), out, tables, |a: Complex64, b| a + b);
        out.write_c128s(&sums);
    } else if grad.dtype().is_float() {
        let sums = summed(&grad.cast(DType::F64), out, tables, |a: f64, b| a + b);
        out.write_f64s(&sums);
    } else {
        let sums = summed(&grad.cast(DType::I64), out, tables, i64::wrapping_add);
        out.write_i64s(&sums);
    }
}

fn summed<T: Element>(grad: &Tensor, out: &Tensor, tables: &[Vec<i64>], add: impl Fn(T, T) -> T) -> Vec<T> {
    let values = grad.storage().read::<T>();
    let dense = Tensor::from_slice(&vec![<T as Element>::from_i64(0); out.numel()], out.shape());
    let mut sums = dense.to_vec::<T>();
    each_pair(&dense, grad, tables, |to, from| sums[to] = add(sums[to], values[from]));
    sums
}

/// Calls `visit` with the positions in memory of each source element and of the result element that shows it.
fn each_pair(source: &Tensor, out: &Tensor, tables: &[Vec<i64>], mut visit: impl FnMut(usize, usize)) {
    let rank = out.rank();
    if out.numel() == 0 {
        return;
    }
    let Some(last) = rank.checked_sub(1) else {
        return visit(source.layout().offset as usize, out.layout().offset as usize);
    };
    let mut index = vec![0usize; last];
    let row: Vec<i64> = tables[last].iter().map(|i| i * source.stride()[last]).collect();
    loop {
        let mut from = source.layout().offset;
        let mut to = out.layout().offset;
        for d in 0..last {
            from += tables[d][index[d]] * source.stride()[d];
            to += index[d] as i64 * out.stride()[d];
        }
        for (i, step) in row.iter().enumerate() {
            visit((from + step) as usize, (to + i as i64 * out.stride()[last]) as usize);
        }
        let mut d = last;
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            if index[d] < tables[d].len() {
                break;
            }
            index[d] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_falling_indices_flips() {
        let x = Tensor::from_slice(&[1i64, 2, 3, 4, 5, 6], &[2, 3]);
        let out = Tensor::empty(&[2, 3], DType::I64).unwrap();
        remap(&x, &out, &[vec![0, 1], vec![2, 1, 0]]);
        assert_eq!(out.to_i64s(), [3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn indices_that_meet_are_summed() {
        let grad = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[4]);
        let out = Tensor::empty(&[2], DType::F32).unwrap();
        accumulate(&grad, &out, &[vec![0, 0, 1, 1]]);
        assert_eq!(out.to_f64s(), [3.0, 7.0]);
    }
}
