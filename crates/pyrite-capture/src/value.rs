//! What the evaluator holds on its stack instead of objects.
//!
//! A value is either an object that exists ([`Value::Known`]: constants, classes, modules, functions written in C) or
//! stands for one that is only described: a tensor that a graph will compute, a container that may hold such tensors, a
//! function or an instance made by the captured code.
//!
//! Invariants: containers, cells, instances and iterators have an identity, that of their `Rc`; one that exists outside
//! of the frame has its object and its source, and everything that changes it is noted as an effect. Values on the
//! stack and in locals are never [`Value::Lazy`]; items of containers may be.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pyrite_ir::{NodeId, Value as GraphValue};
use pyrite_sym::{Rel, SymInt};
use rustc_hash::FxHashMap;

use crate::eval::Frame;
use crate::host::Object;
use crate::source::{Order, Source};

/// An object that exists, and where it was found if it came from outside.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The object.
    pub object: Object,
    /// The path to it.
    pub source: Rc<Source>,
}

/// See the module's text.
#[derive(Clone)]
pub enum Value {
    /// The NULL that calls have on the stack.
    Null,
    /// An object that is not looked into further.
    Known(Object, Option<Rc<Source>>),
    /// An item of a container that nobody has looked at.
    Lazy(Rc<Origin>),
    /// A tensor.
    Tensor(Rc<TensorValue>),
    /// An integer that depends on sizes.
    Symbol(Rc<SymbolValue>),
    /// A float that changes from call to call.
    Number(Rc<NumberValue>),
    /// A bool that depends on data.
    Condition(Rc<ConditionValue>),
    /// A tuple.
    Tuple(Rc<TupleValue>),
    /// A list.
    List(Rc<ListValue>),
    /// A `collections.deque`.
    Deque(Rc<DequeValue>),
    /// A dictionary.
    Dict(Rc<DictValue>),
    /// A view of a dictionary.
    View(Rc<ViewValue>),
    /// A set.
    Set(Rc<SetValue>),
    /// A slice whose parts are not all plain.
    Slice(Rc<[Value; 3]>),
    /// A function written in Python.
    Function(Rc<FunctionValue>),
    /// A function bound to an object.
    Method(Rc<(Value, Value)>),
    /// A named method, written in C, of a value.
    Bound(Rc<(Value, Rc<str>)>),
    /// An object with attributes.
    Instance(Rc<InstanceValue>),
    /// The `__dict__` of an object that the captured code made.
    Members(Rc<InstanceValue>),
    /// A cell.
    Cell(Rc<CellValue>),
    /// An iterator.
    Iterator(Rc<IteratorValue>),
    /// `super()`: the class after which to look, and the object.
    Super(Rc<(Object, Value)>),
    /// `functools.partial`.
    Partial(Rc<PartialValue>),
    /// A context manager of torch.
    Context(Rc<ContextValue>),
    /// `id(value)`.
    Address(Rc<Value>),
    /// A weak reference that the captured code made.
    Weak(Rc<WeakValue>),
    /// Something that exists and that cannot be described, such as a traceback; the text says what it is.
    Unknown(Rc<str>),
}

/// When a value was made, in the order in which values are: what a nested graph changes is told from what it makes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Born(u64);

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

impl Default for Born {
    fn default() -> Self {
        MADE.set(MADE.get() + 1);
        Self(MADE.get())
    }
}

/// A weak reference.
pub struct WeakValue {
    /// What it refers to.
    pub referent: Referent,
    /// What is called when that ends.
    pub callback: Option<Value>,
}

/// What a weak reference refers to.
pub enum Referent {
    /// Something from outside, which who called the frame keeps alive.
    Outside(Value),
    /// An object that the captured code made: it lives as long as the captured code holds it.
    Made(std::rc::Weak<InstanceValue>),
}

impl WeakValue {
    /// What it refers to; nothing once that has ended.
    pub fn get(&self) -> Option<Value> {
        match &self.referent {
            Referent::Outside(value) => Some(value.clone()),
            Referent::Made(instance) => instance.upgrade().map(Value::Instance),
        }
    }
}

/// A tensor.
pub struct TensorValue {
    /// When it was made.
    pub born: Born,
    /// The node that computes it.
    pub node: NodeId,
    /// For inputs, the object.
    pub origin: Option<Origin>,
    /// Whether it is an `nn.Parameter`.
    pub parameter: bool,
    /// Its class, where that is one of the user's.
    pub class: Option<Object>,
    /// For a wrapper subclass, an object of its class whose inner tensors have no data.
    pub example: Option<Object>,
    /// Attributes that the captured code gave it.
    pub attributes: RefCell<Attributes>,
    /// Whether it was given any.
    pub changed: Cell<bool>,
}

impl TensorValue {
    /// A tensor that a node computes.
    pub fn computed(node: NodeId) -> Self {
        Self {
            born: Born::default(),
            node,
            origin: None,
            parameter: false,
            class: None,
            example: None,
            attributes: RefCell::default(),
            changed: Cell::new(false),
        }
    }
}

/// An integer that depends on sizes.
pub struct SymbolValue {
    /// Its value.
    pub size: SymInt,
    /// What it is in the graph.
    pub graph: GraphValue<NodeId>,
}

/// A bool that depends on data.
pub struct ConditionValue {
    /// What it is in the graph.
    pub node: NodeId,
    /// What it says of integers, if that is known.
    pub says: Option<(SymInt, Rel, SymInt)>,
}

/// A float that changes from call to call.
pub struct NumberValue {
    /// What it is in the graph: a tensor of double precision without dimensions.
    pub node: NodeId,
    /// What it is in the call that is captured.
    pub hint: Object,
    /// Where it comes from.
    pub from: Derivation,
    /// What it was compared with.
    pub asked: RefCell<Vec<(Order, Object)>>,
}

/// Where a float comes from.
pub enum Derivation {
    /// From outside.
    Input(Rc<Source>),
    /// From others, by a function of Python's `operator` module.
    Computed(&'static str, Vec<Value>),
    /// A random number of Python's, by its place among those that the frame draws, and the instruction of the root that
    /// does.
    Drawn(usize, (usize, usize)),
    /// The element of a tensor, and the instruction of the root that reads it.
    Data((usize, usize)),
}

/// A tuple.
#[derive(Default)]
pub struct TupleValue {
    /// When it was made.
    pub born: Born,
    /// Its items.
    pub items: Vec<Value>,
    /// Its class, where that is not `tuple`.
    pub class: Option<Object>,
    /// Attributes that were set and removed since, for one of a class of the user's.
    pub attributes: RefCell<Attributes>,
    /// The object, if it exists.
    pub origin: Option<Origin>,
    /// Whether attributes of it were set or removed.
    pub changed: Cell<bool>,
}

/// A list.
#[derive(Default)]
pub struct ListValue {
    /// When it was made.
    pub born: Born,
    /// Its items.
    pub items: RefCell<Vec<Value>>,
    /// Its class, where that is not `list`.
    pub class: Option<Object>,
    /// Attributes that were set and removed since, for one of a class of the user's.
    pub attributes: RefCell<Attributes>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// Whether it was changed.
    pub changed: Cell<bool>,
}

/// A `collections.deque`.
#[derive(Default)]
pub struct DequeValue {
    /// When it was made.
    pub born: Born,
    /// Its items.
    pub items: RefCell<Vec<Value>>,
    /// How many it holds at most.
    pub limit: Cell<Option<usize>>,
    /// Its class, where that is not `collections.deque`.
    pub class: Option<Object>,
    /// Attributes that were set and removed since, for one of a class of the user's.
    pub attributes: RefCell<Attributes>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// Whether it was changed.
    pub changed: Cell<bool>,
}

/// A key, so that equal keys are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The representative of a plain value.
    Plain(Object),
    /// The identity of something described.
    Identity(usize),
    /// The address of what is known by this identity, or of this object.
    Address(usize),
    /// A weak reference to what is known by this identity, or to this object.
    Weak(usize),
    /// A tuple of keys, by its number among those that were met.
    Tuple(usize),
}

/// Entries in order of insertion, found by key.
#[derive(Default)]
pub struct Entries {
    slots: Vec<Option<(Key, Value, Value)>>,
    index: FxHashMap<Key, usize>,
}

impl Entries {
    /// The value of a key.
    pub fn get(&self, key: Key) -> Option<&Value> {
        self.index.get(&key).and_then(|slot| self.slots[*slot].as_ref()).map(|(_, _, value)| value)
    }

    /// Sets the value of a key; a new one comes last.
    pub fn set(&mut self, key: Key, named: Value, value: Value) {
        match self.index.get(&key) {
            Some(slot) => {
                if let Some(entry) = &mut self.slots[*slot] {
                    entry.2 = value;
                }
            }
            None => {
                self.index.insert(key, self.slots.len());
                self.slots.push(Some((key, named, value)));
            }
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: Key) -> Option<(Value, Value)> {
        let slot = self.index.remove(&key)?;
        self.slots[slot].take().map(|(_, named, value)| (named, value))
    }

    /// Moves a key to the end, or to the beginning; whether it is there.
    pub fn move_to_end(&mut self, key: Key, last: bool) -> bool {
        let Some(slot) = self.index.get(&key).copied() else { return false };
        let entry = self.slots.remove(slot);
        self.slots.insert(if last { self.slots.len() } else { 0 }, entry);
        self.index =
            self.slots.iter().enumerate().filter_map(|(i, s)| s.as_ref().map(|(key, _, _)| (*key, i))).collect();
        true
    }

    /// The entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Key, &Value, &Value)> {
        self.slots.iter().flatten().map(|(key, named, value)| (key, named, value))
    }

    /// The same entries once more.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self { slots: self.slots.clone(), index: self.index.clone() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.index.clear();
    }
}

/// A dictionary.
#[derive(Default)]
pub struct DictValue {
    /// When it was made.
    pub born: Born,
    /// Its entries.
    pub entries: RefCell<Entries>,
    /// Its class, where that is not `dict`.
    pub class: Option<Object>,
    /// Attributes that were set and removed since, for one of a class of the user's.
    pub attributes: RefCell<Attributes>,
    /// What makes missing values.
    pub default: RefCell<Option<Value>>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// Whether all of its keys are guarded: it was looked at as a whole.
    pub whole: Cell<bool>,
    /// For a `types.MappingProxyType`, the dictionary that it shows.
    pub behind: Option<Value>,
    /// Whether it was changed.
    pub changed: Cell<bool>,
}

/// A view of a dictionary.
pub struct ViewValue {
    /// The dictionary.
    pub dict: Value,
    /// What it shows.
    pub view: View,
}

/// What a view of a dictionary shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Its keys.
    Keys,
    /// Its values.
    Values,
    /// Both, as pairs.
    Items,
}

/// A set.
#[derive(Default)]
pub struct SetValue {
    /// When it was made.
    pub born: Born,
    /// Its members, each its own value.
    pub entries: RefCell<Entries>,
    /// The set of Python's beside it, which has its members where Python would have them.
    pub twin: Cell<Twin>,
    /// What was done to it, in order: to one from outside since the frame began, to another since its twin was lost.
    pub steps: RefCell<Vec<SetStep>>,
    /// Whether members were only added, one by one, since it was empty.
    pub grown: Cell<bool>,
    /// How often its members have changed.
    pub changes: Cell<usize>,
    /// Whether the places of its members are guarded, for one from outside.
    pub observed: Cell<bool>,
    /// Whether it is a `frozenset`.
    pub frozen: bool,
    /// Its class, where that is not `set` or `frozenset`.
    pub class: Option<Object>,
    /// Attributes that were set and removed since, for one of a class of the user's.
    pub attributes: RefCell<Attributes>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// Whether it was changed.
    pub changed: Cell<bool>,
}

/// The set of Python's beside one that is described. The order in which a set is iterated over depends on all that was
/// done to it: the same is done to the twin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Twin {
    /// There is none yet: nothing was done to the set.
    #[default]
    Untouched,
    /// This one.
    Known(Object),
    /// There is none: a member has a hash that only the call knows. The set had this twin before, if any.
    Lost(Option<Object>),
}

/// What was done to a set: a method of `set`, and its arguments.
#[derive(Clone)]
pub struct SetStep {
    /// The method's name.
    pub method: &'static str,
    /// Its arguments: members, or objects that nobody changes.
    pub args: Vec<Value>,
}

/// A function written in Python.
pub struct FunctionValue {
    /// Its code object.
    pub code: Object,
    /// Its globals.
    pub globals: Object,
    /// Its builtins.
    pub builtins: Object,
    /// Its qualified name, where the captured code made it.
    pub name: Option<Value>,
    /// Defaults of positional parameters.
    pub defaults: RefCell<Vec<Value>>,
    /// Defaults of keyword-only parameters.
    pub keyword_defaults: RefCell<Vec<(Rc<str>, Value)>>,
    /// Its cells.
    pub closure: Vec<Value>,
    /// Its annotations, a dictionary, where the captured code made it with some.
    pub annotations: Option<Value>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// Attributes that the captured code gave it.
    pub attributes: RefCell<Attributes>,
}

/// Attributes that were set (`Some`) or removed (`None`), in order.
#[derive(Default)]
pub struct Attributes(pub Vec<(Rc<str>, Option<Value>)>);

impl Attributes {
    /// What was done to a name.
    pub fn get(&self, name: &str) -> Option<&Option<Value>> {
        self.0.iter().find(|(known, _)| &**known == name).map(|(_, value)| value)
    }

    /// Forgets what was done to a name.
    pub fn forget(&mut self, name: &str) {
        self.0.retain(|(known, _)| &**known != name);
    }

    /// Sets or removes.
    pub fn set(&mut self, name: &Rc<str>, value: Option<Value>) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name.clone(), value)),
        }
    }
}

/// An object with attributes.
pub struct InstanceValue {
    /// When it was made.
    pub born: Born,
    /// Its class.
    pub class: Object,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// What was set and removed since.
    pub attributes: RefCell<Attributes>,
    /// For exceptions, the arguments they were made from.
    pub args: RefCell<Vec<Value>>,
    /// For a number or text of a class of the user's, the number or text of Python's own.
    pub value: Option<Object>,
    /// Whether it is an exception.
    pub exception: bool,
    /// Whether it is a module of torch.
    pub torch_module: bool,
    /// Whether it was changed.
    pub changed: Cell<bool>,
}

/// A cell.
pub struct CellValue {
    /// When it was made.
    pub born: Born,
    /// What it holds.
    pub contents: RefCell<Option<Value>>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// Whether its contents were read from the object.
    pub loaded: Cell<bool>,
    /// Whether it was changed.
    pub changed: Cell<bool>,
}

/// `functools.partial`.
pub struct PartialValue {
    /// The function.
    pub function: Value,
    /// Its first arguments.
    pub args: Vec<Value>,
    /// Its keyword arguments.
    pub kwargs: Vec<(Rc<str>, Value)>,
    /// Attributes that the captured code gave it.
    pub attributes: RefCell<Attributes>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
}

/// An iterator.
pub struct IteratorValue {
    /// When it was made.
    pub born: Born,
    /// What it iterates over, and where it stands.
    pub state: RefCell<Iterate>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// How many items were taken, for iterators that exist outside.
    pub taken: Cell<usize>,
    /// Whether it is a generator of the captured code, which it stays once it has ended.
    pub generator: bool,
}

/// What an iterator iterates over.
pub enum Iterate {
    /// The items of a list, from a place on; sees later changes.
    List(Rc<ListValue>, usize),
    /// Items that are fixed, from a place on.
    Items(Vec<Value>, usize),
    /// The items of a dictionary, set or deque.
    Watched(Watched),
    /// A generator, suspended; `None` once it has ended.
    Generator(Option<Box<Frame>>),
    /// Numbers with the items of another iterator.
    Enumerate(Value, i64),
    /// Tuples of the items of others.
    Zip(Vec<Value>, Strictness),
    /// A function of the items of others.
    Map(Value, Vec<Value>),
    /// The items for which a function is true.
    Filter(Value, Value),
    /// A count without end: next, step.
    Count(Value, Value),
}

/// An iteration over a container that must not change meanwhile.
#[derive(Clone)]
pub struct Watched {
    /// The container.
    pub container: Value,
    /// The items that it had when the iteration began.
    pub items: Vec<Value>,
    /// The next one.
    pub place: usize,
    /// How often a set had changed when the iteration began.
    pub changes: usize,
}

impl Watched {
    /// An iteration that begins.
    pub fn new(container: Value, items: Vec<Value>) -> Self {
        let changes = changes_of(&container);
        Self { container, items, place: 0, changes }
    }

    /// Whether a set has changed since.
    pub fn is_stale(&self) -> bool {
        self.changes != changes_of(&self.container)
    }
}

/// How often the members of a set have changed.
fn changes_of(container: &Value) -> usize {
    match container {
        Value::Set(set) => set.changes.get(),
        _ => 0,
    }
}

/// What `zip` does when one ends before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// It ends.
    Shortest,
    /// It raises.
    Strict,
}

/// A context manager of torch.
pub struct ContextValue {
    /// What it does.
    pub kind: ContextKind,
    /// How it was made: the class and the arguments.
    pub class: Object,
    /// The arguments.
    pub args: Vec<Value>,
    /// The object, if it exists outside.
    pub origin: Option<Origin>,
    /// What held before it was entered.
    pub before: RefCell<Vec<bool>>,
}

/// What a context manager of torch does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContextKind {
    /// Switches the recording of gradients.
    Grad(bool),
    /// Chooses a lower precision by autocast's lists; `None` switches autocast off.
    Autocast(Option<pyrite_tensor::DType>),
    /// Switches inference mode.
    Inference(bool),
    /// Puts the filters of warnings back when it is left.
    Warnings,
    /// The same, and gives a list of the warnings that are shown meanwhile.
    RecordedWarnings,
    /// Nothing that a graph on the CPU shows.
    Nothing,
    /// Lets functions not ask `__torch_function__` of their arguments.
    SubclassesOff,
    /// Nor of modes.
    OverridesOff,
}

impl Value {
    /// The identity of something described; `None` for objects and tensors of the graph.
    pub fn identity(&self) -> Option<usize> {
        Some(match self {
            Self::Tensor(v) => Rc::as_ptr(v).addr(),
            Self::Symbol(v) => Rc::as_ptr(v).addr(),
            Self::Number(v) => Rc::as_ptr(v).addr(),
            Self::Condition(v) => Rc::as_ptr(v).addr(),
            Self::Tuple(v) => Rc::as_ptr(v).addr(),
            Self::List(v) => Rc::as_ptr(v).addr(),
            Self::Deque(v) => Rc::as_ptr(v).addr(),
            Self::Dict(v) => Rc::as_ptr(v).addr(),
            Self::View(v) => Rc::as_ptr(v).addr(),
            Self::Set(v) => Rc::as_ptr(v).addr(),
            Self::Slice(v) => Rc::as_ptr(v).addr(),
            Self::Function(v) => Rc::as_ptr(v).addr(),
            Self::Method(v) => Rc::as_ptr(v).addr(),
            Self::Bound(v) => Rc::as_ptr(v).addr(),
            Self::Instance(v) => Rc::as_ptr(v).addr(),
            // Always the same for an object, and not the object.
            Self::Members(v) => Rc::as_ptr(v).addr() + 1,
            Self::Cell(v) => Rc::as_ptr(v).addr(),
            Self::Iterator(v) => Rc::as_ptr(v).addr(),
            Self::Super(v) => Rc::as_ptr(v).addr(),
            Self::Partial(v) => Rc::as_ptr(v).addr(),
            Self::Context(v) => Rc::as_ptr(v).addr(),
            Self::Address(v) => Rc::as_ptr(v).addr(),
            Self::Weak(v) => Rc::as_ptr(v).addr(),
            Self::Unknown(v) => Rc::as_ptr(v).addr(),
            Self::Null | Self::Known(..) | Self::Lazy(_) => return None,
        })
    }

    /// When something that can be changed was made; `None` for what exists outside.
    pub fn born(&self) -> Option<Born> {
        let (born, origin) = match self {
            Self::Tensor(v) => (v.born, &v.origin),
            Self::Tuple(v) => (v.born, &v.origin),
            Self::List(v) => (v.born, &v.origin),
            Self::Deque(v) => (v.born, &v.origin),
            Self::Dict(v) => (v.born, &v.origin),
            Self::Set(v) => (v.born, &v.origin),
            Self::Instance(v) | Self::Members(v) => (v.born, &v.origin),
            Self::Cell(v) => (v.born, &v.origin),
            Self::Iterator(v) => (v.born, &v.origin),
            _ => return None,
        };
        origin.is_none().then_some(born)
    }

    /// A new tuple.
    pub fn tuple(items: Vec<Value>) -> Self {
        Self::Tuple(Rc::new(TupleValue { items, class: None, ..TupleValue::default() }))
    }

    /// A new list.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Rc::new(ListValue { items: RefCell::new(items), ..ListValue::default() }))
    }

    /// A new iterator.
    pub fn iterator(state: Iterate) -> Self {
        Self::Iterator(Rc::new(IteratorValue {
            born: Born::default(),
            state: RefCell::new(state),
            origin: None,
            taken: Cell::new(0),
            generator: false,
        }))
    }

    /// A new generator; `by_user` tells it from those that stand for iterators of the library.
    pub(crate) fn generator(frame: Frame, by_user: bool) -> Self {
        Self::Iterator(Rc::new(IteratorValue {
            born: Born::default(),
            state: RefCell::new(Iterate::Generator(Some(Box::new(frame)))),
            origin: None,
            taken: Cell::new(0),
            generator: by_user,
        }))
    }
}
