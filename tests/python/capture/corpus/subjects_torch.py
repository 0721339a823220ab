"""Subjects of a peer's tests around torch itself: modules, hooks, autograd functions, generators, dictionaries, decorators, higher-order operators."""

import collections
import contextlib
import functools

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from capture.cases import Message, Reuse, case, t
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.factor + 0 * x, None


class Split(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return first * x.cos()


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


@case(lambda: (t(3).requires_grad_(), 2.0), lambda: (t(3).requires_grad_(), 3.0))
def a_function_with_a_gradient(x, factor):
    return Scale.apply(x, factor) + 1


@case(lambda: (t(3).requires_grad_(),))
def a_function_with_two_results(x):
    a, b = Split.apply(x)
    return a * 2, b.requires_grad


@case(lambda: (t(3).requires_grad_(),))
def a_function_within_a_function(x):
    return Straight.apply(Scale.apply(x, 2.0) * 3)


@case(lambda: (t(3),))
def a_function_without_gradients(x):
    return Scale.apply(x, 2.0), Straight.apply(x)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.gates = nn.ModuleDict({"a": nn.Sigmoid(), "b": nn.Tanh()})
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("steps", torch.zeros(()))
        self.calls = 0

    def forward(self, x, gate="a"):
        self.calls += 1
        self.steps += 1
        for name, layer in enumerate(self.layers):
            x = layer(x) + name
        return self.gates[gate](x) * self.scale


@case(lambda: (Gated(), t(2, 3)), lambda: (Gated().eval(), t(4, 3)))
def a_module_that_counts(m, x):
    return m(x), m(x, gate="b"), m.calls, m.steps


@case(lambda: (Gated(),))
def parts_of_a_module(m):
    names = [name for name, _ in m.named_parameters()]
    kinds = [type(part).__name__ for part in m.modules()]
    return sum(p.sum() for p in m.parameters()), names, kinds, len(m.layers), "a" in m.gates, list(m.gates.keys()), sorted(m.state_dict())


@case(lambda: (nn.Sequential(nn.Linear(3, 3), nn.ReLU()), t(2, 3)))
def a_sequence_of_modules(m, x):
    return m(x), m[0](x), len(m), m[-1](x), [type(part).__name__ for part in m[:1]]


@case(lambda: (nn.Linear(3, 3), t(2, 3)), reuse=Reuse.FREE)
def a_hook_before_and_after(m, x):
    m.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    m.register_forward_hook(lambda module, args, result: result + 1)
    return m(x)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.seen = []
        self.inner.register_forward_hook(self.note)

    def note(self, module, args, result):
        self.seen.append(type(module).__name__)

    def forward(self, x):
        return self.inner(x)


@case(lambda: (Hooked(), t(2, 3)), reuse=Reuse.FREE)
def a_hook_of_the_module_itself(m, x):
    return m(x), m.seen


@case(lambda: (t(3).requires_grad_(),))
def a_hook_of_a_tensor(x):
    y = x * 2
    y.register_hook(lambda gradient: gradient * 3)
    return y + 1


@case(lambda: (t(3).requires_grad_(),))
def a_gradient_inside(x):
    y = (x * x).sum()
    (gradient,) = torch.autograd.grad(y, x)
    return gradient + 1


@case(lambda: (t(3).requires_grad_(),))
def backward_inside(x):
    (x * x).sum().backward()
    return x.grad + 1


@case(lambda: (t(2, 3),))
def a_branch_as_an_operator(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))


@case(lambda: (t(4, 3),))
def a_map_over_a_batch(x):
    return torch.vmap(lambda row: row * row.sum())(x), torch.vmap(torch.dot, in_dims=(0, None))(x, x[0])


@case(lambda: (t(3),))
def a_gradient_as_a_transform(x):
    return torch.func.grad(lambda a: (a.sin() * a).sum())(x), torch.func.vjp(torch.sin, x)[0]


@case(lambda: (t(3),))
def a_jacobian(x):
    return torch.func.jacrev(lambda a: a * a.sum())(x), torch.func.jvp(torch.cos, (x,), (x,))[1]


@case(lambda: (nn.Linear(3, 2), t(4, 3)))
def a_functional_call(m, x):
    weights = {name: p * 2 for name, p in m.named_parameters()}
    return torch.func.functional_call(m, weights, (x,))


@case(lambda: (t(3).requires_grad_(),))
def a_checkpoint(x):
    return torch.utils.checkpoint.checkpoint(lambda a: a.sin().cos(), x, use_reentrant=False)


def numbers(n):
    total = 0
    for i in range(n):
        got = yield i + total
        if got:
            total += got


def both(x):
    yield from [x, x + 1]
    result = yield from counted(x)
    yield result


def counted(x):
    yield x * 2
    return x * 3


@case(lambda: (t(3),))
def a_generator_in_a_comprehension(x):
    return [part + 1 for part in both(x)], sum(p for p in both(x)), max(numbers(3)), list(enumerate(numbers(2)))


@case(lambda: (t(3),))
def a_generator_is_sent_to(x):
    g = numbers(4)
    return x + next(g), g.send(10), next(g), list(g)


@case(lambda: (t(3),))
def a_generator_returned_begun(x):
    g = both(x)
    return next(g), g


@case(lambda: (t(3),))
def a_generator_returned_in_a_delegation(x):
    g = both(x)
    next(g)
    next(g)
    first = next(g)
    return first, g


@case(lambda: (t(3), []))
def a_generator_returned_in_a_try(x, log):
    def guarded():
        try:
            yield x
            yield x + 1
        except ValueError:
            log.append("error")
            yield x - 1
        finally:
            log.append("end")

    g = guarded()
    return next(g), g


@case(lambda: (t(3),))
def a_generator_in_a_list_returned(x):
    g = both(x)
    next(g)
    return {"g": [g, g]}


@case(lambda: (t(3),))
def a_generator_of_a_closure_returned(x):
    n = 1

    def steps():
        nonlocal n
        while n < 4:
            n += 1
            yield x * n

    g = steps()
    first = next(g)
    return first, g, (lambda: n)


def last_of(g):
    return list(g)[-1]


@case(lambda: (t(3),))
def a_begun_generator_over_a_break(x):
    g = both(x)
    first = next(g)
    print("break")
    return first + last_of(g)


@case(lambda: (t(3),))
def a_generator_closed_over_a_break(x):
    g = numbers(3)
    next(g)
    print("break")
    g.close()
    return x + len(list(g))


@case(lambda: (t(3),))
def a_generator_thrown_into_over_a_break(x):
    def tolerant():
        while True:
            try:
                yield x
            except KeyError as error:
                yield x + len(str(error))

    g = tolerant()
    next(g)
    print("break")
    return g.throw(KeyError("ab")) + next(g)


@case(lambda: (t(3),))
def zipped_generators(x):
    return [a * b for a, b in zip(both(x), numbers(9))], list(map(lambda p: p + 1, both(x))), list(filter(None, numbers(3)))


@case(lambda: (t(3),))
def unpacked_generators(x):
    a, b, *rest = both(x)
    return a + b, rest, [*both(x)], dict(enumerate(both(x))), tuple(both(x))


@case(lambda: (t(3),))
def a_generator_that_raises(x):
    def failing():
        yield x
        raise ValueError("inside")

    try:
        list(failing())
    except ValueError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def the_end_of_a_generator(x):
    g = counted(x)
    next(g)
    try:
        next(g)
    except StopIteration as end:
        return end.value + 1


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"b": 1, "c": 5}))
def methods_of_a_dict(x, d):
    d.setdefault("z", 9)
    d.update(q=1, **{"r": 2})
    popped = d.pop("b", None), d.pop("missing", 4)
    return x + sum(d.values()), popped, list(d.items()), d | {"n": 0}, {k: v for k, v in d.items() if v > 1}, dict.fromkeys("ab", 0), d.copy() == d


@case(lambda: (t(3),))
def keys_of_many_kinds(x):
    d = {1: x, (1, 2): x + 1, "s": x + 2, None: x + 3, torch.float32: x + 4, int: x + 5, F.relu: x + 6, x: x + 7}
    return sum(d.values()), d[F.relu] - d[int], d[x], 1.0 in d, True in d


@case(lambda: (t(3),))
def views_of_a_dict(x):
    d = {"a": 1, "b": 2}
    keys = d.keys()
    d["c"] = 3
    return x + len(keys), keys & {"a", "z"}, keys - {"a"}, list(reversed(d)), d.items() >= {("a", 1)}, next(iter(d.values()))


@case(lambda: (t(3),))
def an_ordered_dict(x):
    d = collections.OrderedDict(a=x, b=x + 1)
    d.move_to_end("a")
    last = d.popitem(last=False)
    return last[1] + d["a"], list(d), d == {"a": x} if False else 0


@case(lambda: (t(3),))
def a_default_dict(x):
    d = collections.defaultdict(lambda: x * 0)
    d["a"] += x
    d["b"]
    return d["a"] + d["b"], len(d), "c" in d, d.default_factory is not None


@case(lambda: (t(3), {1, 2, 3}), lambda: (t(3), {2, 9}))
def methods_of_a_set(x, s):
    s.add(7)
    s.discard(1)
    return x + len(s), sorted(s | {0}), sorted(s & {2, 3}), sorted(s ^ {2}), s.issubset({1, 2, 3, 7}), s.isdisjoint({100}), frozenset(s) == s, {2} <= s


@case(lambda: (t(3), [3, 1, 2]), lambda: (t(3), [1]))
def methods_of_a_list(x, items):
    items.insert(0, 9)
    items.extend(i * 2 for i in list(items))
    items.remove(9)
    del items[0:1]
    items[1:2] = [5, 6]
    return x + items.index(5), items.count(6), items[::-1], items * 2, items + [1], items < [9], items.pop(), items


@case(lambda: (t(3), 1), lambda: (t(3), 2), lambda: (t(3), 7), lambda: (t(4), 7))
def a_number_that_changes(x, n):
    return x * n + x.shape[0] // (n + 1), n % 3 == 0, [n] * 2


@case(lambda: (t(3), 0.5), lambda: (t(3), 0.25), lambda: (t(3), -1.0))
def a_float_that_changes(x, f):
    return x * f + f / 2, f > 0, round(f, 1), int(f * 4)


@case(lambda: (t(4, 6),), lambda: (t(5, 6),), lambda: (t(7, 8),))
def a_shape_that_changes(x):
    b, c = x.shape
    return x.view(b, 2, c // 2).transpose(0, 1).reshape(-1, c // 2), b * c, x.new_zeros(b + 1), torch.arange(b)


def tripled(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs) * 3

    return inner


@tripled
def shifted(x, by=1):
    return x + by


@case(lambda: (t(3),))
def a_decorator(x):
    return shifted(x), shifted(x, by=2), shifted.__name__, shifted.__wrapped__(x)


@torch.no_grad()
def unrecorded(x):
    return x * 2


@case(lambda: (t(3).requires_grad_(),))
def a_decorator_of_torch(x):
    return unrecorded(x) + x, unrecorded(x).requires_grad


@case(lambda: (t(3).requires_grad_(),))
def modes_of_gradients(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    with torch.set_grad_enabled(False):
        c = x * 4
    return a.requires_grad, b, c.requires_grad, torch.is_grad_enabled()


@case(lambda: (t(3, 3),))
def lower_precision(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
    return y.dtype, y.float()


@case(lambda: ({"a": t(3), "b": [t(2), (t(1), None)]},))
def trees(tree):
    leaves, spec = pytree.tree_flatten(tree)
    doubled = pytree.tree_map(lambda v: v * 2 if isinstance(v, torch.Tensor) else v, tree)
    return sum(leaf.sum() for leaf in leaves if leaf is not None), doubled, pytree.tree_unflatten(leaves, spec)["b"][0]


@case(lambda: (t(3),))
def whether_it_is_compiled(x):
    if torch.compiler.is_compiling() and torch.compiler.is_dynamo_compiling():
        return x + 1
    return x + 1


@case(lambda: (t(3),))
def attributes_of_tensors(x):
    y = x + 1
    y.note = "mine"
    x.other = 5
    return y * x.other, y.note, hasattr(x, "note"), y.__dict__ if False else None


@case(lambda: (t(3), t(3)))
def identities(x, y):
    z = x
    return x + 1, z is x, x is not y, id(z) == id(x), [x, y].index(y) if False else 1, any(x is v for v in (y, x))


@case(lambda: (t(2, 3),))
def constructors(x):
    return torch.tensor([1.0, 2.0]), torch.as_tensor(x), x.new_tensor([1]), torch.zeros_like(x), torch.full((2,), 3.5), torch.empty(0), torch.Tensor([1, 2])


@case(lambda: (t(2, 3),))
def tensors_of_numbers(x):
    n = x.shape[0]
    return torch.tensor(n), torch.tensor([n, 1]), torch.tensor(2.5) * x, torch.tensor([[1, 2], [3, n]])


@case(lambda: (t(3),))
def in_place_and_aliases(x):
    y = x.view(3, 1)
    y.mul_(2)
    x[0] = 5
    z = y.squeeze()
    z += 1
    return x, y, z.data_ptr() == x.data_ptr() if False else 0


@case(lambda: (t(3), t(3)))
def results_written_to(x, out):
    torch.add(x, 1, out=out)
    return out * 2


@case(lambda: (t(3),), message=Message.ANY)
def a_shape_error_caught(x):
    try:
        return x @ torch.ones(4, 4)
    except RuntimeError:
        return x + 1


@case(lambda: (t(3),))
def errors_chained(x):
    try:
        try:
            raise KeyError("a")
        except KeyError as error:
            raise ValueError("b") from error
    except ValueError as error:
        return x + 1, type(error.__cause__).__name__, error.args, str(error)
    finally:
        x.add_(1)


class Oops(Exception):
    def __init__(self, code, *args):
        super().__init__(*args)
        self.code = code


@case(lambda: (t(3),))
def errors_of_a_class(x):
    try:
        raise Oops(4, "text")
    except (KeyError, Oops) as error:
        return x * error.code, error.args, isinstance(error, Exception)
    else:
        return x


@case(lambda: (t(3), 3), lambda: (t(3), -1))
def errors_raised_out(x, n):
    if n < 0:
        raise Oops(n, "negative")
    return x * n


@case(lambda: (t(3),))
def an_error_in_a_loop(x):
    seen = []
    for item in [1, "a", None, 2]:
        try:
            x = x + (item + 1)
        except TypeError as error:
            seen.append(type(item).__name__)
            continue
        finally:
            seen.append("done")
    return x, seen


@case(lambda: (t(3),))
def nested_contexts_and_errors(x):
    log = []

    @contextlib.contextmanager
    def section(name):
        log.append(name)
        try:
            yield
        finally:
            log.append("/" + name)

    try:
        with section("a"), section("b"):
            x = x + 1
            raise KeyError("c")
    except KeyError as error:
        log.append(error.args[0])
    return x, log


class Tagged(torch.Tensor):
    @property
    def tag(self):
        return "t"


@case(lambda: (t(3),))
def a_subclass_of_tensor(x):
    y = x.as_subclass(Tagged)
    z = y * 2
    return z.as_subclass(torch.Tensor), type(z).__name__, z.tag, isinstance(y, torch.Tensor)


class Quantity:
    def __init__(self, x, unit):
        self.x, self.unit = x, unit

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = [arg.x if isinstance(arg, cls) else arg for arg in args]
        return cls(function(*plain, **(kwargs or {})), "m")


@case(lambda: (t(3),))
def an_object_like_a_tensor(x):
    q = torch.mul(Quantity(x, "m"), 2)
    return q.x, q.unit


class Doubling(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.add else result


@case(lambda: (t(3),))
def a_mode(x):
    with Doubling():
        y = torch.add(x, 1)
    return y, torch.add(x, 1)


@case(lambda: (nn.LazyLinear(2), t(3, 4)), reuse=Reuse.FREE)
def a_lazy_module(m, x):
    return m(x).shape, type(m).__name__


@case(lambda: (nn.LSTM(3, 2), nn.GRU(3, 2), t(4, 1, 3)))
def recurrent_modules(a, b, x):
    return a(x)[0], b(x)[0]


@case(lambda: (nn.MultiheadAttention(4, 2), t(3, 1, 4)))
def attention(m, x):
    return m(x, x, x)[0]


@case(lambda: (nn.BatchNorm1d(3), t(4, 3)), lambda: (nn.BatchNorm1d(3).eval(), t(4, 3)))
def running_statistics(m, x):
    return m(x), m.running_mean, m.num_batches_tracked


@case(lambda: (nn.Dropout(0.5), t(4)), lambda: (nn.Dropout(0.5).eval(), t(4)))
def dropped_out(m, x):
    return m(x), m.training


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def a_step_of_an_optimizer(m, x):
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    optimizer.zero_grad()
    m(x).sum().backward()
    optimizer.step()
    return m.weight.detach()


@case(lambda: (t(4, 3),))
def many_results(x):
    values, indices = x.max(dim=1)
    top = torch.topk(x, 2)
    return values, indices, top.values, type(top).__name__, x.sort(descending=True).indices, torch.std_mean(x)


@case(lambda: (t(3, 4), t(4, 5)))
def contractions(a, b):
    return torch.einsum("ij,jk->ik", a, b), torch.tensordot(a, b, 1), F.linear(a, b.T), torch.baddbmm(torch.zeros(1, 3, 5), a[None], b[None])


@case(lambda: (t(3),))
def types_converted(x):
    return x.to(torch.float64), x.double().dtype, x.to("cpu"), x.type(torch.int64), x.to(x.dtype) is x, x.long().float(), torch.finfo(x.dtype).max, torch.iinfo(torch.int8).min


@case(lambda: (t(3),))
def states_of_torch(x):
    return x + torch.get_num_threads() * 0, torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_tensor(x), torch.is_floating_point(x), torch.promote_types(torch.int8, torch.float16)


@case(lambda: (t(3),))
def printed_in_the_middle(x):
    y = x + 1
    print("here")
    z = y * 2
    print("there", tuple(z.shape))
    return z - 1
