//! What the comparison says about numbers: first the holes of PyTorch's `same`, then the finer rules.

use half::{bf16, f16};
use pyrite_compare::{
    Accuracy, Class, Nans, Options, Outcome, Remark, Report, Results, Role, Rule, Tolerance, Tolerances, Weight,
    compare,
};
use pyrite_ir::Value;
use pyrite_tensor::{Complex32, DType, Element, Layout, Tensor};

fn vector<T: Element>(elements: &[T]) -> Tensor {
    Tensor::from_slice(elements, &[elements.len() as i64])
}

fn outputs(tensor: &Tensor) -> Results {
    Results::outputs([tensor.clone().into()])
}

fn check(expected: &Tensor, actual: &Tensor, options: &Options) -> Report {
    compare(&outputs(expected), &outputs(actual), None, options)
}

fn fp(expected: &Tensor, actual: &Tensor) -> Report {
    check(expected, actual, &Options::default())
}

fn strict(expected: &Tensor, actual: &Tensor) -> Report {
    check(expected, actual, &Options::new(Accuracy::Strict))
}

fn judged(expected: &Tensor, actual: &Tensor, fp64: &Tensor) -> Report {
    compare(&outputs(expected), &outputs(actual), Some(&outputs(fp64)), &Options::default())
}

/// The only difference, as class and rule.
fn only(report: &Report) -> (Class, Rule) {
    let [difference] = report.differences.as_slice() else { panic!("not one difference: {report:#?}") };
    (difference.class, difference.rule)
}

/// Numbers that look random and are the same on every machine.
fn noise(count: usize, scale: f64) -> Vec<f64> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..count).map(|_| 2.0 * scale * next()).collect()
}

fn singles(values: &[f64]) -> Tensor {
    vector(&values.iter().map(|v| *v as f32).collect::<Vec<f32>>())
}

#[test]
fn a_vector_of_three_is_not_a_vector_of_one() {
    assert_eq!(only(&fp(&vector(&[1f32, 1., 1.]), &vector(&[1f32]))), (Class::Shape, Rule::Shape));
    assert_eq!(only(&fp(&vector(&[1f32]), &Tensor::from_slice(&[1f32], &[]))), (Class::Shape, Rule::Shape));
}

#[test]
fn a_thousand_is_not_a_thousand_and_one() {
    let report = fp(&vector(&[5i64, 1000]), &vector(&[5i64, 1001]));
    assert_eq!(only(&report), (Class::Value, Rule::Exact));
    let numbers = report.differences[0].numbers.as_ref().unwrap();
    assert_eq!((numbers.differing, numbers.elements, &numbers.worst.index[..]), (1, 2, &[1][..]));
    assert_eq!((numbers.worst.expected.as_str(), numbers.worst.actual.as_str()), ("1000", "1001"));
}

#[test]
fn integers_differ_in_bits_that_a_float_cannot_hold() {
    let big = i64::MAX - 1;
    assert_eq!(only(&fp(&vector(&[big]), &vector(&[i64::MAX]))), (Class::Value, Rule::Exact));
    let report = fp(&vector(&[i64::MIN]), &vector(&[i64::MAX]));
    assert_eq!(report.differences[0].numbers.as_ref().unwrap().max_abs.0, u64::MAX as f64);
}

#[test]
fn strides_are_part_of_the_contract() {
    let square = Tensor::from_slice(&[1f32, 1., 1., 1.], &[2, 2]);
    assert_eq!(only(&fp(&square, &square.permuted(&[1, 0]))), (Class::Stride, Rule::Stride));
    assert_eq!(only(&strict(&square, &square.permuted(&[1, 0]))), (Class::Stride, Rule::Stride));
}

#[test]
fn one_element_in_a_million_that_is_off_is_found() {
    let fp64 = noise(1_000_000, 1.0);
    let expected = singles(&fp64);
    for place in [0, 777_777, 999_999] {
        let mut wrong = fp64.clone();
        wrong[place] += 0.09;
        let actual = singles(&wrong);
        assert_eq!(only(&fp(&expected, &actual)), (Class::Value, Rule::Tolerance));
        let report = judged(&expected, &actual, &vector(&fp64));
        assert_eq!(report.differences[0].class, Class::Value);
        let numbers = report.differences[0].numbers.as_ref().unwrap();
        assert_eq!((numbers.differing, &numbers.worst.index[..]), (1, &[place as i64][..]));
    }
}

#[test]
fn one_bad_element_is_found_even_when_the_mean_error_is_better_than_the_references() {
    // The reference is noisy everywhere; the other side is exact but for one element.
    let fp64 = noise(100_000, 1.0);
    let noisy: Vec<f64> = fp64.iter().zip(noise(100_000, 1e-3)).map(|(t, n)| t + n).collect();
    let mut wrong = fp64.clone();
    assert_eq!(judged(&singles(&noisy), &singles(&wrong), &vector(&fp64)).outcome(), Outcome::Noise);
    wrong[31_337] += 0.09;
    let report = judged(&singles(&noisy), &singles(&wrong), &vector(&fp64));
    assert_eq!(only(&report), (Class::Value, Rule::WorstElement));
    assert_eq!(report.differences[0].numbers.as_ref().unwrap().worst.index, [31_337]);
}

#[test]
fn a_nan_in_another_place_is_a_difference() {
    let nan = f32::NAN;
    assert_eq!(only(&fp(&vector(&[nan, 1., 2.]), &vector(&[0f32, nan, 2.]))), (Class::NanPosition, Rule::NanPosition));
    assert!(fp(&vector(&[nan, 1.]), &vector(&[nan, 1.])).agrees());
}

#[test]
fn a_result_that_is_all_nan_is_a_difference_even_when_the_reference_has_one() {
    let expected = vector(&[f32::NAN, 1., 2., 3.]);
    let actual = vector(&[f32::NAN; 4]);
    let report = judged(&expected, &actual, &vector(&[f64::NAN, 1., 2., 3.]));
    assert_eq!(only(&report), (Class::NanPosition, Rule::NanPosition));
    assert_eq!(report.differences[0].numbers.as_ref().unwrap().differing, 3);
}

#[test]
fn all_nan_on_both_sides_agrees_only_where_nans_are_equal() {
    let nans = vector(&[f32::NAN; 5]);
    assert!(fp(&nans, &nans).agrees());
    let unequal = Options { nans: Nans::Unequal, ..Options::default() };
    assert_eq!(only(&check(&nans, &nans, &unequal)), (Class::NanPosition, Rule::NoNan));
}

#[test]
fn what_is_not_a_float_is_told_even_when_it_is_overlooked() {
    let options = Options { non_floats: Weight::Note, ..Options::default() };
    let report = check(&vector(&[1i32]), &vector(&[2i32]), &options);
    assert!(report.agrees());
    assert!(matches!(&report.notes[0].remark, Remark::Overlooked(d) if d.rule == Rule::Exact));
}

#[test]
fn a_tail_without_a_partner_in_double_precision_is_compared() {
    let run = |last: f32| Results::outputs([vector(&[1f32]).into(), vector(&[last]).into()]);
    let fp64 = outputs(&vector(&[1f64]));
    let report = compare(&run(2.0), &run(2.5), Some(&fp64), &Options::default());
    assert_eq!(only(&report), (Class::Value, Rule::Tolerance));
    assert_eq!(report.differences[0].place.to_string(), "outputs[1]");
    assert!(matches!(&report.notes[0].remark, Remark::NoFp64(_)));
}

#[test]
fn an_fp64_reference_of_another_shape_or_type_judges_nothing() {
    let (expected, actual) = (vector(&[1f32, 2.]), vector(&[1f32, 3.]));
    for fp64 in [vector(&[1f64]), vector(&[1f32, 3.])] {
        assert_eq!(only(&judged(&expected, &actual, &fp64)), (Class::Value, Rule::Tolerance));
    }
}

#[test]
fn bools_are_exact() {
    let bools = |values: [bool; 2]| vector(&values.map(pyrite_tensor::Bool8::from));
    let report = fp(&bools([true, false]), &bools([true, true]));
    assert_eq!(only(&report), (Class::Value, Rule::Exact));
    assert_eq!(report.differences[0].actual, "True");
}

#[test]
fn a_complex_number_differs_in_either_part() {
    let numbers = |im: f32| vector(&[Complex32::new(1.0, im)]);
    assert!(fp(&numbers(1.0), &numbers(1.0 + 1e-6)).agrees());
    assert_eq!(only(&fp(&numbers(1.0), &numbers(1.1))), (Class::Value, Rule::Tolerance));
    assert_eq!(only(&fp(&numbers(1.0), &numbers(f32::NAN))), (Class::NanPosition, Rule::NanPosition));
    assert_eq!(fp(&numbers(1.0), &numbers(-1.0)).differences[0].actual, "(1.0-1.0j)");
}

#[test]
fn empty_tensors_differ_in_shape_and_type_alone() {
    let empty = |shape: &[i64], dtype| Tensor::zeros(shape, dtype).unwrap();
    assert!(fp(&empty(&[0, 3], DType::F32), &empty(&[0, 3], DType::F32)).agrees());
    assert_eq!(only(&fp(&empty(&[0, 3], DType::F32), &empty(&[3, 0], DType::F32))).0, Class::Shape);
    assert_eq!(only(&fp(&empty(&[0], DType::F32), &empty(&[0], DType::F64))).0, Class::Dtype);
}

#[test]
fn the_two_zeros_are_close_and_not_the_same_bits() {
    let (plus, minus) = (vector(&[0f32]), vector(&[-0f32]));
    assert!(fp(&plus, &minus).agrees());
    assert_eq!(only(&strict(&plus, &minus)), (Class::Value, Rule::Bitwise));
}

#[test]
fn infinities_must_agree_in_place_and_sign() {
    let inf = f32::INFINITY;
    assert!(fp(&vector(&[inf, -inf]), &vector(&[inf, -inf])).agrees());
    for wrong in [[-inf, -inf], [1e30, -inf], [inf, 0.0]] {
        let report = fp(&vector(&[inf, -inf]), &vector(&wrong));
        assert_eq!(only(&report), (Class::NanPosition, Rule::InfinityPosition), "{wrong:?}");
    }
    assert_eq!(only(&fp(&vector(&[1f32]), &vector(&[inf]))).1, Rule::InfinityPosition);
    assert_eq!(only(&fp(&vector(&[f32::NAN]), &vector(&[inf]))).1, Rule::NanPosition);
}

#[test]
fn where_the_reference_overflowed_fp64_decides() {
    let halves = |values: [f32; 2]| vector(&values.map(f16::from_f32));
    let expected = halves([f32::INFINITY, 1.0]);
    let fp64 = vector(&[600.0, 1.0]);
    assert_eq!(judged(&expected, &halves([600.0, 1.0]), &fp64).outcome(), Outcome::Noise);
    assert_eq!(only(&judged(&expected, &halves([700.0, 1.0]), &fp64)), (Class::Value, Rule::WorstElement));
    assert_eq!(only(&judged(&expected, &halves([f32::NAN, 1.0]), &fp64)).1, Rule::NanPosition);
    // Without an fp64 reference the reference is right.
    assert_eq!(only(&fp(&expected, &halves([600.0, 1.0]))).1, Rule::InfinityPosition);
    // A reference that is finite is right, whatever the fp64 overflows to.
    let report = judged(&halves([600.0, 1.0]), &halves([f32::INFINITY, 1.0]), &vector(&[f64::INFINITY, 1.0]));
    assert_eq!(only(&report).1, Rule::InfinityPosition);
}

#[test]
fn an_fp64_reference_that_is_not_finite_excuses_nothing() {
    let report = judged(&vector(&[1f32, 2.]), &vector(&[1f32, 3.]), &vector(&[1., f64::NAN]));
    assert_eq!(only(&report), (Class::Value, Rule::Tolerance));
}

#[test]
fn half_precision_that_is_nearer_to_fp64_than_the_reference_is_noise() {
    let fp64: Vec<f64> = noise(64, 100.0);
    let coarse = vector(&fp64.iter().map(|t| f16::from_f64(*t + 0.7)).collect::<Vec<_>>());
    let fine = vector(&fp64.iter().map(|t| f16::from_f64(*t)).collect::<Vec<_>>());
    assert_eq!(only(&fp(&coarse, &fine)), (Class::Value, Rule::Tolerance));
    assert_eq!(judged(&coarse, &fine, &vector(&fp64)).outcome(), Outcome::Noise);
    // The other way round it is a bug.
    assert_eq!(only(&judged(&fine, &coarse, &vector(&fp64))), (Class::Value, Rule::RootMeanSquare));
}

#[test]
fn the_rounding_of_every_type_is_within_its_tolerance() {
    let values = noise(5000, 10.0);
    let bf = vector(&values.iter().map(|v| bf16::from_f64(*v)).collect::<Vec<_>>());
    let next = vector(&values.iter().map(|v| bf16::from_bits(bf16::from_f64(*v).to_bits() + 1)).collect::<Vec<_>>());
    assert!(fp(&bf, &next).agrees());
    let ulp = |v: &f64| (*v as f32).next_up();
    assert!(fp(&singles(&values), &vector(&values.iter().map(ulp).collect::<Vec<_>>())).agrees());
    assert_eq!(only(&strict(&singles(&values), &vector(&values.iter().map(ulp).collect::<Vec<_>>()))).1, Rule::Bitwise);
}

#[test]
fn tolerances_can_be_set_for_all_types_or_one() {
    let (expected, actual) = (vector(&[1f32]), vector(&[1.01f32]));
    let with = |tolerances| Options { tolerances, ..Options::default() };
    assert!(check(&expected, &actual, &with(Tolerances::uniform(Tolerance::both(0.1)))).agrees());
    assert!(check(&expected, &actual, &with(Tolerances::default().with(DType::F32, Tolerance::both(0.1)))).agrees());
    assert!(!check(&expected, &actual, &with(Tolerances::default().with(DType::F64, Tolerance::both(0.1)))).agrees());
    assert!(check(&expected, &actual, &with(Tolerances::default().times(1e4))).agrees());
    let loose = with(Tolerances::uniform(Tolerance::both(0.5)));
    assert_eq!(only(&check(&vector(&[1000i64]), &vector(&[1001i64]), &loose)).1, Rule::Exact);
}

#[test]
fn the_smallest_tolerance_that_would_pass_passes() {
    let (expected, actual) = (singles(&noise(500, 3.0)), singles(&noise(501, 3.0)[1..]));
    let report = fp(&expected, &actual);
    let numbers = report.differences[0].numbers.as_ref().unwrap();
    let just = Tolerances::uniform(Tolerance::both(numbers.passing_tolerance.0 * (1.0 + 1e-12)));
    assert!(check(&expected, &actual, &Options { tolerances: just, ..Options::default() }).agrees());
    let under = Tolerances::uniform(Tolerance::both(numbers.passing_tolerance.0 * 0.999));
    assert!(!check(&expected, &actual, &Options { tolerances: under, ..Options::default() }).agrees());
    assert!(numbers.quantiles.p50 <= numbers.quantiles.p90 && numbers.quantiles.p99 <= numbers.max_abs);
    assert!(numbers.quantiles.p50.0 > 0.0 && numbers.cosine.unwrap().0.abs() < 0.2);
}

#[test]
fn strict_accepts_any_nan_for_a_nan_and_any_layout_of_the_same_bits() {
    let odd = f32::from_bits(0xffc0_0001);
    assert!(strict(&vector(&[f32::NAN]), &vector(&[odd])).agrees());
    let padded = Tensor::from_slice(&[1f32, 9., 2., 9.], &[4]).view(DType::F32, Layout::new(&[2], &[2], 0)).unwrap();
    assert_eq!(strict(&vector(&[1f32, 2.]), &padded).classes(), [Class::Stride]);
}

#[test]
fn another_element_type_is_told_once_when_the_numbers_agree() {
    assert_eq!(only(&fp(&vector(&[1f32, 2.5]), &vector(&[1f64, 2.5]))), (Class::Dtype, Rule::Dtype));
    let both = fp(&vector(&[1f32, 2.5]), &vector(&[1f64, 9.0]));
    assert_eq!(both.classes(), [Class::Dtype, Class::Value]);
    let options = Options { dtypes: Weight::Note, ..Options::default() };
    assert!(check(&vector(&[1f32, 2.5]), &vector(&[1f64, 2.5]), &options).agrees());
}

#[test]
fn python_numbers_follow_the_same_rules() {
    let run = |value: Value<Tensor>| Results::outputs([value]);
    let check = |e: Value<Tensor>, a: Value<Tensor>| compare(&run(e), &run(a), None, &Options::default());
    assert!(check(1.0.into(), (1.0 + 1e-7).into()).agrees());
    assert_eq!(only(&check(1.0.into(), 1.1.into())), (Class::Value, Rule::Tolerance));
    assert_eq!(only(&check(1000i64.into(), 1001i64.into())), (Class::Value, Rule::Exact));
    assert_eq!(only(&check(1i64.into(), 1.0.into())), (Class::Kind, Rule::Kind));
    assert_eq!(only(&check(true.into(), 1i64.into())), (Class::Kind, Rule::Kind));
    assert_eq!(only(&check(f64::NAN.into(), 1.0.into())), (Class::NanPosition, Rule::NanPosition));
    let relaxed = Options { kinds: Weight::Note, ..Options::default() };
    let scalar: Value<Tensor> = Tensor::from_slice(&[1f32], &[]).into();
    assert!(compare(&run(scalar.clone()), &run(1.0.into()), None, &relaxed).agrees());
    assert!(!compare(&run(scalar), &run(2.0.into()), None, &relaxed).agrees());
}

#[test]
fn contents_of_an_input_after_the_run_are_a_mutation() {
    let run = |contents: f32| {
        Results::outputs([]).with("buffers", Role::Inputs, [("running_mean", vector(&[contents]).into())])
    };
    let report = compare(&run(0.0), &run(1.0), None, &Options::default());
    assert_eq!(only(&report), (Class::Mutation, Rule::Tolerance));
    assert_eq!(only(&compare(&run(0.0), &run(f32::NAN), None, &Options::default())).0, Class::Mutation);
}

#[test]
fn off_compares_nothing() {
    assert!(check(&vector(&[1f32]), &vector(&[1i64, 2]), &Options::new(Accuracy::Off)).agrees());
}
