//! Backends: who runs a graph.
//!
//! A [`Backend`] is a name, a line of help and one function that makes a graph ready to run. [`register`] adds one. What
//! comes out is an [`Executable`]: it runs forward and, where something wants a gradient, hands out the [`Backward`]
//! that turns gradients of the outputs into gradients of the inputs.

use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use pyrite_codegen::decisions::renamed;
use pyrite_interp::Mode;
use pyrite_ir::{Contract, Graph, Node, NodeError, OpError, Operator, Value};
use pyrite_passes::{Gate, Random};
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;
use pyrite_trace::{Level, Topic};

/// Is told every call as it is done, with its value.
pub type Observer<'a> = dyn FnMut(&Node, &Value<Tensor>) + 'a;

/// Which calls a cross-reference looks at.
#[derive(Clone, Default)]
pub struct CrossReference {
    /// Only operators outside of PyTorch's own namespaces.
    pub custom_only: bool,
    /// Operators to leave out.
    pub ignore: Option<Arc<dyn Fn(&Operator) -> bool + Send + Sync>>,
}

/// A mode that wraps a run: it is told every operator call of forward and backward.
pub type CallMode = Arc<dyn Fn(&Node, &Value<Tensor>) + Send + Sync>;

/// What every backend can be told.
#[derive(Clone)]
pub struct Options {
    /// The seed of the program's random generator, as `torch.manual_seed` takes it.
    pub seed: u64,
    /// What the interpreter does beyond computing, for backends that interpret.
    pub mode: Mode,
    /// Whether the backward half is compiled where something wants a gradient.
    pub direction: Direction,
    /// How much memory the min-cut partitioner may use; see [`pyrite_autograd::MinCut`].
    pub memory_budget: f64,
    /// Where compiled programs get random numbers from.
    pub random: Random,
    /// Which calls are cross-referenced, by backends that do.
    pub cross_reference: CrossReference,
    /// The mode that wraps forward and backward, for backends that take one.
    pub call_mode: Option<CallMode>,
    /// How many optional rewrites may be made; all when `None`.
    pub rewrites: Option<u64>,
    /// Optional rewrites that are not made, by their names.
    pub refused: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            mode: Mode::Eager,
            direction: Direction::ForwardAndBackward,
            memory_budget: 1.0,
            random: Random::default(),
            cross_reference: CrossReference::default(),
            call_mode: None,
            rewrites: None,
            refused: Vec::new(),
        }
    }
}

impl Options {
    /// The gate for optional rewrites.
    pub fn gate(&self) -> Gate {
        let refused = self.refused.iter().map(|name| {
            renamed(name).map_or_else(
                || name.clone(),
                |new| {
                    pyrite_trace::log(Topic::PerfHints, Level::Warning, || {
                        format!("the decision `{name}` is called `{new}` now; the next release refuses the old name")
                    });
                    new
                },
            )
        });
        let refused: Vec<String> = refused.collect();
        self.rewrites.map_or_else(Gate::open, Gate::up_to).refusing(&refused)
    }
}

/// How far a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Forward only.
    Forward,
    /// Backward too, where something wants a gradient.
    ForwardAndBackward,
}

/// What a forward run gives.
pub struct Forward {
    /// The program's outputs.
    pub outputs: Value<Tensor>,
    /// The backward half, where something wants a gradient.
    pub backward: Option<Box<dyn Backward>>,
}

/// The gradients of a program's inputs and parameters.
#[derive(Clone, Debug, Default)]
pub struct InputGradients {
    /// One per input, `None` where it has none.
    pub inputs: Vec<Option<Tensor>>,
    /// One per parameter, by its name.
    pub parameters: Vec<(Arc<str>, Option<Tensor>)>,
}

/// The backward half of a run. It can be run once: what it needs is freed on the way.
pub trait Backward: Send {
    /// Which outputs, nested lists opened, have gradients.
    fn wanted(&self) -> Vec<usize>;

    /// The same backward half for another run: what was saved is shared, not copied, and lives until both are gone.
    fn again(&self) -> Box<dyn Backward>;

    /// Takes inputs as they are now, by their position, with what they were when the program ran forward: they were given
    /// other memory since. What was saved of the memory they had stays as it is.
    fn replace(&mut self, _inputs: &[(usize, Tensor, Tensor)]) -> Result<(), OpError> {
        Ok(())
    }

    /// Puts other tensors, with the same elements in memory that is held, in place of saved ones that a function has them for;
    /// `false` where what was saved is not known.
    fn hold_saved(&mut self, _held: &mut dyn FnMut(&Tensor) -> Option<Tensor>) -> bool {
        false
    }

    /// The gradients of the inputs from those of the wanted outputs, in their order. External memory that was saved is
    /// read where its owner has it now.
    fn run(self: Box<Self>, tangents: Vec<Tensor>, observe: &mut Observer<'_>) -> Result<InputGradients, NodeError>;
}

/// A program with inputs that come again in many runs: what a run needs to know of them is found out once. Their storages are
/// held meanwhile.
pub trait Prepared: Send {
    /// Gives an input other memory; `false` where the program has to be prepared anew.
    fn replace(&mut self, index: usize, input: &Tensor) -> bool;

    /// Runs it forward. What is saved for a backward half may lie in the storages of inputs.
    fn run(&mut self, random: &mut TorchGenerator, observe: &mut Observer<'_>) -> Result<Forward, NodeError>;
}

/// A graph that is ready to run.
pub trait Executable: Send + Sync {
    /// Runs it on inputs, one per placeholder. Inputs are dropped at their last use. Random numbers come from the
    /// generator, or where none is given from one with the options' seed; what runs in another process draws from the
    /// generator there.
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError>;

    /// Itself with inputs for many runs; `None` where each run has to look at them.
    fn prepare(&self, _inputs: &[Value<Tensor>]) -> Option<Box<dyn Prepared>> {
        None
    }

    /// What it assumes of its inputs, where that is more than their types, sizes and strides.
    fn contract(&self) -> Option<&Contract> {
        None
    }

    /// The optional decisions (rewrites, lowerings, fusions) that were made for it, in the order of their numbers:
    /// `Options::rewrites` says how many of them may be made.
    fn rewrites(&self) -> &[String] {
        &[]
    }

    /// How long each stage of compiling it took, in order.
    fn times(&self) -> &[(&'static str, Duration)] {
        &[]
    }

    /// Whether a second call on the same inputs gave other results than the last run; `false` where that was not tried.
    fn changes(&self) -> bool {
        false
    }

    /// The graphs it runs, with their names, for whoever wants to see them.
    fn graphs(&self) -> Vec<(String, Graph)> {
        Vec::new()
    }
}

/// Makes a graph ready to run. Placeholders have metadata, which says whose gradients are wanted.
pub type CompileFn = Arc<dyn Fn(Graph, &Options) -> Result<Box<dyn Executable>, NodeError> + Send + Sync>;

/// A backend: a name, a line of help, and how it compiles.
#[derive(Clone)]
pub struct Backend {
    /// Its name on the command line.
    pub name: Arc<str>,
    /// What it does, in a line.
    pub help: Arc<str>,
    /// Makes a graph ready to run.
    pub compile: CompileFn,
}

impl Backend {
    /// A backend of one function.
    pub fn new(
        name: &str,
        help: &str,
        compile: impl Fn(Graph, &Options) -> Result<Box<dyn Executable>, NodeError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), help: help.into(), compile: Arc::new(compile) }
    }
}

fn table() -> &'static RwLock<Vec<Backend>> {
    static TABLE: OnceLock<RwLock<Vec<Backend>>> = OnceLock::new();
    TABLE.get_or_init(|| RwLock::new(crate::backends::built_in()))
}

/// All backends in the order they are listed: the built-in ones, then those that were registered.
pub fn backends() -> Vec<Backend> {
    table().read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}

/// The backend of that name: one that is listed, or one of a family of names with a common prefix.
pub fn find(name: &str) -> Option<Backend> {
    let listed = backends().into_iter().find(|backend| &*backend.name == name);
    listed.or_else(|| {
        let families = families().read().unwrap_or_else(std::sync::PoisonError::into_inner);
        families.iter().find_map(|(prefix, make)| name.strip_prefix(&**prefix).and_then(|rest| make(rest)))
    })
}

/// Makes the backend of a name without its prefix.
type FamilyFn = Arc<dyn Fn(&str) -> Option<Backend> + Send + Sync>;

fn families() -> &'static RwLock<Vec<(Arc<str>, FamilyFn)>> {
    static FAMILIES: OnceLock<RwLock<Vec<(Arc<str>, FamilyFn)>>> = OnceLock::new();
    FAMILIES.get_or_init(RwLock::default)
}

/// Adds a family of backends: all names that begin with a prefix, such as `torch:`.
pub fn register_prefix(prefix: &str, make: impl Fn(&str) -> Option<Backend> + Send + Sync + 'static) {
    let mut families = families().write().unwrap_or_else(std::sync::PoisonError::into_inner);
    families.retain(|(known, _)| &**known != prefix);
    families.push((prefix.into(), Arc::new(make)));
}

/// Adds a backend; one of the same name is replaced.
pub fn register(backend: Backend) {
    let mut table = table().write().unwrap_or_else(std::sync::PoisonError::into_inner);
    table.retain(|known| known.name != backend.name);
    table.push(backend);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyrite_ir::{Builder, OpError};
    use pyrite_ops::registry;

    fn gelu_graph() -> Graph {
        let op = registry().get("aten.gelu.default").unwrap();
        let mut builder = Builder::new();
        let x = builder.placeholder("x", None);
        let y = builder.call(op, vec![x.into(), "none".into()]);
        builder.output(vec![y].into());
        builder.finish()
    }

    #[test]
    fn names_are_unique_and_found() {
        let all = backends();
        for backend in &all {
            assert_eq!(all.iter().filter(|b| b.name == backend.name).count(), 1);
            assert!(find(&backend.name).is_some() && !backend.help.is_empty());
        }
        assert!(find("no such backend").is_none());
    }

    #[test]
    fn eager_runs_a_graph_and_reports_every_node() {
        let program = (find("eager").unwrap().compile)(gelu_graph(), &Options::default()).unwrap();
        let mut seen = 0;
        let input = Tensor::from_slice(&[0.0f32, 1.0], &[2]);
        let result = program.run(vec![input.into()], None, &mut |_, _| seen += 1).unwrap();
        let Value::List(items) = result.outputs else { panic!("the graph returns a list") };
        let values = items[0].as_tensor().unwrap().to_f64s();
        assert_eq!((values[0], seen), (0.0, 3));
        assert!((values[1] - 0.841_344_7).abs() < 1e-6);
    }

    #[test]
    fn a_backend_of_ones_own_takes_one_function() {
        register(Backend::new("refusing", "refuses everything", |_, _| Err(OpError::unsupported("anything").into())));
        let refused = (find("refusing").unwrap().compile)(gelu_graph(), &Options::default());
        assert!(matches!(refused.err().unwrap().error, OpError::Unsupported(_)));
    }
}
