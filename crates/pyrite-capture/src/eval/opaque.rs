//! Functions that no operator stands for, as single nodes of the graph.
//!
//! Two kinds of functions are called by the graph without being understood: those of torch that compute tensors from
//! tensors, and those that the user has allowed. What they give is told by the host from metadata alone; where it cannot be
//! told, the graph breaks as for any unknown function. What a custom operator writes is told by its schema.

use std::rc::Rc;

use pyrite_ir::{Meta, NodeId, Value as GraphValue};
use pyrite_sym::SymInt;

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::host::{Given, Kind, Object};
use crate::value::Value;

/// Where torch keeps functions that compute and do nothing else.
const SPACES: [&str; 7] =
    ["torch.fft.", "torch.linalg.", "torch.special.", "torch._VF.", "torch._C._nn.", "torch.ops.", "torch."];

/// Functions among them that begin as torch's internal ones do.
const UNDERSCORED: [&str; 4] = ["_weight_norm", "_lu_with_info", "_standard_gamma", "_sample_dirichlet"];

/// Functions that return their argument itself where there is nothing to do.
const RETURNING: [&str; 3] = ["torch.asarray", "torch.feature_alpha_dropout", "torch.positive"];

type V = GraphValue<NodeId>;

impl Evaluator<'_, '_> {
    /// Calls a function of torch that no operator stands for; nothing when what it gives cannot be told.
    pub(super) fn call_unknown(
        &mut self,
        name: &str,
        object: Object,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        // Functions written in Python may do anything, and are followed instead.
        if self.host.kind(object) != Kind::Builtin || RETURNING.contains(&name) {
            return Ok(None);
        }
        let custom = name.starts_with("torch.ops.") && !name.starts_with("torch.ops.aten.");
        let is_space = |space: &&str| name.strip_prefix(*space).is_some_and(|rest| is_function(space, rest));
        let takes_out = kwargs.iter().any(|(key, _)| &**key == "out");
        if !custom && (takes_out || !SPACES.iter().any(is_space)) {
            return Ok(None);
        }
        let given: Vec<Value> = args.iter().chain(kwargs.iter().map(|(_, value)| value)).cloned().collect();
        if !self.holds_tensor(&given)? || self.autocasted {
            return Ok(None);
        }
        let Some(written) = (if custom { self.written_by(object, args, kwargs)? } else { Some(Vec::new()) }) else {
            return Ok(None);
        };
        if !written.is_empty() {
            self.check_opaque_writes(name, &given, &written)?;
        }
        let mark = self.calls.mark();
        match self.capture_opaque_call(name, object, args, kwargs) {
            // What neither gives nor writes anything is called for something that no graph shows.
            Ok(value) if written.is_empty() && self.is_none(&value) => {
                self.calls.abandon_since(mark);
                Ok(None)
            }
            Err(super::Stop::Break(..)) => {
                self.calls.abandon_since(mark);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// The arguments that the schema of a custom operator lets it write; nothing where that cannot be told.
    fn written_by(&mut self, object: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Vec<Value>>> {
        let Some(question) = self.host.member("pyrite._opaque", "written") else { return Ok(None) };
        let told = self.host.call(question, &[object], &[]).map_err(|raised| self.raised(raised))?;
        if self.host.kind(told) == Kind::None {
            return Ok(None);
        }
        let mut written = Vec::new();
        for (index, name) in self.constant_items(told).into_iter().enumerate() {
            let Some(name) = self.host.as_str(name).filter(|name| !name.is_empty()) else { continue };
            let named = || kwargs.iter().find(|(key, _)| **key == *name).map(|(_, value)| value);
            match args.get(index).or_else(named) {
                Some(list @ (Value::Tuple(_) | Value::List(_))) => written.extend(self.items_of(list)?),
                Some(value) => written.push(value.clone()),
                None => {}
            }
        }
        Ok(Some(written))
    }

    /// Refuses writes of a custom operator that autograd or a transform would have to see.
    fn check_opaque_writes(&mut self, name: &str, given: &[Value], written: &[Value]) -> Run<()> {
        if !self.bodies.is_empty() {
            return Err(self.stop(format!("a call of {name}, which writes, in a nested graph")));
        }
        for value in given {
            let tensors = match value {
                Value::Tuple(_) | Value::List(_) => self.items_of(value)?,
                one => vec![one.clone()],
            };
            for tensor in tensors {
                if self.grad && self.requires_grad(&tensor)? {
                    return Err(
                        self.stop(format!("a call of {name}, which writes, with a tensor that requires a gradient"))
                    );
                }
            }
        }
        written.iter().try_for_each(|value| self.check_written(value))
    }

    fn holds_tensor(&mut self, values: &[Value]) -> Run<bool> {
        for value in values {
            let found = match value {
                Value::Tensor(_) => true,
                Value::Tuple(_) | Value::List(_) => {
                    let items = self.items_of(value)?;
                    items.iter().any(|item| matches!(item, Value::Tensor(_)))
                }
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls a function as one node.
    pub(super) fn capture_opaque_call(
        &mut self,
        name: &str,
        object: Object,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Value> {
        self.check_not_overriding(name, args)?;
        for (_, value) in kwargs {
            self.check_not_overriding(name, std::slice::from_ref(value))?;
        }
        let values = args.iter().map(|arg| self.graph_value(arg)).collect::<Run<Vec<V>>>()?;
        let mut named = Vec::with_capacity(kwargs.len());
        for (key, value) in kwargs {
            named.push((key.to_string(), self.graph_value(value)?));
        }
        self.call_opaque(name, object, values, named)
    }

    /// Calls a function as one node, with arguments of the graph.
    pub(super) fn call_opaque(
        &mut self,
        name: &str,
        object: Object,
        values: Vec<V>,
        named: Vec<(String, V)>,
    ) -> Run<Value> {
        let metas = values.iter().map(|value| self.fixed(value)).collect::<Run<Vec<_>>>()?;
        let named_metas = named
            .iter()
            .map(|(key, value)| Ok((key.clone(), self.fixed(value)?)))
            .collect::<Run<Vec<(String, GraphValue<Meta>)>>>()?;
        let given = self.host.describe_call(object, &metas, &named_metas, self.calls.nested());
        let given = given
            .map_err(|reason| self.stop(format!("a call of {name}, whose result cannot be inferred: {reason}")))?;
        self.record_location();
        let (meta, class, is_list) = match given {
            Given::Nothing => {
                self.calls.opaque(name, values, named, GraphValue::None);
                return Ok(self.none());
            }
            Given::Tensor(meta) => (GraphValue::Tensor(*meta), None, false),
            Given::Tuple(items, class) => (GraphValue::List(items), class, false),
            Given::List(items) => (GraphValue::List(items), None, true),
        };
        let node = self.calls.opaque(name, values, named, meta);
        let result = self.result(&node, class)?;
        Ok(match &result {
            Value::Tuple(tuple) if is_list => Value::List(Rc::new(crate::value::ListValue {
                items: std::cell::RefCell::new(tuple.items.clone()),
                ..crate::value::ListValue::default()
            })),
            _ => result,
        })
    }

    /// What is known of an argument, with its sizes as numbers: what a call gives is known for these alone, so the sizes are
    /// guarded to be what they are.
    pub(super) fn fixed(&self, value: &V) -> Run<GraphValue<Meta>> {
        let described = value.try_map(&mut |id: &NodeId| {
            self.calls.meta(*id).cloned().ok_or_else(|| self.stop("a tensor of which nothing is known"))
        })?;
        self.with_fixed_sizes(&described)
    }

    fn with_fixed_sizes(&self, value: &GraphValue<Meta>) -> Run<GraphValue<Meta>> {
        Ok(match value {
            GraphValue::Int(size) => GraphValue::Int(self.fixed_size(size)?),
            GraphValue::List(items) => {
                GraphValue::List(items.iter().map(|item| self.with_fixed_sizes(item)).collect::<Run<_>>()?)
            }
            GraphValue::Tensor(meta) => GraphValue::Tensor(self.fixed_meta(meta)?),
            other => other.clone(),
        })
    }

    /// A tensor's metadata with its sizes as numbers, which are guarded.
    pub(super) fn fixed_meta(&self, meta: &Meta) -> Run<Meta> {
        let mut fixed = meta.clone();
        for size in fixed.shape.iter_mut().chain(&mut fixed.stride) {
            *size = self.fixed_size(size)?;
        }
        Ok(fixed)
    }

    fn fixed_size(&self, size: &SymInt) -> Run<SymInt> {
        if size.as_int().is_some() {
            return Ok(size.clone());
        }
        let hint = size.hint().ok_or_else(|| self.stop("a size that depends on data"))?;
        if size.is_eq(SymInt::Int(hint)) { Ok(SymInt::Int(hint)) } else { Err(self.stop("a size that is not known")) }
    }
}

/// Whether a name in a space of functions is one of a function that leaves its arguments as they are.
fn is_function(space: &str, rest: &str) -> bool {
    let stem = rest.split('.').next().unwrap_or_default();
    let in_place = rest.split('.').any(|part| part.ends_with('_'));
    let hidden = rest.starts_with('_') && !UNDERSCORED.contains(&rest);
    !in_place && !hidden && (space != "torch." || !rest.contains('.')) && !stem.is_empty()
}
