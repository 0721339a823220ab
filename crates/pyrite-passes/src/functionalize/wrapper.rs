//! Running a functional graph in place of the program it came from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use pyrite_ir::{Given, Meta, Node, NodeId, OpError, Symbols, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Layout, Tensor};

use super::{Functional, InputSource, Produced};

impl Functional {
    /// The inputs of the graph from those of the program, which keep to its contract, and from its constants.
    pub fn enter(
        &self,
        inputs: &[Value<Tensor>],
        constants: &BTreeMap<Arc<str>, Tensor>,
    ) -> Result<Vec<Value<Tensor>>, OpError> {
        self.contract.bind(inputs)?;
        let placeholders = self.graph.placeholders().map(|(_, node)| node.meta.as_ref().and_then(Value::as_tensor));
        self.sources
            .iter()
            .zip(placeholders)
            .map(|(source, meta)| match source {
                InputSource::Input(index) => Ok(inputs[*index].clone()),
                InputSource::Constant(name) => {
                    let found = constants.get(name).cloned().map(Value::Tensor);
                    found.ok_or_else(|| OpError::fault(format!("the constant {name} is missing")))
                }
                InputSource::Storage(index) => {
                    let (Value::Tensor(tensor), Some(meta)) = (&inputs[*index], meta) else {
                        return Err(OpError::invalid("memory of what is not a tensor"));
                    };
                    let length = meta.shape.first().and_then(pyrite_sym::SymInt::as_int).unwrap_or(0);
                    Ok(tensor.view(tensor.dtype(), Layout::new(&[length], &[1], 0))?.into())
                }
            })
            .collect()
    }

    /// The same of inputs that nobody else needs: where the graph takes them one by one, they are not copied.
    pub fn enter_owned(
        &self,
        inputs: Vec<Value<Tensor>>,
        constants: &BTreeMap<Arc<str>, Tensor>,
    ) -> Result<Vec<Value<Tensor>>, OpError> {
        let is_own = |(at, source): (usize, &InputSource)| matches!(source, InputSource::Input(index) if *index == at);
        if self.sources.len() == inputs.len() && self.sources.iter().enumerate().all(is_own) {
            self.contract.bind(&inputs)?;
            return Ok(inputs);
        }
        self.enter(&inputs, constants)
    }

    /// Whether the graph takes the inputs of the program one by one and nothing of them is needed after it ran: the outputs
    /// are results of the graph, whose sizes are known.
    pub fn passes_inputs_on(&self) -> bool {
        let is_own = |(at, source): (usize, &InputSource)| matches!(source, InputSource::Input(index) if *index == at);
        let needs_input = |produced: &Produced| matches!(produced, Produced::Input(_) | Produced::ViewOfInput(..));
        self.sources.iter().enumerate().all(is_own)
            && self.written.is_empty()
            && !self.contract.is_conditional()
            && !self.produced.iter().any(|produced| needs_input(produced) || is_symbolic(produced))
    }

    /// The inputs of the graph that are needed after it ran; `None` for the others, so that they can be freed.
    pub fn keeps(&self, inputs: &[Value<Tensor>]) -> Vec<Value<Tensor>> {
        let referred = |position: usize| {
            self.written.contains(&position)
                || self.produced.iter().any(|p| match p {
                    Produced::Input(of) | Produced::ViewOfInput(of, _) => *of == position,
                    _ => false,
                })
        };
        let kept =
            |(position, value): (usize, &Value<Tensor>)| if referred(position) { value.clone() } else { Value::None };
        inputs.iter().enumerate().map(kept).collect()
    }

    /// The symbolic sizes that outputs have, as inputs of the graph give them. Nothing where outputs have none.
    pub fn sizes(&self, inputs: &[Value<Tensor>]) -> Result<Symbols, OpError> {
        let mut sizes = Symbols::default();
        if self.produced.iter().any(is_symbolic) {
            let metas = self.graph.placeholders().map(|(_, node)| node.meta.as_ref());
            sizes.bind(metas.zip(inputs).filter_map(|(meta, input)| Some((meta?, Given::of(input)))))?;
        }
        Ok(sizes)
    }

    /// What the outputs of the program are in a run: symbolic sizes have their numbers. A size that depends on data is
    /// that of a result of the graph.
    pub fn resolved(&self, mut sizes: Symbols, results: &[Value<Tensor>]) -> Result<Cow<'_, [Produced]>, OpError> {
        if !self.produced.iter().any(is_symbolic) {
            return Ok(Cow::Borrowed(&self.produced));
        }
        if let Value::List(returned) = self.graph.output() {
            let meta = |value: &Value<NodeId>| self.graph.node(*value.as_tensor()?).meta.as_ref();
            let pairs = returned.iter().zip(results);
            sizes.bind(pairs.filter_map(|(value, result)| Some((meta(value)?, Given::of(result)))))?;
        }
        let number = |size: &SymInt| {
            let unbound =
                |_| OpError::invalid(format!("the size {size} of an output is bound by no input and no result"));
            sizes.eval(size).map(SymInt::Int).map_err(unbound)
        };
        let numbers = |meta: &Meta| {
            Ok::<_, OpError>(Meta {
                shape: meta.shape.iter().map(number).collect::<Result<_, _>>()?,
                stride: meta.stride.iter().map(number).collect::<Result<_, _>>()?,
                offset: number(&meta.offset)?,
                ..meta.clone()
            })
        };
        let resolve = |produced: &Produced| {
            Ok(match produced {
                Produced::ViewOfInput(position, meta) => Produced::ViewOfInput(*position, numbers(meta)?),
                Produced::ViewOfValue(position, meta) => Produced::ViewOfValue(*position, numbers(meta)?),
                Produced::Plain(Value::Int(size)) => Produced::Plain(Value::Int(number(size)?)),
                other => other.clone(),
            })
        };
        Ok(Cow::Owned(self.produced.iter().map(resolve).collect::<Result<_, OpError>>()?))
    }

    /// Gives written inputs their new contents and returns the program's outputs, whose sizes are numbers.
    pub fn leave(&self, inputs: &[Value<Tensor>], results: Vec<Value<Tensor>>) -> Result<Value<Tensor>, OpError> {
        self.leave_as(&self.produced, inputs, results)
    }

    /// The same for outputs that [`Self::resolved`] gave.
    pub fn leave_as(
        &self,
        produced: &[Produced],
        inputs: &[Value<Tensor>],
        results: Vec<Value<Tensor>>,
    ) -> Result<Value<Tensor>, OpError> {
        let mut contents = Vec::new();
        for (position, result) in self.written.iter().zip(&results) {
            let (Some(Value::Tensor(to)), Value::Tensor(content)) = (inputs.get(*position), result) else {
                return Err(OpError::fault("a written input is not a tensor"));
            };
            // What lies in the memory of an input may change before it is copied.
            let shared = inputs.iter().any(|v| matches!(v, Value::Tensor(t) if t.storage().same(content.storage())));
            contents.push((to, if shared { copied(content)? } else { content.clone() }));
        }
        for (to, content) in &contents {
            to.write_from(content);
        }
        let look_up = |list: &[Value<Tensor>], position: usize| match list.get(position) {
            Some(Value::Tensor(tensor)) => Ok(tensor.clone()),
            _ => Err(OpError::fault("an output refers to what is not a tensor")),
        };
        let produced: Vec<Value<Tensor>> = produced
            .iter()
            .map(|produced| {
                Ok(match produced {
                    Produced::Value(position) => {
                        results.get(*position).cloned().ok_or_else(|| OpError::fault("an output is missing"))?
                    }
                    Produced::Input(position) => look_up(inputs, *position)?.into(),
                    Produced::ViewOfInput(position, meta) => {
                        self.view_of_input(*position, &look_up(inputs, *position)?, meta)?.into()
                    }
                    Produced::ViewOfValue(position, meta) => {
                        let of = look_up(&results, *position)?;
                        let layout = meta.layout()?;
                        let begin = of.layout().offset * of.dtype().size() as i64;
                        let offset = layout.offset + in_elements(begin, meta.dtype)?;
                        of.view(meta.dtype, Layout { offset, ..layout })?.into()
                    }
                    Produced::Plain(value) => {
                        let plain: Result<_, std::convert::Infallible> = value.try_map(&mut |()| Ok(Value::None));
                        let Ok(value) = plain;
                        value
                    }
                })
            })
            .collect::<Result<_, OpError>>()?;
        Ok(rebuilt(&self.structure, &produced))
    }

    /// A view of an input, which may begin elsewhere in its storage than the metadata says: the view moves with it.
    fn view_of_input(&self, position: usize, input: &Tensor, view: &Meta) -> Result<Tensor, OpError> {
        let mut placeholders = self.graph.placeholders();
        let Some((_, Node { meta: Some(Value::Tensor(meta)), .. })) = placeholders.nth(position) else {
            return Err(OpError::fault("a view of what is not a tensor"));
        };
        let layout = view.layout()?;
        let expected = meta.offset.as_int().ok_or_else(|| OpError::fault("a symbolic offset at run time"))?;
        let moved = (input.layout().offset - expected) * meta.dtype.size() as i64;
        Ok(input.view(view.dtype, Layout { offset: layout.offset + in_elements(moved, view.dtype)?, ..layout })?)
    }
}

/// Bytes as a number of elements.
fn in_elements(bytes: i64, dtype: DType) -> Result<i64, OpError> {
    let size = dtype.size() as i64;
    if bytes % size != 0 {
        return Err(OpError::invalid(format!("a tensor's offset must be divisible to be seen as {dtype}")));
    }
    Ok(bytes / size)
}

fn is_symbolic(produced: &Produced) -> bool {
    let unknown = |size: &SymInt| size.as_int().is_none();
    match produced {
        Produced::ViewOfInput(_, meta) | Produced::ViewOfValue(_, meta) => {
            meta.shape.iter().chain(&meta.stride).any(unknown) || unknown(&meta.offset)
        }
        Produced::Plain(Value::Int(size)) => unknown(size),
        _ => false,
    }
}

fn rebuilt(structure: &Value<usize>, leaves: &[Value<Tensor>]) -> Value<Tensor> {
    let filled: Result<_, std::convert::Infallible> =
        structure.try_map(&mut |leaf| Ok(leaves.get(*leaf).cloned().unwrap_or(Value::None)));
    let Ok(value) = filled;
    value
}

fn copied(tensor: &Tensor) -> Result<Tensor, OpError> {
    let copy = Tensor::empty(tensor.shape(), tensor.dtype())?;
    copy.write_from(tensor);
    Ok(copy)
}
