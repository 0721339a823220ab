//! Compiled programs: made by a backend, run on tensors.

use pyrite_compare::{Options as CompareOptions, Report, Results};
use pyrite_compiler::backend::{self, Backend, Executable, Options};
use pyrite_compiler::training::flatten;
use pyrite_ir::{Graph, OpError, Value};
use pyrite_tensor::Tensor;

use crate::Error;

/// All backends: the built-in ones, then those that were registered.
///
/// ```
/// assert!(pyrite::backends().iter().any(|backend| &*backend.name == "native"));
/// ```
pub fn backends() -> Vec<Backend> {
    backend::backends()
}

/// Compiles a graph with a backend's defaults; [`Compiler`] has the options.
pub fn compile(graph: &Graph, backend: &str) -> Result<Program, Error> {
    Compiler::new(backend)?.compile(graph)
}

/// A backend with its options.
///
/// ```
/// let graph = pyrite::read_text("
/// def forward(x: 'f32[4]'):
///     return (torch.ops.aten.exp.default(torch.ops.aten.neg.default(x)),)
/// ")?;
/// let fused = pyrite::Compiler::new("native")?.compile(&graph)?;
/// let separate = pyrite::Compiler::new("native")?.decisions(0).compile(&graph)?;
/// assert!(fused.decisions().len() > separate.decisions().len());
/// # Ok::<(), pyrite::Error>(())
/// ```
#[derive(Clone)]
pub struct Compiler {
    backend: Backend,
    options: Options,
}

impl Compiler {
    /// A backend by its name.
    ///
    /// ```
    /// assert!(pyrite::Compiler::new("nativ").is_err());
    /// ```
    pub fn new(backend: &str) -> Result<Self, Error> {
        let known = || backends().iter().map(|backend| backend.name.to_string()).collect();
        let found = backend::find(backend);
        let backend = found.ok_or_else(|| Error::UnknownBackend { name: backend.to_owned(), known: known() })?;
        Ok(Self { backend, options: Options::default() })
    }

    /// The seed of the program's random numbers, as `torch.manual_seed` takes it.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// How many optional decisions (rewrites, lowerings, fusions) may be made, in their order. Two neighbouring numbers of
    /// which one gives a wrong result name the decision that is wrong.
    #[must_use]
    pub fn decisions(mut self, count: u64) -> Self {
        self.options.rewrites = Some(count);
        self
    }

    /// A decision that is not made, by its name as [`Program::decisions`] has it.
    #[must_use]
    pub fn refuse(mut self, decision: &str) -> Self {
        self.options.refused.push(decision.to_owned());
        self
    }

    /// Compiles a graph.
    pub fn compile(&self, graph: &Graph) -> Result<Program, Error> {
        let executable = (self.backend.compile)(graph.clone(), &self.options)?;
        Ok(Program { executable })
    }
}

/// A graph that is ready to run.
pub struct Program {
    executable: Box<dyn Executable>,
}

/// What a run with gradients gives.
pub struct Gradients {
    /// The program's outputs, nested lists opened.
    pub outputs: Vec<Tensor>,
    /// The gradient of each input, `None` where it has none.
    pub inputs: Vec<Option<Tensor>>,
}

impl Program {
    /// Runs it on one tensor per input; nested lists of outputs are opened. An input that the program writes to is written to.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let forward = self.executable.run(values(inputs), &mut |_, _| {})?;
        Ok(tensors(&forward.outputs))
    }

    /// Runs it forward and backward, from the gradients of those outputs that have one.
    ///
    /// ```
    /// use pyrite::{DType, GraphBuilder, Tensor};
    ///
    /// let mut builder = GraphBuilder::new();
    /// let x = builder.parameter("x", DType::F64, &[2]);
    /// let square = builder.call("aten.mul.Tensor", &[x.into(), x.into()])?;
    /// let program = pyrite::compile(&builder.finish(&[square]), "native")?;
    /// let x = Tensor::from_slice(&[3.0_f64, -1.0], &[2]);
    /// let ones = Tensor::from_slice(&[1.0_f64, 1.0], &[2]);
    /// let run = program.gradients(&[x], &[ones])?;
    /// assert_eq!(run.inputs[0].as_ref().unwrap().to_f64s(), [6.0, -2.0]);
    /// # Ok::<(), pyrite::Error>(())
    /// ```
    pub fn gradients(&self, inputs: &[Tensor], output_gradients: &[Tensor]) -> Result<Gradients, Error> {
        let forward = self.executable.run(values(inputs), &mut |_, _| {})?;
        let outputs = tensors(&forward.outputs);
        let Some(backward) = forward.backward else {
            return Err(OpError::invalid("no input of the program wants a gradient; make one with `parameter`").into());
        };
        let wanted = backward.wanted().len();
        if wanted != output_gradients.len() {
            let given = output_gradients.len();
            return Err(OpError::invalid(format!("{wanted} outputs have gradients, {given} were given")).into());
        }
        let gradients = backward.run(output_gradients.to_vec(), &mut |_, _| {})?;
        Ok(Gradients { outputs, inputs: gradients.inputs })
    }

    /// The optional decisions that were made for it, in the order of their numbers.
    pub fn decisions(&self) -> &[String] {
        self.executable.rewrites()
    }

    /// The graphs that it runs, with their names.
    pub fn graphs(&self) -> Vec<(String, Graph)> {
        self.executable.graphs()
    }
}

/// Compares the outputs of two runs.
///
/// ```
/// use pyrite::{CompareOptions, Tensor};
///
/// let expected = Tensor::from_slice(&[1.0_f32, 2.0], &[2]);
/// let actual = Tensor::from_slice(&[1.0_f32, 2.5], &[2]);
/// let report = pyrite::compare(&[expected], &[actual], &CompareOptions::default());
/// assert!(!report.agrees());
/// assert!(report.differences[0].to_string().contains("2.5"));
/// ```
pub fn compare(expected: &[Tensor], actual: &[Tensor], options: &CompareOptions) -> Report {
    let results = |tensors: &[Tensor]| Results::outputs(values(tensors));
    pyrite_compare::compare(&results(expected), &results(actual), None, options)
}

fn values(tensors: &[Tensor]) -> Vec<Value<Tensor>> {
    tensors.iter().cloned().map(Value::Tensor).collect()
}

fn tensors(outputs: &Value<Tensor>) -> Vec<Tensor> {
    let mut flat = Vec::new();
    flatten(outputs, &mut flat);
    flat.into_iter().filter_map(|value| value.as_tensor().cloned()).collect()
}
