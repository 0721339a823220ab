//! Calls that hold no computation of their own: a nested graph that is called once, or an operator that another one runs.
//!
//! Dynamo puts the body of a checkpointed function into a graph of its own (`tag_activation_checkpoint`), and AOT autograd
//! wraps operators that draw random numbers in calls that save and restore the generator's state. In a program that is
//! debugged neither says more than its body does, so the body stands in their place, where it can be reduced and bisected.

use pyrite_ir::{Graph, Kind, Node, NodeId, Value};
use pyrite_tensor::{DType, Tensor};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use crate::forward::{Forward, V};
use crate::problems::{Failed, Res, codes};

/// Higher-order operators whose result is that of the graph which is their first argument.
const BODIES: [&str; 3] = ["tag_activation_checkpoint", "wrap", "wrap_activation_checkpoint"];

/// The bytes of a CPU generator's state, as torch has it.
const GENERATOR_STATE: i64 = 5056;

/// Whether a higher-order operator only calls its graph.
pub(crate) fn is_body(path: &str) -> bool {
    path.strip_prefix("torch.ops.higher_order.").is_some_and(|name| BODIES.contains(&name))
}

/// A value of a nested graph in the graph that calls it.
fn renewed(value: &V, moved: &[V], prefix: &str) -> V {
    match value {
        Value::Tensor(id) => moved.get(id.0 as usize).cloned().unwrap_or(Value::None),
        Value::List(items) => Value::List(items.iter().map(|item| renewed(item, moved, prefix)).collect()),
        Value::Slice(parts) => Value::Slice(Box::new([0, 1, 2].map(|at| renewed(&parts[at], moved, prefix)))),
        Value::Graph(name) => Value::Graph(format!("{prefix}_{name}").into()),
        other => other.clone(),
    }
}

impl<'a> Forward<'a> {
    /// The nodes of a nested graph in the place of its call; returns what the call returns.
    pub fn inlined(&mut self, name: &str, operands: Vec<V>, at: &impl Ranged) -> Res<V> {
        let mut args = vec![Value::Graph(name.into())];
        args.extend(operands.iter().cloned());
        let shared = self.subgraphs.contains_key(name);
        self.nested(&args, at)?;
        let graph = if shared { self.subgraphs.get(name).cloned() } else { self.subgraphs.remove(name) };
        let Some(graph) = graph else { return Err(Failed) };
        let inputs = graph.placeholders().count();
        if inputs != operands.len() {
            let message = format!("the nested graph `{name}` takes {inputs} inputs and gets {}", operands.len());
            return self.fail(codes::WRONG_ARGUMENTS, at, message, "was the file edited?");
        }
        let mut moved: Vec<V> = vec![Value::None; graph.id_bound()];
        for ((id, _), operand) in graph.placeholders().zip(operands) {
            moved[id.0 as usize] = operand;
        }
        for (inner, nested) in graph.subgraphs() {
            self.subgraphs.insert(format!("{name}_{inner}"), nested.clone());
        }
        for (id, node) in graph.nodes() {
            moved[id.0 as usize] = match &node.kind {
                Kind::Placeholder => continue,
                Kind::Output => break,
                Kind::GetAttr(constant) => self.inlined_constant(&graph, name, constant)?,
                Kind::Call(_) => Value::Tensor(self.inlined_call(node, &moved, name)),
            };
        }
        Ok(renewed(graph.output(), &moved, name))
    }

    fn inlined_call(&mut self, node: &Node, moved: &[V], prefix: &str) -> NodeId {
        let mut copy = node.clone();
        copy.name = self.name(None, &node.name);
        copy.args = node.args.iter().map(|value| renewed(value, moved, prefix)).collect();
        copy.kwargs = node.kwargs.iter().map(|(key, value)| (key.clone(), renewed(value, moved, prefix))).collect();
        self.push(copy)
    }

    fn inlined_constant(&mut self, graph: &Graph, prefix: &str, name: &str) -> Res<V> {
        let Some(tensor) = graph.constants().get(name) else { return Err(Failed) };
        let attribute = format!("{prefix}_{name}");
        if graph.parameters().any(|parameter| &**parameter == name) {
            self.builder.add_parameter(&attribute);
        }
        self.devices.insert(attribute.clone(), graph.device_of_constant(name));
        Ok(self.add_constant(&attribute, tensor.clone(), None))
    }

    /// `run_and_save_rng_state(op, …)` and `run_with_rng_state(state, op, …)`: the operator itself. The state that is saved
    /// is a constant, and a state that is given is not restored: each half of a program draws for itself.
    pub fn with_generator(&mut self, path: &str, call: &'a ExprCall, want: Option<&str>) -> Option<Res<V>> {
        let saves = match path.strip_prefix("torch.ops.higher_order.")? {
            "run_and_save_rng_state" => true,
            "run_with_rng_state" => false,
            _ => return None,
        };
        let place = usize::from(!saves);
        let operator = call.arguments.args.get(place).and_then(|expr: &'a Expr| self.global_path(expr));
        let Some(operator) = operator else {
            let hint = "it takes an operator such as `torch.ops.aten.rand.default`";
            return Some(self.fail(codes::WRONG_ARGUMENTS, call, "this call runs no operator", hint));
        };
        Some(self.run_operator(&operator, call, place + 1, want).and_then(|value| {
            if !saves {
                return Ok(value);
            }
            let state = Tensor::zeros(&[GENERATOR_STATE], DType::U8).map_err(|_| Failed)?;
            Ok(Value::List(vec![self.fresh_constant(state, None, call)?, value]))
        }))
    }

    fn run_operator(&mut self, path: &str, call: &'a ExprCall, from: usize, want: Option<&str>) -> Res<V> {
        let mut args = Vec::new();
        for arg in call.arguments.args.iter().skip(from) {
            args.push(self.eval(arg, None)?);
        }
        let mut kwargs = Vec::new();
        for keyword in &call.arguments.keywords {
            if let Some(name) = &keyword.arg {
                kwargs.push((name.to_string(), self.eval(&keyword.value, None)?));
            }
        }
        let callee = self.resolve(path);
        self.invoke(&callee, args, kwargs, want, call)
    }
}
