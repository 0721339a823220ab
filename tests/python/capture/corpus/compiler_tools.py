"""What tests ask of the compiler inside of frames: breaks, constants, allowed and disabled functions, marks, questions, recompilations."""

import torch
import torch._dynamo
from capture.cases import Reuse, case, t

GLOBAL = {"scale": 2, "unused": 0}


@torch._dynamo.disable
def disabled(x):
    return x + 1


@torch.compiler.disable(recursive=False)
def disabled_alone(x):
    return helper(x) + 1


def helper(x):
    return x * 2


@torch._dynamo.allow_in_graph
def allowed(x, by):
    return x * by


@torch._dynamo.assume_constant_result
def constant():
    return 3


@torch._dynamo.nonstrict_trace
def traced(x):
    return x * 3


@case(lambda: (t(3),))
def break_on_purpose(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


@case(lambda: (t(3),))
def break_with_a_message(x):
    y = x + 1
    torch._dynamo.graph_break(msg="here")
    return y * 2


@case(lambda: (t(3),))
def disabled_functions(x):
    return disabled(x * 2) + disabled_alone(x)


@case(lambda: (t(3),))
def disabled_inside(x):
    return torch._dynamo.disable(helper)(x) + 1


@case(lambda: (t(3),))
def allowed_functions(x):
    return allowed(x, 3) + constant()


@case(lambda: (t(3),))
def nonstrict(x):
    return traced(x) + 1


@case(lambda: (t(3),))
def questions(x):
    return x + torch.compiler.is_compiling() * 0 + torch._dynamo.is_compiling() * 0 + torch.compiler.is_dynamo_compiling() * 0, torch.compiler.is_exporting()


@case(lambda: (t(3),))
def marks(x):
    torch._dynamo.mark_static(x, 0)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    return x + 1


@case(lambda: (t(3),))
def comptime_calls(x):
    from torch._dynamo.comptime import comptime

    comptime(lambda ctx: None)
    return x + 1


@case(lambda: (t(3), GLOBAL), lambda: (t(3), {**GLOBAL, "unused": 5}), lambda: (t(3), {**GLOBAL, "more": 1}))
def one_key_of_many(x, table):
    return x * table["scale"]


@case(lambda: (t(3), 2), lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5))
def int_that_changes(x, n):
    return x * n


@case(lambda: (t(3), 0.5), lambda: (t(3), 0.25), lambda: (t(3), 0.125))
def float_that_changes(x, s):
    return x * s


@case(lambda: (t(3),), lambda: (t(4),), lambda: (t(5),), lambda: (t(6),))
def size_that_changes(x):
    return x.sum() * x.shape[0]


@case(lambda: (t(3), "a"), lambda: (t(3), "b"))
def text_that_changes(x, name):
    return x + (1 if name == "a" else 2)


@case(lambda: (t(3), [1, 2]), lambda: (t(3), [1, 3]), lambda: (t(3), [1, 2, 3]))
def list_of_numbers_that_changes(x, ns):
    for n in ns:
        x = x + n
    return x


@case(lambda: (t(3), None), lambda: (t(3), t(3)))
def optional_tensor(x, y):
    return x if y is None else x + y


@case(lambda: (t(3), t(3)), lambda: (lambda v: (v, v))(t(3)))
def same_tensor_twice(x, y):
    return x + y, x is y


@case(lambda: (t(3), lambda v: v + 1), lambda: (t(3), torch.sin), reuse=Reuse.FREE)
def function_that_changes(x, f):
    return f(x)


@case(lambda: (t(3),))
def checks(x):
    torch._check(x.shape[0] > 1)
    torch._check(x.shape[0] == 3, lambda: "not three")
    return x + 1


@case(lambda: (torch.tensor(3), t(5)))
def checks_on_data(n, x):
    size = n.item()
    torch._check_is_size(size)
    torch._check(size <= 5)
    return x[:size].sum()


@case(lambda: (t(3),))
def asserts_on_data(x):
    assert x.shape[0] == 3
    torch._assert(x.dim() == 1, "one dimension")
    torch._assert_async(torch.tensor(True))
    return x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def custom_backward(x):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            return v * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double.apply(x)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.power * x ** (ctx.power - 1), None


@case(lambda: (t(3, grad=True),))
def autograd_function(x):
    return Cube.apply(x, 3).sum()


@case(lambda: (t(3),))
def autograd_function_without_gradients(x):
    return Cube.apply(x, 2)


@case(lambda: (t(4, 3),))
def transforms(x):
    f = torch.func
    return f.vmap(lambda v: v.sum())(x), f.grad(lambda v: (v**2).sum())(x), f.jacrev(lambda v: v * 2)(x[0]), f.vjp(torch.sin, x[0])[0]


@case(lambda: (t(3), torch.tensor(True)), lambda: (t(3), torch.tensor(False)))
def control_flow(x, flag):
    y = torch.cond(flag, lambda v: v + 1, lambda v: v - 1, (x,))
    return y * 2


@case(lambda: (t(3),))
def branch_that_changes_a_list(x):
    log = []

    def taken(v):
        log.append("taken")
        return v + 1

    def other(v):
        log.append("other")
        return v - 1

    # torch itself refuses such branches.
    try:
        return torch.cond(x.sum() > 0, taken, other, (x,)), log
    except Exception:
        return x, "refused"


@case(lambda: (t(3),))
def branch_that_counts(x):
    n = 0

    def taken(v):
        nonlocal n
        n += 1
        return v + 1

    try:
        return torch.cond(x.sum() > -100, taken, lambda v: v - 1, (x,)), n
    except Exception:
        return x, "refused"


@case(lambda: (t(3),))
def branch_with_its_own_list(x):
    def taken(v):
        parts = []
        parts.append(v)
        parts.append(v + 1)
        return sum(parts)

    return torch.cond(x.sum() > -100, taken, lambda v: v - 1, (x,))


@case(lambda: (t(3),))
def checkpoint_that_changes_a_list(x):
    log = []

    def body(v):
        log.append(1)
        return torch.sin(v)

    return torch.utils.checkpoint.checkpoint(body, x, use_reentrant=False), log


@case(lambda: (t(3),))
def compiled_inside(x):
    inner = torch.compile(lambda v: v * 2, backend="eager")
    return inner(x) + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def reset_inside(x):
    torch._dynamo.reset()
    return x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def setting_of_dynamo(x):
    with torch._dynamo.config.patch(verbose=False):
        return x + 1


@case(lambda: (t(3),))
def pytree_functions(x):
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten({"a": [x, 1], "b": (x, None)})
    mapped = pytree.tree_map(lambda v: v * 2 if isinstance(v, torch.Tensor) else v, {"a": x, "b": [3]})
    return pytree.tree_unflatten(leaves, spec), mapped, len(leaves), pytree.tree_all(lambda v: v is not None, [1, 2])


@case(lambda: (t(3),))
def stack_and_streams(x):
    torch.cuda.is_available()
    torch.backends.cudnn.is_available()
    return x + torch.get_num_threads() * 0, torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_rng_state().dtype
