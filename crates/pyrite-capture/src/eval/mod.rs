//! The symbolic evaluator: runs a frame's instructions on descriptions of values.
//!
//! The evaluator never changes an object that exists: what the captured code does to such objects is noted and carried
//! out when the plan is. Where it meets something it cannot describe it stops with [`Stop::Break`]; the capture is then
//! begun anew and ended right before the instruction of the root frame that led there, so that nothing half-done is
//! left.
//!
//! Invariants: an instruction either completes or leaves no trace (by beginning anew); everything that is read from
//! outside is read in [`outside`], which records it; the number of steps and the depth of calls are bounded.

mod accepted;
mod arguments;
mod attribute;
mod builtin_functions;
mod builtins;
mod call;
mod classes;
mod compare;
mod containers;
mod contexts;
mod data;
mod deque;
mod finish;
mod imports;
mod iterate;
mod library;
mod methods;
mod nested;
mod newer;
mod numbers;
mod opaque;
mod outside;
mod overrides;
mod random;
mod recipes;
mod sets;
mod step;
mod step_containers;
mod tensor;
mod tensor_items;
mod tensor_methods;
mod values;
mod views;
mod wrap;
mod wrappers;

use std::rc::Rc;

use pyrite_ir::NodeId;
use pyrite_reader::Calls;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::Code;
use crate::host::{GlobalState, Host, Object, World};
use crate::opcode::{Op, Version};
use crate::plan::{Break, Plan};
use crate::source::Source;
use crate::value::{Born, ContextValue, DictValue, Key, Origin, Value};

/// Why evaluation stops.
pub(crate) enum Stop {
    /// Something that cannot be described: the reason and a hint.
    Break(String, Option<String>),
    /// An exception of the user's program.
    Raise(Value),
}

/// The result of a step.
pub(crate) type Run<T> = Result<T, Stop>;

/// A frame that is being evaluated.
pub struct Frame {
    pub(crate) code: Rc<Code>,
    /// The instruction that comes next.
    pub(crate) place: usize,
    pub(crate) stack: Vec<Value>,
    /// Locals, cells and free variables.
    pub(crate) slots: Vec<Option<Value>>,
    pub(crate) globals: Object,
    pub(crate) builtins: Object,
    /// The names of keyword arguments of the call that comes next.
    pub(crate) keywords: Vec<Rc<str>>,
    /// The exceptions being handled, innermost last.
    pub(crate) handled: Vec<Option<Value>>,
    /// Whether its variables were asked for by `locals()`.
    pub(crate) asked: bool,
}

impl Frame {
    /// Whether it is a generator that has yielded and waits to go on.
    pub(crate) fn is_suspended(&self) -> bool {
        let next = &self.code.instructions[self.place];
        next.op == Op::Resume && next.arg & 3 == 1
    }

    /// The iterator that it takes its values from, for a generator that waits for another.
    pub(crate) fn awaited(&self) -> Option<Value> {
        let next = &self.code.instructions[self.place];
        (next.op == Op::Resume && next.arg & 3 == 2)
            .then(|| self.stack.get(self.stack.len().checked_sub(2)?).cloned())?
    }

    /// Whether any of it was run, for a generator.
    pub(crate) fn has_begun(&self) -> bool {
        let before = self.place.checked_sub(1).map(|place| self.code.instructions[place].op);
        before != Some(Op::ReturnGenerator)
    }
}

/// What running a frame ends with.
pub(crate) enum Outcome {
    Return(Value),
    Yield(Value),
}

/// Where to end the capture, once it is known that it cannot go on.
#[derive(Clone)]
struct Limit {
    /// The step of the root frame that is not taken.
    step: usize,
    /// The last instruction that Python runs.
    last: usize,
    why: Break,
}

/// A frame before it is evaluated.
pub struct Entry {
    /// Its code.
    pub code: Rc<Code>,
    /// Its function's cells.
    pub closure: Vec<Object>,
    /// Its globals.
    pub globals: Object,
    /// Its builtins.
    pub builtins: Object,
    /// What stands in its slots; parameters come first.
    pub slots: Vec<Option<Object>>,
}

/// How frames are captured.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Sizes that are taken as symbols from the start: paths of tensors and their dimensions, or of numbers and
    /// [`crate::source::NUMBER`].
    pub dynamic: FxHashSet<(Source, usize)>,
    /// Whether every size is a symbol.
    pub all_dynamic: bool,
}

/// Why a frame is left to Python altogether.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped(pub String);

/// What looks at its own frame must find it as it is.
const LOOKING: [&str; 3] = ["locals", "eval", "exec"];
/// No frame takes more steps than this.
const MAX_STEPS: usize = 500_000;
/// A frame is evaluated at most this often for one plan.
const MAX_RUNS: usize = 6;
/// So many modules are initialised by their first call in one frame.
const MAX_PREPARED: usize = 1000;
/// Calls are followed this deep.
const MAX_DEPTH: usize = 120;
/// Containers are compared and printed this deep: beyond, they may hold themselves, and Python says what that means.
const MAX_NESTING: usize = 100;

#[expect(clippy::struct_excessive_bools, reason = "independent facts of a frame that is evaluated")]
pub(crate) struct Evaluator<'a, 'c> {
    host: &'a dyn Host,
    outside: outside::Outside<'a>,
    calls: &'a mut Calls<'c>,
    settings: &'a Settings,
    entry: &'a Entry,
    /// The objects from outside that were looked at.
    known: FxHashMap<Object, Value>,
    /// Where methods were found that somebody outside has bound to their objects.
    methods_outside: FxHashMap<usize, Rc<Source>>,
    /// The `__dict__`s of the objects that were looked at.
    keepers: FxHashSet<Object>,
    inputs: Vec<(NodeId, Rc<Source>, Object)>,
    /// What was changed outside, in order of the first change.
    changed: Vec<Value>,
    /// Globals that were set or removed.
    globals: Vec<(Object, Rc<str>, Option<Value>)>,
    /// Context variables that were set.
    context_variables: Vec<(Object, Value)>,
    state: GlobalState,
    /// Whether gradients are recorded at this point.
    grad: bool,
    steps: usize,
    /// Steps of the root frame.
    root_steps: usize,
    /// The step at which the root's instruction, or the span it belongs to, began.
    span: usize,
    /// File, line and function of the frames that are being evaluated.
    trace: Vec<(Rc<str>, u32, Rc<str>)>,
    limit: Option<Limit>,
    /// Which dimension of which input names each symbol.
    symbols: Vec<(Rc<str>, usize, usize)>,
    /// Numbers that are symbols or inputs, by their paths.
    numbers: FxHashMap<Rc<Source>, Value>,
    /// The inputs that are floats.
    floats: Vec<usize>,
    /// Autocast's types outside of the contexts that were entered.
    autocasts: Vec<Option<pyrite_tensor::DType>>,
    /// Context managers from outside that were entered, each with the one that was made in its place.
    entered: Vec<(Object, Rc<ContextValue>)>,
    /// The instruction that the root is at: the step at which its span began, and its place.
    root: (usize, usize),
    /// Where generators, and views of the attributes of objects, were made: they cannot be created again.
    made_at: FxHashMap<usize, (usize, usize)>,
    /// The random numbers that captured code draws.
    draws: Vec<random::Drawn>,
    /// Where a random number was drawn whose value decides what is done.
    decided_by_draw: Option<(usize, usize)>,
    /// What captured code asserts of data: the node, and the instruction of the root.
    asserted: Vec<(NodeId, (usize, usize))>,
    /// Whether inference mode is on at this point.
    inference: bool,
    /// Inference and grad mode outside of the inference modes that were entered, and the nodes that entered them.
    inferences: Vec<(bool, bool, pyrite_ir::Value<NodeId>)>,
    /// The first instruction of the root that raises for some data.
    fallible: Option<(usize, usize)>,
    /// How many comparisons of sizes had been guessed before the call that is written.
    guesses: usize,
    /// The classes that captured code has made, and which instruction of the root did.
    made_classes: FxHashMap<Object, (usize, usize)>,
    /// What is being handled at this point.
    handled: Option<Value>,
    /// What is being handled in the frames that called the one that is evaluated, the innermost last.
    handled_outside: Vec<Option<Value>>,
    /// Where to end before an instruction of the root other than the one that is evaluated.
    end_at: Option<(usize, usize)>,
    /// Where an exception that the root handles was last raised.
    last_raise: (usize, usize),
    /// Where the root's exceptions that are being handled were raised, the innermost last.
    raised_at: Vec<(usize, usize)>,
    /// Whether the root is in a loop over a generator where it ends.
    loops_over_generator: bool,
    /// Where to end instead, because what is alive at the end that was tried cannot be created again.
    earlier: Option<(usize, usize)>,
    /// The lists that iterators from outside go over.
    iterated: FxHashSet<Object>,
    /// Whether an iterator from outside goes over a dictionary, which it does not name.
    iterates_over_dict: bool,
    /// The plain tensors that wrapper subclasses from outside hold, and where.
    held_by_wrappers: Vec<(Object, Rc<Source>)>,
    /// The jagged sizes of wrapper subclasses, by their numbers.
    jagged_sizes: std::cell::RefCell<FxHashMap<i64, pyrite_sym::SymInt>>,
    /// The wrapper subclasses from outside, which are guarded once it is known what is relied on.
    wrappers: Vec<Origin>,
    /// Whether something relies on the sizes of wrapper subclasses.
    relies_on_wrapped_sizes: std::cell::Cell<bool>,
    /// The wrapper subclasses that were written to.
    written_wrappers: FxHashSet<NodeId>,
    /// The storages of tensors whose attribute `data` was read, and by which instruction of the root.
    data_read: Vec<(pyrite_ir::StorageId, NodeId, (usize, usize))>,
    /// Whether autocast was on at any point: types of results are known only when the graph is lowered.
    autocasted: bool,
    /// The dictionaries of attributes of containers that were asked for, with their owners.
    own_dicts: Vec<(Value, Rc<DictValue>)>,
    /// The hashes of objects that say in Python what they are, as they were when each became a key.
    hashes: FxHashMap<usize, (std::rc::Weak<crate::value::InstanceValue>, Object)>,
    /// Whether a library was told that it is compiled; what it does then need not be what it does otherwise.
    told_compiling: bool,
    /// The nested graphs that are being evaluated, the innermost last: when each began, and whether it has changed anything
    /// that was there before.
    bodies: Vec<(Born, bool)>,
    /// The calls that register hooks of tensors.
    hooks: Vec<NodeId>,
    /// The functions of torch whose bodies are being traced, the outermost first.
    around: Vec<Rc<str>>,
    /// Leaves from outside for which captured code has switched whether gradients are recorded, before anything used them.
    switched: Vec<(Rc<Source>, bool)>,
    /// Settings of torch that captured code has set: the function that says what they are, the value, and the instruction of
    /// the root that set it first.
    settings_set: Vec<(Object, Value, (usize, usize))>,
    /// Functions that set what torch does later, with the arguments that captured code called them with.
    setters_called: Vec<(Object, Vec<Value>, call::Keywords)>,
    /// Attributes of classes that captured code has set.
    class_items: Vec<(Object, Rc<str>, Value)>,
    /// Copies of what torch gives a view of: the storages of both, and the instruction of the root that made the copy.
    picked: Vec<([pyrite_ir::StorageId; 2], (usize, usize))>,
    /// From which node on gradients are recorded, or not.
    grad_modes: Vec<(NodeId, bool)>,
    /// Whom torch shows the calls of its functions.
    overrides: overrides::Overrides,
    /// Inputs of nested graphs that require gradients of a level of their own.
    levels: FxHashSet<NodeId>,
    /// Which warnings are shown, inside of `warnings.catch_warnings()`.
    warnings: Option<Warned>,
    /// Contexts that were entered outside and are left.
    left: Vec<Value>,
    /// Results of functions that keep them, by function and arguments.
    kept_results: FxHashMap<(Object, Vec<usize>), Value>,
    /// The generators of Python's random numbers that captured code has made.
    generators: FxHashSet<Object>,
    /// Tuples of keys that were met as keys, with their numbers.
    tuple_keys: FxHashMap<Vec<Key>, usize>,
    /// The objects from outside that such tuples hold by their identity.
    in_tuple_keys: Vec<Origin>,
    /// Sizes that must not become constants, with the user's names for them.
    never_static: Vec<(pyrite_sym::SymInt, String)>,
    /// Whether something was refused because it is a copy of what torch gives a view of.
    copy_in_the_way: std::cell::Cell<bool>,
    /// Whether a tensor of one number that is an index is read as the number that it is: torch gives a view.
    picks_views: bool,
    /// Whether something was done that lets the frame be evaluated anew.
    again: bool,
    /// How many containers around a value are being compared or printed.
    nesting: usize,
}

/// Which warnings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Warned {
    /// Those that are shown outside.
    AsOutside,
    /// None.
    Nothing,
    /// None; they are put into a list.
    Recorded,
}

/// Captures a frame.
pub fn capture(world: &dyn World, entry: &Entry, settings: &Settings) -> Result<Plan, Skipped> {
    let mut limit: Option<Limit> = None;
    let mut prepared = 0;
    let mut picks_views = false;
    // A second run ends where the first could not go on, further ones before what cannot be left there.
    let mut runs = 0;
    while runs < MAX_RUNS {
        let result = pyrite_reader::write_calls(pyrite_ops::registry(), |calls| {
            let mut evaluator = Evaluator::new(world, calls, settings, entry, limit.clone());
            evaluator.picks_views = picks_views;
            evaluator.run()
        });
        match result {
            Ok(plan) => return Ok(plan),
            Err(Ended::Skip(reason)) => return Err(Skipped(reason)),
            Err(Ended::WithViews) => {
                picks_views = true;
                continue;
            }
            Err(Ended::Again) if prepared < MAX_PREPARED => {
                prepared += 1;
                continue;
            }
            Err(Ended::Again) => {
                return Err(Skipped("too many modules are imported, or initialised by their first call".to_owned()));
            }
            Err(Ended::At(found)) if limit.as_ref().is_none_or(|before| found.step < before.step) => {
                limit = Some(found);
            }
            Err(Ended::At(found)) => return Err(Skipped(found.why.reason)),
        }
        runs += 1;
    }
    Err(Skipped("the frame cannot be left at any of the places where its graph could end".to_owned()))
}

/// How a run ends without a plan.
enum Ended {
    At(Limit),
    Skip(String),
    /// What was looked at has changed since.
    Again,
    /// What a tensor of one number picks has to be a view.
    WithViews,
}

impl<'a, 'c> Evaluator<'a, 'c> {
    fn new(
        world: &'a dyn World,
        calls: &'a mut Calls<'c>,
        settings: &'a Settings,
        entry: &'a Entry,
        limit: Option<Limit>,
    ) -> Self {
        let state = world.global_state();
        let grad = state.grad;
        Self {
            host: world,
            outside: outside::Outside::new(world),
            calls,
            settings,
            entry,
            known: FxHashMap::default(),
            methods_outside: FxHashMap::default(),
            keepers: FxHashSet::default(),
            inputs: Vec::new(),
            changed: Vec::new(),
            globals: Vec::new(),
            context_variables: Vec::new(),
            state,
            grad,
            steps: 0,
            root_steps: 0,
            span: 0,
            trace: Vec::new(),
            limit,
            symbols: Vec::new(),
            numbers: FxHashMap::default(),
            floats: Vec::new(),
            autocasts: Vec::new(),
            entered: Vec::new(),
            root: (0, 0),
            made_at: FxHashMap::default(),
            made_classes: FxHashMap::default(),
            asserted: Vec::new(),
            guesses: 0,
            inference: state.inference,
            inferences: Vec::new(),
            fallible: None,
            draws: Vec::new(),
            decided_by_draw: None,
            handled: None,
            handled_outside: Vec::new(),
            end_at: None,
            last_raise: (0, 0),
            raised_at: Vec::new(),
            loops_over_generator: false,
            earlier: None,
            iterated: FxHashSet::default(),
            iterates_over_dict: false,
            held_by_wrappers: Vec::new(),
            jagged_sizes: std::cell::RefCell::default(),
            wrappers: Vec::new(),
            relies_on_wrapped_sizes: std::cell::Cell::new(false),
            written_wrappers: FxHashSet::default(),
            data_read: Vec::new(),
            autocasted: false,
            told_compiling: false,
            own_dicts: Vec::new(),
            hashes: FxHashMap::default(),
            warnings: None,
            left: Vec::new(),
            kept_results: FxHashMap::default(),
            generators: FxHashSet::default(),
            tuple_keys: FxHashMap::default(),
            in_tuple_keys: Vec::new(),
            never_static: Vec::new(),
            copy_in_the_way: std::cell::Cell::new(false),
            picks_views: false,
            again: false,
            nesting: 0,
            levels: FxHashSet::default(),
            grad_modes: vec![(NodeId(0), grad)],
            overrides: overrides::Overrides::default(),
            bodies: Vec::new(),
            around: Vec::new(),
            hooks: Vec::new(),
            switched: Vec::new(),
            settings_set: Vec::new(),
            setters_called: Vec::new(),
            picked: Vec::new(),
            class_items: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<Plan, Ended> {
        let code = self.entry.code.clone();
        let asked = code.global_names().find(|name| LOOKING.contains(name)).or_else(|| code.asked_without_arguments());
        // `locals()` is answered here; a frame that goes on in Python would show it other variables than its own.
        if let Some(name) = asked.filter(|name| *name != "locals" || self.limit.is_some()) {
            return Err(Ended::Skip(format!("the frame may look at its own variables by {name}()")));
        }
        // Without parameters it raises; in a function that goes on after a break it would find some.
        if code.positional == 0 && code.free.iter().any(|name| &**name == "__class__") {
            return Err(Ended::Skip("super() in a frame without parameters".to_owned()));
        }
        let mut frame = Frame {
            place: 0,
            stack: Vec::new(),
            slots: Vec::new(),
            globals: self.entry.globals,
            builtins: self.entry.builtins,
            keywords: Vec::new(),
            handled: Vec::new(),
            asked: false,
            code: code.clone(),
        };
        frame.slots.resize_with(code.slot_count(), || None);
        for (slot, object) in self.entry.slots.iter().enumerate().take(code.parameters()) {
            if let Some(object) = object {
                let source = Rc::new(Source::Local(slot, code.locals[slot].clone()));
                frame.slots[slot] = Some(Value::Lazy(Rc::new(crate::value::Origin { object: *object, source })));
            }
        }
        self.trace.push((code.file.clone(), code.first_line, code.name.clone()));
        if self.state.autocast.is_some() {
            self.enter_autocast(self.state.autocast).map_err(|_| Ended::Skip("autocast".to_owned()))?;
        }
        loop {
            if let Some(limit) = self.limit.clone()
                && self.root_steps == limit.step
            {
                let first = frame.place;
                let finished = self.finish_break(&frame, first, limit.last, limit.why.clone());
                return finished.map_err(|reason| self.ended_earlier(reason, Some(limit.why)));
            }
            let place = frame.place;
            let op = frame.code.instructions[place].op;
            // `KW_NAMES`, `PRECALL` (of 3.11) and `CALL` belong together.
            let names = usize::from(!frame.keywords.is_empty());
            match op {
                Op::Precall => self.span = self.root_steps - names,
                Op::Call if code.version != Version::V311 => self.span = self.root_steps - names,
                Op::Call => {}
                _ => self.span = self.root_steps,
            }
            self.root_steps += 1;
            self.root = (self.call_span(op), place);
            match self.step_or_handle(&mut frame) {
                Ok(None) => {}
                Ok(Some(Outcome::Return(value))) => {
                    let finished = self.finish_return(&value);
                    return finished.map_err(|reason| self.ended_earlier(reason, None));
                }
                Ok(Some(Outcome::Yield(_))) => return Err(Ended::Skip("a generator".to_owned())),
                Err(_) if self.again => return Err(Ended::Again),
                Err(_) if self.wants_views() => return Err(Ended::WithViews),
                Err(stop) => {
                    let (reason, hint) = match stop {
                        Stop::Break(reason, hint) => (reason, hint),
                        // Where nothing is compiled it may well not raise.
                        Stop::Raise(exception) if self.told_compiling => {
                            let raised = self.describe_raised(&exception);
                            return Err(Ended::Skip(format!("the frame raises {raised} because it is compiled")));
                        }
                        Stop::Raise(exception) => {
                            (format!("the frame raises {}", self.describe_raised(&exception)), None)
                        }
                    };
                    let why = Break { reason, hint, stack: self.trace.clone() };
                    let (step, last) = self.end_at.unwrap_or((self.root.0, place));
                    return Err(Ended::At(Limit { step, last, why }));
                }
            }
        }
    }

    /// Where a capture ends whose end cannot be created: before the root's instruction that made what is in the way.
    fn ended_earlier(&self, reason: String, why: Option<Break>) -> Ended {
        if self.wants_views() {
            return Ended::WithViews;
        }
        let Some((step, last)) = self.earlier else {
            return Ended::Skip(match why {
                Some(why) if !reason.starts_with(&why.reason) => format!("{}, where {reason}", why.reason),
                _ => reason,
            });
        };
        let why = why.unwrap_or_else(|| Break { reason, hint: None, stack: self.trace.clone() });
        Ended::At(Limit { step, last, why })
    }

    /// Whether a copy of what torch gives a view of was in the way.
    fn wants_views(&self) -> bool {
        self.copy_in_the_way.get() && !self.picks_views
    }

    /// The step at which the span of an instruction of the root began.
    fn call_span(&self, op: Op) -> usize {
        if matches!(op, Op::Call) { self.span } else { self.root_steps - 1 }
    }

    /// Looks at a value that may hold others, which are looked at by the same function.
    pub(crate) fn nested<T>(&mut self, look: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        if self.nesting >= MAX_NESTING {
            return Err(self.stop("values are nested too deeply to be followed"));
        }
        self.nesting += 1;
        let found = look(self);
        self.nesting -= 1;
        found
    }

    /// Runs a frame that was called until it returns or yields.
    pub(crate) fn run_frame(&mut self, frame: &mut Frame) -> Run<Outcome> {
        if self.trace.len() > MAX_DEPTH {
            return Err(self.stop("calls are nested too deeply to be followed"));
        }
        self.handled_outside.push(self.handled.clone());
        let handled = self.handled.clone();
        self.handled = self.handled_now(frame);
        self.trace.push((frame.code.file.clone(), frame.code.first_line, frame.code.name.clone()));
        let outcome = loop {
            match self.step_or_handle(frame) {
                Ok(None) => {}
                Ok(Some(outcome)) => break Ok(outcome),
                Err(stop) => break Err(stop),
            }
        };
        // It would end with the exception, whose traceback holds the frame.
        let outcome = match outcome {
            Err(Stop::Raise(_)) if Self::holds_suspended(frame) => {
                Err(self.stop("a generator is alive in a frame that raises"))
            }
            outcome => outcome,
        };
        self.handled_outside.pop();
        self.handled = handled;
        // A break keeps the trace: it says where.
        if !matches!(outcome, Err(Stop::Break(..))) {
            self.trace.pop();
        }
        outcome
    }

    fn step_or_handle(&mut self, frame: &mut Frame) -> Run<Option<Outcome>> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(self.stop("the frame takes too many steps to be followed"));
        }
        let place = frame.place;
        let stepped = match self.step(frame) {
            Err(Stop::Raise(exception)) => self.give_context(frame, &exception, false).and(Err(Stop::Raise(exception))),
            other => other,
        };
        match stepped {
            Err(Stop::Raise(exception)) => match frame.code.handler(place).copied() {
                Some(handler) => {
                    frame.stack.truncate(handler.depth);
                    if handler.push_place {
                        frame.stack.push(Value::Known(self.host.int(place as i64), None));
                    }
                    frame.stack.push(exception);
                    frame.keywords.clear();
                    frame.place = handler.target;
                    if self.trace.len() == 1 {
                        self.last_raise = self.root;
                    }
                    Ok(None)
                }
                // torch's own arrays raise other things than numpy's do.
                None if frame.code.file.contains("/torch/_numpy/") => {
                    Err(self.stop("a function of numpy that raises, or that torch does not have"))
                }
                None => Err(Stop::Raise(exception)),
            },
            other => other,
        }
    }

    /// Stops for a reason.
    pub(crate) fn stop(&self, reason: impl Into<String>) -> Stop {
        Stop::Break(reason.into(), None)
    }

    /// Stops for a reason, with a way to avoid it.
    pub(crate) fn stop_with(&self, reason: impl Into<String>, hint: impl Into<String>) -> Stop {
        Stop::Break(reason.into(), Some(hint.into()))
    }

    /// Raises one of Python's own exceptions.
    pub(crate) fn raise(&self, class: &str, message: &str) -> Stop {
        let Some(class) = self.host.member("builtins", class) else { return self.stop(message) };
        let message = self.text(message);
        Stop::Raise(self.exception(class, vec![message]))
    }

    /// A text.
    pub(crate) fn text(&self, text: &str) -> Value {
        Value::Known(self.host.str(text), None)
    }

    /// An integer.
    pub(crate) fn int(&self, value: i64) -> Value {
        Value::Known(self.host.int(value), None)
    }

    /// A bool.
    pub(crate) fn bool(&self, value: bool) -> Value {
        Value::Known(self.host.bool(value), None)
    }

    /// `None`.
    pub(crate) fn none(&self) -> Value {
        Value::Known(self.host.none(), None)
    }

    /// An exception with what it says.
    fn describe_raised(&self, exception: &Value) -> String {
        let text = match exception {
            Value::Instance(instance) => match instance.args.borrow().first() {
                Some(Value::Known(text, _)) => self.host.as_str(*text),
                _ => None,
            },
            _ => None,
        };
        let described = self.describe(exception);
        text.map_or(described.clone(), |text| format!("{described}: {text}"))
    }

    /// A short text for messages.
    pub(crate) fn describe(&self, value: &Value) -> String {
        match value {
            Value::Null => "nothing".to_owned(),
            Value::Known(object, _) => self.host.describe(*object),
            Value::Lazy(origin) => self.host.describe(origin.object),
            Value::Tensor(_) => "a tensor".to_owned(),
            Value::Symbol(_) => "a size".to_owned(),
            Value::Number(_) => "a number".to_owned(),
            Value::Condition(_) => "a bool that depends on data".to_owned(),
            Value::Tuple(_) => "a tuple".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Deque(_) => "a deque".to_owned(),
            Value::Dict(_) => "a dict".to_owned(),
            Value::View(_) => "a view of a dict".to_owned(),
            Value::Set(_) => "a set".to_owned(),
            Value::Slice(_) => "a slice".to_owned(),
            Value::Function(function) => match self.host.code(function.code) {
                Some(code) => format!("the function {}", code.qualified_name),
                None => "a function".to_owned(),
            },
            Value::Method(method) => self.describe(&method.0),
            Value::Bound(bound) => format!("the method {} of {}", bound.1, self.describe(&bound.0)),
            Value::Instance(instance) => format!("an object of {}", self.host.class_name(instance.class)),
            Value::Members(_) => "the __dict__ of an object".to_owned(),
            Value::Cell(_) => "a cell".to_owned(),
            Value::Iterator(_) => "an iterator".to_owned(),
            Value::Super(_) => "super()".to_owned(),
            Value::Partial(_) => "a partial function".to_owned(),
            Value::Context(_) => "a context manager".to_owned(),
            Value::Address(_) => "the address of an object".to_owned(),
            Value::Weak(_) => "a weak reference".to_owned(),
            Value::Unknown(what) => what.to_string(),
        }
    }
}
