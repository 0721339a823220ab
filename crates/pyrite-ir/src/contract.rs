//! What a graph assumes of its inputs, and the check that inputs keep to it.
//!
//! A [`Contract`] is read off a graph when the graph is compiled, and every call is bound by it: [`Contract::bind`]
//! checks the number of inputs, gives the symbols of the graph their values and checks what was assumed of them.
//! [`Symbols`] are these values. Interpreter, native programs, the surroundings of functional graphs and the guards of
//! captured frames all bind their inputs here.
//!
//! What of the memory of inputs a program depends on is a matter of what it does:
//!
//! - A program that only reads depends on no placement. An input may lie anywhere in any storage and share it with
//!   others: views of it are taken from wherever it begins.
//! - A program that writes to inputs depends on which of them share memory, and where they lie in memory that they share.
//! - A program that asks for places in a storage, as `as_strided` and views of other element types do, depends on the
//!   offset of every input.
//!
//! Invariant: inputs that [`Contract::bind`] accepts are such that code compiled from the graph computes on them what the
//! program does.

use std::sync::Arc;

use pyrite_sym::{Constraint, SymInt};
use pyrite_tensor::{Layout, Tensor};
use rustc_hash::FxHashMap;

use crate::{Graph, Kind, Meta, OpError, Operator, Target, Value};

/// The values of a graph's symbols in one call.
#[derive(Clone, Debug, Default)]
pub struct Symbols(FxHashMap<Arc<str>, i64>);

/// What a call gives for a placeholder, as far as symbols are bound by it.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// A tensor.
    Tensor {
        /// Size per dimension.
        shape: &'a [i64],
        /// Stride per dimension.
        stride: &'a [i64],
    },
    /// A number.
    Int(i64),
    /// Something that binds nothing.
    Other,
}

impl<'a> Given<'a> {
    /// A value of a run.
    pub fn of(value: &'a Value<Tensor>) -> Self {
        match value {
            Value::Tensor(tensor) => Self::Tensor { shape: tensor.shape(), stride: tensor.stride() },
            Value::Int(number) => number.as_int().map_or(Self::Other, Self::Int),
            _ => Self::Other,
        }
    }
}

impl Symbols {
    /// The value of a symbol.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// The value of a size.
    pub fn eval(&self, size: &SymInt) -> Result<i64, OpError> {
        if let Some(number) = size.as_int() {
            return Ok(number);
        }
        let known = size.to_expr().evaluate(&|name| self.get(name));
        known.ok_or_else(|| OpError::invalid(format!("the size {size} is not bound by any input")))
    }

    /// The layout of a tensor.
    pub fn layout(&self, meta: &Meta) -> Result<Layout, OpError> {
        let all = |sizes: &[SymInt]| sizes.iter().map(|size| self.eval(size)).collect::<Result<_, _>>();
        Ok(Layout { shape: all(&meta.shape)?, stride: all(&meta.stride)?, offset: self.eval(&meta.offset)? })
    }

    /// A value in which symbolic numbers have their values.
    pub fn numbers<T>(&self, value: Value<T>) -> Result<Value<T>, OpError> {
        Ok(match value {
            Value::Int(size) => Value::Int(self.eval(&size)?.into()),
            Value::List(items) => Value::List(items.into_iter().map(|v| self.numbers(v)).collect::<Result<_, _>>()?),
            other => other,
        })
    }

    /// Binds the symbols of values to what was given for them: sizes and numbers first, then those that only strides have.
    pub fn bind<'a>(
        &mut self,
        pairs: impl Iterator<Item = (&'a Value<Meta>, Given<'a>)> + Clone,
    ) -> Result<(), OpError> {
        pairs.clone().try_for_each(|(meta, given)| self.bind_sizes(meta, given))?;
        pairs.for_each(|(meta, given)| self.bind_strides(meta, given));
        Ok(())
    }

    /// Binds the symbols that are sizes or numbers of a value. One that is bound already must have the same value.
    fn bind_sizes(&mut self, meta: &Value<Meta>, given: Given<'_>) -> Result<(), OpError> {
        match (meta, given) {
            (Value::Int(size), Given::Int(value)) => self.note(size, value),
            (Value::Tensor(meta), Given::Tensor { shape, .. }) if meta.rank() == shape.len() => {
                meta.shape.iter().zip(shape).try_for_each(|(size, value)| self.note(size, *value))
            }
            _ => Ok(()),
        }
    }

    /// Binds the symbols that only strides have. A tensor may have other strides than its metadata says: it is copied.
    fn bind_strides(&mut self, meta: &Value<Meta>, given: Given<'_>) {
        if let (Value::Tensor(meta), Given::Tensor { stride, .. }) = (meta, given)
            && meta.rank() == stride.len()
        {
            for (size, value) in meta.stride.iter().zip(stride) {
                if let Some(name) = symbol(size) {
                    self.0.entry(name).or_insert(*value);
                }
            }
        }
    }

    fn note(&mut self, size: &SymInt, value: i64) -> Result<(), OpError> {
        let Some(name) = symbol(size) else { return Ok(()) };
        match self.0.insert(name.clone(), value) {
            Some(old) if old != value => {
                Err(OpError::invalid(format!("the size {name} is both {old} and {value} in the inputs")))
            }
            _ => Ok(()),
        }
    }
}

fn symbol(size: &SymInt) -> Option<Arc<str>> {
    match size {
        SymInt::Int(_) => None,
        SymInt::Expr(_) => size.to_expr().as_symbol().map(Into::into),
    }
}

/// What a graph assumes of its inputs; see the module's text.
#[derive(Clone, Debug, Default)]
pub struct Contract {
    inputs: Vec<Option<Value<Meta>>>,
    /// Whether sizes or strides of any input have symbols.
    symbolic: bool,
    /// The least and the largest value of each symbol.
    bounds: Vec<(Arc<str>, i64, Option<i64>)>,
    constraints: Vec<Constraint>,
    /// For each input the first one whose memory it shares, where that matters.
    sharing: Option<Vec<usize>>,
    /// Whether the offset of every input matters.
    pinned: bool,
}

impl Contract {
    /// What a graph assumes of sizes alone: whoever runs it follows the memory of its inputs.
    pub fn of_sizes(graph: &Graph) -> Self {
        let inputs: Vec<Option<Value<Meta>>> = graph.placeholders().map(|(_, node)| node.meta.clone()).collect();
        let symbolic = |meta: &Value<Meta>| match meta {
            Value::Int(size) => size.as_int().is_none(),
            Value::Tensor(meta) => {
                meta.shape.iter().chain(&meta.stride).chain([&meta.offset]).any(|size| size.as_int().is_none())
            }
            _ => false,
        };
        let is_symbolic = inputs.iter().flatten().any(symbolic);
        let bounds = graph.env.symbols().into_iter().map(|symbol| (symbol.name, symbol.low, symbol.high)).collect();
        let constraints = graph.env.constraints();
        Self { inputs, symbolic: is_symbolic, bounds, constraints, sharing: None, pinned: false }
    }

    /// What a program assumes. Placeholders of inputs that share memory name one storage.
    pub fn of(program: &Graph) -> Self {
        let contract = Self::of_sizes(program);
        let storage = |input: &Option<Value<Meta>>| match input {
            Some(Value::Tensor(meta)) => Some(meta.storage),
            _ => None,
        };
        let sharing = || first_of_each(contract.inputs.iter().map(storage));
        let sharing = any_call(program, &|op| op.schema.is_mutable()).then(sharing);
        Self { sharing, pinned: any_call(program, &asks_for_places), ..contract }
    }

    /// The contract of a program that another graph was made of: what asks for places there counts too.
    #[must_use]
    pub fn with(self, made: &Graph) -> Self {
        let asks = |(_, node): (crate::NodeId, &crate::Node)| match &node.kind {
            Kind::Call(Target::Op(op)) => {
                let offset = op.schema.params.iter().position(|param| &*param.name == "storage_offset");
                offset.is_some_and(|at| !matches!(node.args.get(at), None | Some(Value::None)))
            }
            _ => false,
        };
        Self { pinned: self.pinned || made.nodes().any(asks), ..self }
    }

    /// The contract of a program whose writes do not reach its inputs: it does not matter who shares their memory.
    #[must_use]
    pub fn reading(self) -> Self {
        Self { sharing: None, ..self }
    }

    /// Whether inputs of the right types, sizes and strides may yet be refused.
    pub fn is_conditional(&self) -> bool {
        self.symbolic || self.sharing.is_some() || self.pinned
    }

    /// Whether it matters how inputs share memory or where in their storages they begin.
    pub fn depends_on_placement(&self) -> bool {
        self.sharing.is_some() || self.pinned
    }

    /// Whether a program that writes could meet one cell of memory in two ways: through an input whose elements share
    /// cells, or through two inputs that overlap without being the same. PyTorch's operators refuse some of what can be
    /// done then, and say so.
    pub fn is_entangled(&self, inputs: &[Value<Tensor>]) -> bool {
        if self.sharing.is_none() {
            return false;
        }
        let tensors: Vec<&Tensor> =
            inputs.iter().filter_map(Value::as_tensor).filter(|tensor| tensor.numel() > 0).collect();
        let span = |tensor: &Tensor| {
            let (layout, size) = (tensor.layout(), tensor.dtype().size() as i64);
            (layout.offset * size, layout.span().unwrap_or(i64::MAX).saturating_mul(size))
        };
        let meet = |a: &Tensor, b: &Tensor| {
            let ((a_begin, a_end), (b_begin, b_end)) = (span(a), span(b));
            let apart = a_end <= b_begin || b_end <= a_begin;
            let same = a.dtype() == b.dtype() && a.layout() == b.layout();
            a.storage().same(b.storage()) && !apart && !same
        };
        tensors.iter().any(|tensor| tensor.layout().may_overlap())
            || tensors.iter().enumerate().any(|(at, a)| tensors[at + 1..].iter().any(|b| meet(a, b)))
    }

    /// The values of the symbols for inputs that keep to the contract.
    pub fn bind(&self, inputs: &[Value<Tensor>]) -> Result<Symbols, OpError> {
        if inputs.len() != self.inputs.len() {
            let (wanted, given) = (self.inputs.len(), inputs.len());
            return Err(OpError::invalid(format!("the graph takes {wanted} inputs, {given} were given")));
        }
        let symbols = self.symbols(|index| Given::of(&inputs[index]))?;
        self.check_placement(inputs, &symbols)?;
        Ok(symbols)
    }

    /// Whether inputs keep to the contract, and have the types, sizes and numbers that it says.
    pub fn fits(&self, inputs: &[Value<Tensor>]) -> bool {
        let Ok(symbols) = self.bind(inputs) else { return false };
        self.inputs.iter().zip(inputs).all(|(meta, input)| match (meta, input) {
            (Some(Value::Tensor(meta)), Value::Tensor(tensor)) => {
                let sizes =
                    || meta.shape.iter().zip(tensor.shape()).all(|(size, given)| symbols.eval(size) == Ok(*given));
                meta.dtype == tensor.dtype() && meta.rank() == tensor.rank() && sizes()
            }
            (Some(Value::Int(size)), Value::Int(given)) => symbols.eval(size).ok() == given.as_int(),
            (None | Some(Value::None), _) => true,
            (Some(meta), input) => meta.kind() == input.kind(),
        })
    }

    /// The values of the symbols, from whatever describes the inputs. What was assumed of them is not checked.
    pub fn values<'a: 'b, 'b>(&'b self, given: impl Fn(usize) -> Given<'a>) -> Result<Symbols, OpError> {
        let mut symbols = Symbols::default();
        if self.symbolic {
            let pair = |(index, meta): (usize, &'b Option<Value<Meta>>)| Some((meta.as_ref()?, given(index)));
            symbols.bind(self.inputs.iter().enumerate().filter_map(pair))?;
        }
        Ok(symbols)
    }

    /// The same with a check of what was assumed of them.
    pub fn symbols<'a>(&self, given: impl Fn(usize) -> Given<'a>) -> Result<Symbols, OpError> {
        let symbols = self.values(given)?;
        if !self.symbolic {
            return Ok(symbols);
        }
        for (name, low, high) in &self.bounds {
            if let Some(value) = symbols.get(name)
                && (value < *low || high.is_some_and(|high| value > high))
            {
                return Err(OpError::invalid(format!(
                    "the size {name} is {value}, the graph holds for {low} and more"
                )));
            }
        }
        for constraint in &self.constraints {
            if constraint.holds(&|name| symbols.get(name)) == Some(false) {
                return Err(OpError::invalid(format!("the inputs break the graph's constraint {constraint}")));
            }
        }
        Ok(symbols)
    }

    fn check_placement(&self, inputs: &[Value<Tensor>], symbols: &Symbols) -> Result<(), OpError> {
        if !self.depends_on_placement() {
            return Ok(());
        }
        let found = first_of_each(inputs.iter().map(|input| input.as_tensor().map(|tensor| tensor.storage().id())));
        if let Some(expected) = &self.sharing
            && let Some(index) = (0..found.len()).find(|index| found[*index] != expected[*index])
        {
            return Err(OpError::invalid(format!(
                "input {index} shares memory with other inputs than the graph was compiled for, and the graph writes"
            )));
        }
        for (index, (meta, input)) in self.inputs.iter().zip(inputs).enumerate() {
            let (Some(Value::Tensor(meta)), Value::Tensor(tensor)) = (meta, input) else { continue };
            let shares = || self.sharing.is_some() && found.iter().filter(|first| **first == found[index]).count() > 1;
            if (self.pinned || shares()) && tensor.layout().offset != symbols.eval(&meta.offset)? {
                return Err(OpError::invalid(format!(
                    "input {index} begins at element {} of its storage, the graph was compiled for {}",
                    tensor.layout().offset,
                    meta.offset
                )));
            }
        }
        Ok(())
    }
}

/// For each place the first one of the same key; what has no key is its own.
fn first_of_each<K: Eq + std::hash::Hash>(keys: impl Iterator<Item = Option<K>>) -> Vec<usize> {
    let mut first: FxHashMap<K, usize> = FxHashMap::default();
    keys.enumerate().map(|(index, key)| key.map_or(index, |key| *first.entry(key).or_insert(index))).collect()
}

/// Whether an operator's meaning depends on where in its storage an argument begins.
fn asks_for_places(op: &Operator) -> bool {
    op.name().contains("storage_offset")
        || op.name().contains("view.dtype")
        || op.schema.params.iter().any(|param| &*param.name == "storage_offset")
}

/// Whether any operator of a graph or a nested one is such.
pub fn any_call(graph: &Graph, is: &dyn Fn(&Operator) -> bool) -> bool {
    graph.nodes().any(|(_, node)| matches!(&node.kind, Kind::Call(Target::Op(op)) if is(op)))
        || graph.subgraphs().values().any(|nested| any_call(nested, is))
}

/// Whether any call of a graph or a nested one has a parameter of that name that is true.
pub fn any_true(graph: &Graph, name: &str) -> bool {
    let is_true = |(_, node): (crate::NodeId, &crate::Node)| match &node.kind {
        Kind::Call(Target::Op(op)) => {
            let at = op.schema.params.iter().position(|param| &*param.name == name);
            at.is_some_and(|at| node.args.get(at) == Some(&Value::Bool(true)))
        }
        _ => false,
    };
    graph.nodes().any(is_true) || graph.subgraphs().values().any(|nested| any_true(nested, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;
    use pyrite_sym::SymEnv;
    use pyrite_tensor::DType;

    fn graph(env: &SymEnv, metas: Vec<Meta>) -> Graph {
        let mut builder = Builder::new();
        for meta in metas {
            builder.placeholder("x", Some(Value::Tensor(meta)));
        }
        builder.output(Value::List(Vec::new()));
        let mut graph = builder.finish();
        graph.env = env.clone();
        graph
    }

    fn given(shape: &[i64]) -> Value<Tensor> {
        Value::Tensor(Tensor::zeros(shape, DType::F32).unwrap())
    }

    #[test]
    fn symbols_take_their_values_from_sizes_and_numbers() {
        let env = SymEnv::new();
        let (a, b) = (env.size(4), env.size(6));
        let meta = Meta::contiguous(&[a.clone(), &a * &b], DType::F32);
        let contract = Contract::of(&graph(&env, vec![meta, Meta::contiguous(std::slice::from_ref(&b), DType::F32)]));
        let symbols = contract.bind(&[given(&[3, 15]), given(&[5])]).unwrap();
        assert_eq!((symbols.eval(&a).unwrap(), symbols.eval(&(&a * &b)).unwrap()), (3, 15));
    }

    #[test]
    fn what_was_assumed_of_symbols_is_checked() {
        let env = SymEnv::new();
        let (a, b) = (env.size(4), env.size(6));
        assert!(a.is_lt(&b));
        let metas = [&a, &b].map(|size| Meta::contiguous(std::slice::from_ref(size), DType::F32));
        let contract = Contract::of(&graph(&env, metas.to_vec()));
        assert!(contract.bind(&[given(&[5]), given(&[6])]).is_ok());
        let broken = contract.bind(&[given(&[6]), given(&[5])]).unwrap_err();
        assert!(broken.to_string().contains("constraint"), "{broken}");
        let small = contract.bind(&[given(&[1]), given(&[5])]).unwrap_err();
        assert!(small.to_string().contains("holds for 2 and more"), "{small}");
        assert!(contract.bind(&[given(&[5])]).is_err());
    }

    #[test]
    fn a_number_says_what_a_stride_was_compiled_for_whatever_stride_is_given() {
        let env = SymEnv::new();
        let (size, step) = (env.size(4), env.size(2));
        let meta = Meta {
            stride: [step.clone()].into_iter().collect(),
            ..Meta::contiguous(std::slice::from_ref(&size), DType::F32)
        };
        let mut builder = Builder::new();
        builder.placeholder("x", Some(Value::Tensor(meta)));
        builder.placeholder("n", Some(Value::Int(step.clone())));
        builder.output(Value::List(Vec::new()));
        let mut graph = builder.finish();
        graph.env = env.clone();
        let symbols = Contract::of(&graph).bind(&[given(&[4]), Value::Int(2.into())]).unwrap();
        assert_eq!((symbols.eval(&size), symbols.eval(&step)), (Ok(4), Ok(2)));
    }
}
