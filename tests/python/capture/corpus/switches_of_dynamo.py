"""Functions of torch._dynamo and torch.compiler that a program calls inside and around what it compiles."""

import functools
import random

import numpy as np
import torch
import torch._dynamo
import torch._dynamo.utils
from capture.cases import Message, Reuse, case, t
from torch import nn


@case(lambda: (t(3),))
def tracing_that_is_not_skipped(x):
    @torch._dynamo.dont_skip_tracing
    def inner(a):
        return a * 2

    return inner(x) + 1


@torch._dynamo.dont_skip_tracing
def followed(x):
    return x.sin()


@case(lambda: (t(3),))
def a_decorated_function_that_is_followed(x):
    return followed(x) + 1


@case(lambda: (t(3),))
def breaks_that_are_allowed(x):
    with torch._dynamo.error_on_graph_break(False):
        return x.sin() + 1


@case(lambda: (t(3),))
def breaks_that_are_errors_without_any(x):
    with torch._dynamo.error_on_graph_break(True):
        y = x.sin()
    return y + 1


@torch._dynamo.error_on_graph_break(False)
def tolerant(x):
    return x.cos()


@case(lambda: (t(3),))
def a_decorated_function_whose_breaks_are_allowed(x):
    return tolerant(x) * 2


@case(lambda: (t(3),))
def counters_of_the_compiler(x):
    torch._dynamo.utils.counters["mine"]["calls"] += 0
    return x + 1


@case(lambda: (t(3),))
def counters_read(x):
    return x + torch._dynamo.utils.counters["nothing"]["at all"]


@case(lambda: (t(4, 3),))
def sizes_marked_inside(x):
    y = x + 1
    torch._dynamo.mark_dynamic(y, 0)
    torch._dynamo.maybe_mark_dynamic(y, 1)
    torch._dynamo.mark_static(y, 1)
    return y * 2


@case(lambda: (t(3),))
def disabled_inside(x):
    @torch.compiler.disable
    def inner(a):
        return a + 1

    return inner(x) * 2


@torch.compiler.disable(recursive=False)
def shallow(x):
    return deep(x) + 1


def deep(x):
    return x.sin()


@case(lambda: (t(3),))
def disabled_but_not_what_it_calls(x):
    return shallow(x) * 2


@torch._dynamo.allow_in_graph
def as_a_node(x):
    return x.sin() + 1


@case(lambda: (t(3),))
def a_function_as_a_node(x):
    return as_a_node(x) * 2


@case(lambda: (t(3),))
def whether_compiling(x):
    return x + 1, type(torch.compiler.is_compiling()).__name__


@case(lambda: (t(3),))
def constants_from_the_compiler(x):
    @torch.compiler.assume_constant_result
    def answer():
        return 42

    return x + answer()


@torch._dynamo.assume_constant_result
def always_seven():
    return 7


@case(lambda: (t(3),))
def a_result_that_is_assumed(x):
    return x * always_seven()


@case(lambda: (t(3),))
def a_forbidden_region(x):
    with torch.compiler.set_stance("default"):
        return x + 1


@case(lambda: (t(3),))
def compiled_inside(x):
    inner = torch.compile(lambda a: a.sin(), backend="eager")
    return inner(x) + 1


@case(lambda: (t(3), nn.Linear(3, 3)))
def a_module_compiled_inside(x, m):
    m.compile(backend="eager")
    return m(x)


@case(lambda: (t(3),))
def a_graph_break_by_name(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


@case(lambda: (t(3),))
def a_wrapped_step(x):
    @functools.wraps(followed)
    def inner(*args, **kwargs):
        return followed(*args, **kwargs)

    return inner(x), inner.__name__


@case(lambda: (t(3),))
def is_a_tensor_fake(x):
    from torch._subclasses.fake_tensor import FakeTensor

    return x + (1 if isinstance(x, FakeTensor) else 0)


# Random numbers of Python's and numpy's.


@case(lambda: (t(3),))
def a_random_generator_of_its_own(x):
    r = random.Random(3)
    return x * r.random() + r.randint(1, 5), r.uniform(0, 1)


@case(lambda: (t(3), random.Random(5)))
def a_random_generator_from_outside(x, r):
    return x * r.random(), r.randint(0, 100), r.choice([1, 2, 3])


@case(lambda: (t(3),))
def shuffled(x):
    items = [1, 2, 3, 4]
    random.shuffle(items)
    return x * items[0], items


@case(lambda: (t(3),))
def sampled(x):
    return x * random.sample(range(10), 3)[0], random.choices([1, 2], k=2), random.choice("abc")


@case(lambda: (t(3),))
def seeded(x):
    random.seed(4)
    return x * random.random(), random.randrange(10)


@case(lambda: (t(3),))
def state_kept(x):
    state = random.getstate()
    a = random.random()
    random.setstate(state)
    return x * a, random.random() == a


@case(lambda: (t(3),))
def distributions(x):
    return x * random.uniform(1, 2), random.gauss(0, 1), random.betavariate(1, 2), random.expovariate(1.0), random.triangular(0, 1)


@case(lambda: (t(3),))
def random_bits(x):
    return x + random.getrandbits(4), random.random() < 2


@case(lambda: (t(3),))
def numpy_random(x):
    return x * float(np.random.rand()), x + np.random.randint(0, 10)


@case(lambda: (t(3),))
def numpy_seeded(x):
    np.random.seed(1)
    return x + torch.from_numpy(np.random.randn(3)).float()


@case(lambda: (t(3),))
def numpy_generator(x):
    g = np.random.default_rng(0)
    return x + torch.from_numpy(g.normal(size=3)).float()


@case(lambda: (t(3),))
def torch_seeded(x):
    torch.manual_seed(3)
    return x + torch.rand(3), torch.initial_seed()


@case(lambda: (t(3),))
def state_of_torch_kept(x):
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return x + a, torch.equal(torch.rand(3), a)


@case(lambda: (t(3),))
def a_generator_of_torch(x):
    g = torch.Generator().manual_seed(2)
    return x + torch.rand(3, generator=g)


@case(lambda: (t(3), torch.Generator().manual_seed(1)))
def a_generator_of_torch_from_outside(x, g):
    return x + torch.randn(3, generator=g), torch.randperm(4, generator=g)


@case(lambda: (t(3),))
def random_forked(x):
    with torch.random.fork_rng():
        y = x + torch.rand(3)
    return y + torch.rand(3)
