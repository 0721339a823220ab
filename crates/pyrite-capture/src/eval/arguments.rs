//! Arguments to the slots of a frame, by Python's rules.

use std::rc::Rc;

use super::{Evaluator, Frame, Run};
use crate::code::{Code, VARARGS, VARKEYWORDS};
use crate::value::{FunctionValue, Value};

impl Evaluator<'_, '_> {
    /// A frame for a call of a function.
    pub(super) fn bind_arguments(
        &mut self,
        function: &FunctionValue,
        code: &Rc<Code>,
        args: Vec<Value>,
        kwargs: Vec<(Rc<str>, Value)>,
    ) -> Run<Frame> {
        let mut slots: Vec<Option<Value>> = Vec::new();
        slots.resize_with(code.slot_count(), || None);
        let given = args.len();
        let mut args = args.into_iter();
        for slot in slots.iter_mut().take(code.positional) {
            *slot = args.next();
        }
        let rest: Vec<Value> = args.collect();
        let starred = code.positional + code.keyword_only;
        let mut last = starred;
        if code.flags & VARARGS != 0 {
            slots[last] = Some(Value::tuple(rest));
            last += 1;
        } else if !rest.is_empty() {
            let taken = match function.defaults.borrow().len() {
                0 => code.positional.to_string(),
                optional => format!("from {} to {}", code.positional.saturating_sub(optional), code.positional),
            };
            let named =
                code.locals[code.positional..starred].iter().filter(|name| kwargs.iter().any(|(k, _)| k == *name));
            let (named, s) = (named.count(), |count: usize| if count == 1 { "" } else { "s" });
            let also = match named {
                0 => String::new(),
                _ => format!(" positional argument{} (and {named} keyword-only argument{})", s(given), s(named)),
            };
            let message = format!(
                "{}() takes {taken} positional argument{} but {given}{also} {} given",
                self.name_in_messages(function, code)?,
                s(code.positional),
                if given == 1 && named == 0 { "was" } else { "were" },
            );
            return Err(self.raise("TypeError", &message));
        }
        let mut others = Vec::new();
        if code.flags & VARKEYWORDS == 0 {
            let only = &code.locals[..code.positional_only];
            let named =
                kwargs.iter().map(|(name, _)| &**name).filter(|name| only.iter().any(|known| **known == **name));
            let named: Vec<&str> = named.collect();
            if !named.is_empty() {
                let message = format!(
                    "{}() got some positional-only arguments passed as keyword arguments: '{}'",
                    self.name_in_messages(function, code)?,
                    named.join(", ")
                );
                return Err(self.raise("TypeError", &message));
            }
        }
        for (name, value) in kwargs {
            let place = (code.positional_only..starred).find(|place| code.locals[*place] == name);
            match place {
                Some(place) if slots[place].is_none() => slots[place] = Some(value),
                Some(_) => {
                    let message = format!(
                        "{}() got multiple values for argument '{name}'",
                        self.name_in_messages(function, code)?
                    );
                    return Err(self.raise("TypeError", &message));
                }
                None if code.flags & VARKEYWORDS != 0 => others.push((self.text(&name), value)),
                None => {
                    let message = format!(
                        "{}() got an unexpected keyword argument '{name}'",
                        self.name_in_messages(function, code)?
                    );
                    return Err(self.raise("TypeError", &message));
                }
            }
        }
        if code.flags & VARKEYWORDS != 0 {
            slots[last] = Some(self.new_dict(others)?);
        }
        let without = code.positional.saturating_sub(function.defaults.borrow().len());
        for place in 0..starred {
            if slots[place].is_some() {
                continue;
            }
            let default = if place < code.positional {
                place.checked_sub(without).and_then(|index| function.defaults.borrow().get(index).cloned())
            } else {
                let defaults = function.keyword_defaults.borrow();
                defaults.iter().find(|(name, _)| *name == code.locals[place]).map(|(_, value)| value.clone())
            };
            match default {
                Some(value) => slots[place] = Some(self.force(&value)?),
                None => return Err(self.missing_arguments(function, code, &slots)?),
            }
        }
        let first_free = slots.len() - code.free.len();
        for (index, cell) in function.closure.iter().enumerate() {
            slots[first_free + index] = Some(cell.clone());
        }
        Ok(Frame {
            code: code.clone(),
            place: 0,
            stack: Vec::new(),
            slots,
            globals: function.globals,
            builtins: function.builtins,
            keywords: Vec::new(),
            handled: Vec::new(),
            asked: false,
        })
    }

    fn missing_arguments(
        &mut self,
        function: &FunctionValue,
        code: &Code,
        slots: &[Option<Value>],
    ) -> Run<super::Stop> {
        let unbound = |range: std::ops::Range<usize>| -> Vec<String> {
            let defaults = function.keyword_defaults.borrow();
            let has_default = |p: usize| defaults.iter().any(|(name, _)| *name == code.locals[p]);
            range
                .filter(|p| slots[*p].is_none() && (*p < code.positional || !has_default(*p)))
                .map(|p| format!("'{}'", code.locals[p]))
                .collect()
        };
        let positional = unbound(0..code.positional.saturating_sub(function.defaults.borrow().len()));
        let (kind, names) = if positional.is_empty() {
            ("keyword-only", unbound(code.positional..code.positional + code.keyword_only))
        } else {
            ("positional", positional)
        };
        let listed = match names.as_slice() {
            [one] => one.clone(),
            [first, second] => format!("{first} and {second}"),
            [firsts @ .., last] => format!("{}, and {last}", firsts.join(", ")),
            [] => String::new(),
        };
        let plural = if names.len() == 1 { "" } else { "s" };
        let message = format!(
            "{}() missing {} required {kind} argument{plural}: {listed}",
            self.name_in_messages(function, code)?,
            names.len()
        );
        Ok(self.raise("TypeError", &message))
    }

    /// What Python calls a function in messages about its arguments.
    fn name_in_messages(&mut self, function: &FunctionValue, code: &Code) -> Run<Rc<str>> {
        let named = match (&function.origin, &function.name) {
            (Some(origin), _) => {
                Some(self.read_attribute(origin.object, &origin.source.clone(), "__qualname__")?.object)
            }
            (None, Some(Value::Known(name, _))) => Some(*name),
            _ => None,
        };
        Ok(named.and_then(|name| self.host.as_str(name)).unwrap_or_else(|| code.qualified_name.clone()))
    }
}
