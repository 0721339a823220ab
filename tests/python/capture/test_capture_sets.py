"""The order in which sets are iterated over, which depends on all that was done to them: random histories, compared with plain Python.

    python -m capture.test_capture_sets --count 2000 --seed 0

runs more of them than the tests do.
"""

import argparse
import random

import pytest
import torch
from capture import harness

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")
package = pytest.importorskip("pyrite")

MEMBERS = [0, 1, 2, 3, 8, 16, 24, 31, 33, 40, -1, -2, True, 1.0, 2.5, "a", "b", "key", "", None, (1, 2), (), ("a", 3), b"x", int, len]
SETS = ["a", "b", "s", "t", "u"]


class Program:
    """A function whose statements are chosen at random. `a` and `b` are sets from outside, `f` is a frozen set, `d` a dict."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        # Small integers meet in the table; others are mixed in.
        self.members = self.random.choice([MEMBERS, MEMBERS[:10], list(range(0, 64, 8)), list(range(40))])

    def member(self):
        chosen = self.random.choice(self.members)
        return chosen.__name__ if callable(chosen) else repr(chosen)

    def items(self, most=6):
        return ", ".join(self.member() for _ in range(self.random.randint(0, most)))

    def iterable(self):
        name = self.random.choice(SETS)
        return self.random.choice([
            name, name, name, "f", "d", "d.keys()", f"[{self.items()}]", f"tuple([{self.items()}])", f"iter([{self.items()}])", f"frozenset({name})",
            f"(m for m in [{self.items()}])", f"dict.fromkeys([{self.items(12)}])", "g",
        ])  # fmt: skip

    def expression(self):
        name, other = self.random.choice(SETS), self.random.choice(SETS)
        set_like = self.random.choice([other, other, "f", "g", "d.keys()"])
        return self.random.choice([
            f"set({self.iterable()})",
            f"{name}.copy()",
            f"{name} {self.random.choice('|&-^')} {set_like}",
            f"set(f {self.random.choice('|&-^')} {set_like})",
            f"set(d.keys() {self.random.choice('|&-^')} {set_like})",
            f"{name}.{self.random.choice(['union', 'intersection', 'difference'])}({self.iterable()}, {self.iterable()})",
            f"{name}.{self.random.choice(['union', 'intersection', 'difference', 'symmetric_difference'])}({self.iterable()})",
            f"{{m for m in {name} if m != {self.member()}}}",
            f"{{*{name}, {self.member()}, *{other}}}",
            f"{{{self.member()}, {self.items()}}}",
            "set()",
        ])  # fmt: skip

    def statement(self):
        name, other = self.random.choice(SETS), self.random.choice(SETS)
        local = self.random.choice(["s", "t", "u"])
        return self.random.choice([
            f"{name}.add({self.member()})",
            f"{name}.add({self.member()})",
            f"{name}.discard({self.member()})",
            f"{name}.discard({self.member()})",
            f"for m in [{self.items(12)}]: {name}.add(m)",
            f"for m in [{self.items(12)}]: {name}.discard(m)",
            f"seen.append({name}.pop() if {name} else None)",
            f"seen.append(list({name}))",
            f"seen.append([*{name}, len({other})])",
            f"seen.append(next(iter({name}), None))",
            f"{local} = {self.expression()}",
            f"{local} = {self.expression()}",
            f"{name}.update({self.iterable()})",
            f"{name}.update({self.iterable()}, {self.iterable()})",
            f"{name}.{self.random.choice(['intersection', 'difference', 'symmetric_difference'])}_update({self.iterable()})",
            f"{name} {self.random.choice('|&-^')}= {other}",
            f"{name} {self.random.choice('|&-^')}= f",
            f"if {self.random.randint(0, 9)} == 0: {name}.clear()",
        ])  # fmt: skip

    def text(self):
        lines = [self.statement() for _ in range(self.random.randint(2, 12))]
        lines.insert(self.random.randint(0, len(lines)), "x = x + len(s)")
        if self.random.random() < 0.3:
            lines.insert(self.random.randint(0, len(lines)), "stop()")
        start = [f"s = {{{self.member()}, {self.items()}}}" if self.random.random() < 0.7 else "s = set()", f"t = set([{self.items()}])", "u = set(a)"]
        body = "".join(f"    {line}\n" for line in [*start, *lines])
        return f"def program(x, a, b, d, f, g):\n    seen = []\n{body}    return x, seen, s, t, u, list(u)\n"

    def world(self):
        """What makes the arguments: sets with a history, the same each time it is called."""
        seed = self.random.random()

        def make():
            chosen = random.Random(seed)
            made = []
            for _ in range(2):
                held = set(chosen.choices(self.members, k=chosen.choice([0, 3, 6, 12])))
                for _ in range(chosen.randint(0, 8)):
                    chosen.choice([held.add, held.discard])(chosen.choice(self.members))
                if held and chosen.random() < 0.3:
                    held.pop()
                made.append(held)
            d = dict.fromkeys(chosen.choices(self.members, k=4))
            return *made, d, frozenset(chosen.choices(self.members, k=5)), frozenset(made[0])

        return make


@torch._dynamo.disable
def stop():
    return None


def outcome(function, make):
    """All that can be seen of a call: results in order, what became of the arguments, and what changes make of both afterwards."""
    a, b, d, f, g = make()
    x, seen, *results = function(torch.zeros(2), a, b, d, f, g)
    found = [x.tolist(), seen, [list(result) for result in results], list(a), list(b)]
    for held in [a, b, *(result for result in results if isinstance(result, set))]:
        held.add(64)
        held.discard(8)
        found.append([list(held), held.pop(), list(held), list(held.copy())])
    return repr(found)


def check(seed):
    """Runs a program with three worlds, each twice; returns how many of its graphs there are, or says what differs."""
    program = Program(seed)
    text = program.text()
    namespace = {"stop": stop}
    exec(compile(text, f"<string> set program {seed}", "exec"), namespace)
    plain = namespace["program"]
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    compiled = package.compile(plain, backend=backend)
    for make in [program.world() for _ in range(3)]:
        for _ in range(2):
            wanted, given = outcome(plain, make), outcome(compiled, make)
            assert given == wanted, f"seed {seed}\n{text}\nwith {make()}\nplain    {wanted}\ncaptured {given}"
    return len(graphs)


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_random_sets_keep_the_order_of_plain_python(first):
    package.reset()
    graphs = [check(seed) for seed in range(first, first + 60)]
    # Nearly all programs are captured: one that runs plain shows nothing.
    assert sum(count > 0 for count in graphs) >= 55


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            check(seed)
        except AssertionError as error:
            wrong += 1
            print(error)
        if seed % 100 == 99:
            package.reset()
    print(f"{options.count} programs, {wrong} differ")
