//! Objects from outside to values, with the guards that make it safe to rely on them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pyrite_ir::{Meta, Value as GraphValue};
use pyrite_sym::SymInt;

use super::{Evaluator, Run};
use crate::host::{Kind, Object};
use crate::source::{Check, NUMBER, Source};
use crate::value::{
    Attributes, Born, CellValue, DictValue, Entries, FunctionValue, InstanceValue, Iterate, IteratorValue, ListValue,
    Origin, PartialValue, SetValue, SymbolValue, TensorValue, TupleValue, Value,
};

impl Evaluator<'_, '_> {
    /// A value that is looked at.
    pub(super) fn force(&mut self, value: &Value) -> Run<Value> {
        match value {
            Value::Lazy(origin) => self.wrap(origin.object, &origin.source.clone()),
            other => Ok(other.clone()),
        }
    }

    /// The value of an object from outside, which is guarded by what it is.
    pub(super) fn wrap(&mut self, object: Object, source: &Rc<Source>) -> Run<Value> {
        let kind = self.host.kind(object);
        if kind == Kind::Int
            && let Some(number) = self.wrap_number(object, source)
        {
            return Ok(number);
        }
        if kind == Kind::Plain
            && let Some(number) = self.wrap_float(object, source)
        {
            return Ok(number);
        }
        // A method that C code has bound to an object is made anew whenever it is looked at. Which object that is matters once it
        // is called.
        if kind == Kind::Builtin
            && self.bound_receiver(object).is_some()
            && let Ok(name) = self.constant(object, "__name__")
        {
            self.guard(source, Check::Class(self.host.class_of(object), None));
            self.guard(&Rc::new(Source::Attribute(source.clone(), "__name__".into())), Check::Equal(name));
            return Ok(Value::Known(object, Some(source.clone())));
        }
        match kind {
            Kind::None | Kind::Bool | Kind::Class | Kind::Module | Kind::Builtin => {
                self.guard(source, Check::Is(object));
                return Ok(Value::Known(object, Some(source.clone())));
            }
            Kind::Int | Kind::Plain | Kind::FrozenSet => {
                self.guard(source, Check::Equal(object));
                return Ok(Value::Known(object, Some(source.clone())));
            }
            _ => {}
        }
        if let Some(known) = self.known.get(&object).cloned() {
            let first = match &known {
                Value::Known(_, first) => first.clone(),
                other => origin_of(other).map(|origin| origin.source.clone()),
            };
            if let Some(first) = first.filter(|first| first != source) {
                if matches!(**source, Source::Fixed(_)) {
                    self.guard(&first, Check::Is(object));
                }
                self.guard(source, Check::Same(first));
            }
            return Ok(known);
        }
        let origin = Origin { object, source: source.clone() };
        let value = self.describe_object(kind, origin)?;
        self.known.insert(object, value.clone());
        Ok(value)
    }

    /// The object that a method written in C is bound to; nothing for functions of modules and classes.
    pub(super) fn bound_receiver(&self, function: Object) -> Option<Object> {
        let receiver = self.host.builtin_receiver(function)?;
        (!matches!(self.host.kind(receiver), Kind::Module | Kind::Class | Kind::None)).then_some(receiver)
    }

    /// Relies on the object that a method written in C is bound to.
    pub(super) fn rely_on_receiver(&self, function: &Value) {
        if let Value::Known(object, Some(source)) = function
            && self.host.kind(*object) == Kind::Builtin
            && let Some(receiver) = self.bound_receiver(*object)
        {
            let source = Rc::new(Source::Attribute(source.clone(), "__self__".into()));
            self.guard(&source, Check::Is(receiver));
        }
    }

    fn describe_object(&mut self, kind: Kind, origin: Origin) -> Run<Value> {
        let object = origin.object;
        let source = origin.source.clone();
        Ok(match kind {
            Kind::Tensor => self.wrap_tensor(origin)?,
            Kind::Array => self.wrap_array(origin)?,
            Kind::TensorSubclass => self.wrap_subclass(origin)?,
            Kind::Tuple | Kind::NamedTuple => {
                let class = self.guard_class(&origin);
                let items = self.read_items(object, &source).into_iter().map(|item| self.lazily(item));
                let class = (kind == Kind::NamedTuple).then_some(class);
                Value::Tuple(Rc::new(TupleValue {
                    items: items.collect(),
                    class,
                    origin: Some(origin),
                    ..TupleValue::default()
                }))
            }
            Kind::List => {
                let class = self.guard_class(&origin);
                let class = Some(class).filter(|class| Some(*class) != self.host.member("builtins", "list"));
                let items = self.read_items(object, &source).into_iter().map(|item| self.lazily(item));
                let items = RefCell::new(items.collect());
                Value::List(Rc::new(ListValue { items, class, origin: Some(origin), ..ListValue::default() }))
            }
            Kind::Deque => {
                self.guard_class(&origin);
                self.wrap_deque(origin)?
            }
            Kind::Dict => self.wrap_dict(origin)?,
            Kind::Proxy => self.wrap_proxy(origin)?,
            Kind::Set => {
                let class = self.guard_class(&origin);
                let class = Some(class).filter(|class| Some(*class) != self.host.member("builtins", "set"));
                let mut entries = Entries::default();
                for item in self.read_members(&origin)? {
                    let value = Value::Known(item, None);
                    let key = self.key(&value)?;
                    entries.set(key, value.clone(), value);
                }
                let entries = RefCell::new(entries);
                Value::Set(Rc::new(SetValue { entries, class, origin: Some(origin), ..SetValue::default() }))
            }
            Kind::Function => self.wrap_function(origin)?,
            Kind::Method => {
                self.guard_class(&origin);
                let parts = self.read_method(&origin).ok_or_else(|| self.stop("a method without its parts"))?;
                let (function, receiver) = (self.admit(&parts.0)?, self.admit(&parts.1)?);
                if let (Value::Context(_), Value::Function(function)) = (&receiver, &function)
                    && let Some(code) = self.host.code(function.code)
                {
                    return Ok(Value::Bound(Rc::new((receiver, code.name.clone()))));
                }
                let method = Value::Method(Rc::new((function, receiver)));
                self.methods_outside.extend(method.identity().map(|identity| (identity, source.clone())));
                method
            }
            Kind::Partial => {
                self.guard_class(&origin);
                let parts = self.read_partial(&origin)?;
                let parts = parts.ok_or_else(|| self.stop("a partial function without its parts"))?;
                let function = self.admit(&parts.function)?;
                let args = parts.args.iter().map(|arg| self.admit(arg)).collect::<Run<_>>()?;
                let kwargs = parts.kwargs.into_iter();
                let kwargs = kwargs.map(|(name, arg)| Ok((name, self.admit(&arg)?))).collect::<Run<_>>()?;
                Value::Partial(Rc::new(PartialValue {
                    function,
                    args,
                    kwargs,
                    attributes: RefCell::default(),
                    origin: Some(origin),
                }))
            }
            Kind::Iterator => {
                self.guard_class(&origin);
                match self.iterated_by(object) {
                    Some(lists) => self.iterated.extend(lists),
                    None => self.iterates_over_dict = true,
                }
                let items = self.read_items(object, &source).into_iter().map(|item| self.lazily(item)).collect();
                let state = RefCell::new(Iterate::Items(items, 0));
                Value::Iterator(Rc::new(IteratorValue {
                    born: Born::default(),
                    state,
                    origin: Some(origin),
                    taken: Cell::new(0),
                    generator: false,
                }))
            }
            Kind::Count => {
                self.guard_class(&origin);
                let (next, step) = (self.read_count(&origin, "next_count")?, self.read_count(&origin, "count_step")?);
                Value::Iterator(Rc::new(IteratorValue {
                    born: Born::default(),
                    state: RefCell::new(Iterate::Count(next, step)),
                    origin: Some(origin),
                    taken: Cell::new(0),
                    generator: false,
                }))
            }
            Kind::TorchModule | Kind::Instance | Kind::Exception => {
                let class = self.guard_class(&origin);
                if let Some(keeper) = self.keeper_of_attributes(object) {
                    if self.known.contains_key(&keeper) {
                        return Err(self.stop("an object whose __dict__ is looked at in another way, too"));
                    }
                    if !self.keepers.insert(keeper) {
                        return Err(self.stop("an object whose __dict__ is that of another, too"));
                    }
                }
                if let Some(context) = self.wrap_context(class, &origin)? {
                    return Ok(context);
                }
                let value = self.read_value(class, &origin)?;
                let instance = InstanceValue {
                    value,
                    born: Born::default(),
                    class,
                    origin: Some(origin),
                    attributes: RefCell::new(Attributes::default()),
                    args: RefCell::default(),
                    exception: self.is_exception_class(class),
                    torch_module: kind == Kind::TorchModule,
                    changed: Cell::new(false),
                };
                if instance.exception
                    && let Some(origin) = &instance.origin
                {
                    let args = self.read_attribute(origin.object, &origin.source, "args")?;
                    let args = self.admit(&args)?;
                    *instance.args.borrow_mut() = self.items_of(&args)?;
                }
                Value::Instance(Rc::new(instance))
            }
            Kind::Generator | Kind::Opaque => {
                self.guard(&source, Check::Class(self.host.class_of(object), None));
                Value::Known(object, Some(source))
            }
            Kind::None
            | Kind::Bool
            | Kind::Int
            | Kind::Plain
            | Kind::FrozenSet
            | Kind::Class
            | Kind::Module
            | Kind::Builtin => Value::Known(object, Some(source)),
        })
    }

    fn wrap_dict(&mut self, origin: Origin) -> Run<Value> {
        let class = self.guard_class(&origin);
        let mut entries = Entries::default();
        for (key, value) in self.read_entries(&origin) {
            let named = Value::Known(key, None);
            // The names of a module are read and written by its functions, too: they are read one by one.
            if self.host.as_str(key).is_some_and(|name| matches!(&*name, "__builtins__" | "__spec__")) {
                self.guard(&origin.source, Check::Is(origin.object));
                return Ok(Value::Known(origin.object, Some(origin.source)));
            }
            let hashed = self.key(&named)?;
            entries.set(hashed, named, self.lazily(value));
        }
        if self.keeper_of_attributes(origin.object) == Some(origin.object) {
            return Err(self.stop("a dictionary that is its own __dict__"));
        }
        if self.keepers.contains(&origin.object) {
            return Err(self.stop("the __dict__ of an object that is looked at in another way, too"));
        }
        let is_plain = Some(class) == self.host.member("builtins", "dict");
        let default = if self.is_defaultdict(class) {
            let factory = self.read_attribute(origin.object, &origin.source, "default_factory")?;
            Some(self.admit(&factory)?)
        } else {
            None
        };
        Ok(Value::Dict(Rc::new(DictValue {
            entries: RefCell::new(entries),
            class: (!is_plain).then_some(class),
            default: RefCell::new(default),
            origin: Some(origin),
            ..DictValue::default()
        })))
    }

    /// What a `types.MappingProxyType` shows, which somebody else may change: the dictionary itself, to be read only.
    fn wrap_proxy(&mut self, origin: Origin) -> Run<Value> {
        self.guard_class(&origin);
        let shown = self.read_proxied(&origin).ok_or_else(|| self.stop("a proxy of a mapping that is not a dict"))?;
        if self.host.kind(shown.object) != Kind::Dict {
            return Err(self.stop("a proxy of a mapping that is not a dict"));
        }
        let shown = self.admit(&shown)?;
        let class = self.host.class_of(origin.object);
        let entries = Entries::default();
        let behind = Some(shown);
        Ok(Value::Dict(Rc::new(DictValue {
            entries: RefCell::new(entries),
            class: Some(class),
            origin: Some(origin),
            behind,
            ..DictValue::default()
        })))
    }

    fn wrap_function(&mut self, origin: Origin) -> Run<Value> {
        let parts = self.read_function(&origin).ok_or_else(|| self.stop("a function without its parts"))?;
        let of = |name: &str| Rc::new(Source::Attribute(origin.source.clone(), name.into()));
        let lazy = |object: Object, source: Source| Value::Lazy(Rc::new(Origin { object, source: Rc::new(source) }));
        let defaults = of("__defaults__");
        let defaults =
            parts.defaults.iter().enumerate().map(|(i, value)| lazy(*value, Source::Index(defaults.clone(), i)));
        let defaults = defaults.collect();
        let keywords = of("__kwdefaults__");
        let keyword_defaults = parts
            .keyword_defaults
            .iter()
            .filter_map(|(key, value)| {
                Some((self.host.as_str(*key)?, lazy(*value, Source::Key(keywords.clone(), *key))))
            })
            .collect();
        let cells = of("__closure__");
        let closure = parts
            .closure
            .iter()
            .enumerate()
            .map(|(i, cell)| self.wrap_cell(*cell, &Rc::new(Source::Index(cells.clone(), i))))
            .collect();
        Ok(Value::Function(Rc::new(FunctionValue {
            code: parts.code,
            globals: parts.globals,
            builtins: parts.builtins,
            name: None,
            defaults: RefCell::new(defaults),
            keyword_defaults: RefCell::new(keyword_defaults),
            closure,
            annotations: None,
            origin: Some(origin),
            attributes: RefCell::default(),
        })))
    }

    /// The value of a cell from outside.
    pub(super) fn wrap_cell(&mut self, object: Object, source: &Rc<Source>) -> Value {
        if let Some(known) = self.known.get(&object) {
            return known.clone();
        }
        let cell = Value::Cell(Rc::new(CellValue {
            born: Born::default(),
            contents: RefCell::new(None),
            origin: Some(Origin { object, source: source.clone() }),
            loaded: Cell::new(false),
            changed: Cell::new(false),
        }));
        self.known.insert(object, cell.clone());
        cell
    }

    /// What a cell holds.
    pub(super) fn cell_contents(&mut self, cell: &Value) -> Run<Option<Value>> {
        let Value::Cell(cell) = cell else { return Err(self.stop("a free variable without its cell")) };
        if !cell.loaded.get() {
            if let Some(origin) = &cell.origin
                && let Some(seen) = self.read_cell(origin)
            {
                let value = self.admit(&seen)?;
                *cell.contents.borrow_mut() = Some(value);
            }
            cell.loaded.set(true);
        }
        let contents = cell.contents.borrow().clone();
        contents.map(|value| self.force(&value)).transpose()
    }

    /// Sets or empties a cell.
    pub(super) fn set_cell(&mut self, cell: &Value, contents: Option<Value>) -> Run<()> {
        let Value::Cell(held) = cell else { return Err(self.stop("a free variable without its cell")) };
        held.loaded.set(true);
        self.note_mutation(cell);
        *held.contents.borrow_mut() = contents;
        if held.origin.is_some() && !held.changed.replace(true) {
            self.changed.push(cell.clone());
        }
        Ok(())
    }

    /// A number that an `itertools.count` from outside holds, by the function that reads it.
    fn read_count(&mut self, origin: &Origin, reader: &str) -> Run<Value> {
        let reader = self.host.polyfill(reader).ok_or_else(|| self.stop("a missing function"))?;
        let seen = self.read_called(origin, reader)?;
        self.admit(&seen)
    }

    /// A number that has changed between calls, as a symbol; nothing where it is to be a constant.
    fn wrap_number(&mut self, object: Object, source: &Rc<Source>) -> Option<Value> {
        if !self.settings.dynamic.contains(&((**source).clone(), NUMBER)) {
            return None;
        }
        if let Some(known) = self.numbers.get(source) {
            return Some(known.clone());
        }
        let hint = self.host.as_int(object)?;
        // Unlike a size, it may become anything.
        let name = format!("s{}", self.calls.env().symbols().len());
        let size = self.calls.env().named(&name, Some(hint), i64::MIN);
        self.symbols.push((size.to_string().into(), self.inputs.len(), NUMBER));
        let name = self.input_name(source);
        let node = self.calls.input(&name, GraphValue::Int(size.clone()));
        self.guard(source, Check::Class(self.host.class_of(object), None));
        self.inputs.push((node, source.clone(), object));
        let number = Value::Symbol(Rc::new(SymbolValue { size, graph: GraphValue::Tensor(node) }));
        self.numbers.insert(source.clone(), number.clone());
        Some(number)
    }

    /// An array of numpy: an object of torch's own class of arrays, whose tensor shares the array's memory.
    fn wrap_array(&mut self, origin: Origin) -> Run<Value> {
        self.guard_class(&origin);
        let class = self.array_class()?;
        let maker = self.host.member("pyrite._arrays", "to_tensor").ok_or_else(|| self.stop("a missing function"))?;
        let seen = self.read_called(&origin, maker)?;
        let tensor = self.wrap_tensor(Origin { object: seen.object, source: seen.source })?;
        let instance = self.new_instance(class);
        instance.attributes.borrow_mut().set(&"tensor".into(), Some(tensor));
        let Some(instance) = Rc::into_inner(instance) else { return Err(self.stop("an array")) };
        Ok(Value::Instance(Rc::new(InstanceValue { origin: Some(origin), ..instance })))
    }

    /// The class that stands for numpy's arrays.
    pub(super) fn array_class(&self) -> Run<Object> {
        self.host.member("torch._numpy", "ndarray").ok_or_else(|| self.stop("an array of numpy"))
    }

    fn wrap_tensor(&mut self, origin: Origin) -> Run<Value> {
        self.wrap_leaf(origin, None).map(|tensor| Value::Tensor(Rc::new(tensor)))
    }

    /// A tensor from outside; whether it is a leaf is said of one that stands for another.
    pub(super) fn wrap_leaf(&mut self, origin: Origin, is_leaf: Option<bool>) -> Run<TensorValue> {
        let facts =
            self.read_tensor(origin.object).ok_or_else(|| self.stop("a tensor of a kind that cannot be captured"))?;
        let mut meta = facts.meta;
        meta.is_leaf = is_leaf.unwrap_or(meta.is_leaf);
        // Inputs that share memory share a storage in the graph: the host says which do.
        let place = self.inputs.len();
        let order = dense_order(&meta);
        // As in torch, what a module holds keeps its sizes unless they do change.
        let all_dynamic = self.settings.all_dynamic && !facts.parameter && !is_module_state(&origin.source);
        for dim in 0..meta.shape.len() {
            let dynamic = facts.marked_dynamic.contains(&dim)
                || all_dynamic
                || self.settings.dynamic.contains(&((*origin.source).clone(), dim));
            let SymInt::Int(size) = meta.shape[dim] else { continue };
            if dynamic && size > 1 && !facts.marked_static.contains(&dim) {
                let symbol = self.calls.env().size(size);
                self.symbols.push((symbol.to_string().into(), place, dim));
                if facts.never_static.contains(&dim) {
                    self.never_static.push((symbol.clone(), format!("{}.shape[{dim}]", origin.source)));
                }
                meta.shape[dim] = symbol;
            }
        }
        if let Some(order) = order {
            follow_sizes(&mut meta, &order);
        }
        let name = self.input_name(&origin.source);
        let node = self.calls.input(&name, GraphValue::Tensor(meta.clone()));
        self.guard(&origin.source, Check::Tensor(Rc::new(meta), self.host.class_of(origin.object)));
        self.inputs.push((node, origin.source.clone(), origin.object));
        Ok(TensorValue { origin: Some(origin), parameter: facts.parameter, ..TensorValue::computed(node) })
    }
}

/// Whether a path leads to a parameter or a buffer of a module.
fn is_module_state(source: &Source) -> bool {
    let held = |base: &Source| {
        matches!(base, Source::InstanceItem(_, name) | Source::Attribute(_, name)
            if matches!(&**name, "_parameters" | "_buffers"))
    };
    matches!(source, Source::Key(base, _) if held(base))
}

/// The dimensions of a tensor, outermost in memory first, where its elements lie without gaps in that order.
fn dense_order(meta: &Meta) -> Option<Vec<usize>> {
    let sizes: Vec<i64> = meta.shape.iter().map(SymInt::as_int).collect::<Option<_>>()?;
    let strides: Vec<i64> = meta.stride.iter().map(SymInt::as_int).collect::<Option<_>>()?;
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|dim| std::cmp::Reverse(strides[*dim]));
    let mut expected = 1;
    for dim in order.iter().rev() {
        if sizes[*dim] == 0 || (sizes[*dim] != 1 && strides[*dim] != expected) {
            return None;
        }
        expected *= sizes[*dim];
    }
    Some(order)
}

/// Makes the strides of a dense tensor what its sizes make of them. The stride of a dimension of one element may be any:
/// another one stays.
fn follow_sizes(meta: &mut Meta, order: &[usize]) {
    let mut stride = SymInt::Int(1);
    for dim in order.iter().rev() {
        if stride.hint() == meta.stride[*dim].as_int() {
            meta.stride[*dim] = stride.clone();
        }
        stride = stride * &meta.shape[*dim];
    }
}

/// The object that a value stands for, if it exists outside.
pub(super) fn origin_of(value: &Value) -> Option<&Origin> {
    match value {
        Value::Lazy(origin) => Some(origin),
        Value::Tensor(v) => v.origin.as_ref(),
        Value::Tuple(v) => v.origin.as_ref(),
        Value::List(v) => v.origin.as_ref(),
        Value::Deque(v) => v.origin.as_ref(),
        Value::Dict(v) => v.origin.as_ref(),
        Value::Set(v) => v.origin.as_ref(),
        Value::Function(v) => v.origin.as_ref(),
        Value::Instance(v) => v.origin.as_ref(),
        Value::Cell(v) => v.origin.as_ref(),
        Value::Iterator(v) => v.origin.as_ref(),
        Value::Partial(v) => v.origin.as_ref(),
        Value::Context(v) => v.origin.as_ref(),
        _ => None,
    }
}

impl Evaluator<'_, '_> {
    /// A name for an input: its path, as an identifier.
    pub(super) fn input_name(&self, source: &Source) -> String {
        let mut name: String = match source {
            Source::Local(_, name) | Source::Closure(_, name) | Source::Global(name) => format!("l_{name}_"),
            Source::Contents(base) | Source::Referent(base) | Source::Proxied(base) | Source::Called(base, _) => {
                self.input_name(base)
            }
            Source::InstanceItem(base, name) | Source::Attribute(base, name) => match &**name {
                // What torch's modules keep is named as the user reads it.
                "_parameters" | "_buffers" | "_modules" => self.input_name(base),
                name => format!("{}{name}_", self.input_name(base)),
            },
            Source::Index(base, index) => format!("{}{index}_", self.input_name(base)),
            Source::Key(base, key) => {
                let key = self.host.as_str(*key).unwrap_or_else(|| "item".into());
                format!("{}{key}_", self.input_name(base))
            }
            Source::Builtin(_)
            | Source::ClassItem(..)
            | Source::ContextVariable(_)
            | Source::Asked(_)
            | Source::Fixed(_) => "arg_".to_owned(),
        };
        name.retain(|c| c.is_ascii_alphanumeric() || c == '_');
        name
    }
}
