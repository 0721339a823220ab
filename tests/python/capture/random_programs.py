"""Random functions, run through the same harness as the corpus: one seed, one function, the same text every time.

Every function takes a tensor, a number, a list and a dict, and changes all four. Statements nest to a small depth; variables are bound before
they are used, numbers stay small, and loops end, so a function returns or raises the one exception that the text itself raises. What differs
from plain Python is therefore a mistake of the compiler.

    python -m capture.random_programs --compiler pyrite --count 500 --seed 0

prints each program that differs, shortened by taking out statements as long as it still differs in the same place.
"""

import argparse
import functools
import logging
import random
import re
import sys
import warnings

import torch
from capture import harness, isolation
from capture.cases import Case, Message, Reuse

TENSORS = ["x", "y", "z"]
NUMBERS = ["n", "m", "k"]
TIME_LIMIT = 30


class Program:
    """The statements of a function as a tree: a line, or a head with a block. Lines are texts without indentation."""

    def __init__(self, random):
        self.random = random
        self.names = 0

    def block(self, depth, inside):
        return [self.statement(depth, inside) for _ in range(self.random.randint(1, 4))]

    def statement(self, depth, inside):
        plain = [self.tensor, self.number, self.container, self.text]
        if "loop" in inside:
            plain.append(lambda: self.random.choice(["if {}:\n    break", "if {}:\n    continue"]).format(self.condition()))
        nested = [self.branch, self.loop, self.attempt, self.context, self.function] if depth else []
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
        return self.random.choice([f"{a} > {b}", f"{a} % 2 == 0", f"len(items) > {a}", f"0 < {a} < 4", "'a' in table", f"not {a}"])

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

    def rare(self):
        a = self.pick(TENSORS)
        return self.random.choice(
            [
                f"print({self.pick(NUMBERS)}, len(items))",
                f"{self.pick(NUMBERS)} = int({a}.sum().item()) % 5",
                f"if {a}.sum() > 0:\n    {a} = {a} - 1",
                f"{a} = {a}.clone().mul_(0.5)",
                "x.mul_(0.9)",
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
        return [(self.random.choice(["with torch.no_grad():", "with Noted(log) as note:"]), self.block(depth, inside))]

    def function(self, depth, inside):
        name, m = self.fresh("f"), self.pick(NUMBERS)
        declared = "nonlocal x, y, z, n, m, k, items, table"
        # A function gives a tensor whichever way it ends.
        steps = [line for line in self.block(0, frozenset()) if "return" not in line]
        body = [declared, f"{m} = (by + {m}) % 6", *steps, f"return {self.value()}"]
        return [(f"def {name}(by=1):", body), f"{self.pick(TENSORS)} = {name}({self.amount()})", f"{self.pick(TENSORS)} = {name}()"]


class Stopped(Exception):
    """The one exception that programs raise."""


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


FRAME = """def program(x, n, items, table):
    y, z, m, k, log = x + 1, x * 2, 2, 3, []
{}
    return x, y, z, n, m, k, items, table, log
"""


def generate(seed):
    """The tree of the program of a seed."""
    drawn = random.Random(seed)
    program = Program(drawn)
    return program.block(3, frozenset()) + program.block(2, frozenset())


def inputs(length, n, wants):
    return torch.randn(length, requires_grad=wants).clone(), n, [torch.ones(length)], {"a": 1}


def as_case(tree, name):
    space = {"torch": torch, "Stopped": Stopped, "Noted": Noted, "__name__": __name__}
    text = FRAME.format("\n".join(render(tree) or ["    pass"]))
    exec(compile(text, f"<{name}>", "exec"), space)
    makers = (lambda: inputs(3, 2, False), lambda: inputs(4, 2, False), lambda: inputs(3, 5, False), lambda: inputs(3, 0, True))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", choices=harness.COMPILERS, default="pyrite")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    isolation.prepare()
    compiler = harness.COMPILERS[options.compiler]()
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
