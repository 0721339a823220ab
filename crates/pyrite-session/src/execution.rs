//! One run of a program by a backend, compared with the reference, in this process.

use pyrite_compiler::backend::Direction;
use pyrite_compiler::{Backend, Options};
use pyrite_debug::{
    Accuracy, Again, Assessment, Bound, Broken, OtherRounding, Ran, Switches, assess, excused, execute, time_calls,
};
use pyrite_interp::Mode;
use pyrite_ir::{Graph, Node, NodeError, OpError, Value};
use pyrite_ops::registry;
use pyrite_oracle::Stage;
use pyrite_passes::autocast;
use pyrite_tensor::{DType, Tensor};

use crate::backend::node_diagnostic;
use crate::{Program, SessionError};

/// Makes who watches a run: it is told of every node.
pub type Watch<'a> = &'a dyn Fn(&Graph) -> Box<dyn FnMut(&Node)>;

/// A run that is wanted.
pub struct Execution<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its graph, as [`prepared`] gives it.
    pub graph: &'a Graph,
    /// The backend under test.
    pub backend: &'a Backend,
    /// The reference backend; it runs too where it is another one.
    pub reference: &'a Backend,
    /// How closely the two are compared.
    pub accuracy: Accuracy,
    /// What the comparison overlooks and insists on.
    pub switches: &'a Switches,
    /// How programs are compiled and run.
    pub options: Options,
    /// The seed that was asked for.
    pub seed: Option<u64>,
    /// How often the backend runs the program, for its times.
    pub repeat: u32,
    /// Who watches.
    pub watch: Watch<'a>,
}

/// What came of a run.
pub enum Executed {
    /// The backend has results.
    Ran {
        /// The results.
        ran: Box<Ran>,
        /// How they compare with the reference's, where there was something to compare.
        compared: Option<Box<Assessment>>,
    },
    /// The reference runs and the backend does not: the failure is the result.
    OnlyBackendFailed(Broken),
}

impl Execution<'_> {
    /// Runs and compares. An error is one of the program, of the reference, or of a backend that is not there.
    pub fn run(&self) -> Result<Executed, SessionError> {
        let ran = self.execute(self.backend, self.options.mode, self.repeat)?;
        let alone = self.backend.name == self.reference.name;
        // Without a comparison the reference is asked only whether an error is the program's own.
        let ran = match ran {
            Ok(ran) if alone || self.accuracy == Accuracy::Off => {
                return Ok(Executed::Ran { ran: Box::new(ran), compared: None });
            }
            Err(broken) if alone => return Err(self.failed(&broken, self.backend)),
            ran => ran,
        };
        if let Err(broken) = &ran
            && broken.cannot_tell()
        {
            return Err(self.failed(broken, self.backend));
        }
        let expected = match (self.execute(self.reference, self.options.mode, 1)?, &ran) {
            (Ok(expected), _) => expected,
            (Err(raised), Err(broken)) if broken.died() && !raised.died() => {
                return Ok(Executed::OnlyBackendFailed(broken.clone()));
            }
            (Err(raised), _) => return Err(self.failed(&raised, self.reference)),
        };
        let ran = match ran {
            Ok(ran) => ran,
            Err(broken) => return Ok(Executed::OnlyBackendFailed(broken)),
        };
        let mut failed = None;
        let inputs = self.program.inputs(self.seed)?;
        let rounding = OtherRounding::new(self.graph, &inputs.values, self.reference, self.options.clone());
        let mut again = |again: Again| {
            let outcome = match again {
                Again::Same => self.execute(self.reference, self.options.mode, 1),
                Again::Double => self.execute(self.reference, Mode::Fp64, 1),
                Again::Perturbed(seed) => Ok(rounding.sample(seed)),
                Again::Tipped => Ok(rounding.tipped()),
            };
            outcome.unwrap_or_else(|error| {
                failed = Some(error);
                Err(Broken { stage: Stage::Forward, error: OpError::fault("the inputs are gone").into() })
            })
        };
        let (accuracy, switches) = (self.accuracy, self.switches);
        let mut assessment = assess(&expected.results, &ran.results, accuracy, switches, Bound::Always, &mut again);
        if assessment.verdict.signature().is_some() {
            // What operators leave open is nobody's fault here either.
            let both = [&expected.results, &ran.results];
            if let Some(open) = excused(self.graph, &inputs.values, &self.options, &self.backend.name, both) {
                assessment = assess(&expected.results, &open, accuracy, switches, Bound::Always, &mut again);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(Executed::Ran { ran: Box::new(ran), compared: Some(Box::new(assessment)) }),
        }
    }

    /// Compiles with a backend and runs; bad input is an error, what the backend does is a result.
    fn execute(&self, backend: &Backend, mode: Mode, repeat: u32) -> Result<Result<Ran, Broken>, SessionError> {
        let options = Options { mode, ..self.options.clone() };
        let inputs = self.program.inputs(self.seed)?;
        let mut watch = (self.watch)(self.graph);
        let observe = &mut |node: &Node, _: &Value<Tensor>| watch(node);
        let ran = execute(self.graph, &inputs.values, backend, &options, &mut |_| {}, observe);
        drop(watch);
        let Ok(mut ran) = ran else { return Ok(ran) };
        if repeat > 1 {
            let times = time_calls(self.graph, &inputs.values, backend, &options, repeat)
                .map_err(|error| located(self.program, &error, "a repeated run failed"))?;
            (ran.compile, ran.run) = (times.compile.min(ran.compile), times.forward + times.backward);
            ran.peak = Some(times.peak);
        }
        Ok(Ok(ran))
    }

    fn failed(&self, broken: &Broken, backend: &Backend) -> SessionError {
        located(self.program, &broken.error, &failed_to(broken.stage, backend))
    }
}

/// Which halves of a program are run.
pub fn direction(program: &Program, forward_only: bool) -> Direction {
    if forward_only || program.is_differentiated() { Direction::Forward } else { Direction::ForwardAndBackward }
}

/// The program's graph with what is known of the inputs, and how many inputs had no stored data.
pub fn prepared(program: &Program, seed: Option<u64>) -> Result<(Graph, usize), SessionError> {
    let mut graph = program.read.graph.clone();
    let inputs = program.inputs(seed)?;
    pyrite_compiler::inputs::describe(&mut graph, &inputs.values);
    Ok((graph, inputs.generated))
}

/// The program's graph as it is under autocast.
pub(crate) fn under_autocast(program: &Program, seed: Option<u64>, lower: DType) -> Result<Graph, SessionError> {
    let (graph, _) = prepared(program, seed)?;
    autocast::apply(&graph, registry(), Some(lower)).map_err(|error| located(program, &error, "autocast failed"))
}

fn located(program: &Program, error: &NodeError, what: &str) -> SessionError {
    SessionError::of(node_diagnostic(&program.path, error, what))
}

/// What a backend failed to do.
pub fn failed_to(stage: Stage, backend: &Backend) -> String {
    match stage {
        Stage::Forward if &*backend.name == "eager" => "the run failed".to_owned(),
        stage => format!("{} failed to {}", backend.name, stage_name(stage)),
    }
}

/// What a backend does in a stage.
pub fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Capture => "capture",
        Stage::Compile => "compile",
        Stage::Forward => "run",
        Stage::Backward => "run backward",
    }
}
