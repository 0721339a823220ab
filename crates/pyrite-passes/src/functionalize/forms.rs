//! Which functional operator stands for one that writes.

use pyrite_ir::{Eval, Handle, OpError, OpRef, Operator, Value};

use super::Reading;

/// The functional form of a call.
pub(super) struct Form {
    /// The functional operator.
    pub(super) name: String,
    /// Which arguments it takes, by their position.
    pub(super) passed: Vec<usize>,
    /// How many of its results are those of the call; the others are the new contents of what is written.
    pub(super) kept: usize,
    /// The arguments that are written, by their position.
    pub(super) written: Vec<usize>,
}

/// Operators whose functional form has a name of its own.
const NAMED: &[(&str, &str)] = &[
    ("aten.normal_.default", "aten.normal_functional.default"),
    ("aten.bernoulli_.float", "aten.bernoulli.p"),
    ("aten._native_batch_norm_legit.default", "aten._native_batch_norm_legit_functional.default"),
    ("aten._batch_norm_with_update.default", "aten._batch_norm_with_update_functional.default"),
    ("aten.rrelu_with_noise.default", "aten.rrelu_with_noise_functional.default"),
];

/// The functional form of a call that writes to the elements of its arguments; `None` where it does not write, or
/// changes only the shape of its argument.
pub(super) fn functional_form(op: &Operator, args: &[Value<Handle>]) -> Option<Form> {
    if op.name() == "aten.native_batch_norm.default" {
        return batch_norm(args);
    }
    if !op.schema.is_mutable() || matches!(op.def.eval, Eval::View) {
        return None;
    }
    let is_written = |index: usize| op.schema.params[index].alias.as_ref().is_some_and(|a| a.written);
    let written: Vec<usize> = (0..op.schema.params.len()).filter(|index| is_written(*index)).collect();
    // An argument that is only written is no argument of the functional form.
    let passed = (0..op.schema.params.len())
        .filter(|index| !(is_written(*index) && op.schema.params[*index].keyword_only))
        .collect();
    let named = NAMED.iter().find(|(name, _)| *name == op.name()).map(|(_, functional)| (*functional).to_owned());
    let name = match (op.def.eval, named) {
        (Eval::WriteBack(functional), _) => functional.to_owned(),
        (_, Some(named)) => named,
        _ => without_underscore(op.name())?,
    };
    // In-place operators return what they write; others return results and write beside.
    let kept = op.schema.returns.iter().filter(|r| r.alias.as_ref().is_none_or(|a| !a.written)).count();
    Some(Form { name, passed, kept, written })
}

/// Batch norm in training writes its running statistics although its schema does not say so.
fn batch_norm(args: &[Value<Handle>]) -> Option<Form> {
    const RUNNING: [usize; 2] = [3, 4];
    let training = matches!(args.get(5), Some(Value::Bool(true)));
    let tracked = RUNNING.iter().all(|index| matches!(args.get(*index), Some(Value::Tensor(_))));
    (training && tracked).then(|| Form {
        name: "aten._native_batch_norm_legit_functional.default".to_owned(),
        passed: (0..8).collect(),
        kept: 3,
        written: RUNNING.to_vec(),
    })
}

/// `aten.uniform.default` of `aten.uniform_.default`.
fn without_underscore(name: &str) -> Option<String> {
    let (stem, overload) = name.rsplit_once('.')?;
    Some(format!("{}.{overload}", stem.strip_suffix('_')?))
}

/// The view that an operator makes of its argument in place.
pub(super) fn view_of_in_place(op: &Operator) -> Result<String, OpError> {
    match op.name() {
        "aten.transpose_.default" => Ok("aten.transpose.int".to_owned()),
        name => without_underscore(name).ok_or_else(|| OpError::unsupported(format!("{name} in place"))),
    }
}

/// Which argument a view operator views.
pub(super) fn viewed(op: &OpRef, args: &[Value<Handle>]) -> Result<usize, OpError> {
    let aliased = op.schema.params.iter().position(|param| param.alias.is_some());
    aliased
        .or_else(|| args.iter().position(|arg| matches!(arg, Value::Tensor(_))))
        .ok_or_else(|| OpError::fault(format!("{} is a view of nothing", op.name())))
}

/// Which readings an operator copies its argument for; others it returns as they are.
pub(super) fn resolved(op: &Operator) -> Option<fn(Reading) -> bool> {
    match op.name() {
        "aten.resolve_conj.default" => Some(|reading| reading.conjugated),
        "aten.resolve_neg.default" => Some(|reading| reading.negated),
        _ => None,
    }
}
