//! Items of tensors: `x[key]`, `x[key] = new`, and the rows that a loop runs over.

use pyrite_ir::{NodeId, Value as GraphValue};
use pyrite_reader::IndexPart;
use pyrite_tensor::DType;

use super::{Evaluator, Run};
use crate::host::Kind;
use crate::value::Value;

impl Evaluator<'_, '_> {
    /// `len(tensor)`.
    pub(super) fn tensor_length(&mut self, value: &Value) -> Run<Value> {
        self.relies_on_wrapped_sizes.set(true);
        let Value::Tensor(tensor) = value else { return Err(self.stop("the length of nothing")) };
        if self.tensor_meta(tensor.node)?.rank() == 0 {
            return Err(self.raise("TypeError", "len() of a 0-d tensor"));
        }
        self.tensor_size(tensor.node, 0)
    }

    /// The rows of a tensor, one by one.
    pub(super) fn tensor_rows(&mut self, value: &Value) -> Run<Vec<Value>> {
        let Value::Tensor(tensor) = value else { return Err(self.stop("an iteration over nothing")) };
        let first = self.int(0);
        if let Some(rows) = self.method_overridden(value, &"unbind".into(), &[first], &Vec::new())? {
            return self.items_of(&rows);
        }
        if self.tensor_meta(tensor.node)?.rank() == 0 {
            return Err(self.raise("TypeError", "iteration over a 0-d tensor"));
        }
        let length = self.tensor_size(tensor.node, 0)?;
        let length = self.index_of(&length)?;
        if length > 4096 {
            return Err(self.stop("an iteration over a long tensor"));
        }
        (0..length)
            .map(|index| {
                let index = self.int(index);
                self.tensor_item(value, &index)
            })
            .collect()
    }

    /// Whether torch takes a list of indices for a tuple: a short one in which not every item is a number.
    fn is_tuple_of_indices(&self, items: &[Value]) -> bool {
        let one_number = |item: &Value| match item {
            Value::Known(object, _) => matches!(self.host.kind(*object), Kind::Int | Kind::Bool),
            Value::Symbol(_) | Value::Number(_) | Value::Condition(_) => true,
            _ => false,
        };
        items.len() < 32 && !items.iter().all(one_number)
    }

    fn index_parts(&mut self, key: &Value) -> Run<Vec<IndexPart>> {
        let key = self.force(key)?;
        let items = if let Value::List(_) = key { self.plain_items(&key)? } else { Vec::new() };
        let parts = match &key {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::List(_) if self.is_tuple_of_indices(&items) => items,
            Value::Known(object, _) if matches!(self.host.kind(*object), Kind::Tuple) => {
                self.constant_items(*object).into_iter().map(|item| Value::Known(item, None)).collect()
            }
            other => vec![other.clone()],
        };
        let ellipsis = self.host.member("builtins", "Ellipsis");
        parts
            .iter()
            .map(|part| {
                let part = self.force(part)?;
                match &part {
                    Value::Known(object, _) if Some(*object) == ellipsis => Ok(IndexPart::Ellipsis),
                    Value::Known(object, _) if self.host.kind(*object) == Kind::Bool => {
                        Err(self.stop("a bool as an index"))
                    }
                    Value::Known(object, _)
                        if self.host.class_name(self.host.class_of(*object)) == "builtins.slice" =>
                    {
                        let mut part = |name: &str| {
                            let found = self.constant(*object, name)?;
                            self.known_to_graph(found)
                        };
                        let parts = [part("start")?, part("stop")?, part("step")?];
                        Ok(IndexPart::Value(GraphValue::Slice(Box::new(parts))))
                    }
                    // One of rank zero is a number for torch.
                    Value::Instance(array) if self.is_array(array.class) => {
                        let held = self.tensor_of_array(array)?;
                        match &held {
                            Value::Tensor(tensor) if self.tensor_meta(tensor.node)?.rank() > 0 => {
                                self.graph_value(&held).map(IndexPart::Value)
                            }
                            _ => Err(self.stop("an array of rank zero as an index")),
                        }
                    }
                    other => self.graph_value(other).map(IndexPart::Value),
                }
            })
            .collect()
    }

    /// Whether an index picks by tensors of one integer alone: torch gives a view then, and the graph a copy.
    fn picks_by_numbers(&self, parts: &[IndexPart]) -> Run<bool> {
        let mut picks = false;
        for part in parts {
            match part {
                IndexPart::Value(GraphValue::Tensor(node)) if let Ok(meta) = self.tensor_meta(*node) => {
                    if meta.rank() != 0 {
                        return Ok(false);
                    }
                    if matches!(meta.dtype, DType::Bool | DType::U8) {
                        return Err(self.stop("a tensor of one bool as an index"));
                    }
                    picks = true;
                }
                IndexPart::Value(GraphValue::List(_)) => return Ok(false),
                _ => {}
            }
        }
        Ok(picks)
    }

    /// Where a tensor is a copy of what torch gives a view of: the instruction of the root that made it.
    pub(super) fn picked_at(&self, node: NodeId) -> Option<(usize, usize)> {
        let storage = self.tensor_meta(node).ok()?.storage;
        self.picked.iter().find(|([_, copy], _)| *copy == storage).map(|(_, at)| *at)
    }

    /// An index in which tensors of one number are the numbers that they are.
    fn with_read_numbers(&mut self, key: &Value) -> Run<Value> {
        match key {
            Value::Tensor(tensor) if self.tensor_meta(tensor.node)?.rank() == 0 => self.read_element(tensor.node),
            Value::Tuple(tuple) if tuple.class.is_none() => {
                let items = tuple.items.iter().map(|item| self.with_read_numbers(item)).collect::<Run<Vec<_>>>()?;
                Ok(Value::tuple(items))
            }
            other => Ok(other.clone()),
        }
    }

    /// `tensor[key]`.
    pub(super) fn tensor_item(&mut self, value: &Value, key: &Value) -> Run<Value> {
        let mut parts = self.index_parts(key)?;
        let mut key = key.clone();
        if self.picks_views && self.bodies.is_empty() && self.picks_by_numbers(&parts)? {
            key = self.with_read_numbers(&key)?;
            parts = self.index_parts(&key)?;
        }
        let key = &key;
        let tensor = self.graph_value(value)?;
        self.record_location();
        let picks = self.picks_by_numbers(&parts)?;
        let mut result = match self.calls.get_item(&tensor, parts.clone()) {
            Ok(result) => result,
            Err(refused) => {
                let function = self.host.member("operator", "getitem");
                return Err(self.refused_by_torch(&refused, function, "", &[value.clone(), key.clone()], &Vec::new()));
            }
        };
        if let (true, GraphValue::Tensor(source), GraphValue::Tensor(copy)) = (picks, &tensor, &result) {
            let storages = [self.tensor_meta(*source)?.storage, self.tensor_meta(*copy)?.storage];
            self.picked.push((storages, self.root));
        }
        self.free_sizes(&tensor, &parts, &result)?;
        if result == tensor {
            // What picks everything is a view of its own all the same.
            result = self
                .calls
                .call("torch.ops.aten.alias.default", vec![tensor], Vec::new())
                .map_err(|r| self.refused(&r))?;
        }
        self.result(&result, None)
    }

    /// `tensor[key] = new`.
    pub(super) fn set_tensor_item(&mut self, value: &Value, key: &Value, new: &Value) -> Run<()> {
        let parts = self.index_parts(key)?;
        let tensor = self.graph_value(value)?;
        if !matches!(new, Value::Tensor(_)) {
            let fill = self.host.member("torch", "Tensor").and_then(|class| self.class_item(class, "fill_"));
            self.check_accepted(fill, &[value.clone(), new.clone()], &Vec::new())?;
        }
        let operand = match new {
            Value::Number(number) => self.operand(value, number, true)?,
            _ => None,
        };
        let new = match operand {
            Some(operand) => GraphValue::Tensor(operand),
            None => self.graph_value(new)?,
        };
        if let (true, GraphValue::Tensor(held), GraphValue::Tensor(new)) =
            (self.picks_by_numbers(&parts)?, &tensor, &new)
            && self.tensor_meta(*held)?.storage == self.tensor_meta(*new)?.storage
        {
            return Err(self.stop("a part of a tensor is written to what a tensor of one number picks of it"));
        }
        self.check_written(value)?;
        self.record_location();
        self.calls.set_item(&tensor, parts, new).map_err(|r| self.refused(&r))
    }
}
