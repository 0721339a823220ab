//! What a file may choose by itself.
//!
//! A repro names the backend that fails on it, and may be a stranger's. A name can do more than choose a compiler:
//! `cmd:PROGRAM` runs a program, `torch:NAME` may load a package by entry point, a setting of Inductor names the C++
//! compiler or a file to write. So a file chooses among Pyrite's own backends, those that torch brings itself, and
//! settings that switch parts of Inductor on and off. Everything else counts only where the command line repeats it.

use pyrite_compiler::backend::backends;

/// What a name from a file would do if it were followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// It runs a program.
    #[error("it runs the program `{0}`")]
    Program(String),
    /// It may load a package.
    #[error("torch does not bring `{0}` itself, so it may load other code")]
    Package(String),
    /// A setting that is not known to be harmless.
    #[error("the setting `{0}` may name a program, a file or a server")]
    Setting(String),
    /// A setting whose value is more than a switch or a number.
    #[error("the setting `{0}` has the value `{1}`, which is neither true, false nor a number")]
    Value(String, String),
    /// Nobody knows it.
    #[error("no backend of that name comes with Pyrite")]
    Unknown,
}

/// The backends of torch.compile that come with torch and load nothing else.
const BROUGHT_BY_TORCH: [&str; 16] = [
    "aot_eager",
    "aot_eager_decomp_partition",
    "aot_eager_decomp_partition_crossref",
    "aot_eager_decomp_partition_with_mode",
    "aot_eager_default_partitioner",
    "aot_ts",
    "eager",
    "eager_debug",
    "eager_noexcept",
    "inductor",
    "invoke_subgraph",
    "non_leaf_compile_error_TESTING_ONLY",
    "pre_dispatch_eager",
    "relu_accuracy_error_TESTING_ONLY",
    "relu_compile_error_TESTING_ONLY",
    "relu_runtime_error_TESTING_ONLY",
];

/// Settings of Inductor that choose how it compiles and reach nothing outside of it. `calls`, `dynamic`, `limit`, `mode`,
/// `poison`, `skip` and `tf32` are Pyrite's.
const HARMLESS: [&str; 84] = [
    "aggressive_fusion",
    "allow_buffer_reuse",
    "assume_aligned_inputs",
    "b2b_gemm_pass",
    "batch_fusion",
    "calls",
    "combo_kernels",
    "comprehensive_padding",
    "constant_and_index_propagation",
    "conv_1x1_as_mm",
    "coordinate_descent_tuning",
    "cpp.dynamic_threads",
    "cpp.enable_concat_linear",
    "cpp.enable_grouped_gemm_template",
    "cpp.enable_loop_tail_vec",
    "cpp.enable_tiling_heuristics",
    "cpp.enable_unsafe_math_opt_flag",
    "cpp.fallback_scatter_reduce_sum",
    "cpp.force_inline_kernel",
    "cpp.max_horizontal_fusion_size",
    "cpp.min_chunk_size",
    "cpp.no_redundant_loops",
    "cpp.simdlen",
    "cpp.threads",
    "cpp.use_decompose_tanh",
    "cpp.weight_prepack",
    "dce",
    "decompose_mem_bound_mm",
    "delay_realize_cheap_outputs",
    "deterministic",
    "disable_cpp_codegen",
    "dynamic",
    "efficient_conv_bn_eval_fx_passes",
    "emulate_precision_casts",
    "enable_auto_functionalized_v2",
    "enable_linear_binary_folding",
    "epilogue_fusion",
    "epilogue_fusion_first",
    "fallback_random",
    "force_disable_caches",
    "force_fuse_int_mm_with_mul",
    "force_layout_optimization",
    "force_pointwise_cat",
    "force_shape_pad",
    "freezing",
    "fx_graph_cache",
    "group_fusion",
    "implicit_fallbacks",
    "inplace_buffers",
    "inplace_padding",
    "joint_graph_constant_folding",
    "keep_output_stride",
    "layout_optimization",
    "limit",
    "loop_ordering_after_fusion",
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "max_fusion_size",
    "max_pointwise_cat_inputs",
    "memory_planning",
    "mode",
    "online_softmax",
    "optimize_scatter_upon_const_tensor",
    "pattern_matcher",
    "permute_fusion",
    "pick_loop_orders",
    "poison",
    "prologue_fusion",
    "ptxas",
    "realize_opcount_threshold",
    "realize_reads_threshold",
    "reorder_for_locality",
    "reorder_for_peak_memory",
    "shape_padding",
    "size_asserts",
    "skip",
    "split_cat_fx_passes",
    "split_reductions",
    "tf32",
    "triton.cudagraphs",
    "unroll_reductions_threshold",
    "use_joint_graph_passes",
    "use_post_grad_passes",
];

/// Whether torch brings a backend of that name itself.
pub fn is_of_torch(name: &str) -> bool {
    BROUGHT_BY_TORCH.contains(&name)
}

/// Whether a file may choose a backend of that name without being asked for it.
pub fn check_backend(name: &str) -> Result<(), Untrusted> {
    if let Some(program) = name.strip_prefix("cmd:") {
        return Err(Untrusted::Program(program.to_owned()));
    }
    let Some(theirs) = name.strip_prefix("torch:") else {
        let own = backends().iter().any(|backend| &*backend.name == name);
        return if own { Ok(()) } else { Err(Untrusted::Unknown) };
    };
    let (base, settings) = theirs.split_once('?').unwrap_or((theirs, ""));
    if !is_of_torch(base) {
        return Err(Untrusted::Package(base.to_owned()));
    }
    settings.split('&').filter(|pair| !pair.is_empty()).try_for_each(check_setting)
}

fn check_setting(pair: &str) -> Result<(), Untrusted> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
    if !HARMLESS.contains(&name) {
        return Err(Untrusted::Setting(name.to_owned()));
    }
    let harmless = match name {
        "limit" | "skip" => {
            let (part, numbers) = value.split_once(':').unwrap_or((value, "0"));
            let word = part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            word && numbers.split(',').all(|number| number.parse::<u32>().is_ok())
        }
        "mode" => value.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
        _ => matches!(value, "true" | "false" | "null") || value.parse::<f64>().is_ok_and(f64::is_finite),
    };
    if harmless { Ok(()) } else { Err(Untrusted::Value(name.to_owned(), value.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_chooses_compilers_and_their_switches_and_nothing_else() {
        for name in [
            "eager",
            "native",
            "torch:inductor",
            "torch:eager",
            "torch:inductor?max_fusion_size=1&cpp.simdlen=0",
            "torch:inductor?mode=reduce-overhead&calls=3&dynamic=true&tf32=true",
            "torch:inductor?limit=lowerings:3&skip=lowerings:1,2&epilogue_fusion=false",
        ] {
            assert_eq!(check_backend(name), Ok(()), "{name}");
        }
        for name in [
            "cmd:touch pwned",
            "cmd:",
            "cmd",
            "shell",
            "torch:tvm",
            "torch:my_package_backend",
            "torch:",
            "torch:inductor?cpp.cxx=[\"sh\"]",
            "torch:inductor?cpp.march=native -B/tmp",
            "torch:inductor?steps=/home/file",
            "torch:inductor?code=/home/file",
            "torch:inductor?trace.enabled=true",
            "torch:inductor?fx_graph_remote_cache=true",
            "torch:inductor?max_fusion_size=[1]",
            "torch:inductor?max_fusion_size=one",
            "torch:inductor?limit=a b:1",
            "torch:inductor?mode=__import__('os')",
            "torch:inductor?limit=lowerings:x",
            "torch:inductor?post_grad_custom_pre_pass=1",
        ] {
            assert!(check_backend(name).is_err(), "{name}");
        }
    }
}
