# Where PyTorch's Python functions differ from the operators they call.
#
# A class stands for the modules its docstring names. A function has the signature of PyTorch's; its body is what the
# call means, in operators. The reader evaluates these expressions, so they may use conditions on what is known when a
# graph is read: numbers, strings, None, and kind(x), which is 'tensor', 'number', 'dtype', 'device', 'str', 'list',
# 'bool' or 'none', rank(x), known(x), which is whether the reader has the value, and one_value_per(unit, x), for which
# PyTorch's norms raise. Functions that agree with their operator need no entry. An operator that the registry does not have
# makes the call an opaque one.


class functional:
    "torch.nn.functional torch"

    def relu(input, inplace=False): return aten.relu_(input) if inplace else aten.relu(input)
    def relu6(input, inplace=False): return aten.hardtanh_(input, 0, 6) if inplace else aten.hardtanh(input, 0, 6)
    def selu(input, inplace=False): return aten.selu_(input) if inplace else aten.selu(input)
    def celu(input, alpha=1.0, inplace=False): return aten.celu_(input, alpha) if inplace else aten.celu(input, alpha)
    def dropout(input, p=0.5, train=True, inplace=False): return (aten.copy_(input, aten.dropout(input, p, train)) if train else input) if inplace else aten.dropout(input, p, train)
    def dropout_(input, p, train): return aten.copy_(input, aten.dropout(input, p, train)) if train else input
    def alpha_dropout(input, p=0.5, train=False, inplace=False): return aten.alpha_dropout_(input, p, train) if inplace else aten.alpha_dropout(input, p, train)
    def feature_dropout(input, p=0.5, train=True, inplace=False): return aten.feature_dropout(input, p, train)


class functional_only:
    "torch.nn.functional torch._C._nn"

    def logsigmoid(input): return aten.log_sigmoid(input)
    def silu(input, inplace=False): return aten.silu_(input) if inplace else aten.silu(input)
    def mish(input, inplace=False): return aten.mish_(input) if inplace else aten.mish(input)
    def hardswish(input, inplace=False): return aten.hardswish_(input) if inplace else aten.hardswish(input)
    def hardsigmoid(input, inplace=False): return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)
    def leaky_relu(input, negative_slope=0.01, inplace=False): return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)
    def elu(input, alpha=1.0, inplace=False): return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)
    def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False): return unknown() if known(min_val) and known(max_val) and min_val > max_val else aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


class functional_python:
    "torch.nn.functional"

    def dropout(input, p=0.5, training=True, inplace=False): return (aten.copy_(input, aten.dropout(input, p, training)) if training else input) if inplace else aten.dropout(input, p, training)
    def alpha_dropout(input, p=0.5, training=False, inplace=False): return aten.alpha_dropout_(input, p, training) if inplace else aten.alpha_dropout(input, p, training)
    def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False): return aten.rrelu_(input, lower, upper, training) if inplace else aten.rrelu(input, lower, upper, training)
    def dropout2d(input, p=0.5, training=True, inplace=False): return unknown() if inplace else aten.feature_dropout(input, p, training)
    def softmax(input, dim=None, _stacklevel=3, dtype=None): return aten.softmax(input, dim) if dtype is None else aten.softmax(input, dim, dtype)
    def log_softmax(input, dim=None, _stacklevel=3, dtype=None): return aten.log_softmax(input, dim) if dtype is None else aten.log_softmax(input, dim, dtype)
    def softmin(input, dim=None, _stacklevel=3, dtype=None): return aten.softmax(aten.neg(input), dim) if dtype is None else aten.softmax(aten.neg(input), dim, dtype)
    def tanhshrink(input): return aten.sub(input, aten.tanh(input))
    def softsign(input): return aten.div(input, aten.add(aten.abs(input), 1))
    def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1): return unknown()
    def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
        return aten.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse) if max_norm is None else unknown()
    def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
        return unknown() if (training and (one_value_per('channel', input) or (known(eps) and eps <= 0))) or (running_mean is None) != (running_var is None) else aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)
    def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05):
        return unknown() if (use_input_stats and one_value_per('instance', input)) or (running_mean is None) != (running_var is None) else aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)
    def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05): return aten.layer_norm(input, normalized_shape, weight, bias, eps)
    def rms_norm(input, normalized_shape, weight=None, eps=None): return aten.rms_norm(input, normalized_shape, weight, eps)
    def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05): return unknown() if one_value_per('group', input, num_groups) else aten.group_norm(input, num_groups, weight, bias, eps)
    def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return aten.max_pool1d_with_indices(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode) if return_indices else aten.max_pool1d(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)
    def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return aten.max_pool2d_with_indices(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode) if return_indices else aten.max_pool2d(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)
    def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return aten.max_pool3d_with_indices(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode) if return_indices else aten.max_pool3d(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)
    def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        return aten.avg_pool2d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode, count_include_pad, divisor_override)
    def adaptive_max_pool2d(input, output_size, return_indices=False): return aten.adaptive_max_pool2d(input, output_size) if return_indices else aten.adaptive_max_pool2d(input, output_size)[0]
    def adaptive_max_pool1d(input, output_size, return_indices=False): return aten.adaptive_max_pool1d(input, output_size) if return_indices else aten.adaptive_max_pool1d(input, output_size)[0]
    def adaptive_max_pool3d(input, output_size, return_indices=False): return aten.adaptive_max_pool3d(input, output_size) if return_indices else aten.adaptive_max_pool3d(input, output_size)[0]
    def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None): return unknown()
    def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None): return unknown()
    def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None): return unknown()
    def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None): return unknown()
    def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode='mean', sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None): return unknown()
    def unfold(input, kernel_size, dilation=1, padding=0, stride=1): return aten.im2col(input, kernel_size, dilation, padding, stride)
    def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1): return aten.col2im(input, output_size, kernel_size, dilation, padding, stride)
    def pad(input, pad, mode='constant', value=None): return aten.pad(input, pad, mode, value)
    def normalize(input, p=2.0, dim=1, eps=1e-12, out=None): return aten.div(input, aten.expand_as(aten.clamp_min(aten.norm(input, p, [dim], True), eps), input))
    def mse_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None): return aten.mse_loss(spread(input, target), spread(target, input), reduction_of(size_average, reduce, reduction)) if weight is None else unknown()
    def l1_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None): return aten.l1_loss(spread(input, target), spread(target, input), reduction_of(size_average, reduce, reduction)) if weight is None else unknown()
    def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0): return aten.smooth_l1_loss(spread(input, target), spread(target, input), reduction_of(size_average, reduce, reduction), beta)
    def huber_loss(input, target, reduction='mean', delta=1.0, weight=None): return aten.huber_loss(input, target, reduction_number(reduction), delta) if weight is None else unknown()
    def soft_margin_loss(input, target, size_average=None, reduce=None, reduction='mean'): return aten.soft_margin_loss(input, target, reduction_of(size_average, reduce, reduction))
    def kl_div(input, target, size_average=None, reduce=None, reduction='mean', log_target=False): return aten.kl_div(input, target, reduction_of(size_average, reduce, reduction), log_target=log_target) if reduction != 'batchmean' else unknown()
    def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction='mean'): return aten.binary_cross_entropy(input, target, weight, reduction_of(size_average, reduce, reduction))
    def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None):
        return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction_of(size_average, reduce, reduction))
    def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean'): return aten.cosine_embedding_loss(input1, input2, target, margin, reduction_of(size_average, reduce, reduction))
    def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction='mean'): return aten.hinge_embedding_loss(input, target, margin, reduction_of(size_average, reduce, reduction))
    def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean'): return aten.margin_ranking_loss(input1, input2, target, margin, reduction_of(size_average, reduce, reduction))
    def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean'): return aten.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction_of(size_average, reduce, reduction))
    def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean'): return aten.poisson_nll_loss(input, target, log_input, full, eps, reduction_of(size_average, reduce, reduction))
    def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'): return aten.multi_margin_loss(input, target, p, margin, weight, reduction_of(size_average, reduce, reduction))
    def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction='mean'): return aten.multilabel_margin_loss(input, target, reduction_of(size_average, reduce, reduction))
    def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False): return unknown()
    def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'): return aten.nll_loss_nd(input, target, weight, reduction_of(size_average, reduce, reduction), ignore_index)
    def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0):
        return aten.cross_entropy_loss(input, target, weight, reduction_of(size_average, reduce, reduction), ignore_index, label_smoothing)
    def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False):
        simple = unknown() if need_weights or use_separate_proj_weight or add_zero_attn or is_causal or kind(key_padding_mask) == 'tensor' or kind(attn_mask) == 'tensor' or kind(bias_k) == 'tensor' or kind(static_k) == 'tensor' or rank(query) != 3 else True
        length = query.size(0)
        batch = query.size(1)
        head = embed_dim_to_check // num_heads
        parts = attention_projections(query, key, value, embed_dim_to_check, in_proj_weight, in_proj_bias)
        q = aten.transpose(aten.view(parts[0], [length, batch * num_heads, head]), 0, 1)
        k = aten.transpose(aten.view(parts[1], [key.size(0), batch * num_heads, head]), 0, 1)
        v = aten.transpose(aten.view(parts[2], [value.size(0), batch * num_heads, head]), 0, 1)
        q = aten.view(q, [batch, num_heads, length, head])
        k = aten.view(k, [batch, num_heads, key.size(0), head])
        v = aten.view(v, [batch, num_heads, value.size(0), head])
        mixed = aten.scaled_dot_product_attention(q, k, v, None, dropout_p if training else 0.0, False)
        rows = aten.view(aten.contiguous(aten.permute(mixed, [2, 0, 1, 3])), [batch * length, embed_dim_to_check])
        return (aten.view(aten.linear(rows, out_proj_weight, out_proj_bias), [length, batch, embed_dim_to_check]), None)

    def interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None, antialias=False):
        return unknown() if antialias or recompute_scale_factor or kind(align_corners) not in ['bool', 'none'] or not (kind(size) == 'list' or size is None) or not (kind(scale_factor) == 'list' or scale_factor is None) else aten.upsample_nearest2d(input, size, scale_factor) if mode == 'nearest' and rank(input) == 4 else aten.upsample_bilinear2d(input, size, align_corners is True, scale_factor) if mode == 'bilinear' and rank(input) == 4 else unknown()


class tensor_methods:
    "torch.Tensor"

    def float(self, memory_format=None): return aten.to(self, torch.float32, memory_format=memory_format)
    def double(self, memory_format=None): return aten.to(self, torch.float64, memory_format=memory_format)
    def half(self, memory_format=None): return aten.to(self, torch.float16, memory_format=memory_format)
    def bfloat16(self, memory_format=None): return aten.to(self, torch.bfloat16, memory_format=memory_format)
    def long(self, memory_format=None): return aten.to(self, torch.int64, memory_format=memory_format)
    def int(self, memory_format=None): return aten.to(self, torch.int32, memory_format=memory_format)
    def short(self, memory_format=None): return aten.to(self, torch.int16, memory_format=memory_format)
    def char(self, memory_format=None): return aten.to(self, torch.int8, memory_format=memory_format)
    def byte(self, memory_format=None): return aten.to(self, torch.uint8, memory_format=memory_format)
    def bool(self, memory_format=None): return aten.to(self, torch.bool, memory_format=memory_format)
    def type(self, dtype): return aten.to(self, dtype) if kind(dtype) == 'dtype' else unknown()
    def cpu(self, memory_format=None): return aten.to(self, device=device('cpu'))
    def to(self, a=None, b=None, c=None, d=None, *, device=None, dtype=None, other=None, non_blocking=False, copy=False, memory_format=None):
        return unknown() if kind(a) == 'number' or kind(device) == 'number' else aten.to(self, a if kind(a) == 'tensor' else other, b or non_blocking, c or copy, memory_format) if kind(a) == 'tensor' or kind(other) == 'tensor' else aten.to(self, a, b or non_blocking, c or copy, memory_format) if kind(a) == 'dtype' and device is None else aten.to(self, dtype, non_blocking, copy, memory_format) if a is None and device is None and kind(dtype) == 'dtype' else aten.to(self, dtype=b if kind(b) == 'dtype' else dtype, device=a if kind(a) == 'device' or kind(a) == 'str' else device, non_blocking=non_blocking, copy=copy, memory_format=memory_format)
    def type_as(self, other): return aten.to(self, other.dtype)
    def contiguous(self, memory_format=None): return aten.contiguous(self) if memory_format is None else aten.contiguous(self, memory_format=memory_format)
    def unflatten(self, dim, sizes): return aten.unflatten(self, dim, sizes)
    def masked_fill(self, mask, value): return aten.masked_fill(self, mask, value)
    # These two operators have the tensor as their second argument.
    def where(self, condition, other): return aten.where(condition, self, other)
    def polygamma(self, n): return aten.polygamma(n, self)
    def greater_(self, other): return aten.gt_(self, other)
    def greater_equal_(self, other): return aten.ge_(self, other)
    def less_(self, other): return aten.lt_(self, other)
    def less_equal_(self, other): return aten.le_(self, other)
    def not_equal_(self, other): return aten.ne_(self, other)
    def requires_grad_(self, requires_grad=True): return aten.requires_grad_(self, requires_grad)
    def split(self, split_size, dim=0): return aten.split_with_sizes(self, split_size, dim) if kind(split_size) == 'list' else aten.split(self, split_size, dim)
    def softmax(self, dim, dtype=None): return aten.softmax(self, dim) if dtype is None else aten.softmax(self, dim, dtype)
    def norm(self, p='fro', dim=None, keepdim=False, dtype=None): return unknown() if dtype is not None or p == 'nuc' else aten.norm(self, 2 if p == 'fro' else p) if dim is None else aten.norm(self, 2 if p == 'fro' else p, dim if kind(dim) == 'list' else [dim], keepdim)
    def nonzero(self, *, as_tuple=False): return (unknown() if rank(self) == 0 else aten.unbind(aten.nonzero(self), 1)) if as_tuple else aten.nonzero(self)
    def _is_all_true(self): return aten.all(self)
    def _is_any_true(self): return aten.any(self)
    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None): return unknown() if return_inverse != return_counts else aten.unique_consecutive(self, True, True, dim) if return_counts else aten.unique_consecutive(self, False, False, dim)[0]
    def __getitem__(self, index): return self[index]


class torch_functions:
    "torch torch.functional"

    def split(tensor, split_size_or_sections, dim=0): return aten.split_with_sizes(tensor, split_size_or_sections, dim) if kind(split_size_or_sections) == 'list' else aten.split(tensor, split_size_or_sections, dim)
    def softmax(input, dim, dtype=None): return aten.softmax(input, dim) if dtype is None else aten.softmax(input, dim, dtype)
    def norm(input, p='fro', dim=None, keepdim=False, out=None, dtype=None): return unknown() if dtype is not None or p == 'nuc' else aten.norm(input, 2 if p == 'fro' else p) if dim is None else aten.norm(input, 2 if p == 'fro' else p, dim if kind(dim) == 'list' else [dim], keepdim)
    def cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary'): return aten.cdist(x1, x2, p, None) if compute_mode == 'use_mm_for_euclid_dist_if_necessary' else aten.cdist(x1, x2, p, 1) if compute_mode == 'use_mm_for_euclid_dist' else aten.cdist(x1, x2, p, 2) if compute_mode == 'donot_use_mm_for_euclid_dist' else unknown()
    def nonzero(input, *, as_tuple=False): return (unknown() if rank(input) == 0 else aten.unbind(aten.nonzero(input), 1)) if as_tuple else aten.nonzero(input)
    def _is_all_true(input): return aten.all(input)
    def _is_any_true(input): return aten.any(input)
    def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None): return unknown() if return_inverse != return_counts else aten.unique_consecutive(input, True, True, dim) if return_counts else aten.unique_consecutive(input, False, False, dim)[0]
    def sym_max(a, b): return sym_max(a, b)
    def sym_min(a, b): return sym_min(a, b)


class modules:
    "torch.nn"

    # The input comes first, then the constructor's arguments. parameter(name, shape, value) is a constant of the module.
    def Linear(input, in_features, out_features, bias=True, device=None, dtype=None): return aten.linear(input, parameter('weight', [out_features, in_features]), parameter('bias', [out_features]) if bias else None)
    def Conv1d(input, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros'):
        return aten.conv1d(input, parameter('weight', [out_channels, in_channels // groups, kernel_size if kind(kernel_size) == 'number' else kernel_size[0]]), parameter('bias', [out_channels]) if bias else None, stride, padding, dilation, groups) if padding_mode == 'zeros' else unknown()
    def Conv2d(input, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros'):
        return aten.conv2d(input, parameter('weight', [out_channels, in_channels // groups, kernel_size if kind(kernel_size) == 'number' else kernel_size[0], kernel_size if kind(kernel_size) == 'number' else kernel_size[1]]), parameter('bias', [out_channels]) if bias else None, stride, padding, dilation, groups) if padding_mode == 'zeros' else unknown()
    def BatchNorm1d(input, num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): return aten.batch_norm(input, parameter('weight', [num_features], 1.0) if affine else None, parameter('bias', [num_features], 0.0) if affine else None, parameter('running_mean', [num_features], 0.0) if track_running_stats else None, parameter('running_var', [num_features], 1.0) if track_running_stats else None, True, momentum, eps, True)
    def BatchNorm2d(input, num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): return aten.batch_norm(input, parameter('weight', [num_features], 1.0) if affine else None, parameter('bias', [num_features], 0.0) if affine else None, parameter('running_mean', [num_features], 0.0) if track_running_stats else None, parameter('running_var', [num_features], 1.0) if track_running_stats else None, True, momentum, eps, True)
    def BatchNorm3d(input, num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): return aten.batch_norm(input, parameter('weight', [num_features], 1.0) if affine else None, parameter('bias', [num_features], 0.0) if affine else None, parameter('running_mean', [num_features], 0.0) if track_running_stats else None, parameter('running_var', [num_features], 1.0) if track_running_stats else None, True, momentum, eps, True)
    def LayerNorm(input, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True): return aten.layer_norm(input, normalized_shape if kind(normalized_shape) == 'list' else [normalized_shape], parameter('weight', normalized_shape if kind(normalized_shape) == 'list' else [normalized_shape], 1.0) if elementwise_affine else None, parameter('bias', normalized_shape if kind(normalized_shape) == 'list' else [normalized_shape], 0.0) if elementwise_affine and bias else None, eps)
    def GroupNorm(input, num_groups, num_channels, eps=1e-05, affine=True): return aten.group_norm(input, num_groups, parameter('weight', [num_channels], 1.0) if affine else None, parameter('bias', [num_channels], 0.0) if affine else None, eps)
    def Embedding(input, num_embeddings, embedding_dim, padding_idx=None, max_norm=None): return aten.embedding(parameter('weight', [num_embeddings, embedding_dim]), input, -1 if padding_idx is None else padding_idx) if max_norm is None else unknown()
    def Dropout(input, p=0.5, inplace=False): return aten.dropout_(input, p, True) if inplace else aten.dropout(input, p, True)
    def Softmax(input, dim=None): return aten.softmax(input, dim)
    def LogSoftmax(input, dim=None): return aten.log_softmax(input, dim)
    def ReLU(input, inplace=False): return aten.relu_(input) if inplace else aten.relu(input)
    def ReLU6(input, inplace=False): return aten.hardtanh_(input, 0, 6) if inplace else aten.hardtanh(input, 0, 6)
    def LeakyReLU(input, negative_slope=0.01, inplace=False): return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)
    def ELU(input, alpha=1.0, inplace=False): return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)
    def SiLU(input, inplace=False): return aten.silu_(input) if inplace else aten.silu(input)
    def GELU(input, approximate='none'): return aten.gelu(input, approximate=approximate)
    def Tanh(input): return aten.tanh(input)
    def Sigmoid(input): return aten.sigmoid(input)
    def Hardswish(input, inplace=False): return aten.hardswish_(input) if inplace else aten.hardswish(input)
    def Identity(input): return input
    def GLU(input, dim=-1): return aten.glu(input, dim)
    def Flatten(input, start_dim=1, end_dim=-1): return aten.flatten(input, start_dim, end_dim)
    def MaxPool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False): return aten.max_pool2d(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)
    def AvgPool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True): return aten.avg_pool2d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode, count_include_pad)
    def AdaptiveAvgPool2d(input, output_size): return aten.adaptive_avg_pool2d(input, output_size)


class parts_of_rules:
    "."

    # Called by other rules. One number takes part in the choice of a result's type less than a tensor of several.
    def spread(x, like): return aten.expand_as(x, like) if rank(x) == 0 and rank(like) > 0 else x
    def reduction_of(size_average, reduce, reduction): return unknown() if kind(size_average) == 'tensor' or kind(reduce) == 'tensor' else reduction_number(reduction) if size_average is None and reduce is None else 0 if reduce is False else 2 if size_average is False else 1
    def attention_projections(query, key, value, size, weight, bias):
        return self_projections(query, size, weight, bias) if query is key and key is value else cross_projections(query, key, value, weight, bias)
    def self_projections(query, size, weight, bias):
        packed = aten.unflatten(aten.linear(query, weight, bias), -1, [3, size])
        packed = aten.contiguous(aten.squeeze(aten.transpose(aten.unsqueeze(packed, 0), 0, -2), -2))
        return [packed[0], packed[1], packed[2]]
    def cross_projections(query, key, value, weight, bias):
        w = aten.chunk(weight, 3)
        b = [None, None, None] if bias is None else aten.chunk(bias, 3)
        return [aten.linear(query, w[0], b[0]), aten.linear(key, w[1], b[1]), aten.linear(value, w[2], b[2])]


class inductor_prims:
    "torch.ops.prims"

    def fma(a, b, c): return aten.add(aten.mul(a, b), c)
    def inductor_seed(device): return aten.randint(0, 9223372036854775807, [])
    def inductor_seeds(count, device): return aten.randint(0, 9223372036854775807, [count])
    def inductor_lookup_seed(seeds, index): return aten.select(seeds, 0, index)
    def inductor_random(size, seed, mode, offset=0): return aten.rand(size) if mode == 'rand' else aten.randn(size)
    def inductor_randint(low, high, size, seed, offset=0): return aten.randint(low, high, size)
