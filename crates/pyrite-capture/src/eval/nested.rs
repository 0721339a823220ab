//! Functions that torch calls: graphs inside of the graph.
//!
//! A function that takes functions, such as `torch.func.vmap` or `torch.cond`, is one node whose arguments name nested graphs.
//! `pyrite._transforms` says in Python how its arguments become tensors and its results structures again, and calls
//! `call_nested(name, bodies, examples, operands, options)`. Each body is called here on inputs that look like its examples;
//! what it computes is taken out of the graph and becomes a nested one. `pyrite.higher_order` has the functions that the nodes
//! call, which take `(*bodies, operands, captured, *options)`.
//!
//! Invariants: a body's tensors stay inside; what it uses of the graph around is handed in after its own inputs; a body that
//! raises or changes what exists outside of the frame is not captured.

use std::rc::Rc;

use pyrite_ir::{Kind as NodeKind, Meta, NodeId, Tag, Target, Value as GraphValue};
use pyrite_reader::Body;

use super::{Evaluator, Run, Stop};
use crate::value::{Born, TensorValue, Value};

/// Functions that compute their body more than once, so that random numbers would differ.
const REPEATING: [&str; 2] = ["vjp", "jvp_again"];
/// Functions inside of which tensors require gradients of a level of their own.
const LEVELS: [&str; 8] = ["grad", "vjp", "jvp", "jvp_again", "jacrev", "jacfwd", "vmap", "flex_attention"];
/// Functions whose body runs once, when they are called. Those of others may not change what is there before them.
const ONCE: [&str; 5] = ["grad", "jvp", "jacrev", "jacfwd", "vmap"];

impl Evaluator<'_, '_> {
    /// `call_nested(name, bodies, examples, operands, options)`: a list of tensors.
    pub(super) fn call_nested(&mut self, args: &[Value]) -> Run<Value> {
        let [Value::Known(name, _), bodies, examples, operands, options] = args else {
            return Err(self.stop("a nested graph that is not described"));
        };
        let name = self.host.as_str(*name).ok_or_else(|| self.stop("a nested graph without a name"))?;
        let function = self.host.member("pyrite.higher_order", &name);
        let function = function.ok_or_else(|| self.stop(format!("there is no pyrite.higher_order.{name}")))?;
        let operands = self.graph_value(operands)?;
        let changes = self.changes_so_far();
        let mut mutates = false;
        let mut traced = Vec::new();
        // An earlier body may have said which ones follow, and what they take.
        while let Some(body) = self.items_of(bodies)?.get(traced.len()).cloned() {
            let examples = self.items_of(examples)?.get(traced.len()).cloned();
            let examples = examples.ok_or_else(|| self.stop("a nested graph without examples"))?;
            let examples = self.items_of(&examples)?;
            let outside = self.grad;
            // The first half of an autograd.Function is not recorded.
            self.grad &= &*name != "function" || !traced.is_empty();
            self.grad_modes.push((self.calls.begin_nested(), self.grad));
            self.bodies.push((Born::default(), false));
            // The first half of an autograd.Function runs once, and here.
            let is_run_here = ONCE.contains(&&*name) || (&*name == "function" && traced.is_empty());
            let mark = self.calls.mark();
            self.around.push(name.clone());
            let body = self.trace_body(&name, &body, &examples);
            self.around.pop();
            let body = match body {
                Err(Stop::Raise(_)) if is_run_here => {
                    self.calls.abandon_since(mark);
                    body
                }
                Err(Stop::Raise(exception)) => {
                    let text = self.describe(&exception);
                    Err(self.stop(format!("a function called by {name} raises {text}")))
                }
                body => body,
            };
            mutates |= self.bodies.pop().is_some_and(|(_, mutates)| mutates) && !is_run_here;
            self.grad = outside;
            self.grad_modes.push((self.calls.begin_nested(), outside));
            traced.push(body?);
        }
        if mutates || (!ONCE.contains(&&*name) && &*name != "function" && self.changes_so_far() != changes) {
            return Err(self.stop(format!("a function that changes something outside, called by {name}")));
        }
        // The bodies may have added to the options.
        let options = self.items_of(options)?.iter().map(|option| self.graph_value(option)).collect::<Run<Vec<_>>>()?;
        let mut captured: Vec<NodeId> = Vec::new();
        for body in &traced {
            for id in self.calls.captured(body) {
                if traced.iter().any(|other| (other.begin..other.end).contains(&id) && self.is_inside(id)) {
                    return Err(self.stop(format!("a tensor that leaves a function called by {name}")));
                }
                if !captured.contains(&id) {
                    captured.push(id);
                }
            }
        }
        let mut values = Vec::with_capacity(traced.len() + 2 + options.len());
        for body in &traced {
            values.push(GraphValue::Graph(self.calls.end_nested(body, &captured, &name)));
        }
        values.push(match operands {
            list @ GraphValue::List(_) => list,
            other => GraphValue::List(vec![other]),
        });
        values.push(GraphValue::List(captured.into_iter().map(GraphValue::Tensor).collect()));
        values.extend(options);
        let first = self.calls.begin_nested();
        let result = self.call_opaque(&format!("pyrite.higher_order.{name}"), function, values, Vec::new())?;
        if &*name == "register_hook" {
            let mut calls = (first.0..self.calls.begin_nested().0).map(NodeId);
            let hook = calls.find(|call| self.is_opaque_call(*call));
            self.hooks.extend(hook);
        }
        Ok(result)
    }

    /// `latest_hook()`: the number of the hook that was registered last.
    pub(super) fn latest_hook(&self) -> Value {
        self.int(self.hooks.len() as i64 - 1)
    }

    /// `remove_hook(number)`: takes a hook back that nothing has called yet.
    pub(super) fn remove_hook(&mut self, number: &Value) -> Run<Value> {
        let number = self.index_of(number)?;
        let hook = usize::try_from(number).ok().and_then(|number| self.hooks.get(number).copied());
        let hook = hook.ok_or_else(|| self.stop("a hook that is not known"))?;
        let mut later = (hook.0 + 1..self.calls.begin_nested().0).map(NodeId);
        // Gradients are computed by calls that are opaque, or in a nested graph.
        if self.calls.is_nested(hook) || later.any(|call| self.is_opaque_call(call)) {
            return Err(self.stop("a hook of a tensor that is removed again"));
        }
        self.calls.abandon(hook);
        Ok(self.none())
    }

    /// Whether a node is a call of a function that no operator stands for, or is computed in a nested graph.
    fn is_opaque_call(&self, id: NodeId) -> bool {
        self.calls.is_nested(id) || matches!(&self.calls.node(id).kind, NodeKind::Call(Target::Opaque(_)))
    }

    /// `transforms_around()`: the names of the transforms in whose bodies a call stands, the outermost first.
    pub(super) fn transforms_around(&self) -> Value {
        let around = self.around.iter().filter(|name| LEVELS.contains(&&***name));
        Value::tuple(around.map(|name| self.text(name)).collect())
    }

    /// Whether a node is computed, not an input of the whole graph.
    fn is_inside(&self, id: NodeId) -> bool {
        let input = self.inputs.iter().any(|(input, _, _)| *input == id);
        !input
    }

    fn changes_so_far(&self) -> [usize; 3] {
        [self.changed.len(), self.globals.len(), self.context_variables.len()]
    }

    /// Calls a function on tensors that look like the examples.
    fn trace_body(&mut self, name: &str, function: &Value, examples: &[Value]) -> Run<Body> {
        let begin = self.calls.begin_nested();
        let mut inputs = Vec::with_capacity(examples.len());
        let mut values = Vec::with_capacity(examples.len());
        for example in examples {
            self.check_plain(name, example)?;
            let GraphValue::Tensor(node) = self.graph_value(example)? else {
                return Err(self.stop(format!("a non-tensor argument of a function called by {name}")));
            };
            let Some(GraphValue::Tensor(meta)) = self.calls.meta(node).cloned() else {
                return Err(self.stop(format!("a non-tensor argument of a function called by {name}")));
            };
            let meta = self.fixed_meta(&meta)?;
            let level = LEVELS.contains(&name);
            let requires_grad = !level && self.requires_grad(example).unwrap_or(true);
            let fresh =
                Meta { requires_grad, is_leaf: !requires_grad, ..Meta::strided(&meta.shape, &meta.stride, meta.dtype) };
            let input = self.calls.input("arg", GraphValue::Tensor(fresh));
            if level {
                self.levels.insert(input);
            }
            inputs.push(input);
            values.push(Value::Tensor(Rc::new(TensorValue::computed(input))));
        }
        let grad = self.grad;
        let begin_body = self.calls.begin_nested();
        let result = self.call(function, values, Vec::new())?;
        self.set_grad(grad)?;
        let items = self.items_of(&result)?;
        let mut output = Vec::with_capacity(items.len());
        for item in &items {
            output.push(match item {
                Value::Tensor(_) => {
                    self.check_plain(name, item)?;
                    self.graph_value(item)?
                }
                other => {
                    let text = self.describe(other);
                    return Err(self.stop(format!("{text} as the result of a function called by {name}")));
                }
            });
        }
        let end = self.calls.begin_nested();
        if REPEATING.contains(&name) && (begin_body.0..end.0).any(|id| self.is_random(NodeId(id))) {
            return Err(self.stop(format!("random numbers in a function called by {name}")));
        }
        Ok(Body { begin, end, inputs, output: GraphValue::List(output) })
    }

    /// Refuses a tensor of a class of the user's, which a nested graph would lose.
    fn check_plain(&self, name: &str, value: &Value) -> Run<()> {
        match value {
            Value::Tensor(tensor) if tensor.class.is_some() => {
                Err(self.stop(format!("a tensor subclass in a function called by {name}")))
            }
            _ => Ok(()),
        }
    }

    fn is_random(&self, id: NodeId) -> bool {
        let known = !self.calls.is_nested(id);
        known && matches!(&self.calls.node(id).kind, NodeKind::Call(Target::Op(op)) if op.has(Tag::Random))
    }

    /// Refuses a tensor that a nested graph computes.
    pub(super) fn check_inside(&self, node: NodeId) -> Run<()> {
        if self.calls.is_nested(node) {
            return Err(self.stop_with(
                "a tensor of a nested graph is used outside of it",
                "return it from the function that computes it",
            ));
        }
        Ok(())
    }
}
