"""Programs that are hard on a compiler in the interpreter: recursion, threads, signals, collection, forks, changes behind its back.

A program takes `compile`, asserts that everything is as without it, and may do what it likes to its process: each runs in one of its own.
`python -m capture.hostile --compiler pyrite` runs them all and prints one JSON object: the name of each, and what went wrong or null.
"""

import argparse
import asyncio
import copy
import gc
import inspect
import json
import logging
import os
import pickle
import resource
import signal
import sys
import threading
import time
import warnings
import weakref

import torch
from capture import harness, isolation
from torch import nn

PROGRAMS = {}
TIME_LIMIT = 120


def hostile(program):
    PROGRAMS[program.__name__] = program
    return program


def same(have, want):
    torch.testing.assert_close(have, want)


@hostile
def recursion_to_the_limit(compile):
    def forever(x):
        return forever(x + 1)

    compiled = compile(forever)
    for _ in range(2):
        try:
            compiled(torch.ones(2))
        except RecursionError:
            continue
        raise AssertionError("it came back")
    same(compile(lambda x: x * 2)(torch.ones(2)), torch.full((2,), 2.0))


@hostile
def recursion_of_plain_python_to_the_limit(compile):
    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    def outer(x, n):
        return x + deep(n)

    same(compile(outer)(torch.ones(2), 150), torch.full((2,), 151.0))


@hostile
def recursion_through_the_compiled_function(compile):
    def down(x, n):
        return x if n == 0 else compiled(x + 1, n - 1)

    compiled = compile(down)
    same(compiled(torch.zeros(2), 60), torch.full((2,), 60.0))


@hostile
def threads_share_a_function(compile):
    compiled = compile(lambda x, n: (x * n).sin() + x.shape[0])
    wrong = []

    def work(k):
        for n in range(30):
            x = torch.full((k + 1,), float(n))
            if not torch.allclose(compiled(x, k), (x * k).sin() + k + 1):
                wrong.append((k, n))

    run_threads(work, 6)
    assert not wrong, wrong


@hostile
def threads_compile_at_once(compile):
    def work(k):
        def own(x):
            for _ in range(k + 1):
                x = x + k
            return x

        for n in range(10):
            same(compile(own)(torch.full((3,), float(n))), torch.full((3,), float(n + k * (k + 1))))

    run_threads(work, 4)


def run_threads(work, count):
    errors = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@hostile
def grad_mode_belongs_to_a_thread(compile):
    compiled = compile(lambda x: x * 2)
    x = torch.ones(2, requires_grad=True)

    def work(k):
        for _ in range(20):
            with torch.set_grad_enabled(k % 2 == 0):
                assert compiled(x).requires_grad == (k % 2 == 0)

    run_threads(work, 4)


@hostile
def generators_passed_around(compile):
    def numbers(x):
        for n in range(4):
            yield x * n

    first = compile(lambda items: next(items) + next(items))
    rest = compile(lambda items: sum(items))
    items = numbers(torch.ones(2))
    same(first(items), torch.ones(2))
    same(rest(items), torch.full((2,), 5.0))
    assert list(items) == []


@hostile
def compiled_generator_function(compile):
    def numbers(x, n):
        got = None
        for k in range(n):
            got = yield x * k if got is None else x * got
        return "end"

    items = compile(numbers)(torch.ones(2), 3)
    assert inspect.isgenerator(items)
    same(next(items), torch.zeros(2))
    same(items.send(7), torch.full((2,), 7.0))
    same(next(items), torch.full((2,), 2.0))
    try:
        next(items)
    except StopIteration as stop:
        assert stop.value == "end"
    else:
        raise AssertionError("no end")


@hostile
def coroutines(compile):
    async def step(x, n):
        y = x * n
        await asyncio.sleep(0)
        return y + 1

    plain = compile(lambda x: x.sin() + 1)

    async def main():
        compiled = compile(step)
        results = await asyncio.gather(*(compiled(torch.ones(2), n) for n in range(5)))
        for n, result in enumerate(results):
            same(result, torch.full((2,), n + 1.0))
        same(plain(results[0]), results[0].sin() + 1)

    asyncio.run(main())


@hostile
def async_generators_and_contexts(compile):
    class Scope:
        async def __aenter__(self):
            return 3

        async def __aexit__(self, *error):
            return False

    async def steps(x):
        for n in range(3):
            async with Scope() as k:
                yield x * n + k

    async def main():
        return [y async for y in compile(steps)(torch.ones(1))]

    same(torch.cat(asyncio.run(main())), torch.tensor([3.0, 4.0, 5.0]))


@hostile
def signals_while_it_compiles_and_runs(compile):
    arrived = []
    previous = signal.signal(signal.SIGALRM, lambda *_: arrived.append(torch.ones(2).sum().item()))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        end = time.monotonic() + 1.0
        n = 0
        while time.monotonic() < end or not arrived:
            n += 1
            compiled = compile(lambda x, n=n: (x + n) * 2)
            for _ in range(5):
                same(compiled(torch.ones(2)), torch.full((2,), (n + 1) * 2.0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert set(arrived) == {2.0}


@hostile
def signal_that_raises(compile):
    class Interrupt(Exception):
        pass

    def handler(*_):
        raise Interrupt

    def busy(x):
        for _ in range(10_000_000):
            x = x + 1
            x = x.detach()
            time.sleep(0)
        return x

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        compile(busy)(torch.ones(2))
    except Interrupt:
        pass
    else:
        raise AssertionError("the signal was lost")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    same(compile(lambda x: x + 1)(torch.ones(2)), torch.full((2,), 2.0))


@hostile
def collection_at_every_allocation(compile):
    class Cycle:
        def __init__(self):
            self.me = self
            self.tensor = torch.ones(2)

        def __del__(self):
            self.tensor.add_(1)

    def program(x, items):
        Cycle()
        kept = [Cycle() for _ in range(3)]
        items.append(x + len(kept))
        return {n: x * n for n in range(3)}, [y + 1 for y in items]

    kept = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(3):
            table, items = compile(program)(torch.ones(2), [])
    finally:
        gc.set_threshold(*kept)
    same(table[2], torch.full((2,), 2.0))
    same(items[0], torch.full((2,), 5.0))


@hostile
def destructor_that_runs_compiled_code(compile):
    inner = compile(lambda x: x * 3)
    seen = []

    class Last:
        def __del__(self):
            seen.append(inner(torch.ones(2)))

    def program(x):
        last = Last()
        y = x + 1
        del last
        return y * 2

    same(compile(program)(torch.ones(2)), torch.full((2,), 4.0))
    gc.collect()
    assert len(seen) == 1
    same(seen[0], torch.full((2,), 3.0))


@hostile
def inputs_are_not_kept_alive(compile):
    class Holder:
        pass

    compiled = compile(lambda x, holder: x * 2 + holder.y)
    x, holder = torch.ones(2), Holder()
    holder.y = torch.ones(2)
    references = [weakref.ref(x), weakref.ref(holder), weakref.ref(holder.y)]
    compiled(x, holder)
    compiled(x, holder)
    del x, holder
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


@hostile
def modules_and_functions_are_not_kept_alive(compile):
    def make():
        module = nn.Linear(2, 2)

        def function(x):
            return module(x) + 1

        compile(function)(torch.ones(1, 2))
        return weakref.ref(module), weakref.ref(function)

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@hostile
def weak_references_inside(compile):
    def program(x, reference):
        held = reference()
        return x + 1 if held is None else x + held.n

    class Thing:
        n = 5

    thing = Thing()
    compiled = compile(program)
    reference = weakref.ref(thing)
    same(compiled(torch.zeros(1), reference), torch.tensor([5.0]))
    del thing
    gc.collect()
    same(compiled(torch.zeros(1), reference), torch.tensor([1.0]))


@hostile
def modules_changed_between_calls(compile):
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    compiled = compile(module)
    x = torch.randn(3, 2)

    def agree():
        for _ in range(2):
            same(compiled(x), module.forward(x))

    agree()
    module[0].weight.data.mul_(2)
    agree()
    module[0] = nn.Linear(2, 2)
    agree()
    module[1] = nn.Tanh()
    agree()
    module.append(nn.Dropout(0.0))
    agree()
    module[2].bias = None
    agree()
    module.load_state_dict({name: value + 1 for name, value in module.state_dict().items()})
    agree()
    module[2].forward = lambda y: y * 10
    agree()
    handle = module[0].register_forward_hook(lambda m, args, out: out + 100)
    agree()
    handle.remove()
    agree()
    module.double()
    x = x.double()
    agree()
    module.requires_grad_(False)
    assert not compiled(x).requires_grad


@hostile
def class_changed_between_calls(compile):
    class Step(nn.Module):
        factor = 2

        def forward(self, x):
            return x * self.factor

    step = Step()
    compiled = compile(lambda x: step(x))
    x = torch.ones(2)
    same(compiled(x), x * 2)
    Step.factor = 3
    same(compiled(x), x * 3)
    Step.forward = lambda self, x: x + 100
    same(compiled(x), x + 100)
    step.__class__ = type("Other", (nn.Module,), {"forward": lambda self, x: x - 1})
    same(compiled(x), x - 1)


@hostile
def function_changed_between_calls(compile):
    def scaled(x, n=2):
        return x * n

    def added(x, n=2):
        return x + n

    def caller(x):
        return scaled(x)

    compiled, direct = compile(caller), compile(scaled)
    x = torch.ones(2)
    same(compiled(x), x * 2)
    scaled.__defaults__ = (5,)
    same(compiled(x), x * 5)
    scaled.__code__ = added.__code__
    same(compiled(x), x + 5)
    same(direct(x), scaled(x))


@hostile
def cells_and_globals_changed_between_calls(compile):
    space = {"torch": torch, "FACTOR": 2}
    exec("def program(x):\n    return x * FACTOR", space)
    compiled = compile(space["program"])
    x = torch.ones(2)
    same(compiled(x), x * 2)
    space["FACTOR"] = 3
    same(compiled(x), x * 3)
    space["FACTOR"] = torch.full((2,), 4.0)
    same(compiled(x), x * 4)
    del space["FACTOR"]
    try:
        compiled(x)
    except NameError:
        pass
    else:
        raise AssertionError("the name is gone")

    n = 1

    def program(x):
        return x + n

    compiled = compile(program)
    same(compiled(x), x + 1)
    n = 7
    same(compiled(x), x + 7)


@hostile
def builtins_changed_between_calls(compile):
    import builtins

    def program(x, items):
        return x + len(items)

    compiled = compile(program)
    x = torch.ones(2)
    same(compiled(x, [1]), x + 1)
    original = builtins.len
    builtins.len = lambda items: 10
    try:
        same(compiled(x, [1]), x + 10)
    finally:
        builtins.len = original
    same(compiled(x, [1]), x + 1)


@hostile
def compiled_twice(compile):
    def program(x):
        return x.sin() + 1

    once, again = compile(program), compile(program)
    twice = compile(compile(program))
    x = torch.ones(2)
    for function in (once, again, twice, once):
        same(function(x), program(x))
    module = nn.Linear(2, 2)
    same(compile(compile(module))(torch.ones(1, 2)), module(torch.ones(1, 2)))


@hostile
def compiled_functions_call_each_other(compile):
    inner = compile(lambda x: x * 2)
    middle = compile(lambda x: inner(x) + 1)
    outer = compile(lambda x: middle(x) + inner(x))
    same(outer(torch.ones(2)), torch.full((2,), 5.0))


@hostile
def compiles_inside_compiled_code(compile):
    def program(x):
        inner = compile(lambda y: y * 2)
        return inner(x) + 1

    compiled = compile(program)
    for _ in range(2):
        same(compiled(torch.ones(2)), torch.full((2,), 3.0))


@hostile
def fork_after_compile(compile):
    compiled = compile(lambda x: (x * 2).sin())
    x = torch.ones(3)
    want = (x * 2).sin()
    same(compiled(x), want)
    child = os.fork()
    if child == 0:
        try:
            same(compiled(x), want)
            same(compiled(torch.ones(5)), (torch.ones(5) * 2).sin())
            same(compile(lambda y: y + 1)(x), x + 1)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    same(compiled(x), want)


@hostile
def a_thousand_compiles_leave_memory_flat(compile, count=1000):
    def one(n):
        space = {}
        exec(f"def program(x, y):\n    z = x * {n} + y\n    return z.sin().sum() + {n}", space)
        compile(space["program"])(torch.ones(64), torch.ones(64))

    for n in range(count // 2):
        one(n)
    gc.collect()
    before = resident_bytes()
    for n in range(count // 2, count + count // 2):
        one(n)
    gc.collect()
    grown = resident_bytes() - before
    assert grown < 8 << 20, f"{grown / 2**20:.1f} MB more after {count} compiles"


@hostile
def many_calls_leave_memory_flat(compile):
    def program(x, items):
        items.append(x + 1)
        return {"y": x * 2, "z": [y.sin() for y in items]}

    compiled = compile(program)
    for _ in range(200):
        compiled(torch.ones(64), [])
    gc.collect()
    before = resident_bytes()
    for _ in range(5000):
        compiled(torch.ones(64), [])
    gc.collect()
    grown = resident_bytes() - before
    assert grown < 4 << 20, f"{grown / 2**20:.1f} MB more after 5000 calls"


@hostile
def references_do_not_leak(compile):
    class Thing:
        def __init__(self):
            self.n = 3

    def program(x, thing, name, items):
        try:
            items.append(thing.n)
            return x * len(items), f"{name}", getattr(thing, name)
        finally:
            thing.n = thing.n + 0

    compiled = compile(program)
    x, thing, items, name = torch.ones(2), Thing(), [], "".join(["n"])
    for _ in range(20):
        compiled(x, thing, name, items)
    held = (x, thing, items, name, Thing, program)
    before = [sys.getrefcount(value) for value in held]
    for _ in range(100):
        compiled(x, thing, name, items)
    after = [sys.getrefcount(value) for value in held]
    assert all(b - a < 5 for a, b in zip(before, after)), (before, after)


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@hostile
def tracing_and_profiling_while_it_compiles(compile):
    seen = []

    def program(x):
        y = x + 1
        return y * 2

    def trace(frame, event, argument):
        seen.append(event)
        return trace

    for install in (sys.settrace, sys.setprofile):
        install(trace)
        try:
            for _ in range(3):
                same(compile(program)(torch.ones(2)), torch.full((2,), 4.0))
        finally:
            install(None)
    assert seen


@hostile
def stack_inspection(compile):
    def whoami():
        return sys._getframe(1).f_code.co_name

    def program(x):
        return x + 1, whoami(), inspect.currentframe() is not None

    result, name, there = compile(program)(torch.ones(2))
    assert name == "program" and there
    same(result, torch.full((2,), 2.0))


@hostile
def tracebacks_name_the_users_lines(compile):
    def inner(x):
        raise ValueError("here")

    def program(x):
        y = x + 1
        return inner(y)

    compiled = compile(program)
    for _ in range(2):
        try:
            compiled(torch.ones(2))
        except ValueError as error:
            frame = error.__traceback__
            names = []
            while frame:
                names.append((frame.tb_frame.f_code.co_name, frame.tb_lineno))
                frame = frame.tb_next
        first = program.__code__.co_firstlineno
        assert ("program", first + 2) in names, names
        assert ("inner", inner.__code__.co_firstlineno + 1) in names, names


@hostile
def exits_and_interrupts_pass_through(compile):
    def leave(x, kind):
        y = x + 1
        raise kind(y.shape[0])

    compiled = compile(leave)
    for kind in (SystemExit, KeyboardInterrupt, GeneratorExit, BaseException):
        try:
            compiled(torch.ones(2), kind)
        except kind as error:
            assert error.args == (2,)
        else:
            raise AssertionError(kind)


@hostile
def code_without_source_and_with_odd_names(compile):
    body = "\n".join(f"    v{n} = x + {n}" for n in range(400))
    total = " + ".join(f"v{n}" for n in range(400))
    space = {}
    exec(f"def größe(x):\n{body}\n    return {total}", space)
    same(compile(space["größe"])(torch.zeros(2)), torch.full((2,), float(sum(range(400)))))


@hostile
def long_jumps(compile):
    body = "\n".join(f"        x = x + {n % 7}" for n in range(600))
    space = {}
    exec(f"def program(x, flag):\n    if flag:\n{body}\n    else:\n{body}\n        x = -x\n    return x", space)
    total = float(sum(n % 7 for n in range(600)))
    compiled = compile(space["program"])
    same(compiled(torch.zeros(1), True), torch.tensor([total]))
    same(compiled(torch.zeros(1), False), torch.tensor([-total]))


@hostile
def more_changes_than_the_cache_holds(compile):
    compiled = compile(lambda x, key: x + len(key))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(60):
            same(compiled(torch.ones(2), "k" * n), torch.full((2,), n + 1.0))


@hostile
def tensor_subclasses(compile):
    class Logged(torch.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.calls.append(getattr(function, "__name__", "?"))
            return super().__torch_function__(function, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Logged)
    compiled = compile(lambda y: (y + 1).sin())
    for _ in range(2):
        Logged.calls.clear()
        result = compiled(x)
        assert type(result) is Logged, type(result)
        assert "sin" in Logged.calls, Logged.calls
        same(result.as_subclass(torch.Tensor), torch.full((2,), 2.0).sin())


@hostile
def dispatch_modes_around_a_call(compile):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen += 1
            return function(*args, **(kwargs or {}))

    compiled = compile(lambda x: (x + 1).sin())
    same(compiled(torch.ones(2)), torch.full((2,), 2.0).sin())
    with Count() as mode:
        same(compiled(torch.ones(2)), torch.full((2,), 2.0).sin())
    assert mode.seen >= 2


@hostile
def calls_back_from_c(compile):
    compiled = compile(lambda x: float(x.sum()))
    tensors = [torch.full((2,), float(n)) for n in (3, 1, 2)]
    assert [t[0].item() for t in sorted(tensors, key=compiled)] == [1.0, 2.0, 3.0]
    assert list(map(compiled, tensors)) == [6.0, 2.0, 4.0]


@hostile
def runs_in_a_backward_hook(compile):
    compiled = compile(lambda g: g * 2)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(compiled)
    compile(lambda y: (y * 3).sum())(x).backward()
    same(x.grad, torch.full((2,), 6.0))


@hostile
def copies_and_pickles_of_compiled_modules(compile):
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    compiled = compile(module)
    x = torch.ones(1, 2)
    want = module(x)
    same(compiled(x), want)
    same(copy.deepcopy(compiled)(x), want)
    loaded = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    loaded.load_state_dict(module.state_dict())
    same(loaded(x), want)
    same(pickle.loads(pickle.dumps(module))(x), want)


@hostile
def wrong_arguments(compile):
    def program(x, *, n):
        return x + n

    compiled = compile(program)
    for arguments, keywords in [((), {}), ((torch.ones(1),), {}), ((1, 2, 3), {"n": 1}), ((torch.ones(1),), {"n": 1, "m": 2})]:
        told = []
        for function in (program, compiled):
            try:
                function(*arguments, **keywords)
            except TypeError as error:
                told.append(str(error))
        assert len(told) == 2 and told[0] == told[1], told


@hostile
def objects_that_lie(compile):
    class Liar:
        def __eq__(self, other):
            raise RuntimeError("do not compare me")

        __hash__ = None

        def __bool__(self):
            raise RuntimeError("do not ask me")

        @property
        def __class__(self):
            return int

    def program(x, liar):
        return x + 1, isinstance(liar, int), liar is None

    for _ in range(2):
        result, is_int, is_none = compile(program)(torch.ones(1), Liar())
        assert (is_int, is_none) == (True, False)
        same(result, torch.full((1,), 2.0))


@hostile
def attributes_that_count_how_often_they_are_read(compile):
    class Meter:
        reads = 0

        @property
        def value(self):
            self.reads += 1
            return 3

        def __len__(self):
            self.reads += 1
            return 2

    meter = Meter()
    compiled = compile(lambda x, m: x * m.value + len(m))
    for n in range(1, 4):
        same(compiled(torch.ones(1), meter), torch.full((1,), 5.0))
        assert meter.reads == 2 * n, meter.reads


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", choices=harness.COMPILERS, default="pyrite")
    parser.add_argument("programs", nargs="*", help="names; all of them if there are none")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    isolation.prepare()
    compiler = harness.COMPILERS[options.compiler]()
    told = {}
    for name in options.programs or PROGRAMS:
        _, told[name] = isolation.in_a_fork(lambda name=name: PROGRAMS[name](compiler.compile), TIME_LIMIT)
        print(f"{name}: {told[name] or 'as without'}", file=sys.stderr, flush=True)
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
