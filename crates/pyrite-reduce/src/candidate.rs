//! A program with its inputs, and how large it is.

use std::cmp::Ordering;

use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::verify::verify;
use pyrite_ir::{Graph, Kind, Node, OpRef, Target, Value};
use pyrite_tensor::Tensor;
use sha2::{Digest, Sha256};

use crate::content::{self, Content};
use crate::passes::dtypes::{each_dtype, usual};
use crate::passes::flags;
use crate::passes::nested::graphs_of;
use crate::passes::operators::{cost, unknown};

/// A program and an input for each placeholder.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The program.
    pub graph: Graph,
    /// The inputs.
    pub inputs: Vec<Value<Tensor>>,
    /// The seed of random numbers, which inputs may be made of.
    pub seed: u64,
}

/// How large a candidate is: compared from the first field to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Calls, those in nested graphs too.
    pub calls: usize,
    /// All nodes, as FX counts them.
    pub nodes: usize,
    /// Inputs.
    pub inputs: usize,
    /// How complicated the operators are, added up.
    pub operators: usize,
    /// Inputs that want gradients, and switches of autocast and gradients.
    pub flags: usize,
    /// Elements of all inputs.
    pub elements: usize,
    /// Inputs, constants and arguments with an unusual element type.
    pub dtypes: usize,
    /// Arguments that are not what the operator takes by default.
    pub arguments: usize,
    /// How far the contents of inputs and constants are from zeros and ones, added up over elements; see [`Content`].
    pub values: usize,
}

impl Candidate {
    /// How large it is.
    pub fn size(&self) -> Size {
        Size { values: self.plain_values(), ..self.outline() }
    }

    /// Whether it is smaller. The contents of inputs are looked at only where all else is equal.
    pub fn is_smaller_than(&self, size: &Size) -> bool {
        let outline = self.outline();
        match outline.cmp(&Size { values: 0, ..*size }) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.plain_values() < size.values,
        }
    }

    /// How large it is but for the contents of its inputs.
    pub(crate) fn outline(&self) -> Size {
        let Counted { calls, operators, arguments } = Counted::of(&self.graph);
        let mut elements = 0;
        for input in &self.inputs {
            input.each(&mut |tensor| elements += tensor.numel());
        }
        let mut dtypes = 0;
        each_dtype(self, &mut |dtype| dtypes += usize::from(usual(dtype) != dtype));
        let (nodes, inputs) = (self.graph.len(), self.inputs.len());
        Size { calls, nodes, inputs, operators, flags: flags::count(self), elements, dtypes, arguments, values: 0 }
    }

    fn plain_values(&self) -> usize {
        let drawn = content::drawn(self);
        let mut values = self.graph.constants().values().map(content::cost).sum();
        for input in &self.inputs {
            input.each(&mut |tensor| {
                let cost = content::cost(tensor);
                let is_drawn = drawn.contains(&tensor.storage().id());
                values += if is_drawn { cost.min(2 * tensor.numel()) } else { cost };
            });
        }
        values
    }

    /// The least plain content of inputs and constants. What is neither small whole numbers nor from the seed is data that
    /// came with the program.
    pub fn content(&self) -> Content {
        let drawn = content::drawn(self);
        let mut worst = self.graph.constants().values().map(content::of).max().unwrap_or(Content::Bits);
        for input in &self.inputs {
            input.each(&mut |tensor| {
                let own = content::of(tensor);
                let is_drawn = drawn.contains(&tensor.storage().id());
                worst = worst.max(if is_drawn { own.min(Content::Generated) } else { own });
            });
        }
        worst
    }

    /// A hash of the program's text, of its constants and of its inputs.
    pub fn key(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(print(&self.graph, &PrintOptions::default()));
        let tensor_in = |hash: &mut Sha256, tensor: &Tensor| {
            hash.update(format!("{:?} {:?} {}", tensor.shape(), tensor.stride(), tensor.dtype()));
            hash.update(tensor.contiguous().storage().to_bytes());
        };
        for (name, tensor) in self.graph.constants() {
            hash.update(name.as_bytes());
            tensor_in(&mut hash, tensor);
        }
        for (_, node) in self.graph.placeholders() {
            if let Some(Value::Tensor(meta)) = &node.meta {
                hash.update([u8::from(meta.requires_grad), u8::from(meta.is_leaf)]);
            }
        }
        for input in &self.inputs {
            hash.update(input.kind());
            input.each(&mut |tensor| tensor_in(&mut hash, tensor));
            hash.update(input.as_scalar().map(|s| s.to_string()).unwrap_or_default());
        }
        hash.finalize().into()
    }

    /// Whether the graph is well formed, returns something, and has an input for each placeholder. A search never ends
    /// at a program that returns nothing, whatever the oracle says of it.
    pub fn is_program(&self) -> bool {
        let mut returns = false;
        self.graph.output().each(&mut |_| returns = true);
        returns && self.graph.placeholders().count() == self.inputs.len() && verify(&self.graph, None).is_empty()
    }
}

/// What is counted over a graph and the graphs nested in it.
#[derive(Default)]
struct Counted {
    calls: usize,
    operators: usize,
    arguments: usize,
}

impl Counted {
    fn of(graph: &Graph) -> Self {
        let mut counted = Self::default();
        counted.add(graph);
        counted
    }

    fn add(&mut self, graph: &Graph) {
        for (_, node) in graph.nodes() {
            let Kind::Call(target) = &node.kind else { continue };
            match target {
                Target::GetItem => continue,
                Target::Opaque(_) => self.operators += unknown(),
                Target::Op(op) => {
                    self.operators += cost(op);
                    self.arguments += unusual_arguments(op, node);
                }
            }
            self.calls += 1;
            for nested in graphs_of(graph, node) {
                if let Some(nested) = graph.subgraphs().get(&nested) {
                    self.add(nested);
                }
            }
        }
    }
}

/// Arguments that are not what the operator takes by default.
fn unusual_arguments(op: &OpRef, node: &Node) -> usize {
    let unusual = op.schema.params.iter().zip(&node.args).filter(|(param, arg)| {
        let plain = arg.try_map::<(), ()>(&mut |_| Err(()));
        param.default.is_some() && plain.as_ref().ok() != param.default.as_ref()
    });
    unusual.count()
}

/// A copy with the strides of the original, where these do not repeat elements.
pub(crate) fn copied(tensor: &Tensor) -> Tensor {
    let stride = if tensor.layout().may_overlap() {
        pyrite_tensor::Layout::contiguous(tensor.shape()).stride.to_vec()
    } else {
        tensor.stride().to_vec()
    };
    let Ok(copy) = Tensor::empty_strided(tensor.shape(), &stride, tensor.dtype()) else { return tensor.clone() };
    copy.write_from(tensor);
    copy
}
