//! The values of nodes in an eager run, in memory or on disk.
//!
//! Passes feed parts of a program from these values. A program whose values do not fit into memory keeps them in files of
//! a folder that goes with them; only the values that a candidate is fed from are then read back.

use std::fs;
use std::path::PathBuf;

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{NodeId, Value};
use pyrite_ops::registry;
use pyrite_tensor::{DType, Layout, Storage, Tensor};

use crate::Candidate;
use crate::candidate::copied;

/// Where the values of nodes are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// In memory, so that one question can feed every node at once.
    #[default]
    InMemory,
    /// In temporary files. No question feeds all nodes then, so a search takes more of them.
    OnDisk,
    /// Nowhere. Nothing is fed from a run then, and what only that removes stays in the result.
    Nowhere,
}

/// The values, each as it was right after it was computed.
pub(crate) struct Saved {
    slots: Vec<Slot>,
    folder: Option<tempfile::TempDir>,
}

enum Slot {
    /// No tensor, or one that could not be kept.
    Empty,
    Memory(Tensor),
    File {
        dtype: DType,
        layout: Layout,
    },
}

impl Saved {
    /// Runs a program and keeps its values; `None` when it cannot be run that way, or when there is no room.
    pub(crate) fn of(candidate: &Candidate, keep: Keep) -> Option<Self> {
        let folder = match keep {
            Keep::InMemory => None,
            Keep::OnDisk => Some(tempfile::tempdir().ok()?),
            Keep::Nowhere => return None,
        };
        let mut saved = Self { slots: Vec::new(), folder };
        saved.slots.resize_with(candidate.graph.id_bound(), || Slot::Empty);
        let context = Context::new(registry(), 0);
        let inputs = candidate.inputs.iter().map(|v| v.map(&mut |t| copied(t))).collect();
        let interpreter = Interpreter { context: &context, mode: Mode::Eager };
        let mut room = true;
        let ran = interpreter.run_observed(&candidate.graph, inputs, &mut |id, _, value| {
            if let Value::Tensor(tensor) = value {
                room &= saved.keep(id, tensor);
            }
        });
        (ran.is_ok() && room).then_some(saved)
    }

    /// Keeps a value, and says whether there was room for it.
    fn keep(&mut self, id: NodeId, tensor: &Tensor) -> bool {
        let copy = copied(tensor);
        let slot = match self.file(id) {
            None => Slot::Memory(copy),
            Some(path) => match fs::write(path, copy.storage().to_bytes()) {
                Ok(()) => Slot::File { dtype: copy.dtype(), layout: copy.layout().clone() },
                Err(_) => return false,
            },
        };
        self.slots[id.0 as usize] = slot;
        true
    }

    fn file(&self, id: NodeId) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().join(id.0.to_string()))
    }

    /// Whether a node has a tensor for its value.
    pub(crate) fn has(&self, id: NodeId) -> bool {
        !matches!(self.slots[id.0 as usize], Slot::Empty)
    }

    /// The tensor that is a node's value.
    pub(crate) fn tensor(&self, id: NodeId) -> Option<Tensor> {
        match &self.slots[id.0 as usize] {
            Slot::Empty => None,
            Slot::Memory(tensor) => Some(tensor.clone()),
            Slot::File { dtype, layout } => {
                let bytes = fs::read(self.file(id)?).ok()?;
                Tensor::new(Storage::from_slice(&bytes), *dtype, layout.clone()).ok()
            }
        }
    }
}
