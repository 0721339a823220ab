"""What users do with a compiled function or module after it was compiled: scenarios, each a function of `compile`.

A scenario gets a function that compiles (or does nothing) and returns what it saw, tensors and plain values, in the order it saw them. What a compiled
function shows must be what the plain one shows: `test_lives.py`.
"""

import contextlib
import copy
import gc
import io
import threading

import numpy
import torch
from torch import nn
from torch.nn import functional as F

LIVES = {}


def life(function):
    LIVES[function.__name__] = function
    return function


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 2))


def data(rows=5):
    return torch.linspace(-1, 1, 4 * rows).view(rows, 4)


def seen(model, x):
    torch.manual_seed(1)
    return model(x).detach().clone()


@life
def training_and_evaluation_in_turns(compile):
    model = net()
    compiled, found = compile(model), []
    for training in (True, False, True, False):
        compiled.train(training)
        found += [seen(compiled, data()), model[1].running_mean.clone(), compiled.training, model.training]
    return found


@life
def gradients_switched(compile):
    model, found = net().eval(), []
    compiled = compile(model)
    for mode in (torch.no_grad(), torch.enable_grad(), torch.inference_mode(), torch.enable_grad()):
        with mode:
            out = compiled(data())
            found += [out.requires_grad, out.is_inference(), out.detach().clone()]
    return found


@life
def frozen_layers(compile):
    model, found = net().eval(), []
    compiled = compile(model)
    for frozen in (False, True, False):
        model[0].requires_grad_(not frozen)
        model.zero_grad()
        compiled(data()).sum().backward()
        found += [p.grad is None or p.grad.clone() for p in model.parameters()]
    return found


@life
def replaced_layers(compile):
    model, found = net().eval(), []
    compiled = compile(model)
    found.append(seen(compiled, data()))
    torch.manual_seed(3)
    model[4] = nn.Linear(6, 3)
    found.append(seen(compiled, data()))
    model[2] = nn.Tanh()
    found.append(seen(compiled, data()))
    model.append(nn.Softmax(-1))
    found.append(seen(compiled, data()))
    del model[5]
    found.append(seen(compiled, data()))
    return found


@life
def parameters_given_otherwise(compile):
    model, found = net().eval(), []
    compiled = compile(model)
    found.append(seen(compiled, data()))
    with torch.no_grad():
        model[0].weight.mul_(2)
    found.append(seen(compiled, data()))
    model[0].weight.data = torch.ones(6, 4)
    found.append(seen(compiled, data()))
    model[0].weight = nn.Parameter(torch.full((6, 4), 0.5))
    found.append(seen(compiled, data()))
    model[4].weight = nn.Parameter(model[4].weight.detach().t().contiguous().t())
    found.append(seen(compiled, data()))
    model[0].bias = None
    found.append(seen(compiled, data()))
    return found


@life
def state_saved_and_loaded(compile):
    model = net().eval()
    compiled = compile(model)
    before = seen(compiled, data())
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for p in compiled.parameters():
            p.add_(1)
    changed = seen(compiled, data())
    model.load_state_dict(state)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = compile(net().eval())
    (getattr(other, "_orig_mod", other)).load_state_dict(torch.load(file))
    return [before, changed, seen(compiled, data()), seen(other, data()), sorted(state)]


@life
def copies(compile):
    model = net().eval()
    compiled = compile(model)
    first = seen(compiled, data())
    other = copy.deepcopy(compiled)
    with torch.no_grad():
        model[0].weight.zero_()
    return [first, seen(compiled, data()), seen(other, data())]


@life
def other_types_of_elements(compile):
    model, found = net().eval(), []
    compiled = compile(model)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float32):
        compiled.to(dtype)
        found += [seen(compiled, data().to(dtype)), next(model.parameters()).dtype]
    return found


@life
def autocast_switched(compile):
    model, found = nn.Linear(4, 3), []
    torch.nn.init.constant_(model.weight, 0.25)
    torch.nn.init.zeros_(model.bias)
    compiled = compile(model)
    for enabled in (False, True, False):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            found.append(compiled(data()).detach())
    return found


@life
def default_type_switched(compile):
    @compile
    def function(n):
        return torch.ones(n) * 2.5 + torch.tensor(1.5)

    found = []
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            found.append(function(3))
        finally:
            torch.set_default_dtype(torch.float32)
    return found


@life
def shapes_and_ranks(compile):
    @compile
    def function(x, y=None, scale=1):
        out = (x * scale).sum(-1)
        return out if y is None else out + y

    x = torch.arange(24.0)
    return [
        function(x), function(x.view(4, 6)), function(x.view(2, 3, 4)), function(x.view(4, 6), torch.ones(4)), function(x.view(4, 6), y=torch.ones(())),
        function(x[:0]), function(x[:1]), function(x.view(4, 6), scale=2), function(x.view(4, 6), scale=2.5), function(x.view(4, 6), scale=True),
        function(x.view(4, 6).t()), function(x.view(4, 6)[::2]), function(x.double()), function(x.long()), function(x > 3),
    ]  # fmt: skip


@life
def containers_of_arguments(compile):
    @compile
    def function(items, table, *more, **named):
        total = sum(items) + sum(table[key] * k for k, key in enumerate(table, 1))
        for each in more:
            total = total + each
        return total, {name: value * 2 for name, value in named.items()}, [len(items), list(table), len(more), list(named)]

    a, b = torch.ones(3), torch.arange(3.0)
    return [
        function([a, b], {"p": a, "q": b}), function([a], {"q": b, "p": a}), function([a, b, a], {"p": a}), function((a, b), {"p": a}, b, 2.0),
        function([a, 1.5], {"p": a, "q": 2}, x=b), function([a], {"p": a}, y=b, x=a), function([b], {1: b, (2, 3): a}),
    ]  # fmt: skip


@life
def globals_and_closures(compile):
    scale, table = 2.0, {"k": 1}

    def function(x):
        return x * scale + table["k"] + len(table)

    compiled, found = compile(function), []
    found.append(compiled(data()))
    scale = 3.0
    found.append(compiled(data()))
    table["k"] = 5
    found.append(compiled(data()))
    table["more"] = 0
    found.append(compiled(data()))
    scale = torch.tensor(4.0)
    found.append(compiled(data()))
    return found


@life
def classes_changed(compile):
    class Scale(nn.Module):
        factor = 2.0

        def forward(self, x):
            return self.grow(x) * self.factor

        def grow(self, x):
            return x + 1

    model = Scale()
    compiled, found = compile(model), []
    found.append(compiled(data()))
    Scale.factor = 3.0
    found.append(compiled(data()))
    Scale.grow = lambda self, x: x + 10
    found.append(compiled(data()))
    model.grow = lambda x: x - 1
    found.append(compiled(data()))
    model.factor = torch.tensor(0.5)
    found.append(compiled(data()))
    return found


@life
def hooks_come_and_go(compile):
    model, found, log = net().eval(), [], []
    compiled = compile(model)
    found.append(seen(compiled, data()))
    one = model[0].register_forward_hook(lambda module, args, out: out * 2)
    found.append(seen(compiled, data()))
    two = model[4].register_forward_pre_hook(lambda module, args: log.append(args[0].shape) or None)
    found += [seen(compiled, data()), len(log)]
    one.remove()
    found += [seen(compiled, data()), len(log)]
    two.remove()
    three = model[0].register_full_backward_hook(lambda module, gi, go: log.append("backward"))
    compiled(data()).sum().backward()
    found += [len(log), model[0].weight.grad.clone()]
    three.remove()
    return found


@life
def errors_and_after(compile):
    class Refused(Exception):
        pass

    log = []

    @compile
    def function(x, limit):
        log.append(limit)
        y = x * 2
        if limit < 0:
            raise Refused(f"{limit} is negative")
        return y @ torch.ones(limit)

    found = []
    for limit in (4, -1, 3, 4, -2):
        try:
            found.append(function(data(), limit))
        except (Refused, RuntimeError) as error:
            found += [type(error).__name__, isinstance(error, Refused) and str(error)]
    return [*found, log]


@life
def numbers_of_python(compile):
    @compile
    def function(x, n, f, flag, text):
        return x * n + f if flag else x - n, n // 2, f * 2, not flag, f"{text}{n}"

    return [function(data(), n, f, flag, text) for n, f, flag, text in [(1, 0.5, True, "a"), (2, 0.5, True, "a"), (3, -1.5, False, "b"), (0, 0.0, True, ""), (-7, 1e30, False, "a"), (2**40, 2.0, True, "c")]]


@life
def special_numbers(compile):
    @compile
    def function(x, f):
        return x * f, x + f, f != f

    inf, nan = float("inf"), float("nan")
    return [function(data(), f) for f in (1.0, inf, -inf, nan, nan, 0.0, -0.0, 1.0)]


@life
def arrays(compile):
    @compile
    def function(a):
        x = torch.from_numpy(a) * 2
        return (x + 1).numpy().sum(), a.shape[0], x

    return [function(numpy.arange(n, dtype=kind)) for n in (3, 4, 5) for kind in ("float32", "int64")]


@life
def threads(compile):
    model = net().eval()
    compiled, found = compile(model), [None] * 8

    def work(k):
        for _ in range(3):
            found[k] = seen(compiled, data(k + 2))

    with torch.random.fork_rng():
        pool = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [each.start() for each in pool]
        [each.join() for each in pool]
    return found


@life
def recursion(compile):
    def function(x, depth):
        return x if depth == 0 else compiled(x * 2 + depth, depth - 1)

    compiled = compile(function)
    return [compiled(data(), depth) for depth in (0, 1, 4, 7)]


@life
def compiled_within_compiled(compile):
    inner = compile(lambda x: x.sin() * 2)
    outer = compile(lambda x: inner(x) + inner(x + 1))
    return [outer(data()), inner(data()), outer(data(7))]


@life
def functions_as_arguments(compile):
    @compile
    def function(x, transform, reduce=torch.sum):
        return reduce(transform(x))

    return [function(data(), torch.sin), function(data(), lambda x: x * 3), function(data(), torch.relu, torch.mean), function(data(), nn.Tanh()), function(data()[0], torch.Tensor.exp, max)]


@life
def inputs_that_are_written(compile):
    @compile
    def function(x, buffer):
        buffer.add_(x.sum(0))
        x[0] = 0
        return buffer * 2

    x, buffer, found = data(), torch.zeros(4), []
    for _ in range(3):
        found += [function(x, buffer), x.clone(), buffer.clone(), x._version > 0]
    return found


@life
def results_that_are_inputs(compile):
    @compile
    def function(x, y):
        return x, x[1:], y.view(-1), x + y, (x, {"y": y}), x.detach()

    x, y = data(), data() + 1
    out = function(x, y)
    out[1].zero_()
    out[2][0] = 9
    return [x, y, out[0] is x, out[4][0] is x, out[4][1]["y"] is y, out[3], out[5].requires_grad, out[5].data_ptr() == x.data_ptr()]


@life
def results_kept_over_calls(compile):
    compiled = compile(lambda x: (x * 2, x.sum()))
    kept = [compiled(data() + k) for k in range(4)]
    gc.collect()
    return [each for pair in kept for each in pair]


@life
def gradients_added_up(compile):
    model = net().eval()
    compiled, found = compile(model), []
    for k in range(3):
        compiled(data(k + 2)).square().sum().backward()
        found.append(model[0].weight.grad.clone())
    out = compiled(data())
    out.sum().backward(retain_graph=True)
    out.square().sum().backward()
    return [*found, model[0].weight.grad.clone()]


@life
def gradients_of_inputs(compile):
    compiled = compile(lambda x, y: (x * y.detach() + y).sin())
    x, y = data().requires_grad_(), data().mul(2).requires_grad_()
    found = list(torch.autograd.grad(compiled(x, y).sum(), (x, y)))
    compiled(x, y.detach()).sum().backward()
    z = x * 3
    compiled(z, y).sum().backward()
    return [*found, x.grad, y.grad]


@life
def tied_weights(compile):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    torch.manual_seed(0)
    for p in model.parameters():
        nn.init.normal_(p)
    compiled, found = compile(model), []
    compiled(data()).sum().backward()
    found += [p.grad.clone() for p in model.parameters()]
    model[2].weight = model[0].weight
    model.zero_grad()
    compiled(data()).sum().backward()
    found += [p.grad.clone() for p in model.parameters()]
    return found


@life
def attributes_of_the_module(compile):
    model = net().eval()
    compiled = compile(model)
    compiled.note = "kept"
    seen(compiled, data())
    names = [name.removeprefix("_orig_mod.") for name, _ in compiled.named_parameters()]
    return [names, len(list(compiled.parameters())), compiled[0].out_features, isinstance(compiled, nn.Module), compiled.note, len(compiled), compiled.training]


@life
def methods(compile):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            nn.init.eye_(self.layer.weight)
            nn.init.ones_(self.layer.bias)
            self.calls = 0
            self.step = compile(self.step)

        def forward(self, x):
            self.calls += 1
            return self.step(x) + self.twice(x)

        def step(self, x):
            return self.layer(x).relu() * self.calls

        @property
        def scale(self):
            return self.calls * 0.5

        @staticmethod
        def twice(x):
            return x * 2

        @classmethod
        def made(cls):
            return cls()

    model = Model.made()
    compiled = compile(model)
    return [compiled(data()).detach(), compiled(data()).detach(), model.calls, model.scale, model(data()).detach(), compiled.calls]


@life
def garbage(compile):
    found = []
    for k in range(4):
        model = nn.Linear(4, 2)
        nn.init.constant_(model.weight, float(k))
        nn.init.zeros_(model.bias)
        compiled = compile(model)
        found.append(compiled(data()).detach())
        del model, compiled
        gc.collect()
    return found


@life
def one_function_compiled_twice(compile):
    def function(x):
        return x.cos() + 1

    one, two = compile(function), compile(function)
    return [one(data()), two(data()), function(data()), one(data(2))]


@life
def transforms_around(compile):
    compiled = compile(lambda x: (x.sin() * x).sum())
    x = data()
    return [torch.func.grad(compiled)(x), torch.func.vmap(compiled)(x), torch.func.jacrev(compiled)(x), torch.autograd.functional.hessian(compiled, x[0])]


@life
def contexts_around(compile):
    compiled = compile(lambda x: x @ x.t())
    found = [compiled(data())]
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x * 1, lambda x: x):
        found.append(compiled(data()))
    with torch.autograd.set_detect_anomaly(True), contextlib.suppress(ValueError):
        found.append(compiled(data()))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        found.append(compiled(data()))
    torch.use_deterministic_algorithms(True)
    try:
        found.append(compiled(data()))
    finally:
        torch.use_deterministic_algorithms(False)
    return found


@life
def random_numbers(compile):
    compiled, found = compile(lambda x: F.dropout(x, 0.5) + torch.rand(4) + torch.randn_like(x)), []
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        found += [compiled(data()), compiled(data()), torch.rand(2)]
    state = torch.get_rng_state()
    found.append(compiled(data()))
    torch.set_rng_state(state)
    return [*found, compiled(data())]


@life
def long_series_of_sizes(compile):
    compiled = compile(lambda x: x.softmax(-1) @ torch.ones(x.shape[-1], 2) + x.shape[0])
    return [compiled(torch.linspace(0, 1, rows * columns).view(rows, columns)) for rows, columns in [(1, 1), (2, 1), (1, 2), (3, 5), (7, 5), (7, 3), (0, 3), (16, 33), (33, 16), (2, 2)]]


@life
def optimizer_steps(compile):
    model = net().eval()
    opt = torch.optim.AdamW(model.parameters(), 1e-2)
    found = []

    @compile
    def step(x):
        opt.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        opt.step()
        return loss.detach()

    for k in range(4):
        found.append(step(data()))
        if k == 1:
            saved = copy.deepcopy((model.state_dict(), opt.state_dict()))
            opt.param_groups[0]["lr"] = 1e-3
    model.load_state_dict(saved[0])
    opt.load_state_dict(saved[1])
    return [*found, step(data()), *(p.detach().clone() for p in model.parameters())]
