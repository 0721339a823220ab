"""What programs say to a compiler, and how often they are compiled, as suites of other compilers probe it."""

import functools
import logging
import types
import warnings

import torch
import torch._dynamo.config
from capture.cases import Message, Reuse, case, t

FLAG = True
COUNT = 0
ITEMS = [1, 2]
LOGGER = logging.getLogger("capture.peers")


@torch.compiler.disable
def not_compiled(x):
    return x + 1


@torch.compiler.disable(recursive=False)
def shallow(x):
    return inner(x)


def inner(x):
    return x.sin() + 1


@torch._dynamo.disable(reason="as a test")
def not_compiled_with_a_reason(x):
    return x * 2


@case(lambda: (t(3),))
def disabled_functions(x):
    y = not_compiled(x * 2)
    return not_compiled_with_a_reason(y) + 1


@case(lambda: (t(3),))
def disabled_but_for_what_it_calls(x):
    return shallow(x) * 2


@case(lambda: (t(3),))
def compiling_or_not(x):
    a = torch.compiler.is_compiling()
    b = torch.compiler.is_exporting()
    return x + 1, torch.jit.is_scripting(), torch.jit.is_tracing(), b, type(a).__name__


@torch.compiler.assume_constant_result
def constant():
    return 3 + len(ITEMS)


@case(lambda: (t(3),))
def constant_results(x):
    return x * constant()


@torch.compiler.allow_in_graph
def allowed(x, k):
    return torch.sin(x) * k


@case(lambda: (t(3),))
def functions_allowed_in_graphs(x):
    return allowed(x, 2) + allowed(x, k=3)


@case(lambda: (t(3),))
def breaks_that_are_wanted(x):
    x = x + 1
    torch._dynamo.graph_break()
    x = x * 2
    torch._dynamo.graph_break("again")
    return x


@case(lambda: (t(3),))
def breaks_within_a_call(x):
    def helper(y):
        y = y + 1
        torch._dynamo.graph_break()
        return y * 2

    return helper(x) + helper(x)


@case(lambda: (t(3),))
def breaks_in_a_loop(x):
    for n in range(3):
        x = x + n
        print(n)
    return x


@case(lambda: (t(3),))
def breaks_in_branches(x):
    if x.sum() > 0:
        x = x + 1
    elif x.mean() < -10:
        x = x - 1
    else:
        x = x * 2
    return x.sin()


@case(lambda: (t(3),))
def regions_with_errors_on_breaks(x):
    with torch._dynamo.error_on_graph_break(False):
        y = x + 1
        print("inside")
    return y * 2


@torch._dynamo.error_on_graph_break(False)
def may_break(x):
    print("broken")
    return x + 1


@case(lambda: (t(3),))
def functions_that_may_break(x):
    return may_break(x) * 2


@case(lambda: (t(3),), reuse=Reuse.FREE)
def configurations_patched(x):
    with torch._dynamo.config.patch(suppress_errors=False):
        return x + 1


@torch._dynamo.dont_skip_tracing
def followed(x):
    return x + 1


@case(lambda: (t(3),))
def functions_that_are_not_skipped(x):
    return followed(x) * 2


@torch._dynamo.forbid_in_graph
def forbidden(x):
    return x


@case(lambda: (t(3),), message=Message.ANY)
def wrapped_for_fx(x):
    return fx_leaf(x) + 1


def fx_leaf(x):
    return x * 2


torch.fx.wrap("fx_leaf")


def substituted(n):
    raise RuntimeError("never followed")


@case(lambda: (t(3), 2), lambda: (t(3), 3), lambda: (t(3), 4))
def marked_static_or_dynamic(x, n):
    return x * n


@case(lambda: (t(3),), watch=("COUNT",))
def globals_counted(x):
    global COUNT
    COUNT += 1
    y = x + COUNT
    print(COUNT)
    COUNT *= 2
    return y * COUNT


@case(lambda: (t(3),), watch=("FLAG",))
def globals_switched(x):
    global FLAG
    y = x + 1 if FLAG else x - 1
    FLAG = not FLAG
    return y


@case(lambda: (t(3),), watch=("ITEMS",))
def global_lists(x):
    ITEMS.append(len(ITEMS))
    return x + sum(ITEMS)


@case(lambda: (t(3),))
def messages_logged(x):
    LOGGER.debug("value %s", 3)
    y = x + 1
    LOGGER.info("done")
    return y


@case(lambda: (t(3),))
def warnings_given(x):
    warnings.warn("careful")
    return x + 1


@case(lambda: (t(3), t(3)), lambda: (t(4), t(4)), lambda: (t(4), t(1)), lambda: (t(2, 4), t(4)))
def shapes_that_are_broadcast(x, y):
    return x * y + x.shape[-1]


@case(lambda: (t(3), None), lambda: (t(3), t(3)), lambda: (t(3), 2))
def optional_arguments(x, y):
    if y is None:
        return x
    if not torch.is_tensor(y):
        return x * y
    return x + y


@case(lambda: (t(3),), lambda: (t(3).double(),), lambda: (t(3, grad=True),), lambda: (torch.ones(3, dtype=torch.int64),))
def types_that_change(x):
    return x * 2 + 1


@case(lambda: (t(3), "sum"), lambda: (t(3), "mean"), lambda: (t(3), "max"))
def names_that_change(x, name):
    return getattr(x, name)()


@case(lambda: (t(3), [t(3)]), lambda: (t(3), [t(3), t(3)]), lambda: (t(3), [t(3), t(3), t(3)]))
def lists_that_grow(x, items):
    for item in items:
        x = x + item
    return x


@case(lambda: (t(3), {"a": 1, "b": 1}), lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"a": 1, "c": 2}))
def one_key_of_a_dictionary(x, d):
    return x + d["a"]


@case(lambda: (t(3), types.SimpleNamespace(a=1, b=1)), lambda: (t(3), types.SimpleNamespace(a=1, b=2)))
def one_attribute_of_an_object(x, o):
    return x + o.a


@case(lambda: (t(3), lambda y: y + 1), lambda: (t(3), lambda y: y + 2), reuse=Reuse.FREE)
def functions_given(x, f):
    return f(x) * 2


@case(lambda: (t(4, 4),), lambda: (t(4, 4).t(),), lambda: (t(4, 8)[:, ::2],))
def layouts_that_change(x):
    return x.is_contiguous(), x.contiguous().view(-1) * 2


@case(lambda: (t(3),) * 2, lambda: (t(3), t(3)))
def aliases_of_arguments(x, y):
    x.add_(1)
    return y * 2, x is y


@case(lambda: (t(2, 3),), lambda: (t(1, 3),), lambda: (t(0, 3),))
def sizes_of_one_and_zero(x):
    return x.sum(0), x.shape[0], x.reshape(-1).shape


@case(lambda: (t(3), torch.float32), lambda: (t(3), torch.float64), lambda: (t(3), torch.bfloat16))
def types_given(x, dtype):
    return x.to(dtype) * 2, torch.zeros(2, dtype=dtype), torch.finfo(dtype).bits


@case(lambda: (t(3), torch.device("cpu")), lambda: (t(3), "cpu"))
def devices_given(x, device):
    return x.to(device) + torch.ones(3, device=device), torch.device(device).type


@case(lambda: (t(3), slice(0, 2)), lambda: (t(3), slice(1, 3)))
def slices_given(x, s):
    return x[s] * 2, s.start


@case(lambda: (t(3), range(3)), lambda: (t(3), range(4)))
def ranges_given(x, r):
    return x + sum(r), len(r)


@case(lambda: (t(3),))
def ways_to_print(x):
    print("shape", x.shape, sep=": ", end="!\n")
    return x + 1


@case(lambda: (t(3),))
def everything_in_the_frame(x):
    y = x + 1
    z = 3
    return y, sorted(locals()), "FLAG" in globals(), eval("z + 1")


@case(lambda: (t(3),))
def code_executed(x):
    space = {"x": x}
    exec("y = x + 1", space)
    return space["y"] * 2


@case(lambda: (t(3),))
def imports_in_the_frame(x):
    import math as m
    from collections import OrderedDict

    import torch.nn.functional as functional

    return functional.relu(x) + m.pi, OrderedDict(a=1)["a"]


@case(lambda: (t(3),))
def identities_of_objects(x):
    y = x
    return x + 1, id(x) == id(y), id(ITEMS) == id(ITEMS), hash("a") == hash("a")


@case(lambda: (t(3),))
def profiled_regions(x):
    with torch.profiler.record_function("a"), torch.autograd.profiler.profile(enabled=False):
        return x + 1


@case(lambda: (t(3),))
def random_state_of_torch(x):
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return x + a, torch.equal(a, torch.rand(3))


@case(lambda: (t(3),))
def random_state_for_a_while(x):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        a = torch.rand(3)
    return x + a, torch.rand(2), torch.initial_seed() == 3


@case(lambda: (t(3), torch.Generator().manual_seed(4)))
def generators_of_torch(x, g):
    return x + torch.rand(3, generator=g), torch.randint(0, 5, (2,), generator=g)


@case(lambda: (t(3),))
def seeds_set_in_the_frame(x):
    torch.manual_seed(7)
    return x + torch.randn(3), torch.nn.functional.dropout(x, 0.5), torch.bernoulli(torch.full((3,), 0.5))


@case(lambda: (t(5),))
def checks_of_torch(x):
    torch._check(x.shape[0] > 2)
    torch._check(x.dim() == 1, lambda: "one dimension")
    n = x.sum().int().abs().item()
    torch._check_is_size(n)
    return x + 1


@case(lambda: (t(3),))
def scripted_functions(x):
    return scripted(x) + 1


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


@case(lambda: (t(3),))
def names_of_torch_types(x):
    return x + 1, str(x.dtype), repr(torch.float32), str(x.device), f"{x.dtype}", torch.typename(x), str(torch.Size([1, 2]))


@case(lambda: (t(3),))
def the_version_of_torch(x):
    if torch.__version__ >= "2.0" and torch.cuda.is_available() is False:
        return x + torch.cuda.device_count()
    return x


@case(lambda: (t(3),))
def switches_of_backends(x):
    with torch.backends.mkldnn.flags(enabled=True):
        y = x * 2
    return y, torch.backends.cudnn.enabled, torch.backends.mps.is_available(), torch.get_num_threads() > 0, torch.are_deterministic_algorithms_enabled()


@functools.wraps(inner)
def wrapping(*args, **kwargs):
    return inner(*args, **kwargs)


@case(lambda: (t(3),))
def functions_behind_others(x):
    return wrapping(x) + wrapping.__wrapped__(x), wrapping.__name__


@case(lambda: (t(3),), lambda: (t(3, grad=True),))
def the_gradient_mode(x):
    if torch.is_grad_enabled() and x.requires_grad:
        return x * 2
    return x + 1


@case(lambda: (t(3),))
def compiled_within(x):
    return torch.compile(inner, backend="eager")(x) + 1
