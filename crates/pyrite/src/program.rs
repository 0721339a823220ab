//! Compiled programs.

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
///
/// ```
/// let graph = pyrite::read_text("
/// def forward(x: 'f32[2]'):
///     return (torch.ops.aten.relu.default(x),)
/// ")?;
/// let program = pyrite::compile(&graph, "native")?;
/// let outputs = program.run(&[pyrite::Tensor::from_slice(&[-1.0_f32, 2.0], &[2])])?;
/// assert_eq!(outputs[0].to_f32s(), [0.0, 2.0]);
/// # Ok::<(), pyrite::Error>(())
/// ```
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

    /// The seed of the program's random numbers, as in `torch.manual_seed`.
    ///
    /// ```
    /// let graph = pyrite::read_text("
    /// def forward(x: 'f32[8]'):
    ///     return (torch.ops.aten.rand_like.default(x),)
    /// ")?;
    /// let draw = |seed| -> Result<Vec<f32>, pyrite::Error> {
    ///     let program = pyrite::Compiler::new("native")?.seed(seed).compile(&graph)?;
    ///     Ok(program.run(&[pyrite::Tensor::from_slice(&[0.0_f32; 8], &[8])])?[0].to_f32s())
    /// };
    /// assert_eq!(draw(1)?, draw(1)?);
    /// assert_ne!(draw(1)?, draw(2)?);
    /// # Ok::<(), pyrite::Error>(())
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Allows only the first `count` optional decisions (rewrites, lowerings, fusions). If the result is right with `n`
    /// and wrong with `n + 1`, decision `n` is at fault.
    #[must_use]
    pub fn decisions(mut self, count: u64) -> Self {
        self.options.rewrites = Some(count);
        self
    }

    /// Refuses one decision, by its name in [`Program::decisions`].
    ///
    /// ```
    /// let graph = pyrite::read_text("
    /// def forward(x: 'f32[4]'):
    ///     return (torch.ops.aten.exp.default(torch.ops.aten.neg.default(x)),)
    /// ")?;
    /// let fused = pyrite::Compiler::new("native")?.compile(&graph)?;
    /// let fusion = fused.decisions().iter().find(|name| name.starts_with("fuse")).unwrap();
    /// let separate = pyrite::Compiler::new("native")?.refuse(fusion).compile(&graph)?;
    /// assert!(!separate.decisions().contains(fusion));
    /// # Ok::<(), pyrite::Error>(())
    /// ```
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

/// A compiled graph.
pub struct Program {
    executable: Box<dyn Executable>,
}

/// The result of a run with gradients.
pub struct Gradients {
    /// The program's outputs; nested lists are flattened.
    pub outputs: Vec<Tensor>,
    /// The gradient of each input, or `None`.
    pub inputs: Vec<Option<Tensor>>,
}

impl Program {
    /// Runs the program on one tensor per input. Nested lists of outputs are flattened. Writes of the program change the
    /// inputs.
    ///
    /// ```
    /// let graph = pyrite::read_text("
    /// def forward(x: 'f32[2]'):
    ///     return (torch.ops.aten.add_.Tensor(x, 1),)
    /// ")?;
    /// let x = pyrite::Tensor::from_slice(&[1.0_f32, 2.0], &[2]);
    /// pyrite::compile(&graph, "native")?.run(std::slice::from_ref(&x))?;
    /// assert_eq!(x.to_f32s(), [2.0, 3.0]);
    /// # Ok::<(), pyrite::Error>(())
    /// ```
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let forward = self.executable.run(values(inputs), None, &mut |_, _| {})?;
        Ok(tensors(&forward.outputs))
    }

    /// Runs the program forward and backward, given the gradients of the differentiable outputs.
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
        let forward = self.executable.run(values(inputs), None, &mut |_, _| {})?;
        let outputs = tensors(&forward.outputs);
        let Some(backward) = forward.backward else {
            return Err(
                OpError::invalid("no input of the program requires a gradient; create one with `parameter`").into()
            );
        };
        let wanted = backward.wanted().len();
        if wanted != output_gradients.len() {
            let given = output_gradients.len();
            return Err(OpError::invalid(format!("{wanted} outputs have gradients, got {given}")).into());
        }
        let gradients = backward.run(output_gradients.to_vec(), &mut |_, _| {})?;
        Ok(Gradients { outputs, inputs: gradients.inputs })
    }

    /// The optional decisions that were taken, in order.
    ///
    /// ```
    /// let graph = pyrite::read_text("
    /// def forward(x: 'f32[4]'):
    ///     return (torch.ops.aten.exp.default(x),)
    /// ")?;
    /// let program = pyrite::compile(&graph, "native")?;
    /// assert!(!program.decisions().is_empty());
    /// # Ok::<(), pyrite::Error>(())
    /// ```
    pub fn decisions(&self) -> &[String] {
        self.executable.rewrites()
    }

    /// The graphs that the program runs, with their names.
    ///
    /// ```
    /// let graph = pyrite::read_text("
    /// def forward(x: 'f32[4]'):
    ///     return (torch.ops.aten.silu.default(x),)
    /// ")?;
    /// let program = pyrite::compile(&graph, "native")?;
    /// assert!(program.graphs().iter().any(|(_, graph)| graph.to_string().contains("aten.sigmoid.default")));
    /// # Ok::<(), pyrite::Error>(())
    /// ```
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
