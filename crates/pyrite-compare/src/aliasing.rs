//! Which values share memory with which.
//!
//! The pattern of sharing is a partition of the values by storage. It is compared through the representative of each
//! value, which is the first one that has its storage, inputs before outputs: two partitions are equal exactly when
//! all representatives are. Values with one representative must also lie at the same distance from it. Gradients take
//! no part: whether the engine hands out a fresh tensor or one that it holds is no promise to the program.

use std::collections::HashMap;

use pyrite_tensor::Tensor;

use crate::options::Options;
use crate::report::{Class, Difference, Report, Rule};
use crate::results::Role;
use crate::structure::Pair;

/// Compares the pattern of sharing among inputs and outputs.
pub fn compare(pairs: &[Pair<'_>], options: &Options, report: &mut Report) {
    let of = |role| pairs.iter().filter(move |pair| pair.role == role);
    // An element that is not there is shared with nobody.
    let pairs: Vec<&Pair<'_>> = of(Role::Inputs)
        .chain(of(Role::Outputs))
        .filter(|pair| pair.expected.numel() > 0 && pair.actual.numel() > 0)
        .collect();
    let expected = representatives(pairs.iter().map(|pair| pair.expected));
    let actual = representatives(pairs.iter().map(|pair| pair.actual));

    for (index, pair) in pairs.iter().enumerate() {
        let (e, a) = (expected[index], actual[index]);
        let (rule, described) = if e == a {
            let distance = |tensor: &Tensor, first: &Tensor| byte_offset(tensor) - byte_offset(first);
            let distances = [distance(pair.expected, pairs[e].expected), distance(pair.actual, pairs[a].actual)];
            if distances[0] == distances[1] {
                continue;
            }
            (Rule::Offset, distances.map(|bytes| format!("{bytes} bytes after {}", pairs[e].place)))
        } else {
            let owner = |first: usize| match first {
                _ if first == index => "memory of its own".to_owned(),
                _ => format!("the memory of {}", pairs[first].place),
            };
            (Rule::Sharing, [e, a].map(owner))
        };
        let [expected, actual] = described;
        let place = pair.place.clone();
        let difference = Difference { place, class: Class::Aliasing, rule, expected, actual, numbers: None };
        report.add(difference, options.aliasing);
    }
}

/// For each tensor, the index of the first that has its storage.
fn representatives<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Vec<usize> {
    let mut first = HashMap::new();
    tensors.enumerate().map(|(index, tensor)| *first.entry(tensor.storage().id()).or_insert(index)).collect()
}

fn byte_offset(tensor: &Tensor) -> i64 {
    tensor.layout().offset * tensor.dtype().size() as i64
}
