//! From the evaluator's state to a plan: recipes for what is alive, effects for what was changed.

use std::rc::Rc;

use pyrite_ir::{Kind as NodeKind, NodeId, Switch, Tag, Target, Value as GraphValue};
use pyrite_sym::Rel;
use rustc_hash::{FxHashMap, FxHashSet};

use super::wrap::origin_of;
use super::{Evaluator, Frame};
use crate::host::Object;
use crate::liveness::live_slots;
use crate::plan::{Break, Draw, Effect, End, Plan, Recipe, RecipeId, Resume};
use crate::source::{Check, Source};
use crate::value::{Iterate, Origin, Value};

/// An object that is changed is compared with this many others at each call; where there are more, it is guarded to be itself.
const MAX_APART: usize = 128;

/// Recipes under construction.
#[derive(Default)]
pub(super) struct Kitchen {
    pub(super) recipes: Vec<Recipe>,
    pub(super) made: FxHashMap<usize, RecipeId>,
    pub(super) outputs: Vec<GraphValue<NodeId>>,
    /// What completes objects that refer to themselves.
    pub(super) completions: Vec<Effect>,
    /// Where iterators over lists stand. They are put there when the lists have their items.
    pub(super) places: Vec<Effect>,
    pub(super) depth: usize,
}

impl Kitchen {
    pub(super) fn add(&mut self, recipe: Recipe) -> RecipeId {
        self.recipes.push(recipe);
        self.recipes.len() - 1
    }
}

pub(super) type Cooked<T> = Result<T, String>;

impl Evaluator<'_, '_> {
    /// The plan of a frame that returns.
    pub(super) fn finish_return(&mut self, value: &Value) -> Cooked<Plan> {
        let mut kitchen = Kitchen::default();
        let result = self.recipe(&mut kitchen, value)?;
        self.finish(kitchen, End::Return(result), &[])
    }

    /// The plan of a frame that goes on in Python.
    pub(super) fn finish_break(&mut self, frame: &Frame, first: usize, last: usize, why: Break) -> Cooked<Plan> {
        if !frame.handled.is_empty() {
            // What raises runs in Python, and with it the handler.
            self.earlier = self.raised_at.first().copied();
            return Err(format!("{}, inside of an exception handler", why.reason));
        }
        // A loop over a generator would break in every turn: such a frame runs plain.
        self.loops_over_generator = frame.stack.iter().any(holds_generator);
        let mut kitchen = Kitchen::default();
        let mut stack = Vec::with_capacity(frame.stack.len());
        for value in &frame.stack {
            stack.push(match value {
                Value::Null => None,
                value => Some(self.recipe(&mut kitchen, value)?),
            });
        }
        let live = live_slots(&frame.code, first);
        let (mut locals, mut dead, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, value) in frame.slots.iter().enumerate() {
            if value.is_some() || self.entry.slots.get(slot).is_some_and(Option::is_some) {
                written.push(slot);
            }
            match value {
                Some(value) if live[slot] || matches!(value, Value::Cell(_)) => {
                    locals.push((slot, self.recipe(&mut kitchen, value)?));
                }
                Some(value) => dead.push((slot, value.clone())),
                None => {}
            }
        }
        let kept = Vec::new();
        self.finish(kitchen, End::Break(Box::new(Resume { first, last, stack, locals, kept, written, why })), &dead)
    }

    /// The plan of a frame with an end, where these slots hold what nothing reads any more.
    fn finish(&mut self, mut kitchen: Kitchen, mut end: End, dead: &[(usize, Value)]) -> Cooked<Plan> {
        self.guard_wrappers().map_err(|_| "a wrapper subclass that cannot be taken apart".to_owned())?;
        self.check_modes()?;
        self.check_settings()?;
        if let Some(at) = self.decided_by_draw {
            self.earlier = Some(at);
            return Err("a number that depends on data or chance decides what is done".to_owned());
        }
        let (effects, changes) = self.effects(&mut kitchen)?;
        if let End::Break(resume) = &mut end {
            // Objects from outside, and those of the frame's own that something else refers to.
            resume.kept.extend(dead.iter().filter_map(|(slot, value)| {
                let made = value.identity().and_then(|identity| kitchen.made.get(&identity).copied());
                let found = || source_of(value).map(|source| kitchen.add(Recipe::Source(source)));
                Some((*slot, made.or_else(found)?))
            }));
        }
        let asserted: Vec<(NodeId, (usize, usize))> = std::mem::take(&mut self.asserted);
        let asserted_at = asserted.first().map(|(_, at)| *at).into_iter().chain(self.fallible).min();
        let asserted =
            asserted.into_iter().filter_map(|(node, _)| match self.output(&mut kitchen, GraphValue::Tensor(node)) {
                Recipe::Output(place) => Some(place),
                _ => None,
            });
        let asserted: Vec<usize> = asserted.collect();
        let output = GraphValue::List(kitchen.outputs.clone());
        let nodes: Vec<NodeId> = self.inputs.iter().map(|(node, _, _)| *node).collect();
        let naming: Vec<usize> = self.symbols.iter().map(|(_, input, _)| *input).collect();
        let (graph, kept) = self.calls.finish(&nodes, &naming, output);
        let mut op_count = 0;
        let (mut writes, mut draws) = (false, !self.draws.is_empty());
        for (_, node) in graph.nodes() {
            if let NodeKind::Call(target) = &node.kind
                && Switch::of(node).is_none()
            {
                op_count += usize::from(!matches!(target, Target::GetItem));
                writes |= matches!(target, Target::Op(op) if op.schema.is_mutable());
                draws |= matches!(target, Target::Op(op) if op.has(Tag::Random)) || matches!(target, Target::Opaque(_));
            }
        }
        if let Some(at) = asserted_at
            && (writes || draws || !self.switched.is_empty())
        {
            self.earlier = Some(at);
            return Err("an assertion about data, in a graph that does more than compute".to_owned());
        }
        let place = |input: usize| kept.iter().position(|kept| *kept == input);
        let symbols =
            self.symbols.iter().map(|(name, input, dim)| (name.clone(), self.inputs[*input].1.clone(), *dim)).collect();
        let constraints = self.calls.env().constraints();
        let fixed_marks = std::mem::take(&mut self.never_static).into_iter().filter_map(|(size, name)| {
            let size = size.to_expr();
            let fixed =
                constraints.iter().filter(|constraint| constraint.rel == Rel::Eq).find_map(|constraint| {
                    match (&constraint.left, &constraint.right) {
                        (left, right) if *left == size => right.as_int(),
                        (left, right) if *right == size => left.as_int(),
                        _ => None,
                    }
                });
            fixed.map(|value| (name, value))
        });
        let fixed_marks = fixed_marks.collect();
        Ok(Plan {
            fixed_marks,
            env: self.calls.env().clone(),
            guards: self.take_guards()?,
            state: self.read_state(),
            inputs: kept.iter().map(|input| self.inputs[*input].1.clone()).collect(),
            graph: (op_count > 0 || !kitchen.outputs.is_empty()).then_some(graph),
            symbols,
            floats: self.floats.iter().filter_map(|input| place(*input)).collect(),
            draws: std::mem::take(&mut self.draws)
                .into_iter()
                .map(|drawn| Draw {
                    input: place(drawn.input),
                    function: drawn.function,
                    receiver: drawn.receiver.map(|source| kitchen.add(Recipe::Source(source))),
                    args: drawn.args,
                })
                .collect(),
            switched: std::mem::take(&mut self.switched)
                .into_iter()
                .map(|(source, wanted)| (kitchen.add(Recipe::Source(source)), wanted))
                .collect(),
            writes,
            asserted,
            fallible: self.fallible.is_some(),
            op_count,
            recipes: kitchen.recipes,
            effects,
            changes,
            end,
        })
    }

    /// Relies on it that what was changed is nothing else that was looked at by another path, where it was seen unchanged: ADR 56.
    fn guard_changed_apart(&self) {
        let mut changed: Vec<&Origin> = self.changed.iter().filter_map(origin_of).collect();
        // What an object keeps in a dictionary of its own is read from the object.
        for origin in changed.clone() {
            if let Source::InstanceItem(keeper, _) | Source::Attribute(keeper, _) = &*origin.source {
                changed.extend(self.known.values().filter_map(origin_of).filter(|known| known.source == *keeper));
            }
        }
        let classes: FxHashSet<Object> = changed.iter().map(|origin| self.host.class_of(origin.object)).collect();
        let mut alike: FxHashMap<Object, Vec<&Origin>> = FxHashMap::default();
        for known in self.known.values() {
            if let Some(origin) = origin_of(known)
                && let class = self.host.class_of(origin.object)
                && classes.contains(&class)
            {
                alike.entry(class).or_default().push(origin);
            }
        }
        for origins in alike.values_mut() {
            origins.sort_by_cached_key(|origin| origin.source.to_string());
        }
        for origin in &changed {
            let others = &alike.get(&self.host.class_of(origin.object)).map(Vec::as_slice).unwrap_or_default();
            // So many cost less as the objects that they are.
            if others.len() > MAX_APART {
                self.guard(&origin.source, Check::Is(origin.object));
                continue;
            }
            for other in others.iter().filter(|other| other.object != origin.object) {
                // Of two that were changed, one says so.
                if other.object < origin.object && changed.iter().any(|it| it.object == other.object) {
                    continue;
                }
                match (&*origin.source, &*other.source) {
                    (Source::Fixed(_), _) => self.guard(&other.source, Check::Differs(origin.source.clone())),
                    _ => self.guard(&origin.source, Check::Differs(other.source.clone())),
                }
            }
        }
    }

    /// What is done to objects, in order, and how many of that change what exists outside.
    fn effects(&mut self, kitchen: &mut Kitchen) -> Cooked<(Vec<Effect>, usize)> {
        self.guard_changed_apart();
        let mut effects = Vec::new();
        for value in std::mem::take(&mut self.changed) {
            let Some(origin) = origin_of(&value) else { continue };
            let object = kitchen.add(Recipe::Source(origin.source.clone()));
            match &value {
                Value::List(list) => {
                    let items = list.items.borrow().clone();
                    let items = self.recipes_of(kitchen, &items)?;
                    effects.push(Effect::ReplaceList(object, items));
                }
                Value::Deque(deque) => {
                    let items = deque.items.borrow().clone();
                    let items = self.recipes_of(kitchen, &items)?;
                    effects.push(Effect::ReplaceDeque(object, items));
                }
                Value::Dict(dict) => {
                    let pairs: Vec<(Value, Value)> =
                        dict.entries.borrow().iter().map(|(_, key, value)| (key.clone(), value.clone())).collect();
                    let pairs = self.pair_recipes(kitchen, &pairs)?;
                    effects.push(Effect::ReplaceDict(object, pairs));
                }
                Value::Set(set) => {
                    let steps = self.step_recipes(kitchen, &set.steps.borrow().clone())?;
                    effects.push(Effect::ChangeSet(object, steps));
                }
                Value::Instance(instance) => {
                    let attributes = instance.attributes.borrow().0.clone();
                    self.attribute_effects(kitchen, &mut effects, object, origin, instance.class, attributes)?;
                }
                Value::Tensor(tensor) => {
                    let attributes: Vec<_> =
                        tensor.attributes.borrow().0.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
                    for (name, value) in attributes.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                        let value = self.recipe(kitchen, &value)?;
                        effects.push(Effect::SetAttribute(object, name, value));
                    }
                }
                Value::Cell(cell) => {
                    let contents = cell.contents.borrow().clone();
                    let contents = contents.map(|value| self.recipe(kitchen, &value)).transpose()?;
                    effects.push(Effect::SetCell(object, contents));
                }
                Value::Iterator(iterator) => effects.push(Effect::Advance(object, iterator.taken.get())),
                Value::Function(function) => {
                    let attributes = function.attributes.borrow().0.clone();
                    for (name, value) in attributes.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                        let value = self.recipe(kitchen, &value)?;
                        effects.push(Effect::SetAttribute(object, name, value));
                    }
                }
                _ => {}
            }
            if let Some(held) = super::attribute::attributes_of_container(&value) {
                let attributes = held.borrow().0.clone();
                let class = self.host.class_of(origin.object);
                self.attribute_effects(kitchen, &mut effects, object, origin, class, attributes)?;
            }
        }
        for (class, name, value) in std::mem::take(&mut self.class_items) {
            // One that was set back is as it was.
            let before = self.class_item(class, &name);
            let unchanged = match &value {
                Value::Known(object, _) => before == Some(*object),
                other => origin_of(other).is_some_and(|origin| before == Some(origin.object)),
            };
            if !unchanged {
                let class = kitchen.add(Recipe::Object(class));
                effects.push(Effect::SetAttribute(class, name, self.recipe(kitchen, &value)?));
            }
        }
        for (globals, name, value) in std::mem::take(&mut self.globals) {
            match value {
                Some(value) => effects.push(Effect::SetGlobal(globals, name, self.recipe(kitchen, &value)?)),
                // One that came into being here, and is gone again, nobody has seen.
                None if self.read_global(globals, &name).is_none() => {}
                None => effects.push(Effect::DeleteGlobal(globals, name)),
            }
        }
        for (variable, value) in std::mem::take(&mut self.context_variables) {
            // One that was set back is as it was.
            let outside = self.read_context_variable(variable).map(|seen| seen.object);
            let unchanged = match &value {
                Value::Known(object, _) => outside == Some(*object),
                other => origin_of(other).is_some_and(|origin| outside == Some(origin.object)),
            };
            if !unchanged {
                effects.push(Effect::SetContextVariable(variable, self.recipe(kitchen, &value)?));
            }
        }
        for (setter, args, kwargs) in std::mem::take(&mut self.setters_called) {
            let args = self.recipes_of(kitchen, &args)?;
            let kwargs = kwargs.into_iter().map(|(name, value)| Ok((name, self.recipe(kitchen, &value)?)));
            effects.push(Effect::Call(setter, args, kwargs.collect::<Cooked<_>>()?));
        }
        for context in std::mem::take(&mut self.left) {
            effects.push(Effect::Leave(self.recipe(kitchen, &context)?));
        }
        if self.grad != self.read_state().grad {
            effects.push(Effect::SetGrad(self.grad));
        }
        let mut all = std::mem::take(&mut kitchen.completions);
        let changes = effects.len();
        all.extend(effects);
        all.append(&mut kitchen.places);
        Ok((all, changes))
    }

    /// What was set and removed of the attributes of an object from outside.
    fn attribute_effects(
        &mut self,
        kitchen: &mut Kitchen,
        effects: &mut Vec<Effect>,
        object: RecipeId,
        origin: &Origin,
        class: Object,
        attributes: Vec<(Rc<str>, Option<Value>)>,
    ) -> Cooked<()> {
        for (name, value) in attributes {
            match value {
                Some(value) => {
                    let value = self.recipe(kitchen, &value)?;
                    effects.push(Effect::SetAttribute(object, name, value));
                }
                None if self.is_outside(origin, class, &name) => effects.push(Effect::DeleteAttribute(object, name)),
                // It was never there: the captured code has set it before.
                None => {}
            }
        }
        Ok(())
    }

    /// Whether an object that exists has an attribute of its own.
    fn is_outside(&mut self, origin: &Origin, class: Object, name: &Rc<str>) -> bool {
        if self.has_instance_item(origin, name) {
            return true;
        }
        let found = self.class_item(class, name).map(|found| self.host.descriptor(found));
        found == Some(crate::host::Descriptor::Slot) && self.read_attribute(origin.object, &origin.source, name).is_ok()
    }
}

/// Whether an iterator takes its items from a generator.
fn holds_generator(value: &Value) -> bool {
    let Value::Iterator(iterator) = value else { return false };
    match &*iterator.state.borrow() {
        Iterate::Generator(_) => true,
        Iterate::Enumerate(inner, _) | Iterate::Filter(_, inner) => holds_generator(inner),
        Iterate::Zip(inner, _) | Iterate::Map(_, inner) => inner.iter().any(holds_generator),
        Iterate::List(..) | Iterate::Items(..) | Iterate::Watched(..) | Iterate::Count(..) => false,
    }
}

/// Where an object from outside was found that nothing else keeps alive.
fn source_of(value: &Value) -> Option<Rc<Source>> {
    let source = match value {
        Value::Known(_, source) => source.clone(),
        Value::Lazy(origin) => Some(origin.source.clone()),
        other => origin_of(other).map(|origin| origin.source.clone()),
    };
    source.filter(|source| !matches!(**source, Source::Fixed(_)))
}
