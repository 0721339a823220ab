"""Random functions, run through the same harness as the corpus: one seed, one function, the same text every time.

Every function takes a tensor, a number, a list, a dict, an object, a function, a float, another list, a flag and an iterator, and reads
globals and attributes of classes; it changes what can be changed. The calls of a session give it inputs and a world that differ from the
first in one thing each. Statements nest to a small depth; variables are bound before they are used, numbers stay small, and loops end. What
differs from plain Python, exceptions and their contexts included, is therefore a mistake of the compiler.

    python -m capture.random_programs --compiler pyrite --count 500 --seed 0

prints each program that differs, shortened by taking out statements as long as it still differs in the same place. With `--drop KIND` all
guards of a kind are left out, and the count of programs until one differs is printed: a kind that nobody misses is not tested.
"""

import argparse
import collections
import contextlib
import functools
import heapq
import itertools
import logging
import os
import random
import re
import signal
import sys
import warnings

import torch
from capture import harness, isolation
from capture.cases import Case, Message, Reuse
from torch.overrides import TorchFunctionMode

TENSORS = ["x", "y", "z"]
NUMBERS = ["n", "m", "k"]
TIME_LIMIT = 30
# A program whose loop never ends because a guard is missing is noticed, too.
SHORT_LIMIT = 3


class Program:
    """The statements of a function as a tree: a line, or a head with a block. Lines are texts without indentation."""

    def __init__(self, random):
        self.random = random
        self.names = 0

    def block(self, depth, inside):
        return [self.statement(depth, inside) for _ in range(self.random.randint(1, 4))]

    def statement(self, depth, inside):
        plain = [self.tensor, self.number, self.container, self.text, self.world, self.world, self.python]
        if "loop" in inside:
            plain.append(lambda: self.random.choice(["if {}:\n    break", "if {}:\n    continue"]).format(self.condition()))
        nested = [self.branch, self.loop, self.attempt, self.context, self.function, self.generator, self.failure] if depth else []
        chosen = self.random.choices([*plain, *nested, self.rare], [3] * len(plain) + [2] * len(nested) + [1])[0]
        if chosen in nested:
            return chosen(depth - 1, inside)
        return chosen()

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def pick(self, names):
        return self.random.choice(names)

    def value(self):
        """A tensor that is as long as `x`."""
        a, b = self.pick(TENSORS), self.pick(TENSORS)
        return self.random.choice(
            [
                f"{a} * 0.5 + {b}",
                f"torch.sin({a}) - {self.pick(NUMBERS)}",
                f"{a}.clamp(-2, 2)",
                f"torch.where({a} > 0, {a}, {b})",
                f"torch.stack([{a}, {b}]).mean(0)",
                f"({a} if {self.condition()} else {b}) + 1",
                f"items[-1] * {self.pick(NUMBERS)} if len(items) > 1 else {a}",
                f"table.get('t', {a}).cos()",
                f"sum([t * 0.1 for t in items], {a})",
                f"{a}.view(1, -1).t().reshape(-1)",
            ]
        )

    def amount(self):
        """A small number."""
        a, b = self.pick(NUMBERS), self.pick(NUMBERS)
        return self.random.choice(
            [
                f"({a} + {b}) % 7",
                f"{a} // 2",
                "len(items) % 5",
                f"x.shape[0] + {a} % 2",
                f"abs({a} - {b})",
                f"int({self.condition()})",
                f"max({a}, {b}, 1)",
                "sum(table.get(key, 0) for key in ('a', 'b')) % 5",
                f"[{a}, {b}, 3][{a} % 3]",
                f"len(f'{{{a}}}-{{{b}:>3}}')",
            ]
        )

    def condition(self):
        a, b = self.pick(NUMBERS), self.pick(NUMBERS)
        return self.random.choice(
            [
                f"{a} > {b}",
                f"{a} % 2 == 0",
                f"len(items) > {a}",
                f"0 < {a} < 4",
                "'a' in table",
                f"not {a}",
                "ratio > 1.0",
                "flag",
                "flag is None",
                "twin is items",
                "hasattr(box, 'b')",
                "isinstance(box, Crate)",
                "x.shape[0] > 3",
                "pick is doubled",
                "SETTING > 1",
                "box == box.other",
                "next(reversed(table)) == 'a'",
            ]
        )

    def tensor(self):
        return self.random.choice(["{} = {}", "{} = {}", "{} = ({}).detach().clone()"]).format(self.pick(TENSORS), self.value())

    def number(self):
        return f"{self.pick(NUMBERS)} = {self.amount()}"

    def container(self):
        return self.random.choice(
            [
                f"items.append({self.value()})",
                f"items[{self.pick(NUMBERS)} % len(items)] = {self.value()}",
                f"table['t'] = {self.value()}",
                f"table['{self.random.choice('ab')}'] = {self.amount()}",
                f"{self.pick(TENSORS)}, {self.pick(NUMBERS)} = {self.value()}, {self.amount()}",
                "items.reverse()",
                "items = items[:4]",
                "items.insert(0, items.pop())",
                f"table = {{**table, 'b': {self.amount()}}}",
                f"{self.pick(TENSORS)} = {{'p': {self.value()}}}['p']",
            ]
        )

    def text(self):
        return f"log.append(f'{{{self.pick(NUMBERS)}}} {{len(items)}} {{sorted(table)}}')"

    def world(self):
        """Reads or changes something that another call may find changed."""
        a, m = self.pick(TENSORS), self.pick(NUMBERS)
        return self.random.choice(
            [
                f"{a} = pick({a})",
                f"{a} = {a} * box.a",
                f"{m} = box.scale % 5",
                f"{m} = getattr(box, 'b', 4)",
                f"{a} = {a} + ratio",
                f"{m} = int(ratio > 1.5) + {m} % 3",
                "twin.append(1)",
                f"{m} = len(twin) % 5",
                f"{m} = sum(n for n in twin if type(n) is int) % 5",
                f"{m} = SETTING % 5",
                f"{m} = WORLD.get('w', 3)",
                f"{m} = WORLD['v'] % 5 if 'v' in WORLD else 1",
                f"{m} = int(table is WORLD) + len(WORLD) % 3",
                "WORLD['n'] = len(WORLD) % 3",
                f"box.a = {m} % 3 + 1",
                "box.count = getattr(box, 'count', 0) + 1",
                f"{m} = next(source, 2) % 5",
                "log.append(list(table)[:2])",
                "log.append([type(v).__name__ for v in (flag, box, n)])",
                f"{m} = box.method({m}) % 5",
                f"{a} = {a} if flag is None else {a} - 1",
                "log.append(x.dtype == torch.float64)",
                "log.append((x.dim(), x.shape[0], x.requires_grad))",
                "log.append(pick.__name__)",
                f"{m} = len(SEEN) % 4",
                "log.append('z' in SEEN)",
                "log.append('p' in SHELF)",
                f"{m} = 1 if 'q' in SHELF else 2",
                f"{m} = Depot.rate({m}) % 5",
                "log.append(hasattr(Depot, 'closed'))",
                "log.append(box.left is box.right)",
                f"{m} = int(box.left is not box.right) + {m} % 3",
                f"log.append(len({{box.left: 1, box.right: 2}}))",
                f"{a} = {a}.as_subclass(Marked)",
                f"{a} = {a}.as_subclass(torch.Tensor)",
                f"log.append(type({a}).__name__)",
                f"{a} = abs({a}).grown() if type({a}) is Marked else {a}",
                f"Depot.level = {m} % 4",
                f"{m} = getattr(Depot, 'level', 2)",
                f"{m} = Count({m}).next() % 5",
                f"{a} = {a} + {self.pick(TENSORS)}[torch.tensor(1)]",
                f"picked = {a}[torch.tensor({self.random.randint(0, 2)})]; picked.mul_(0.5)",
                f"members = box.__dict__; box.c = {m}; log.append(('c' in members, len(members) % 3, members['c']))",
                f"box.__dict__['d'] = {m} % 4",
                f"{m} = vars(box).pop('d', 1) % 5",
            ]
        )

    def python(self):
        """Values and containers of Python alone."""
        m, k = self.pick(NUMBERS), self.pick(NUMBERS)
        return self.random.choice(
            [
                f"log.append(sorted({{{m}, {k}, 1}} | {{2}}))",
                f"log.append([*range({m} % 4), *'ab'][-1])",
                f"log.append({{i: i * {m} for i in range(3)}})",
                f"{m} = max([{m}, {k}], key=lambda v: -v)",
                f"log.append('{{}}-{{:>3}}'.format({m}, {k}))",
                f"log.append(divmod({m} + 7, {k} % 3 + 1))",
                f"log.append(list(zip(range({m} % 3), 'abc', strict=False)))",
                f"{m} = functools.reduce(lambda p, q: p + q, [1, {k}], 0) % 5",
                f"stack = Stack([{m}]); stack.push({k}); {m} = stack.total() % 5",
                f"log.append(Pair({m}, {k}).swapped())",
                f"log.append((lambda *p, **q: (len(p), sorted(q)))({m}, u={k}))",
                f"first, *rest = [{m}, {k}, 3]; log.append(rest)",
                f"log.append(collections.Counter([{m}, {k}, {m}]).most_common(1))",
                f"log.append(list(itertools.accumulate([1, {m}, {k}])))",
                f"log.append(str({m}).rjust(2, '0') + repr(({k}, 'q')))",
                f"del log[{m} % 2 :: 3]",
                f"log.append(collections.OrderedDict(a={m}, b=2) == collections.OrderedDict(b=2, a={m}))",
                f"log[:1] = [{m}]",
                f"log.append(Key({m} % 2) in {{Key(0): 1}})",
                f"ring = Ring([{m}]); ring.append({k}); ring.appendleft(1); log.append((list(ring), ring.maxlen, ring.seen))",
                f"groups = Groups(list); groups.put({m}, {k}); log.append(groups[{m}] + groups['none'])",
                f"log.append(heapq.heappushpop([{m}, {m} + 3], {k}))",
                f"log.append(re.sub('[0-3]', '-', str({m})) + re.match('.', 'q').group())",
                f"Local = collections.namedtuple('Local', 'a b'); log.append(Local({m}, b={k}).b)",
                "log.append(sorted(locals())[:2])",
                f"match {m}:\n    case 0 | 1:\n        log.append('small')\n    case int(v) if v > 2:\n        log.append(v)",
            ]
        )

    def generator(self, depth, inside):
        """A generator that is made here and consumed here."""
        name, m = self.fresh("g"), self.pick(NUMBERS)
        steps = [line for line in self.block(0, frozenset()) if isinstance(line, str) and "return" not in line]
        declared = "nonlocal x, y, z, n, m, k, items, table"
        body = [declared, ("try:", [*steps, f"got = yield {m}", "log.append(got)", f"yield {m} + 1"]), ("finally:", ["log.append('end')"])]
        uses = [
            f"log.append(list({name}()))",
            f"held = {name}(); log.append(next(held)); log.append(held.send(5)); held.close()",
            f"log.append(sum({name}()) % 7)",
            f"for step in {name}():\n    if step > 2:\n        break",
            f"log.extend({name}())",
        ]
        return [(f"def {name}():", body), self.random.choice(uses)]

    def failure(self, depth, inside):
        """Something that raises, and what is done about it."""
        wrong = self.random.choice(
            [
                "table['missing']",
                "items[99]",
                "1 // (k - k)",
                "box.absent",
                "int('q')",
                "log.append(1, 2)",
                "raise Stopped(n) from KeyError(m)",
                "assert k < 0, 'negative'",
                "first, second = [1]",
                "undefined",
                "next(iter(()))",
                "None + 1",
                "x + torch.ones(17)",
                "x.view(3, 17)",
                "x[99]",
                "assert x.sum() > 1000, 'data'",
            ]
        )
        body = [*self.block(depth, inside)[:1], wrong]
        said = "log.append((type(error).__name__, str(error), type(error.__context__).__name__, type(error.__cause__).__name__))"
        handler = [said, *self.block(depth, inside)[:1]]
        if self.random.random() < 0.3:
            handler.append(("try:", ["raise KeyError('again')"]))
            handler.append(("except KeyError as second:", ["log.append(second.__context__ is error)"]))
        parts = [("try:", body), ("except Exception as error:", handler)]
        if self.random.random() < 0.3:
            parts.append(("finally:", ["log.append('done')"]))
        return parts

    def rare(self):
        a, b = self.pick(TENSORS), self.pick(TENSORS)
        return self.random.choice(
            [
                f"print({self.pick(NUMBERS)}, len(items))",
                f"{self.pick(NUMBERS)} = int({a}.sum().item()) % 5",
                f"{self.pick(NUMBERS)} = {a}.argmax().item()",
                f"{a} = {a} + {b}[{b} > 0].sum()",
                f"{a} = {a} + {b}.sum().clamp(-2, 2).item()",
                f"{a} = {a} + {b}[: {b}.argmax().item() + {self.random.randint(-2, 4)}].sum()",
                f"log.append(({a} > 0).tolist())",
                f"log.append({b}[{b} > 0].shape[0])",
                f"{a} = {a} + len(torch.nonzero({b} > 0))",
                f"if {a}.sum() > 0:\n    {a} = {a} - 1",
                f"{a} = {a}.clone().mul_(0.5)",
                "x.mul_(0.9)",
                f"assert {a}.sum() > {self.random.choice([-1000, 0])}, 'data'",
                f"{a} = {a} * random.random() + random.uniform(1, {self.random.randint(2, 3)})",
                "log.append(random.random())",
                f"log.append(random.randint(0, {self.random.randint(1, 3)}))",
                f"{self.pick(NUMBERS)} = random.randrange(4)",
                "if len(log) > 40:\n    raise Stopped(len(log))",
                f"if {self.condition()}:\n    return {a}, {self.pick(NUMBERS)}",
            ]
        )

    def branch(self, depth, inside):
        parts = [(f"if {self.condition()}:", self.block(depth, inside))]
        if self.random.random() < 0.5:
            parts.append(("else:", self.block(depth, inside)))
        return parts

    def loop(self, depth, inside):
        name = self.fresh("i")
        body = self.block(depth, inside | {"loop"})
        kind = self.random.randrange(4)
        if kind == 0:
            return [(f"for {name} in range({self.random.randint(1, 3)}):", [f"{self.pick(NUMBERS)} = {name}", *body])]
        if kind == 1:
            return [(f"for {name}, held in enumerate(items[:3]):", [f"{self.pick(TENSORS)} = held * {name}", *body])]
        if kind == 2:
            return [(f"for {name}, key in zip(range(3), sorted(table)):", ["log.append(key)", *body])]
        return [f"{name} = 3", (f"while {name} > 0:", [f"{name} -= 1", *body])]

    def attempt(self, depth, inside):
        body = self.block(depth, inside)
        body.insert(self.random.randint(0, len(body)), f"if {self.condition()}:\n    raise Stopped({self.pick(NUMBERS)})")
        parts = [("try:", body), ("except Stopped as stopped:", ["k = stopped.args[0]", *self.block(depth, inside)])]
        if self.random.random() < 0.4:
            parts.append(("finally:", ["log.append('finally')", *self.block(0, inside - {"loop"})]))
        return parts

    def context(self, depth, inside):
        heads = ["with torch.no_grad():", "with Noted(log) as note:", "with Shown(log):", "with torch._C.DisableTorchFunctionSubclass():"]
        return [(self.random.choice(heads), self.block(depth, inside))]

    def function(self, depth, inside):
        name, m = self.fresh("f"), self.pick(NUMBERS)
        declared = "nonlocal x, y, z, n, m, k, items, table"
        # A function gives a tensor whichever way it ends.
        steps = [line for line in self.block(0, frozenset()) if "return" not in line]
        body = [declared, f"{m} = (by + {m}) % 6", *steps, f"return {self.value()}"]
        return [(f"def {name}(by=1):", body), f"{self.pick(TENSORS)} = {name}({self.amount()})", f"{self.pick(TENSORS)} = {name}()"]


class Stopped(Exception):
    """The one exception that programs raise."""


class Box:
    """An object whose attributes, and whose class, differ from call to call."""

    scale = 1

    def __init__(self, **held):
        self.__dict__.update(held)

    def method(self, n):
        return n + self.scale


class Crate(Box):
    def method(self, n):
        return n * 2


class Depot:
    """A class that is met by its name alone, and whose methods differ from call to call."""


def single(n):
    return n + 1


def double(n):
    return n * 2 + 1


class Marked(torch.Tensor):
    """A tensor with a method, whose sums are shifted."""

    def grown(self):
        return self + 1

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result + 0.25 if func is torch.Tensor.sub else result


class Shown(TorchFunctionMode):
    """A mode that notes what it is shown."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


class Count(int):
    def next(self):
        return Count(self + 1)


class Token:
    """An object that is nothing but itself."""


class Ring(collections.deque):
    def __init__(self, items):
        super().__init__(items, maxlen=2)
        self.seen = 0

    def append(self, item):
        self.seen += 1
        super().append(item)


class Groups(collections.defaultdict):
    def put(self, key, item):
        self[key].append(item)


class Stack(list):
    def push(self, item):
        self.append(item)

    def total(self):
        return sum(self)


class Key:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return self.n == other.n


class Pair(tuple):
    def __new__(cls, left, right):
        return super().__new__(cls, (left, right))

    def swapped(self):
        return tuple(reversed(self))


def doubled(x):
    return x * 2


def lowered(x):
    return x - 1


class Noted:
    """A context that says what it saw."""

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return len(self.log)

    def __exit__(self, kind, error, traceback):
        self.log.append(kind.__name__ if kind else "exit")


def render(tree, depth=1):
    lines = []
    for node in tree:
        if isinstance(node, list):
            lines += render(node, depth)
        elif isinstance(node, tuple):
            head, body = node
            lines += ["    " * depth + head, *(render(body, depth + 1) or ["    " * (depth + 1) + "pass"])]
        else:
            lines += ["    " * depth + line for line in node.split("\n")]
    return lines


FRAME = """def program(x, n, items, table, box, pick, ratio, twin, flag, source):
    y, z, m, k, log = x + 1, x * 2, 2, 3, []
{}
    return x, y, z, n, m, k, items, table, log, dict(WORLD)
"""


def generate(seed):
    """The tree of the program of a seed."""
    drawn = random.Random(seed)
    program = Program(drawn)
    return program.block(3, frozenset()) + program.block(2, frozenset())


def stock(rate, closed):
    """Gives the class its method, and an attribute or none; what it has already is left as it is."""
    if getattr(Depot, "rate", None) is not rate:
        Depot.rate = staticmethod(rate)
    if closed and not hasattr(Depot, "closed"):
        Depot.closed = True
    if not closed and hasattr(Depot, "closed"):
        del Depot.closed
    if hasattr(Depot, "level"):
        del Depot.level


def inputs(space, length=3, n=2, **changed):
    """The arguments of a call, and the world around it: what `changed` names differs from the first call."""
    space["SETTING"] = changed.get("setting", 1)
    space["WORLD"].clear()
    space["WORLD"].update(changed.get("world", {"w": 2, "v": 1}))
    space["SEEN"].clear()
    space["SEEN"].update(changed.get("seen", {"z"}))
    space["SHELF"].clear()
    space["SHELF"].update(changed.get("shelf", {"p": 1, "r": 3}))
    scale = changed.get("scale", 1)
    if Box.scale != scale:
        Box.scale = scale
    stock(changed.get("rate", single), changed.get("closed", False))
    x = torch.randn(length, requires_grad=changed.get("grad", False), dtype=changed.get("dtype", torch.float32)).clone()
    items = [torch.ones(length, dtype=x.dtype) for _ in range(changed.get("count", 1))]
    box = changed.get("kind", Box)(**{"a": 2, "other": 0, **changed.get("held", {})})
    if changed.get("own"):
        box.other = box
    box.left = Token()
    box.right = box.left if changed.get("token") else Token()
    twin = items if changed.get("alias") else [1, 2]
    table = dict(changed.get("table", {"a": 1}))
    pick = changed.get("pick", doubled)
    return x, n, items, table, box, pick, changed.get("ratio", 0.5), twin, changed.get("flag"), iter(changed.get("source", [3, 1]))


# What the calls of a session change, one thing each.
CHANGES = (
    {},
    {"length": 4},
    {"n": 5},
    {"n": 0, "grad": True},
    {"setting": 2},
    {"world": {"v": 4}},
    {"world": {"w": 2}},
    {"world": {"w": 2, "v": 1, "u": 0}},
    {"seen": set()},
    {"scale": 3},
    {"dtype": torch.float64},
    {"count": 3},
    {"kind": Crate},
    {"held": {"b": 7}},
    {"held": {"a": 3}},
    {"own": True},
    {"alias": True},
    {"table": {"a": 1, "b": 2}},
    {"table": {"b": 2, "a": 1}},
    {"table": {"a": 2, "t": torch.zeros(3)}},
    {"pick": lowered},
    {"ratio": 1.25},
    {"ratio": 2.0},
    {"flag": True},
    {"flag": False},
    {"flag": 1},
    {"source": []},
    {"source": [4]},
    {"n": 2.0},
    {"shelf": {"r": 3}},
    {"shelf": {"p": 1, "r": 3, "q": 0}},
    {"rate": double},
    {"closed": True},
    {"token": True},
)


def as_case(tree, name):
    space = {"torch": torch, "Stopped": Stopped, "Noted": Noted, "Box": Box, "Crate": Crate, "Stack": Stack, "Key": Key, "Pair": Pair, "Depot": Depot}
    space |= {"Marked": Marked, "Shown": Shown, "Count": Count, "Ring": Ring, "Groups": Groups, "random": random, "heapq": heapq, "re": re}
    space |= {"functools": functools, "itertools": itertools, "collections": collections, "doubled": doubled, "__name__": __name__}
    space |= {"SETTING": 1, "WORLD": {}, "SEEN": set(), "SHELF": {}}
    text = FRAME.format("\n".join(render(tree) or ["    pass"]))
    # Code of other files without a name is taken for a library's, and runs plain.
    exec(compile(text, f"<string> {name}", "exec"), space)
    # The changes that a program is tried with are drawn by its name, so that a session stays short.
    drawn = random.Random(name).sample(CHANGES[1:], 6)
    makers = tuple(functools.partial(inputs, space, **change) for change in ({}, *drawn))
    return text, Case(name, space["program"], makers, (), Message.EXACT, Reuse.FREE)


def judge(tree, name, compiler):
    """Where a program differs from plain Python, or `None`."""
    try:
        _, case = as_case(tree, name)
    except SyntaxError:
        return None
    return harness.check(case, compiler)


def judge_in_a_fork(*asked):
    parting, death = isolation.in_a_fork(functools.partial(judge, *asked), TIME_LIMIT)
    return parting or death


def place(parting):
    """A difference without its numbers: what a shortened program has to keep."""
    return re.sub(r"[-+\d.]+", "#", parting)[:60]


def without_each_statement(tree):
    """Every tree that is one statement, or one block around statements, smaller."""
    for at, node in enumerate(tree):
        yield tree[:at] + tree[at + 1 :]
        if isinstance(node, list):
            yield tree[:at] + node + tree[at + 1 :]
            for smaller in without_each_statement(node):
                yield tree[:at] + [smaller] + tree[at + 1 :]
        elif isinstance(node, tuple):
            head, body = node
            yield tree[:at] + body + tree[at + 1 :]
            for smaller in without_each_statement(body):
                yield tree[:at] + [(head, smaller)] + tree[at + 1 :]


def shorten(tree, name, compiler, parting):
    while True:
        for smaller in without_each_statement(tree):
            found = judge_in_a_fork(smaller, name, compiler)
            if found and place(found) == place(parting):
                tree = smaller
                break
        else:
            return tree


def missed(kind, compiler, seeds):
    """How many programs it takes to notice that guards of a kind are left out; the exit code says whether it was noticed."""
    # What the children need is imported once.
    compiler.reset()
    compiler.package._native.drop_guards(kind)
    for start in range(0, len(seeds), 50):
        some = seeds[start : start + 50]
        child = isolation.Fork([functools.partial(judge, generate(seed), f"random {seed}", compiler) for seed in some])
        for seed in some:
            told, death = child.answer(SHORT_LIMIT)
            parting, failure = told or (None, death)
            if parting or failure:
                with contextlib.suppress(ProcessLookupError, TypeError):
                    os.kill(child.child, signal.SIGKILL)
                child.end()
                print(f"{kind}: noticed by program {seed - seeds[0] + 1}: {(parting or failure)[:200]}")
                return 0
        child.end()
    print(f"{kind}: not noticed by {len(seeds)} programs")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", choices=harness.COMPILERS, default="pyrite")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drop", help="leave out the guards of this kind and stop at the first program that differs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    isolation.prepare()
    compiler = harness.COMPILERS[options.compiler]()
    if options.drop:
        return missed(options.drop, compiler, range(options.seed, options.seed + options.count))
    seeds = range(options.seed, options.seed + options.count)
    asked = [(generate(seed), f"random {seed}", compiler) for seed in seeds]
    answers = isolation.together([functools.partial(judge, *one) for one in asked], TIME_LIMIT)
    wrong = 0
    for seed, (tree, name, _), (parting, death) in zip(seeds, asked, answers, strict=True):
        parting = parting or death
        if parting:
            wrong += 1
            text, _ = as_case(shorten(tree, name, compiler, parting), name)
            print(f"seed {seed}: {parting[:300]}\n{text}", flush=True)
    print(f"{wrong} of {options.count} random programs differ from plain Python")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
