//! Passes over the inputs and constants: smaller shapes, plainer values.

use std::collections::BTreeSet;

use pyrite_ir::{Builder, Kind, Meta, Node, NodeId, StorageId, Value};
use pyrite_tensor::{Layout, Tensor};
use rustc_hash::FxHashSet;

use super::arguments::inferred;
use crate::Candidate;
use crate::candidate::copied;
use crate::content::{self, Content};
use crate::driver::Search;

/// How many elements cost a question as much as one call: each is made, computed by the references, computed by the backend
/// and compared, which takes tens of nanoseconds; a call is compiled, which takes ten milliseconds and more.
const ELEMENTS_PER_CALL: usize = 1 << 18;

/// Makes a program small while it is whole, where questions cost more by its elements than by its calls. Of each size the
/// smallest one that fails is looked for from below, where questions cost little; some failures need many elements. A
/// program of many calls is cut into parts first: a network's parameters alone are no reason to compile all of it anew
/// for every size.
pub(super) fn large(search: &mut Search<'_>) {
    let mut tried = BTreeSet::new();
    while !search.is_over() {
        let from = search.best().clone();
        let calls = from.graph.nodes().filter(|(_, node)| matches!(node.kind, Kind::Call(_))).count();
        if elements(&from) / ELEMENTS_PER_CALL <= calls {
            return;
        }
        let Some(size) = sizes(&from).into_iter().rev().find(|size| tried.insert(*size)) else { return };
        search.first_failing(ladder(size).into_iter().filter_map(|smaller| resized(&from, size, smaller)));
    }
}

/// The elements of all inputs, and of the results whose sizes are known.
fn elements(from: &Candidate) -> usize {
    let mut elements = 0usize;
    for input in &from.inputs {
        input.each(&mut |tensor| elements = elements.saturating_add(tensor.numel()));
    }
    for (_, node) in from.graph.nodes().filter(|(_, node)| matches!(node.kind, Kind::Call(_))) {
        let Some(meta) = &node.meta else { continue };
        meta.each(&mut |tensor| {
            let known = tensor.numel().as_int().and_then(|count| usize::try_from(count).ok());
            elements = elements.saturating_add(known.unwrap_or(0));
        });
    }
    elements
}

/// Sizes from small ones on, each four times the last, with what is left over of a size when vectors are taken off.
fn ladder(size: i64) -> BTreeSet<i64> {
    let steps = (2..31).map(|power| 1i64 << (2 * power)).take_while(|step| *step < size);
    steps
        .flat_map(|step| [step, step + size % 16])
        .chain([size / 2])
        .filter(|smaller| (2..size).contains(smaller))
        .collect()
}

/// The sizes of all dimensions of the inputs that have more than one element.
fn sizes(from: &Candidate) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    for input in &from.inputs {
        input.each(&mut |tensor| found.extend(tensor.shape().iter().copied().filter(|size| *size > 1)));
    }
    found
}

/// Makes sizes smaller: of every dimension that has a size at once, since dimensions of one size mostly belong together and
/// sizes among the arguments follow; then of single dimensions of single inputs.
///
/// Of each size the smallest that fails is looked for by dividing what lies between one that does not and one that does, so
/// the questions grow with the size's logarithm. What is found so is tried once more, at one and at one less, until nothing
/// changes any more.
pub(super) fn shapes(search: &mut Search<'_>) {
    // Other contents seldom make smaller sizes possible; that none is smaller by one is checked again.
    let kept = if search.are_sizes_minimal() { BTreeSet::new() } else { descend_all(search) };
    tighten_all(search, kept);
    if !search.is_over() {
        search.note_minimal_sizes();
    }
}

/// Looks for the smallest of every size, and returns those that no smaller one can replace throughout.
fn descend_all(search: &mut Search<'_>) -> BTreeSet<i64> {
    let from = search.best().clone();
    let all = sizes(&from);
    if let (Some(largest), true) = (all.last(), all.len() > 1) {
        // Most failures need no size at all.
        let smallest = renumbered_throughout(&from, |size| if all.contains(&size) { 1 } else { size });
        search.first_failing(smallest.into_iter().chain(resized(&from, *largest, 1)));
    }
    let mut kept = BTreeSet::new();
    for size in all.into_iter().rev() {
        if sizes(search.best()).contains(&size) {
            descend(search, size, &|from, smaller| resized(from, size, smaller));
            kept.extend(sizes(search.best()).take(&size));
        }
    }
    kept
}

/// Looks whether single dimensions, then sizes throughout, can be smaller, until nothing changes. Dimensions of the sizes that
/// are given were not looked at alone.
fn tighten_all(search: &mut Search<'_>, mut kept: BTreeSet<i64>) {
    while !search.is_over() {
        let before = search.best().size();
        for (index, dim) in dimensions(search.best()) {
            let Some(size) = size_of(search.best(), index, dim) else { continue };
            let look = if kept.contains(&size) { descend } else { tighten };
            look(search, size, &|from, smaller| narrowed(from, index, dim, smaller));
        }
        kept.clear();
        for size in sizes(search.best()).into_iter().rev() {
            tighten(search, size, &|from, smaller| resized(from, size, smaller));
        }
        if search.best().size() == before {
            return;
        }
    }
}

/// The dimensions of inputs that have more than one element.
fn dimensions(from: &Candidate) -> Vec<(usize, usize)> {
    let tensors = from.inputs.iter().enumerate().filter_map(|(index, input)| Some((index, input.as_tensor()?)));
    let large = tensors.flat_map(|(index, tensor)| {
        let dims = tensor.shape().iter().enumerate().filter(|(_, size)| **size > 1);
        dims.map(move |(dim, _)| (index, dim)).collect::<Vec<_>>()
    });
    large.collect()
}

fn size_of(from: &Candidate, index: usize, dim: usize) -> Option<i64> {
    from.inputs.get(index)?.as_tensor()?.shape().get(dim).copied()
}

/// A candidate with another size, if that is a program.
type Resize<'a> = &'a dyn Fn(&Candidate, i64) -> Option<Candidate>;

/// A size above this that nothing divides further may be a multiple of a number other than a vector's length.
const MANY: i64 = 16;

/// Looks for the smallest size that fails in place of one that does: one and two, which suffice for most, then what divides
/// the rest.
fn descend(search: &mut Search<'_>, size: i64, resize: Resize<'_>) {
    let from = search.best().clone();
    let (low, high) = try_sizes(search, &from, &[1, 2], (0, size), resize);
    let mut high = divide(search, &from, (low, high), resize);
    while high > MANY && !search.is_over() {
        let (low, smaller) = try_sizes(search, &from, &[3, high / 2], (0, high), resize);
        if smaller == high {
            return;
        }
        high = divide(search, &from, (low, smaller), resize);
    }
}

/// Looks whether a size can be smaller that was the smallest before something else changed: by all, by one, and if by one, by
/// how much more.
fn tighten(search: &mut Search<'_>, size: i64, resize: Resize<'_>) {
    let from = search.best().clone();
    let (mut low, mut high) = try_sizes(search, &from, &[1, size - 1], (0, size), resize);
    let mut step = 2;
    while low > 0 && high == size - step / 2 && !search.is_over() {
        (low, high) = try_sizes(search, &from, &[size - 2 * step, size - step], (1, high), resize);
        step *= 4;
    }
    divide(search, &from, (low, high), resize);
}

/// Divides what lies between a size that passes and one that fails until nothing does, and returns the one that fails.
fn divide(search: &mut Search<'_>, from: &Candidate, (mut low, mut high): (i64, i64), resize: Resize<'_>) -> i64 {
    while high - low > 1 && !search.is_over() {
        (low, high) = try_sizes(search, from, &between(low, high), (low, high), resize);
    }
    high
}

/// Tries sizes, given in ascending order, between one that passes and one that fails. Returns the smallest that fails, and
/// the next that was tried below it.
fn try_sizes(
    search: &mut Search<'_>,
    from: &Candidate,
    tried: &[i64],
    (low, high): (i64, i64),
    resize: Resize<'_>,
) -> (i64, i64) {
    let tried: Vec<i64> = tried.iter().copied().filter(|size| (low + 1..high).contains(size)).collect();
    let made: Vec<(i64, Candidate)> = tried.iter().filter_map(|size| Some((*size, resize(from, *size)?))).collect();
    let (made, proposals): (Vec<i64>, Vec<Candidate>) = made.into_iter().unzip();
    let high = search.first_failing(proposals).map_or(high, |place| made[place]);
    (tried.into_iter().filter(|size| *size < high).max().unwrap_or(low), high)
}

/// Sizes that divide what lies between two others, in ascending order. What is left over when vectors are taken off may be
/// what matters, so it is left over of these as well, for vectors as large as there is room for.
fn between(low: i64, high: i64) -> Vec<i64> {
    let width = high - low;
    let vector = [16, 8, 4, 2].into_iter().find(|vector| 3 * vector <= 2 * width).unwrap_or(1);
    if 3 * vector > width {
        return vec![high - vector, high - vector / 2];
    }
    let near = |place: i64| {
        let below = place - (place - high).rem_euclid(vector);
        if 2 * (place - below) > vector { below + vector } else { below }
    };
    vec![near(low + width / 3), near(low + 2 * width / 3)]
}

/// The candidate with a size replaced in inputs and arguments.
fn resized(from: &Candidate, size: i64, smaller: i64) -> Option<Candidate> {
    renumbered_throughout(from, |value| if value == size { smaller } else { value })
}

/// The candidate with every size in inputs and arguments replaced.
fn renumbered_throughout(from: &Candidate, number: impl Fn(i64) -> i64 + Copy) -> Option<Candidate> {
    let inputs = from.inputs.iter().map(|input| input.map(&mut |tensor| corner(tensor, number))).collect();
    rebuilt(from, inputs, &|tensor| corner(tensor, number), &|value| renumbered(&value, &number))
}

/// The candidate with one dimension of one input smaller.
fn narrowed(from: &Candidate, index: usize, dim: usize, smaller: i64) -> Option<Candidate> {
    let mut inputs = from.inputs.clone();
    if let Some(Value::Tensor(tensor)) = inputs.get(index) {
        let mut at = 0;
        let small = corner(tensor, |size| {
            at += 1;
            if at - 1 == dim { smaller } else { size }
        });
        inputs[index] = Value::Tensor(small);
    }
    rebuilt(from, inputs, &Tensor::clone, &|value| value)
}

/// The first elements along each dimension.
fn corner(tensor: &Tensor, mut size: impl FnMut(i64) -> i64) -> Tensor {
    let shape: Vec<i64> = tensor.shape().iter().map(|s| size(*s)).collect();
    let view = tensor.view(tensor.dtype(), Layout::new(&shape, tensor.stride(), tensor.layout().offset));
    let Ok(view) = view else { return tensor.clone() };
    let dense = Tensor::empty(&shape, tensor.dtype());
    match dense {
        // The order of the dimensions in memory may matter, so it is kept where it was not the usual one.
        Ok(dense) if tensor.layout().is_contiguous() => {
            dense.write_from(&view);
            dense
        }
        _ => {
            let mut order: Vec<usize> = (0..shape.len()).collect();
            order.sort_by_key(|d| std::cmp::Reverse(tensor.stride()[*d]));
            let ordered: Vec<i64> = order.iter().map(|d| shape[*d]).collect();
            let Ok(dense) = Tensor::empty(&ordered, tensor.dtype()) else { return copied(&view) };
            let mut back = vec![0; shape.len()];
            order.iter().enumerate().for_each(|(to, from)| back[*from] = to);
            let permuted = dense.permuted(&back);
            permuted.write_from(&view);
            permuted
        }
    }
}

/// The candidate with other inputs, and with every constant and every argument changed, if that is a program.
pub(super) fn rebuilt(
    from: &Candidate,
    inputs: Vec<Value<Tensor>>,
    constant: &dyn Fn(&Tensor) -> Tensor,
    argument: &dyn Fn(Value<NodeId>) -> Value<NodeId>,
) -> Option<Candidate> {
    let mut builder = Builder::new();
    builder.copy_surroundings(&from.graph);
    let mut copies: Vec<NodeId> = vec![NodeId(0); from.graph.id_bound()];
    let mut given = inputs.iter();
    for (id, node) in from.graph.nodes() {
        let copy = match &node.kind {
            Kind::Placeholder => {
                let old = node.meta.as_ref().and_then(Value::as_tensor);
                let meta = given.next()?.as_tensor().map(|tensor| {
                    Value::Tensor(Meta {
                        storage: StorageId::fresh(),
                        requires_grad: old.is_some_and(|m| m.requires_grad),
                        is_leaf: old.is_none_or(|m| m.is_leaf),
                        device: old.map(|m| m.device.clone()).unwrap_or_default(),
                        ..Meta::of(tensor)
                    })
                });
                Node { meta: meta.or_else(|| node.meta.clone()), ..node.clone() }
            }
            Kind::GetAttr(name) => {
                if let Some(tensor) = from.graph.constants().get(name) {
                    builder.add_constant(name, constant(tensor));
                }
                node.clone()
            }
            _ => {
                let changed = |value: &Value<NodeId>| argument(value.map(&mut |id| copies[id.0 as usize]));
                let args = node.args.iter().map(changed).collect();
                let kwargs = node.kwargs.iter().map(|(name, value)| (name.clone(), changed(value))).collect();
                Node { args, kwargs, ..node.clone() }
            }
        };
        copies[id.0 as usize] = builder.push(copy);
    }
    inferred(Candidate { graph: builder.finish(), inputs, seed: from.seed })
}

/// Numbers inside of lists are sizes; numbers on their own are dimensions and the like.
fn renumbered(value: &Value<NodeId>, number: &dyn Fn(i64) -> i64) -> Value<NodeId> {
    match value {
        Value::List(items) => Value::List(
            items
                .iter()
                .map(|item| match item {
                    Value::Int(size) => size.as_int().map_or_else(|| item.clone(), |v| number(v).into()),
                    other => renumbered(other, number),
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Plainer contents, the plainest first; then contents from the seed, of all data at once and of single inputs.
pub(super) fn values(search: &mut Search<'_>) {
    while !search.is_over() {
        let from = search.best().clone();
        let mut proposals = Vec::new();
        for (index, input) in from.inputs.iter().enumerate() {
            let Value::Tensor(tensor) = input else { continue };
            for content in plainer(tensor) {
                let mut inputs = from.inputs.clone();
                inputs[index] = Value::Tensor(content);
                proposals.push(Candidate { inputs, ..from.clone() });
            }
        }
        for constant in from.graph.constants().values() {
            let changed = |plain: Tensor| {
                let is_this = |tensor: &Tensor| tensor.storage().id() == constant.storage().id();
                let replaced = |tensor: &Tensor| if is_this(tensor) { plain.clone() } else { tensor.clone() };
                rebuilt(&from, from.inputs.clone(), &replaced, &|value| value)
            };
            proposals.extend(plainer(constant).into_iter().filter_map(changed));
        }
        let data = from.inputs.iter().filter_map(Value::as_tensor).filter(|t| content::of(t) == Content::Data);
        let data: FxHashSet<usize> = data.map(|tensor| tensor.storage().id()).collect();
        if !data.is_empty() {
            proposals.push(content::redrawn(&from, &data));
        }
        let single = from.inputs.iter().filter_map(Value::as_tensor).map(|tensor| tensor.storage().id());
        let single = single.filter(|id| data.contains(id)).map(|id| FxHashSet::from_iter([id]));
        proposals.extend(single.map(|one| content::redrawn(&from, &one)));
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// Tensors of the same form with plainer contents than a tensor has.
fn plainer(tensor: &Tensor) -> Vec<Tensor> {
    let numbers = tensor.to_f64s();
    let filled = |number: &dyn Fn(usize, f64) -> f64| {
        let made = copied(tensor);
        made.write_f64s(&numbers.iter().enumerate().map(|(at, v)| number(at, *v)).collect::<Vec<_>>());
        made
    };
    let mut made = vec![filled(&|_, _| 0.0), filled(&|_, _| 1.0)];
    if !tensor.dtype().is_float() {
        return made;
    }
    let largest = numbers.iter().enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).map(|(at, _)| at);
    if let Some(largest) = largest.filter(|_| numbers.len() > 1) {
        made.push(filled(&|at, _| f64::from(u8::from(at == largest))));
    }
    made.push(filled(&|_, v| v.round().clamp(-1.0, 1.0).abs()));
    if content::of(tensor) > Content::Small {
        made.push(filled(&|_, v| if v.is_nan() { 0.0 } else { v.round().clamp(-9.0, 9.0) }));
    }
    made
}
