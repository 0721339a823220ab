//! Carrying out a plan.

#![expect(unsafe_code, reason = "CPython's frames are raw pointers")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PySet, PyTuple, PyType};
use pyrite_capture::Object;
use pyrite_capture::plan::{Draw, Effect, End, Plan, Recipe, Resume};
use pyrite_capture::resume::Point;
use rustc_hash::FxHashMap;

use super::functions::{Resumption, resumption};
use super::guards::{Found, Frame};
use super::hook::{code_state, set_skip, with_capture, without_capture};
use super::objects::{_PyType_Lookup, bound};
use super::store::{CodeState, Kept};
use crate::modules::import;

thread_local! {
    /// The code that [`go_on`] calls, until its frame begins.
    static CALLED: Cell<*mut ffi::PyObject> = const { Cell::new(std::ptr::null_mut()) };
}

/// Who calls a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The program.
    Program,
    /// [`go_on`], which a frame that breaks is to return to with its [`Next`].
    GoOn,
}

/// Who calls a frame of this code that begins now.
pub fn caller_of(code: *mut ffi::PyObject) -> Caller {
    if CALLED.get() != code {
        return Caller::Program;
    }
    CALLED.set(std::ptr::null_mut());
    Caller::GoOn
}

/// Where a frame goes on, and with what. A function that a frame goes on in returns this once it has come to where the next
/// one begins: it has left the stack before that is called, so a frame takes one place there however often it breaks.
#[pyclass(module = "pyrite._native", frozen)]
pub struct Next {
    /// The code that the frame was written in.
    pub original: Py<PyAny>,
    /// The point of that code.
    pub point: Point,
    /// The globals of the frame.
    pub globals: Py<PyAny>,
    /// What its slots hold, cells for those that are.
    pub slots: Vec<(usize, Py<PyAny>)>,
    /// What nothing reads any more, in slots that keep it alive.
    pub kept: Vec<(usize, Py<PyAny>)>,
    /// The slots that need not hold what they held before.
    pub written: Vec<usize>,
    /// What is on its stack, without NULLs.
    pub stack: Vec<Py<PyAny>>,
}

/// The objects that a run of a plan starts from.
struct Held<'py> {
    /// The inputs of its graph.
    inputs: Bound<'py, PyTuple>,
    /// For each recipe that starts from a source, what stands there.
    sources: Vec<Option<Bound<'py, PyAny>>>,
    /// The random numbers that were drawn.
    drawn: Vec<Bound<'py, PyAny>>,
}

/// Runs a plan whose guards hold; nothing where what it asserts of data does not, and nothing has been done.
pub fn run<'py>(
    py: Python<'py>,
    state: &CodeState,
    kept: &Rc<Kept>,
    found: Found,
    frame: &Frame,
    caller: Caller,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    kept.calls.set(kept.calls.get() + 1);
    // What was found is borrowed from objects that the program, or another thread meanwhile, may change.
    // All of it is owned before anything is called that may run Python or let another thread run.
    let sources: Vec<Option<Bound<'py, PyAny>>> =
        kept.sources.iter().map(|place| place.map(|place| found.get(py, place))).collect();
    let mut inputs = fetched(py, &kept.inputs, &found);
    super::guards::give_back(found);
    without_capture(|| {
        let switch = |(tensor, wanted): &(usize, bool)| match &sources[*tensor] {
            Some(tensor) => tensor.call_method1("requires_grad_", (*wanted,)).map(drop),
            None => Ok(()),
        };
        kept.plan.switched.iter().try_for_each(switch)
    })?;
    let draw = |draw: &Draw| {
        let receiver = draw.receiver.and_then(|receiver| sources[receiver].clone());
        let args = receiver.into_iter().chain(draw.args.iter().map(|arg| bound(py, *arg))).collect::<Vec<_>>();
        bound(py, draw.function).call1(PyTuple::new(py, args)?)
    };
    let drawn = without_capture(|| kept.plan.draws.iter().map(draw).collect::<PyResult<Vec<_>>>())?;
    for (draw, number) in kept.plan.draws.iter().zip(&drawn) {
        if let Some(input) = draw.input {
            inputs[input] = number.clone();
        }
    }
    let inputs = prepared(py, &kept.plan, inputs)?;
    let held = Held { inputs: PyTuple::new(py, inputs)?, sources, drawn };
    let values = without_capture(|| {
        let outputs = match &kept.program {
            Some(program) if kept.plan.asserted.is_empty() && !kept.plan.fallible => {
                Some(program.bind(py).call1(held.inputs.clone())?)
            }
            Some(program) => match program.bind(py).call1(held.inputs.clone()) {
                Ok(outputs) if holds(&kept.plan.asserted, &outputs)? => Some(outputs),
                // Plain Python raises what is to be raised, after what comes before it.
                _ => return Ok(None),
            },
            None => None,
        };
        let mut values: Vec<Bound<'py, PyAny>> = Vec::with_capacity(kept.plan.recipes.len());
        for index in 0..kept.plan.recipes.len() {
            let value = make(py, kept, &held, outputs.as_ref(), &values, index)?;
            values.push(value);
        }
        for effect in &kept.plan.effects {
            carry_out(py, &values, effect)?;
        }
        Ok::<_, PyErr>(Some(values))
    })?;
    let Some(values) = values else { return Ok(None) };
    match &kept.plan.end {
        End::Return(value) => Ok(Some(values[*value].clone())),
        End::Break(resume) => {
            // SAFETY: the globals of the frame are live.
            let globals = unsafe { Bound::from_borrowed_ptr(py, frame.globals) };
            let next = Bound::new(py, next_after(py, state, resume, &globals, &values))?;
            // What the frame no longer refers to ends here.
            drop((values, held));
            if caller == Caller::GoOn { Ok(Some(next.into_any())) } else { go_on(next).map(Some) }
        }
    }
}

/// Whether the outputs that are asserted to be true are.
fn holds(asserted: &[usize], outputs: &Bound<'_, PyAny>) -> PyResult<bool> {
    for place in asserted {
        if !outputs.get_item(*place)?.is_truthy()? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The objects that the inputs of a graph are.
pub fn fetched<'py>(py: Python<'py>, places: &[usize], found: &Found) -> Vec<Bound<'py, PyAny>> {
    places.iter().map(|place| found.get(py, *place)).collect()
}

/// What the graph of a plan is given: floats are tensors.
pub fn prepared<'py>(
    py: Python<'py>,
    plan: &Plan,
    mut inputs: Vec<Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if !plan.floats.is_empty() {
        let torch = import(py, "torch")?;
        let options = PyDict::new(py);
        options.set_item("dtype", torch.getattr("float64")?)?;
        options.set_item("device", "cpu")?;
        let maker = torch.getattr("scalar_tensor")?;
        for input in &plan.floats {
            inputs[*input] = maker.call((&inputs[*input],), Some(&options))?;
        }
    }
    Ok(inputs)
}

/// Where a frame goes on at the end of a plan: before the instructions that Python runs.
fn next_after<'py>(
    py: Python<'py>,
    state: &CodeState,
    resume: &Resume,
    globals: &Bound<'py, PyAny>,
    values: &[Bound<'py, PyAny>],
) -> Next {
    let value = |recipe: usize| values[recipe].clone().unbind();
    let original = state
        .mapping
        .as_ref()
        .map_or_else(|| bound(py, state.code.object).unbind(), |mapping| mapping.object.clone_ref(py));
    Next {
        original,
        point: point_after(resume),
        globals: globals.clone().unbind(),
        slots: resume.locals.iter().map(|(slot, recipe)| (*slot, value(*recipe))).collect(),
        kept: resume.kept.iter().map(|(slot, recipe)| (*slot, value(*recipe))).collect(),
        written: resume.written.clone(),
        stack: resume.stack.iter().flatten().map(|recipe| value(*recipe)).collect(),
    }
}

/// The point at which Python goes on at the end of a plan.
fn point_after(resume: &Resume) -> Point {
    Point {
        place: resume.first,
        nulls: resume.stack.iter().map(Option::is_none).collect(),
        slots: resume.locals.iter().map(|(slot, _)| *slot).collect(),
        until: Some(resume.last),
    }
}

/// Lets a frame go on until it returns or raises: Python runs what could not be captured, what follows is captured again.
/// What its slots hold lives as long as they do.
fn go_on(mut next: Bound<'_, Next>) -> PyResult<Bound<'_, PyAny>> {
    let py = next.py();
    let mut alive = BTreeMap::new();
    loop {
        let now = next.get();
        for slot in &now.written {
            alive.remove(slot);
        }
        alive.extend(now.slots.iter().chain(&now.kept).map(|(slot, value)| (*slot, value.clone_ref(py))));
        let function = function_of(py, now.original.bind(py), &now.point)?;
        let function = function.ok_or_else(|| PyRuntimeError::new_err("a frame cannot go on after a break"))?;
        let slots: Vec<_> = now.slots.iter().map(|(slot, value)| (*slot, value.bind(py).clone())).collect();
        let stack = now.stack.iter().map(|value| value.bind(py).clone()).collect();
        let before = CALLED.replace(function.code(py).as_ptr());
        let result = with_capture(|| function.call(py, now.globals.bind(py), &slots, stack));
        CALLED.set(before);
        match result?.cast_into_exact::<Next>() {
            Ok(further) => next = further,
            Err(result) => return Ok(result.into_inner()),
        }
    }
}

/// The function that goes on at a point of a frame of `original`. Those that Python runs the first instructions of are not
/// captured.
fn function_of(py: Python<'_>, original: &Bound<'_, PyAny>, point: &Point) -> PyResult<Option<Rc<Resumption>>> {
    let Some(state) = code_state(original)? else { return Ok(None) };
    if let Some(known) = state.resumptions.borrow().get(point) {
        return Ok(known.clone());
    }
    let made = resumption(py, &state.code, original, point)?;
    let made = match made {
        Some((made, mapping)) => {
            let code = made.code(py);
            if point.until.is_some() {
                set_skip(&code);
            } else {
                super::hook::set_mapping(&code, mapping)?;
            }
            Some(Rc::new(made))
        }
        None => None,
    };
    state.resumptions.borrow_mut().insert(point.clone(), made.clone());
    Ok(made)
}

/// The functions of the generators that a plan makes anew, by their recipes; nothing where one cannot be created.
pub fn generators(py: Python<'_>, plan: &Plan) -> PyResult<Option<FxHashMap<usize, Resumption>>> {
    let mut functions = FxHashMap::default();
    for (index, recipe) in plan.recipes.iter().enumerate() {
        if let Recipe::Generator(recipe) = recipe {
            let original = bound(py, recipe.code.object);
            let Some((made, _)) = resumption(py, &recipe.code, &original, &recipe.point)? else { return Ok(None) };
            set_skip(&made.code(py));
            functions.insert(index, made);
        }
    }
    Ok(Some(functions))
}

/// Whether a frame can go on at the end of a plan.
pub fn can_go_on(py: Python<'_>, original: &Bound<'_, PyAny>, resume: &Resume) -> PyResult<bool> {
    Ok(code_after(py, original, resume)?.is_some())
}

/// The code that a frame goes on in at the end of a plan.
pub fn code_after<'py>(
    py: Python<'py>,
    original: &Bound<'py, PyAny>,
    resume: &Resume,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(function_of(py, original, &point_after(resume))?.map(|function| function.code(py)))
}

fn make<'py>(
    py: Python<'py>,
    kept: &Kept,
    held: &Held<'py>,
    outputs: Option<&Bound<'py, PyAny>>,
    values: &[Bound<'py, PyAny>],
    index: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let several = |ids: &[usize]| ids.iter().map(|id| values[*id].clone()).collect::<Vec<_>>();
    Ok(match &kept.plan.recipes[index] {
        Recipe::Source(_) => {
            let source = held.sources[index].clone();
            source.ok_or_else(|| PyRuntimeError::new_err("a plan starts from nowhere"))?
        }
        Recipe::Object(object) => bound(py, *object),
        Recipe::Drawn(place) => held.drawn[*place].clone(),
        Recipe::Output(index) => {
            let outputs = outputs.ok_or_else(|| PyRuntimeError::new_err("a plan without a graph has no outputs"))?;
            let output = outputs.get_item(*index)?;
            // An output that lies just where an input does is a view of it: the input itself is no output of a graph.
            // Torch's own programs know themselves whether it is the input.
            let guessed = !kept.by_torch && !output.is_instance_of::<PyInt>();
            if guessed && held.inputs.iter_borrowed().any(|input| input.is(&output)) {
                output.call_method1("view_as", (&output,))?
            } else {
                output
            }
        }
        Recipe::Tuple(items, class) => {
            let tuple = PyTuple::new(py, several(items))?;
            match class {
                Some(class) => {
                    // What its own `__new__` did is among the items.
                    let class = bound(py, *class).cast_into::<PyType>()?;
                    native_base(&class)?.call_method1("__new__", (&class, tuple))?
                }
                None => tuple.into_any(),
            }
        }
        Recipe::List(items) => PyList::new(py, several(items))?.into_any(),
        Recipe::Dict(pairs, class, default) => {
            let dict = match class {
                // What its initialisation did is among the entries.
                Some(class) => {
                    let class = bound(py, *class).cast_into::<PyType>()?;
                    native_base(&class)?.call_method1("__new__", (&class,))?
                }
                None => PyDict::new(py).into_any(),
            };
            if let Some(default) = default {
                dict.setattr("default_factory", &values[*default])?;
            }
            let pairs = pairs.iter().map(|(key, value)| (values[*key].clone(), values[*value].clone()));
            fill_dict(dict.cast::<PyDict>()?, pairs)?;
            dict
        }
        Recipe::Set(members) => PySet::new(py, several(members))?.into_any(),
        Recipe::Slice(parts) => {
            let [start, stop, step] = parts.map(|part| values[part].clone());
            py.get_type::<pyo3::types::PySlice>().call1((start, stop, step))?
        }
        Recipe::Cell(contents) => {
            let contents = contents.map_or(std::ptr::null_mut(), |id| values[id].as_ptr());
            // SAFETY: the contents are live or null; a new reference.
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCell_New(contents))? }
        }
        Recipe::Function(parts) => {
            // SAFETY: code and globals are live objects of their types; a new reference.
            let function = unsafe {
                let made = ffi::PyFunction_New(parts.code.0 as *mut _, parts.globals.0 as *mut _);
                Bound::from_owned_ptr_or_err(py, made)?
            };
            if let Some(defaults) = parts.defaults {
                function.setattr("__defaults__", &values[defaults])?;
            }
            if let Some(defaults) = parts.keyword_defaults {
                function.setattr("__kwdefaults__", &values[defaults])?;
            }
            if let Some(closure) = parts.closure {
                // SAFETY: the closure is a tuple of cells.
                unsafe { ffi::PyFunction_SetClosure(function.as_ptr(), values[closure].as_ptr()) };
            }
            function
        }
        Recipe::Method(function, object) => {
            // SAFETY: both are live; a new reference.
            unsafe {
                let made = super::objects::PyMethod_New(values[*function].as_ptr(), values[*object].as_ptr());
                Bound::from_owned_ptr_or_err(py, made)?
            }
        }
        Recipe::Attribute(object, name) => values[*object].getattr(&**name)?,
        Recipe::Instance(class, _) => {
            let class = bound(py, *class);
            let class = class.cast::<PyType>()?;
            import(py, "builtins")?.getattr("object")?.call_method1("__new__", (class,))?
        }
        Recipe::Exception(class, args) => {
            let class = bound(py, *class);
            let args = PyTuple::new(py, several(args))?;
            let init = class.getattr("__init__")?;
            // SAFETY: a live object.
            if unsafe { ffi::PyFunction_Check(init.as_ptr()) } != 0 {
                // What its initialisation did is done by the effects.
                let mut all = vec![class.clone()];
                all.extend(args.iter());
                class.getattr("__new__")?.call1(PyTuple::new(py, all)?)?
            } else {
                class.call1(args)?
            }
        }
        Recipe::Call(function, args, kwargs) => call(py, values, *function, args, kwargs)?,
        Recipe::Generator(recipe) => {
            let function = kept.generators.get(&index);
            let function = function.ok_or_else(|| PyRuntimeError::new_err("a generator that cannot go on"))?;
            let slots: Vec<(usize, Bound<'py, PyAny>)> =
                recipe.slots.iter().map(|(slot, recipe)| (*slot, values[*recipe].clone())).collect();
            let generator = function.call(py, &bound(py, recipe.globals), &slots, several(&recipe.stack))?;
            generator.setattr("__qualname__", &*recipe.code.qualified_name)?;
            // It yields what it had yielded, and waits.
            import(py, "builtins")?.getattr("next")?.call1((&generator,))?;
            generator
        }
        Recipe::SequenceIterator(list) => values[*list].try_iter()?.into_any(),
        Recipe::Advanced(container, place) => {
            let mut iterator = values[*container].try_iter()?;
            for _ in 0..*place {
                iterator.next().transpose()?;
            }
            iterator.into_any()
        }
        Recipe::Entered(class, args, before) => {
            if let Some(before) = before {
                import(py, "torch")?.getattr("_C")?.call_method1("_set_grad_enabled", (*before,))?;
            }
            let context = bound(py, *class).call1(PyTuple::new(py, several(args))?)?;
            context.call_method0("__enter__")?;
            context.getattr("__exit__")?
        }
    })
}

/// Calls a function on objects that were made.
fn call<'py>(
    py: Python<'py>,
    values: &[Bound<'py, PyAny>],
    function: Object,
    args: &[usize],
    kwargs: &[(Rc<str>, usize)],
) -> PyResult<Bound<'py, PyAny>> {
    let named = PyDict::new(py);
    for (name, value) in kwargs {
        named.set_item(&**name, &values[*value])?;
    }
    let args = PyTuple::new(py, args.iter().map(|id| &values[*id]))?;
    bound(py, function).call(args, Some(&named))
}

/// The class of Python's own that a class is, or is derived from first: it fills and empties without asking the user's.
fn native_base<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    for base in class.getattr("__mro__")?.try_iter()? {
        let base = base?.cast_into::<PyType>()?;
        // From CPython 3.12 on `deque` and `defaultdict` lie on the heap, as classes of the user's do, and cannot be changed.
        // SAFETY: the class is live.
        if unsafe { ffi::PyType_GetFlags(base.as_type_ptr()) } & ffi::Py_TPFLAGS_IMMUTABLETYPE != 0 {
            return Ok(base.into_any());
        }
    }
    Err(PyRuntimeError::new_err("a class without a base"))
}

/// Sets items of a dictionary without asking a class of the user's.
fn fill_dict<'py>(
    dict: &Bound<'py, PyDict>,
    pairs: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<()> {
    let base = native_base(&dict.get_type())?;
    let ordered = base.getattr("__name__")?.extract::<String>()? == "OrderedDict";
    for (key, value) in pairs {
        if ordered {
            base.call_method1("__setitem__", (dict, key, value))?;
        } else {
            // The method of `dict` itself, whatever the class says.
            dict.set_item(key, value)?;
        }
    }
    Ok(())
}

/// The class whose methods set attributes of an object without asking a class of the user's.
fn plain_class<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let by_thread = import(object.py(), "_thread")?.getattr("_local")?;
    if object.is_instance(&by_thread)? { Ok(by_thread) } else { import(object.py(), "builtins")?.getattr("object") }
}

/// Whether what an object keeps under a name in its `__dict__` is hidden by a descriptor of its class, such as a property: the
/// captured code has written to the dictionary itself.
fn is_hidden(object: &Bound<'_, PyAny>, name: &str) -> bool {
    let name = pyo3::types::PyString::intern(object.py(), name);
    // SAFETY: the class and the name are live; the result is borrowed from the class, or null.
    unsafe {
        let found = _PyType_Lookup(ffi::Py_TYPE(object.as_ptr()), name.as_ptr());
        if found.is_null() {
            ffi::PyErr_Clear();
            return false;
        }
        let class = ffi::Py_TYPE(found);
        let slots = [&raw mut ffi::PyMemberDescr_Type, &raw mut ffi::PyGetSetDescr_Type];
        (*class).tp_descr_set.is_some() && !slots.contains(&class)
    }
}

fn carry_out<'py>(py: Python<'py>, values: &[Bound<'py, PyAny>], effect: &Effect) -> PyResult<()> {
    let several = |ids: &[usize]| ids.iter().map(|id| values[*id].clone()).collect::<Vec<_>>();
    match effect {
        Effect::SetAttribute(class, name, value) if values[*class].is_instance_of::<PyType>() => {
            values[*class].setattr(&**name, &values[*value])?;
        }
        Effect::SetAttribute(object, name, value) if is_hidden(&values[*object], name) => {
            values[*object].getattr("__dict__")?.set_item(&**name, &values[*value])?;
        }
        Effect::SetAttribute(object, name, value) => {
            plain_class(&values[*object])?.call_method1("__setattr__", (&values[*object], &**name, &values[*value]))?;
        }
        Effect::DeleteAttribute(object, name) => {
            plain_class(&values[*object])?.call_method1("__delattr__", (&values[*object], &**name))?;
        }
        Effect::ReplaceList(list, items) => {
            let list = values[*list].cast::<PyList>()?;
            list.set_slice(0, list.len(), PyList::new(py, several(items))?.as_any())?;
        }
        Effect::ReplaceDeque(deque, items) => {
            // The methods of `deque` itself, whatever the class says.
            let deque = &values[*deque];
            let base = native_base(&deque.get_type())?;
            base.call_method1("clear", (deque,))?;
            base.call_method1("extend", (deque, PyList::new(py, several(items))?))?;
        }
        Effect::ReplaceDict(dict, pairs) => {
            let dict = values[*dict].cast::<PyDict>()?;
            native_base(&dict.get_type())?.call_method1("clear", (dict,))?;
            let pairs = pairs.iter().map(|(key, value)| (values[*key].clone(), values[*value].clone()));
            fill_dict(dict, pairs)?;
        }
        Effect::ChangeSet(set, steps) => {
            // The methods of `set` itself, whatever the class says.
            let class = py.get_type::<PySet>();
            for (method, args) in steps {
                let args = std::iter::once(values[*set].clone()).chain(several(args));
                class.call_method1(*method, PyTuple::new(py, args.collect::<Vec<_>>())?)?;
            }
        }
        Effect::SetCell(cell, contents) => {
            let contents = contents.map_or(std::ptr::null_mut(), |id| values[id].as_ptr());
            // SAFETY: the object is a cell; the contents are live or null.
            unsafe { ffi::PyCell_Set(values[*cell].as_ptr(), contents) };
        }
        Effect::SetGlobal(globals, name, value) => bound(py, *globals).set_item(&**name, &values[*value])?,
        Effect::DeleteGlobal(globals, name) => bound(py, *globals).del_item(&**name)?,
        Effect::SetContextVariable(variable, value) => {
            bound(py, *variable).call_method1("set", (&values[*value],))?;
        }
        Effect::Advance(iterator, count) => {
            let next = import(py, "builtins")?.getattr("next")?;
            for _ in 0..*count {
                next.call1((&values[*iterator],))?;
            }
        }
        Effect::SetPlace(iterator, place) => {
            values[*iterator].call_method1("__setstate__", (*place,))?;
        }
        Effect::Call(function, args, kwargs) => {
            call(py, values, *function, args, kwargs)?;
        }
        Effect::Leave(context) => {
            values[*context].call_method1("__exit__", (py.None(), py.None(), py.None()))?;
        }
        Effect::SetGrad(grad) => {
            import(py, "torch")?.getattr("_C")?.call_method1("_set_grad_enabled", (*grad,))?;
        }
    }
    Ok(())
}
