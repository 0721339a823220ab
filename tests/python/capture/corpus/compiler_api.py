"""torch.compiler and compiled functions inside of compiled ones."""

import torch
from capture.cases import case, t


@torch.compiler.disable
def disabled(x):
    return x * 2


@case(lambda: (t(3),))
def call_of_a_disabled_function(x):
    return disabled(x + 1) + 1


@torch.compile(backend="eager")
def compiled_by_torch(x):
    return x * 2


@case(lambda: (t(3),))
def compiled_function_inside(x):
    return compiled_by_torch(x) + 1


@case(lambda: (t(3),))
def compiled_inside(x):
    return torch.compile(lambda y: y * 2, backend="eager")(x) + 1


COMPILED = torch.compile(torch.nn.Linear(4, 4), backend="eager")


@case(lambda: (t(2, 4),))
def compiled_module_inside(x):
    return COMPILED(x) + 1


@case(lambda: (t(3),))
def cudagraph_mark(x):
    torch.compiler.cudagraph_mark_step_begin()
    return x * 2


@torch._dynamo.assume_constant_result
def constant(x):
    return 5


@case(lambda: (t(3),))
def constant_result(x):
    return x * constant(3)


@torch.compiler.allow_in_graph
def allowed(x):
    return x * 2 + 1


@case(lambda: (t(3),))
def call_of_an_allowed_function(x):
    return allowed(x) + 1


@case(lambda: (t(3),))
def marks_of_dynamo(x):
    torch._dynamo.mark_static(x)
    return x * 2


@case(lambda: (t(3),))
def graph_break_on_purpose(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


@case(lambda: (t(3),))
def comptime(x):
    y = x * 2
    return y + 1


@torch._dynamo.disable(recursive=False)
def shallow(x):
    return x * 2


@case(lambda: (t(3),))
def call_of_a_function_disabled_alone(x):
    return shallow(x) + 1


@torch.library.custom_op("corpus::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@case(lambda: (t(3),))
def custom_operator(x):
    return twice(x) + torch.ops.corpus.twice(x)


@torch.library.custom_op("corpus::add_in_place", mutates_args=("x",))
def add_in_place(x: torch.Tensor, n: float) -> None:
    x.add_(n)


@case(lambda: (t(3),))
def custom_operator_that_writes(x):
    y = x * 1
    add_in_place(y, 2.0)
    return y + 1


@torch.library.custom_op("corpus::two", mutates_args=())
def two(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    return x * k, x + k


@two.register_fake
def _(x, k):
    return torch.empty_like(x), torch.empty_like(x)


@case(lambda: (t(3),))
def custom_operator_with_two_results(x):
    a, b = two(x, 3)
    return a - b
