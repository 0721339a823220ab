"""Functions that take functions: branches, loops, scans, checkpoints, regions that are compiled once, attention with functions of scores."""

import functools

import torch
import torch.utils.checkpoint as cp
from capture.cases import case, t
from torch import nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops.map import map as control_map
from torch._higher_order_ops.wrap import wrap
from torch.nn.attention.flex_attention import and_masks, create_block_mask, create_mask, flex_attention, noop_mask, or_masks

BIAS = torch.arange(3.0)
LIST = [torch.ones(3), torch.zeros(3)]


@case(lambda: (t(3),))
def wrapped(x):
    return wrap(lambda y: y.sin() * 2, x)


@case(lambda: (t(3), t(3)))
def wrapped_with_a_free_tensor(x, y):
    return wrap(lambda z: z + y, x) + wrap(lambda: y * 2)


@case(lambda: (t(3),))
def wrapped_with_a_global(x):
    return wrap(lambda z: z + BIAS + LIST[0], x)


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def wrapped_with_a_number(x, n):
    return wrap(lambda z, m: z * m + n, x, n)


@case(lambda: (t(3),))
def wrapped_with_a_structure(x):
    result = wrap(lambda pair: {"sum": pair[0] + pair[1]["y"], "both": (pair[0], pair[1]["y"])}, (x, {"y": x.cos()}))
    return result["sum"] * 2, result["both"]


@case(lambda: (t(3),))
def wrapped_with_keywords(x):
    return wrap(lambda a, *, b, c=2: a * b + c, x, b=x.sin())


@case(lambda: (t(3),))
def wrapped_in_a_wrapped(x):
    def outer(y):
        z = wrap(torch.sin, y)
        return wrap(lambda a: a * z, y)

    return wrap(outer, x)


@case(lambda: (t(3),))
def wrapped_that_changes_a_list(x):
    seen = []

    def body(y):
        seen.append(y + 1)
        return y * 2

    return wrap(body, x), seen[0]


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def wrapped_module(module, x):
    return wrap(module, x).relu()


@case(lambda: (t(3),))
def wrapped_that_gives_its_argument(x):
    return wrap(lambda y: y, x) + wrap(lambda y: (y, y), x)[1]


@case(lambda: (t(3),), lambda: (-t(3).abs(),))
def branch_with_several_results(x):
    return torch.cond(x.sum() > 0, lambda y: (y.sin(), y.cos()), lambda y: (y + 1, y - 1), (x,))


@case(lambda: (t(3), t(3)))
def branch_with_a_free_tensor(x, y):
    def yes(z):
        return z + y

    def no(z):
        return z - y * 2

    return torch.cond(x.sum() > 0, yes, no, (x,))


@case(lambda: (t(4),), lambda: (t(8),))
def branch_on_a_shape(x):
    return torch.cond(x.shape[0] > 4, lambda y: y.sum(), lambda y: y.mean(), (x,))


@case(lambda: (t(3), torch.tensor(True)), lambda: (t(3), torch.tensor(False)))
def branch_on_a_tensor(x, flag):
    return torch.cond(flag, torch.sin, torch.cos, [x])


@case(lambda: ({"a": t(3), "b": [t(3)]},))
def branch_over_a_structure(data):
    return torch.cond(data["a"].sum() > 0, lambda d: {"r": d["a"] * 2}, lambda d: {"r": d["b"][0] + 1}, (data,))


@case(lambda: (t(3, grad=True),))
def branch_with_a_gradient(x):
    return torch.cond(x.sum() > 0, lambda y: y * y, lambda y: y.exp(), (x,))


@case(lambda: (t(3),))
def branches_in_a_branch(x):
    def inner(y):
        return torch.cond(y[0] > 0, lambda z: z + 1, lambda z: z - 1, (y,))

    return torch.cond(x.sum() > 0, inner, lambda y: y * 3, (x,))


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.left, lambda y: self.right(y) * 2, (x,))


@case(lambda: (Branching(), t(2, 3)))
def branches_of_a_module(module, x):
    return module(x)


@case(lambda: (t(3), torch.tensor(5)))
def loop_with_a_counter(x, n):
    return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 1.5), (torch.tensor(0), x))


@case(lambda: (t(3),))
def loop_over_a_structure(x):
    return while_loop(lambda s: s["i"] < 3, lambda s: ({"i": s["i"] + 1, "x": s["x"].sin()},), ({"i": torch.tensor(0), "x": x},))


@case(lambda: (t(4, 3), t(3)))
def mapped_rows(xs, y):
    return control_map(lambda row, z: row * z + BIAS, xs, y)


@case(lambda: ({"a": t(4, 3), "b": t(4)},))
def mapped_structures(rows):
    return control_map(lambda row: {"r": row["a"] * row["b"]}, rows)


@case(lambda: (t(3), t(5, 3)))
def scanned_sum(init, xs):
    return scan(lambda carry, x: (carry + x, carry * x), init, xs)


@case(lambda: (t(3), t(5, 3)))
def scanned_backwards(init, xs):
    return scan(lambda carry, x: (carry * 0.5 + x, carry.sin()), init, xs, reverse=True)


@case(lambda: (t(3), t(5, 3), t(3)))
def scanned_with_a_free_tensor(init, xs, w):
    return scan(lambda carry, x: (carry + x * w, carry.clone()), init, xs)


@case(lambda: ({"h": t(3), "c": t(3)}, (t(4, 3), t(4, 3))))
def scanned_structures(init, xs):
    def step(carry, x):
        h = carry["h"] + x[0]
        return {"h": h, "c": carry["c"] * x[1]}, h * 2

    return scan(step, init, xs)


@case(lambda: (t(3, grad=True), t(5, 3)))
def scanned_with_a_gradient(init, xs):
    return scan(lambda carry, x: (carry * x, carry.sin()), init, xs)[0]


@case(lambda: (t(5, 3),))
def scanned_by_association(xs):
    return associative_scan(lambda a, b: a + b, xs, 0, combine_mode="generic")


@case(lambda: (t(5, 3), t(5, 3)))
def scanned_pairs_by_association(a, b):
    return associative_scan(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), (a, b), 0, combine_mode="generic")


@case(lambda: (t(3, grad=True),))
def checkpointed(x):
    return cp.checkpoint(lambda y: y.sin().exp(), x, use_reentrant=False)


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def checkpointed_with_a_free_tensor(x, y):
    return cp.checkpoint(lambda z: (z * y).sin(), x, use_reentrant=False) + 1


@case(lambda: (nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU()), t(2, 3, grad=True)))
def checkpointed_in_sequence(module, x):
    return cp.checkpoint_sequential(module, 2, x, use_reentrant=False)


def _policy(ctx, op, *args, **kwargs):
    if op in (torch.ops.aten.sin.default,):
        return cp.CheckpointPolicy.MUST_SAVE
    return cp.CheckpointPolicy.PREFER_RECOMPUTE


@case(lambda: (t(3, grad=True),))
def checkpointed_by_choice(x):
    contexts = functools.partial(cp.create_selective_checkpoint_contexts, _policy)
    return cp.checkpoint(lambda y: y.sin().exp(), x, use_reentrant=False, context_fn=contexts)


@case(lambda: (t(3, grad=True),))
def checkpointed_by_a_list(x):
    contexts = functools.partial(cp.create_selective_checkpoint_contexts, [torch.ops.aten.sin.default])
    return cp.checkpoint(lambda y: y.sin().exp(), x, use_reentrant=False, context_fn=contexts)


def _contexts():
    return cp.create_selective_checkpoint_contexts(_policy)


@case(lambda: (t(3, grad=True),))
def checkpointed_by_a_function(x):
    return cp.checkpoint(lambda y: y.sin().exp(), x, use_reentrant=False, context_fn=_contexts)


@case(lambda: (t(3, grad=True),))
def checkpointed_in_the_older_way(x):
    return cp.checkpoint(lambda y: y.sin() * 2, x, use_reentrant=True)


@torch.compiler.nested_compile_region
def region(x, y):
    return (x @ y).relu()


@case(lambda: (t(3, 3), t(3, 3)))
def region_compiled_once(x, y):
    return region(region(x, y), y)


@case(lambda: (t(3),))
def mode_of_gradients_inside(x):
    def body(y):
        with torch.no_grad():
            return y * 2

    return wrap(body, x) + 1


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q - k).abs() <= 8


def tensors(grad=False):
    return [t(1, 2, 16, 8, grad=grad) for _ in range(3)]


@case(lambda: tuple(tensors()))
def attention_plain(q, k, v):
    return flex_attention(q, k, v)


@case(lambda: tuple(tensors()))
def attention_with_a_score(q, k, v):
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * 0.5 + (i - j))


@case(lambda: (*tensors(), t(2)))
def attention_with_a_bias_of_heads(q, k, v, slopes):
    def alibi(score, b, h, i, j):
        return score + slopes[h] * (j - i)

    return flex_attention(q, k, v, score_mod=alibi)


@case(lambda: (*tensors(), create_block_mask(causal, None, None, 16, 16, device="cpu")))
def attention_with_a_mask(q, k, v, mask):
    return flex_attention(q, k, v, block_mask=mask)


@case(lambda: tuple(tensors()))
def attention_with_a_mask_made_inside(q, k, v):
    mask = create_block_mask(causal, 1, None, 16, 16, device="cpu")
    return flex_attention(q, k, v, block_mask=mask)


@case(lambda: tuple(tensors()))
def attention_with_a_score_and_a_mask(q, k, v):
    mask = create_block_mask(and_masks(causal, window), None, None, 16, 16, device="cpu")
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * 2, block_mask=mask, scale=0.3)


@case(lambda: tuple(tensors(grad=True)))
def attention_with_gradients(q, k, v):
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + i)


@case(lambda: tuple(tensors()))
def attention_and_its_normalizer(q, k, v):
    return flex_attention(q, k, v, return_lse=True)


@case(lambda: (t(1, 4, 16, 8), t(1, 2, 16, 8), t(1, 2, 16, 8)))
def attention_with_groups(q, k, v):
    return flex_attention(q, k, v, enable_gqa=True)


@case(lambda: (t(3, 3),))
def masks_as_tensors(x):
    return create_mask(or_masks(causal, noop_mask), None, None, 3, 3, device="cpu")[0, 0] * x


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.project = nn.Linear(8, 24)
        self.slopes = nn.Parameter(torch.randn(2))

    def forward(self, x):
        q, k, v = self.project(x).unflatten(-1, (3, 1, 8)).transpose(1, 3).unbind(2)
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * self.slopes[0])


@case(lambda: (Attending(), t(1, 16, 8)))
def attention_in_a_module(module, x):
    return module(x)
