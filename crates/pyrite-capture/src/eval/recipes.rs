//! Recipes: how what the evaluator describes is made again in Python, when a frame returns or goes on there.

use std::rc::Rc;

use pyrite_ir::{NodeId, Value as GraphValue};

use super::finish::{Cooked, Kitchen};
use super::wrap::origin_of;
use super::{Evaluator, Frame};
use crate::host::Object;
use crate::plan::{Effect, FunctionRecipe, GeneratorRecipe, Recipe, RecipeId};
use crate::resume::Point;
use crate::source::Source;
use crate::value::{
    ContextKind, DequeValue, Derivation, DictValue, FunctionValue, Iterate, IteratorValue, NumberValue, PartialValue,
    SetStep, SetValue, Strictness, TensorValue, Twin, Value, View, Watched,
};

impl Evaluator<'_, '_> {
    pub(super) fn recipes_of(&mut self, kitchen: &mut Kitchen, values: &[Value]) -> Cooked<Vec<RecipeId>> {
        values.iter().map(|value| self.recipe(kitchen, value)).collect()
    }

    pub(super) fn pair_recipes(
        &mut self,
        kitchen: &mut Kitchen,
        pairs: &[(Value, Value)],
    ) -> Cooked<Vec<(RecipeId, RecipeId)>> {
        pairs.iter().map(|(key, value)| Ok((self.recipe(kitchen, key)?, self.recipe(kitchen, value)?))).collect()
    }

    /// The recipe of a value.
    pub(super) fn recipe(&mut self, kitchen: &mut Kitchen, value: &Value) -> Cooked<RecipeId> {
        let class = match value {
            Value::Known(class, _) => Some(*class),
            Value::Tuple(tuple) => tuple.class,
            _ => None,
        };
        if let Some(at) = class.and_then(|class| self.made_classes.get(&class)) {
            self.earlier = Some(*at);
            return Err("a class created in the frame is alive".to_owned());
        }
        if let Value::Known(object, _) = value
            && self.is_random_source(*object)
        {
            if let Some(made) = kitchen.made.get(&object.0) {
                return Ok(*made);
            }
            let (maker, state) = self.generator_parts(*object).ok_or("a random number generator is alive")?;
            let state = kitchen.add(Recipe::Object(state));
            let made = kitchen.add(Recipe::Call(maker, vec![state], Vec::new()));
            kitchen.made.insert(object.0, made);
            return Ok(made);
        }
        if let Value::Known(object, source) = value {
            let recipe = match source {
                Some(source) if !matches!(**source, Source::Fixed(_)) => Recipe::Source(source.clone()),
                _ => Recipe::Object(*object),
            };
            return Ok(kitchen.add(recipe));
        }
        if let Value::Lazy(origin) = value {
            return Ok(kitchen.add(Recipe::Source(origin.source.clone())));
        }
        let identity = value.identity();
        if let Some(identity) = identity
            && let Some(made) = kitchen.made.get(&identity)
        {
            return Ok(*made);
        }
        // An iterator that was advanced is advanced as an effect; a cell or a list is itself.
        if let Some(origin) = origin_of(value) {
            let made = kitchen.add(Recipe::Source(origin.source.clone()));
            if let Some(identity) = identity {
                kitchen.made.insert(identity, made);
            }
            return Ok(made);
        }
        kitchen.depth += 1;
        if kitchen.depth > 200 {
            return Err("an object that contains itself is alive".to_owned());
        }
        let made = self.new_recipe(kitchen, value, identity)?;
        kitchen.depth -= 1;
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        Ok(made)
    }

    /// A tensor that the graph computes, of its class.
    fn tensor_recipe(&mut self, kitchen: &mut Kitchen, tensor: &TensorValue) -> Cooked<Recipe> {
        if let Some(at) = self.picked_at(tensor.node) {
            self.copy_in_the_way.set(true);
            self.earlier = Some(at);
            return Err("a tensor that was picked by a tensor of one number is alive".to_owned());
        }
        let output = self.output(kitchen, GraphValue::Tensor(tensor.node));
        // Torch lets a view that nobody records require what it is a view of requires, as a leaf.
        let unrecorded = self.unrecorded_view(tensor.node).is_some()
            && self.requires_grad(&Value::Tensor(Rc::new(TensorValue::computed(tensor.node)))).unwrap_or(false);
        let Some(class) = tensor.class.filter(|_| tensor.example.is_none()) else {
            if !unrecorded || tensor.example.is_some() {
                return Ok(output);
            }
            let output = kitchen.add(output);
            return Ok(Recipe::Call(self.library("pyrite._overrides", "unrecorded")?, vec![output], Vec::new()));
        };
        let output = kitchen.add(output);
        let class = kitchen.add(Recipe::Object(class));
        let made = if unrecorded { "as_unrecorded_subclass" } else { "as_subclass" };
        Ok(Recipe::Call(self.library("pyrite._overrides", made)?, vec![output, class], Vec::new()))
    }

    fn new_recipe(&mut self, kitchen: &mut Kitchen, value: &Value, identity: Option<usize>) -> Cooked<RecipeId> {
        let recipe = match value {
            Value::Tensor(tensor) if self.calls.is_nested(tensor.node) => {
                return Err("a tensor of a nested graph is used outside of it".to_owned());
            }
            Value::Tensor(tensor) if tensor.changed.get() => {
                return self.changed_tensor_recipe(kitchen, tensor, identity);
            }
            Value::Instance(instance) if self.host.class_name(instance.class) == "pyrite._transforms.Handle" => {
                return Err("the handle of a hook is alive".to_owned());
            }
            Value::Tensor(tensor) => self.tensor_recipe(kitchen, tensor)?,
            Value::Symbol(symbol) => {
                let is_node = |node: &NodeId| symbol.graph == GraphValue::Tensor(*node);
                let input = self.inputs.iter().position(|(node, _, _)| is_node(node));
                let drawn = self.draws.iter().position(|drawn| Some(drawn.input) == input);
                match (input, drawn) {
                    (_, Some(place)) => Recipe::Drawn(place),
                    (Some(input), None) => Recipe::Source(self.inputs[input].1.clone()),
                    (None, None) => self.output(kitchen, symbol.graph.clone()),
                }
            }
            Value::Condition(condition) => self.output(kitchen, GraphValue::Tensor(condition.node)),
            Value::Number(number) => self.number_recipe(kitchen, number)?,
            Value::Tuple(tuple) => {
                let items = self.recipes_of(kitchen, &tuple.items.clone())?;
                let made = kitchen.add(Recipe::Tuple(items, tuple.class));
                if let Some(identity) = identity {
                    kitchen.made.insert(identity, made);
                }
                self.complete(kitchen, made, tuple.attributes.borrow().0.clone())?;
                return Ok(made);
            }
            Value::List(list) if list.class.is_some() => {
                let made = self.container_recipe(kitchen, "list", list.class, identity)?;
                let items = list.items.borrow().clone();
                let items = self.recipes_of(kitchen, &items)?;
                kitchen.completions.push(Effect::ReplaceList(made, items));
                self.complete(kitchen, made, list.attributes.borrow().0.clone())?;
                return Ok(made);
            }
            Value::List(list) => {
                let items = list.items.borrow().clone();
                Recipe::List(self.recipes_of(kitchen, &items)?)
            }
            Value::Deque(deque) => return self.deque_recipe(kitchen, deque, identity),
            Value::Dict(dict) => return self.dict_recipe(kitchen, dict),
            Value::View(view) => {
                let method = match view.view {
                    View::Keys => "keys",
                    View::Values => "values",
                    View::Items => "items",
                };
                // A proxy of a dictionary, and one that keeps an order, have views of their own.
                let class = match &view.dict {
                    Value::Dict(dict) if dict.behind.is_some() => dict.class,
                    Value::Dict(dict) if dict.class.is_some_and(|class| self.is_ordered(class)) => {
                        Some(self.library("collections", "OrderedDict")?)
                    }
                    _ => None,
                };
                let class = class.map_or_else(|| self.library("builtins", "dict"), Ok)?;
                let method = self.class_item(class, method).ok_or("a missing method")?;
                let dict = self.recipe(kitchen, &view.dict)?;
                Recipe::Call(method, vec![dict], Vec::new())
            }
            Value::Instance(instance) if self.is_array(instance.class) => {
                let tensor = instance.attributes.borrow().get("tensor").cloned().flatten();
                let tensor = self.recipe(kitchen, &tensor.ok_or("an array without its tensor")?)?;
                Recipe::Call(self.library("pyrite._arrays", "to_array")?, vec![tensor], Vec::new())
            }
            Value::Members(instance) => {
                let object = self.recipe(kitchen, &Value::Instance(instance.clone()))?;
                Recipe::Call(self.library("builtins", "vars")?, vec![object], Vec::new())
            }
            Value::Set(set) => return self.set_recipe(kitchen, set, identity),
            Value::Slice(parts) => {
                let parts = self.recipes_of(kitchen, &parts[..])?;
                Recipe::Slice([parts[0], parts[1], parts[2]])
            }
            Value::Function(function) => return self.function_recipe(kitchen, function, identity),
            // Python goes on with numpy's own method.
            Value::Method(parts) if matches!(&parts.1, Value::Instance(array) if self.is_array(array.class)) => {
                let name = match &parts.0 {
                    Value::Function(function) => match &function.origin {
                        Some(origin) => self.constant(origin.object, "__name__").ok(),
                        None => None,
                    },
                    _ => None,
                };
                let name = name.and_then(|name| self.host.as_str(name)).ok_or("a method of an array")?;
                Recipe::Attribute(self.recipe(kitchen, &parts.1.clone())?, name)
            }
            Value::Instance(instance) if self.host.class_name(instance.class).starts_with("torch._numpy.") => {
                return Err("an object that stands for one of numpy's is alive".to_owned());
            }
            Value::Method(parts) if let Some(source) = self.methods_outside.get(&Rc::as_ptr(parts).addr()) => {
                Recipe::Source(source.clone())
            }
            Value::Method(parts) => {
                let (function, object) = (self.recipe(kitchen, &parts.0)?, self.recipe(kitchen, &parts.1)?);
                Recipe::Method(function, object)
            }
            Value::Bound(parts) => match &parts.0 {
                Value::Context(context)
                    if self.warnings == Some(super::Warned::Nothing)
                        || context.kind == ContextKind::RecordedWarnings =>
                {
                    return Err("a context that ignores or records warnings is alive".to_owned());
                }
                Value::Context(context)
                    if &*parts.1 == "__exit__" && context.origin.is_none() && !context.before.borrow().is_empty() =>
                {
                    let before = context.before.borrow().last().copied();
                    let before = before.filter(|_| matches!(context.kind, ContextKind::Grad(_)));
                    Recipe::Entered(context.class, self.recipes_of(kitchen, &context.args.clone())?, before)
                }
                receiver => Recipe::Attribute(self.recipe(kitchen, receiver)?, parts.1.clone()),
            },
            Value::Instance(instance) => return self.instance_recipe(kitchen, instance, identity),
            Value::Cell(_) => {
                let mut unfilled = Vec::new();
                let made = self.cell_recipe(kitchen, value, &mut unfilled)?;
                self.fill_cells(kitchen, unfilled)?;
                return Ok(made);
            }
            Value::Iterator(iterator) => return self.suspended_recipe(kitchen, iterator),
            Value::Super(parts) => {
                let class = kitchen.add(Recipe::Object(parts.0));
                let object = self.recipe(kitchen, &parts.1)?;
                Recipe::Call(self.library("builtins", "super")?, vec![class, object], Vec::new())
            }
            Value::Partial(partial) => return self.partial_recipe(kitchen, partial, identity),
            Value::Address(of) => {
                let of = self.recipe(kitchen, of)?;
                Recipe::Call(self.library("builtins", "id")?, vec![of], Vec::new())
            }
            Value::Weak(reference) => {
                let referent = reference.get().ok_or("a weak reference to nothing is alive")?;
                let mut args = vec![self.recipe(kitchen, &referent)?];
                if let Some(callback) = &reference.callback {
                    args.push(self.recipe(kitchen, callback)?);
                }
                Recipe::Call(self.library("weakref", "ref")?, args, Vec::new())
            }
            Value::Unknown(what) => {
                if let Some(identity) = identity.filter(|identity| self.made_at.contains_key(identity)) {
                    self.end_before(identity);
                }
                return Err(format!("{what} is alive"));
            }
            Value::Context(context) => {
                if !context.before.borrow().is_empty() {
                    return Err("a context manager that was entered is alive".to_owned());
                }
                let args = self.recipes_of(kitchen, &context.args)?;
                Recipe::Call(context.class, args, Vec::new())
            }
            Value::Null | Value::Known(..) | Value::Lazy(_) => return Err("nothing is alive".to_owned()),
        };
        Ok(kitchen.add(recipe))
    }

    /// A tensor whose attributes were written.
    fn changed_tensor_recipe(
        &mut self,
        kitchen: &mut Kitchen,
        tensor: &TensorValue,
        identity: Option<usize>,
    ) -> Cooked<RecipeId> {
        let attributes: Vec<_> = tensor.attributes.borrow().0.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
        let made = self.tensor_recipe(kitchen, tensor)?;
        let made = kitchen.add(made);
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        for (name, value) in attributes.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            let value = self.recipe(kitchen, &value)?;
            kitchen.completions.push(Effect::SetAttribute(made, name, value));
        }
        Ok(made)
    }

    /// A deque, filled once it is there.
    fn deque_recipe(&mut self, kitchen: &mut Kitchen, deque: &DequeValue, identity: Option<usize>) -> Cooked<RecipeId> {
        let limit = deque.limit.get().map_or_else(|| self.host.none(), |limit| self.host.int(limit as i64));
        let limit = kitchen.add(Recipe::Object(limit));
        let nothing = kitchen.add(Recipe::Tuple(Vec::new(), None));
        let base = self.library("collections", "deque")?;
        let made = match deque.class {
            None => kitchen.add(Recipe::Call(base, vec![nothing, limit], Vec::new())),
            Some(class) => {
                let class = kitchen.add(Recipe::Object(class));
                let maker = self.library("pyrite._polyfills", "new_deque")?;
                kitchen.add(Recipe::Call(maker, vec![class, limit], Vec::new()))
            }
        };
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        let items = deque.items.borrow().clone();
        let items = self.recipes_of(kitchen, &items)?;
        kitchen.completions.push(Effect::ReplaceDeque(made, items));
        self.complete(kitchen, made, deque.attributes.borrow().0.clone())?;
        Ok(made)
    }

    /// A dictionary, or a proxy of one.
    fn dict_recipe(&mut self, kitchen: &mut Kitchen, dict: &Rc<DictValue>) -> Cooked<RecipeId> {
        if let Some(behind) = &dict.behind {
            let behind = self.recipe(kitchen, behind)?;
            let class = self.library("types", "MappingProxyType")?;
            return Ok(kitchen.add(Recipe::Call(class, vec![behind], Vec::new())));
        }
        if self.is_own_dict(dict)
            || (dict.class.is_some() && dict.class == self.host.member("types", "MappingProxyType"))
        {
            self.end_before(Rc::as_ptr(dict).addr());
            return Err("the __dict__ of an object is alive".to_owned());
        }
        let pairs: Vec<(Value, Value)> =
            dict.entries.borrow().iter().map(|(_, key, value)| (key.clone(), value.clone())).collect();
        let late = pairs.iter().any(|(key, _)| is_hashed_late(key));
        let pairs = self.pair_recipes(kitchen, &pairs)?;
        let default = dict.default.borrow().clone().map(|value| self.recipe(kitchen, &value)).transpose()?;
        let (now, then) = if late { (Vec::new(), Some(pairs)) } else { (pairs, None) };
        let made = kitchen.add(Recipe::Dict(now, dict.class, default));
        kitchen.completions.extend(then.map(|pairs| Effect::ReplaceDict(made, pairs)));
        self.complete(kitchen, made, dict.attributes.borrow().0.clone())?;
        Ok(made)
    }

    /// A function that the frame made, with its cells.
    fn function_recipe(
        &mut self,
        kitchen: &mut Kitchen,
        function: &FunctionValue,
        identity: Option<usize>,
    ) -> Cooked<RecipeId> {
        let code = self.host.code(function.code);
        if code.is_some_and(|code| code.file.ends_with("_polyfills.py")) {
            return Err("a function that stands for one of the library is alive".to_owned());
        }
        // A function may stand in one of its own cells: they are filled once it is there.
        let mut unfilled = Vec::new();
        let closure = if function.closure.is_empty() {
            None
        } else {
            let mut cells = Vec::with_capacity(function.closure.len());
            for cell in &function.closure {
                cells.push(self.cell_recipe(kitchen, cell, &mut unfilled)?);
            }
            Some(kitchen.add(Recipe::Tuple(cells, None)))
        };
        let defaults = if function.defaults.borrow().is_empty() {
            None
        } else {
            let defaults = function.defaults.borrow().clone();
            let defaults = self.recipes_of(kitchen, &defaults)?;
            Some(kitchen.add(Recipe::Tuple(defaults, None)))
        };
        let keyword_defaults = if function.keyword_defaults.borrow().is_empty() {
            None
        } else {
            let pairs: Vec<(Value, Value)> = function
                .keyword_defaults
                .borrow()
                .iter()
                .map(|(name, value)| (self.text(name), value.clone()))
                .collect();
            let pairs = self.pair_recipes(kitchen, &pairs)?;
            Some(kitchen.add(Recipe::Dict(pairs, None, None)))
        };
        let name = function.name.clone().map(|name| self.recipe(kitchen, &name)).transpose()?;
        let made = kitchen.add(Recipe::Function(Box::new(FunctionRecipe {
            code: function.code,
            globals: function.globals,
            name,
            defaults,
            keyword_defaults,
            closure,
        })));
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        self.fill_cells(kitchen, unfilled)?;
        if let Some(annotations) = &function.annotations {
            let annotations = self.recipe(kitchen, annotations)?;
            kitchen.completions.push(Effect::SetAttribute(made, "__annotations__".into(), annotations));
        }
        let attributes = function.attributes.borrow().0.clone();
        self.complete(kitchen, made, attributes)?;
        Ok(made)
    }

    /// A partial function.
    fn partial_recipe(
        &mut self,
        kitchen: &mut Kitchen,
        partial: &PartialValue,
        identity: Option<usize>,
    ) -> Cooked<RecipeId> {
        let mut args = vec![self.recipe(kitchen, &partial.function)?];
        args.extend(self.recipes_of(kitchen, &partial.args)?);
        let mut kwargs = Vec::new();
        for (name, value) in &partial.kwargs {
            kwargs.push((name.clone(), self.recipe(kitchen, value)?));
        }
        let made = kitchen.add(Recipe::Call(self.library("functools", "partial")?, args, kwargs));
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        let attributes = partial.attributes.borrow().0.clone();
        self.complete(kitchen, made, attributes)?;
        Ok(made)
    }

    /// An iterator: a generator that has not begun or waits, or what is left of another.
    fn suspended_recipe(&mut self, kitchen: &mut Kitchen, iterator: &Rc<IteratorValue>) -> Cooked<RecipeId> {
        // Over a break it would be held longer than by the frame: what it does at its end would come late.
        if let Iterate::Generator(Some(frame)) = &*iterator.state.borrow()
            && (self.limit.is_none() || frame.code.protected.is_empty())
            && !frame.has_begun()
            && !frame.code.file.ends_with("_polyfills.py")
        {
            return self.generator_recipe(kitchen, frame);
        }
        if let Iterate::Generator(Some(frame)) = &*iterator.state.borrow()
            && (self.limit.is_none() || frame.code.protected.is_empty())
            && (frame.is_suspended() || frame.awaited().is_some())
            && frame.handled.is_empty()
            && !self.loops_over_generator
            && !frame.code.file.ends_with("_polyfills.py")
        {
            return self.waiting_recipe(kitchen, frame);
        }
        if let Iterate::Generator(_) = &*iterator.state.borrow()
            && !self.loops_over_generator
        {
            self.end_before(Rc::as_ptr(iterator).addr());
        }
        let recipe = self.iterator_recipe(kitchen, iterator)?;
        let made = kitchen.add(recipe);
        if let Iterate::List(_, place @ 1..) = &*iterator.state.borrow() {
            kitchen.places.push(Effect::SetPlace(made, *place));
        }
        Ok(made)
    }

    /// A number that only a call knows, by what it was computed from.
    fn number_recipe(&mut self, kitchen: &mut Kitchen, number: &NumberValue) -> Cooked<Recipe> {
        Ok(match &number.from {
            Derivation::Input(source) => Recipe::Source(source.clone()),
            Derivation::Drawn(place, _) => Recipe::Drawn(*place),
            Derivation::Data(_) => {
                let output = self.output(kitchen, GraphValue::Tensor(number.node));
                let output = kitchen.add(output);
                let class = self.library("torch", "Tensor")?;
                let method = self.class_item(class, "item").ok_or("a missing method")?;
                Recipe::Call(method, vec![output], Vec::new())
            }
            Derivation::Computed(name, operands) => {
                let operands = self.recipes_of(kitchen, operands)?;
                let (module, name) = name.split_once('.').unwrap_or(("operator", name));
                Recipe::Call(self.library(module, name)?, operands, Vec::new())
            }
        })
    }

    /// The recipe of a set that the frame made: a copy of its twin, or what was done to it once more.
    fn set_recipe(&mut self, kitchen: &mut Kitchen, set: &SetValue, identity: Option<usize>) -> Cooked<RecipeId> {
        let members: Vec<Value> = set.entries.borrow().iter().map(|(_, m, _)| m.clone()).collect();
        let late = members.iter().any(is_hashed_late);
        if late && set.frozen {
            return Err("a frozenset of objects created in the frame is alive".to_owned());
        }
        let twin = set.twin.get();
        if set.frozen {
            let members = self.recipes_of(kitchen, &members)?;
            let members = kitchen.add(Recipe::List(members));
            return Ok(kitchen.add(Recipe::Call(self.library("builtins", "frozenset")?, vec![members], Vec::new())));
        }
        let made_here = |member: &Value| matches!(member, Value::Known(it, _) if self.made_classes.contains_key(it));
        let in_order = set.grown.get() && twin != Twin::Untouched && set.class.is_none() && !late;
        if in_order || members.iter().any(made_here) {
            let members = self.recipes_of(kitchen, &members)?;
            return Ok(kitchen.add(Recipe::Set(members)));
        }
        let copied = match twin {
            Twin::Known(twin) => Some(twin),
            Twin::Lost(before) => before,
            Twin::Untouched => None,
        };
        let made = match (copied, set.class) {
            (Some(copied), class) => {
                let mut args = vec![kitchen.add(Recipe::Object(copied))];
                args.extend(class.map(|class| kitchen.add(Recipe::Object(class))));
                kitchen.add(Recipe::Call(self.library("pyrite._native", "copy_set")?, args, Vec::new()))
            }
            (None, Some(_)) => self.container_recipe(kitchen, "set", set.class, identity)?,
            (None, None) => kitchen.add(Recipe::Set(Vec::new())),
        };
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        if let Twin::Lost(_) = twin {
            let steps = self.step_recipes(kitchen, &set.steps.borrow().clone())?;
            kitchen.completions.push(Effect::ChangeSet(made, steps));
        }
        self.complete(kitchen, made, set.attributes.borrow().0.clone())?;
        Ok(made)
    }

    pub(super) fn step_recipes(
        &mut self,
        kitchen: &mut Kitchen,
        steps: &[SetStep],
    ) -> Cooked<Vec<(&'static str, Vec<RecipeId>)>> {
        steps.iter().map(|step| Ok((step.method, self.recipes_of(kitchen, &step.args)?))).collect()
    }

    /// The recipe of a container of a class of the user's, which is filled once it is there.
    fn container_recipe(
        &mut self,
        kitchen: &mut Kitchen,
        base: &str,
        class: Option<Object>,
        identity: Option<usize>,
    ) -> Cooked<RecipeId> {
        let base = self.library("builtins", base)?;
        let maker = self.class_item(base, "__new__").ok_or("a class without __new__")?;
        let class = kitchen.add(Recipe::Object(class.unwrap_or(base)));
        let made = kitchen.add(Recipe::Call(maker, vec![class], Vec::new()));
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        Ok(made)
    }

    /// Gives what is made its attributes.
    fn complete(
        &mut self,
        kitchen: &mut Kitchen,
        made: RecipeId,
        attributes: Vec<(Rc<str>, Option<Value>)>,
    ) -> Cooked<()> {
        for (name, value) in attributes {
            if let Some(value) = value {
                let value = self.recipe(kitchen, &value)?;
                kitchen.completions.push(Effect::SetAttribute(made, name, value));
            }
        }
        Ok(())
    }

    /// The recipe of a generator that has not begun: its function is called again.
    fn generator_recipe(&mut self, kitchen: &mut Kitchen, frame: &Frame) -> Cooked<RecipeId> {
        let code = frame.code.clone();
        let closure = if code.free.is_empty() {
            None
        } else {
            let cells =
                frame.slots[frame.slots.len() - code.free.len()..].iter().flatten().cloned().collect::<Vec<_>>();
            let cells = self.recipes_of(kitchen, &cells)?;
            Some(kitchen.add(Recipe::Tuple(cells, None)))
        };
        let function = kitchen.add(Recipe::Function(Box::new(FunctionRecipe {
            code: code.object,
            globals: frame.globals,
            name: None,
            defaults: None,
            keyword_defaults: None,
            closure,
        })));
        let mut given = Vec::new();
        for slot in 0..code.parameters() {
            let value = match frame.slots[slot].clone() {
                Some(Value::Cell(cell)) if cell.origin.is_none() => cell.contents.borrow().clone(),
                other => other,
            };
            given.push(value.ok_or("a generator that lacks an argument")?);
        }
        let mut args = vec![function];
        let mut kwargs = Vec::new();
        args.extend(self.recipes_of(kitchen, &given[..code.positional])?);
        let mut place = code.positional;
        for (name, value) in code.locals.iter().zip(&given).skip(place).take(code.keyword_only) {
            kwargs.push((name.clone(), self.recipe(kitchen, value)?));
        }
        place += code.keyword_only;
        if code.flags & crate::code::VARARGS != 0 {
            let Value::Tuple(more) = &given[place] else { return Err("a generator is alive".to_owned()) };
            args.extend(self.recipes_of(kitchen, &more.items)?);
            place += 1;
        }
        if code.flags & crate::code::VARKEYWORDS != 0 {
            let more = given[place].clone();
            let more = self.keyword_items(&more).map_err(|_| "a generator is alive".to_owned())?;
            for (name, value) in more {
                kwargs.push((name, self.recipe(kitchen, &value)?));
            }
        }
        Ok(kitchen.add(Recipe::Call(self.library("operator", "call")?, args, kwargs)))
    }

    /// The recipe of a generator that has yielded.
    fn waiting_recipe(&mut self, kitchen: &mut Kitchen, frame: &Frame) -> Cooked<RecipeId> {
        let mut stack = Vec::with_capacity(frame.stack.len());
        for value in frame.stack.iter().filter(|value| !matches!(value, Value::Null)) {
            stack.push(self.recipe(kitchen, value)?);
        }
        let mut slots = Vec::new();
        for (slot, value) in frame.slots.iter().enumerate() {
            if let Some(value) = value {
                slots.push((slot, self.recipe(kitchen, value)?));
            }
        }
        let point = Point {
            place: frame.place - 1,
            nulls: frame.stack.iter().map(|value| matches!(value, Value::Null)).collect(),
            slots: slots.iter().map(|(slot, _)| *slot).collect(),
            until: None,
        };
        let (code, globals) = (frame.code.clone(), frame.globals);
        Ok(kitchen.add(Recipe::Generator(Box::new(GeneratorRecipe { code, globals, point, stack, slots }))))
    }

    /// The recipe of a cell; one that is made here is still to be filled.
    fn cell_recipe(
        &mut self,
        kitchen: &mut Kitchen,
        value: &Value,
        unfilled: &mut Vec<(RecipeId, Value)>,
    ) -> Cooked<RecipeId> {
        let (Value::Cell(cell), Some(identity), None) = (value, value.identity(), origin_of(value)) else {
            return self.recipe(kitchen, value);
        };
        if let Some(made) = kitchen.made.get(&identity) {
            return Ok(*made);
        }
        let made = kitchen.add(Recipe::Cell(None));
        kitchen.made.insert(identity, made);
        if let Some(contents) = cell.contents.borrow().clone() {
            unfilled.push((made, contents));
        }
        Ok(made)
    }

    fn fill_cells(&mut self, kitchen: &mut Kitchen, unfilled: Vec<(RecipeId, Value)>) -> Cooked<()> {
        for (cell, contents) in unfilled {
            let contents = self.recipe(kitchen, &contents)?;
            kitchen.completions.push(Effect::SetCell(cell, Some(contents)));
        }
        Ok(())
    }

    /// Lets the capture end before the root's instruction that made this value.
    fn end_before(&mut self, identity: usize) {
        let made = self.made_at.get(&identity).copied();
        self.earlier = made.min(self.earlier.or(made));
    }

    pub(super) fn output(&self, kitchen: &mut Kitchen, value: GraphValue<NodeId>) -> Recipe {
        let place = kitchen.outputs.iter().position(|known| *known == value);
        let place = place.unwrap_or_else(|| {
            kitchen.outputs.push(value);
            kitchen.outputs.len() - 1
        });
        Recipe::Output(place)
    }

    fn library(&self, module: &str, name: &str) -> Cooked<Object> {
        self.host.member(module, name).ok_or_else(|| format!("{module}.{name} is missing"))
    }

    fn instance_recipe(
        &mut self,
        kitchen: &mut Kitchen,
        instance: &crate::value::InstanceValue,
        identity: Option<usize>,
    ) -> Cooked<RecipeId> {
        if instance.exception {
            let args = instance.args.borrow().clone();
            let args = self.recipes_of(kitchen, &args)?;
            let made = kitchen.add(Recipe::Exception(instance.class, args));
            let attributes: Vec<_> =
                instance.attributes.borrow().0.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
            for (name, value) in attributes {
                if let Some(value) = value {
                    let value = self.recipe(kitchen, &value)?;
                    kitchen.completions.push(Effect::SetAttribute(made, name, value));
                }
            }
            return Ok(made);
        }
        if self.host.class_name(instance.class).starts_with("pyrite._polyfills.") {
            return Err("an object that stands for one of the library is alive".to_owned());
        }
        let attributes: Vec<_> = instance.attributes.borrow().0.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
        // One of a class that C code makes is made by its class.
        let in_c = self.host.class_name(instance.class) == "types.SimpleNamespace";
        let value = instance.value.and_then(|value| {
            let maker = self.class_item(self.host.class_of(value), "__new__")?;
            Some((maker, value))
        });
        let recipe = if let Some((maker, value)) = value {
            let args = vec![kitchen.add(Recipe::Object(instance.class)), kitchen.add(Recipe::Object(value))];
            Recipe::Call(maker, args, Vec::new())
        } else if in_c {
            Recipe::Call(instance.class, Vec::new(), Vec::new())
        } else {
            Recipe::Instance(instance.class, Vec::new())
        };
        let made = kitchen.add(recipe);
        if let Some(identity) = identity {
            kitchen.made.insert(identity, made);
        }
        for (name, value) in attributes {
            if let Some(value) = value {
                let value = self.recipe(kitchen, &value)?;
                kitchen.completions.push(Effect::SetAttribute(made, name, value));
            }
        }
        Ok(made)
    }

    fn iterator_recipe(&mut self, kitchen: &mut Kitchen, iterator: &IteratorValue) -> Cooked<Recipe> {
        let state = iterator.state.borrow();
        Ok(match &*state {
            Iterate::List(list, _) => {
                let list = Value::List(list.clone());
                Recipe::SequenceIterator(self.recipe(kitchen, &list)?)
            }
            Iterate::Watched(watched) if watched.place <= watched.items.len() => {
                // It goes on to watch its container, which therefore has to be as it was.
                let Watched { container, items, place, .. } = watched;
                let changed = match container {
                    Value::View(view) => is_changed(&view.dict),
                    other => is_changed(other),
                };
                let is_filled_late = origin_of(container).is_none() && is_filled_after(container);
                if changed || is_filled_late || watched.is_stale() || self.count(container).ok() != Some(items.len()) {
                    self.end_before(std::ptr::from_ref(iterator).addr());
                    return Err("an iterator over what has changed since is alive".to_owned());
                }
                Recipe::Advanced(self.recipe(kitchen, container)?, *place)
            }
            Iterate::Items(items, place) | Iterate::Watched(Watched { items, place, .. }) => {
                let rest = items.get(*place..).unwrap_or_default().to_vec();
                let rest = self.recipes_of(kitchen, &rest)?;
                let tuple = kitchen.add(Recipe::Tuple(rest, None));
                Recipe::SequenceIterator(tuple)
            }
            Iterate::Enumerate(inner, count) => {
                let inner = self.recipe(kitchen, inner)?;
                let count = kitchen.add(Recipe::Object(self.host.int(*count)));
                Recipe::Call(self.library("builtins", "enumerate")?, vec![inner, count], Vec::new())
            }
            Iterate::Zip(inner, strictness) => {
                let inner = self.recipes_of(kitchen, inner)?;
                let strict = kitchen.add(Recipe::Object(self.host.bool(*strictness == Strictness::Strict)));
                Recipe::Call(self.library("builtins", "zip")?, inner, vec![("strict".into(), strict)])
            }
            Iterate::Map(function, inner) => {
                let mut args = vec![self.recipe(kitchen, function)?];
                args.extend(self.recipes_of(kitchen, inner)?);
                Recipe::Call(self.library("builtins", "map")?, args, Vec::new())
            }
            Iterate::Filter(function, inner) => {
                let args = vec![self.recipe(kitchen, function)?, self.recipe(kitchen, inner)?];
                Recipe::Call(self.library("builtins", "filter")?, args, Vec::new())
            }
            Iterate::Count(next, step) => {
                let args = vec![self.recipe(kitchen, next)?, self.recipe(kitchen, step)?];
                Recipe::Call(self.library("itertools", "count")?, args, Vec::new())
            }
            Iterate::Generator(_) => return Err("a generator is alive".to_owned()),
        })
    }
}

/// Whether a key is made here and may ask its attributes for its hash: they are set after it is made.
fn is_hashed_late(key: &Value) -> bool {
    match key {
        Value::Instance(instance) => instance.origin.is_none(),
        Value::Tuple(tuple) => tuple.origin.is_none() && tuple.items.iter().any(is_hashed_late),
        _ => false,
    }
}

/// Whether a container is made empty and filled when all others are made.
fn is_filled_after(value: &Value) -> bool {
    match value {
        Value::View(view) => is_filled_after(&view.dict),
        Value::Dict(dict) => dict.entries.borrow().iter().any(|(_, key, _)| is_hashed_late(key)),
        Value::Set(set) => set.class.is_some() || set.entries.borrow().iter().any(|(_, key, _)| is_hashed_late(key)),
        Value::Deque(_) => true,
        _ => false,
    }
}

/// Whether a container that exists outside was changed.
fn is_changed(value: &Value) -> bool {
    match value {
        Value::Dict(dict) => dict.changed.get(),
        Value::Set(set) => set.changed.get(),
        Value::Deque(deque) => deque.changed.get(),
        _ => false,
    }
}
