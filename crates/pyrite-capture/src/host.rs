//! The Python that a frame is captured in, as far as capture asks for it.
//!
//! [`Host`] and [`World`] are implemented where CPython is met; nothing here knows of it. Objects are named by
//! [`Object`], which is cheap to copy. [`Host`] tells facts that cannot change and computes; [`World`] reads what another
//! call may find changed, and is asked in one place only, which records what was seen.
//!
//! Invariants: the host keeps every object it has named alive for as long as the capture runs, and tells objects apart
//! by identity; no function here runs the user's code unless its text says so.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pyrite_ir::{Graph, Meta, NodeId, Value as GraphValue};

use crate::code::Code;

/// A Python object, by its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object(pub usize);

/// What kind of object it is: what capture treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool,
    /// An `int`.
    Int,
    /// Another immutable value that is compared by its contents: float, complex, str, bytes, Ellipsis, ranges, slices of
    /// plain values, data types, devices, members of enumerations.
    Plain,
    /// Exactly a `tuple`.
    Tuple,
    /// A tuple with named fields, `torch.Size`, or a sequence that torch returns.
    NamedTuple,
    /// A `list`, or one of a class that leaves to `list` what Python does with lists on its own.
    List,
    /// Exactly a `collections.deque`.
    Deque,
    /// A `dict`, or one of a class that leaves to `dict` what Python does with dictionaries on its own.
    Dict,
    /// Exactly a `set`.
    Set,
    /// A `frozenset` of plain values.
    FrozenSet,
    /// A `types.MappingProxyType`: a dictionary that somebody else may change.
    Proxy,
    /// A tensor that capture understands.
    Tensor,
    /// A tensor that it does not: another device, layout or class.
    TensorSubclass,
    /// Exactly a `numpy.ndarray` whose memory a tensor can share.
    Array,
    /// A function written in Python.
    Function,
    /// A function bound to an object.
    Method,
    /// A class.
    Class,
    /// A module of Python, not of torch.
    Module,
    /// A function or method written in C, or a slot.
    Builtin,
    /// `functools.partial`.
    Partial,
    /// An iterator over a list, tuple, range or the like.
    Iterator,
    /// `itertools.count` of integers.
    Count,
    /// A generator.
    Generator,
    /// A module of torch.
    TorchModule,
    /// An object of a class that keeps its attributes in a `__dict__` or in slots.
    Instance,
    /// An exception of a class of Python's own.
    Exception,
    /// Anything else: it can be passed on, not looked into.
    Opaque,
}

/// What an attribute that a class has is to the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A function: instances get a method.
    Function,
    /// A property with a getter.
    Property(Object),
    /// A `classmethod` around this function.
    ClassMethod(Object),
    /// A `staticmethod` around this.
    StaticMethod(Object),
    /// A slot of the class, or an attribute that C code computes, such as `__dict__`; reading it runs no Python.
    Slot,
    /// A method written in C.
    BuiltinMethod,
    /// A `functools.cached_property` of this function.
    CachedProperty(Object),
    /// An object whose class says in Python what instances get.
    Custom(Precedence),
    /// Another descriptor; reading it may run anything.
    Other,
    /// No descriptor: a value that instances see as it is.
    Value,
}

/// What the patterns of `match` take the instances of a class for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// `case [first, *rest]`.
    Sequence,
    /// `case {"key": value}`.
    Mapping,
}

/// Who is asked first for an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The descriptor: it can be set too.
    Descriptor,
    /// The instance.
    Instance,
}

/// An exception that an operation on real objects raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised(pub Object);

/// The parts of a function written in Python.
#[derive(Clone, Debug)]
pub struct FunctionParts {
    /// Its code.
    pub code: Object,
    /// Its globals.
    pub globals: Object,
    /// Its builtins.
    pub builtins: Object,
    /// Defaults of the last positional parameters.
    pub defaults: Vec<Object>,
    /// Defaults of keyword-only parameters.
    pub keyword_defaults: Vec<(Object, Object)>,
    /// Its cells.
    pub closure: Vec<Object>,
}

/// What is known of a tensor.
#[derive(Clone, Debug)]
pub struct TensorFacts {
    /// Shape, stride and the like. Tensors that share memory have the same storage.
    pub meta: Meta,
    /// Whether it is an `nn.Parameter`.
    pub parameter: bool,
    /// The dimensions that the user marked as changing (`torch._dynamo.mark_dynamic`).
    pub marked_dynamic: Vec<usize>,
    /// The dimensions that the user marked as never changing (`torch._dynamo.mark_static`).
    pub marked_static: Vec<usize>,
    /// Dimensions that the user has marked to differ, and that must not become constants.
    pub never_static: Vec<usize>,
}

/// What torch's state is outside of the frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlobalState {
    /// Whether gradients are recorded.
    pub grad: bool,
    /// Whether inference mode is on.
    pub inference: bool,
    /// The type of autocast on the CPU, if it is on.
    pub autocast: Option<pyrite_tensor::DType>,
    /// The type of new tensors.
    pub default_dtype: pyrite_tensor::DType,
}

/// Whether changes of what a class holds can be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// It cannot be changed.
    Never,
    /// A change gives it another version than this one.
    Version(u32),
    /// It says nothing of its changes.
    Unnoticed,
}

/// What a call gives, told from metadata alone.
#[derive(Clone, Debug)]
pub enum Given {
    /// A tensor.
    Tensor(Box<Meta>),
    /// A tuple of tensors, of a class where that is not `tuple`.
    Tuple(Vec<GraphValue<Meta>>, Option<Object>),
    /// A list of tensors.
    List(Vec<GraphValue<Meta>>),
    /// `None`, of an operator that is called for what it writes.
    Nothing,
}

/// A result that is an object, or the exception that was raised instead.
pub type Made = Result<Object, Raised>;

/// Facts that cannot change, and computation; see the module's text.
pub trait Host {
    /// What kind of object it is.
    fn kind(&self, object: Object) -> Kind;
    /// Its class.
    fn class_of(&self, object: Object) -> Object;
    /// A short text for messages; runs no user code.
    fn describe(&self, object: Object) -> String;
    /// The class's qualified name with its module.
    fn class_name(&self, class: Object) -> String;

    /// `None`.
    fn none(&self) -> Object;
    /// A bool.
    fn bool(&self, value: bool) -> Object;
    /// An integer.
    fn int(&self, value: i64) -> Object;
    /// A text.
    fn str(&self, value: &str) -> Object;
    /// A tuple.
    fn tuple(&self, items: &[Object]) -> Object;
    /// A slice.
    fn slice(&self, parts: [Object; 3]) -> Object;
    /// A member of a module, such as `builtins.ValueError`.
    fn member(&self, module: &str, name: &str) -> Option<Object>;
    /// Whether something that `torch.Tensor` holds is torch's own, and not put there by a program.
    fn is_by_torch(&self, held: Object) -> bool;
    /// The function of `pyrite._polyfills` that stands for a builtin.
    fn polyfill(&self, name: &str) -> Option<Object>;

    /// The value of an integer that fits.
    fn as_int(&self, object: Object) -> Option<i64>;
    /// The text of a `str`.
    fn as_str(&self, object: Object) -> Option<Rc<str>>;
    /// Whether a plain value counts as true.
    fn is_true(&self, object: Object) -> Result<bool, Raised>;
    /// The value as an argument in a graph: numbers, texts, data types, devices and the like.
    fn to_graph(&self, object: Object) -> Option<GraphValue<NodeId>>;
    /// The object that a value without tensors is in Python.
    fn object_of(&self, value: &GraphValue<NodeId>) -> Option<Object>;

    /// Calls a function on real objects. Only for functions that have no effect.
    fn call(&self, function: Object, args: &[Object], kwargs: &[(Object, Object)]) -> Made;
    /// `operator.name(args…)` on plain values.
    fn operator(&self, name: &str, args: &[Object]) -> Made;
    /// What an attribute that was found in a class is.
    fn descriptor(&self, attribute: Object) -> Descriptor;
    /// The exception that a function or method written in C raises for so many arguments besides its object, and keywords of
    /// these names, whatever they are; `None` where it takes them, or does not say.
    fn refusal(&self, function: Object, count: usize, keywords: &[Rc<str>]) -> Option<Raised>;
    /// What the patterns of `match` take the instances of a class for.
    fn collection(&self, class: Object) -> Option<Collection>;
    /// Whether instances of a class have attributes of their own in every thread.
    fn is_by_thread(&self, class: Object) -> bool;
    /// The names of a named tuple's fields.
    fn fields(&self, class: Object) -> Vec<Rc<str>>;
    /// One representative for all keys that Python takes for equal; `None` when it cannot be hashed without user code.
    fn intern(&self, key: Object) -> Option<Object>;
    /// Whether an object is hashed and compared without user code.
    fn hashes_plainly(&self, object: Object) -> bool;
    /// Whether instances of a class of the user's are lists, dictionaries or sets, with methods of its own or not.
    fn container_kind(&self, class: Object) -> Option<Kind>;
    /// Whether instances of a class of the user's are numbers, texts or frozen sets that Python itself computes with.
    fn is_value_class(&self, class: Object) -> bool;
    /// Whether a class is another, or one of its bases is; nobody is asked.
    fn derives(&self, class: Object, base: Object) -> bool;
    /// A code object, decoded.
    fn code(&self, code: Object) -> Option<Rc<Code>>;
    /// The object that a C function belongs to: the receiver of a bound method, a module; `None` when there is none.
    fn builtin_receiver(&self, function: Object) -> Option<Object>;

    /// The name by which a function is known: `torch.nn.functional.gelu`, `builtins.len`, `math.sqrt`, `torch.Tensor.add`.
    fn qualified_name(&self, function: Object) -> Option<Arc<str>>;
    /// Whether calls into a function written in Python may be followed; else the reason why not.
    fn may_inline(&self, code: &Code) -> Result<(), String>;
    /// The name under which calls of a function written in Python are single nodes of graphs, where the user has said so.
    fn opaque_name(&self, function: Object) -> Option<Arc<str>>;
    /// Lets calls of an object be single nodes of graphs, under the name that is returned.
    fn make_opaque(&self, function: Object) -> Arc<str>;
    /// What a call of a function would give, by calling it on tensors without data; else the reason why that is not known.
    /// Arguments that name a nested graph are functions that run it.
    fn describe_call(
        &self,
        function: Object,
        args: &[GraphValue<Meta>],
        kwargs: &[(String, GraphValue<Meta>)],
        nested: &BTreeMap<Arc<str>, Graph>,
    ) -> Result<Given, String>;
    /// The exception with which torch's parser refuses arguments of a function written in C; nothing when it takes them.
    fn misparse_of(
        &self,
        function: Object,
        args: &[GraphValue<Meta>],
        kwargs: &[(String, GraphValue<Meta>)],
    ) -> Option<Raised> {
        let _ = (function, args, kwargs);
        None
    }
    /// The exception of Python's own that a function of torch raises for arguments of these shapes and types, whatever their
    /// data; nothing when it raises none.
    fn refusal_of(
        &self,
        function: Object,
        args: &[GraphValue<Meta>],
        kwargs: &[(String, GraphValue<Meta>)],
    ) -> Option<Raised> {
        let _ = (function, args, kwargs);
        None
    }
}

/// Reads of what another call may find changed; see the module's text.
pub trait World: Host {
    /// Reads an attribute, which may run a property: only for objects whose attributes are known to be harmless.
    fn attribute(&self, object: Object, name: &str) -> Made;
    /// What a class has under a name, its bases included, unbound.
    fn class_attribute(&self, class: Object, name: &str) -> Option<Object>;
    /// As `super(class, object_of).name` looks it up: in the bases of `object_of` after `class`.
    fn class_attribute_after(&self, object_of: Object, class: Object, name: &str) -> Option<Object>;
    /// Whether changes of what a class holds can be noticed.
    fn changes(&self, class: Object) -> Changes;
    /// Whether a class is another, derived from it, or registered with it.
    fn is_subclass(&self, class: Object, base: Object) -> bool;
    /// The `__dict__` of an instance.
    fn instance_dict(&self, object: Object) -> Option<Object>;
    /// An item of a dictionary with a text as key.
    fn dict_item(&self, dict: Object, name: &str) -> Option<Object>;
    /// The entries of a dictionary in order.
    fn entries(&self, dict: Object) -> Vec<(Object, Object)>;
    /// The dictionary behind a `types.MappingProxyType`; nothing when it shows another mapping.
    fn proxied(&self, proxy: Object) -> Option<Object>;
    /// The items of a list, tuple, named tuple, set.
    fn items(&self, object: Object) -> Vec<Object>;
    /// The lists that an iterator of Python's own goes over; nothing where it goes over a dictionary.
    fn iterated(&self, iterator: Object) -> Option<Vec<Object>>;
    /// The parts of a function.
    fn function(&self, function: Object) -> Option<FunctionParts>;
    /// The function and the object of a method.
    fn method(&self, method: Object) -> Option<(Object, Object)>;
    /// The function, arguments and keyword arguments of a `functools.partial`.
    fn partial(&self, partial: Object) -> Option<(Object, Vec<Object>, Vec<(Object, Object)>)>;
    /// What a cell holds.
    fn cell_contents(&self, cell: Object) -> Option<Object>;
    /// What is known of a tensor.
    fn tensor(&self, object: Object) -> Option<TensorFacts>;
    /// What a context variable holds, if anything.
    fn context_variable(&self, variable: Object) -> Option<Object>;
    /// torch's state.
    fn global_state(&self) -> GlobalState;
}
