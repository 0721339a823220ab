//! Numbers and sizes that only the data of tensors tell.
//!
//! `x.item()` of a floating-point tensor is a [`NumberValue`](crate::value::NumberValue) that the graph computes, that of an
//! integer tensor a symbol of which nothing is known but what the program asserts, and that of a bool tensor, like a comparison
//! of such symbols, a [`ConditionValue`]. Sizes such as that of `x[mask]` are symbols that are at least zero.
//!
//! Invariants: nothing is decided by what is not known. A branch ends the graph; where the rule of an operator had to guess to
//! tell the shape of its result, the call does, unless torch refuses the call where the guess is wrong: then the graph raises,
//! nothing has been done yet, and the frame runs plain.

use std::rc::Rc;

use pyrite_ir::{Kind as NodeKind, Meta, NodeId, Target, Value as GraphValue};
use pyrite_reader::IndexPart;
use pyrite_sym::{Rel, SymInt};
use pyrite_tensor::DType;

use super::{Evaluator, Run};
use crate::value::{ConditionValue, Derivation, Value};

type V = GraphValue<NodeId>;

/// Operators that raise where a size is not what their result takes it to be.
const CHECKED: [&str; 17] = [
    "zeros",
    "ones",
    "empty",
    "full",
    "rand",
    "randn",
    "randint",
    "arange",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "view",
    "_unsafe_view",
    "reshape",
    "select",
    "index_select",
];

/// Functions whose numbers may be given as tensors of one whole number. In lists of sizes they always may.
const COUNTED: [&str; 20] = [
    "view",
    "reshape",
    "expand",
    "repeat",
    "zeros",
    "ones",
    "empty",
    "rand",
    "randn",
    "arange",
    "new_zeros",
    "new_ones",
    "new_empty",
    "narrow",
    "select",
    "split",
    "chunk",
    "topk",
    "roll",
    "multinomial",
];

/// How many calls on top of each other are computed while capturing.
const DEEPEST: u32 = 6;

impl Evaluator<'_, '_> {
    /// The arguments of a function that did not take them, with numbers for tensors where torch reads numbers; nothing where
    /// there is no such tensor.
    pub(super) fn with_numbers(&mut self, name: &str, args: &[Value]) -> Run<Option<Vec<Value>>> {
        let counted = COUNTED.contains(&name);
        let mut changed = false;
        let mut numbers = Vec::with_capacity(args.len());
        for arg in args {
            numbers.push(match arg {
                Value::Tensor(_) if counted && self.is_whole_number(arg)? => {
                    changed = true;
                    self.item_of(arg, "int")?
                }
                Value::Tuple(_) | Value::List(_) => {
                    let mut items = self.items_of(arg)?;
                    for item in &mut items {
                        if self.is_whole_number(item)? {
                            changed = true;
                            *item = self.item_of(item, "int")?;
                        }
                    }
                    Value::tuple(items)
                }
                other => other.clone(),
            });
        }
        Ok(changed.then_some(numbers))
    }

    fn is_whole_number(&mut self, value: &Value) -> Run<bool> {
        let Value::Tensor(tensor) = value else { return Ok(false) };
        let meta = self.tensor_meta(tensor.node)?;
        Ok(meta.rank() == 0 && meta.dtype.is_integral() && meta.dtype != DType::Bool)
    }

    /// `x.item()`, as what `kind` (`item`, `int`, `float`, `bool`) makes of it.
    pub(super) fn item_of(&mut self, value: &Value, kind: &str) -> Run<Value> {
        let refusal = |this: &Self| {
            this.stop_with(
                format!("a call of {kind} of a tensor"),
                "keep the value a tensor, or move the call out of the compiled function",
            )
        };
        let Value::Tensor(tensor) = value else { return Err(refusal(self)) };
        let shown = tensor.class.is_some() || self.overrides.sees_modes();
        if shown || !self.bodies.is_empty() || self.autocasted {
            return Err(refusal(self));
        }
        let meta = self.tensor_meta(tensor.node)?.clone();
        if !meta.shape.iter().all(|size| size.as_int() == Some(1)) {
            return Err(refusal(self));
        }
        let none = || (Vec::new(), Vec::new());
        match (meta.dtype, kind) {
            (dtype, "item" | "float") if dtype.is_float() || (kind == "float" && dtype.is_integral()) => {
                let (args, kwargs) = none();
                let alone = self.tensor_method(value, &"detach".into(), args, kwargs)?;
                let shape = Value::tuple(Vec::new());
                let alone = self.tensor_method(&alone, &"reshape".into(), vec![shape], Vec::new())?;
                let (args, kwargs) = none();
                let copy = self.tensor_method(&alone, &"clone".into(), args, kwargs)?;
                let (args, kwargs) = none();
                let number = self.tensor_method(&copy, &"double".into(), args, kwargs)?;
                let Value::Tensor(number) = number else { return Err(refusal(self)) };
                let hint = self.host.object_of(&GraphValue::Float(0.5)).ok_or_else(|| self.stop("a float"))?;
                Ok(self.number(number.node, hint, Derivation::Data(self.root)))
            }
            (dtype, "item" | "int") if dtype.is_integral() && !matches!(dtype, DType::Bool) => {
                match self.known_integer(&GraphValue::Tensor(tensor.node), DEEPEST) {
                    Some(known) => Ok(self.int(known)),
                    None => self.read_element(tensor.node),
                }
            }
            // What is no number that 64 bits hold runs plain.
            (dtype, "int") if dtype.is_float() => {
                let limit = self.int(1 << 53);
                let size = self.tensor_method(value, &"abs".into(), Vec::new(), Vec::new())?;
                let holds = self.tensor_method(&size, &"le".into(), vec![limit], Vec::new())?;
                if !self.assert_data(&holds)? {
                    return Err(refusal(self));
                }
                let (args, kwargs) = none();
                match self.tensor_method(value, &"long".into(), args, kwargs)? {
                    Value::Tensor(number) => self.read_element(number.node),
                    _ => Err(refusal(self)),
                }
            }
            (DType::Bool, "int") => {
                let (args, kwargs) = none();
                match self.tensor_method(value, &"long".into(), args, kwargs)? {
                    Value::Tensor(number) => self.read_element(number.node),
                    _ => Err(refusal(self)),
                }
            }
            (dtype, "item" | "bool") if dtype == DType::Bool || kind == "bool" => {
                let zero = self.int(0);
                let is_true = match dtype {
                    DType::Bool => value.clone(),
                    _ => self.tensor_method(value, &"ne".into(), vec![zero], Vec::new())?,
                };
                let Value::Tensor(is_true) = is_true else { return Err(refusal(self)) };
                let args = vec![GraphValue::Tensor(is_true.node)];
                let node = self.calls.operation("aten.item.default", args, true.into());
                Ok(Value::Condition(Rc::new(ConditionValue { node: node.ok_or_else(|| refusal(self))?, says: None })))
            }
            _ => Err(refusal(self)),
        }
    }

    /// The one number of a tensor that is computed from constants alone, where nothing has been written since.
    fn known_integer(&self, value: &V, depth: u32) -> Option<i64> {
        let id = match value {
            GraphValue::Int(number) => return number.as_int(),
            // A sum of sums of the same numbers is asked for twice at every step.
            GraphValue::Tensor(id) if depth > 0 => *id,
            _ => return None,
        };
        let node = self.calls.node(id);
        let (NodeKind::Call(Target::Op(op)), Some(GraphValue::Tensor(meta))) = (&node.kind, self.calls.meta(id)) else {
            return None;
        };
        let is_number = meta.rank() == 0 && meta.dtype == DType::I64;
        // What a later call writes may be a view of this one.
        let is_write = |call: NodeId| match &self.calls.node(call).kind {
            NodeKind::Call(Target::Op(op)) => op.schema.is_mutable(),
            NodeKind::Call(Target::Opaque(_)) => !self.calls.is_abandoned(call),
            _ => false,
        };
        if !is_number || (id.0..self.calls.begin_nested().0).map(NodeId).any(is_write) {
            return None;
        }
        let number = |place: usize| node.args.get(place).and_then(|arg| self.known_integer(arg, depth - 1));
        let mode = node.args.iter().find_map(|arg| match arg {
            GraphValue::Str(mode) => Some(&**mode),
            _ => None,
        });
        match (op.name().split('.').nth(1)?, mode) {
            ("add", None) => number(0)?.checked_add(number(1)?.checked_mul(number(2)?)?),
            ("sub", None) => number(0)?.checked_sub(number(1)?.checked_mul(number(2)?)?),
            ("mul", None) => number(0)?.checked_mul(number(1)?),
            ("floor_divide", None) | ("div", Some("floor")) => floor_divided(number(0)?, number(1)?),
            ("div", Some("trunc")) => number(0)?.checked_div(number(1)?),
            _ => None,
        }
    }

    pub(super) fn read_element(&mut self, node: NodeId) -> Run<Value> {
        self.record_location();
        let args = vec![GraphValue::Tensor(node)];
        let read = self.calls.call("torch.ops.aten.item.default", args, Vec::new()).map_err(|r| self.refused(&r))?;
        self.result(&read, None)
    }

    /// A comparison of integers: a bool where it can be told, else what the graph says.
    pub(super) fn compare_sizes(&mut self, name: &str, left: &SymInt, right: &SymInt, args: &[Value]) -> Run<Value> {
        let (left, rel, right) = match name {
            "eq" => (left, Rel::Eq, right),
            "ne" => (left, Rel::Ne, right),
            "lt" => (left, Rel::Lt, right),
            "le" => (left, Rel::Le, right),
            "gt" => (right, Rel::Lt, left),
            _ => (right, Rel::Le, left),
        };
        if let Some(answer) = left.told(rel, right) {
            return Ok(self.bool(answer));
        }
        let values = args.iter().map(|arg| self.graph_value(arg)).collect::<Run<Vec<V>>>()?;
        let node = self.calls.operation(&format!("_operator.{name}.default"), values, true.into());
        let node = node.ok_or_else(|| self.stop("a comparison of what depends on data"))?;
        let says = Some((left.clone(), rel, right.clone()));
        Ok(Value::Condition(Rc::new(ConditionValue { node, says })))
    }

    /// Relies on a condition, which is known once the graph has run.
    pub(super) fn assert_condition(&mut self, condition: &ConditionValue) -> Run<()> {
        if !self.bodies.is_empty() {
            return Err(self.stop("an assertion about data in a nested graph"));
        }
        self.asserted.push((condition.node, self.root));
        if let Some((left, rel, right)) = &condition.says {
            self.calls.env().assume(&left.to_expr(), *rel, &right.to_expr());
        }
        Ok(())
    }

    /// Why a condition decides nothing.
    pub(super) fn undecided(&self) -> super::Stop {
        self.stop_with(
            "a branch that depends on the data of a tensor",
            "use torch.where, assert what is known by torch._check, or move the branch out of the compiled function",
        )
    }

    /// Whether anything of a tensor's metadata depends on data.
    pub(super) fn depends_on_data(&self, node: NodeId) -> bool {
        match self.calls.meta(node) {
            Some(GraphValue::Tensor(meta)) => is_unknown(meta),
            _ => false,
        }
    }

    /// Refuses a result whose shape rests on a guess.
    pub(super) fn check_guesses(&mut self, node: NodeId) -> Run<()> {
        let held = self.calls.node(node);
        let NodeKind::Call(target) = &held.kind else { return Ok(()) };
        let stem = match target {
            Target::Op(op) => op.name().split('.').nth(1).unwrap_or_default().to_owned(),
            other => other.name().to_owned(),
        };
        // Which dimensions are left depends on sizes that are one by chance.
        let squeezes = stem == "squeeze"
            && matches!(held.args.first(), Some(GraphValue::Tensor(input)) if self.depends_on_data(*input));
        if self.calls.env().guesses() == self.guesses && !squeezes {
            return Ok(());
        }
        if CHECKED.contains(&stem.as_str()) {
            self.fallible.get_or_insert(self.root);
            self.guesses = self.calls.env().guesses();
            return Ok(());
        }
        Err(self.stop_with(
            format!("a call of {stem} whose result has a size that depends on data in an unknown way"),
            "assert what is known of the sizes by torch._check",
        ))
    }

    /// A slice with a bound that depends on data gives a size of its own: Python cuts bounds off.
    pub(super) fn free_sizes(&mut self, source: &V, parts: &[IndexPart], result: &V) -> Run<()> {
        let is_unbacked = |this: &Self, value: &V| match value {
            GraphValue::Tensor(node) => {
                matches!(this.calls.meta(*node), Some(GraphValue::Int(size)) if size.is_unbacked())
            }
            _ => false,
        };
        let sliced = parts.iter().any(|part| match part {
            IndexPart::Value(GraphValue::Slice(bounds)) => bounds.iter().any(|bound| is_unbacked(self, bound)),
            _ => false,
        });
        let (true, GraphValue::Tensor(source), GraphValue::Tensor(result)) = (sliced, source, result) else {
            return Ok(());
        };
        let before = self.tensor_meta(*source)?.shape.clone();
        let mut meta = self.tensor_meta(*result)?.clone();
        for size in &mut meta.shape {
            if !before.contains(size) {
                *size = self.calls.unknown_size();
            }
        }
        self.calls.set_meta(*result, GraphValue::Tensor(meta));
        self.guesses = self.calls.env().guesses();
        Ok(())
    }
}

/// Whether anything of a tensor's metadata depends on data.
fn is_unknown(meta: &Meta) -> bool {
    meta.shape.iter().chain(&meta.stride).any(SymInt::is_unbacked)
}

/// A quotient rounded down, as Python's is.
fn floor_divided(left: i64, right: i64) -> Option<i64> {
    let (quotient, rest) = (left.checked_div(right)?, left.checked_rem(right)?);
    Some(if rest != 0 && (rest < 0) != (right < 0) { quotient - 1 } else { quotient })
}
