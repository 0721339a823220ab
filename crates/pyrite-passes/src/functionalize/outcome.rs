//! The end of a trace: what the plan should have known, and what the program's outputs are.

use pyrite_ir::{Contract, Handle, Meta, Node, NodeId, OpError, Value};
use pyrite_sym::SymInt;
use rustc_hash::FxHashMap;

use super::state::{BaseOrigin, Pure, State};
use super::{Functional, InputPlan, InputSource, Produced, Reading};

/// What outputs may share: a base, and how they are read from it.
type Memory = (usize, Reading);

impl State<'_> {
    /// What another plan would have needed: constants that were written, and storages of several inputs that were.
    pub(super) fn missed(&self, inputs: &[(NodeId, &Node)], plan: &InputPlan) -> InputPlan {
        let mut missed = InputPlan::default();
        for base in self.bases.iter().filter(|base| base.generation > 0) {
            match &base.origin {
                BaseOrigin::Constant(name) if !missed.lifted.contains(name) => missed.lifted.push(name.clone()),
                BaseOrigin::Input(_) => {
                    let storage = self.slots[base.root.0 as usize].meta.storage;
                    let sharing = inputs
                        .iter()
                        .filter(|(_, node)| matches!(&node.meta, Some(Value::Tensor(m)) if m.storage == storage))
                        .count();
                    if sharing > 1 && !plan.shared.contains(&storage) && !missed.shared.contains(&storage) {
                        missed.shared.push(storage);
                    }
                }
                _ => {}
            }
        }
        missed
    }

    /// The graph and what surrounds it.
    pub(super) fn finish(mut self, output: &Value<Handle>, sources: Vec<InputSource>) -> Result<Functional, OpError> {
        let (written, mut returned) = self.final_inputs()?;
        let mut leaves = Vec::new();
        let structure = flatten(output, &mut leaves);
        let tensors: Vec<Option<Handle>> =
            leaves.iter().map(|leaf| leaf.as_tensor().map(|h| self.current(*h))).collect();
        let readings = tensors.iter().map(|tensor| tensor.map(|h| self.reading_of(h)).unwrap_or_default()).collect();
        let memory_of = |state: &Self, handle: Handle| Some((state.base_of(handle).ok()?, state.reading_of(handle)));
        let mut uses: FxHashMap<Memory, usize> = FxHashMap::default();
        for memory in tensors.iter().flatten().filter_map(|h| memory_of(&self, *h)) {
            *uses.entry(memory).or_default() += 1;
        }
        // Bases of several outputs: where the base itself is returned.
        let mut homes: FxHashMap<Memory, usize> = FxHashMap::default();
        let mut produced: Vec<Produced> = Vec::new();
        let mut positions: Vec<Option<usize>> = Vec::new();
        let mut hidden: Vec<(usize, Memory)> = Vec::new();
        for (leaf, tensor) in leaves.iter().zip(&tensors) {
            positions.push(None);
            let Some(handle) = tensor else {
                produced.push(match leaf {
                    // A symbolic number is computed by the graph.
                    Value::Int(size) if size.as_int().is_none() => {
                        returned.push(leaf.clone());
                        Produced::Value(returned.len() - 1)
                    }
                    _ => Produced::Plain(plain(leaf)),
                });
                continue;
            };
            let pure = self.pure(&Value::Tensor(*handle))?;
            let Some(memory) = memory_of(&self, *handle) else {
                produced.push(Produced::Plain(plain(&pure)));
                continue;
            };
            let (base, reading) = memory;
            let is_root = self.bases[base].root == *handle;
            let meta = self.slots[handle.0 as usize].meta.clone();
            returned.push(pure);
            let position = returned.len() - 1;
            positions.pop();
            positions.push(Some(position));
            produced.push(match &self.bases[base].origin {
                BaseOrigin::Input(input) if is_root => Produced::Input(*input),
                // What is read otherwise than it lies is computed, and has memory of its own.
                BaseOrigin::Input(input) if reading == Reading::default() => Produced::ViewOfInput(*input, meta),
                _ if uses[&memory] < 2 => Produced::Value(position),
                _ if is_root => {
                    if let Some(home) = homes.get(&memory) {
                        Produced::ViewOfValue(*home, self.within(base, meta))
                    } else {
                        homes.insert(memory, position);
                        Produced::Value(position)
                    }
                }
                _ => {
                    hidden.push((produced.len(), memory));
                    Produced::ViewOfValue(usize::MAX, self.within(base, meta))
                }
            });
        }
        self.return_hidden_bases(hidden, &mut homes, &mut returned, &mut produced)?;
        let output = returned.iter().map(|value| self.tracer.lower(value)).collect();
        let graph = self.tracer.finish(Value::List(output));
        let contract = Contract::default();
        Ok(Functional { graph, sources, written, produced, positions, structure, readings, contract })
    }

    /// What a view looks like whose offset counts from where its base begins, which need not be where its storage does.
    fn within(&self, base: usize, view: Meta) -> Meta {
        let root = &self.slots[self.bases[base].root.0 as usize].meta;
        let size = |meta: &Meta| SymInt::from(meta.dtype.size());
        let begin = (&root.offset * size(root)).floor_div(&size(&view));
        Meta { offset: &view.offset - begin, ..view }
    }

    /// The inputs that are written to, by their positions, and their final values.
    fn final_inputs(&mut self) -> Result<(Vec<usize>, Vec<Value<Pure>>), OpError> {
        let (mut written, mut values) = (Vec::new(), Vec::new());
        for base in 0..self.bases.len() {
            if let (BaseOrigin::Input(position), true) = (&self.bases[base].origin, self.bases[base].generation > 0) {
                written.push(*position);
                let root = self.bases[base].root;
                values.push(self.read_slot(root)?.into());
            }
        }
        Ok((written, values))
    }

    /// Returns the bases of several outputs that are not outputs themselves. `hidden` names views by their position in
    /// `produced`, each with its base; they become views of what is returned.
    fn return_hidden_bases(
        &mut self,
        hidden: Vec<(usize, Memory)>,
        homes: &mut FxHashMap<Memory, usize>,
        returned: &mut Vec<Value<Pure>>,
        produced: &mut [Produced],
    ) -> Result<(), OpError> {
        for (index, memory) in hidden {
            let home = if let Some(home) = homes.get(&memory) {
                *home
            } else {
                returned.push(self.base_as_read(memory.0, memory.1)?.into());
                homes.insert(memory, returned.len() - 1);
                returned.len() - 1
            };
            if let Produced::ViewOfValue(of, _) = &mut produced[index] {
                *of = home;
            }
        }
        Ok(())
    }
}

/// A value whose tensors are left out.
fn plain<T>(value: &Value<T>) -> Value<()> {
    let plain: Result<_, std::convert::Infallible> = value.try_map(&mut |_| Ok(Value::None));
    let Ok(plain) = plain;
    plain
}

/// The leaves of a value in order, and its structure over their positions.
fn flatten(value: &Value<Handle>, leaves: &mut Vec<Value<Handle>>) -> Value<usize> {
    if let Value::List(items) = value {
        return Value::List(items.iter().map(|item| flatten(item, leaves)).collect());
    }
    leaves.push(value.clone());
    Value::Tensor(leaves.len() - 1)
}
