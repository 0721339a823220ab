//! Running a functional graph in place of the program it came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyrite_ir::{OpError, Value};
use pyrite_tensor::{Layout, Tensor};

use super::{Functional, Produced, Source};

impl Functional {
    /// The inputs of the graph from those of the program and its constants.
    pub fn enter(
        &self,
        inputs: &[Value<Tensor>],
        constants: &BTreeMap<Arc<str>, Tensor>,
    ) -> Result<Vec<Value<Tensor>>, OpError> {
        let count = self.sources.iter().filter_map(|s| if let Source::Input(i) = s { Some(i + 1) } else { None }).max();
        if inputs.len() < count.unwrap_or(0) {
            return Err(OpError::invalid(format!("the program takes more inputs than the {} given", inputs.len())));
        }
        let placeholders = self.graph.placeholders().map(|(_, node)| node.meta.as_ref().and_then(Value::as_tensor));
        self.sources
            .iter()
            .zip(placeholders)
            .map(|(source, meta)| match source {
                Source::Input(index) => Ok(inputs[*index].clone()),
                Source::Constant(name) => {
                    let found = constants.get(name).cloned().map(Value::Tensor);
                    found.ok_or_else(|| OpError::fault(format!("the constant {name} is missing")))
                }
                Source::Storage(index) => {
                    let (Value::Tensor(tensor), Some(meta)) = (&inputs[*index], meta) else {
                        return Err(OpError::invalid("memory of what is no tensor"));
                    };
                    let length = meta.shape.first().and_then(pyrite_sym::SymInt::as_int).unwrap_or(0);
                    Ok(tensor.view(tensor.dtype(), Layout::new(&[length], &[1], 0))?.into())
                }
            })
            .collect()
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

    /// Gives written inputs their new contents and returns the program's outputs.
    pub fn leave(&self, inputs: &[Value<Tensor>], results: Vec<Value<Tensor>>) -> Result<Value<Tensor>, OpError> {
        let mut contents = Vec::new();
        for (position, result) in self.written.iter().zip(&results) {
            let (Some(Value::Tensor(to)), Value::Tensor(content)) = (inputs.get(*position), result) else {
                return Err(OpError::fault("a written input is no tensor"));
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
            _ => Err(OpError::fault("an output refers to what is no tensor")),
        };
        let produced: Vec<Value<Tensor>> = self
            .produced
            .iter()
            .map(|produced| {
                Ok(match produced {
                    Produced::Value(position) => {
                        results.get(*position).cloned().ok_or_else(|| OpError::fault("an output is missing"))?
                    }
                    Produced::Input(position) => look_up(inputs, *position)?.into(),
                    Produced::ViewOfInput(position, meta) => {
                        look_up(inputs, *position)?.view(meta.dtype, meta.layout()?)?.into()
                    }
                    Produced::ViewOfValue(position, meta) => {
                        let of = look_up(&results, *position)?;
                        let layout = meta.layout()?;
                        let offset = layout.offset + of.layout().offset;
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
