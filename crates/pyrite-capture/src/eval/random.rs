//! Generators of Python's random numbers.
//!
//! One that captured code makes from a known seed gives the same numbers in every call: they are drawn while the frame is
//! evaluated. Numbers of one that exists outside are drawn in every call, before the graph runs.

use std::rc::Rc;

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::host::Object;
use crate::source::Source;
use crate::value::{InstanceValue, Value};

/// A function that draws, and where its generator is found if that is its first argument.
pub(super) type Drawing = (Object, Option<Rc<Source>>);

/// A random number that every call draws.
pub(super) struct Drawn {
    /// The input of the graph that it is.
    pub input: usize,
    /// The function that draws.
    pub function: Object,
    /// Where the generator is found.
    pub receiver: Option<Rc<Source>>,
    /// The other arguments.
    pub args: Vec<Object>,
}

/// Methods that give a number or a choice by places alone.
const BY_PLACE: [&str; 3] = ["choice", "choices", "sample"];

impl Evaluator<'_, '_> {
    /// `random.Random(seed)`; nothing where the seed is not known.
    pub(super) fn new_random(&mut self, class: Object, args: &[Value]) -> Run<Option<Value>> {
        let [seed] = args else { return Ok(None) };
        let Some(seed) = self.plain_guarded(seed)?.filter(|seed| *seed != self.host.none()) else { return Ok(None) };
        let made = self.host.call(class, &[seed], &[]).map_err(|r| self.raised(r))?;
        self.generators.insert(made);
        Ok(Some(Value::Known(made, None)))
    }

    /// Whether an object is a generator that captured code has made.
    pub(super) fn is_random_source(&self, object: Object) -> bool {
        self.generators.contains(&object)
    }

    /// A method of a generator that captured code has made.
    pub(super) fn generator_method(
        &mut self,
        generator: Object,
        name: &str,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Value> {
        let refused = |this: &Self| this.stop(format!("the method {name} of a random number generator"));
        let method = self.constant(generator, name)?;
        if name == "shuffle" {
            let ([list @ Value::List(_)], true) = (args, kwargs.is_empty()) else { return Err(refused(self)) };
            let items = self.items_of(list)?;
            let shuffle = self.host.polyfill("shuffled_places").ok_or_else(|| refused(self))?;
            let count = self.host.int(items.len() as i64);
            let places = self.host.call(shuffle, &[generator, count], &[]).map_err(|r| self.raised(r))?;
            let places = self.constant_items(places);
            let places = places.iter().filter_map(|place| self.host.as_int(*place));
            let shuffled: Vec<Value> = places.map(|place| items[place as usize].clone()).collect();
            self.change_list(list, |held| *held = shuffled)?;
            return Ok(self.none());
        }
        if BY_PLACE.contains(&name)
            && let [items @ (Value::List(_) | Value::Tuple(_)), rest @ ..] = args
        {
            let items = self.items_of(items)?;
            let range = self.host.member("builtins", "range").ok_or_else(|| refused(self))?;
            let count = self.host.int(items.len() as i64);
            let places = self.host.call(range, &[count], &[]).map_err(|r| self.raised(r))?;
            let Some((rest, named)) = self.plain_arguments(rest, kwargs)? else { return Err(refused(self)) };
            let args: Vec<Object> = std::iter::once(places).chain(rest).collect();
            let chosen = self.host.call(method, &args, &named).map_err(|r| self.raised(r))?;
            let place = |place: Object| self.host.as_int(place).map(|place| items[place as usize].clone());
            return if name == "choice" {
                place(chosen).ok_or_else(|| refused(self))
            } else {
                Ok(Value::list(self.constant_items(chosen).into_iter().filter_map(place).collect()))
            };
        }
        let args = args.iter().map(|arg| self.real(arg)).collect::<Run<Option<Vec<Object>>>>()?;
        let (Some(args), Some((_, named))) = (args, self.plain_arguments(&[], kwargs)?) else {
            return Err(refused(self));
        };
        let drawn = self.host.call(method, &args, &named).map_err(|r| self.raised(r))?;
        Ok(self.opened(drawn))
    }

    /// A method of a generator that exists outside, as a number that every call draws; nothing for other methods.
    pub(super) fn draw_from(&mut self, generator: &InstanceValue, name: &str, args: &[Value]) -> Run<Option<Value>> {
        let class = self.host.member("random", "Random");
        let Some(origin) = generator.origin.clone().filter(|_| Some(generator.class) == class) else { return Ok(None) };
        // A generator that was given attributes or methods of its own may do anything.
        if self.read_instance_item(origin.object, &origin.source, &name.into()).is_some() {
            return Ok(None);
        }
        if let Source::Fixed(_) = &*origin.source {
            let method = self.constant(origin.object, name)?;
            return self.draw_by(name, (method, None), args);
        }
        let Some(function) = self.class_item(generator.class, name) else { return Ok(None) };
        self.draw_by(name, (function, Some(origin.source)), args)
    }

    /// A generator that captured code has made as it stands, for who gets hold of it.
    pub(super) fn generator_parts(&mut self, generator: Object) -> Option<(Object, Object)> {
        let maker = self.host.member("pyrite._polyfills", "generator_from")?;
        let state = self.constant(generator, "getstate").ok()?;
        let state = self.host.call(state, &[], &[]).ok()?;
        Some((maker, state))
    }
}

/// The methods of `random.Random` that are written in C.
pub(super) fn draws_in_c(name: &Rc<str>) -> bool {
    matches!(&**name, "random" | "getrandbits")
}
