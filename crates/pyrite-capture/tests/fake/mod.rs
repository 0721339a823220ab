//! A Python of a few kinds of objects, without CPython: what tests of the evaluator capture frames in.
//!
//! Objects stand in a table and are named by their place in it. Classes are told apart by their names; `builtins` has
//! those of Python's own values and exceptions. Nothing is ever changed: a capture notes what it would do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pyrite_capture::code::{FUNCTION, Instruction};
use pyrite_capture::host::{
    Changes, Collection, Descriptor, FunctionParts, Given, GlobalState, Kind, Made, Raised, TensorFacts,
};
use pyrite_capture::opcode::{Op, Version};
use pyrite_capture::{Code, Entry, Host, Object, Plan, Settings, Skipped, World, capture};
use pyrite_ir::{Graph, Meta, NodeId, Value as GraphValue};
use pyrite_tensor::DType;

/// The exceptions that are known, each with its base.
const EXCEPTIONS: [(&str, &str); 8] = [
    ("BaseException", "object"),
    ("Exception", "BaseException"),
    ("ValueError", "Exception"),
    ("TypeError", "Exception"),
    ("NameError", "Exception"),
    ("LookupError", "Exception"),
    ("IndexError", "LookupError"),
    ("KeyError", "LookupError"),
];

/// An object.
#[derive(Clone, Debug)]
enum Thing {
    None,
    Bool(bool),
    Int(i64),
    Text(Rc<str>),
    Tuple(Vec<Object>),
    List(Vec<Object>),
    Dict(Vec<(Object, Object)>),
    Slice,
    Class(Rc<str>),
    Code(Rc<Code>),
    Function(FunctionParts),
    Builtin(Arc<str>),
    Cell(Option<Object>),
    Tensor(Meta),
    Opaque,
}

/// See the module's text.
pub struct FakePython {
    things: RefCell<Vec<Thing>>,
    classes: RefCell<BTreeMap<String, Object>>,
    globals: RefCell<Vec<(Object, Object)>>,
    globals_object: Object,
    builtins_object: Object,
}

impl FakePython {
    /// A Python with `len` and no globals.
    pub fn new() -> Self {
        let things = vec![Thing::None, Thing::Bool(false), Thing::Bool(true), Thing::Dict(vec![]), Thing::Dict(vec![])];
        let python = Self {
            things: RefCell::new(things),
            classes: RefCell::default(),
            globals: RefCell::default(),
            globals_object: Object(3),
            builtins_object: Object(4),
        };
        let length = python.add(Thing::Builtin("builtins.len".into()));
        python.things.borrow_mut()[4] = Thing::Dict(vec![(python.text("len"), length)]);
        python
    }

    fn add(&self, thing: Thing) -> Object {
        let mut things = self.things.borrow_mut();
        things.push(thing);
        Object(things.len() - 1)
    }

    fn thing(&self, object: Object) -> Thing {
        self.things.borrow()[object.0].clone()
    }

    fn class(&self, name: &str) -> Object {
        if let Some(known) = self.classes.borrow().get(name) {
            return *known;
        }
        let made = self.add(Thing::Class(name.into()));
        self.classes.borrow_mut().insert(name.to_owned(), made);
        made
    }

    /// An integer.
    pub fn number(&self, value: i64) -> Object {
        self.add(Thing::Int(value))
    }

    /// A text.
    pub fn text(&self, value: &str) -> Object {
        self.add(Thing::Text(value.into()))
    }

    /// A list.
    pub fn list(&self, items: &[Object]) -> Object {
        self.add(Thing::List(items.to_vec()))
    }

    /// A dictionary.
    pub fn dict(&self, pairs: &[(Object, Object)]) -> Object {
        self.add(Thing::Dict(pairs.to_vec()))
    }

    /// A tensor of single precision.
    pub fn tensor(&self, sizes: &[i64]) -> Object {
        let sizes: Vec<_> = sizes.iter().map(|size| (*size).into()).collect();
        self.add(Thing::Tensor(Meta::contiguous(&sizes, DType::F32)))
    }

    /// An object that can only be passed on.
    pub fn opaque(&self) -> Object {
        self.add(Thing::Opaque)
    }

    /// A cell.
    pub fn cell(&self, contents: Object) -> Object {
        self.add(Thing::Cell(Some(contents)))
    }

    /// A function of some code.
    pub fn function(&self, code: Code) -> Object {
        let code = self.add(Thing::Code(Rc::new(code)));
        self.add(Thing::Function(FunctionParts {
            code,
            globals: self.globals_object,
            builtins: self.builtins_object,
            defaults: Vec::new(),
            keyword_defaults: Vec::new(),
            closure: Vec::new(),
        }))
    }

    /// Sets a global.
    pub fn set_global(&self, name: &str, value: Object) {
        let name = self.text(name);
        self.globals.borrow_mut().push((name, value));
        self.things.borrow_mut()[self.globals_object.0] = Thing::Dict(self.globals.borrow().clone());
    }

    /// Captures a call of some code.
    pub fn capture(&self, code: Code, arguments: &[Object], settings: &Settings) -> Result<Plan, Skipped> {
        self.capture_closed(code, arguments, &[], settings)
    }

    /// Captures a call of some code whose function has these cells.
    pub fn capture_closed(
        &self,
        code: Code,
        arguments: &[Object],
        closure: &[Object],
        settings: &Settings,
    ) -> Result<Plan, Skipped> {
        let mut slots: Vec<Option<Object>> = arguments.iter().copied().map(Some).collect();
        slots.resize(code.slot_count(), None);
        let entry = Entry {
            code: Rc::new(code),
            closure: closure.to_vec(),
            globals: self.globals_object,
            builtins: self.builtins_object,
            slots,
        };
        capture(self, &entry, settings)
    }

    fn raised(&self, class: &str) -> Raised {
        Raised(self.class(class))
    }

    fn equal(&self, left: Object, right: Object) -> bool {
        match (self.thing(left), self.thing(right)) {
            (Thing::Int(left), Thing::Int(right)) => left == right,
            (Thing::Text(left), Thing::Text(right)) => left == right,
            _ => left == right,
        }
    }
}

impl Host for FakePython {
    fn kind(&self, object: Object) -> Kind {
        match self.thing(object) {
            Thing::None => Kind::None,
            Thing::Bool(_) => Kind::Bool,
            Thing::Int(_) => Kind::Int,
            Thing::Text(_) | Thing::Slice => Kind::Plain,
            Thing::Tuple(_) => Kind::Tuple,
            Thing::List(_) => Kind::List,
            Thing::Dict(_) => Kind::Dict,
            Thing::Class(_) => Kind::Class,
            Thing::Function(_) => Kind::Function,
            Thing::Builtin(_) => Kind::Builtin,
            Thing::Tensor(_) => Kind::Tensor,
            Thing::Code(_) | Thing::Cell(_) | Thing::Opaque => Kind::Opaque,
        }
    }

    fn class_of(&self, object: Object) -> Object {
        self.class(match self.thing(object) {
            Thing::None => "builtins.NoneType",
            Thing::Bool(_) => "builtins.bool",
            Thing::Int(_) => "builtins.int",
            Thing::Text(_) => "builtins.str",
            Thing::Slice => "builtins.slice",
            Thing::Tuple(_) => "builtins.tuple",
            Thing::List(_) => "builtins.list",
            Thing::Dict(_) => "builtins.dict",
            Thing::Class(_) => "builtins.type",
            Thing::Function(_) => "builtins.function",
            Thing::Builtin(_) => "builtins.builtin_function_or_method",
            Thing::Tensor(_) => "torch.Tensor",
            Thing::Code(_) => "builtins.code",
            Thing::Cell(_) => "builtins.cell",
            Thing::Opaque => "elsewhere.Opaque",
        })
    }

    fn describe(&self, object: Object) -> String {
        format!("{:?}", self.thing(object))
    }

    fn class_name(&self, class: Object) -> String {
        match self.thing(class) {
            Thing::Class(name) => name.to_string(),
            other => format!("{other:?}"),
        }
    }

    fn none(&self) -> Object {
        Object(0)
    }

    fn bool(&self, value: bool) -> Object {
        Object(1 + usize::from(value))
    }

    fn int(&self, value: i64) -> Object {
        self.number(value)
    }

    fn str(&self, value: &str) -> Object {
        self.text(value)
    }

    fn tuple(&self, items: &[Object]) -> Object {
        self.add(Thing::Tuple(items.to_vec()))
    }

    fn slice(&self, _: [Object; 3]) -> Object {
        self.add(Thing::Slice)
    }

    fn member(&self, module: &str, name: &str) -> Option<Object> {
        if (module, name) == ("sys", "exception") {
            return Some(self.add(Thing::Builtin("sys.exception".into())));
        }
        let known = ["object", "type", "list", "dict", "set", "tuple", "str", "int", "bool", "float"];
        let exists = known.contains(&name) || EXCEPTIONS.iter().any(|(exception, _)| *exception == name);
        (module == "builtins" && exists).then(|| self.class(&format!("builtins.{name}")))
    }

    fn is_by_torch(&self, _: Object) -> bool {
        true
    }

    fn polyfill(&self, _: &str) -> Option<Object> {
        None
    }

    fn as_int(&self, object: Object) -> Option<i64> {
        match self.thing(object) {
            Thing::Int(value) => Some(value),
            Thing::Bool(value) => Some(value.into()),
            _ => None,
        }
    }

    fn as_str(&self, object: Object) -> Option<Rc<str>> {
        match self.thing(object) {
            Thing::Text(text) => Some(text),
            _ => None,
        }
    }

    fn is_true(&self, object: Object) -> Result<bool, Raised> {
        Ok(match self.thing(object) {
            Thing::None => false,
            Thing::Bool(value) => value,
            Thing::Int(value) => value != 0,
            Thing::Text(text) => !text.is_empty(),
            _ => true,
        })
    }

    fn to_graph(&self, object: Object) -> Option<GraphValue<NodeId>> {
        match self.thing(object) {
            Thing::None => Some(GraphValue::None),
            Thing::Bool(value) => Some(GraphValue::Bool(value)),
            Thing::Int(value) => Some(GraphValue::Int(value.into())),
            Thing::Text(text) => Some(GraphValue::Str((&*text).into())),
            _ => None,
        }
    }

    fn object_of(&self, value: &GraphValue<NodeId>) -> Option<Object> {
        match value {
            GraphValue::None => Some(self.none()),
            GraphValue::Bool(value) => Some(self.bool(*value)),
            GraphValue::Int(value) => Some(self.number(value.as_int()?)),
            GraphValue::Str(text) => Some(self.text(text)),
            _ => None,
        }
    }

    fn call(&self, function: Object, _: &[Object], _: &[(Object, Object)]) -> Made {
        match self.thing(function) {
            // Nothing is being handled where a frame begins.
            Thing::Builtin(name) if &*name == "sys.exception" => Ok(self.none()),
            _ => Err(self.raised("builtins.TypeError")),
        }
    }

    fn operator(&self, name: &str, args: &[Object]) -> Made {
        let numbers: Option<Vec<i64>> = args.iter().map(|arg| self.as_int(*arg)).collect();
        let Some([left, right]) = numbers.and_then(|numbers| <[i64; 2]>::try_from(numbers).ok()) else {
            return Err(self.raised("builtins.TypeError"));
        };
        Ok(match name {
            "add" => self.number(left + right),
            "sub" => self.number(left - right),
            "mul" => self.number(left * right),
            "lt" => self.bool(left < right),
            "le" => self.bool(left <= right),
            "eq" => self.bool(left == right),
            "ne" => self.bool(left != right),
            "gt" => self.bool(left > right),
            "ge" => self.bool(left >= right),
            _ => return Err(self.raised("builtins.TypeError")),
        })
    }

    fn descriptor(&self, _: Object) -> Descriptor {
        Descriptor::Value
    }

    fn refusal(&self, _function: Object, _count: usize, _keywords: &[Rc<str>]) -> Option<Raised> {
        None
    }

    fn collection(&self, _class: Object) -> Option<Collection> {
        None
    }

    fn is_by_thread(&self, _class: Object) -> bool {
        false
    }

    fn fields(&self, _: Object) -> Vec<Rc<str>> {
        Vec::new()
    }

    fn intern(&self, key: Object) -> Option<Object> {
        let count = self.things.borrow().len();
        (0..count).map(Object).find(|other| self.equal(*other, key))
    }

    fn hashes_plainly(&self, object: Object) -> bool {
        matches!(self.thing(object), Thing::None | Thing::Bool(_) | Thing::Int(_) | Thing::Text(_))
    }

    fn container_kind(&self, _: Object) -> Option<Kind> {
        None
    }

    fn is_value_class(&self, _: Object) -> bool {
        false
    }

    fn derives(&self, class: Object, base: Object) -> bool {
        let (mut name, wanted) = (self.class_name(class), self.class_name(base));
        loop {
            if name == wanted {
                return true;
            }
            let Some((_, parent)) = EXCEPTIONS.iter().find(|(exception, _)| name == format!("builtins.{exception}"))
            else {
                return wanted == "builtins.object";
            };
            name = format!("builtins.{parent}");
        }
    }

    fn code(&self, code: Object) -> Option<Rc<Code>> {
        match self.thing(code) {
            Thing::Code(code) => Some(code),
            _ => None,
        }
    }

    fn builtin_receiver(&self, _: Object) -> Option<Object> {
        None
    }

    fn qualified_name(&self, function: Object) -> Option<Arc<str>> {
        match self.thing(function) {
            Thing::Builtin(name) => Some(name),
            _ => None,
        }
    }

    fn may_inline(&self, _: &Code) -> Result<(), String> {
        Ok(())
    }

    fn opaque_name(&self, _: Object) -> Option<Arc<str>> {
        None
    }

    fn make_opaque(&self, _: Object) -> Arc<str> {
        "elsewhere.opaque".into()
    }

    fn describe_call(
        &self,
        _: Object,
        _: &[GraphValue<Meta>],
        _: &[(String, GraphValue<Meta>)],
        _: &BTreeMap<Arc<str>, Graph>,
    ) -> Result<Given, String> {
        Err("nothing is known of it".to_owned())
    }
}

impl World for FakePython {
    fn attribute(&self, _: Object, _: &str) -> Made {
        Err(self.raised("builtins.TypeError"))
    }

    fn class_attribute(&self, _: Object, _: &str) -> Option<Object> {
        None
    }

    fn class_attribute_after(&self, _: Object, _: Object, _: &str) -> Option<Object> {
        None
    }

    fn changes(&self, _: Object) -> Changes {
        Changes::Never
    }

    fn is_subclass(&self, class: Object, base: Object) -> bool {
        self.derives(class, base)
    }

    fn instance_dict(&self, _: Object) -> Option<Object> {
        None
    }

    fn dict_item(&self, dict: Object, name: &str) -> Option<Object> {
        let entries = self.entries(dict);
        entries.into_iter().find(|(key, _)| self.as_str(*key).as_deref() == Some(name)).map(|(_, value)| value)
    }

    fn entries(&self, dict: Object) -> Vec<(Object, Object)> {
        match self.thing(dict) {
            Thing::Dict(pairs) => pairs,
            _ => Vec::new(),
        }
    }

    fn proxied(&self, _: Object) -> Option<Object> {
        None
    }

    fn items(&self, object: Object) -> Vec<Object> {
        match self.thing(object) {
            Thing::List(items) | Thing::Tuple(items) => items,
            _ => Vec::new(),
        }
    }

    fn iterated(&self, _: Object) -> Option<Vec<Object>> {
        None
    }

    fn function(&self, function: Object) -> Option<FunctionParts> {
        match self.thing(function) {
            Thing::Function(parts) => Some(parts),
            _ => None,
        }
    }

    fn method(&self, _: Object) -> Option<(Object, Object)> {
        None
    }

    fn partial(&self, _: Object) -> Option<(Object, Vec<Object>, Vec<(Object, Object)>)> {
        None
    }

    fn cell_contents(&self, cell: Object) -> Option<Object> {
        match self.thing(cell) {
            Thing::Cell(contents) => contents,
            _ => None,
        }
    }

    fn tensor(&self, object: Object) -> Option<TensorFacts> {
        match self.thing(object) {
            Thing::Tensor(meta) => Some(TensorFacts {
                meta,
                parameter: false,
                marked_dynamic: Vec::new(),
                marked_static: Vec::new(),
                never_static: Vec::new(),
            }),
            _ => None,
        }
    }

    fn context_variable(&self, _: Object) -> Option<Object> {
        None
    }

    fn global_state(&self) -> GlobalState {
        GlobalState { grad: true, inference: false, autocast: None, default_dtype: DType::F32 }
    }
}

/// Code of a function with these parameters: instructions, constants and names.
pub fn code(parameters: &[&str], consts: &[Object], names: &[&str], instructions: Vec<Instruction>) -> Code {
    Code {
        version: Version::V311,
        object: Object(usize::MAX),
        instructions,
        protected: Vec::new(),
        consts: consts.to_vec(),
        names: names.iter().map(|name| (*name).into()).collect(),
        locals: parameters.iter().map(|name| (*name).into()).collect(),
        cells: Vec::new(),
        free: Vec::new(),
        positional: parameters.len(),
        positional_only: 0,
        keyword_only: 0,
        flags: FUNCTION,
        stack_size: 8,
        first_line: 1,
        name: "f".into(),
        qualified_name: "f".into(),
        file: "program.py".into(),
    }
}

/// An instruction that does not jump.
pub fn i(op: Op, arg: u32) -> Instruction {
    Instruction::new(op, arg, 1)
}
