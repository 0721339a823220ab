//! One instruction.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Evaluator, Frame, Outcome, Run};
use crate::code::Instruction;
use crate::host::{Collection, Object};
use crate::opcode::{BINARY, COMPARE, Op};
use crate::source::Source;
use crate::value::{Born, CellValue, FunctionValue, Value};

impl Frame {
    pub(crate) fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    /// The value on top. Code that CPython compiled never takes more than there is.
    pub(crate) fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or(Value::Null)
    }

    pub(crate) fn pop_many(&mut self, count: usize) -> Vec<Value> {
        self.stack.split_off(self.stack.len().saturating_sub(count))
    }

    /// Whether the next instruction drops or stores the value on top of the stack.
    fn puts_aside(&self) -> bool {
        let mut next = &self.code.instructions[self.place];
        while let (Op::JumpForward, Some(target)) = (next.op, next.target) {
            next = &self.code.instructions[target];
        }
        matches!(next.op, Op::PopTop | Op::StoreFast)
    }

    pub(super) fn top(&self) -> Value {
        self.peek(1)
    }

    /// The value at a depth, the top being 1.
    pub(super) fn peek(&self, depth: usize) -> Value {
        self.stack.len().checked_sub(depth).and_then(|place| self.stack.get(place)).cloned().unwrap_or(Value::Null)
    }
}

impl Evaluator<'_, '_> {
    /// Takes one step; something comes out when the frame returns or yields. What is neither stack nor jump is handed on,
    /// kind by kind.
    pub(super) fn step(&mut self, frame: &mut Frame) -> Run<Option<Outcome>> {
        let instruction = frame.code.instructions[frame.place];
        if instruction.line != 0
            && let Some(last) = self.trace.last_mut()
        {
            last.1 = instruction.line;
        }
        frame.place += 1;
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::Nop | Op::Resume | Op::Precall | Op::Cache | Op::ExtendedArg => {}
            Op::PopTop => {
                let value = frame.pop();
                self.let_go(&value)?;
            }
            Op::PushNull => frame.push(Value::Null),
            Op::Copy => frame.push(frame.peek(arg)),
            Op::Swap => {
                let top = frame.stack.len() - 1;
                frame.stack.swap(top, top + 1 - arg);
            }
            Op::LoadConst => {
                let constant = self.opened(frame.code.consts[arg]);
                frame.push(constant);
            }
            Op::JumpForward | Op::JumpBackward | Op::JumpBackwardNoInterrupt => jump(frame, &instruction),
            Op::PopJumpForwardIfFalse
            | Op::PopJumpBackwardIfFalse
            | Op::PopJumpForwardIfTrue
            | Op::PopJumpBackwardIfTrue => {
                let wanted = matches!(instruction.op, Op::PopJumpForwardIfTrue | Op::PopJumpBackwardIfTrue);
                let value = frame.pop();
                let next = frame.code.instructions.get(frame.place).map(|next| next.op);
                let asserts = instruction.op == Op::PopJumpForwardIfTrue && next == Some(Op::LoadAssertionError);
                if (asserts && self.assert_data(&value)?) || self.is_true(&value)? == wanted {
                    jump(frame, &instruction);
                }
            }
            Op::JumpIfFalseOrPop | Op::JumpIfTrueOrPop => {
                let value = frame.top();
                if self.is_true(&value)? == (instruction.op == Op::JumpIfTrueOrPop) {
                    jump(frame, &instruction);
                } else {
                    frame.pop();
                }
            }
            Op::PopJumpForwardIfNone | Op::PopJumpBackwardIfNone => {
                if self.is_none(&frame.pop()) {
                    jump(frame, &instruction);
                }
            }
            Op::PopJumpForwardIfNotNone | Op::PopJumpBackwardIfNotNone => {
                if !self.is_none(&frame.pop()) {
                    jump(frame, &instruction);
                }
            }
            Op::ReturnValue => {
                let result = frame.pop();
                for slot in 0..frame.slots.len() {
                    if let Some(held) = frame.slots[slot].take() {
                        self.release(held)?;
                    }
                }
                return Ok(Some(Outcome::Return(result)));
            }
            Op::ReturnGenerator => return Ok(Some(Outcome::Return(self.new_generator(frame)))),
            Op::YieldValue => return Ok(Some(Outcome::Yield(frame.pop()))),
            _ => self.variable_step(frame, instruction)?,
        }
        Ok(None)
    }

    /// Instructions for variables of every kind and imports.
    fn variable_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            // What is only put aside is not looked at: after a break the stack comes back as arguments.
            Op::LoadFast if matches!(frame.slots[arg], Some(Value::Lazy(_))) && frame.puts_aside() => {
                let value = frame.slots[arg].clone();
                frame.stack.extend(value);
            }
            Op::LoadFast | Op::LoadFastCheck => {
                let value = self.local(frame, arg)?;
                frame.push(value);
            }
            // A comprehension puts back what was unbound before it, too.
            Op::StoreFast => {
                let stored = Some(frame.pop()).filter(|value| !matches!(value, Value::Null));
                if let Some(before) = std::mem::replace(&mut frame.slots[arg], stored) {
                    self.release(before)?;
                }
            }
            Op::DeleteFast => {
                self.local(frame, arg)?;
                if let Some(before) = frame.slots[arg].take() {
                    self.release(before)?;
                }
            }
            Op::LoadGlobal => {
                let value = self.load_global(frame, arg >> 1)?;
                if arg & 1 != 0 {
                    frame.push_function(value);
                } else {
                    frame.push(value);
                }
            }
            Op::LoadName => {
                let value = self.load_global(frame, arg)?;
                frame.push(value);
            }
            Op::StoreGlobal => {
                let value = frame.pop();
                self.set_global(frame.globals, &frame.code.names[arg].clone(), Some(value));
            }
            Op::DeleteGlobal => {
                self.load_global(frame, arg)?;
                self.set_global(frame.globals, &frame.code.names[arg].clone(), None);
            }
            Op::MakeCell => {
                let contents = frame.slots[arg].take();
                frame.slots[arg] = Some(new_cell(contents));
            }
            Op::CopyFreeVars => self.copy_free_variables(frame, arg)?,
            Op::LoadClosure => {
                let cell = self.slot(frame, arg)?;
                frame.push(cell);
            }
            Op::LoadDeref | Op::LoadClassderef => {
                let cell = self.slot(frame, arg)?;
                let value = self.cell_contents(&cell)?;
                match value {
                    Some(value) => frame.push(value),
                    None => {
                        let name = frame.code.slots().nth(arg).cloned().unwrap_or_else(|| "?".into());
                        let unset = "where it is not associated with a value";
                        let own = arg < frame.code.slots().count() - frame.code.free.len();
                        return Err(if own {
                            self.raise("UnboundLocalError", &format!("cannot access local variable '{name}' {unset}"))
                        } else {
                            let message = format!("cannot access free variable '{name}' {unset} in enclosing scope");
                            self.raise("NameError", &message)
                        });
                    }
                }
            }
            Op::StoreDeref => {
                let value = frame.pop();
                let cell = self.slot(frame, arg)?;
                self.set_cell(&cell, Some(value))?;
            }
            Op::DeleteDeref => {
                let cell = self.slot(frame, arg)?;
                self.set_cell(&cell, None)?;
            }
            Op::LoadBuildClass => {
                let maker = self.host.member("builtins", "__build_class__");
                let maker = maker.ok_or_else(|| self.stop("__build_class__ is missing"))?;
                frame.push(Value::Known(maker, None));
            }
            Op::LoadAssertionError => {
                let class = self.host.member("builtins", "AssertionError");
                let class = class.ok_or_else(|| self.stop("AssertionError is missing"))?;
                frame.push(Value::Known(class, None));
            }
            Op::ImportName => {
                let from = frame.pop();
                let level = frame.pop();
                let name = frame.code.names[arg].clone();
                let module = self.import(frame, &name, &from, &level)?;
                frame.push(module);
            }
            Op::ImportFrom => {
                let module = frame.top();
                let value = self.import_from(&module, &frame.code.names[arg].clone())?;
                frame.push(value);
            }
            _ => self.object_step(frame, instruction)?,
        }
        Ok(())
    }

    /// Instructions for attributes, items, operators and comparisons.
    fn object_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::LoadAttr => {
                let object = frame.pop();
                let value = self.attribute(&object, &frame.code.names[arg].clone())?;
                frame.push(value);
            }
            Op::LoadMethod => {
                let object = frame.pop();
                let value = self.attribute(&object, &frame.code.names[arg].clone())?;
                frame.push_function(value);
            }
            Op::StoreAttr => {
                let object = frame.pop();
                let value = frame.pop();
                self.set_attribute(&object, &frame.code.names[arg].clone(), value)?;
            }
            Op::DeleteAttr => {
                let object = frame.pop();
                self.delete_attribute(&object, &frame.code.names[arg].clone())?;
            }
            Op::UnaryNegative | Op::UnaryPositive | Op::UnaryInvert => {
                let name = match instruction.op {
                    Op::UnaryNegative => "neg",
                    Op::UnaryPositive => "pos",
                    _ => "invert",
                };
                let value = frame.pop();
                let result = self.unary(name, &value)?;
                frame.push(result);
            }
            Op::UnaryNot => {
                let value = frame.pop();
                let is_true = self.is_true(&value)?;
                frame.push(self.bool(!is_true));
            }
            Op::BinaryOp => {
                let right = frame.pop();
                let left = frame.pop();
                let result = if arg < BINARY.len() {
                    self.binary(BINARY[arg], &left, &right)?
                } else {
                    self.binary_in_place(BINARY[arg - BINARY.len()], &left, &right)?
                };
                frame.push(result);
            }
            Op::BinarySubscr => {
                let key = frame.pop();
                let object = frame.pop();
                let value = self.get_item(&object, &key)?;
                frame.push(value);
            }
            Op::StoreSubscr => {
                let key = frame.pop();
                let object = frame.pop();
                let value = frame.pop();
                self.set_item(&object, &key, value)?;
            }
            Op::DeleteSubscr => {
                let key = frame.pop();
                let object = frame.pop();
                self.delete_item(&object, &key)?;
            }
            Op::CompareOp => {
                let right = frame.pop();
                let left = frame.pop();
                let result = self.compare(COMPARE[arg], &left, &right)?;
                frame.push(result);
            }
            Op::IsOp => {
                let right = frame.pop();
                let left = frame.pop();
                let same = self.is_same(&left, &right)?;
                frame.push(self.bool(same == (arg == 0)));
            }
            Op::ContainsOp => {
                let container = frame.pop();
                let item = frame.pop();
                let found = self.contains(&container, &item)?;
                frame.push(self.bool(found == (arg == 0)));
            }
            _ => self.build_step(frame, instruction)?,
        }
        Ok(())
    }

    /// Instructions for calls, iteration and generators.
    pub(super) fn call_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::GetIter => {
                let value = frame.pop();
                let iterator = self.iterator(&value)?;
                frame.push(iterator);
            }
            Op::ForIter => {
                let iterator = frame.top();
                match self.next(&iterator)? {
                    Some(value) => frame.push(value),
                    None => {
                        frame.pop();
                        jump(frame, &instruction);
                    }
                }
            }
            Op::KwNames => {
                let names = self.constant_items(frame.code.consts[arg]);
                frame.keywords = names.iter().filter_map(|name| self.host.as_str(*name)).collect();
            }
            Op::Call => self.call_instruction(frame, arg)?,
            Op::CallFunctionEx => {
                let kwargs = if arg & 1 != 0 { Some(frame.pop()) } else { None };
                let args = frame.pop();
                let (function, _) = frame.pop_function();
                let args = self.items_of(&args)?;
                let kwargs = match kwargs {
                    Some(kwargs) => self.keyword_items(&kwargs)?,
                    None => Vec::new(),
                };
                let result = self.call(&function, args, kwargs)?;
                frame.push(result);
            }
            Op::MakeFunction => {
                let function = self.make_function(frame, arg)?;
                frame.push(function);
            }
            Op::GetYieldFromIter => {
                let value = frame.pop();
                let iterator = self.iterator(&value)?;
                frame.push(iterator);
            }
            Op::Send | Op::SendKeeping => {
                let sent = frame.pop();
                let iterator = frame.top();
                match self.send_or_result(&iterator, sent)? {
                    Ok(value) => frame.push(value),
                    Err(result) => {
                        if instruction.op == Op::Send {
                            frame.pop();
                        }
                        frame.push(result);
                        jump(frame, &instruction);
                    }
                }
            }
            _ => self.exception_step(frame, instruction)?,
        }
        Ok(())
    }

    /// Instructions for exceptions and `with` statements.
    fn exception_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::RaiseVarargs => return Err(self.raise_instruction(frame, arg)?),
            Op::Reraise => {
                let exception = frame.pop();
                if arg != 0 {
                    frame.pop();
                }
                return Err(super::Stop::Raise(exception));
            }
            Op::PushExcInfo => {
                let exception = frame.pop();
                let before = frame.handled.last().cloned().flatten();
                frame.push(before.unwrap_or_else(|| self.none()));
                frame.push(exception.clone());
                frame.handled.push(Some(exception.clone()));
                self.handled = Some(exception);
                if self.trace.len() == 1 {
                    self.raised_at.push(self.last_raise);
                }
            }
            Op::PopExcept => {
                frame.pop();
                frame.handled.pop();
                self.handled = self.handled_now(frame);
                if self.trace.len() == 1 {
                    self.raised_at.pop();
                }
            }
            Op::CheckExcMatch => {
                let class = frame.pop();
                let exception = frame.top();
                let matches = self.exception_matches(&exception, &class)?;
                frame.push(self.bool(matches));
            }
            Op::BeforeWith => {
                let manager = frame.pop();
                let (exit, entered) = self.enter(&manager)?;
                frame.push(exit);
                frame.push(entered);
            }
            Op::WithExceptStart => {
                let exception = frame.top();
                let exit = frame.peek(4);
                let class = self.class_of(&exception)?;
                let traceback = Value::Unknown("a traceback".into());
                let result = self.call(&exit, vec![class, exception, traceback], Vec::new())?;
                frame.push(result);
            }
            _ => self.match_step(frame, instruction)?,
        }
        Ok(())
    }

    /// Instructions for `match` statements.
    fn match_step(&mut self, frame: &mut Frame, instruction: Instruction) -> Run<()> {
        let arg = instruction.arg as usize;
        match instruction.op {
            Op::MatchMapping => {
                let found = self.matches_abstractly(&frame.top(), Collection::Mapping)?;
                frame.push(self.bool(found));
            }
            Op::MatchSequence => {
                let found = self.matches_abstractly(&frame.top(), Collection::Sequence)?;
                frame.push(self.bool(found));
            }
            Op::MatchKeys => {
                let (keys, subject) = (frame.top(), frame.peek(2));
                let mut values = Vec::new();
                for key in self.items_of(&keys)? {
                    match self.dict_get(&subject, &key)? {
                        Some(value) => values.push(value),
                        None => {
                            frame.push(self.none());
                            return Ok(());
                        }
                    }
                }
                frame.push(Value::tuple(values));
            }
            Op::MatchClass => {
                let names = frame.pop();
                let class = frame.pop();
                let subject = frame.pop();
                let matched = self.match_class(&subject, &class, &names, arg)?;
                frame.push(matched.unwrap_or_else(|| self.none()));
            }
            _ => self.newer_step(frame, instruction)?,
        }
        Ok(())
    }

    /// The generator of a frame, which begins after the instruction that makes it.
    fn new_generator(&mut self, frame: &mut Frame) -> Value {
        // The generator begins after this instruction; the `None` it is sent first is popped.
        let mut suspended = Frame {
            code: frame.code.clone(),
            place: frame.place,
            stack: std::mem::take(&mut frame.stack),
            slots: std::mem::take(&mut frame.slots),
            globals: frame.globals,
            builtins: frame.builtins,
            keywords: Vec::new(),
            handled: Vec::new(),
            asked: false,
        };
        suspended.push(self.none());
        let by_user = !suspended.code.file.ends_with("_polyfills.py");
        let generator = Value::generator(suspended, by_user);
        if let Some(identity) = generator.identity() {
            self.made_at.insert(identity, self.root);
        }
        generator
    }

    /// What a slot holds, looked at.
    fn slot(&mut self, frame: &mut Frame, slot: usize) -> Run<Value> {
        match frame.slots[slot].clone() {
            Some(value) => {
                let value = self.force(&value)?;
                frame.slots[slot] = Some(value.clone());
                Ok(value)
            }
            None => Ok(Value::Null),
        }
    }

    fn local(&mut self, frame: &mut Frame, slot: usize) -> Run<Value> {
        match self.slot(frame, slot)? {
            Value::Null => {
                let name = frame.code.slots().nth(slot).cloned().unwrap_or_else(|| "?".into());
                let message = format!("cannot access local variable '{name}' where it is not associated with a value");
                Err(self.raise("UnboundLocalError", &message))
            }
            value => Ok(value),
        }
    }

    /// What a dictionary of globals holds under a name at this point, if anything.
    pub(super) fn global_of(&mut self, globals: Object, name: &Rc<str>) -> Run<Option<Value>> {
        let set = self.globals.iter().find(|(d, n, _)| *d == globals && n == name);
        match set.map(|(_, _, value)| value.clone()) {
            Some(value) => Ok(value),
            None => match self.read_global(globals, name) {
                Some(found) => self.admit(&found).map(Some),
                None => Ok(None),
            },
        }
    }

    fn load_global(&mut self, frame: &Frame, index: usize) -> Run<Value> {
        let name = &frame.code.names[index];
        // A global that was removed uncovers the builtin.
        if let Some(found) = self.global_of(frame.globals, name)? {
            return Ok(found);
        }
        match self.read_builtin(frame.builtins, name) {
            Some(found) => self.admit(&found),
            None => {
                let stop = self.raise("NameError", &format!("name '{name}' is not defined"));
                if let super::Stop::Raise(Value::Instance(error)) = &stop {
                    error.attributes.borrow_mut().set(&"name".into(), Some(self.text(name)));
                }
                Err(stop)
            }
        }
    }

    /// Whether a value is a mapping or a sequence to a pattern.
    fn matches_abstractly(&mut self, value: &Value, kind: Collection) -> Run<bool> {
        match value {
            Value::Tensor(_) | Value::Iterator(_) | Value::Symbol(_) | Value::Number(_) | Value::Condition(_) => {
                return Ok(false);
            }
            _ => {}
        }
        let Value::Known(class, _) = self.class_of(value)? else { return Err(self.stop("a pattern")) };
        Ok(self.host.collection(class) == Some(kind))
    }

    fn set_global(&mut self, globals: crate::host::Object, name: &Rc<str>, value: Option<Value>) {
        match self.globals.iter_mut().find(|(d, n, _)| *d == globals && n == name) {
            Some(entry) => entry.2 = value,
            None => self.globals.push((globals, name.clone(), value)),
        }
    }

    fn copy_free_variables(&mut self, frame: &mut Frame, count: usize) -> Run<()> {
        let first = frame.code.slot_count() - count;
        if frame.slots[first..].iter().any(Option::is_some) {
            return Ok(());
        }
        // The root's cells come from its function; those of followed calls are there already.
        for index in 0..count {
            let object = self.entry.closure.get(index).copied();
            let object = object.ok_or_else(|| self.stop("a closure without its cells"))?;
            let name = frame.code.free[index].clone();
            let cell = self.wrap_cell(object, &Rc::new(Source::Closure(index, name)));
            frame.slots[first + index] = Some(cell);
        }
        Ok(())
    }

    fn make_function(&mut self, frame: &mut Frame, flags: usize) -> Run<Value> {
        let Value::Known(code, _) = frame.pop() else { return Err(self.stop("a function without code")) };
        let closure = if flags & 8 != 0 { self.items_of(&frame.pop())? } else { Vec::new() };
        let annotations = if flags & 4 != 0 {
            let held = frame.pop();
            Some(self.annotations(&held)?)
        } else {
            None
        };
        let keyword_defaults = if flags & 2 != 0 {
            let dict = frame.pop();
            self.keyword_items(&dict)?
        } else {
            Vec::new()
        };
        let defaults = if flags & 1 != 0 { self.items_of(&frame.pop())? } else { Vec::new() };
        Ok(Value::Function(Rc::new(FunctionValue {
            code,
            globals: frame.globals,
            builtins: frame.builtins,
            name: None,
            defaults: RefCell::new(defaults),
            keyword_defaults: RefCell::new(keyword_defaults),
            closure,
            annotations,
            origin: None,
            attributes: RefCell::default(),
        })))
    }

    /// The annotations of a function, from the names and values that its definition gives in turn.
    pub(super) fn annotations(&mut self, held: &Value) -> Run<Value> {
        if let Value::Dict(_) = held {
            return Ok(held.clone());
        }
        let parts = self.items_of(held)?;
        self.new_dict(parts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
    }

    pub(super) fn check_count(&self, found: usize, wanted: usize) -> Run<()> {
        use std::cmp::Ordering;
        let message = match found.cmp(&wanted) {
            Ordering::Equal => return Ok(()),
            Ordering::Less => format!("not enough values to unpack (expected {wanted}, got {found})"),
            Ordering::Greater => format!("too many values to unpack (expected {wanted})"),
        };
        Err(self.raise("ValueError", &message))
    }

    /// `locals()`: a new dictionary of the variables that are bound.
    fn locals_of(&mut self, frame: &mut Frame) -> Run<Value> {
        if frame.code.flags & crate::code::FUNCTION != crate::code::FUNCTION {
            return Err(self.stop("locals() outside of a function"));
        }
        // Up to CPython 3.12 all calls in a frame give the same dictionary, and bring it up to date.
        if frame.code.version < crate::opcode::Version::V313 && std::mem::replace(&mut frame.asked, true) {
            return Err(self.stop("locals() for the second time"));
        }
        let mut pairs = Vec::new();
        let names: Vec<_> = frame.code.slots().cloned().collect();
        for (name, held) in names.iter().zip(frame.slots.clone()) {
            let held = match held {
                Some(cell @ Value::Cell(_)) => self.cell_contents(&cell)?,
                Some(held) => Some(self.force(&held)?),
                None => None,
            };
            // What the compiler makes up has a name that nobody can write.
            if let Some(held) = held
                && !name.starts_with('.')
            {
                pairs.push((self.text(name), held));
            }
        }
        self.new_dict(pairs)
    }

    pub(super) fn call_instruction(&mut self, frame: &mut Frame, count: usize) -> Run<()> {
        let mut args = frame.pop_many(count);
        let (function, object) = frame.pop_function();
        args.splice(0..0, object);
        if args.is_empty() && matches!(function, Value::Known(o, _) if Some(o) == self.host.member("builtins", "super"))
        {
            let made = self.zero_super(frame)?;
            frame.push(made);
            return Ok(());
        }
        if args.is_empty()
            && matches!(function, Value::Known(o, _) if Some(o) == self.host.member("builtins", "locals"))
        {
            let made = self.locals_of(frame)?;
            frame.push(made);
            return Ok(());
        }
        let names = std::mem::take(&mut frame.keywords);
        let kwargs = names.iter().cloned().zip(args.split_off(args.len() - names.len())).collect();
        let result = self.call(&function, args, kwargs)?;
        frame.push(result);
        Ok(())
    }
}

fn jump(frame: &mut Frame, instruction: &Instruction) {
    if let Some(target) = instruction.target {
        frame.place = target;
    }
}

/// A cell that the captured code made.
pub(super) fn new_cell(contents: Option<Value>) -> Value {
    Value::Cell(Rc::new(CellValue {
        born: Born::default(),
        contents: RefCell::new(contents),
        origin: None,
        loaded: Cell::new(true),
        changed: Cell::new(false),
    }))
}
