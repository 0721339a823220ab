//! What a run leaves behind: named values in groups.

use pyrite_ir::Value;
use pyrite_tensor::Tensor;

use crate::report::ValuePath;

/// What the values of a group are to the program; it decides which class a difference belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What the program returns.
    Outputs,
    /// Gradients of inputs or parameters.
    Gradients,
    /// Inputs, parameters and buffers as the run left them: differing contents are a mutation.
    Inputs,
}

/// Named values of one role.
#[derive(Clone, Debug)]
pub struct Group {
    /// Such as `outputs`, `input gradients`, `buffers`.
    pub name: String,
    /// What they are to the program.
    pub role: Role,
    /// Each with its name; of values with equal names the first is compared with the first, and so on.
    pub values: Vec<(String, Value<Tensor>)>,
}

/// Everything that a run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Groups in the order in which they are reported.
    pub groups: Vec<Group>,
}

impl Results {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The returned values alone, named by their position.
    pub fn outputs(values: impl IntoIterator<Item = Value<Tensor>>) -> Self {
        let named = values.into_iter().enumerate().map(|(i, value)| (i.to_string(), value));
        Self::new().with("outputs", Role::Outputs, named)
    }

    /// With one more group.
    #[must_use]
    pub fn with<N: Into<String>>(
        mut self,
        name: &str,
        role: Role,
        values: impl IntoIterator<Item = (N, Value<Tensor>)>,
    ) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        self.groups.push(Group { name: name.to_owned(), role, values });
        self
    }

    /// The tensor at a place; of equal names, the first.
    pub fn tensor(&self, place: &ValuePath) -> Option<&Tensor> {
        let (_, value) = self.group(&place.group)?.values.iter().find(|(name, _)| *name == place.name)?;
        place
            .path
            .iter()
            .try_fold(value, |value, index| match value {
                Value::List(items) => items.get(*index),
                _ => None,
            })?
            .as_tensor()
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}
