"""What a program asks of torch._dynamo and torch.compiler: breaks on purpose, marks, stances, constants, nodes, substitutes, numpy."""

import functools

import numpy as np
import torch
import torch._dynamo
from capture.cases import Reuse, case, t
from torch import nn
from torch._dynamo.comptime import comptime


@case(lambda: (t(3),))
def a_break_in_the_middle(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


@case(lambda: (t(3),))
def a_break_with_a_text(x):
    y = x.sin()
    torch._dynamo.graph_break(msg="here")
    return y.cos()


@case(lambda: (t(3),))
def breaks_in_a_loop(x):
    for n in range(3):
        x = x + n
        torch._dynamo.graph_break()
    return x


@case(lambda: (t(3),))
def a_break_in_a_callee(x):
    def inner(a):
        a = a + 1
        torch._dynamo.graph_break()
        return a * 2

    return inner(x) - 1


@case(lambda: (t(3),))
def a_break_two_callees_deep(x):
    def inner(a):
        torch._dynamo.graph_break()
        return a * 2

    def middle(a):
        b = inner(a + 1)
        return b + 2

    return middle(x.sin()) - 1


@case(lambda: (t(3), True), lambda: (t(3), False))
def a_break_on_one_path(x, flag):
    if flag:
        x = x * 2
        torch._dynamo.graph_break()
        x = x + 1
    else:
        x = x - 1
    return x.cos()


@case(lambda: (t(3),))
def a_break_in_an_if_on_data(x):
    y = x * 2
    if y.sum() > 0:
        torch._dynamo.graph_break()
        return y + 1
    return y - 1


@case(lambda: (t(3),))
def a_break_in_try(x):
    try:
        x = x + 1
        torch._dynamo.graph_break()
        x = x * 2
    except ValueError:
        x = x - 100
    finally:
        x = x - 1
    return x


@case(lambda: (t(3),))
def a_break_in_except(x):
    try:
        x = x + 1
        raise ValueError("no")
    except ValueError as error:
        torch._dynamo.graph_break()
        return x * 2, str(error)


@case(lambda: (t(3),))
def a_break_in_finally(x):
    try:
        x = x + 1
    finally:
        torch._dynamo.graph_break()
        x = x * 2
    return x


@case(lambda: (t(3),))
def a_break_in_a_comprehension_here(x):
    def inner(a):
        torch._dynamo.graph_break()
        return a + 1

    return [inner(x + n) for n in range(2)]


@case(lambda: (t(3, grad=True),))
def a_break_without_gradients(x):
    with torch.no_grad():
        y = x + 1
        torch._dynamo.graph_break()
        z = y * 2
    return z, x * 2


@case(lambda: (t(3),))
def a_comptime_function(x):
    y = x.sin()

    @comptime
    def _(context):
        pass

    return y + 1


@case(lambda: (t(3),))
def a_comptime_break(x):
    y = x.sin()
    comptime.graph_break()
    return y + 1


@case(lambda: (t(3), 4))
def a_number_forced_to_be_constant(x, n):
    comptime.force_static(n)
    return x + n


@torch.compiler.disable
def plain(x):
    return x * 2


@torch._dynamo.disable(recursive=False)
def plain_itself(x):
    return x.sin() + 1


@case(lambda: (t(3),))
def a_disabled_function_between(x):
    return plain(x + 1) - 1


@case(lambda: (t(3),))
def a_function_that_is_disabled_itself(x):
    return plain_itself(x + 1) - 1


@case(lambda: (t(3),))
def disabled_by_a_reason(x):
    @torch.compiler.disable(reason="it prints")
    def inner(a):
        return a + 1

    return inner(x) * 2


class PartlyDisabled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    @torch.compiler.disable
    def helper(self, x):
        return x + 1

    def forward(self, x):
        return self.linear(self.helper(x.sin()))


@case(lambda: (PartlyDisabled(), t(2, 3)))
def a_method_that_is_disabled(module, x):
    return module(x)


@torch._dynamo.assume_constant_result
def scale_of_everything():
    return 5


class Configured:
    def __init__(self, scale):
        self.scale = scale

    @torch._dynamo.assume_constant_result
    def factor(self):
        return self.scale * 2


@case(lambda: (t(3),))
def a_constant_of_a_function(x):
    return x * scale_of_everything()


@case(lambda: (t(3), Configured(4)))
def a_constant_of_a_method(x, configured):
    return x * configured.factor()


@case(lambda: (t(3), torch._dynamo.mark_static))
def a_size_marked_static(x, mark):
    mark(x)
    return x + x.shape[0]


def marked(size):
    x = t(size, 3)
    torch._dynamo.mark_dynamic(x, 0)
    return (x,)


@case(lambda: marked(4), lambda: marked(6), lambda: marked(9))
def a_size_marked_by_the_caller(x):
    return x * x.shape[0]


def maybe_marked(size):
    x = t(size, 3)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    return (x,)


@case(lambda: maybe_marked(4), lambda: maybe_marked(6), lambda: maybe_marked(9))
def a_size_marked_perhaps(x):
    if x.shape[0] == 4:
        return x + 1
    return x * x.shape[0]


def static(size):
    x = t(size)
    torch._dynamo.mark_static(x, 0)
    return (x,)


@case(lambda: static(4), lambda: static(6))
def a_size_marked_static_by_the_caller(x):
    return x * x.shape[0]


@torch.compiler.allow_in_graph
def opaque_step(x, y):
    return x.sin() + y


@case(lambda: (t(3),))
def a_function_of_one_node(x):
    return opaque_step(x, x.cos()) * 2


@torch._dynamo.nonstrict_trace
def traced_loosely(x, scale):
    return x * scale + 1


@case(lambda: (t(3),))
def a_function_traced_loosely(x):
    return traced_loosely(x, 3) * 2


@case(lambda: (t(3),))
def questions_asked(x):
    return x + 1, torch.compiler.is_dynamo_compiling() in (True, False), torch._dynamo.external_utils.is_compiling() in (True, False)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_setting_patched(x):
    with torch._dynamo.config.patch(assume_static_by_default=True):
        y = x + 1
    return y * 2


@case(lambda: (t(3),))
def a_setting_read(x):
    if torch._dynamo.config.cache_size_limit > 0:
        return x + 1
    return x - 1


@case(lambda: (t(3),))
def errors_on_breaks_switched_off(x):
    with torch._dynamo.error_on_graph_break(False):
        y = x + 1
        torch._dynamo.graph_break()
        y = y * 2
    return y


@case(lambda: (t(3),))
def a_number_from_numpy(x):
    return x + np.float32(2.5), x * np.int64(3)


@torch.compiler.wrap_numpy
def as_numpy(a):
    return np.sin(a) + np.ones(3)


@case(lambda: (t(3),))
def a_function_of_numpy_on_tensors(x):
    return as_numpy(x) * 2


@case(lambda: (t(3),))
def a_stance_inside(x):
    with torch.compiler.set_stance("force_eager"):
        y = x + 1
    return y * 2


@case(lambda: (t(3),))
def nested_compilation(x):
    @torch.compile(backend="eager")
    def inner(a):
        return a.sin()

    return inner(x) + 1


@case(lambda: (t(3),))
def a_function_run_by_the_compiler(x):
    return torch._dynamo.run(lambda a: a + 1)(x)


@case(lambda: (t(3),))
def a_reset_in_the_middle(x):
    y = x + 1
    torch._dynamo.reset_code_caches()
    return y * 2


@case(lambda: (t(3),))
def a_callback_around(x):
    def before(a):
        return a * 2

    return functools.partial(opaque_step, y=before(x))(x)


@case(lambda: (t(3),))
def a_step_marked(x):
    torch.compiler.cudagraph_mark_step_begin()
    return x + 1


@case(lambda: (t(4), ))
def checks_of_the_compiler(x):
    torch._check(x.shape[0] == 4)
    torch._check_is_size(x.shape[0])
    torch._check_value(x.dim() == 1, lambda: "one dimension")
    return x * 2


@case(lambda: (t(4),))
def a_check_that_fails(x):
    torch._check(x.shape[0] == 5, lambda: f"not five but {x.shape[0]}")
    return x * 2


@case(lambda: (t(3),))
def what_is_a_compiled_function(x):
    def inner(a):
        return a

    return x + 1, hasattr(inner, "_torchdynamo_orig_callable"), torch._dynamo.is_compiling() in (True, False)


@case(lambda: (t(3),))
def a_function_forbidden_in_graphs(x):
    return torch.compiler.is_exporting(), x + 1
