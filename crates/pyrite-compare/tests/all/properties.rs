//! Laws of the comparison over random tensors: every type, shape and layout.

use proptest::prelude::*;
use pyrite_compare::{Accuracy, Class, Options, Results, Strides, compare};
use pyrite_tensor::{DType, Layout, Tensor, layout};

/// A tensor of this type in some layout: permuted, with gaps between its elements, or shifted in its storage.
fn tensors() -> impl Strategy<Value = Tensor> {
    let shape = prop::collection::vec(0i64..6, 0..4);
    let numbers =
        prop::collection::vec(prop_oneof![8 => -100.0..100.0f64, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)], 1..40);
    (prop::sample::select(DType::ALL.to_vec()), shape, numbers, any::<u64>(), 0i64..3, 1i64..3).prop_map(
        |(dtype, shape, numbers, seed, offset, gap)| {
            let tensor = laid_out(&shape, dtype, seed, offset, gap);
            let count = tensor.numel();
            tensor.write_f64s(&numbers.into_iter().cycle().take(count).collect::<Vec<f64>>());
            tensor
        },
    )
}

fn laid_out(shape: &[i64], dtype: DType, seed: u64, offset: i64, gap: i64) -> Tensor {
    let rank = shape.len();
    let mut order: Vec<usize> = (0..rank).collect();
    for i in 0..rank {
        order.swap(i, i + (seed as usize >> (8 * i)) % (rank - i));
    }
    let inner: Vec<i64> = order.iter().map(|d| shape[*d]).collect();
    let dense = layout::contiguous_strides(&inner);
    let mut stride = vec![0; rank];
    for (at, d) in order.iter().enumerate() {
        stride[*d] = dense[at] * gap;
    }
    let plan = Layout::new(shape, &stride, offset);
    let bytes = (plan.span().unwrap().max(1) as usize) * dtype.size();
    let storage = pyrite_tensor::Storage::zeroed(bytes);
    Tensor::new(storage, dtype, plan).unwrap()
}

fn outputs(tensor: &Tensor) -> Results {
    Results::outputs([tensor.clone().into()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tensor_equals_itself_in_every_layout(tensor in tensors(), seed: u64, offset in 0i64..3, gap in 1i64..3) {
        let other = laid_out(tensor.shape(), tensor.dtype(), seed, offset, gap);
        other.write_from(&tensor);
        for accuracy in [Accuracy::Fp, Accuracy::Strict] {
            let exactly = Options::new(accuracy);
            let same = compare(&outputs(&tensor), &outputs(&tensor), None, &exactly);
            prop_assert!(same.agrees(), "{}", same.summary(3));
            let loosely = Options { strides: Strides::Ignored, ..exactly };
            let moved = compare(&outputs(&tensor), &outputs(&other), Some(&outputs(&tensor)), &loosely);
            prop_assert!(moved.agrees() && moved.notes.is_empty(), "{}", moved.summary(3));
        }
    }

    #[test]
    fn a_changed_element_is_found_wherever_it_is(
        tensor in tensors(), at: prop::sample::Index, seed: u64, offset in 0i64..3, gap in 1i64..3,
    ) {
        prop_assume!(tensor.numel() > 0);
        let place = at.index(tensor.numel());
        let mut values = tensor.to_c128s();
        let was = values[place].re;
        let changed = match tensor.dtype() {
            DType::Bool => 1.0 - was,
            d if d.is_integral() => tensor.to_i64s()[place].wrapping_add(1) as f64,
            // A part of a unit in the last place would change nothing.
            d if d.is_float8() && was.is_finite() => if was > 0.0 { -was - 1.0 } else { 1.0 - was },
            _ if was.is_finite() => was + 0.05 * was.abs() + 0.1,
            _ => 3.0,
        };
        let wide = matches!(tensor.dtype(), DType::I64 | DType::U64);
        prop_assume!(!wide || changed.abs() < 1e15);
        values[place].re = changed;
        let other = laid_out(tensor.shape(), tensor.dtype(), seed, offset, gap);
        other.write_c128s(&values);
        if wide {
            let mut values = tensor.to_i64s();
            values[place] = changed as i64;
            other.write_i64s(&values);
        }
        let fp64 = tensor.cast(if tensor.dtype().is_complex() { DType::C128 } else { DType::F64 });
        let options = Options { strides: Strides::Ignored, ..Options::default() };
        for fp64 in [None, Some(&outputs(&fp64))] {
            let report = compare(&outputs(&tensor), &outputs(&other), fp64, &options);
            prop_assert_eq!(report.differences.len(), 1);
            let difference = &report.differences[0];
            prop_assert!(matches!(difference.class, Class::Value | Class::NanPosition));
            let numbers = difference.numbers.as_ref().unwrap();
            prop_assert_eq!(numbers.differing, 1);
            let mut rest = 0;
            for (index, size) in numbers.worst.index.iter().zip(tensor.shape()) {
                rest = rest * size + index;
            }
            prop_assert_eq!(rest as usize, place);
        }
    }

    #[test]
    fn the_order_of_the_sides_does_not_decide_whether_positions_agree(a in tensors(), seed: u64) {
        let other = laid_out(a.shape(), a.dtype(), seed, 0, 1);
        other.write_from(&a);
        let count = other.numel();
        other.write_f64s(&a.to_f64s().into_iter().rev().take(count).collect::<Vec<f64>>());
        let strict = Options::new(Accuracy::Strict);
        let there = compare(&outputs(&a), &outputs(&other), None, &strict);
        let back = compare(&outputs(&other), &outputs(&a), None, &strict);
        prop_assert_eq!(there.classes(), back.classes());
    }
}
