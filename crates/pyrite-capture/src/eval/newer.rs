//! The instructions that came after CPython 3.11.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Evaluator, Frame, Run};
use crate::code::Instruction;
use crate::opcode::Op;
use crate::value::{FunctionValue, Value};

/// The number of `CALL_INTRINSIC_1`'s function through which exceptions leave a generator.
const STOP_ITERATION: usize = 3;

impl Frame {
    /// Pushes what a call finds below its arguments: a function and the NULL that says that it is no method.
    pub(super) fn push_function(&mut self, function: Value) {
        if self.code.version.is_null_above() {
            self.push(function);
            self.push(Value::Null);
        } else {
            self.push(Value::Null);
            self.push(function);
        }
    }

    /// Takes what a call finds below its arguments: the function, and the object when it is a method.
    pub(super) fn pop_function(&mut self) -> (Value, Option<Value>) {
        let (above, below) = (self.pop(), self.pop());
        if self.code.version.is_null_above() {
            return (below, Some(above).filter(|object| !matches!(object, Value::Null)));
        }
        match below {
            Value::Null => (above, None),
            function => (function, Some(above)),
        }
    }
}

impl Evaluator<'_, '_> {
    pub(super) fn newer_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::EndFor => {}
            // A branch on a tensor ends the graph at the branch, where both ways can be seen.
            Op::ToBool if matches!(frame.top(), Value::Tensor(_)) => {}
            Op::ToBool => {
                let value = frame.pop();
                let is_true = self.is_true(&value)?;
                frame.push(self.bool(is_true));
            }
            Op::LoadFastAndClear => {
                let value = frame.slots[arg].take();
                frame.push(value.unwrap_or(Value::Null));
            }
            Op::BinarySlice => {
                let (end, start) = (frame.pop(), frame.pop());
                let object = frame.pop();
                let slice = self.new_slice([start, end, self.none()]);
                let value = self.get_item(&object, &slice)?;
                frame.push(value);
            }
            Op::StoreSlice => {
                let (end, start) = (frame.pop(), frame.pop());
                let object = frame.pop();
                let value = frame.pop();
                let slice = self.new_slice([start, end, self.none()]);
                self.set_item(&object, &slice, value)?;
            }
            Op::CallKw => {
                let names = frame.pop();
                let names = self.items_of(&names)?;
                frame.keywords = names
                    .iter()
                    .filter_map(|name| if let Value::Known(name, _) = name { self.host.as_str(*name) } else { None })
                    .collect();
                self.call_instruction(frame, arg)?;
            }
            Op::ConvertValue => {
                let value = frame.pop();
                let text = self.format(&value, arg, None)?;
                frame.push(text);
            }
            Op::SetFunctionAttribute => {
                let function = frame.pop();
                let value = frame.pop();
                let function = self.with_attribute(&function, &value, arg)?;
                frame.push(function);
            }
            Op::LoadSuperAttr => {
                let receiver = frame.pop();
                let class = frame.pop();
                let function = frame.pop();
                let made = self.call(&function, vec![class, receiver], Vec::new())?;
                let value = self.attribute(&made, &frame.code.names[arg >> 2].clone())?;
                if arg & 1 != 0 {
                    frame.push_function(value);
                } else {
                    frame.push(value);
                }
            }
            Op::EndSend => {
                let value = frame.pop();
                frame.pop();
                frame.push(value);
            }
            Op::CallIntrinsic1 if arg == STOP_ITERATION => {
                let class = self.host.member("builtins", "StopIteration").map(|class| Value::Known(class, None));
                let exception = frame.top();
                if class.is_none_or(|class| self.exception_matches(&exception, &class).unwrap_or(true)) {
                    self.check_is_generator(frame)?;
                    let replaced = self.stop_iteration_raised(&exception);
                    frame.pop();
                    frame.push(replaced);
                }
            }
            op => return Err(self.stop(format!("the instruction {op:?}"))),
        }
        Ok(())
    }

    /// A function with its defaults (1), keyword defaults (2), annotations (4) or closure (8) set.
    fn with_attribute(&mut self, function: &Value, value: &Value, flag: usize) -> Run<Value> {
        let Value::Function(made) = function else {
            return Err(self.stop("a function attribute of an object that is not a function"));
        };
        let mut new = FunctionValue {
            code: made.code,
            globals: made.globals,
            builtins: made.builtins,
            name: made.name.clone(),
            defaults: made.defaults.clone(),
            keyword_defaults: made.keyword_defaults.clone(),
            closure: made.closure.clone(),
            annotations: made.annotations.clone(),
            origin: made.origin.clone(),
            attributes: RefCell::default(),
        };
        match flag {
            1 => new.defaults = RefCell::new(self.items_of(value)?),
            2 => new.keyword_defaults = RefCell::new(self.keyword_items(value)?),
            8 => new.closure = self.items_of(value)?,
            4 => new.annotations = Some(self.annotations(value)?),
            _ => return Err(self.stop("a function with an attribute that is not known")),
        }
        Ok(Value::Function(Rc::new(new)))
    }
}
