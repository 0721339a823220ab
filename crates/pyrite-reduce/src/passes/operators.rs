//! Simpler operators in place of calls.
//!
//! For the tensors a call takes (all of them, all but one, or a single one) the simplest operator is looked up that takes
//! just these and gives a result of the same form: `addmm` becomes `mm`, a softmax an absolute value. Which operators
//! there are and which is simpler comes from the registry ([`cost`]); nothing here knows any by name.

use std::sync::OnceLock;

use pyrite_ir::{Emit as _, Kind, Meta, NodeId, OpRef, Tag, Target, Tracer, Type, Value};
use pyrite_ops::registry;
use rustc_hash::FxHashMap;

use super::arguments::inferred;
use crate::Candidate;
use crate::driver::Search;
use crate::rebuild::Parts;

pub(super) fn simpler(search: &mut Search<'_>) {
    while !search.is_over() {
        let proposals = with_simpler(search.best());
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// The candidates with a simpler operator in place of one call.
pub(super) fn with_simpler(from: &Candidate) -> Vec<Candidate> {
    from.graph.nodes().flat_map(|(id, _)| replacements(from, id)).collect()
}

fn replacements(from: &Candidate, id: NodeId) -> Vec<Candidate> {
    let node = from.graph.node(id);
    let (Kind::Call(Target::Op(own)), Some(Value::Tensor(wanted))) = (&node.kind, &node.meta) else {
        return Vec::new();
    };
    if own.schema.is_mutable() || !own.schema.returns.iter().all(|r| r.alias.is_none()) {
        return Vec::new();
    }
    let mut operands = Vec::new();
    node.each_input(&mut |input| operands.push(input));
    let all_but_one = (0..operands.len()).map(|left| {
        operands.iter().enumerate().filter(|(index, _)| *index != left).map(|(_, operand)| *operand).collect()
    });
    let mut choices: Vec<Vec<NodeId>> = vec![operands.clone()];
    choices.extend(all_but_one);
    choices.extend(operands.iter().map(|operand| vec![*operand]));
    let mut found: Vec<Candidate> = Vec::new();
    let mut tried: Vec<Vec<NodeId>> = Vec::new();
    for chosen in choices.into_iter().rev() {
        if chosen.is_empty() || tried.contains(&chosen) {
            continue;
        }
        if let Some(op) = simplest(from, &chosen, wanted, own) {
            let mut parts = Parts::all(&from.graph);
            let args = op.schema.params.iter().enumerate().map(|(index, param)| match chosen.get(index) {
                Some(operand) => Value::Tensor(*operand),
                None => plain(param.default.as_ref()),
            });
            parts.args.insert(id, args.collect());
            parts.operators.insert(id, op);
            found.extend(inferred(parts.build(from)));
        }
        tried.push(chosen);
    }
    found
}

fn plain(default: Option<&Value<()>>) -> Value<NodeId> {
    default.and_then(|v| v.try_map::<NodeId, ()>(&mut |()| Err(())).ok()).unwrap_or(Value::None)
}

/// The simplest operator, simpler than the call's own, that takes these tensors and gives what is wanted.
fn simplest(from: &Candidate, operands: &[NodeId], wanted: &Meta, own: &OpRef) -> Option<OpRef> {
    let metas: Vec<&Meta> =
        operands.iter().map(|id| from.graph.node(*id).meta.as_ref()?.as_tensor()).collect::<Option<_>>()?;
    let table = table();
    let simple = table.by_tensors.get(&operands.len())?;
    simple.iter().take_while(|op| cost(op) < cost(own)).find(|op| gives(op, &metas, wanted)).cloned()
}

/// Whether an operator gives a result of the wanted form for tensors of these forms.
fn gives(op: &OpRef, metas: &[&Meta], wanted: &Meta) -> bool {
    let mut tracer = Tracer::new(registry());
    let mut args: Vec<Value<_>> =
        metas.iter().map(|meta| Value::Tensor(tracer.placeholder("operand", (*meta).clone()))).collect();
    for param in &op.schema.params[metas.len()..] {
        let default = param.default.as_ref().and_then(|v| v.try_map(&mut |()| Err(())).ok());
        args.push(default.unwrap_or(Value::None));
    }
    let Ok(result) = tracer.call_op(op, &args) else { return false };
    let Value::Tensor(handle) = result else { return false };
    let given = tracer.meta(handle);
    given.shape == wanted.shape && given.dtype == wanted.dtype && given.stride == wanted.stride
}

/// The registry by simplicity.
struct Table {
    place: FxHashMap<String, usize>,
    /// By the number of tensors that are all an operator needs, the simplest first.
    by_tensors: FxHashMap<usize, Vec<OpRef>>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut all: Vec<&OpRef> = registry().iter().collect();
        all.sort_by_key(|op| {
            let name = op.name();
            (!op.has(Tag::Core), op.schema.params.len(), !op.has(Tag::Pointwise), name.len(), name.to_owned())
        });
        let place = all.iter().enumerate().map(|(index, op)| (op.name().to_owned(), index + 1)).collect();
        let mut by_tensors: FxHashMap<usize, Vec<OpRef>> = FxHashMap::default();
        for op in all {
            let tensors = op.schema.params.iter().take_while(|p| p.ty == Type::Tensor && p.default.is_none()).count();
            let enough = op.schema.params[tensors..].iter().all(|param| param.default.is_some());
            let pure = !op.schema.is_mutable() && op.schema.returns.iter().all(|r| r.alias.is_none());
            if op.has(Tag::Core) && enough && pure && !op.has(Tag::Random) && !op.has(Tag::DataDependentShape) {
                by_tensors.entry(tensors).or_default().push(op.clone());
            }
        }
        Table { place, by_tensors }
    })
}

/// How complicated an operator is: its place in the registry when that is sorted by whether PyTorch counts it among the
/// core ones, by the number of parameters, by whether it is pointwise, and by name. What is not known costs most.
pub(crate) fn cost(op: &OpRef) -> usize {
    table().place.get(op.name()).copied().unwrap_or_else(unknown)
}

/// What an operator costs that the registry does not know.
pub(crate) fn unknown() -> usize {
    table().place.len() + 1
}
