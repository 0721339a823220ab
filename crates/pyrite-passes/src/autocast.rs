//! Autocast: operators choose their type by lists.
//!
//! Inside an autocast region, matmuls run in the lower precision that was asked for, a list of sensitive operators runs
//! in single precision, and a few operators take the widest type among their arguments. The lists are those of
//! PyTorch's CPU. [`lower`] makes the casts explicit and removes the region's entry and exit from the graph, so that
//! nothing after it knows of autocast. In-place operators and double precision are left alone.

use pyrite_ir::{
    Args, Decompose, Emit, Eval, Graph, Handle, Kind, Meta, NodeError, OpError, OpRef, Operator, Origin, Registry,
    Switch, Target, Tracer, Value,
};
use pyrite_tensor::DType;

use crate::replay::{arguments, item, opaque, placeholder, resolve};

/// Matmuls, by the name of the operator: the lower precision.
const LOWER: &[&str] = &[
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "_convolution",
    "conv_tbc",
    "bmm",
    "mm",
    "linalg_vecdot",
    "baddbmm",
    "addmm",
    "addbmm",
    "linear",
    "matmul",
    "prelu",
    "scaled_dot_product_attention",
    "_native_multi_head_attention",
];

/// Sensitive operators: single precision.
const SINGLE: &[&str] = &[
    "avg_pool3d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "grid_sampler",
    "polar",
    "prod",
    "quantile",
    "nanquantile",
    "stft",
    "cdist",
    "trace",
    "view_as_complex",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "inverse",
    "lu_solve",
    "orgqr",
    "ormqr",
    "pinverse",
    "max_pool3d",
    "max_unpool2d",
    "max_unpool3d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool3d",
    "reflection_pad1d",
    "reflection_pad2d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "mse_loss",
    "cosine_embedding_loss",
    "nll_loss",
    "nll_loss2d",
    "hinge_embedding_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "cross_entropy_loss",
    "l1_loss",
    "huber_loss",
    "margin_ranking_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "multi_margin_loss",
    "ctc_loss",
    "kl_div",
    "multilabel_margin_loss",
    "fft_fft",
    "fft_ifft",
    "fft_fft2",
    "fft_ifft2",
    "fft_fftn",
    "fft_ifftn",
    "fft_rfft",
    "fft_irfft",
    "fft_rfft2",
    "fft_irfft2",
    "fft_rfftn",
    "fft_irfftn",
    "fft_hfft",
    "fft_ihfft",
    "linalg_cond",
    "linalg_matrix_rank",
    "linalg_solve",
    "linalg_cholesky",
    "linalg_svdvals",
    "linalg_eigvals",
    "linalg_eigvalsh",
    "linalg_inv",
    "linalg_householder_product",
    "linalg_tensorinv",
    "linalg_tensorsolve",
    "geqrf",
    "qr",
    "svd",
    "triangular_solve",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "linalg_qr",
    "linalg_cholesky_ex",
    "linalg_svd",
    "linalg_eig",
    "linalg_eigh",
    "linalg_lstsq",
    "linalg_inv_ex",
];

/// Operators that take the widest type among their arguments.
const WIDEST: &[&str] = &["stack", "cat", "index_copy"];

/// What autocast does with the arguments of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Casts them to the lower precision.
    Lower,
    /// Casts them to single precision.
    Single,
    /// Casts them to the widest type among them.
    Widest,
}

/// What autocast does with an operator; `None` where it leaves it alone.
pub fn policy(op: &Operator) -> Option<Policy> {
    let mut parts = op.name().split('.');
    let (Some("aten"), Some(stem)) = (parts.next(), parts.next()) else { return None };
    if op.schema.is_mutable() {
        return None;
    }
    if LOWER.contains(&stem) {
        Some(Policy::Lower)
    } else if SINGLE.contains(&stem) {
        Some(Policy::Single)
    } else if WIDEST.contains(&stem) {
        Some(Policy::Widest)
    } else {
        None
    }
}

/// The graph with the casts of its autocast regions made explicit.
pub fn lower(graph: &Graph, registry: &Registry) -> Result<Graph, NodeError> {
    let regions = graph.nodes().any(|(_, node)| matches!(Switch::of(node), Some(Switch::EnterAutocast(_))));
    if regions { apply(graph, registry, None) } else { Ok(graph.clone()) }
}

/// The graph as if all of it ran under autocast.
pub fn apply(graph: &Graph, registry: &Registry, dtype: Option<DType>) -> Result<Graph, NodeError> {
    let mut tracer = Tracer::new(registry);
    tracer.builder().copy_surroundings(graph);
    let mut values: Vec<Value<Handle>> = vec![Value::None; graph.id_bound()];
    let mut output = Value::None;
    let mut regions = vec![dtype];
    for (id, node) in graph.nodes() {
        tracer.origin = Origin::of(node);
        let located = |error| NodeError::at(node, error);
        values[id.0 as usize] = match &node.kind {
            Kind::Placeholder => placeholder(&mut tracer, node, &node.name),
            Kind::GetAttr(name) => match graph.constants().get(name) {
                Some(tensor) => Value::Tensor(tracer.constant(name, tensor)),
                None => Value::Graph(name.clone()),
            },
            Kind::Output => {
                output = tracer.lower(&resolve(node.args.first().unwrap_or(&Value::None), &values));
                Value::None
            }
            Kind::Call(Target::GetItem) => item(&arguments(node, &values)).map_err(located)?,
            Kind::Call(Target::Opaque(_)) => match Switch::of(node) {
                Some(Switch::EnterAutocast(dtype)) => {
                    regions.push(dtype);
                    Value::None
                }
                Some(Switch::ExitAutocast) => {
                    if regions.len() > 1 {
                        regions.pop();
                    }
                    Value::None
                }
                _ => opaque(&mut tracer, node, &values),
            },
            Kind::Call(Target::Op(op)) if matches!(op.def.eval, Eval::HigherOrder) => {
                let args = arguments(node, &values).iter().map(|v| tracer.lower(v)).collect();
                let meta = node.meta.clone().unwrap_or(Value::None);
                tracer.append_call(op, args, meta)
            }
            Kind::Call(Target::Op(op)) => {
                let args = arguments(node, &values);
                match regions.last().copied().flatten() {
                    Some(dtype) => Casting { tracer: &mut tracer, dtype }.call_op(op, &args),
                    None => tracer.call_op(op, &args),
                }
                .map_err(located)?
            }
        };
    }
    Ok(tracer.finish(output))
}

/// Carries out calls under autocast. Inside an operator of the lists, autocast is off.
struct Casting<'t, 'a> {
    tracer: &'t mut Tracer<'a>,
    dtype: DType,
}

impl Casting<'_, '_> {
    fn call_op(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        if let Some(policy) = policy(op) {
            let to = match policy {
                Policy::Lower => self.dtype,
                Policy::Single => DType::F32,
                Policy::Widest => self.widest(args),
            };
            let cast: Vec<Value<Handle>> =
                args.iter().map(|v| v.try_map(&mut |h| self.cast(*h, to))).collect::<Result<_, _>>()?;
            return self.tracer.call_op(op, &cast);
        }
        match (op.def.eval, op.def.decompose) {
            // What it consists of may be on a list.
            (Eval::ViaDecomposition, Decompose::Rule(rule)) => {
                let args = self.tracer.with_number_handles(op, args);
                rule(self, &Args { schema: &op.schema, values: &args })
            }
            _ => self.tracer.call_op(op, args),
        }
    }

    fn cast(&mut self, handle: Handle, to: DType) -> Result<Value<Handle>, OpError> {
        let meta = self.tracer.meta(handle);
        let eligible = meta.dtype.is_float() && meta.dtype != DType::F64 && meta.dtype != to && !meta.number;
        if !eligible {
            return Ok(Value::Tensor(handle));
        }
        let (op, bound) = self.tracer.registry().bound("aten._to_copy.default", &[handle.into(), to.into()])?;
        self.tracer.call_op(op, &bound)
    }

    /// The widest among the arguments' types; the lower precision where they all have it.
    fn widest(&self, args: &[Value<Handle>]) -> DType {
        let mut widest = self.dtype;
        for arg in args {
            arg.each(&mut |h| {
                if self.tracer.meta(*h).dtype == DType::F32 {
                    widest = DType::F32;
                }
            });
        }
        widest
    }
}

impl Emit for Casting<'_, '_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let (operator, bound) = self.tracer.registry().bound(op, args)?;
        self.call_op(operator, &bound)
    }

    fn meta(&self, handle: Handle) -> &Meta {
        self.tracer.meta(handle)
    }
}
