"""Direct samples of core operators that tracing the operator database does not reach.

make_fx decomposes composite operators, folds sizes into numbers and sees no backward pass, so a few overloads never show up in its graphs.
`CORE_SAMPLES` maps such an overload to functions of a dtype that return its arguments; each becomes a graph of that one call.
"""

import operator

import torch
import torch.utils._pytree as pytree

from operators.harness import Case
from operators.programs import SEED, Program, plain_input
from operators.worker import DTYPES

FLOATS = ["f32", "f64", "bf16"]
INTEGERS = ["i64", "b8"]


def normal(*shape):
    """A tensor argument that is drawn in the dtype of the run."""
    return lambda dtype: draw(shape, dtype)


def draw(shape, dtype):
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).bool()
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(-9, 10, shape, dtype=dtype)
    return torch.randn(shape, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)


def positive(*shape):
    return lambda dtype: draw(shape, dtype).abs() + 0.5


def indices(below, *shape):
    return lambda dtype: torch.randint(0, below, shape)


def channels_last(*shape):
    return lambda dtype: draw(shape, dtype).contiguous(memory_format=torch.channels_last)


def transposed(*shape):
    return lambda dtype: draw(shape, dtype).mT


def expanded(*shape):
    """One row, repeated without copying."""
    return lambda dtype: draw((1, *shape[1:]), dtype).expand(shape)


def sliced(*shape):
    """A view that starts inside its storage and has gaps."""
    return lambda dtype: draw((shape[0] + 1, *shape[1:-1], 2 * shape[-1]), dtype)[1:, ..., ::2]


def call(*args, **kwargs):
    return args, kwargs


def window(stride, padding, transposed=False):
    """The arguments of a convolution from the stride to the output padding, without dilation."""
    return stride, padding, [1] * len(stride), transposed, [0] * len(stride)


LAYOUTS = [normal(3, 4), transposed(3, 4), sliced(3, 4), expanded(3, 4), normal(), normal(0, 4)]

# overload -> (dtypes, calls)
CORE_SAMPLES = {
    "aten._adaptive_avg_pool2d_backward.default": (
        FLOATS,
        [
            call(normal(2, 3, 2, 2), normal(2, 3, 4, 4)),
            call(normal(2, 3, 3, 2), normal(2, 3, 7, 5)),
            call(normal(3, 1, 1), normal(3, 4, 6)),
            call(channels_last(2, 3, 3, 3), channels_last(2, 3, 7, 5)),
        ],
    ),
    "aten._embedding_bag.default": (
        ["f32", "f64"],
        [
            call(normal(10, 4), indices(10, 7), lambda dtype: torch.tensor([0, 3, 3, 5])),
            call(normal(10, 4), indices(10, 7), lambda dtype: torch.tensor([0, 3, 5]), False, 1),
            call(normal(10, 4), indices(10, 7), lambda dtype: torch.tensor([0, 2]), False, 2),
            call(normal(10, 4), indices(10, 6), lambda dtype: torch.tensor([0, 2, 6]), False, 0, False, normal(6), True),
            call(normal(10, 4), indices(3, 6), lambda dtype: torch.tensor([0, 2]), False, 1, False, None, False, 1),
        ],
    ),
    "aten._native_batch_norm_legit.no_stats": (
        FLOATS,
        [call(normal(3, 4, 5), normal(4), normal(4), True, 0.1, 1e-5), call(normal(4, 3), None, None, True, 0.1, 1e-3)],
    ),
    "aten._native_batch_norm_legit_no_training.default": (
        FLOATS,
        [
            call(normal(3, 4, 5), normal(4), normal(4), normal(4), positive(4), 0.1, 1e-5),
            call(normal(3, 4), None, None, normal(4), positive(4), 0.1, 1e-3),
            call(channels_last(2, 4, 3, 3), normal(4), None, normal(4), positive(4), 0.1, 1e-5),
        ],
    ),
    "aten.adaptive_avg_pool1d.default": (FLOATS, [call(normal(2, 3, 9), [4]), call(normal(3, 8), [1]), call(sliced(2, 3, 5), [5])]),
    "aten.atan2.out": (FLOATS, [call(normal(3, 4), normal(4), out=normal(3, 4)), call(normal(), normal(), out=normal())]),
    "aten.avg_pool1d.default": (
        FLOATS,
        [
            call(normal(2, 3, 9), [3]),
            call(normal(2, 3, 9), [3], [2], [1]),
            call(normal(3, 8), [3], [2], [1], True, False),
        ],
    ),
    "aten.avg_pool2d_backward.default": (
        FLOATS,
        [
            call(normal(2, 3, 3, 3), normal(2, 3, 6, 6), [2, 2], [2, 2], [0, 0], False, True, None),
            call(normal(2, 3, 4, 4), normal(2, 3, 7, 7), [3, 3], [2, 2], [1, 1], True, False, None),
            call(normal(3, 5, 5), normal(3, 7, 7), [3, 3], [1, 1], [0, 0], False, True, 5),
            call(channels_last(2, 3, 3, 3), channels_last(2, 3, 6, 6), [2, 2], [], [0, 0], False, True, None),
        ],
    ),
    **{
        f"aten.bitwise_{name}.Scalar": (INTEGERS, [call(layout, scalar) for layout in LAYOUTS for scalar in (5, True)])
        for name in ("and", "or", "xor")
    },
    "aten.col2im.default": (
        [*FLOATS, "c64"],
        [
            call(normal(2, 12, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
            call(normal(12, 6), [5, 5], [2, 2], [2, 1], [1, 0], [2, 2]),
        ],
    ),
    "aten.convolution_backward.default": (
        ["f32", "f64"],
        [
            call(normal(2, 4, 4, 4), normal(2, 3, 6, 6), normal(4, 3, 3, 3), [4], *window([1, 1], [0, 0]), 1, [True] * 3),
            call(normal(2, 4, 3, 3), normal(2, 4, 6, 6), normal(4, 2, 3, 3), [0], *window([2, 2], [1, 1]), 2, [True, True, False]),
            call(normal(2, 4, 4), normal(2, 3, 6), normal(4, 3, 3), [4], *window([1], [0]), 1, [False, True, True]),
            call(normal(2, 3, 13, 13), normal(2, 4, 6, 6), normal(4, 3, 3, 3), [3], *window([2, 2], [0, 0], True), 1, [True] * 3),
            call(normal(1, 2, 2, 2, 2), normal(1, 2, 4, 4, 4), normal(2, 2, 3, 3, 3), [2], *window([1] * 3, [0] * 3), 1, [True] * 3),
        ],
    ),
    "aten.div.Scalar_mode": (
        [*FLOATS, "i64"],
        [call(layout, scalar, rounding_mode=mode) for layout in LAYOUTS for scalar in (2, -1.5) for mode in ("floor", "trunc", None)],
    ),
    "aten.embedding_dense_backward.default": (
        FLOATS,
        [
            call(normal(5, 4), indices(7, 5), 7, -1, False),
            call(normal(2, 5, 4), indices(7, 2, 5), 7, 3, False),
            call(normal(6, 4), indices(3, 6), 5, -1, True),
        ],
    ),
    "aten.native_dropout.default": (FLOATS, [call(normal(5, 7), p, train) for p in (0.0, 0.3, 1.0) for train in (True, False, None)]),
    "aten.native_group_norm_backward.default": (
        ["f32", "f64"],
        [
            call(normal(2, 6, 5), normal(2, 6, 5), normal(2, 3), positive(2, 3), normal(6), 2, 6, 5, 3, [True] * 3),
            call(normal(2, 6, 2, 2), normal(2, 6, 2, 2), normal(2, 1), positive(2, 1), None, 2, 6, 4, 1, [True, False, False]),
        ],
    ),
    "aten.native_layer_norm_backward.default": (
        FLOATS[:2],
        [
            call(normal(3, 4, 5), normal(3, 4, 5), [5], normal(3, 4, 1), positive(3, 4, 1), normal(5), normal(5), [True] * 3),
            call(normal(3, 4, 5), normal(3, 4, 5), [4, 5], normal(3, 1, 1), positive(3, 1, 1), normal(4, 5), None, [True, True, False]),
            call(normal(3, 5), normal(3, 5), [5], normal(3, 1), positive(3, 1), None, None, [True, False, False]),
        ],
    ),
    "aten.randperm.default": (["i64"], [call(n) for n in (0, 1, 7, 100)] + [call(9, dtype=torch.int32), call(9, dtype=torch.float32)]),
    "aten.sym_is_contiguous.default": (["f32"], [call(layout) for layout in LAYOUTS]),
    "aten.sym_numel.default": (["f32"], [call(layout) for layout in LAYOUTS]),
    "aten.sym_size.int": (["f32"], [call(normal(3, 4), 0), call(normal(3, 4), -1)]),
    "aten.sym_storage_offset.default": (["f32"], [call(layout) for layout in LAYOUTS]),
    "aten.sym_stride.int": (["f32"], [call(normal(3, 4), 0), call(transposed(3, 4), -1), call(sliced(3, 4), 1)]),
    "aten.upsample_bilinear2d.vec": (
        FLOATS,
        [
            call(normal(2, 3, 4, 5), [7, 6], False, None),
            call(normal(2, 3, 4, 5), [7, 6], True, None),
            call(normal(2, 3, 4, 5), None, False, [2.0, 1.5]),
            call(channels_last(2, 3, 4, 5), [3, 3], False, None),
        ],
    ),
    "aten.upsample_nearest2d.vec": (
        FLOATS,
        [
            call(normal(2, 3, 4, 5), [7, 6], None),
            call(normal(2, 3, 4, 5), None, [2.0, 1.5]),
            call(channels_last(2, 3, 4, 5), [3, 3], None),
        ],
    ),
    "aten.var.dim": (
        [*FLOATS, "c64"],
        [
            call(normal(3, 4, 5), [1]),
            call(normal(3, 4, 5), [0, -1], False),
            call(sliced(3, 4), None),
            call(transposed(3, 4), [0], True, True),
        ],
    ),
}


def core_cases(name, options):
    """One program per dtype and call of the overload, with nothing but that call in it."""
    dtypes, calls = CORE_SAMPLES[name]
    for dtype in dtypes:
        if dtype not in options.dtypes:
            continue
        for index, arguments in enumerate(calls[: options.samples]):
            torch.manual_seed(SEED + index)
            yield Case(dtype, index, "traced", program=single_call(name, arguments, DTYPES[dtype]))


def single_call(name, arguments, dtype):
    namespace, packet, overload = name.split(".")
    target = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    leaves, spec = pytree.tree_flatten(arguments)
    graph, inputs = torch.fx.Graph(), []
    for k, leaf in enumerate(leaves):
        if callable(leaf) and not isinstance(leaf, torch.dtype):
            inputs.append(plain_input(leaf(dtype)))
            leaves[k] = graph.placeholder(f"arg{len(inputs) - 1}_1")
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    node = graph.call_function(target, args, kwargs)
    returns = target._schema.returns
    outputs = [node] if len(returns) == 1 else [graph.call_function(operator.getitem, (node, k)) for k in range(len(returns))]
    graph.output(outputs)
    return Program(torch.fx.GraphModule(torch.nn.Module(), graph, "Repro"), inputs)

