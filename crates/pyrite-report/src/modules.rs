//! Which module a node came from, where nobody wrote it down.
//!
//! PyTorch names the inputs of a captured graph by the path of the parameter:
//! `l_self_modules_layer1_modules_0_modules_conv1_parameters_weight_`. A call that uses such an input belongs to the
//! module of that parameter. A call without parameters belongs to the module around its neighbours. What a trace says
//! itself is left as it is.

use crate::view::NodeView;

/// Gives calls without a module the one that their parameters or neighbours tell.
pub fn complete(nodes: &mut [NodeView]) {
    let is_input = |node: &NodeView| node.op == "placeholder";
    let of_input: Vec<Option<String>> = nodes
        .iter()
        .map(|node| if is_input(node) { node.module.clone().or_else(|| path_in(&node.name)) } else { None })
        .collect();
    let own: Vec<Option<String>> = nodes
        .iter()
        .map(|node| {
            let used = || node.inputs.iter().find_map(|input| of_input.get(*input as usize)?.clone());
            node.module.clone().or_else(used)
        })
        .collect();
    let calls: Vec<usize> = (0..nodes.len()).filter(|index| nodes[*index].op == "call_function").collect();
    let mut after = None;
    let mut next = vec![None; calls.len()];
    for (place, index) in calls.iter().enumerate().rev() {
        after = own[*index].as_deref().or(after);
        next[place] = after;
    }
    let mut before: Option<&str> = None;
    for (place, index) in calls.iter().enumerate() {
        nodes[*index].module = match own[*index].as_deref() {
            Some(path) => {
                before = Some(path);
                Some(path.to_owned())
            }
            None => between(before, next[place]),
        };
    }
    // Inputs stand beside the modules that use them.
    nodes.iter_mut().filter(|node| node.op == "placeholder").for_each(|node| node.module = None);
}

/// The path of the module that a parameter's name tells.
fn path_in(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let rest = lower.strip_prefix("l_self_modules_")?;
    let end = ["_parameters_", "_buffers_"].iter().filter_map(|mark| rest.find(mark)).min()?;
    Some(rest[..end].replace("_modules_", "."))
}

/// The module of a call between calls of two modules: the one around both, or, where the second is far away from the
/// first, the one around the first, which the call ends.
fn between(before: Option<&str>, after: Option<&str>) -> Option<String> {
    let first: Vec<&str> = before?.split('.').collect();
    let shared = after.map_or(0, |after| first.iter().zip(after.split('.')).take_while(|(a, b)| **a == *b).count());
    let kept = if shared + 2 >= first.len() { shared } else { first.len() - 1 };
    (kept > 0).then(|| first[..kept].join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, op: &str, inputs: &[u32]) -> NodeView {
        NodeView { name: name.to_owned(), op: op.to_owned(), inputs: inputs.to_vec(), ..NodeView::default() }
    }

    #[test]
    fn a_call_belongs_to_its_parameters_module_and_one_between_to_both() {
        let mut nodes = vec![
            node("l_x_", "placeholder", &[]),
            node("l_self_modules_layer1_modules_0_modules_conv1_parameters_weight_", "placeholder", &[]),
            node("l_self_modules_layer1_modules_0_modules_bn1_buffers_running_mean_", "placeholder", &[]),
            node("conv", "call_function", &[0, 1]),
            node("relu", "call_function", &[3]),
            node("bn", "call_function", &[4, 2]),
            node("output", "output", &[5]),
        ];
        complete(&mut nodes);
        let modules: Vec<Option<&str>> = nodes[3..].iter().map(|node| node.module.as_deref()).collect();
        assert_eq!(modules, [Some("layer1.0.conv1"), Some("layer1.0"), Some("layer1.0.bn1"), None]);
    }

    #[test]
    fn names_without_a_module_guess_nothing() {
        let mut nodes = vec![node("primals_1", "placeholder", &[]), node("relu", "call_function", &[0])];
        complete(&mut nodes);
        assert!(nodes.iter().all(|node| node.module.is_none()));
    }

    #[test]
    fn a_call_at_the_end_of_a_block_belongs_to_the_block() {
        assert_eq!(between(Some("layer1.1.bn2"), Some("layer2.0.conv1")).as_deref(), Some("layer1.1"));
        assert_eq!(between(Some("layers.0.attn.out"), Some("layers.0.norm2")).as_deref(), Some("layers.0"));
        assert_eq!(between(Some("layers.0.mlp.down"), Some("layers.1.norm1")).as_deref(), Some("layers.0.mlp"));
        assert_eq!(between(Some("bn1"), Some("layer1.0.conv1")), None);
        assert_eq!(between(None, Some("conv1")), None);
    }
}
