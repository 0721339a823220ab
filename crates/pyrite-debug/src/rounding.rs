//! The reference with other rounding, and what tips over by it.
//!
//! [`OtherRounding`] runs a program as the reference does, but with values moved by a unit in the last place (see
//! [`Perturbation`]). Such runs are samples of what rounding does.
//!
//! Integers and bools that are taken from rounded numbers (the place of a maximum, an order, a comparison) change in steps. One
//! that tips over once in a thousand runs tips over in none of three samples. So it is computed which of them rounding can tip: at
//! every node that makes integers from floats, the samples' inputs are kept. The last run, the *tipped* one, moves nothing. At each of
//! these nodes it evaluates the operator again, on its inputs plus a multiple of the difference of two runs, and takes the integers that
//! come out otherwise. Whatever numbers have in common stays so: where one input is the maximum of the other in all samples, it is in every
//! such combination. What a wrong integer would need beyond that is no rounding, and not taken.
//!
//! Floats can change in steps, too: those of `floor`, `sign` or a remainder tip over as integers do.
//!
//! Numbers that a program is given are not rounded. Integers that follow from them through nothing but views, moves of data and exact
//! operators are exact in samples and in the tipped run: a comparison of an input with a constant has one result.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use pyrite_compiler::aot::{Compiled, GraphCompiler};
use pyrite_compiler::backend::{Backend, Observer};
use pyrite_compiler::{Options, aot_autograd, find};
use pyrite_interp::{Context, Interpreter, Mode, call};
use pyrite_ir::{Device, Eval, Graph, Kind, Meta, Node, NodeError, NodeId, OpError, OpRef, Tag, Target, Value};
use pyrite_ops::registry;
use pyrite_oracle::Stage;
use pyrite_passes::Table;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::freedom::{copy_of, in_place_of_nodes};
use crate::judge::{Broken, Ran, execute, prepared};
use crate::perturb::{Perturbation, rounds};

/// How many samples the tipped run needs, and how many it uses at most.
const NEEDED: usize = 2;
const USED: usize = 3;

/// How many times the difference of two runs inputs are moved. The difference of the two largest of a window is a normal
/// number in samples; two of them are both smaller than an eighth of their deviation in one of a hundred cases.
const REACH: [f64; 4] = [2.0, -2.0, 8.0, -8.0];

/// From how many elements on the shorter reach is left out.
const MANY: usize = 1 << 20;

/// Runs of a reference with other rounding; see the module's text.
pub struct OtherRounding<'a> {
    graph: &'a Graph,
    inputs: &'a [Value<Tensor>],
    reference: Backend,
    options: Options,
    recorded: Arc<Mutex<Record>>,
    asked: RefCell<FxHashSet<u64>>,
}

/// What runs leave for later ones.
#[derive(Default)]
struct Record {
    task: Task,
    /// How many graphs were compiled in the current run.
    compiled: usize,
    /// How many nodes of them make integers from floats.
    candidates: usize,
    /// The inputs of those nodes in each sample, by the number of the graph.
    samples: Vec<FxHashMap<(usize, NodeId), Value<Tensor>>>,
    /// How many integers the tipped run changed.
    tipped: usize,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, Default)]
enum Task {
    #[default]
    Count,
    /// Moves values, as this seed has it.
    Sample(u64),
    Tip,
}

impl<'a> OtherRounding<'a> {
    /// Runs of a program. Only what Pyrite interprets can be made to round otherwise; a reference outside of Pyrite is
    /// stood in for by `eager`, which is as far from it as rounding is.
    pub fn new(graph: &'a Graph, inputs: &'a [Value<Tensor>], reference: &Backend, options: Options) -> Self {
        let inside = if reference.name.contains(':') { find("eager") } else { None };
        let reference = inside.unwrap_or_else(|| reference.clone());
        Self { graph, inputs, reference, options, recorded: Arc::default(), asked: RefCell::default() }
    }

    /// A sample.
    pub fn sample(&self, seed: u64) -> Result<Ran, Broken> {
        // A compiler rounds between the steps of an operator, such as those of a normalisation, where a kernel may not: so
        // it is the steps that are moved. What has none is moved as it is.
        let record = self.asked.borrow_mut().insert(seed);
        self.in_steps(Task::Sample(seed), record).or_else(|_| self.whole(seed))
    }

    /// A sample in which operators run as they are: the steps of one may leave out what it checks.
    pub fn whole(&self, seed: u64) -> Result<Ran, Broken> {
        let mut perturbation = Perturbation::new(seed);
        let observe = &mut |node: &Node, value: &Value<Tensor>| perturbation.apply(node, value);
        execute(self.graph, self.inputs, &self.reference, &self.options, &mut |_| {}, observe)
    }

    /// The run in which everything tips over that rounding can tip; an error where nothing does.
    pub fn tipped(&self) -> Result<Ran, Broken> {
        let nothing = || Broken { stage: Stage::Forward, error: OpError::unsupported("nothing tips over").into() };
        let (mut graph, _) = prepared(self.graph, self.inputs, Mode::Eager);
        graph.put_on(&Device::Cpu);
        let compiled = (self.steps().compile)(graph, &self.options);
        if compiled.is_err() || self.lock().candidates == 0 {
            return Err(nothing());
        }
        for seed in 1..=NEEDED as u64 {
            if self.lock().samples.len() < NEEDED && !self.asked.borrow().contains(&seed) {
                self.sample(seed)?;
            }
        }
        let ran = self.in_steps(Task::Tip, false)?;
        if self.lock().tipped > 0 { Ok(ran) } else { Err(nothing()) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_steps(&self, task: Task, record: bool) -> Result<Ran, Broken> {
        let steps = self.steps();
        let kept = self.lock().samples.len();
        if let (Task::Sample(_), true) = (task, record && kept < USED) {
            self.lock().samples.push(FxHashMap::default());
        }
        let mut recorded = self.lock();
        (recorded.task, recorded.tipped) = (task, 0);
        drop(recorded);
        let ran = execute(self.graph, self.inputs, &steps, &self.options, &mut |_| {}, &mut |_, _| {});
        let mut recorded = self.lock();
        recorded.task = Task::Count;
        if ran.is_err() {
            recorded.samples.truncate(kept);
        }
        ran
    }

    /// The reference in steps, which follows the task of the record.
    fn steps(&self) -> Backend {
        let mut recorded = self.lock();
        (recorded.compiled, recorded.candidates) = (0, 0);
        drop(recorded);
        let recorded = self.recorded.clone();
        let compiler: GraphCompiler = Arc::new(move |graph, _| {
            let mut record = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            let half = Half::new(graph, record.compiled, recorded.clone());
            record.compiled += 1;
            record.candidates += half.candidates.len();
            Ok(Arc::new(half) as Arc<dyn Compiled>)
        });
        aot_autograd(compiler).decompositions(Table::Loops).backend("steps", "the reference in steps")
    }
}

/// A functional graph of a run.
struct Half {
    graph: Graph,
    number: usize,
    /// The nodes that make integers from floats which were rounded.
    candidates: FxHashSet<NodeId>,
    /// Those whose integers follow from what the program is given alone, and what they follow from.
    exact: FxHashSet<NodeId>,
    /// What candidates are made from.
    inputs: FxHashSet<NodeId>,
    recorded: Arc<Mutex<Record>>,
}

impl Half {
    fn new(graph: Graph, number: usize, recorded: Arc<Mutex<Record>>) -> Self {
        let (mut given, mut steps) = (FxHashSet::default(), FxHashSet::default());
        for (id, node) in graph.nodes() {
            let mut of_given = true;
            node.each_input(&mut |input| of_given &= given.contains(&input));
            let moves = match &node.kind {
                // What the backward half is given was computed by the forward half.
                Kind::Placeholder => number == 0,
                Kind::GetAttr(_) => true,
                Kind::Call(Target::GetItem) => of_given,
                Kind::Call(Target::Op(op)) => of_given && !op.has(Tag::Random) && !rounds(op),
                Kind::Call(Target::Opaque(_)) | Kind::Output => false,
            };
            if moves {
                given.insert(id);
            }
            if is_step(&graph, node) {
                steps.insert(id);
            }
        }
        let (mut inputs, mut exact, mut candidates) =
            (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        for id in &steps {
            let mut rounded = false;
            graph.node(*id).each_input(&mut |input| {
                inputs.insert(input);
                rounded |= !given.contains(&input) && is_float(&graph, input);
            });
            if rounded {
                candidates.insert(*id);
            }
        }
        // What leads to the given inputs of a step is kept as it was.
        let mut left: Vec<NodeId> = steps.iter().chain(&inputs).copied().filter(|id| given.contains(id)).collect();
        for id in &steps {
            graph.node(*id).each_input(&mut |input| left.extend(given.contains(&input).then_some(input)));
        }
        while let Some(id) = left.pop() {
            if exact.insert(id) {
                graph.node(id).each_input(&mut |input| left.push(input));
            }
        }
        Self { graph, number, candidates, exact, inputs, recorded }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn any(meta: Option<&Value<Meta>>, wanted: &dyn Fn(&Meta) -> bool) -> bool {
    let mut found = false;
    if let Some(meta) = meta {
        meta.each(&mut |meta| found |= wanted(meta));
    }
    found
}

fn is_float(graph: &Graph, id: NodeId) -> bool {
    any(graph.node(id).meta.as_ref(), &|meta| meta.dtype.is_float())
}

/// Whether a node makes integers or bools from floats.
fn is_step(graph: &Graph, node: &Node) -> bool {
    let Kind::Call(Target::Op(op)) = &node.kind else { return false };
    if matches!(op.def.eval, Eval::View | Eval::HigherOrder) || op.has(Tag::Random) || op.schema.is_mutable() {
        return false;
    }
    let mut floats = false;
    node.each_input(&mut |input| floats |= is_float(graph, input));
    floats && (is_float_step(op) || any(node.meta.as_ref(), &|meta| meta.dtype.is_integral()))
}

/// Whether an operator makes floats from floats in steps.
fn is_float_step(op: &OpRef) -> bool {
    let name = op.name();
    let base = name.split('.').nth(1).unwrap_or_default();
    FLOAT_STEPS.contains(&base) || name.ends_with(".div.Tensor_mode") || name.ends_with(".div.Scalar_mode")
}

/// Operators that make floats from floats in steps, by their names without an overload.
const FLOAT_STEPS: [&str; 13] = [
    "ceil",
    "floor",
    "floor_divide",
    "fmod",
    "frac",
    "hardshrink",
    "heaviside",
    "remainder",
    "round",
    "sgn",
    "sign",
    "threshold",
    "trunc",
];

impl Compiled for Half {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        let context = Context::with_generator(registry(), random.clone());
        let task = self.lock().task;
        let mut perturbation = match task {
            Task::Sample(seed) => Some(Perturbation::new(seed ^ (self.number as u64) << 32)),
            Task::Count | Task::Tip => None,
        };
        // What candidates were made from, and what the given values were before they moved.
        let (mut seen, mut unmoved) = (FxHashMap::default(), FxHashMap::default());
        let interpreter = Interpreter { context: &context, mode: Mode::Eager };
        let result = interpreter.run_observed(&self.graph, inputs, &mut |id, node, value| {
            if self.exact.contains(&id) && perturbation.is_some() {
                unmoved.extend(unmoved_value(node, value, &unmoved, &context).map(|own| (id, own)));
            }
            if let Kind::Call(Target::Op(op)) = &node.kind
                && is_step(&self.graph, node)
            {
                match task {
                    Task::Sample(_) => take_given(op, node, value, [&unmoved, &seen], &context),
                    Task::Tip if self.candidates.contains(&id) => {
                        let tipped = self.tip(op, node, value, &seen, &context);
                        self.lock().tipped += tipped;
                    }
                    Task::Tip | Task::Count => {}
                }
            }
            if let Some(perturbation) = &mut perturbation {
                perturbation.apply(node, value);
            }
            if self.inputs.contains(&id) {
                seen.insert(id, value.clone());
            }
            observe(node, value);
        });
        if let (Task::Sample(_), Some(sample)) = (task, self.lock().samples.last_mut()) {
            let rounded = |id: &NodeId| is_float(&self.graph, *id) && !self.exact.contains(id);
            let kept = seen.into_iter().filter(|(id, _)| rounded(id));
            sample.extend(kept.map(|(id, value)| ((self.number, id), value)));
        }
        *random = context.rng.into_inner();
        match result? {
            Value::List(items) => Ok(items),
            other => Err(OpError::fault(format!("a functional graph returned {}", other.kind())).into()),
        }
    }
}

impl Half {
    /// Changes those elements of a value that rounding can tip; how many.
    fn tip(
        &self,
        op: &OpRef,
        node: &Node,
        value: &Value<Tensor>,
        seen: &FxHashMap<NodeId, Value<Tensor>>,
        context: &Context<'_>,
    ) -> usize {
        let results = steps_in(op, value);
        let own: Vec<Vec<Element>> = results.iter().map(elements_of).collect();
        let mut other = own.clone();
        let recorded = self.lock();
        let samples = &recorded.samples;
        // Of two samples, or of one and the run without other rounding.
        let pairs = (0..samples.len()).flat_map(|a| (0..a).map(Some).chain([None]).map(move |b| (a, b)));
        let many = own.iter().map(Vec::len).sum::<usize>() > MANY;
        for reach in &REACH[if many { 2 } else { 0 }..] {
            for (a, b) in pairs.clone() {
                let moved = |id: &NodeId| {
                    let now = seen.get(id)?;
                    let key = (self.number, *id);
                    Some(match (samples[a].get(&key), b.map_or(Some(now), |b| samples[b].get(&key))) {
                        (Some(a), Some(b)) => beyond(now, a, b, *reach)?,
                        _ => now.clone(),
                    })
                };
                let values: Option<FxHashMap<_, _>> = inputs_of(node).map(|id| Some((id, moved(&id)?))).collect();
                let args = values.and_then(|values| {
                    node.args.iter().map(|arg| in_place_of_nodes(arg, &values)).collect::<Option<Vec<_>>>()
                });
                let Some(Ok(tried)) = args.map(|args| call(context, op, args)) else { return 0 };
                for ((own, other), tried) in own.iter().zip(&mut other).zip(steps_in(op, &tried)) {
                    if tried.numel() == own.len() {
                        for ((own, other), tried) in own.iter().zip(other).zip(elements_of(&tried)) {
                            own.tip(other, tried);
                        }
                    }
                }
            }
        }
        let mut count = 0;
        for ((tensor, own), other) in results.iter().zip(&own).zip(&other) {
            count += own.iter().zip(other).filter(|(own, other)| own != other).count();
            if own != other {
                write(tensor, other);
            }
        }
        count
    }
}

fn inputs_of(node: &Node) -> impl Iterator<Item = NodeId> {
    let mut inputs = Vec::new();
    node.each_input(&mut |input| inputs.push(input));
    inputs.into_iter()
}

/// A value plus a multiple of the difference of two samples of it; `None` where they have other shapes.
fn beyond(now: &Value<Tensor>, a: &Value<Tensor>, b: &Value<Tensor>, reach: f64) -> Option<Value<Tensor>> {
    let (Some(now), Some(a), Some(b)) = (now.as_tensor(), a.as_tensor(), b.as_tensor()) else {
        return Some(now.clone());
    };
    if !now.dtype().is_float() {
        return Some(now.clone().into());
    }
    if now.shape() != a.shape() || now.shape() != b.shape() {
        return None;
    }
    let moved = copy_of(now);
    let values = now.to_f64s().into_iter().zip(a.to_f64s().into_iter().zip(b.to_f64s()));
    let far = |(now, (a, b)): (f64, (f64, f64))| if a.to_bits() == b.to_bits() { now } else { now + reach * (a - b) };
    moved.write_f64s(&values.map(far).collect::<Vec<_>>());
    Some(moved.into())
}

/// An element of a value that changes in steps.
#[derive(Clone, Copy, Debug)]
enum Element {
    Integer(i64),
    Float(f64),
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(own), Self::Integer(other)) => own == other,
            (Self::Float(own), Self::Float(other)) => own.to_bits() == other.to_bits(),
            _ => false,
        }
    }
}

impl Element {
    /// Takes what was tried in the place of this element: of integers the first other one, which is the nearest; of floats, which
    /// also move where they do not jump, the farthest.
    fn tip(self, other: &mut Self, tried: Self) {
        let takes = match (self, *other, tried) {
            (Self::Float(own), Self::Float(other), Self::Float(tried)) => (tried - own).abs() > (other - own).abs(),
            _ => *other == self,
        };
        if takes {
            *other = tried;
        }
    }
}

fn elements_of(tensor: &Tensor) -> Vec<Element> {
    if tensor.dtype().is_integral() {
        tensor.to_i64s().into_iter().map(Element::Integer).collect()
    } else {
        tensor.to_f64s().into_iter().map(Element::Float).collect()
    }
}

/// Gives a tensor the elements that [`elements_of`] takes from it.
fn write(tensor: &Tensor, elements: &[Element]) {
    if tensor.dtype().is_integral() {
        tensor
            .write_i64s(&elements.iter().map(|e| if let Element::Integer(v) = e { *v } else { 0 }).collect::<Vec<_>>());
    } else {
        tensor
            .write_f64s(&elements.iter().map(|e| if let Element::Float(v) = e { *v } else { 0.0 }).collect::<Vec<_>>());
    }
}

/// The tensors of an operator's value that change in steps.
fn steps_in(op: &OpRef, value: &Value<Tensor>) -> Vec<Tensor> {
    let floats = is_float_step(op);
    let mut found = Vec::new();
    value.each(&mut |tensor| {
        let changes = tensor.dtype().is_integral() || floats && tensor.dtype().is_float();
        found.extend(changes.then(|| tensor.clone()));
    });
    found
}

/// What a node that follows from given values has where none of them was moved.
fn unmoved_value(
    node: &Node,
    value: &Value<Tensor>,
    unmoved: &FxHashMap<NodeId, Value<Tensor>>,
    context: &Context<'_>,
) -> Option<Value<Tensor>> {
    match &node.kind {
        Kind::Call(Target::Op(op)) => {
            let args: Option<Vec<_>> = node.args.iter().map(|arg| in_place_of_nodes(arg, unmoved)).collect();
            call(context, op, args?).ok()
        }
        Kind::Call(Target::GetItem) => {
            let (list, index) = (in_place_of_nodes(node.args.first()?, unmoved)?, node.args.get(1)?.as_scalar()?);
            let Value::List(items) = list else { return None };
            items.get(usize::try_from(index.to_i64()).ok()?).cloned()
        }
        _ => Some(value.map(&mut |tensor| copy_of(tensor))),
    }
}

/// Gives a node the integers that it has with those inputs that are given as they were given.
fn take_given(
    op: &OpRef,
    node: &Node,
    value: &Value<Tensor>,
    [unmoved, seen]: [&FxHashMap<NodeId, Value<Tensor>>; 2],
    context: &Context<'_>,
) {
    if !inputs_of(node).any(|id| unmoved.contains_key(&id)) {
        return;
    }
    let values: Option<FxHashMap<_, _>> =
        inputs_of(node).map(|id| Some((id, unmoved.get(&id).or_else(|| seen.get(&id))?.clone()))).collect();
    let args = values
        .and_then(|values| node.args.iter().map(|arg| in_place_of_nodes(arg, &values)).collect::<Option<Vec<_>>>());
    let Some(Ok(own)) = args.map(|args| call(context, op, args)) else { return };
    for (tensor, own) in steps_in(op, value).iter().zip(steps_in(op, &own)) {
        if tensor.shape() == own.shape() {
            write(tensor, &elements_of(&own));
        }
    }
}
