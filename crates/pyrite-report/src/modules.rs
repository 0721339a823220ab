//! Which module a node came from, where nobody wrote it down.
//!
//! PyTorch names the inputs of a captured graph by the path of the parameter:
//! `l_self_modules_layer1_modules_0_modules_conv1_parameters_weight_`. A call that uses such an input belongs to the
//! module of that parameter. A call without parameters belongs to what the calls before and after it have in common. What
//! a trace says itself is left as it is.

use crate::view::Node;

/// Gives calls without a module the one that their parameters or neighbours tell.
pub fn complete(nodes: &mut [Node]) {
    let is_input = |node: &Node| node.op == "placeholder";
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
            None => common(before, next[place]),
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

/// The modules around both.
fn common(before: Option<&str>, after: Option<&str>) -> Option<String> {
    let parts: Vec<&str> =
        before?.split('.').zip(after?.split('.')).take_while(|(a, b)| a == b).map(|(part, _)| part).collect();
    (!parts.is_empty()).then(|| parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, op: &str, inputs: &[u32]) -> Node {
        Node { name: name.to_owned(), op: op.to_owned(), inputs: inputs.to_vec(), ..Node::default() }
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
}
