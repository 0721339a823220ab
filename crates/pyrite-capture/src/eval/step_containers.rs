//! Instructions that build, fill and unpack containers.

use super::{Evaluator, Frame, Run};
use crate::code::Instruction;
use crate::opcode::Op;
use crate::value::Value;

impl Evaluator<'_, '_> {
    /// Instructions for new containers and texts.
    pub(super) fn build_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::BuildTuple => {
                let items = frame.pop_many(arg);
                frame.push(Value::tuple(items));
            }
            Op::BuildList => {
                let items = frame.pop_many(arg);
                frame.push(Value::list(items));
            }
            Op::ListToTuple => {
                let list = frame.pop();
                let items = self.items_of(&list)?;
                frame.push(Value::tuple(items));
            }
            Op::BuildSet => {
                let items = frame.pop_many(arg);
                let set = self.new_set(items)?;
                frame.push(set);
            }
            Op::BuildMap => {
                let items = frame.pop_many(2 * arg);
                let pairs = items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
                let dict = self.new_dict(pairs)?;
                frame.push(dict);
            }
            Op::BuildConstKeyMap => {
                let keys = frame.pop();
                let values = frame.pop_many(arg);
                let keys = self.items_of(&keys)?;
                let dict = self.new_dict(keys.into_iter().zip(values).collect())?;
                frame.push(dict);
            }
            Op::BuildSlice => {
                let mut parts = frame.pop_many(arg);
                parts.resize_with(3, || self.none());
                let slice = self.new_slice([parts[0].clone(), parts[1].clone(), parts[2].clone()]);
                frame.push(slice);
            }
            Op::BuildString => {
                let parts = frame.pop_many(arg);
                let text = self.join_texts(&parts)?;
                frame.push(text);
            }
            Op::FormatValue => {
                let spec = if arg & 4 != 0 { Some(frame.pop()) } else { None };
                let value = frame.pop();
                let text = self.format(&value, arg & 3, spec.as_ref())?;
                frame.push(text);
            }
            Op::GetLen => {
                let value = frame.top();
                let length = self.length(&value)?;
                frame.push(length);
            }
            _ => self.fill_step(frame, instruction)?,
        }
        Ok(())
    }

    /// Instructions for filling and unpacking containers.
    pub(super) fn fill_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::ListAppend => {
                let value = frame.pop();
                let list = frame.peek(arg);
                self.list_append(&list, value)?;
            }
            Op::SetAdd => {
                let value = frame.pop();
                let set = frame.peek(arg);
                self.set_add(&set, value)?;
            }
            Op::MapAdd => {
                let value = frame.pop();
                let key = frame.pop();
                let dict = frame.peek(arg);
                self.set_item(&dict, &key, value)?;
            }
            Op::ListExtend => {
                let more = frame.pop();
                let list = frame.peek(arg);
                if let Ok(Value::Known(class, _)) = self.class_of(&more)
                    && ["__iter__", "__getitem__"].iter().all(|name| self.class_item(class, name).is_none())
                {
                    let class = self.short_name(class);
                    return Err(self.raise("TypeError", &format!("Value after * must be an iterable, not {class}")));
                }
                self.list_extend(&list, &more)?;
            }
            Op::SetUpdate => {
                let more = frame.pop();
                let set = frame.peek(arg);
                self.set_update(&set, &more)?;
            }
            Op::DictUpdate | Op::DictMerge => {
                let more = frame.pop();
                let dict = frame.peek(arg);
                if instruction.op == Op::DictMerge {
                    for (key, _) in self.dict_pairs(&more)? {
                        if self.contains(&dict, &key)? {
                            return Err(self.stop("multiple values for a keyword argument"));
                        }
                    }
                }
                let Value::Known(class, _) = self.class_of(&more)? else { return Err(self.stop("a class")) };
                if self.class_item(class, "keys").is_none() {
                    let class = self.short_name(class);
                    return Err(self.raise("TypeError", &format!("'{class}' object is not a mapping")));
                }
                self.dict_update(&dict, &more)?;
            }
            Op::UnpackSequence => {
                let value = frame.pop();
                let items = match &value {
                    // One more than is wanted is asked for, and no further ones.
                    Value::Iterator(_) | Value::Instance(_) => {
                        let iterator = self.unpacked(&value)?;
                        let mut items = Vec::with_capacity(arg);
                        while items.len() <= arg
                            && let Some(item) = self.next(&iterator)?
                        {
                            items.push(item);
                        }
                        items
                    }
                    _ => {
                        let iterator = self.unpacked(&value)?;
                        self.items_of(&iterator)?
                    }
                };
                self.check_count(items.len(), arg)?;
                frame.stack.extend(items.into_iter().rev());
            }
            Op::UnpackEx => {
                let value = frame.pop();
                let (before, after) = (arg & 0xff, arg >> 8);
                let mut items = Vec::with_capacity(before);
                let iterator = self.unpacked(&value)?;
                if let Value::Instance(_) = &iterator {
                    // The rest is made a list, for which an object is asked for its iterator once more.
                    while items.len() < before
                        && let Some(item) = self.next(&iterator)?
                    {
                        items.push(item);
                    }
                    if items.len() == before {
                        items.extend(self.items_of(&iterator)?);
                    }
                } else {
                    items.extend(self.items_of(&iterator)?);
                }
                if items.len() < before + after {
                    let message = format!(
                        "not enough values to unpack (expected at least {}, got {})",
                        before + after,
                        items.len()
                    );
                    return Err(self.raise("ValueError", &message));
                }
                let tail = items.split_off(items.len() - after);
                let middle = items.split_off(before);
                frame.stack.extend(tail.into_iter().rev());
                frame.push(Value::list(middle));
                frame.stack.extend(items.into_iter().rev());
            }
            _ => self.call_step(frame, instruction)?,
        }
        Ok(())
    }

    /// What the items of a value that is unpacked are taken from.
    fn unpacked(&mut self, value: &Value) -> Run<Value> {
        if let Value::Tuple(_) | Value::List(_) = value {
            return Ok(value.clone());
        }
        let Ok(Value::Known(class, _)) = self.class_of(value) else { return self.iterator(value) };
        if self.class_item(class, "__iter__").is_none() && self.class_item(class, "__getitem__").is_none() {
            let message = format!("cannot unpack non-iterable {} object", self.short_name(class));
            return Err(self.raise("TypeError", &message));
        }
        self.iterator(value)
    }
}
