//! `x[…]`: items of lists, views and elements of tensors.
//!
//! On a tensor, an integer becomes `select`, a slice `slice`, `None` `unsqueeze`, tensors and lists `index`; several of
//! them become a chain of calls, as PyTorch does it.

use pyrite_ir::Value;
use ruff_python_ast::{Expr, ExprSubscript};
use ruff_text_size::Ranged;

use crate::calls::IndexPart;
use crate::expr::Operand;
use crate::forward::{Forward, V};
use crate::literal;
use crate::problems::{Failed, Res, codes};

impl<'a> Forward<'a> {
    /// `value[index]`.
    pub fn subscript(&mut self, subscript: &'a ExprSubscript, want: Option<&str>) -> Res<V> {
        let value = self.eval(&subscript.value, None)?;
        if let Some(index) = plain_int(&subscript.slice) {
            return self.get_item(&value, index, want, subscript);
        }
        let parts = self.parts(&subscript.slice)?;
        self.index_parts(&value, parts, want, subscript)
    }

    /// An item of a list, or a row of a tensor.
    pub fn get_item(&mut self, value: &V, index: i64, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        if self.operand(value) == Operand::Tensor {
            return self.index_parts(value, vec![IndexPart::Value(index.into())], want, at);
        }
        self.item(value, index, want, at)
    }

    /// `operator.getitem(value, index)` with an index that is no number.
    pub fn index_value(&mut self, value: &V, index: &V, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        self.index_parts(value, value_parts(index), want, at)
    }

    /// `value[index] = new`.
    pub fn set_item(&mut self, subscript: &'a ExprSubscript, new: V) -> Res<()> {
        let value = self.eval(&subscript.value, None)?;
        let parts = self.parts(&subscript.slice)?;
        self.store_parts(&value, parts, new, None, subscript)
    }

    /// `operator.setitem(value, index, new)`.
    pub fn store(&mut self, value: &V, index: &V, new: V, want: Option<&str>, at: &impl Ranged) -> Res<()> {
        self.store_parts(value, value_parts(index), new, want, at)
    }

    fn parts(&mut self, index: &'a Expr) -> Res<Vec<IndexPart>> {
        let items: &[Expr] = match index {
            Expr::Tuple(tuple) => &tuple.elts,
            other => std::slice::from_ref(other),
        };
        items.iter().map(|item| self.part(item)).collect()
    }

    fn part(&mut self, item: &'a Expr) -> Res<IndexPart> {
        match item {
            Expr::EllipsisLiteral(_) => Ok(IndexPart::Ellipsis),
            Expr::Name(name) if name.id.as_str() == "Ellipsis" => Ok(IndexPart::Ellipsis),
            Expr::Slice(slice) => {
                let mut value =
                    |part: &'a Option<Box<Expr>>| part.as_deref().map_or(Ok(Value::None), |e| self.eval(e, None));
                let parts = [value(&slice.lower)?, value(&slice.upper)?, value(&slice.step)?];
                Ok(IndexPart::Value(Value::Slice(Box::new(parts))))
            }
            other => self.eval(other, None).map(IndexPart::Value),
        }
    }

    pub fn index_parts(&mut self, value: &V, parts: Vec<IndexPart>, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        match (self.operand(value), value, parts.as_slice()) {
            (Operand::Tensor, ..) => {
                let (view, tensors) = self.view(value, parts, want, at)?;
                if tensors.is_empty() { Ok(view) } else { self.gathered(view, tensors, want, at) }
            }
            (_, Value::List(items), [IndexPart::Value(Value::Slice(slice))]) => {
                match slice_bounds(slice, items.len()) {
                    Some(range) => Ok(Value::List(items[range].to_vec())),
                    None => self.fail(codes::UNSUPPORTED, at, "a slice of a list by symbols", "write the items out"),
                }
            }
            (_, _, [IndexPart::Value(Value::Int(index))]) if index.as_int().is_some() => {
                self.item(value, index.as_int().unwrap_or(0), want, at)
            }
            (Operand::Unknown, _, parts) if parts.iter().all(|p| matches!(p, IndexPart::Value(_))) => {
                let index: Vec<V> = parts
                    .iter()
                    .filter_map(|p| if let IndexPart::Value(v) = p { Some(v.clone()) } else { None })
                    .collect();
                // Several parts are a tuple; a list on its own is one part of a tuple.
                let index = match index.as_slice() {
                    [one] if !matches!(one, Value::List(_)) => one.clone(),
                    _ => Value::List(index),
                };
                Ok(self.opaque("operator.getitem", vec![value.clone(), index], Vec::new(), want))
            }
            _ => self.fail(codes::UNSUPPORTED, at, "an index that is not understood here", "index a tensor or a list"),
        }
    }

    /// Applies the parts of an index that make views; returns the view and, per dimension, what is left to gather by.
    fn view(&mut self, value: &V, parts: Vec<IndexPart>, want: Option<&str>, at: &impl Ranged) -> Res<(V, Vec<V>)> {
        let Value::Tensor(id) = value else { return Err(Failed) };
        let rank = match self.meta(*id) {
            Some(Value::Tensor(meta)) => meta.rank(),
            _ => return Err(Failed),
        };
        let mut consumed = 0;
        for part in &parts {
            consumed += match part {
                IndexPart::Ellipsis | IndexPart::Value(Value::None) => 0,
                IndexPart::Value(v) => self.mask_rank(v).unwrap_or(1),
            };
        }
        let Some(free) = rank.checked_sub(consumed) else {
            let message = format!("{consumed} indices for a tensor with {rank} dimensions");
            return self.fail(codes::OUT_OF_RANGE, at, message, "use at most one index per dimension");
        };
        let gathers = parts.iter().any(|p| matches!(p, IndexPart::Value(v) if self.is_gather(v)));
        let last = parts.iter().rposition(|p| match p {
            IndexPart::Ellipsis => false,
            IndexPart::Value(v) => !is_full_slice(v) && !self.is_gather(v),
        });
        let mut current = value.clone();
        let mut tensors: Vec<V> = Vec::new();
        let mut dim = 0usize;
        // A mask stands for several dimensions but is one entry of the list that `index` takes.
        let mut entry = 0usize;
        for (position, part) in parts.into_iter().enumerate() {
            let want = if Some(position) == last && !gathers { want } else { None };
            match part {
                IndexPart::Ellipsis => {
                    dim += free;
                    entry += free;
                }
                IndexPart::Value(Value::None) => {
                    current = self.need("aten.unsqueeze", vec![current, dim.into()], want, at)?;
                    dim += 1;
                    entry += 1;
                }
                IndexPart::Value(Value::Slice(slice)) => {
                    if !is_full_slice(&Value::Slice(slice.clone())) {
                        let [start, stop, step] = *slice;
                        let mut args = vec![current, dim.into(), start, stop];
                        if step != Value::None {
                            args.push(step);
                        }
                        current = self.need("aten.slice", args, want, at)?;
                    }
                    dim += 1;
                    entry += 1;
                }
                IndexPart::Value(v) if self.is_gather(&v) => {
                    tensors.resize(entry, Value::None);
                    dim += self.mask_rank(&v).unwrap_or(1);
                    entry += 1;
                    tensors.push(v);
                }
                IndexPart::Value(v) => {
                    current = self.need("aten.select", vec![current, dim.into(), v], want, at)?;
                }
            }
        }
        if last.is_none() && tensors.is_empty() {
            // `x[...]` and `x[:]` are views of the whole.
            current = self.need("aten.alias", vec![current], want, at)?;
        }
        Ok((current, tensors))
    }

    fn is_gather(&self, value: &V) -> bool {
        matches!(value, Value::List(_) | Value::Bool(_)) || self.operand(value) == Operand::Tensor
    }

    /// The number of dimensions that a mask stands for; `None` when the value is no mask.
    fn mask_rank(&self, value: &V) -> Option<usize> {
        match value {
            Value::Bool(_) => Some(0),
            Value::Tensor(id) => match self.meta(*id) {
                Some(Value::Tensor(meta)) if meta.dtype == pyrite_tensor::DType::Bool => Some(meta.rank()),
                _ => None,
            },
            _ => None,
        }
    }

    /// `index.Tensor`: lists of integers become constants.
    fn gathered(&mut self, view: V, tensors: Vec<V>, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        let tensors = self.index_tensors(tensors, at)?;
        self.need("aten.index", vec![view, Value::List(tensors)], want, at)
    }

    fn index_tensors(&mut self, tensors: Vec<V>, at: &impl Ranged) -> Res<Vec<V>> {
        tensors
            .into_iter()
            .map(|v| match v {
                Value::List(_) | Value::Bool(_) => match crate::constant::from_value(&v, None) {
                    Some(tensor) => self.fresh_constant(tensor, None, at),
                    None => self.fail(codes::UNSUPPORTED, at, "an index by a list of symbols", "use a tensor"),
                },
                other => Ok(other),
            })
            .collect()
    }

    pub fn store_parts(
        &mut self,
        value: &V,
        parts: Vec<IndexPart>,
        new: V,
        want: Option<&str>,
        at: &impl Ranged,
    ) -> Res<()> {
        if self.operand(value) != Operand::Tensor {
            return self.fail(codes::UNSUPPORTED, at, "an assignment to an item of no tensor", "assign to a tensor");
        }
        let (view, tensors) = self.view(value, parts, None, at)?;
        if tensors.is_empty() {
            let packet = if self.operand(&new) == Operand::Number { "aten.fill_" } else { "aten.copy_" };
            self.need(packet, vec![view, new], want, at)?;
            return Ok(());
        }
        let tensors = self.index_tensors(tensors, at)?;
        let new = match (&new, self.operand(&new)) {
            (number, Operand::Number) => match crate::constant::from_value(number, self.dtype_of(value)) {
                Some(tensor) => self.fresh_constant(tensor, None, at)?,
                None => return self.fail(codes::UNSUPPORTED, at, "a symbolic number stored by index", "use a tensor"),
            },
            _ => new,
        };
        self.need("aten.index_put_", vec![view, Value::List(tensors), new], want, at)?;
        Ok(())
    }

    fn dtype_of(&self, value: &V) -> Option<pyrite_tensor::DType> {
        match value {
            Value::Tensor(id) => match self.meta(*id) {
                Some(Value::Tensor(meta)) => Some(meta.dtype),
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls an operator, or keeps the call as opaque where the registry does not have it.
    fn need(&mut self, packet: &str, args: Vec<V>, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        match self.packet(packet, args.clone(), Vec::new(), want, at)? {
            Some(value) => Ok(value),
            None => Ok(self.opaque(&format!("torch.ops.{packet}"), args, Vec::new(), want)),
        }
    }
}

fn value_parts(index: &V) -> Vec<IndexPart> {
    match index {
        Value::List(items) => items.iter().cloned().map(IndexPart::Value).collect(),
        other => vec![IndexPart::Value(other.clone())],
    }
}

/// An index that is just a number.
fn plain_int(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::NumberLiteral(number) => literal::int(number),
        Expr::UnaryOp(unary) if unary.op == ruff_python_ast::UnaryOp::USub => match unary.operand.as_ref() {
            Expr::NumberLiteral(number) => literal::int(number)?.checked_neg(),
            _ => None,
        },
        _ => None,
    }
}

fn is_full_slice(value: &V) -> bool {
    matches!(value, Value::Slice(parts) if parts.iter().all(|p| *p == Value::None))
}

/// The items that a slice of numbers picks from a list; `None` when it is symbolic or has a step.
fn slice_bounds(slice: &[V; 3], len: usize) -> Option<std::ops::Range<usize>> {
    let bound = |value: &V, default: usize| match value {
        Value::None => Some(default),
        Value::Int(v) => {
            let v = v.as_int()?;
            Some((if v < 0 { v.saturating_add(len as i64) } else { v }).clamp(0, len as i64) as usize)
        }
        _ => None,
    };
    if !matches!(&slice[2], Value::None) && slice[2] != Value::Int(1.into()) {
        return None;
    }
    let (start, stop) = (bound(&slice[0], 0)?, bound(&slice[1], len)?);
    Some(start..stop.max(start))
}
