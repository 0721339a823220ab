//! What the comparison says about structure, aliasing and strides, and how it says it.

use pyrite_compare::{Class, Options, Report, Results, Role, Rule, Strides, Weight, compare};
use pyrite_ir::Value;
use pyrite_tensor::{DType, Layout, Tensor};

fn vector(elements: &[f32]) -> Tensor {
    Tensor::from_slice(elements, &[elements.len() as i64])
}

fn outputs(values: Vec<Value<Tensor>>) -> Results {
    Results::outputs(values)
}

fn check(expected: &Results, actual: &Results) -> Report {
    compare(expected, actual, None, &Options::default())
}

fn rules(report: &Report) -> Vec<(String, Rule)> {
    report.differences.iter().map(|d| (d.place.to_string(), d.rule)).collect()
}

#[test]
fn a_missing_output_and_a_surplus_one_are_named() {
    let (one, two) = (outputs(vec![1.0.into()]), outputs(vec![1.0.into(), 2.0.into()]));
    assert_eq!(rules(&check(&two, &one)), [("outputs[1]".to_owned(), Rule::Missing)]);
    assert_eq!(rules(&check(&one, &two)), [("outputs[1]".to_owned(), Rule::Surplus)]);
    assert_eq!(rules(&check(&one, &Results::new())), [("outputs".to_owned(), Rule::Missing)]);
    assert_eq!(rules(&check(&Results::new(), &one)), [("outputs".to_owned(), Rule::Surplus)]);
}

#[test]
fn a_shorter_list_is_told_and_what_both_have_is_still_compared() {
    let list = |values: Vec<f64>| outputs(vec![Value::List(values.into_iter().map(Value::from).collect())]);
    let report = check(&list(vec![1.0, 2.0, 3.0]), &list(vec![1.0, 5.0]));
    assert_eq!(
        rules(&report),
        [("outputs[0]".to_owned(), Rule::Length), ("outputs[0][1]".to_owned(), Rule::Tolerance)]
    );
}

#[test]
fn none_is_not_a_tensor_and_a_text_is_compared() {
    let pairs: [(Value<Tensor>, Value<Tensor>, Class); 4] = [
        (Value::None, vector(&[1.0]).into(), Class::Kind),
        ("a".into(), "b".into(), Class::Value),
        (DType::F32.into(), DType::F64.into(), Class::Value),
        (Value::List(vec![]), Value::None, Class::Kind),
    ];
    for (expected, actual, class) in pairs {
        assert_eq!(check(&outputs(vec![expected.clone()]), &outputs(vec![actual])).classes(), [class]);
        assert!(check(&outputs(vec![expected.clone()]), &outputs(vec![expected])).agrees());
    }
}

#[test]
fn values_are_matched_by_name_and_equal_names_in_order() {
    let run = |values: [(&str, f64); 3]| {
        Results::new().with("gradients", Role::Gradients, values.map(|(name, v)| (name, v.into())))
    };
    assert!(check(&run([("a", 1.), ("b", 2.), ("c", 3.)]), &run([("c", 3.), ("a", 1.), ("b", 2.)])).agrees());
    assert!(check(&run([("a", 1.), ("a", 2.), ("c", 3.)]), &run([("c", 3.), ("a", 1.), ("a", 2.)])).agrees());
    assert_eq!(
        rules(&check(&run([("a", 1.), ("b", 2.), ("c", 3.)]), &run([("a", 1.), ("a", 2.), ("c", 3.)]))),
        [("gradients[b]".to_owned(), Rule::Missing), ("gradients[a]".to_owned(), Rule::Surplus)]
    );
}

/// An input of four elements, and outputs that are views of it at these offsets, or copies.
fn aliased(offsets: &[Option<i64>]) -> Results {
    let input = vector(&[7.0; 4]);
    let outputs = offsets.iter().map(|offset| match offset {
        Some(offset) => input.view(DType::F32, Layout::new(&[2], &[1], *offset)).unwrap().into(),
        None => vector(&[7.0; 2]).into(),
    });
    let outputs: Vec<Value<Tensor>> = outputs.collect();
    Results::outputs(outputs).with("inputs", Role::Inputs, [("x", input.into())])
}

#[test]
fn an_output_that_no_longer_shares_memory_with_an_input_is_a_difference() {
    let report = check(&aliased(&[Some(0), None]), &aliased(&[None, None]));
    assert_eq!(rules(&report), [("outputs[0]".to_owned(), Rule::Sharing)]);
    assert_eq!(report.differences[0].expected, "the memory of inputs[x]");
    assert_eq!(report.differences[0].actual, "memory of its own");
    assert_eq!(rules(&check(&aliased(&[None]), &aliased(&[Some(2)]))), [("outputs[0]".to_owned(), Rule::Sharing)]);
}

#[test]
fn a_view_at_another_offset_is_a_difference_even_when_the_numbers_agree() {
    assert!(check(&aliased(&[Some(1)]), &aliased(&[Some(1)])).agrees());
    let report = check(&aliased(&[Some(1)]), &aliased(&[Some(2)]));
    assert_eq!(rules(&report), [("outputs[0]".to_owned(), Rule::Offset)]);
    assert_eq!(report.differences[0].actual, "8 bytes after inputs[x]");
}

#[test]
fn outputs_that_share_memory_with_each_other_are_compared_too() {
    let (a, b) = (vector(&[1.0]), vector(&[1.0]));
    let shared = outputs(vec![a.clone().into(), a.clone().into()]);
    let apart = outputs(vec![a.into(), b.into()]);
    assert_eq!(check(&shared, &apart).classes(), [Class::Aliasing]);
    assert_eq!(check(&apart, &shared).classes(), [Class::Aliasing]);
    let lenient = Options { aliasing: Weight::Note, ..Options::default() };
    let report = compare(&shared, &apart, None, &lenient);
    assert!(report.agrees() && report.notes.len() == 1);
}

#[test]
fn empty_tensors_share_nothing() {
    let empty = Tensor::zeros(&[0], DType::F32).unwrap();
    let shared = outputs(vec![empty.clone().into(), empty.clone().into()]);
    let apart = outputs(vec![empty.into(), Tensor::zeros(&[0], DType::F32).unwrap().into()]);
    assert!(check(&shared, &apart).agrees());
}

#[test]
fn the_stride_of_a_dimension_of_one_matters_only_when_all_do() {
    let plain = Tensor::from_slice(&[1f32, 2.0], &[1, 2]);
    let odd = plain.view(DType::F32, Layout::new(&[1, 2], &[77, 1], 0)).unwrap();
    let (plain, odd) = (outputs(vec![plain.contiguous().into()]), outputs(vec![odd.into()]));
    let with = |strides| compare(&plain, &odd, None, &Options { strides, ..Options::default() });
    assert!(with(Strides::Significant).agrees());
    assert_eq!(with(Strides::All).classes(), [Class::Stride]);
    let square = Tensor::from_slice(&[1f32; 4], &[2, 2]);
    let transposed = outputs(vec![square.permuted(&[1, 0]).into()]);
    let square = outputs(vec![square.into()]);
    let with = |strides| compare(&square, &transposed, None, &Options { strides, ..Options::default() });
    assert!(with(Strides::Ignored).notes.is_empty() && with(Strides::Ignored).agrees());
    assert!(with(Strides::Noted).agrees() && with(Strides::Noted).notes.len() == 1);
}

#[test]
fn the_summary_has_the_worst_first_and_counts_the_rest() {
    let expected = outputs(vec![vector(&[1.0, 2.0]).into(), vector(&[1.0, 2.0]).into(), vector(&[1.0]).into()]);
    let actual = outputs(vec![vector(&[1.0, 2.1]).into(), vector(&[5.0, 2.0]).into(), vector(&[1.0, 1.0]).into()]);
    let report = check(&expected, &actual);
    assert_eq!(
        report.summary(2),
        "outputs[2]: shape: expected [1], got [2]\n\
         outputs[1]: value: 1 of 2 elements differ, worst at [0]: expected 1.0, got 5.0; abs 4, rel 4; broken rule: elements are \
         within the tolerance\n\
         and one more difference\n"
    );
    assert_eq!(report.summary(9).lines().count(), 3);
    assert_eq!(check(&expected, &expected).summary(5), "");
}

#[test]
fn a_report_survives_json_with_what_is_not_finite() {
    let (expected, actual) = (outputs(vec![vector(&[1.0]).into()]), outputs(vec![vector(&[f32::NAN]).into()]));
    let report = check(&expected, &actual);
    let text = serde_json::to_string(&report).unwrap();
    assert!(text.contains(r#""class":"nan-position""#) && text.contains(r#""severity":"inf""#), "{text}");
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    let options = Options::default();
    assert_eq!(serde_json::from_str::<Options>(&serde_json::to_string(&options).unwrap()).unwrap(), options);
}
