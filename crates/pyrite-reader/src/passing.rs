//! Which functions that the registry does not know a graph may call all the same.
//!
//! A file is a stranger's, and an opaque call reaches a Python backend that executes it: `torch.hub.load`,
//! `torch.ops.load_library` or `torch.ops.aten.save` in a file must never get there. So a function is passed on only where
//! it is known to compute and to do nothing else: functions of `torch` by a list of names (`torch_functions.txt`), functions
//! of modules that hold nothing but such functions, and operators of the dispatcher, but for those that open files. Custom
//! operators are the dispatcher's too: what they do is the business of whoever imports their module.

use std::sync::OnceLock;

use pyrite_ir::Switch;
use rustc_hash::FxHashSet;

use crate::literal;

/// Modules of torch whose functions compute and do nothing else.
const COMPUTING: [&str; 15] = [
    "torch.nn.functional.",
    "torch._C._nn.",
    "torch._C._fft.",
    "torch._C._linalg.",
    "torch._C._special.",
    "torch._C._functorch.",
    "torch.special.",
    "torch.linalg.",
    "torch.fft.",
    "torch.sparse.",
    "torch.nested.",
    "torch._prims.",
    "torch.amp.autocast_mode.",
    "torch.Tensor.",
    "math.",
];

/// Where the functions of `torch` itself can be found too.
const SAME_AS_TORCH: [&str; 3] = ["torch.", "torch._VF.", "torch.functional."];

/// What names of private functions that compute begin with.
const PRIVATE: [&str; 9] =
    ["_foreach", "_check", "_assert", "_sym", "_scaled", "_grouped", "_int_mm", "_weight", "_dyn"];

/// Methods of tensors that reach beyond the graph: shared memory, hooks, Python's callables.
const REACHING_METHODS: [&str; 8] = [
    "apply_",
    "map_",
    "map2_",
    "module_load",
    "numpy",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "share_memory_",
];

/// Namespaces of operators that are not for graphs: TorchScript's, a debugger's, other processes'.
const REACHING_NAMESPACES: [&str; 5] = ["prim", "debugprims", "c10d", "rpc", "profiler"];

/// Operators that open files.
const REACHING_OPERATORS: [&str; 4] = ["save", "from_file", "load", "load_tensor"];

/// Methods that every module has: a graph in which one of them is called does not call a module of its own.
const MODULE_METHODS: &str = "add_module apply bfloat16 buffers children compile cpu cuda double eval extra_repr float \
     forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers \
     named_children named_modules named_parameters parameters register_backward_hook register_buffer register_forward_hook \
     register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook \
     register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter \
     register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory \
     state_dict to to_empty train type xpu zero_grad";

/// The functions of `torch` that compute and do nothing else.
fn functions() -> &'static FxHashSet<&'static str> {
    static NAMES: OnceLock<FxHashSet<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| include_str!("torch_functions.txt").split_whitespace().collect())
}

/// Whether an unknown function may be kept in a graph.
pub(crate) fn is_passed_on(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    let hidden = |part: &str| part.starts_with("__") && !is_python_operator(part);
    // Python takes some other letters for these, so that a name could be another one than it looks.
    if parts.iter().any(|part| !literal::is_word(part) || hidden(part)) {
        return false;
    }
    match parts.as_slice() {
        ["self", method] => !MODULE_METHODS.split_whitespace().any(|known| known == *method),
        // An operator has a namespace, a name and maybe an overload; `torch.ops.load_library` has not.
        ["torch", "ops", namespace, operator] | ["torch", "ops", namespace, operator, _] => {
            let private = namespace.starts_with('_') && *namespace != "_c10d_functional";
            !private && !REACHING_NAMESPACES.contains(namespace) && !REACHING_OPERATORS.contains(operator)
        }
        _ if Switch::is_name(name) => true,
        _ => {
            let function = parts.last().copied().unwrap_or_default();
            let of = |module: &&str| name.strip_prefix(*module).is_some_and(|rest| rest == function);
            if SAME_AS_TORCH.iter().any(of) {
                let public = function.strip_suffix('_').unwrap_or(function);
                functions().contains(public) || PRIVATE.iter().any(|stem| function.starts_with(stem))
            } else {
                COMPUTING.iter().any(of) && !(parts.contains(&"Tensor") && REACHING_METHODS.contains(&function))
            }
        }
    }
}

/// The methods behind Python's operators, such as `__and__`.
fn is_python_operator(name: &str) -> bool {
    let stem = name.trim_matches('_');
    let stem = stem.strip_prefix(['r', 'i']).unwrap_or(stem);
    matches!(
        stem,
        "and"
            | "or"
            | "xor"
            | "lshift"
            | "rshift"
            | "shift"
            | "add"
            | "sub"
            | "mul"
            | "truediv"
            | "floordiv"
            | "mod"
            | "pow"
            | "matmul"
            | "nvert"
    )
}

#[cfg(test)]
mod tests {
    use super::is_passed_on;

    #[test]
    fn what_computes_is_passed_on_and_what_reaches_out_is_not() {
        for name in [
            "torch.ops.mylib.op.default",
            "torch.ops.aten.some_new_op.default",
            "torch.ops.higher_order.flex_attention",
            "torch.stft",
            "torch.relu_",
            "torch._foreach_add",
            "torch._VF.lstm",
            "torch.nn.functional.unheard_of",
            "torch.Tensor.size",
            "torch.Tensor.__and__",
            "math.sqrt",
            "self.layer",
        ] {
            assert!(is_passed_on(name), "{name}");
        }
        for name in [
            "os.system",
            "eval",
            "getattr",
            "builtins.exec",
            "torch.load",
            "torch.save",
            "torch.hub.load",
            "torch.os.system",
            "torch.compile",
            "torch.from_file",
            "torch._VF.from_file",
            "torch.functional.from_file",
            "torch.set_default_tensor_type",
            "torch.import_ir_module",
            "torch.jit.load",
            "torch.classes.load_library",
            "torch.ops.load_library",
            "torch.ops.import_module",
            "torch.ops.aten.from_file",
            "torch.ops.aten.from_file.default",
            "torch.ops.aten.save",
            "torch.ops.prim.PythonOp",
            "torch.ops.debugprims.load_tensor.default",
            "torch.ops._test.get_first",
            "torch.Tensor.share_memory_",
            "torch.Tensor.__reduce_ex__",
            "torch.utils.cpp_extension.load_inline",
            "torch._C._import_ir_module_from_package",
            "torch.nn.functional.torch.load",
            "self.compile",
            "self.load_state_dict",
            "math.os.system",
            "torch.ops.aten.ſave",
        ] {
            assert!(!is_passed_on(name), "{name}");
        }
    }
}
