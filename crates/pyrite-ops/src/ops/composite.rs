//! Functions of `torch.nn.functional` that are expressed by other operators.
//!
//! `scaled_dot_product_attention` chooses as PyTorch does on the CPU: the fused kernel where shapes and strides allow
//! it and nothing is dropped, else plain matmuls.
//!
//! `pyrite::multi_head_attention_forward` stands for `torch.nn.functional.multi_head_attention_forward`, which is one
//! call in a graph that was captured from Python. Its parameters are those of the Python function, in that order and
//! with the same names, so a reader binds the call as it stands. It returns the output and the weights, `None` where
//! weights were not asked for. Parameters that add rows to the keys (`bias_k`, `bias_v`, `add_zero_attn`, `static_k`,
//! `static_v`) are refused.

use pyrite_ir::{Args, Emit, Handle, OpDef, OpError, Tag, Tolerance, Value, args, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use crate::ops::random::check_probability;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float \
         dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        "Attention, by the kernel that fits the arguments.",
        attention,
    )
    .tags(&[Tag::Random])
    .tolerance(Tolerance::Times(4.0))
    .samples(&[
        "f32[2, 4, 6, 8], f32[2, 4, 6, 8], f32[2, 4, 6, 8]",
        "f32[4, 6, 8], f32[4, 6, 8], f32[4, 6, 8], is_causal=True",
        "f32[2, 4, 6, 8], f32[2, 4, 6, 8], f32[2, 4, 6, 5], b8[6, 6]",
        "f64[6, 8], f64[6, 8], f64[6, 8]",
    ]),
    OpDef::composite(
        "aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, \
         float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool \
         enable_gqa=False) -> (Tensor, Tensor)",
        "Attention by plain matmuls, and the weights.",
        math,
    )
    .tags(&[Tag::Random])
    .tolerance(Tolerance::Times(4.0))
    .samples(&[
        "f32[2, 4, 6, 8], f32[2, 4, 5, 8], f32[2, 4, 5, 8]",
        "f32[2, 4, 6, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 8], is_causal=True, enable_gqa=True",
        "bf16[6, 8], bf16[5, 8], bf16[5, 8], bf16[6, 5]",
    ]),
    OpDef::composite(
        "pyrite::multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int embed_dim_to_check, int \
         num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, \
         float dropout_p, Tensor out_proj_weight, Tensor? out_proj_bias, bool training=True, Tensor? \
         key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None, bool use_separate_proj_weight=False, \
         Tensor? q_proj_weight=None, Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, \
         Tensor? static_v=None, bool average_attn_weights=True, bool is_causal=False) -> (Tensor, Tensor?)",
        "Projects queries, keys and values into heads, attends, and projects back.",
        multi_head_attention,
    )
    .tags(&[Tag::Random])
    .tolerance(Tolerance::Times(4.0))
    .samples(&[
        "f32[5, 3, 8], f32[5, 3, 8], f32[5, 3, 8], 8, 2, f32[24, 8], f32[24], None, None, False, 0.0, f32[8, 8], f32[8], \
         training=False, need_weights=False",
        "f32[5, 8], f32[4, 8], f32[4, 8], 8, 2, f32[24, 8], f32[24], None, None, False, 0.0, f32[8, 8], f32[8], \
         need_weights=False, attn_mask=b8[5, 4]",
    ]),
    OpDef::composite(
        "aten::dropout(Tensor input, float p, bool train) -> Tensor",
        "The input with elements dropped with probability `p` and the others scaled up; in evaluation the input.",
        dropout,
    )
    .tags(&[Tag::Random])
    .samples(&["f32[4, 5], 0.5, True"]),
    OpDef::composite(
        "aten::outer(Tensor self, Tensor vec2) -> Tensor",
        "The product of every element of one vector with every element of another.",
        outer,
    )
    .samples(&["f32[3], f32[4]", "i64[3], f32[0]"]),
    OpDef::composite("aten::ger(Tensor self, Tensor vec2) -> Tensor", "Another name of `outer`.", outer)
        .samples(&["f32[3], f32[4]"]),
    OpDef::composite(
        "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        "`input1ᵀ·weight·input2 + bias` over the last dimension.",
        bilinear,
    )
    .samples(&["f32[3, 4], f32[3, 5], f32[2, 4, 5], f32[2]", "f32[6, 3, 4], f32[6, 3, 5], f32[2, 4, 5]"]),
];

fn dropout(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (input, p) = (*a.tensor(0)?, a.float(1)?);
    check_probability(p)?;
    if p == 0.0 || !a.bool(2)? {
        return Ok(input.into());
    }
    if !e.dtype(input).is_inexact() {
        invalid!("dropout is not defined for {}", e.dtype(input));
    }
    if p == 1.0 {
        // Nothing is drawn for what is dropped in any case.
        return e.call("aten.mul.Scalar", args![input, 0.0]);
    }
    Ok(e.many("aten.native_dropout.default", args![input, p, true])?[0].into())
}

fn outer(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (left, right) = (*a.tensor(0)?, *a.tensor(1)?);
    if e.rank(left) != 1 || e.rank(right) != 1 {
        invalid!("outer needs two vectors");
    }
    let column = e.one("aten.unsqueeze.default", args![left, 1])?;
    e.call("aten.mul.Tensor", args![column, right])
}

fn bilinear(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (left, right, weight) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (l, r, w) = (e.shape(left), e.shape(right), e.shape(weight));
    let fits = w.len() == 3 && l.len() == r.len() && !l.is_empty() && {
        let last = l.len() - 1;
        l[..last].iter().zip(&r[..last]).all(|(x, y)| x.is_eq(y)) && l[last].is_eq(&w[1]) && r[last].is_eq(&w[2])
    };
    if !fits {
        invalid!("bilinear cannot combine {l:?} and {r:?} with a weight of shape {w:?}");
    }
    if let Some(bias) = a.opt_tensor(3)? {
        let meta = e.meta(*bias);
        if meta.rank() != 1 || !meta.shape[0].is_eq(&w[0]) || meta.dtype != e.meta(weight).dtype {
            invalid!("bilinear needs a bias of {} elements, got {} {:?}", w[0], meta.dtype, meta.shape);
        }
    }
    let lead = &l[..l.len() - 1];
    let rows = lead.iter().fold(SymInt::Int(1), |n, d| n * d);
    let left = e.one("aten.reshape.default", args![left, vec![rows.clone(), w[1].clone()]])?;
    let right = e.one("aten.reshape.default", args![right, vec![rows, w[2].clone()]])?;
    let ones = |dims: &[i64]| Value::from(dims);
    let dims = [ones(&[1, 3]), ones(&[0]), ones(&[1, 2]), ones(&[2, 3])];
    let mut arguments = vec![left.into(), weight.into(), right.into()];
    arguments.extend(dims);
    let product = e.one("aten._trilinear.default", &arguments)?;
    let mut shape = lead.to_vec();
    shape.push(w[0].clone());
    let product = e.one("aten.view.default", args![product, shape])?;
    match a.opt_tensor(3)?.copied() {
        Some(bias) => e.call("aten.add.Tensor", args![product, bias]),
        None => Ok(product.into()),
    }
}

/// Whether two arguments are one tensor.
fn are_same(e: &dyn Emit, one: Handle, other: Handle) -> bool {
    let (x, y) = (e.meta(one), e.meta(other));
    one == other || (x.storage == y.storage && x == y)
}

/// A mask of the Python function as what is added to the scores: a bool is true where a key is hidden.
fn hiding(e: &mut dyn Emit, mask: Handle, dtype: DType) -> Result<Handle, OpError> {
    if e.dtype(mask) != DType::Bool {
        return Ok(mask);
    }
    let seen = e.one("aten.logical_not.default", args![mask])?;
    additive(e, seen, dtype)
}

/// Queries, keys and values after their projections.
fn projected(e: &mut dyn Emit, a: &Args<'_, Handle>, inputs: [Handle; 3]) -> Result<[Handle; 3], OpError> {
    let bias = a.opt_tensor(6)?.copied();
    let separate = a.bool(17)?;
    let biases: [Value<Handle>; 3] = match bias {
        Some(bias) => {
            let parts = e.many("aten.chunk.default", args![bias, 3])?;
            let [q, k, v] = parts[..] else { invalid!("a projection's bias of shape {:?}", e.shape(bias)) };
            [q.into(), k.into(), v.into()]
        }
        None => [Value::None, Value::None, Value::None],
    };
    let weights: [Handle; 3] = if separate {
        [*a.tensor(18)?, *a.tensor(19)?, *a.tensor(20)?]
    } else {
        let weight = *a.tensor(5)?;
        if are_same(e, inputs[0], inputs[1]) && are_same(e, inputs[1], inputs[2]) {
            return packed(e, inputs[0], weight, bias);
        }
        let parts = e.many("aten.chunk.default", args![weight, 3])?;
        let [q, k, v] = parts[..] else { invalid!("a projection of shape {:?}", e.shape(weight)) };
        [q, k, v]
    };
    let mut out = inputs;
    for ((slot, weight), bias) in out.iter_mut().zip(weights).zip(biases) {
        *slot = e.one("aten.linear.default", &[(*slot).into(), weight.into(), bias])?;
    }
    Ok(out)
}

/// One product for all three projections of one tensor.
fn packed(e: &mut dyn Emit, input: Handle, weight: Handle, bias: Option<Handle>) -> Result<[Handle; 3], OpError> {
    let whole = e.one("aten.linear.default", args![input, weight, bias])?;
    let mut shape = e.shape(input).to_vec();
    shape.insert(shape.len() - 1, 3.into());
    let whole = e.one("aten.view.default", args![whole, shape])?;
    let whole = e.one("aten.unsqueeze.default", args![whole, 0])?;
    let whole = e.one("aten.transpose.int", args![whole, 0, -2])?;
    let whole = e.one("aten.squeeze.dim", args![whole, -2])?;
    let whole = e.one("aten.contiguous.default", args![whole])?;
    let mut pick = |index: i64| e.one("aten.select.int", args![whole, 0, index]);
    Ok([pick(0)?, pick(1)?, pick(2)?])
}

fn multi_head_attention(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let refused = [7, 8, 21, 22].iter().any(|index| !matches!(a.value(*index), Value::None));
    if refused || a.bool(9)? {
        unsupported!("multi_head_attention_forward with added keys");
    }
    let mut inputs = [*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?];
    let batched = e.rank(inputs[0]) == 3;
    if !matches!(e.rank(inputs[0]), 2 | 3) {
        invalid!("multi_head_attention_forward needs queries of two or three dimensions");
    }
    let mut padding = a.opt_tensor(14)?.copied();
    if !batched {
        for input in &mut inputs {
            *input = e.one("aten.unsqueeze.default", args![*input, 1])?;
        }
        if let Some(mask) = padding {
            padding = Some(e.one("aten.unsqueeze.default", args![mask, 0])?);
        }
    }
    let dtype = e.dtype(inputs[0]);
    let (need_weights, mut causal) = (a.bool(15)?, a.bool(24)?);
    let dropout_p = if a.bool(13)? { a.float(10)? } else { 0.0 };
    let mut mask = a.opt_tensor(16)?.copied();
    if causal && mask.is_none() {
        invalid!("multi_head_attention_forward needs attn_mask where is_causal is set");
    }
    if causal && padding.is_none() && !need_weights {
        mask = None;
    } else {
        causal = false;
    }
    if let Some(m) = mask {
        let m = hiding(e, m, dtype)?;
        mask = Some(if e.rank(m) == 2 { e.one("aten.unsqueeze.default", args![m, 0])? } else { m });
    }
    let heads = SymInt::Int(a.int(4)?);
    if heads.is_le(0) {
        invalid!("multi_head_attention_forward needs at least one head");
    }
    let (target, source) = (e.shape(inputs[0]), e.shape(inputs[1]));
    let (rows, count, width) = (target[0].clone(), target[1].clone(), target[2].clone());
    let keys = source[0].clone();
    let [q, k, v] = projected(e, a, inputs)?;
    let each = width.floor_div(&heads);
    let all_heads = &count * &heads;
    let mut split = |tensor: Handle, rows: &SymInt| -> Result<Handle, OpError> {
        let shape = vec![rows.clone(), all_heads.clone(), each.clone()];
        let tensor = e.one("aten.view.default", args![tensor, shape])?;
        e.one("aten.transpose.int", args![tensor, 0, 1])
    };
    let (q, k, v) = (split(q, &rows)?, split(k, &keys)?, split(v, &keys)?);
    if let Some(hidden) = padding {
        let hidden = hiding(e, hidden, dtype)?;
        let shape = vec![count.clone(), 1.into(), 1.into(), keys.clone()];
        let hidden = e.one("aten.view.default", args![hidden, shape])?;
        let shape = vec![count.clone(), heads.clone(), 1.into(), keys.clone()];
        let hidden = e.one("aten.expand.default", args![hidden, shape])?;
        let shape = vec![all_heads.clone(), 1.into(), keys.clone()];
        let hidden = e.one("aten.reshape.default", args![hidden, shape])?;
        mask = Some(match mask {
            Some(mask) => e.one("aten.add.Tensor", args![mask, hidden])?,
            None => hidden,
        });
    }
    let (joined, weights) = if need_weights {
        let Some(each) = each.hint() else { invalid!("heads of a width that is not known") };
        let scaled = e.one("aten.mul.Tensor", args![q, (1.0 / each as f64).sqrt()])?;
        let transposed = e.one("aten.transpose.int", args![k, -2, -1])?;
        let scores = match mask {
            Some(mask) => e.one("aten.baddbmm.default", args![mask, scaled, transposed])?,
            None => e.one("aten.bmm.default", args![scaled, transposed])?,
        };
        let weights = e.one("aten._softmax.default", args![scores, -1, false])?;
        let used = e.one("aten.dropout.default", args![weights, dropout_p, true])?;
        let out = e.one("aten.bmm.default", args![used, v])?;
        (e.one("aten.transpose.int", args![out, 0, 1])?, Some(used))
    } else {
        if let Some(m) = mask {
            mask = Some(if e.shape(m)[0].is_eq(1) {
                e.one("aten.unsqueeze.default", args![m, 0])?
            } else {
                let inner = e.shape(m)[1].clone();
                e.one("aten.view.default", args![m, vec![count.clone(), heads.clone(), inner, keys.clone()]])?
            });
        }
        let mut apart = |tensor: Handle, rows: &SymInt| {
            e.one("aten.view.default", args![tensor, vec![count.clone(), heads.clone(), rows.clone(), each.clone()]])
        };
        let (q, k, v) = (apart(q, &rows)?, apart(k, &keys)?, apart(v, &keys)?);
        let arguments = args![q, k, v, mask, dropout_p, causal];
        let out = e.one("aten.scaled_dot_product_attention.default", arguments)?;
        (e.one("aten.permute.default", args![out, vec![2i64, 0, 1, 3]])?, None)
    };
    let joined = e.one("aten.reshape.default", args![joined, vec![&rows * &count, width.clone()]])?;
    let output = e.one("aten.linear.default", args![joined, *a.tensor(11)?, a.opt_tensor(12)?.copied()])?;
    let out_width = e.shape(output)[1].clone();
    let mut output = e.one("aten.view.default", args![output, vec![rows.clone(), count.clone(), out_width]])?;
    if !batched {
        output = e.one("aten.squeeze.dim", args![output, 1])?;
    }
    let weights = match weights {
        Some(weights) => {
            let mut weights = e.one("aten.view.default", args![weights, vec![count, heads, rows, keys]])?;
            if a.bool(23)? {
                weights = e.one("aten.mean.dim", args![weights, vec![1i64]])?;
            }
            if batched { weights.into() } else { e.one("aten.squeeze.dim", args![weights, 0])?.into() }
        }
        None => Value::None,
    };
    Ok(Value::List(vec![output.into(), weights]))
}

/// Whether the fused kernel takes these arguments, as PyTorch decides.
fn is_fused(e: &dyn Emit, [query, key, value]: [Handle; 3], mask: Option<Handle>, dropout: f64, gqa: bool) -> bool {
    let (q, k, v) = (e.meta(query), e.meta(key), e.meta(value));
    let all = [q, k, v];
    let shapes = all.iter().all(|m| {
        m.rank() == 4
            && m.dtype == q.dtype
            && m.dtype.is_float()
            && (m.stride[3].is_eq(1) || m.shape[3].is_eq(1))
            && m.shape[0].is_eq(&q.shape[0])
            && m.shape[3].is_eq(&q.shape[3])
            && m.shape[2].is_gt(0)
    });
    if !shapes || dropout != 0.0 || !k.shape[1].is_eq(&v.shape[1]) || !k.shape[2].is_eq(&v.shape[2]) {
        return false;
    }
    let heads =
        q.shape[1].is_eq(&k.shape[1]) || (gqa && k.shape[1].is_gt(0) && q.shape[1].modulo(&k.shape[1]).is_eq(0));
    let masked = mask.is_none_or(|mask| {
        let m = e.meta(mask);
        let whole = [&q.shape[0], &q.shape[1], &q.shape[2], &k.shape[2]];
        matches!(m.rank(), 2 | 4)
            && !m.requires_grad
            && m.shape.iter().zip(&whole[4 - m.rank()..]).all(|(m, w)| m.is_eq(1) || m.is_eq(*w))
    });
    heads && masked
}

/// A bool mask as what is added to the scores: 0 where a key is seen, else -inf.
fn additive(e: &mut dyn Emit, mask: Handle, dtype: DType) -> Result<Handle, OpError> {
    if e.dtype(mask) != DType::Bool {
        return Ok(mask);
    }
    let zero = e.one("aten.scalar_tensor.default", args![0.0, dtype])?;
    let hidden = e.one("aten.scalar_tensor.default", args![f64::NEG_INFINITY, dtype])?;
    e.one("aten.where.self", args![mask, zero, hidden])
}

fn attention(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (mut query, mut key, mut value) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (dropout, causal, scale, gqa) = (a.float(4)?, a.bool(5)?, a.opt_float(6)?, a.bool(7)?);
    let ranks = [query, key, value].map(|t| e.rank(t));
    if ranks.iter().any(|rank| *rank < 2) {
        invalid!("attention needs tensors with at least two dimensions");
    }
    let dtype = e.dtype(query);
    if [key, value].iter().any(|t| e.dtype(*t) != dtype) {
        invalid!("attention needs query, key and value of one type");
    }
    let mut shape = e.shape(query);
    shape[ranks[0] - 1] = e.shape(value)[ranks[2] - 1].clone();
    // Nothing is attended to. Eager adds the sum of all three times zero, so that gradients go through them.
    if shape.iter().chain([&e.shape(key)[ranks[1] - 2]]).any(|size| size.is_eq(0)) {
        let nothing = e.one("aten.zeros.default", args![shape.to_vec(), dtype])?;
        let sums = [query, key, value].map(|tensor| e.one("aten.sum.default", args![tensor]));
        let [query, key, value] = sums;
        let sum = e.one("aten.add.Tensor", args![query?, key?])?;
        let sum = e.one("aten.add.Tensor", args![sum, value?])?;
        let none = e.one("aten.mul.Tensor", args![sum, 0])?;
        return e.call("aten.add.Tensor", args![nothing, none]);
    }
    let mut mask = a.opt_tensor(3)?.copied();
    if mask.is_some() && causal {
        invalid!("attention takes a mask or is_causal, not both");
    }
    // Three dimensions are a batch of one.
    let lifted = ranks == [3, 3, 3];
    if lifted {
        for tensor in [&mut query, &mut key, &mut value] {
            *tensor = e.one("aten.unsqueeze.default", args![*tensor, 0])?;
        }
        while let Some(m) = mask
            && e.rank(m) < 4
        {
            mask = Some(e.one("aten.unsqueeze.default", args![m, 0])?);
        }
    }
    if let Some(m) = mask {
        mask = Some(additive(e, m, dtype)?);
    }
    let output = if is_fused(e, [query, key, value], mask, dropout, gqa) {
        let arguments = args![query, key, value, 0.0, causal, mask, scale];
        e.many("aten._scaled_dot_product_flash_attention_for_cpu.default", arguments)?[0]
    } else {
        let arguments = args![query, key, value, mask, dropout, causal, Value::None, scale, gqa];
        e.many("aten._scaled_dot_product_attention_math.default", arguments)?[0]
    };
    if lifted { e.call("aten.squeeze.dim", args![output, 0]) } else { Ok(output.into()) }
}

/// Repeats the heads of keys or values so that there is one per query head.
fn repeat_heads(e: &mut dyn Emit, tensor: Handle, heads: &SymInt) -> Result<Handle, OpError> {
    let rank = e.rank(tensor);
    if rank < 3 {
        invalid!("grouped attention needs tensors with heads");
    }
    let shape = e.shape(tensor);
    let own = &shape[rank - 3];
    if own.is_eq(heads) {
        return Ok(tensor);
    }
    if own.is_eq(0) || !heads.modulo(own).is_eq(0) {
        invalid!("{heads} query heads cannot share {own} key heads");
    }
    let wide = e.one("aten.unsqueeze.default", args![tensor, rank - 2])?;
    let mut sizes = shape.to_vec();
    sizes.insert(rank - 2, heads.floor_div(own));
    let wide = e.one("aten.expand.default", args![wide, sizes])?;
    let mut sizes = shape.to_vec();
    sizes[rank - 3] = heads.clone();
    e.one("aten.reshape.default", args![wide, sizes])
}

fn math(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (mut query, mut key, mut value) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (dropout, causal, scale, gqa) = (a.float(4)?, a.bool(5)?, a.opt_float(7)?, a.bool(8)?);
    let mut mask = a.opt_tensor(3)?.copied();
    let given = e.dtype(query);
    let half = matches!(given, DType::F16 | DType::BF16);
    if half {
        for tensor in [&mut query, &mut key, &mut value] {
            *tensor = e.one("aten._to_copy.default", args![*tensor, DType::F32])?;
        }
    }
    let (rows, width) = {
        let shape = e.shape(query);
        (shape[shape.len() - 2].clone(), shape[shape.len() - 1].clone())
    };
    if causal {
        if mask.is_some() {
            invalid!("attention takes a mask or is_causal, not both");
        }
        let shape = e.shape(key);
        let keys = shape[shape.len() - 2].clone();
        let seen = e.one("aten.ones.default", args![vec![rows, keys], DType::Bool])?;
        let seen = e.one("aten.tril.default", args![seen])?;
        let dtype = e.dtype(query);
        mask = Some(additive(e, seen, dtype)?);
    }
    let scale = match (scale, width.hint()) {
        (Some(scale), _) => scale,
        (None, Some(width)) => 1.0 / (width as f64).sqrt(),
        (None, None) => invalid!("attention over a width that is not known needs a scale"),
    };
    // Half of the scale goes to each side, so that scores of half precision do not overflow.
    let root = scale.abs().sqrt();
    query = e.one("aten.mul.Scalar", args![query, if scale < 0.0 { -root } else { root }])?;
    if gqa {
        let shape = e.shape(query);
        if shape.len() < 3 {
            invalid!("grouped attention needs tensors with heads");
        }
        let heads = &shape[shape.len() - 3];
        key = repeat_heads(e, key, heads)?;
        value = repeat_heads(e, value, heads)?;
    }
    let transposed = e.one("aten.transpose.int", args![key, -2, -1])?;
    let transposed = e.one("aten.mul.Scalar", args![transposed, root])?;
    let mut scores = e.one("aten.matmul.default", args![query, transposed])?;
    if let Some(mask) = mask {
        scores = e.one("aten.add.Tensor", args![scores, mask])?;
    }
    let weights = e.one("aten._safe_softmax.default", args![scores, -1])?;
    let mut used = weights;
    if dropout > 0.0 {
        if let Some(kept) = a.opt_tensor(6)?.copied() {
            let dropped = e.one("aten.logical_not.default", args![kept])?;
            used = e.one("aten.masked_fill.Scalar", args![weights, dropped, 0.0])?;
            value = e.one("aten.mul.Scalar", args![value, 1.0 / (1.0 - dropout)])?;
        } else {
            used = e.one("aten.dropout.default", args![weights, dropout, true])?;
        }
    }
    let mut output = e.one("aten.matmul.default", args![used, value])?;
    let mut weights = used;
    if half {
        output = e.one("aten._to_copy.default", args![output, given])?;
        weights = e.one("aten._to_copy.default", args![weights, given])?;
    }
    Ok(vec![output, weights].into())
}
