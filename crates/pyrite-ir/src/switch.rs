//! Nodes that switch a state for the nodes after them.
//!
//! A captured program may contain calls that compute nothing but change how what follows is computed: gradients on or
//! off, autocast entered or left. They stay in the graph as the Python calls they are.

use pyrite_tensor::DType;

use crate::{Kind, Node, Target, Value};

/// What a node switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Whether gradients pass through what follows.
    Grad(bool),
    /// From here to the matching exit, operators choose their type by autocast's lists; `None` switches it off.
    EnterAutocast(Option<DType>),
    /// Back to what held before the matching entry.
    ExitAutocast,
}

/// The names under which the calls are written.
const GRAD: &[&str] = &["torch._C._set_grad_enabled", "torch.set_grad_enabled"];
const ENTER: &[&str] = &["torch.amp.autocast_mode._enter_autocast", "torch.amp._enter_autocast"];
const EXIT: &[&str] = &["torch.amp.autocast_mode._exit_autocast", "torch.amp._exit_autocast"];

impl Switch {
    /// What a node switches, if it is such a call. Autocast for other devices than the CPU changes nothing here.
    pub fn of(node: &Node) -> Option<Self> {
        let Kind::Call(Target::Opaque(name)) = &node.kind else { return None };
        let name: &str = name;
        if GRAD.contains(&name) {
            return match node.args.first() {
                Some(Value::Bool(enabled)) => Some(Self::Grad(*enabled)),
                _ => None,
            };
        }
        if ENTER.contains(&name) {
            let dtype = match node.args.get(1) {
                Some(Value::DType(dtype)) => *dtype,
                _ => DType::BF16,
            };
            let on_cpu = matches!(node.args.first(), Some(Value::Str(device)) if &**device == "cpu");
            let enabled = !matches!(node.args.get(2), Some(Value::Bool(false)));
            return Some(Self::EnterAutocast((on_cpu && enabled).then_some(dtype)));
        }
        EXIT.contains(&name).then_some(Self::ExitAutocast)
    }

    /// Whether a Python function of that dotted name switches a state.
    pub fn is_name(name: &str) -> bool {
        GRAD.contains(&name) || ENTER.contains(&name) || EXIT.contains(&name)
    }
}
