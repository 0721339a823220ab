//! Views of dictionaries: `keys()`, `values()`, `items()`.

use std::rc::Rc;

use super::{Evaluator, Run};
use crate::value::{Value, View, ViewValue};

impl Evaluator<'_, '_> {
    /// A view of a dictionary.
    pub(super) fn view(&self, dict: &Value, view: View) -> Value {
        Value::View(Rc::new(ViewValue { dict: dict.clone(), view }))
    }

    /// What a view shows now.
    pub(super) fn shown(&mut self, view: &ViewValue) -> Run<Vec<Value>> {
        if view.view == View::Keys {
            return self.items_of(&view.dict);
        }
        let pairs = self.dict_pairs(&view.dict)?.into_iter();
        Ok(match view.view {
            View::Values => pairs.map(|(_, value)| value).collect(),
            _ => pairs.map(|(key, value)| Value::tuple(vec![key, value])).collect(),
        })
    }

    /// An operator of which one side at least is a view of keys or pairs: both are taken as sets.
    pub(super) fn combine_views(&mut self, name: &str, left: &Value, right: &Value) -> Run<Option<Value>> {
        let is_set = |value: &Value| matches!(value, Value::View(view) if view.view != View::Values);
        let method = match name {
            "and_" => "intersection",
            "or_" => "union",
            "sub" => "difference",
            "xor" => "symmetric_difference",
            "le" => "issubset",
            "ge" => "issuperset",
            _ => return Ok(None),
        };
        if !is_set(left) && !is_set(right) {
            return Ok(None);
        }
        // What a view shows is asked for, one by one: values of pairs need no hash.
        if let "le" | "ge" = name
            && let (Value::View(_) | Value::Set(_), Value::View(_) | Value::Set(_)) = (left, right)
        {
            let (smaller, larger) = if name == "le" { (left, right) } else { (right, left) };
            if self.count(smaller)? > self.count(larger)? {
                return Ok(Some(self.bool(false)));
            }
            for item in self.items_of(smaller)? {
                if !self.contains(larger, &item)? {
                    return Ok(Some(self.bool(false)));
                }
            }
            return Ok(Some(self.bool(true)));
        }
        if let "and_" | "or_" | "sub" | "xor" = name
            && let Some(result) = self.combine_sets(name, left, right)?
        {
            return Ok(Some(result));
        }
        let (left, right) = (self.items_of(left)?, self.items_of(right)?);
        let (left, right) = (self.new_set(left)?, self.new_set(right)?);
        self.call_method(&left, &method.into(), vec![right], Vec::new()).map(Some)
    }

    /// Whether a view of keys or pairs equals another, or a set; nothing when that is not asked.
    pub(super) fn equal_views(&mut self, left: &Value, right: &Value) -> Run<Option<bool>> {
        let is_set = |value: &Value| match value {
            Value::View(view) => view.view != View::Values,
            other => matches!(other, Value::Set(_)),
        };
        if !matches!((left, right), (Value::View(_), _) | (_, Value::View(_))) {
            return Ok(None);
        }
        if !is_set(left) || !is_set(right) {
            return Ok(Some(false));
        }
        let (left, right) = (self.items_of(left)?, self.items_of(right)?);
        let (left, right) = (self.new_set(left)?, self.new_set(right)?);
        self.equal(&left, &right).map(Some)
    }
}

/// The operator that a special method of sets stands for.
pub(super) fn set_operator(method: &str) -> Option<&'static str> {
    Some(match method {
        "__and__" => "and_",
        "__or__" => "or_",
        "__sub__" => "sub",
        "__xor__" => "xor",
        _ => return None,
    })
}
