//! CPython as the capture sees it.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyString, PyTuple, PyType};
use pyrite_capture::code::{Code, RawCode, decode};
use pyrite_capture::host::{Collection, Descriptor, Given, GlobalState, Kind, Made, Object, Precedence, Raised};
use pyrite_capture::opcode::Version;
use pyrite_capture::{Host, World};
use pyrite_ir::{Device, Graph, Meta, NodeId, StorageId, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{Complex64, DType, MemoryFormat};
use rustc_hash::FxHashMap;

use super::kinds::value_base;
use super::library::{Library, library};
use super::names::{DTYPES, dtype_name, dtype_named, format_name};
use super::objects::{Keep, bound};
use super::rules::{allowed_name, is_skipped};
use crate::modules::import;
use crate::torch_interpreter::TorchProgram;

pub type Raw = *mut ffi::PyObject;

/// See [`Host`].
pub struct Python3<'py> {
    pub(super) py: Python<'py>,
    pub(super) keep: Rc<Keep>,
    pub(super) library: &'static Library,
    pub(super) members: RefCell<FxHashMap<(String, String), Option<Object>>>,
    pub(super) codes: RefCell<FxHashMap<usize, Option<Rc<Code>>>>,
    pub(super) storages: RefCell<FxHashMap<usize, StorageId>>,
    pub(super) interned: Bound<'py, PyDict>,
    pub(super) state: GlobalState,
}

impl<'py> Python3<'py> {
    /// A host that keeps what it names in `keep`.
    pub fn new(py: Python<'py>, keep: Rc<Keep>) -> PyResult<Self> {
        Ok(Self {
            py,
            keep,
            library: library(py)?,
            members: RefCell::default(),
            codes: RefCell::default(),
            storages: RefCell::default(),
            interned: PyDict::new(py),
            state: super::store::global_state(py)?,
        })
    }

    pub(super) fn bound(&self, object: Object) -> Bound<'py, PyAny> {
        bound(self.py, object)
    }

    pub(super) fn keep(&self, object: &Bound<'py, PyAny>) -> Object {
        self.keep.keep(object)
    }

    pub(super) fn made(&self, result: PyResult<Bound<'py, PyAny>>) -> Made {
        match result {
            Ok(object) => Ok(self.keep(&object)),
            Err(error) => Err(Raised(self.keep(error.value(self.py).as_any()))),
        }
    }

    /// A value with tensors that have no data.
    fn without_data(&self, value: &Value<Meta>, nested: &BTreeMap<Arc<str>, Graph>) -> PyResult<Bound<'py, PyAny>> {
        let unknown = || PyTypeError::new_err("an argument whose sizes are symbols, or that is not a plain value");
        Ok(match value {
            Value::Tensor(meta) => {
                let numbers = |sizes: &[SymInt]| sizes.iter().map(SymInt::as_int).collect::<Option<Vec<i64>>>();
                let shape = numbers(&meta.shape).ok_or_else(unknown)?;
                let stride = numbers(&meta.stride).ok_or_else(unknown)?;
                let torch = self.library.torch.bind(self.py);
                let options = PyDict::new(self.py);
                options.set_item("dtype", torch.getattr(dtype_name(meta.dtype))?)?;
                options.set_item("device", "meta")?;
                torch.getattr("empty_strided")?.call((shape, stride), Some(&options))?
            }
            Value::List(items) => {
                let items = items.iter().map(|item| self.without_data(item, nested)).collect::<PyResult<Vec<_>>>()?;
                PyList::new(self.py, items)?.into_any()
            }
            Value::Graph(name) => {
                let graph = nested.get(name).ok_or_else(unknown)?;
                Bound::new(self.py, TorchProgram::new(self.py, graph)?)?.into_any()
            }
            plain => {
                let plain = plain.try_map(&mut |_: &Meta| Err(()));
                let object = plain.ok().and_then(|plain| self.object_of(&plain));
                self.bound(object.ok_or_else(unknown)?)
            }
        })
    }

    /// A value as torch's parser of arguments is shown it: tensors are replaced by ones that compute nothing.
    fn stood_in(&self, value: &Value<Meta>, stand_in: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match value {
            Value::Tensor(meta) => {
                let dtype = self.library.torch.bind(self.py).getattr(dtype_name(meta.dtype))?;
                stand_in.call1((dtype, meta.rank() == 0))
            }
            Value::List(items) => {
                let items = items.iter().map(|item| self.stood_in(item, stand_in)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(self.py, items)?.into_any())
            }
            plain => self.without_data(plain, &BTreeMap::new()),
        }
    }

    /// What a call on tensors without data has given.
    fn given(&self, given: &Bound<'py, PyAny>) -> PyResult<Given> {
        if let Some(meta) = self.meta_of(given)? {
            return Ok(Given::Tensor(Box::new(meta)));
        }
        let other = || PyTypeError::new_err("it returns a value that is not a tensor");
        let items = |given: &Bound<'py, PyAny>| -> PyResult<Vec<Value<Meta>>> {
            given.try_iter()?.map(|item| self.meta_of(&item?)?.map(Value::Tensor).ok_or_else(other)).collect()
        };
        if given.is_exact_instance_of::<PyList>() {
            return Ok(Given::List(items(given)?));
        }
        if !given.is_instance_of::<PyTuple>() {
            return Err(other());
        }
        let class = given.get_type();
        let class = (!given.is_exact_instance_of::<PyTuple>()).then(|| self.keep(class.as_any()));
        // Tensors may stand in tuples inside of it, as the states of recurrent networks do.
        let nested = given.try_iter()?.map(|item| {
            let item = item?;
            match self.meta_of(&item)? {
                Some(meta) => Ok(Value::Tensor(meta)),
                None if item.is_exact_instance_of::<PyTuple>() => items(&item).map(Value::List),
                None => Err(other()),
            }
        });
        Ok(Given::Tuple(nested.collect::<PyResult<_>>()?, class))
    }

    /// What is known of a tensor without data; nothing for other objects.
    fn meta_of(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<Meta>> {
        if !object.is_instance(self.library.tensor.bind(self.py))? {
            return Ok(None);
        }
        let numbers = |numbers: Vec<i64>| numbers.into_iter().map(SymInt::Int).collect::<pyrite_ir::SymDims>();
        let shape = numbers(object.getattr("shape")?.extract()?);
        let stride = numbers(object.call_method0("stride")?.extract()?);
        let dtype = object.getattr("dtype")?;
        let torch = self.library.torch.bind(self.py);
        let known = DTYPES.iter().find(|(_, name)| torch.getattr(*name).is_ok_and(|known| known.is(&dtype)));
        let (dtype, _) = known.ok_or_else(|| PyTypeError::new_err("a tensor of a type that Pyrite does not have"))?;
        Ok(Some(Meta::strided(&shape, &stride, *dtype)))
    }

    pub(super) fn objects(&self, items: Vec<Bound<'py, PyAny>>) -> Vec<Object> {
        items.iter().map(|item| self.keep(item)).collect()
    }

    fn decode(&self, code: &Bound<'py, PyAny>) -> PyResult<Option<Rc<Code>>> {
        decode_code(code, &self.keep)
    }
}

/// A code object, decoded; `None` when an instruction is unknown.
pub fn decode_code(code: &Bound<'_, PyAny>, keep: &Keep) -> PyResult<Option<Rc<Code>>> {
    let texts = |name: &str| -> PyResult<Vec<Rc<str>>> {
        let names: Vec<String> = code.getattr(name)?.extract()?;
        Ok(names.into_iter().map(Rc::from).collect())
    };
    let text = |name: &str| -> PyResult<Rc<str>> { Ok(Rc::from(code.getattr(name)?.extract::<String>()?)) };
    let number = |name: &str| -> PyResult<usize> { code.getattr(name)?.extract() };
    let mut lines = Vec::new();
    for range in code.call_method0("co_lines")?.try_iter()? {
        let (start, end, line): (u32, u32, Option<u32>) = range?.extract()?;
        lines.push((start, end, line.unwrap_or(0)));
    }
    let Some(version) = Version::of(code.py().version_info().minor) else { return Ok(None) };
    let raw = RawCode {
        version,
        code: code.getattr("co_code")?.extract()?,
        exceptions: code.getattr("co_exceptiontable")?.extract()?,
        lines,
    };
    let Some((instructions, protected)) = decode(&raw) else { return Ok(None) };
    let mut consts = Vec::new();
    for constant in code.getattr("co_consts")?.try_iter()? {
        consts.push(keep.keep(&constant?));
    }
    Ok(Some(Rc::new(Code {
        version,
        object: keep.keep(code),
        instructions,
        protected,
        consts,
        names: texts("co_names")?,
        locals: texts("co_varnames")?,
        cells: texts("co_cellvars")?,
        free: texts("co_freevars")?,
        positional: number("co_argcount")?,
        positional_only: number("co_posonlyargcount")?,
        keyword_only: number("co_kwonlyargcount")?,
        flags: code.getattr("co_flags")?.extract()?,
        stack_size: number("co_stacksize")?,
        first_line: code.getattr("co_firstlineno")?.extract()?,
        name: text("co_name")?,
        qualified_name: text("co_qualname")?,
        file: text("co_filename")?,
    })))
}

impl Host for Python3<'_> {
    fn kind(&self, object: Object) -> Kind {
        self.kind_of(&self.bound(object))
    }

    fn class_of(&self, object: Object) -> Object {
        self.keep(self.bound(object).get_type().as_any())
    }

    fn describe(&self, object: Object) -> String {
        let bound = self.bound(object);
        let named = |attribute: &str| bound.getattr(attribute).and_then(|name| name.extract::<String>());
        match self.kind_of(&bound) {
            Kind::None | Kind::Bool | Kind::Int | Kind::Plain => {
                let text = bound.repr().map(|text| text.to_string()).unwrap_or_default();
                text.chars().take(60).collect()
            }
            Kind::Function | Kind::Class | Kind::Builtin | Kind::Module => {
                if let Some(name) = self.qualified_name(object) {
                    return name.to_string();
                }
                let module = named("__module__").unwrap_or_default();
                let name = named("__qualname__").or_else(|_| named("__name__")).unwrap_or_else(|_| "?".to_owned());
                if module.is_empty() { name } else { format!("{module}.{name}") }
            }
            _ => format!("an object of {}", self.class_name(self.class_of(object))),
        }
    }

    fn class_name(&self, class: Object) -> String {
        let class = self.bound(class);
        let text = |name: &str| class.getattr(name).and_then(|text| text.extract::<String>()).unwrap_or_default();
        format!("{}.{}", text("__module__"), text("__qualname__"))
    }

    fn none(&self) -> Object {
        self.keep(self.py.None().bind(self.py))
    }

    fn bool(&self, value: bool) -> Object {
        self.keep(PyBool::new(self.py, value).as_any())
    }

    fn int(&self, value: i64) -> Object {
        self.keep(PyInt::new(self.py, value).as_any())
    }

    fn str(&self, value: &str) -> Object {
        self.keep(PyString::intern(self.py, value).as_any())
    }

    fn tuple(&self, items: &[Object]) -> Object {
        let items = items.iter().map(|item| self.bound(*item));
        let items: Vec<_> = items.collect();
        PyTuple::new(self.py, items).map_or_else(|_| self.none(), |tuple| self.keep(tuple.as_any()))
    }

    fn slice(&self, parts: [Object; 3]) -> Object {
        // SAFETY: the parts are live; the result is a new reference.
        let slice = unsafe {
            let made = ffi::PySlice_New(parts[0].0 as Raw, parts[1].0 as Raw, parts[2].0 as Raw);
            Bound::from_owned_ptr(self.py, made)
        };
        self.keep(&slice)
    }

    fn member(&self, module: &str, name: &str) -> Option<Object> {
        let key = (module.to_owned(), name.to_owned());
        if let Some(known) = self.members.borrow().get(&key) {
            return *known;
        }
        let found = import(self.py, module).and_then(|module| module.getattr(name)).ok();
        let found = found.map(|object| self.keep(&object));
        self.members.borrow_mut().insert(key, found);
        found
    }

    fn is_by_torch(&self, held: Object) -> bool {
        let function = match self.descriptor(held) {
            Descriptor::Function => held,
            Descriptor::Property(inner)
            | Descriptor::CachedProperty(inner)
            | Descriptor::ClassMethod(inner)
            | Descriptor::StaticMethod(inner) => inner,
            _ => return true,
        };
        // `__module__` is what `functools.wraps` copies; where a function reads its globals is not.
        let module = self.bound(function).getattr("__globals__").and_then(|globals| globals.get_item("__name__"));
        let module = module.and_then(|name| name.extract::<String>());
        module.map_or(true, |name| name == "torch" || name.starts_with("torch."))
    }

    fn polyfill(&self, name: &str) -> Option<Object> {
        if name.starts_with("numpy.") {
            let twin = import(self.py, "pyrite._arrays").and_then(|arrays| arrays.call_method1("twin", (name,)));
            return twin.ok().filter(|twin| !twin.is_none()).map(|twin| self.keep(&twin));
        }
        let table = self.library.polyfills.bind(self.py).getattr("TABLE").ok()?;
        let found = table.cast::<PyDict>().ok()?.get_item(name).ok()??;
        Some(self.keep(&found))
    }

    fn as_int(&self, object: Object) -> Option<i64> {
        let object = self.bound(object);
        match self.kind_of(&object) {
            Kind::Int | Kind::Bool => object.extract().ok(),
            Kind::Plain if object.hasattr("__index__").unwrap_or(false) => object.extract().ok(),
            _ => None,
        }
    }

    fn as_str(&self, object: Object) -> Option<Rc<str>> {
        let object = self.bound(object);
        let text = object.cast_exact::<PyString>().ok()?;
        text.to_str().ok().map(Rc::from)
    }

    fn is_true(&self, object: Object) -> Result<bool, Raised> {
        let is_true = self.bound(object).is_truthy();
        is_true.map_err(|error| Raised(self.keep(error.value(self.py).as_any())))
    }

    fn to_graph(&self, object: Object) -> Option<Value<NodeId>> {
        let object = self.bound(object);
        Some(match self.kind_of(&object) {
            Kind::None => Value::None,
            Kind::Bool => Value::Bool(object.extract().ok()?),
            Kind::Int => Value::Int(SymInt::Int(object.extract().ok()?)),
            Kind::Plain => return self.plain_to_graph(&object),
            // Torch takes classes of numbers for element types.
            Kind::Class if object.is(self.py.get_type::<PyInt>()) => Value::DType(DType::I64),
            Kind::Class if object.is(self.py.get_type::<PyFloat>()) => Value::DType(DType::F64),
            Kind::Class if object.is(self.py.get_type::<PyBool>()) => Value::DType(DType::Bool),
            Kind::Class if object.is(self.py.get_type::<PyComplex>()) => Value::DType(DType::C128),
            _ => return None,
        })
    }

    fn object_of(&self, value: &Value<NodeId>) -> Option<Object> {
        let torch = self.library.torch.bind(self.py);
        let made = match value {
            Value::None => return Some(self.none()),
            Value::Bool(value) => return Some(self.bool(*value)),
            Value::Int(value) => return Some(self.int(value.as_int()?)),
            Value::Float(value) => PyFloat::new(self.py, *value).into_any(),
            Value::Complex(value) => PyComplex::from_doubles(self.py, value.re, value.im).into_any(),
            Value::Str(value) => return Some(self.str(value)),
            Value::DType(dtype) => torch.getattr(dtype_name(*dtype)).ok()?,
            Value::Device(device) => torch.call_method1("device", (device.to_string(),)).ok()?,
            Value::Layout(name) => torch.getattr(&**name).ok()?,
            Value::MemoryFormat(format) => torch.getattr(format_name(*format)).ok()?,
            _ => return None,
        };
        Some(self.keep(&made))
    }

    fn call(&self, function: Object, args: &[Object], kwargs: &[(Object, Object)]) -> Made {
        let call = || {
            let args = PyTuple::new(self.py, args.iter().map(|arg| self.bound(*arg)).collect::<Vec<_>>())?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(self.bound(*key), self.bound(*value))?;
            }
            self.bound(function).call(args, Some(&named))
        };
        self.made(call())
    }

    fn operator(&self, name: &str, args: &[Object]) -> Made {
        let call = || {
            let args = PyTuple::new(self.py, args.iter().map(|arg| self.bound(*arg)).collect::<Vec<_>>())?;
            self.library.operator.bind(self.py).getattr(name)?.call1(args)
        };
        self.made(call())
    }

    fn descriptor(&self, attribute: Object) -> Descriptor {
        let object = self.bound(attribute);
        let class = object.get_type();
        // SAFETY: the object is live.
        if unsafe { ffi::PyFunction_Check(object.as_ptr()) } != 0 {
            return Descriptor::Function;
        }
        if self.is_property(&class) {
            return match object.getattr("fget") {
                Ok(getter) if !getter.is_none() => Descriptor::Property(self.keep(&getter)),
                _ => Descriptor::Other,
            };
        }
        let name = class.name().map(|name| name.to_string()).unwrap_or_default();
        let inner = |of: &Bound<'_, PyAny>| of.getattr("__func__").ok().map(|f| self.keep.keep(&f));
        match &*name {
            "classmethod" => return inner(&object).map_or(Descriptor::Other, Descriptor::ClassMethod),
            "cached_property" if class.is(self.library.cached_property.bind(self.py)) => {
                let function = object.getattr("func").map(|function| self.keep(&function));
                return function.map_or(Descriptor::Other, Descriptor::CachedProperty);
            }
            "staticmethod" => return inner(&object).map_or(Descriptor::Other, Descriptor::StaticMethod),
            _ => {}
        }
        // Methods of classes that Cython has compiled.
        if name == "cython_function_or_method" {
            return Descriptor::BuiltinMethod;
        }
        for (known, kind) in &self.library.descriptors {
            if class.is(known.bind(self.py)) {
                return if *kind == "slot" { Descriptor::Slot } else { Descriptor::BuiltinMethod };
            }
        }
        // SAFETY: the class is live.
        let (has_get, has_set) = unsafe {
            let class = &*class.as_type_ptr();
            (class.tp_descr_get.is_some(), class.tp_descr_set.is_some())
        };
        let class = self.keep(class.as_any());
        let in_python = |name: &str| {
            let found = self.class_attribute(class, name);
            // SAFETY: what a class has is live.
            found.is_some_and(|found| unsafe { ffi::PyFunction_Check(found.0 as Raw) } != 0)
        };
        if !has_get && !has_set {
            Descriptor::Value
        } else if in_python("__get__") && self.kind(attribute) == Kind::Instance {
            Descriptor::Custom(if has_set { Precedence::Descriptor } else { Precedence::Instance })
        } else {
            Descriptor::Other
        }
    }

    fn refusal(&self, function: Object, count: usize, keywords: &[Rc<str>]) -> Option<Raised> {
        let object = self.bound(function);
        let polyfills = self.library.polyfills.bind(self.py);
        let names = PyTuple::new(self.py, keywords.iter().map(|name| &**name)).ok()?;
        let accepts = if let Some(expected) = counted_arguments(&object) {
            count == expected && keywords.is_empty()
        } else {
            polyfills.call_method1("accepts", (&object, count, &names)).ok()?.is_truthy().ok()?
        };
        if accepts {
            return None;
        }
        self.made(polyfills.call_method1("call_with_nothing", (&object, count, &names))).err()
    }

    fn collection(&self, class: Object) -> Option<Collection> {
        const SEQUENCE: std::ffi::c_ulong = 1 << 5;
        const MAPPING: std::ffi::c_ulong = 1 << 6;
        // SAFETY: the class is live.
        let flags = unsafe { ffi::PyType_GetFlags(class.0 as *mut ffi::PyTypeObject) };
        match (flags & SEQUENCE != 0, flags & MAPPING != 0) {
            (true, _) => Some(Collection::Sequence),
            (_, true) => Some(Collection::Mapping),
            _ => None,
        }
    }

    fn is_by_thread(&self, class: Object) -> bool {
        self.derives(class, Object(self.library.thread_local.as_ptr() as usize))
    }

    fn fields(&self, class: Object) -> Vec<Rc<str>> {
        let class = self.bound(class);
        let names = class.getattr("_fields").or_else(|_| class.getattr("__match_args__"));
        let names = names.and_then(|names| names.extract::<Vec<String>>()).unwrap_or_default();
        names.into_iter().map(Rc::from).collect()
    }

    fn intern(&self, key: Object) -> Option<Object> {
        let key = self.bound(key);
        let known = self.interned.call_method1("setdefault", (&key, &key));
        known.ok().map(|known| self.keep(&known))
    }

    fn is_value_class(&self, class: Object) -> bool {
        value_base(self.py, class.0 as *mut ffi::PyTypeObject).is_some()
    }

    fn container_kind(&self, class: Object) -> Option<Kind> {
        self.container(class.0 as *mut ffi::PyTypeObject)
    }

    fn code(&self, code: Object) -> Option<Rc<Code>> {
        if let Some(known) = self.codes.borrow().get(&code.0) {
            return known.clone();
        }
        let decoded = self.decode(&self.bound(code)).ok().flatten();
        self.codes.borrow_mut().insert(code.0, decoded.clone());
        decoded
    }

    fn builtin_receiver(&self, function: Object) -> Option<Object> {
        let receiver = self.bound(function).getattr("__self__").ok()?;
        (!receiver.is_none()).then(|| self.keep(&receiver))
    }

    fn qualified_name(&self, function: Object) -> Option<Arc<str>> {
        if let Some(name) = self.library.names.get(&function.0) {
            return Some(name.clone());
        }
        let object = self.bound(function);
        let class = object.get_type();
        if class.is(self.library.operators.0.bind(self.py)) || class.is(self.library.operators.1.bind(self.py)) {
            return Some(format!("torch.ops.{}", object.str().ok()?).into());
        }
        None
    }

    fn may_inline(&self, code: &Code) -> Result<(), String> {
        let listed = || self.library.skipped.iter().any(|prefix| code.file.starts_with(&**prefix));
        if !is_skipped(&code.file) && !listed() {
            return Ok(());
        }
        Err(format!("a call of {} in {}, which is not followed", code.qualified_name, code.file))
    }

    fn opaque_name(&self, function: Object) -> Option<Arc<str>> {
        allowed_name(function.0)
    }

    fn make_opaque(&self, function: Object) -> Arc<str> {
        let object = self.bound(function);
        let name = object.getattr("__name__").and_then(|name| name.extract::<String>()).unwrap_or_default();
        super::rules::allow_function(&object, &format!("pyrite.opaque.{name}"));
        allowed_name(function.0).unwrap_or_else(|| name.into())
    }

    fn describe_call(
        &self,
        function: Object,
        args: &[Value<Meta>],
        kwargs: &[(String, Value<Meta>)],
        nested: &BTreeMap<Arc<str>, Graph>,
    ) -> Result<Given, String> {
        let describe = || -> PyResult<Given> {
            let args = args.iter().map(|arg| self.without_data(arg, nested)).collect::<PyResult<Vec<_>>>()?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(key, self.without_data(value, nested)?)?;
            }
            let helper = import(self.py, "pyrite._opaque")?;
            let args = PyTuple::new(self.py, args)?;
            let is_nested = args.iter().any(|arg| arg.is_instance_of::<TorchProgram>());
            let theirs = self.opaque_name(function).is_some() || self.is_custom(function);
            let describe = match (is_nested, theirs) {
                (true, _) => "describe_nested",
                (false, true) => "describe_allowed",
                (false, false) => "describe",
            };
            let given = helper.call_method1(describe, (self.bound(function), args, named))?;
            // What the user's own functions do besides is not known.
            if given.is_none() && self.is_custom(function) { Ok(Given::Nothing) } else { self.given(&given) }
        };
        describe().map_err(|error| error.to_string())
    }

    fn misparse_of(&self, function: Object, args: &[Value<Meta>], kwargs: &[(String, Value<Meta>)]) -> Option<Raised> {
        let ask = || -> PyResult<_> {
            let function = self.bound(function);
            let kind = function.get_type();
            if !matches!(&*kind.name()?.to_string_lossy(), "builtin_function_or_method" | "method_descriptor") {
                return Ok(None);
            }
            let shown = import(self.py, "pyrite._opaque")?.getattr("stand_in")?;
            let args = args.iter().map(|arg| self.stood_in(arg, &shown)).collect::<PyResult<Vec<_>>>()?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(key, self.stood_in(value, &shown)?)?;
            }
            let refused = function.call(PyTuple::new(self.py, args)?, Some(&named)).err();
            Ok(refused.filter(|error| error.is_instance_of::<PyTypeError>(self.py)))
        };
        let raised = ask().ok().flatten()?;
        raised.set_traceback(self.py, None);
        Some(Raised(self.keep(raised.value(self.py).as_any())))
    }

    fn refusal_of(&self, function: Object, args: &[Value<Meta>], kwargs: &[(String, Value<Meta>)]) -> Option<Raised> {
        let ask = || -> PyResult<_> {
            let nested = BTreeMap::new();
            let args = args.iter().map(|arg| self.without_data(arg, &nested)).collect::<PyResult<Vec<_>>>()?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(key, self.without_data(value, &nested)?)?;
            }
            let args = PyTuple::new(self.py, args)?;
            import(self.py, "pyrite._opaque")?.call_method1("refusal", (self.bound(function), args, named))
        };
        let raised = ask().ok().filter(|raised| !raised.is_none())?;
        Some(Raised(self.keep(&raised)))
    }

    fn hashes_plainly(&self, object: Object) -> bool {
        let bound = self.bound(object);
        // SAFETY: the classes are live.
        let (own, identity, heap) = unsafe {
            let class = bound.get_type().as_type_ptr();
            let heap = ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE != 0;
            let base = &raw const ffi::PyBaseObject_Type;
            let address = |function: Option<ffi::hashfunc>| function.map(|function| function as usize);
            let compares = |class: *const ffi::PyTypeObject| (*class).tp_richcompare.map(|function| function as usize);
            let identity = address((*class).tp_hash) == address((*base).tp_hash) && compares(class) == compares(base);
            ((*class).tp_hash, identity, heap)
        };
        if identity || bound.is_instance_of::<PyType>() {
            return true;
        }
        if let Ok(items) = bound.cast_exact::<PyTuple>() {
            return items.iter().all(|item| self.hashes_plainly(self.keep(&item)));
        }
        if let Ok(items) = bound.cast_exact::<PyFrozenSet>() {
            return items.iter().all(|item| self.hashes_plainly(self.keep(&item)));
        }
        let member = matches!(self.kind_of(&bound), Kind::Plain | Kind::Tensor | Kind::TorchModule);
        own.is_some() && (!heap || member)
    }

    fn derives(&self, class: Object, base: Object) -> bool {
        // SAFETY: both are live; anything that is not a class derives from nothing.
        unsafe {
            ffi::PyType_Check(class.0 as Raw) != 0
                && ffi::PyType_Check(base.0 as Raw) != 0
                && ffi::PyType_IsSubtype(class.0 as *mut ffi::PyTypeObject, base.0 as *mut ffi::PyTypeObject) != 0
        }
    }
}

impl Python3<'_> {
    fn is_numpy_scalar(&self, object: &Bound<'_, PyAny>) -> bool {
        let scalar = self.library.numpy_scalar.as_ref();
        scalar.is_some_and(|scalar| object.is_instance(scalar.bind(self.py)).unwrap_or(false))
    }

    /// Whether instances of a class are read and written as properties are: a derived class may do it in its own way.
    fn is_property(&self, class: &Bound<'_, PyType>) -> bool {
        let property = self.library.property.bind(self.py);
        let inherits = |name: &str| match (class.getattr(name), property.getattr(name)) {
            (Ok(own), Ok(usual)) => own.is(&usual),
            _ => false,
        };
        class.is(property)
            || (class.is_subclass(property).unwrap_or(false) && inherits("__get__") && inherits("__set__"))
    }

    fn plain_to_graph(&self, object: &Bound<'_, PyAny>) -> Option<Value<NodeId>> {
        let class = object.get_type();
        if object.is_instance_of::<PyFloat>() && !self.is_numpy_scalar(object) {
            return object.extract().ok().map(Value::Float);
        }
        // A member of an enumeration of numbers.
        if object.is_instance_of::<PyInt>() {
            return object.extract::<i64>().ok().map(Value::from);
        }
        if let Ok(text) = object.cast_exact::<PyString>() {
            return Some(Value::from(text.to_str().ok()?));
        }
        if let Ok(text) = object.cast::<PyString>()
            && value_base(self.py, class.as_type_ptr()).is_some()
        {
            return Some(Value::from(text.to_str().ok()?));
        }
        if object.is_exact_instance_of::<PyComplex>() {
            let part = |name: &str| object.getattr(name).ok()?.extract::<f64>().ok();
            return Some(Value::Complex(Complex64::new(part("real")?, part("imag")?)));
        }
        if self.is_numpy_scalar(object) {
            let item = object.call_method0("item").ok()?;
            return if item.is_exact_instance_of::<PyBool>() {
                item.extract().ok().map(Value::Bool)
            } else if item.is_exact_instance_of::<PyInt>() {
                item.extract::<i64>().ok().map(Value::from)
            } else {
                item.extract().ok().map(Value::Float)
            };
        }
        let name = class.name().ok()?.to_string();
        let text = object.str().ok()?.to_string();
        match &*name {
            "dtype" => dtype_named(text.strip_prefix("torch.")?).map(Value::DType),
            "device" => Some(Value::Device(Device::from_name(&text))),
            "layout" => Some(Value::Layout(text.strip_prefix("torch.")?.into())),
            "memory_format" => Some(Value::MemoryFormat(match text.strip_prefix("torch.")? {
                "contiguous_format" => MemoryFormat::Contiguous,
                "preserve_format" => MemoryFormat::Preserve,
                "channels_last" => MemoryFormat::ChannelsLast,
                "channels_last_3d" => MemoryFormat::ChannelsLast3d,
                _ => return None,
            })),
            _ => None,
        }
    }
}

/// How many arguments a function or method takes that CPython counts them for: none or one, and no keywords.
fn counted_arguments(function: &Bound<'_, PyAny>) -> Option<usize> {
    let raw = function.as_ptr();
    // SAFETY: the object is live, and of the type whose fields are read.
    let flags = unsafe {
        if ffi::Py_TYPE(raw) == &raw mut ffi::PyMethodDescr_Type {
            (*(*raw.cast::<ffi::PyMethodDescrObject>()).d_method).ml_flags
        } else if ffi::PyCFunction_Check(raw) != 0 {
            ffi::PyCFunction_GetFlags(raw)
        } else {
            return None;
        }
    };
    match flags & (ffi::METH_NOARGS | ffi::METH_O) {
        ffi::METH_NOARGS => Some(0),
        ffi::METH_O => Some(1),
        _ => None,
    }
}
