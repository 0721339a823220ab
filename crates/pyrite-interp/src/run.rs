//! Running a graph, node by node.
//!
//! Values are freed at their last use. Symbolic sizes get their values from the inputs before the first node runs.

use pyrite_ir::infer::infer;
use pyrite_ir::{
    Contract, Eval, Graph, Kind, Meta, Node, NodeError, NodeId, OpError, Operator, Switch, Symbols, Target, Value,
};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Storage, Tensor};

use crate::call::{Context, call, metas};
use crate::double::Doubles;

/// What a run does beyond computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing.
    Eager,
    /// Floating-point inputs and constants are cast to double precision first: what the run writes to them stays in
    /// the casts. [`in_double`](crate::in_double) casts beforehand, for who wants to see it.
    Fp64,
    /// After every call, arguments that changed or are shared with a result are compared with what the schema declares.
    SchemaCheck,
    /// The results of every call are compared with what inference says of them.
    CrossReference,
}

/// Is told the value of every node right after it was computed.
pub type Observer<'a> = dyn FnMut(NodeId, &Node, &Value<Tensor>) + 'a;

/// Runs graphs.
pub struct Interpreter<'a> {
    /// Operators and random generator.
    pub context: &'a Context<'a>,
    /// What runs do beyond computing.
    pub mode: Mode,
}

impl Interpreter<'_> {
    /// Runs a graph on inputs, one per placeholder.
    pub fn run(&self, graph: &Graph, inputs: Vec<Value<Tensor>>) -> Result<Value<Tensor>, NodeError> {
        self.run_observed(graph, inputs, &mut |_, _, _| {})
    }

    /// As [`Self::run`], telling the observer every value.
    pub fn run_observed(
        &self,
        graph: &Graph,
        inputs: Vec<Value<Tensor>>,
        observe: &mut Observer<'_>,
    ) -> Result<Value<Tensor>, NodeError> {
        let symbols = Contract::of_sizes(graph).bind(&inputs)?;
        let mut doubles = Doubles::default();
        if self.mode == Mode::Fp64 {
            inputs.iter().for_each(|value| value.each(&mut |tensor| doubles.expect(tensor)));
            graph.constants().values().for_each(|tensor| doubles.expect(tensor));
        }
        let mut inputs = inputs.into_iter().map(|value| doubles.value(&value)).collect::<Vec<_>>().into_iter();
        let mut left = graph.use_counts();
        let mut values: Vec<Option<Value<Tensor>>> = vec![None; graph.id_bound()];
        let mut result = Value::None;
        for (id, node) in graph.nodes() {
            let value = match &node.kind {
                Kind::Placeholder => inputs.next().unwrap_or(Value::None),
                Kind::GetAttr(name) => match graph.constants().get(name) {
                    Some(tensor) => Value::Tensor(doubles.tensor(tensor)),
                    None => Value::Graph(name.clone()),
                },
                Kind::Call(target) => {
                    let args = Self::arguments(node, &values, &symbols)?;
                    self.node(graph, node, target, args).map_err(|error| NodeError::at(node, error))?
                }
                Kind::Output => {
                    let mut args = Self::arguments(node, &values, &symbols)?;
                    result = args.pop().unwrap_or(Value::None);
                    Value::None
                }
            };
            observe(id, node, &value);
            node.each_input(&mut |input| {
                let count = &mut left[input.0 as usize];
                *count = count.saturating_sub(1);
                if *count == 0 {
                    values[input.0 as usize] = None;
                }
            });
            if left[id.0 as usize] > 0 {
                values[id.0 as usize] = Some(value);
            }
        }
        Ok(result)
    }

    fn arguments(
        node: &Node,
        values: &[Option<Value<Tensor>>],
        symbols: &Symbols,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        let look_up = |id: &NodeId| {
            values[id.0 as usize]
                .clone()
                .ok_or_else(|| NodeError::at(node, OpError::fault(format!("node {} has no value", id.0))))
        };
        node.args
            .iter()
            .map(|arg| symbols.numbers(arg.try_map(&mut |id| look_up(id))?).map_err(|e| NodeError::at(node, e)))
            .collect()
    }

    fn node(
        &self,
        graph: &Graph,
        node: &Node,
        target: &Target,
        mut args: Vec<Value<Tensor>>,
    ) -> Result<Value<Tensor>, OpError> {
        match target {
            Target::GetItem => match (&args[0], args.get(1).and_then(Value::as_scalar)) {
                (Value::List(items), Some(index)) => {
                    let (index, len) = (index.to_i64(), items.len() as i64);
                    let wrapped = if index < 0 { index + len } else { index };
                    items
                        .get(usize::try_from(wrapped).unwrap_or(usize::MAX))
                        .cloned()
                        .ok_or_else(|| OpError::invalid(format!("item {index} of a list of {len}")))
                }
                (other, _) => Err(OpError::invalid(format!("an item of {}", other.kind()))),
            },
            // Autocast is a rewrite of the graph; gradients are no matter of a plain run.
            Target::Opaque(_) if matches!(Switch::of(node), Some(Switch::Grad(_))) => Ok(Value::None),
            Target::Opaque(name) => Err(OpError::unsupported(format!(
                "{name} is not an operator that Pyrite can run; use a backend that knows it"
            ))),
            Target::Op(op) => {
                if matches!(op.def.eval, Eval::HigherOrder) {
                    return self.higher_order(graph, op, args);
                }
                if self.mode == Mode::Fp64 {
                    for arg in &mut args {
                        // A cast to a smaller float in the program would undo the mode.
                        if let Value::DType(dtype @ (DType::F16 | DType::BF16 | DType::F32)) = arg {
                            *dtype = DType::F64;
                        }
                    }
                }
                let mode = match self.context.unchecked {
                    Some(unchecked) if unchecked(op) => Mode::Eager,
                    _ => self.mode,
                };
                match mode {
                    Mode::SchemaCheck => self.checked_call(op, args),
                    Mode::CrossReference => self.cross_referenced(op, args, node),
                    Mode::Eager | Mode::Fp64 => call(self.context, op, args),
                }
            }
        }
    }

    fn higher_order(&self, graph: &Graph, op: &Operator, args: Vec<Value<Tensor>>) -> Result<Value<Tensor>, OpError> {
        let run = |name: &Value<Tensor>, inputs: Vec<Value<Tensor>>| {
            let Value::Graph(name) = name else {
                return Err(OpError::invalid(format!("{} wants a nested graph, not {}", op.name(), name.kind())));
            };
            let nested = graph
                .subgraphs()
                .get(name)
                .ok_or_else(|| OpError::invalid(format!("the graph has no nested graph `{name}`")))?;
            self.run(nested, inputs).map_err(|e| OpError::Invalid(format!("in nested graph `{name}`: {e}")))
        };
        let list = |value: Option<&Value<Tensor>>| match value {
            Some(Value::List(items)) => items.clone(),
            Some(Value::None) | None => Vec::new(),
            Some(other) => vec![other.clone()],
        };
        match op.name() {
            "higher_order.cond.default" => {
                let taken = match &args[0] {
                    Value::Tensor(t) if t.numel() == 1 => t.to_bools()[0],
                    other => other.as_scalar().ok_or_else(|| OpError::invalid("cond wants one bool"))?.to_bool(),
                };
                run(&args[if taken { 1 } else { 2 }], list(args.get(3)))
            }
            "higher_order.invoke_subgraph.default" => run(&args[0], list(args.get(2))),
            other => Err(OpError::unsupported(other.to_owned())),
        }
    }

    /// A call after which everything the schema does not declare must be as before. Running statistics are an exception
    /// that PyTorch makes too: training updates them although most schemas do not say so.
    fn checked_call(&self, op: &Operator, args: Vec<Value<Tensor>>) -> Result<Value<Tensor>, OpError> {
        let mut before: Vec<(usize, Storage, Vec<u8>)> = Vec::new();
        for (index, value) in args.iter().enumerate() {
            value.each(&mut |t| before.push((index, t.storage().clone(), t.storage().to_bytes())));
        }
        let written = |storage: &Storage| {
            op.schema.params.iter().zip(&args).any(|(param, value)| {
                let mut holds = false;
                value.each(&mut |t| holds |= t.storage().same(storage));
                let running = ["running_mean", "running_var"].contains(&&*param.name);
                holds && (running || param.alias.as_ref().is_some_and(|a| a.written))
            })
        };
        let result = call(self.context, op, args.clone())?;
        for (index, storage, bytes) in &before {
            if !written(storage) && storage.to_bytes() != *bytes {
                let name = &op.schema.params[*index].name;
                return Err(OpError::Invalid(format!(
                    "{} changed its argument `{name}` without declaring it",
                    op.name()
                )));
            }
        }
        let declares_alias = op.schema.returns.iter().any(|r| r.alias.is_some());
        let mut shared = None;
        result.each(&mut |t| {
            if let Some((index, ..)) = before.iter().find(|(_, storage, _)| storage.same(t.storage())) {
                shared = Some(*index);
            }
        });
        match shared {
            Some(index) if !declares_alias && !matches!(op.def.eval, Eval::ViaDecomposition) => {
                Err(OpError::Invalid(format!(
                    "{} returned memory of its argument `{}` without declaring it",
                    op.name(),
                    op.schema.params[index].name
                )))
            }
            _ => Ok(result),
        }
    }

    /// A call whose results must be what inference says.
    fn cross_referenced(
        &self,
        op: &Operator,
        mut args: Vec<Value<Tensor>>,
        node: &Node,
    ) -> Result<Value<Tensor>, OpError> {
        pyrite_ir::args::tensors_from_numbers(&op.schema, &mut args);
        let inferred = infer(self.context.registry, op, &metas(&args))?;
        let result = call(self.context, op, args)?;
        let actual = result.map(&mut |t| Meta::of(t));
        match differs(&inferred, &actual) {
            None => Ok(result),
            Some(what) => {
                Err(OpError::fault(format!("{} at `{}`: inferred and computed differ: {what}", op.name(), node.name)))
            }
        }
    }
}

/// How inferred metadata differs from real metadata; sizes that only a run can tell match every size.
fn differs(inferred: &Value<Meta>, actual: &Value<Meta>) -> Option<String> {
    match (inferred, actual) {
        (Value::Tensor(i), Value::Tensor(a)) => {
            let dims = |i: &[SymInt], a: &[SymInt]| {
                i.len() == a.len() && i.iter().zip(a).all(|(i, a)| i.as_int().is_none() || i == a)
            };
            let same = dims(&i.shape, &a.shape) && dims(&i.stride, &a.stride) && i.dtype == a.dtype;
            (!same).then(|| format!("{} stride {:?} against {} stride {:?}", i, i.stride, a, a.stride))
        }
        (Value::List(i), Value::List(a)) if i.len() == a.len() => i.iter().zip(a).find_map(|(i, a)| differs(i, a)),
        (Value::Tensor(_) | Value::List(_), other) => Some(format!("{} was computed", other.kind())),
        _ => None,
    }
}
