//! Walking two nested results together, and what of the contract can be read off without numbers.

use pyrite_ir::Value;
use pyrite_tensor::{DType, Tensor};

use crate::numeric::{Verdict, judge};
use crate::options::{Accuracy, Options, Strides, Tolerance, Weight};
use crate::report::{Class, Difference, Note, Remark, Report, Rule, ValuePath};
use crate::results::{Group, Results, Role};

/// A tensor that both sides have, at the same place.
pub struct Pair<'a> {
    pub place: ValuePath,
    pub role: Role,
    pub expected: &'a Tensor,
    pub actual: &'a Tensor,
}

/// Compares everything but aliasing; returns the tensors that both sides have.
pub fn compare<'a>(
    expected: &'a Results,
    actual: &'a Results,
    fp64: Option<&'a Results>,
    options: &Options,
    report: &mut Report,
) -> Vec<Pair<'a>> {
    let mut comparison = Comparison { options, report, role: Role::Outputs, pairs: Vec::new() };
    for group in &expected.groups {
        match actual.group(&group.name) {
            Some(other) => comparison.group(group, other, fp64),
            None => comparison.whole_group(group, Rule::Missing),
        }
    }
    for group in &actual.groups {
        if expected.group(&group.name).is_none() {
            comparison.whole_group(group, Rule::Surplus);
        }
    }
    comparison.pairs
}

/// The value of the fp64 reference that belongs to a value of the reference.
#[derive(Clone, Copy)]
enum Fp64Value<'a> {
    /// There is no run in double precision.
    NotRun,
    /// The run gave no such value.
    Missing,
    /// This one.
    Value(&'a Value<Tensor>),
}

impl<'a> Fp64Value<'a> {
    fn found(value: Option<&'a Value<Tensor>>) -> Self {
        value.map_or(Self::Missing, Self::Value)
    }

    fn item(self, index: usize) -> Self {
        match self {
            Self::Value(Value::List(items)) => Self::found(items.get(index)),
            Self::Value(Value::Slice(parts)) => Self::found(parts.get(index)),
            Self::Value(_) => Self::Missing,
            other => other,
        }
    }

    /// The tensor that can judge a value of this shape, or why there is none; no reason where none was asked for.
    fn tensor(self, shape: &[i64], complex: bool) -> Result<Tensor, Option<String>> {
        let value = match self {
            Self::NotRun => return Err(None),
            Self::Missing => return Err(Some("the fp64 run gave no such value".to_owned())),
            Self::Value(value) => value,
        };
        let tensor = number_or_tensor(value).ok_or_else(|| Some(format!("the fp64 run gave {}", value.kind())))?;
        if tensor.shape() != shape {
            return Err(Some(format!("the fp64 run gave the shape {:?}", tensor.shape())));
        }
        match tensor.dtype() {
            DType::F64 => Ok(tensor),
            DType::C128 if complex => Ok(tensor),
            other => Err(Some(format!("the fp64 run gave the type {other}"))),
        }
    }
}

/// A number or a tensor, as a tensor.
fn number_or_tensor(value: &Value<Tensor>) -> Option<Tensor> {
    match value {
        Value::Tensor(tensor) => Some(tensor.clone()),
        other => other.as_scalar().map(Tensor::number),
    }
}

/// The values of a group by name: of equal names, the nth belongs to the nth.
fn find<'a>(group: &'a Group, name: &str, nth: usize) -> Option<&'a Value<Tensor>> {
    group.values.iter().filter(|(other, _)| other == name).nth(nth).map(|(_, value)| value)
}

struct Comparison<'a, 'o> {
    options: &'o Options,
    report: &'o mut Report,
    role: Role,
    pairs: Vec<Pair<'a>>,
}

impl<'a> Comparison<'a, '_> {
    fn group(&mut self, expected: &'a Group, actual: &'a Group, fp64: Option<&'a Results>) {
        self.role = expected.role;
        let aligned = expected.values.iter().map(|(name, _)| name).eq(actual.values.iter().map(|(name, _)| name));
        for (index, (name, value)) in expected.values.iter().enumerate() {
            let place = ValuePath { group: expected.name.clone(), name: name.clone(), path: Vec::new() };
            // The same names in the same order are the rule, and need no search.
            let same_place = |group: &'a Group| group.values.get(index).filter(|(other, _)| other == name);
            let lookup = |group: &'a Group| match same_place(group) {
                Some((_, value)) if aligned => Some(value),
                _ => find(group, name, occurrence(expected, index)),
            };
            let fp64 = match fp64 {
                None => Fp64Value::NotRun,
                Some(run) => Fp64Value::found(run.group(&expected.name).and_then(lookup)),
            };
            match lookup(actual) {
                Some(other) => self.value(&place, value, other, fp64),
                None => self.structure(place, Rule::Missing, describe(value), "nothing".to_owned()),
            }
        }
        if aligned {
            return;
        }
        for (index, (name, value)) in actual.values.iter().enumerate() {
            if find(expected, name, occurrence(actual, index)).is_none() {
                let place = ValuePath { group: expected.name.clone(), name: name.clone(), path: Vec::new() };
                self.structure(place, Rule::Surplus, "nothing".to_owned(), describe(value));
            }
        }
    }

    fn whole_group(&mut self, group: &Group, rule: Rule) {
        let place = ValuePath { group: group.name.clone(), name: String::new(), path: Vec::new() };
        let (have, lack) = (format!("{} values", group.values.len()), "no such group".to_owned());
        let (expected, actual) = if rule == Rule::Missing { (have, lack) } else { (lack, have) };
        self.structure(place, rule, expected, actual);
    }

    fn value(
        &mut self,
        place: &ValuePath,
        expected: &'a Value<Tensor>,
        actual: &'a Value<Tensor>,
        fp64: Fp64Value<'a>,
    ) {
        match (expected, actual) {
            (Value::List(e), Value::List(a)) => {
                if e.len() != a.len() {
                    let text = |items: &[Value<Tensor>]| format!("{} values", items.len());
                    self.structure(place.clone(), Rule::Length, text(e), text(a));
                }
                self.items(place, e, a, fp64);
                return;
            }
            (Value::Slice(e), Value::Slice(a)) => {
                self.items(place, e.as_slice(), a.as_slice(), fp64);
                return;
            }
            _ => {}
        }
        self.report.compared += 1;
        if let (Value::Tensor(e), Value::Tensor(a)) = (expected, actual) {
            self.pairs.push(Pair { place: place.clone(), role: self.role, expected: e, actual: a });
            self.tensors(place, e, a, fp64);
            return;
        }
        let same_kind = expected.kind() == actual.kind();
        if let (Some(e), Some(a)) = (number_or_tensor(expected), number_or_tensor(actual)) {
            if !same_kind {
                self.push(place, Class::Kind, Rule::Kind, [describe(expected), describe(actual)], self.options.kinds);
                if self.options.kinds == Weight::Difference {
                    return;
                }
            }
            if e.shape() != a.shape() {
                self.shapes(place, &e, &a);
                return;
            }
            let tolerance = [(expected, &e), (actual, &a)].map(|(value, tensor)| match value {
                Value::Float(_) | Value::Complex(_) => self.options.tolerances.number,
                _ => self.options.tolerances.of(tensor.dtype()),
            });
            self.numbers(place, &e, &a, fp64, tolerance[0].max(tolerance[1]));
            return;
        }
        let equal = match (expected, actual) {
            (Value::None, Value::None) => true,
            // Sizes that are still symbolic.
            (Value::Int(e), Value::Int(a)) => e == a,
            (Value::Str(e), Value::Str(a))
            | (Value::Layout(e), Value::Layout(a))
            | (Value::Graph(e), Value::Graph(a)) => e == a,
            (Value::DType(e), Value::DType(a)) => e == a,
            (Value::Device(e), Value::Device(a)) => e == a,
            (Value::MemoryFormat(e), Value::MemoryFormat(a)) => e == a,
            _ => false,
        };
        let described = [describe(expected), describe(actual)];
        if !same_kind {
            self.push(place, Class::Kind, Rule::Kind, described, Weight::Difference);
        } else if !equal {
            self.push(place, self.value_class(Rule::Exact), Rule::Exact, described, self.options.non_floats);
        }
    }

    fn items(
        &mut self,
        place: &ValuePath,
        expected: &'a [Value<Tensor>],
        actual: &'a [Value<Tensor>],
        fp64: Fp64Value<'a>,
    ) {
        for (index, (e, a)) in expected.iter().zip(actual).enumerate() {
            let mut inner = place.clone();
            inner.path.push(index);
            self.value(&inner, e, a, fp64.item(index));
        }
    }

    fn tensors(&mut self, place: &ValuePath, expected: &Tensor, actual: &Tensor, fp64: Fp64Value<'a>) {
        let (e, a) = (expected.dtype(), actual.dtype());
        if e != a {
            self.push(place, Class::Dtype, Rule::Dtype, [e.to_string(), a.to_string()], self.options.dtypes);
        }
        if expected.shape() != actual.shape() {
            self.shapes(place, expected, actual);
            return;
        }
        if let Some(weight) = stride_weight(expected, actual, self.options.strides) {
            let described = [expected, actual].map(|tensor| format!("{:?}", tensor.stride()));
            self.push(place, Class::Stride, Rule::Stride, described, weight);
        }
        let tolerances = &self.options.tolerances;
        self.numbers(place, expected, actual, fp64, tolerances.of(e).max(tolerances.of(a)));
    }

    fn shapes(&mut self, place: &ValuePath, expected: &Tensor, actual: &Tensor) {
        let described = [expected, actual].map(|tensor| format!("{:?}", tensor.shape()));
        self.push(place, Class::Shape, Rule::Shape, described, Weight::Difference);
    }

    fn numbers(
        &mut self,
        place: &ValuePath,
        expected: &Tensor,
        actual: &Tensor,
        fp64: Fp64Value<'a>,
        tolerance: Tolerance,
    ) {
        let (e, a) = (expected.dtype(), actual.dtype());
        let judged = self.options.accuracy == Accuracy::Fp && (e.is_inexact() || a.is_inexact());
        let fp64 = if judged { fp64 } else { Fp64Value::NotRun };
        let partner = fp64.tensor(expected.shape(), e.is_complex() || a.is_complex());
        match judge(expected, actual, partner.as_ref().ok(), tolerance, self.options) {
            Verdict::Same => {}
            Verdict::Noise(numbers) => self.note(place, Remark::Noise(numbers)),
            Verdict::Broken(rule, numbers) => {
                let weight =
                    if e.is_integral() && a.is_integral() { self.options.non_floats } else { Weight::Difference };
                self.report.add(
                    Difference {
                        place: place.clone(),
                        class: self.value_class(rule),
                        rule,
                        expected: numbers.worst.expected.clone(),
                        actual: numbers.worst.actual.clone(),
                        numbers: Some(numbers),
                    },
                    weight,
                );
                if let Err(Some(why)) = partner {
                    self.note(place, Remark::NoFp64(why));
                }
            }
        }
    }

    fn value_class(&self, rule: Rule) -> Class {
        match rule {
            _ if self.role == Role::Inputs => Class::Mutation,
            Rule::NanPosition | Rule::InfinityPosition | Rule::NoNan => Class::NanPosition,
            _ => Class::Value,
        }
    }

    fn structure(&mut self, place: ValuePath, rule: Rule, expected: String, actual: String) {
        self.push(&place, Class::Structure, rule, [expected, actual], Weight::Difference);
    }

    fn push(&mut self, place: &ValuePath, class: Class, rule: Rule, [expected, actual]: [String; 2], weight: Weight) {
        let difference = Difference { place: place.clone(), class, rule, expected, actual, numbers: None };
        self.report.add(difference, weight);
    }

    fn note(&mut self, place: &ValuePath, remark: Remark) {
        self.report.notes.push(Note { place: place.clone(), remark });
    }
}

/// How many values before this one have its name.
fn occurrence(group: &Group, index: usize) -> usize {
    let name = &group.values[index].0;
    group.values[..index].iter().filter(|(other, _)| other == name).count()
}

/// How much the strides of two tensors of one shape count; nothing when they agree.
fn stride_weight(expected: &Tensor, actual: &Tensor, strides: Strides) -> Option<Weight> {
    let significant = || {
        expected.numel() > 1
            && expected
                .shape()
                .iter()
                .zip(expected.stride().iter().zip(actual.stride()))
                .any(|(size, (e, a))| *size > 1 && e != a)
    };
    match strides {
        Strides::Ignored => None,
        Strides::Noted => significant().then_some(Weight::Note),
        Strides::Significant => significant().then_some(Weight::Difference),
        Strides::All => (expected.stride() != actual.stride()).then_some(Weight::Difference),
    }
}

/// A value in a few words.
fn describe(value: &Value<Tensor>) -> String {
    match value {
        Value::None => "None".to_owned(),
        Value::Tensor(tensor) => format!("a tensor {}{:?}", tensor.dtype(), tensor.shape()),
        Value::Bool(v) => if *v { "True" } else { "False" }.to_owned(),
        Value::Int(v) => format!("the int {v}"),
        Value::Float(v) => format!("the float {v:?}"),
        Value::Complex(v) => format!("the complex number {v}"),
        Value::Str(v) => format!("{v:?}"),
        Value::DType(v) => format!("torch.{}", v.torch_name()),
        Value::Device(v) => format!("the device {v}"),
        Value::Layout(v) => format!("torch.{v}"),
        Value::MemoryFormat(v) => format!("torch.{}", v.torch_name()),
        Value::List(items) => format!("a list of {}", items.len()),
        Value::Slice(_) => "a slice".to_owned(),
        Value::Graph(name) => format!("the graph {name}"),
    }
}
