"""Dictionaries and their kin: views, order, defaults, counters, chains, weak references, sets, deques."""

import collections
import types
import weakref

import torch
from capture.cases import Reuse, case, t

TABLE = {"a": 1, "b": 2, "c": 3}
PROXY = types.MappingProxyType(TABLE)


class Key:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return isinstance(other, Key) and self.n == other.n


class Node:
    pass


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"b": 2, "a": 1}), lambda: (t(3), {"a": 1}))
def views(x, d):
    keys, values, items = d.keys(), d.values(), d.items()
    d["z"] = 9
    return x * len(keys), list(values), ("a", 1) in items, 9 in values, list(items)[0]


@case(lambda: (t(3),))
def view_algebra(x):
    a, b = {"p": 1, "q": 2}, {"q": 2, "r": 3}
    return x * len(a.keys() & b.keys()), sorted(a.keys() | b.keys()), sorted(a.keys() - b.keys()), a.items() & b.items(), a.keys() ^ b.keys() == {"p", "r"}, a.keys() <= {"p", "q"}


@case(lambda: (t(3), {"a": 1}))
def views_returned(x, d):
    return x + 1, d.keys(), d.items(), d.values()


@case(lambda: (t(3),))
def views_reversed(x):
    d = {"a": 1, "b": 2}
    return x * 2, list(reversed(d)), list(reversed(d.values())), list(reversed(d.items())), d.keys().isdisjoint({"c"}), d.keys().mapping["a"]


@case(lambda: (t(3),))
def dict_methods(x):
    d = dict(a=1, b=2)
    d.setdefault("c", []).append(x)
    popped = d.pop("a"), d.pop("zz", None), d.popitem()
    d |= {"q": 4}
    e = d | {"b": 3}
    f = dict.fromkeys(["u", "v"], 0)
    f.update([("u", 1)], w=2)
    g = e.copy()
    e.clear()
    return popped, d, e, f, g, d == {"b": 2, "q": 4}, "b" in d, dict(zip("ab", (1, 2))), dict([("k", x)])


@case(lambda: (t(3), {1: "a", (1, 2): "b", 2.5: "c", None: "d", torch.float32: "e"}))
def keys_of_many_kinds(x, d):
    return x + len(d[1] + d[(1, 2)] + d[2.5] + d[None] + d[torch.float32]), d.get(True), d.get(1.0)


@case(lambda: (t(3), Key(1)))
def keys_with_their_own_hash(x, k):
    d = {k: 2, Key(2): 3}
    return x * d[Key(1)] + d[Key(2)], Key(3) in d, {Key(1), Key(1)} == {k}


@case(lambda: (t(3), t(3)))
def tensors_as_keys(x, y):
    d = {x: 1, y: 2}
    return x * d[x] + y * d[y], y in d, len({x, y, x})


@case(lambda: (t(3),))
def modules_as_keys(x):
    m, n = torch.nn.ReLU(), torch.nn.Tanh()
    d = {m: 1, n: 2}
    return m(x) * d[m] + n(x) * d[n]


@case(lambda: (t(3),), watch=("TABLE",))
def global_dict(x):
    TABLE["d"] = 4
    del TABLE["a"]
    return x * TABLE["b"] + len(TABLE)


@case(lambda: (t(3),))
def proxy(x):
    return x * PROXY["b"], list(PROXY), "z" in PROXY, PROXY.get("q", 5), len(PROXY)


@case(lambda: (t(3),))
def proxy_made(x):
    p = types.MappingProxyType({"a": x})
    return p["a"] + 1, len(p)


@case(lambda: (t(3), collections.defaultdict(list)))
def defaultdict_from_outside(x, d):
    d["a"].append(x)
    d["b"]
    return x + len(d), d["a"][0]


@case(lambda: (t(3),))
def defaultdict_made(x):
    d = collections.defaultdict(lambda: x + 1)
    counts = collections.defaultdict(int)
    for letter in "aab":
        counts[letter] += 1
    return d["q"] * counts["a"], d.default_factory is not None, counts, "zz" in d


@case(lambda: (t(3), collections.OrderedDict(a=1, b=2)))
def ordered(x, d):
    d.move_to_end("a")
    d["c"] = x
    first = d.popitem(last=False)
    return x * 2, first, list(d), d == collections.OrderedDict([("a", 1), ("c", x)])


@case(lambda: (t(3),))
def ordered_equality(x):
    a, b = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)
    return x * 2, a == b, a == {"b": 2, "a": 1}, list(reversed(a))


@case(lambda: (t(3),))
def counters(x):
    c = collections.Counter("abca")
    c.update("aa")
    c["z"] -= 1
    return x * c["a"], c.most_common(1), c["nothing"], sorted(c.elements()), c.total(), collections.Counter(a=1) + collections.Counter(a=2)


@case(lambda: (t(3), collections.Counter("ab")))
def counter_from_outside(x, c):
    c.subtract("a")
    return x * (c["b"] + 1), +c


@case(lambda: (t(3),))
def chain_map(x):
    c = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    c["n"] = 4
    return x * c["a"] + c["b"], list(c), c.maps[0], "b" in c, c.new_child()["a"], len(c)


@case(lambda: (t(3), collections.ChainMap({"a": 1}, {"b": 2})))
def chain_map_from_outside(x, c):
    return x * c["a"] + c.get("b", 0), dict(c)


@case(lambda: (t(3),))
def deques(x):
    d = collections.deque([1, 2, 3], maxlen=3)
    d.append(4)
    d.appendleft(0)
    d.rotate(1)
    d.extend([7])
    d.extendleft([8])
    left, right = d.popleft(), d.pop()
    return x * left + right, list(d), d.maxlen, d.index(0), d.count(9), 2 in d, list(reversed(d)), len(d.copy()), d[0]


@case(lambda: (t(3), collections.deque([1, 2])))
def deque_from_outside(x, d):
    d.append(x)
    d.insert(0, 5)
    d.remove(2)
    d.reverse()
    return x + len(d), d


@case(lambda: (t(3),))
def sets(x):
    a, b = {1, 2, 3}, {2, 3, 4}
    c = a.copy()
    c.discard(9)
    c.remove(1)
    c |= {7}
    c &= {2, 7}
    c -= {2}
    c ^= {1}
    return (
        x * len(a | b),
        a & b,
        a - b,
        a ^ b,
        a < {1, 2, 3, 4},
        a >= {1},
        a > b,
        a.issubset(b),
        a.isdisjoint({9}),
        a.union([5], [6]),
        a.intersection([1], {1, 2}),
        a.difference([1], [2]),
        a.symmetric_difference([1, 9]),
        c,
        frozenset(a) == a,
        a == {3, 2, 1},
    )


@case(lambda: (t(3),))
def set_updates(x):
    a = {1, 2, 3}
    a.update([4], {5})
    a.intersection_update([1, 4, 5])
    a.difference_update([1])
    a.symmetric_difference_update([5, 6])
    try:
        a.remove(99)
    except KeyError as error:
        x = x + error.args[0]
    return x, a, {1, 2}.pop() in (1, 2)


@case(lambda: (t(3), {1, 2}), lambda: (t(3), {1, 2, 3}))
def set_from_outside(x, s):
    s.add(5)
    s.discard(1)
    return x * len(s), 2 in s, s


@case(lambda: (t(3), frozenset({1, 2})))
def frozensets(x, s):
    return x * len(s | {3}), s & {1}, {s: 1}[frozenset({2, 1})], s.union([9]), frozenset([1]) < s


@case(lambda: (t(3), Node()), reuse=Reuse.FREE)
def weak_references(x, node):
    r = weakref.ref(node)
    return x * 2, r() is node, r is not None


@case(lambda: (t(3), Node()), reuse=Reuse.FREE)
def weak_key_dictionary(x, node):
    d = weakref.WeakKeyDictionary()
    d[node] = 3
    return x * d[node], len(d)


@case(lambda: (t(3),))
def lists(x):
    a = [3, 1, 2]
    a.insert(1, 9)
    a.remove(1)
    a += (4,)
    a *= 2
    a[1:3] = [0]
    del a[0], a[-1]
    b = a[::-1]
    a.sort()
    return x * len(a), a, b, a.index(2), a.count(4), a < b, [1] + [2], [0] * 3, a.pop(0), a.copy() == a, [[]] * 2, 9 not in a


@case(lambda: (t(3),))
def list_errors(x):
    out = []
    for broken in (lambda: [].pop(), lambda: [1][5], lambda: [1].remove(2), lambda: [1].index(3), lambda: {}["k"], lambda: (1,)[2], lambda: [1] + (2,), lambda: {[]: 1}):
        try:
            broken()
        except Exception as error:
            out.append((type(error).__name__, str(error)))
    return x * len(out), out


@case(lambda: (t(3), [[1, 2], [3]]))
def nested_lists(x, rows):
    rows[0].append(x)
    rows.append(rows[1])
    rows[2].append(4)
    return x * sum(len(row) for row in rows), rows[1] is rows[2], rows


@case(lambda: (t(3),))
def recursive_list(x):
    a = [x]
    a.append(a)
    return a[1][1][0] * 2


@case(lambda: (t(3), {"x": 1}))
def keyword_arguments_from_a_dict(x, d):
    def f(**kwargs):
        kwargs["y"] = 2
        return kwargs

    return x * f(**d)["y"], d, f(**d, z=3)


@case(lambda: (t(3), {f"k{i}": i for i in range(4)}))
def loops_over_dicts(x, d):
    for key, value in d.items():
        if key.endswith("3"):
            x = x * value
    for key in list(d):
        if d[key] % 2:
            del d[key]
    return x, {v: k for k, v in d.items()}


@case(lambda: (t(3), {"a": 1}))
def changed_during_iteration(x, d):
    try:
        for key in d:
            d[key + "b"] = 1
    except RuntimeError as error:
        return x * 2, str(error), len(d)
