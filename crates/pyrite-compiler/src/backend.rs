//! Backends: who runs a graph.

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Graph, Node, NodeError, NodeId, OpError, Value};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;

/// What every backend can be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of the program's random generator, as `torch.manual_seed` takes it.
    pub seed: u64,
    /// What the interpreter does beyond computing, for backends that interpret.
    pub mode: Mode,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, mode: Mode::Eager }
    }
}

/// Is told each node as it is done.
pub type Progress<'a> = dyn FnMut(NodeId, &Node) + 'a;

/// A graph that is ready to run.
pub trait Executable {
    /// Runs it on inputs, one per placeholder.
    fn run(&self, inputs: Vec<Value<Tensor>>, progress: &mut Progress<'_>) -> Result<Value<Tensor>, NodeError>;
}

/// A backend: a name, a line of help, and how it compiles.
pub struct Backend {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Makes a graph ready to run.
    pub compile: fn(Graph, &Options) -> Result<Box<dyn Executable>, OpError>,
}

/// All backends in the order they are listed.
pub fn backends() -> &'static [Backend] {
    &[Backend { name: "eager", help: "runs every operator as it comes, by its reference kernel", compile: eager }]
}

/// The backend of that name.
pub fn find(name: &str) -> Option<&'static Backend> {
    backends().iter().find(|backend| backend.name == name)
}

fn eager(graph: Graph, options: &Options) -> Result<Box<dyn Executable>, OpError> {
    Ok(Box::new(Eager { graph, options: options.clone() }))
}

struct Eager {
    graph: Graph,
    options: Options,
}

impl Executable for Eager {
    fn run(&self, inputs: Vec<Value<Tensor>>, progress: &mut Progress<'_>) -> Result<Value<Tensor>, NodeError> {
        let context = Context::new(registry(), self.options.seed);
        let interpreter = Interpreter { context: &context, mode: self.options.mode };
        interpreter.run_observed(&self.graph, inputs, &mut |id, node, _| progress(id, node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyrite_ir::Builder;

    #[test]
    fn names_are_unique_and_found() {
        for backend in backends() {
            assert_eq!(backends().iter().filter(|b| b.name == backend.name).count(), 1);
            assert!(find(backend.name).is_some() && !backend.help.is_empty());
        }
        assert!(find("no such backend").is_none());
    }

    #[test]
    fn eager_runs_a_graph_and_reports_every_node() {
        let op = registry().get("aten.gelu.default").unwrap();
        let mut builder = Builder::new();
        let x = builder.placeholder("x", None);
        let y = builder.call(op, vec![x.into(), "none".into()]);
        builder.output(vec![y].into());
        let program = (find("eager").unwrap().compile)(builder.finish(), &Options::default()).unwrap();
        let mut seen = 0;
        let result = program.run(vec![Tensor::from_slice(&[0.0f32, 1.0], &[2]).into()], &mut |_, _| seen += 1).unwrap();
        let Value::List(items) = result else { panic!("the graph returns a list") };
        let values = items[0].as_tensor().unwrap().to_f64s();
        assert_eq!((values[0], seen), (0.0, 3));
        assert!((values[1] - 0.841_344_7).abs() < 1e-6);
    }
}
