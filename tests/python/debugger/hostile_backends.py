"""Backends of torch.compile for `--import hostile_backends`, each with a program on which it is asked.

Those of `WRONG` break one part of the contract each: the values of a later call, a flag, one gradient of two, memory that is shared or not. Those
of `RIGHT` keep it and look suspicious: another sign of zero, strides of dimensions that have none, other rounding in every call, memory around
a result, output on the terminal. A name maps to the program's parameters and lines, and to the class that is announced.
"""

import atexit
import os
import signal
import sys
import threading
import zlib

import torch
from torch._dynamo import register_backend

WRONG, RIGHT = {}, {}


def backend(table, class_, parameters, *lines, call=None, gradients=()):
    """Registers a function of a graph and its arguments as a backend `hostile_NAME`, which acts where a graph has the operator `aten.sin`."""

    def registered(change):
        name = change.__name__

        @register_backend(name=f"hostile_{name}")
        def compiler(module, _example_inputs, **_options):
            if not any("sin" in str(node.target) for node in module.graph.nodes if node.op == "call_function"):
                return module.forward
            state = {"call": 0}

            def called(*arguments):
                state["call"] += 1
                return tuple(change(module.forward, arguments, state["call"]))

            return called

        table[name] = {"class": class_, "parameters": parameters, "lines": lines, "call": call, "gradients": gradients}
        return change

    return registered


SINE = ("a = torch.ops.aten.sin.default(x)", "b = a * 2", "return (b,)")
TWO = ("a = torch.ops.aten.sin.default(x)", "b = a * y", "return (b,)")
MATRIX = 'x : "f32[3, 4]"'


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(context, value, factor):
        context.factor = factor
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient * context.factor, None


@backend(WRONG, "value", MATRIX, *SINE, call=2)
def later_value(function, arguments, call):
    return [value + (call > 1) for value in function(*arguments)]


@backend(WRONG, "stride", MATRIX, *SINE, call=2)
def later_stride(function, arguments, call):
    return [value.mT.contiguous().mT if call > 1 else value for value in function(*arguments)]


@backend(WRONG, "error", MATRIX, *SINE, call=2)
def later_error(function, arguments, call):
    if call > 1:
        raise ValueError("the cache of 3 entries is full")
    return function(*arguments)


@backend(WRONG, {"signal": 11}, MATRIX, *SINE, call=2)
def later_crash(function, arguments, call):
    if call > 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    return function(*arguments)


@backend(WRONG, "value", "x", *SINE, call=2, gradients=["x"])
def later_gradient(function, arguments, call):
    return [Scaled.apply(value, float(call)) for value in function(*arguments)]


@backend(WRONG, "value", "x, y", *TWO, gradients=["x", "y"])
def one_gradient(function, arguments, _call):
    return function(arguments[0], Scaled.apply(arguments[1], 3.0))


@backend(WRONG, "structure", "x, y", *TWO, gradients=["x", "y"])
def no_gradient(function, arguments, _call):
    return function(arguments[0], arguments[1].detach())


@backend(WRONG, "structure", "x", *SINE, gradients=["x"])
def detached(function, arguments, _call):
    return [value.detach() for value in function(*arguments)]


@backend(WRONG, "dtype", MATRIX, "a = torch.ops.aten.sin.default(x)", "b = torch.ops.aten.argmax.default(a, 1)", "return (b,)")
def narrow(function, arguments, _call):
    return [value.int() for value in function(*arguments)]


@backend(WRONG, "shape", MATRIX, "a = torch.ops.aten.sin.default(x)", "b = torch.ops.aten.sum.default(a)", "return (b,)")
def with_a_dimension(function, arguments, _call):
    return [value[None] for value in function(*arguments)]


@backend(
    WRONG,
    "stride",
    'x : "f32[2, 3, 4, 5]"',
    "a = torch.ops.aten.sin.default(x)",
    "b = torch.ops.aten.clone.default(a, memory_format=torch.channels_last)",
    "return (b,)",
)
def other_memory_format(function, arguments, _call):
    return [value.contiguous() for value in function(*arguments)]


@backend(WRONG, "aliasing", MATRIX, "a = torch.ops.aten.sin.default(x)", "b = torch.ops.aten.t.default(a)", "return (a, b)")
def apart(function, arguments, _call):
    first, second = function(*arguments)
    return first, second.mT.clone().mT


@backend(WRONG, "aliasing", MATRIX, "a = torch.ops.aten.sin.default(x)", "b = torch.ops.aten.clone.default(x)", "return (a, b)")
def together(function, arguments, _call):
    first, _ = function(*arguments)
    return first, arguments[0]


@backend(WRONG, "mutation", MATRIX, "a = torch.ops.aten.sin_.default(x)", "b = a * 2", "return (b,)")
def lost_write(function, arguments, _call):
    return function(*[value.clone() for value in arguments])


@backend(WRONG, "mutation", MATRIX, *SINE)
def stray_write(function, arguments, _call):
    results = function(*arguments)
    arguments[0].add_(1)
    return results


@backend(WRONG, "value", MATRIX, *SINE)
def one_nan(function, arguments, _call):
    return [torch.where(torch.arange(value.numel()).view_as(value) == value.numel() - 1, float("nan"), value) for value in function(*arguments)]


@backend(WRONG, "value", 'x : "f32[4]"', "a = torch.ops.aten.sin.default(x)", "z = a * 0", "b = a / z", "c = b - b", "return (c,)")
def number_for_nan(function, arguments, _call):
    return [value.nan_to_num(0.0) for value in function(*arguments)]


@backend(WRONG, "value", MATRIX, "a = torch.ops.aten.sin.default(x)", "b = torch.ops.aten.argmax.default(a, 1)", "return (b,)")
def wrong_place(function, arguments, _call):
    return [(value + 1) % 4 for value in function(*arguments)]


@backend(WRONG, "value", MATRIX, "a = torch.ops.aten.sin.default(x)", "b = a + 2", "return (a, b)")
def swapped(function, arguments, _call):
    return reversed(function(*arguments))


@backend(WRONG, "value", 'x : "f32[300, 300]"', *SINE)
def one_of_many(function, arguments, _call):
    return [torch.where(torch.arange(value.numel()).view_as(value) == value.numel() - 1, value * 1.01, value) for value in function(*arguments)]


@backend(WRONG, "value", 'x : "f32[4]", n : "i64[4]"', "a = torch.ops.aten.sin.default(x)", "m = n * 1000000007 + 1152921504606846976", "return (a, m)")
def large_integer(function, arguments, _call):
    """One more where doubles have gaps."""
    first, second = function(*arguments)
    return first, second + 1


@backend(WRONG, "value", 'x : "f32[4, 4]"', "a = torch.ops.aten.sin.default(x)", "b = a.mT", "c = b * 2", "return (c, b)")
def by_stride(function, arguments, _call):
    first, second = function(*arguments)
    return first + (second.stride() == (1, 4)), second


@backend(WRONG, "structure", MATRIX, *SINE)
def without_data(function, arguments, _call):
    return [value.to("meta") for value in function(*arguments)]


class Crashing(torch.autograd.Function):
    @staticmethod
    def forward(_context, value):
        return value.clone()

    @staticmethod
    def backward(_context, _gradient):
        os.kill(os.getpid(), signal.SIGSEGV)


@backend(WRONG, {"signal": 11}, "x", *SINE, gradients=["x"])
def crash_in_backward(function, arguments, _call):
    return [Crashing.apply(value) for value in function(*arguments)]


@backend(WRONG, "value", MATRIX, *SINE)
def sometimes(function, arguments, _call):
    """Wrong in one call of two, whatever the seed."""
    return [value + os.urandom(1)[0] % 2 for value in function(*arguments)]


@backend(RIGHT, None, 'x : "f32[4]"', "a = torch.ops.aten.sin.default(x)", "b = a * 0", "return (b,)")
def other_zero(function, arguments, call):
    return [-value if call % 2 else value for value in function(*arguments)]


@backend(RIGHT, None, 'x : "f32[1, 4, 1]"', *SINE)
def strides_of_nothing(function, arguments, _call):
    return [value.as_strided(value.shape, (77, 1, 33)) for value in function(*arguments)]


@backend(RIGHT, None, 'x : "f32[0, 4]"', *SINE)
def strides_of_no_elements(function, arguments, _call):
    return [torch.empty(4, 0).mT for _ in function(*arguments)]


@backend(RIGHT, None, MATRIX, *SINE)
def in_larger_memory(function, arguments, _call):
    def within(value):
        return torch.full((value.numel() + 16,), float("nan"))[8:-8].view_as(value).copy_(value)

    return [within(value) for value in function(*arguments)]


@backend(RIGHT, None, 'x : "f32[64, 64]"', "a = torch.ops.aten.sin.default(x)", "b = torch.ops.aten.mm.default(a, a)", "c = torch.ops.aten.sum.default(b)", "return (b, c)")
def other_rounding(function, arguments, call):
    if call % 2:
        return [value.float() for value in function(*[value.double() for value in arguments])]
    return function(*arguments)


@backend(RIGHT, None, MATRIX, *SINE)
def talks(function, arguments, call):
    print('{"ok": true}', f"call {call}", flush=True)
    print("bug: forward: values differ", file=sys.stderr, flush=True)
    return function(*arguments)


@backend(RIGHT, None, MATRIX, *SINE)
def in_a_thread(function, arguments, _call):
    found = []
    thread = threading.Thread(target=lambda: found.extend(function(*arguments)))
    thread.start()
    thread.join()
    return found


@backend(RIGHT, None, MATRIX, *SINE)
def writes_and_restores(function, arguments, _call):
    kept = arguments[0].clone()
    arguments[0].zero_()
    arguments[0].copy_(kept)
    return function(*arguments)


@backend(RIGHT, None, 'x : "f32[8]"', "a = torch.ops.aten.sin.default(x)", "e = torch.ops.aten.empty_like.default(a)", "return (a, e)")
def other_garbage(function, arguments, call):
    first, second = function(*arguments)
    return first, second.fill_(call)


@backend(RIGHT, None, 'x : "f32[4]"', "a = torch.ops.aten.sin.default(x)", "z = a * 0", "b = z / z", "return (b,)")
def other_nan(function, arguments, call):
    return [-value if call % 2 else value for value in function(*arguments)]


@backend(RIGHT, None, 'x : "f32[8]"', "a = torch.ops.aten.sin.default(x)", "z = a * 0", "t = torch.ops.aten.topk.default(z, 2)", "v = t[0]", "i = t[1]", "return (v, i)")
def other_tie(function, arguments, call):
    return [value if value.is_floating_point() else (value + call) % 8 for value in function(*arguments)]


@backend(RIGHT, None, 'x : "f32[8]"', "a = torch.ops.aten.sin.default(x)", "b = torch.ops.aten.rand_like.default(a)", "return (b,)")
def other_draws(function, arguments, call):
    torch.rand(call)
    return function(*arguments)


@backend(RIGHT, None, "x", *SINE, gradients=["x"])
def gradient_in_other_memory(function, arguments, _call):
    return [Scaled.apply(value, 1.0) for value in function(*arguments)]


@backend(RIGHT, None, MATRIX, "a = torch.ops.aten.sin.default(x)", "b = a * 2", "c = a * 2", "return (b, c)")
def equal_results_apart(function, arguments, _call):
    return [value.clone() for value in function(*arguments)]


@backend(RIGHT, None, 'x : "f32[256]"', "a = torch.ops.aten.sin.default(x)", "b = a * 0.1", "c = b > 0.05", "return (b, c)")
def tips_by_rounding(function, arguments, call):
    values, above = function(*[value.double() for value in arguments]) if call % 2 else function(*arguments)
    return values.float(), above


@backend(RIGHT, None, MATRIX, *SINE)
def dies_at_the_end(function, arguments, call):
    """Crashes when its process ends, after all is done."""
    if call == 1:
        atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
    return function(*arguments)


@backend(RIGHT, None, MATRIX, *SINE)
def moves_away(function, arguments, _call):
    os.chdir("/")
    torch.manual_seed(1)
    return function(*arguments)


@backend(RIGHT, None, 'x : "f32[8, 8]"', "a = torch.ops.aten.sin.default(x)", "p = torch.ops.aten.sigmoid.default(a)", "m = torch.ops.aten.bernoulli.default(p)", "g = m > 0.5", "o = torch.ops.aten.nonzero.default(g)", "return (o,)")
def draws_another_size(function, arguments, call):
    torch.rand(call)
    return function(*arguments)


class Rounding(torch.fx.Interpreter):
    """Rounds otherwise after each step that rounds."""

    def run_node(self, node):
        value = super().run_node(node)
        rounds = isinstance(value, torch.Tensor) and value.is_floating_point() and any(name in str(node.target) for name in ("sin", "sum", "mul", "div", "sub"))
        if not rounds:
            return value
        generator = torch.Generator().manual_seed(zlib.crc32(node.name.encode()))
        return value * (1 + 1.2e-7 * torch.randint(-1, 2, value.shape, generator=generator))


# Sums in two orders, one a few units in the last place above the other: which is larger is a matter of rounding.
NEAR = (
    "a = torch.ops.aten.sin.default(x)",
    "s = torch.ops.aten.sum.dim_IntList(a, [1])",
    "f = torch.ops.aten.flip.default(a, [1])",
    "u = torch.ops.aten.sum.dim_IntList(f, [1])",
    "r = torch.ops.aten.mul.Tensor(u, 1.0000002)",
    "c = torch.ops.aten.cat.default([s, r])",
    "d = torch.ops.aten.sub.Tensor(r, s)",
)


def near(name, *lines):
    """A backend that rounds otherwise, on a program that goes on from near ties."""

    def rounds_otherwise(function, arguments, _call):
        return Rounding(function.__self__).run(*arguments)

    rounds_otherwise.__name__ = f"near_{name}"
    backend(RIGHT, None, 'x : "f32[64, 33]", y : "f32[128, 32]"', *NEAR, *lines)(rounds_otherwise)


near("topk", "t = torch.ops.aten.topk.default(c, 3)", "i = t[1]", "o = torch.ops.aten.index_select.default(y, 0, i)", "m = torch.ops.aten.mm.default(o, y.mT)", "return (m,)")
near("sort", "t = torch.ops.aten.sort.default(c)", "i = t[1]", "o = torch.ops.aten.index_select.default(y, 0, i)", "return (o,)")
near("rows", "g = torch.ops.aten.gt.Tensor(r, s)", "w = torch.ops.aten.unsqueeze.default(g, 1)", "o = torch.ops.aten.where.ScalarOther(w, x, 0)", "return (o,)")
near("all", "g = torch.ops.aten.gt.Tensor(r, s)", "e = torch.ops.aten.all.default(g)", "o = torch.ops.aten.where.ScalarOther(e, y, 0)", "return (o,)")
near("floor", "q = torch.ops.aten.div.Tensor(r, s)", "o = torch.ops.aten.floor.default(q)", "return (o,)")
near("sign", "o = torch.ops.aten.sign.default(d)", "w = torch.ops.aten.unsqueeze.default(o, 1)", "v = w * x", "return (v,)")
near("size", "g = torch.ops.aten.gt.Tensor(r, s)", "n = torch.ops.aten.nonzero.default(g)", "return (n,)")
