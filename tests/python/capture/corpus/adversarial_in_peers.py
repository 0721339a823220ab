"""What is easily got wrong without a word: effects in an order, identities, errors half-way, state between calls."""

import contextlib
import dataclasses
import enum
import functools
import itertools
import operator
import threading
import types
import weakref

import torch
from capture.cases import Reuse, case, t

LOG = []
DEPTH = 0


class Loud:
    """Whose every special method leaves a trace."""

    def __init__(self, name, log):
        self.name = name
        self.log = log

    def __repr__(self):
        return f"Loud({self.name})"

    def __bool__(self):
        self.log.append(f"bool {self.name}")
        return self.name != "false"

    def __eq__(self, other):
        self.log.append(f"eq {self.name} {getattr(other, 'name', other)}")
        return self.name == getattr(other, "name", other)

    def __hash__(self):
        self.log.append(f"hash {self.name}")
        return hash(self.name)

    def __lt__(self, other):
        self.log.append(f"lt {self.name} {other.name}")
        return self.name < other.name

    def __add__(self, other):
        self.log.append(f"add {self.name}")
        return NotImplemented

    def __radd__(self, other):
        self.log.append(f"radd {self.name}")
        return Loud(f"{other}+{self.name}", self.log)

    def __len__(self):
        self.log.append(f"len {self.name}")
        return 2

    def __iter__(self):
        self.log.append(f"iter {self.name}")
        return iter("ab")

    def __contains__(self, item):
        self.log.append(f"contains {item}")
        return item == "a"

    def __getitem__(self, key):
        self.log.append(f"getitem {key}")
        return key

    def __call__(self, *args):
        self.log.append(f"call {self.name}")
        return args


@case(lambda: (t(3),))
def order_of_evaluation(x):
    log = []

    def note(v):
        log.append(v)
        return v

    d = {note("k1"): note(1), note("k2"): note(2)}
    items = [0] * 3
    items[note(1)] = note(5)
    result = note(2) + note(3) * note(4)
    f = lambda *a, **k: note(len(a) + len(k))
    f(note("a"), *[note("b")], c=note("c"), **{"d": note("d")})
    note(1) < note(3) < note(2) < note(9)
    d[note("k3")], items[note(0)] = note(7), note(8)
    return x + result, log, d, items


@case(lambda: (t(3),))
def short_circuits(x):
    log = []
    a, b, c = Loud("a", log), Loud("false", log), Loud("c", log)
    found = [a and b, a or b, b or c, b and a, not b, a if b else c]
    if a and not b or c:
        x = x + 1
    any_ = any([b, a, c])
    all_ = all([a, b, c])
    return x, [repr(f) for f in found], any_, all_, log


@case(lambda: (t(3),))
def comparisons_by_objects(x):
    log = []
    a, b = Loud("a", log), Loud("b", log)
    items = [b, a]
    items.sort()
    found = items.index(b)
    counted = items.count("a")
    inside = "b" in items
    same = [a] == [a]
    other = (a,) == (b,)
    low = min(a, b)
    table = {a: 1, b: 2}
    value = table[Loud("b", log)]
    return x + found + counted + value, inside, same, other, low.name, log, [i.name for i in items]


@case(lambda: (t(3),))
def operators_by_objects(x):
    log = []
    a = Loud("a", log)
    b = 1 + a
    try:
        a + 1
    except TypeError as error:
        told = str(error)
    c, d = a
    e = [*a, *a]
    return x + len(a), b.name, told, c, d, e, "a" in a, a[1:2], a[0, ...], a(1), log


@case(lambda: (t(3), [1, 2, 3]))
def errors_half_way(x, items):
    log = []
    try:
        for n in items:
            items.append(n * 10)
            x = x + n
            log.append(n)
            if n == 2:
                raise KeyError(n)
    except KeyError as error:
        log.append(repr(error))
        items.clear()
    else:
        log.append("else")
    return x, items, log


@case(lambda: (t(3),))
def errors_within_handlers(x):
    log = []
    for kind in (ValueError, KeyError, TypeError):
        try:
            try:
                try:
                    raise kind("first")
                except ValueError as error:
                    log.append(("v", error.__context__))
                    raise RuntimeError("second") from error
                except KeyError:
                    log.append("k")
                    raise
                finally:
                    log.append("f")
            except RuntimeError as error:
                log.append((type(error.__cause__).__name__, str(error.__context__)))
                raise TypeError("third")
        except (TypeError, KeyError) as error:
            chain = []
            while error is not None:
                chain.append(type(error).__name__)
                error = error.__context__
            log.append(chain)
    return x + len(log), log


@case(lambda: (t(3),))
def names_of_errors_are_deleted(x):
    error = 1
    try:
        raise ValueError
    except ValueError as error:
        pass
    try:
        error
    except UnboundLocalError as e:
        return x + 1, str(e)


@case(lambda: (t(3),))
def returns_in_finally(x):
    log = []

    def a():
        try:
            raise ValueError
        finally:
            return "swallowed"

    def b():
        for n in range(3):
            try:
                return n
            finally:
                log.append(n)
                continue
        return "end"

    def c():
        try:
            return log.append("value") or "value"
        finally:
            log.append("after")

    return x + 1, a(), b(), c(), log


@case(lambda: (t(3),))
def generators_left_in_the_middle(x):
    log = []

    def worker(name):
        try:
            for n in range(5):
                yield n
        finally:
            log.append(f"left {name}")

    for n in worker("a"):
        if n == 1:
            break
    log.append("after a")
    b = worker("b")
    next(b)
    log.append("begun b")
    b.close()
    log.append("closed b")
    c = worker("c")
    d = list(itertools.islice(c, 2))
    del c
    log.append("deleted c")
    return x + sum(d), log


def closing(log, name):
    try:
        for n in range(5):
            yield n
    finally:
        log.append(f"left {name}")


def begun_and_left(log):
    g = closing(log, "callee")
    return next(g) + 1


def begun_and_raises(log):
    g = closing(log, "raises")
    next(g)
    raise KeyError("k")


@case(lambda: (t(3),))
def generators_of_variables_that_end(x):
    log = []
    n = begun_and_left(log)
    log.append("returned")
    g = closing(log, "first")
    next(g)
    g = closing(log, "second")
    next(g)
    log.append("stored")
    z = zip(g, "ab")
    next(z)
    del g
    log.append("held")
    z = None
    log.append("let go")
    kept = [closing(log, "in a list"), closing(log, "of two")]
    next(kept[1])
    kept = ()
    log.append("emptied")
    last = closing(log, "last")
    next(last)
    return x + n, log


@case(lambda: (t(3),))
def generators_of_frames_that_raise(x):
    log = []
    try:
        begun_and_raises(log)
    except KeyError:
        log.append("handler")
    log.append("after")
    return x + 1, log


class Hiding:
    e = property(lambda self: self.__dict__.get("e", "none"))


@case(lambda: (t(3),))
def hidden_by_a_descriptor(x):
    h = Hiding()
    h.__dict__["e"] = "hidden"
    try:
        h.e = 1
    except AttributeError as error:
        told = type(error).__name__
    return x + 1, told, h.e


@case(lambda: (t(3),))
def generators_that_delegate(x):
    log = []

    def inner():
        try:
            got = yield "i1"
            log.append(got)
            yield "i2"
        except KeyError as error:
            log.append(f"inner {error!r}")
            yield "i3"
        return "ret"

    def outer():
        result = yield from inner()
        log.append(result)
        yield from [7, 8]
        return "end"

    g = outer()
    seen = [next(g), g.send("s"), g.throw(KeyError("k")), next(g), next(g)]
    try:
        next(g)
    except StopIteration as stop:
        seen.append(stop.value)
    return x + 1, seen, log


@case(lambda: (t(3),))
def generators_that_share(x):
    items = [1, 2, 3]
    g = (n for n in items)
    first = next(g)
    items.append(4)
    a = list(g)
    h = (n * k for n in (1, 2) for k in (n, n + 1) if n + k > 2)
    z = zip(h, h)
    e = enumerate(iter("abc"), 5)
    next(e)
    return x + first, a, list(z), list(e), list(h)


@case(lambda: (t(3),))
def iterators_shared(x):
    it = iter([1, 2, 3, 4, 5])
    pairs = list(zip(it, it))
    rest = list(it)
    it = iter(range(6))
    evens = [a for a in it if next(it, None) is not None]
    m = map(lambda n: n * 2, iter([1, 2, 3]))
    first = next(m)
    f = filter(lambda n: n % 2, iter([1, 2, 3]))
    return x + first, pairs, rest, evens, list(m), list(f), list(f)


@case(lambda: (t(3), [1, 2]))
def aliases_of_lists(x, items):
    other = items
    third = items[:]
    other += [3]
    third = third + [4]
    nested = [[0]] * 2
    nested[0].append(1)
    a = b = []
    a.append(x)
    swapped = [1, 2, 3]
    swapped[0], swapped[-1] = swapped[-1], swapped[0]
    return x + len(items), other is items, third, nested, nested[0] is nested[1], b[0] is x, swapped


@case(lambda: (t(3), (1, [2])))
def tuples_that_hold_lists(x, pair):
    try:
        pair[1] += [3]
    except TypeError as error:
        told = str(error)
    return x + len(pair[1]), pair, told


def with_default(value, seen=[], table={}):
    seen.append(value)
    table[value] = len(seen)
    return list(seen), dict(table)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def mutable_defaults(x):
    with_default.__defaults__[0].clear()
    with_default.__defaults__[1].clear()
    a = with_default(1)
    b = with_default(2)
    return x + len(b[0]), a, b


@case(lambda: (t(3),))
def mutable_defaults_of_local_functions(x):
    def f(v, seen=[]):
        seen.append(v)
        return seen

    a = f(1)
    b = f(2)
    return x + len(a), a is b, f.__defaults__[0] is a


@case(lambda: (t(3),))
def updates_in_order(x):
    d = {"a": 1, "b": 2}
    d.update(b=3, c=4)
    d["a"] = d.pop("a")
    d.setdefault("b", 9)
    e = {**d, "a": 0}
    keys = iter(d)
    first = next(keys)
    d[first] = 100
    try:
        d["new"] = 1
        next(keys)
    except RuntimeError as error:
        told = str(error)
    del d["c"]
    return x + d[first], list(d.items()), list(e.items()), told, d.popitem(), list(reversed(d.items()))


@case(lambda: (t(3),))
def sets_in_order(x):
    s = {3, 1, 2}
    s.discard(1)
    s.add(11)
    s.update([5, 19], (7,))
    s.remove(3)
    f = frozenset(s) | {40}
    popped = s.pop()
    return x + popped, list(s), list(f), sorted(f - s), list({*s, 3}), list(map(str, s))


class Tracked:
    instances = 0

    def __new__(cls, *args, **kwargs):
        made = super().__new__(cls)
        made.args = args
        return made

    def __init__(self, n, log):
        log.append(f"init {n}")
        self.n = n

    def __enter__(self):
        return self.n

    def __exit__(self, kind, error, trace):
        self.left = (kind and kind.__name__, str(error), trace is None)
        return self.n == 2


@case(lambda: (t(3),))
def managers_that_swallow(x):
    log = []
    a, b = Tracked(1, log), Tracked(2, log)
    with a as one:
        with b as two:
            x = x + one + two
            raise ValueError("lost")
        log.append("went on")
    try:
        with a, b, a:
            {}["k"]
        log.append("swallowed")
        with a:
            [][1]
    except IndexError:
        log.append("index")
    return x, log, a.left, b.left, a.args[0]


@contextlib.contextmanager
def counted():
    global DEPTH
    DEPTH += 1
    try:
        yield DEPTH
    finally:
        DEPTH -= 1


@case(lambda: (t(3),), watch=("DEPTH",))
def global_depth(x):
    with counted() as a:
        with counted() as b:
            x = x * a + b
    try:
        with counted():
            raise KeyError
    except KeyError:
        x = x + DEPTH
    return x, DEPTH


@case(lambda: (t(3),), watch=("LOG",))
def a_global_log_with_breaks(x):
    LOG.append("begin")
    y = x + 1
    print(len(LOG))
    LOG.append("middle")
    try:
        y = y * 2
        print("again")
        raise ValueError("end")
    except ValueError as error:
        LOG.append(str(error))
    return y, list(LOG)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def attributes_made_by_breaks(x):
    class Holder:
        pass

    h = Holder()
    h.x = x
    h.log = [1]
    print("a")
    h.x = h.x + 1
    h.log.append(2)
    same = h.log
    print("b")
    same.append(3)
    del h.x
    return h.log, hasattr(h, "x"), same is h.log


@case(lambda: (t(3), types.SimpleNamespace(n=1)))
def closures_and_breaks(x, h):
    total = 0

    def bump(k):
        nonlocal total, x
        total += k
        x = x + k
        h.n += total
        return total

    bump(1)
    print("between", total)
    bump(2)
    inner = [lambda: (total, x) for _ in range(2)]
    print("again", h.n)
    bump(3)
    return inner[0]()[0], inner[1]()[1], h.n


@case(lambda: (t(3),))
def loops_with_breaks(x):
    log = []
    for i, c in enumerate("abc"):
        if c == "b":
            print(c)
            continue
        for j in range(3):
            if j == 2:
                break
            x = x + i * j
        else:
            log.append("never")
        log.append((i, c))
    while len(log) < 4:
        log.append(len(log))
        print("while")
    return x, log


@case(lambda: (t(3), t(3)))
def writes_through_views(x, y):
    v = x[1:]
    v.add_(y[:2])
    w = x.view(3, 1)
    w[0, 0] = 5
    z = x * 2
    u = z.unsqueeze(0)
    u.mul_(0)
    a, b, c = x.unbind()
    a.zero_()
    y.t_() if y.dim() == 2 else y.neg_()
    return x, y, z, v, b + c, x[0] is a


@case(lambda: (t(2, 3),))
def what_is_the_same_tensor(x):
    y = x.contiguous()
    z = x.to(torch.float32)
    w = x.expand(2, 3)
    v = x.view(2, 3)
    u = x.detach()
    e = x.float()
    f = torch.as_tensor(x)
    g = x.cpu()
    h = x.reshape(2, 3)
    i = x.type_as(x)
    j = x.squeeze(0)
    k = torch.Tensor.requires_grad_(x, False)
    return [a is x for a in (y, z, w, v, u, e, f, g, h, i, j, k)], [a.data_ptr() == x.data_ptr() for a in (y, w, v, u, h, j)], x + 1


@case(lambda: (t(3, grad=True),))
def gradients_of_views_written(x):
    y = x * 1
    y[0] = 0
    y[1:].mul_(3)
    z = y.clone()
    with torch.no_grad():
        z.add_(1)
    w = z.detach()
    w.mul_(2)
    return y, z, w, y.requires_grad, w.requires_grad, z.grad_fn is None


@case(lambda: (t(3), 2.5, True, None, "s", (1, 2), [3], {4: 5}, {6}, frozenset([7]), b"8", 1j, ..., slice(1, 2), range(3), int, torch.float32))
def arguments_of_every_kind(x, *rest):
    return x + 1, [type(r).__name__ for r in rest], rest, list(map(repr, rest[:6]))


@case(lambda: (t(3), 1), lambda: (t(3), True), lambda: (t(3), 1.0), lambda: (t(3), "1"), lambda: (t(3), None), lambda: (t(3), 1 + 0j))
def kinds_that_are_equal(x, n):
    return x + 1, n == 1, type(n).__name__, {1: "int"}.get(n), n is True, isinstance(n, int), [n].index(n), repr(n)


@case(lambda: (t(3), 0.0), lambda: (t(3), -0.0), lambda: (t(3), float("nan")), lambda: (t(3), float("inf")))
def floats_that_are_special(x, f):
    return x * f, f == 0, str(f), f != f, bool(f), [f] == [f], f < 1, torch.full((2,), f), max(f, 1.0), min(1.0, f)


@case(lambda: (t(3), 2**70), lambda: (t(3), -(2**70)), lambda: (t(3), 2**31))
def integers_that_are_large(x, n):
    return x + (n > 0), n // 3, n % 7, str(n)[:5], n.bit_length(), -n, n == float(n), hash(n) == hash(float(n))


class Flagged(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    AB = A | B


@case(lambda: (t(3), Flagged.A), lambda: (t(3), Flagged.AB), lambda: (t(3), Flagged(0)))
def flags(x, f):
    return x + f.value, (f | Flagged.B).value, Flagged.A in f, bool(f), f.name, [m.name for m in f], f is Flagged.AB, len(f)


@dataclasses.dataclass(eq=True, order=True)
class Rated:
    score: float
    name: str = dataclasses.field(compare=False, default="")
    history: list = dataclasses.field(default_factory=list, compare=False)


@case(lambda: (t(3), [Rated(2.0, "b"), Rated(1.0, "a"), Rated(2.0, "c")]))
def sorting_that_is_stable(x, rated):
    best = max(rated)
    ordered = sorted(rated, reverse=True)
    rated.sort()
    ordered[0].history.append(1)
    return x + best.score, [r.name for r in ordered], [r.name for r in rated], best is ordered[0], Rated(1.0) == rated[0], rated[0] < rated[1]


class Descr:
    def __get__(self, obj, owner):
        return "from descriptor" if obj is not None else self

    # A non-data descriptor: the instance comes first.


class Holds:
    d = Descr()
    e = property(lambda self: self.__dict__.get("e", "prop"))
    f = staticmethod(lambda v: v + 1)
    g = classmethod(lambda cls, v: (cls.__name__, v))
    h = functools.partial(lambda a, b: (a, b), 1)

    def method(self):
        return "method"


@case(lambda: (t(3),))
def who_comes_first(x):
    h = Holds()
    before = h.d
    h.d = "own"
    h.__dict__["e"] = "hidden"
    h.method = lambda: "instance"
    h.__dict__["f"] = lambda v: v + 100
    try:
        h.e = 1
    except AttributeError as error:
        told = type(error).__name__
    return x + h.f(1), before, h.d, h.e, h.method(), Holds.method(h), h.g(2), h.h(3), told, type(Holds.__dict__["f"]).__name__, Holds.d.__class__.__name__


class Parent:
    def who(self):
        return "parent"

    @classmethod
    def make(cls):
        return cls()

    @property
    def prop(self):
        return f"parent {self.who()}"

    def __getattr__(self, name):
        if name == "dynamic":
            return "dyn"
        raise AttributeError(name)


class Kid(Parent):
    def who(self):
        return "kid > " + super().who()

    @classmethod
    def make(cls):
        made = super().make()
        made.extra = 1
        return made

    @property
    def prop(self):
        return super().prop + "!"

    def __eq__(self, other):
        return True

    __hash__ = None


@case(lambda: (t(3),))
def inheritance(x):
    k = Kid.make()
    try:
        hash(k)
    except TypeError as error:
        told = str(error)
    try:
        k.nothing
    except AttributeError as error:
        also = str(error)
    return x + k.extra, k.who(), k.prop, k.dynamic, k == 3, k != 3, told, also, super(Kid, k).who(), isinstance(k, Parent), [b.__name__ for b in Kid.__mro__], hasattr(k, "dynamic"), getattr(k, "absent", "default")


class Local(threading.local):
    shared = []

    def __init__(self, n=0):
        self.n = n

    @property
    def doubled(self):
        return self.n * 2


STATE = Local(3)
PLAIN = threading.local()


@case(lambda: (t(3),))
def state_of_a_thread(x):
    before = hasattr(PLAIN, "depth")
    PLAIN.depth = 1
    PLAIN.items = [x]
    PLAIN.depth += 1
    PLAIN.items.append(2)
    STATE.n += 1
    y = x + PLAIN.depth + STATE.doubled
    print("between")
    STATE.n -= 1
    depth = PLAIN.depth
    del PLAIN.depth
    told = hasattr(PLAIN, "depth"), sorted(vars(PLAIN)), sorted(STATE.__dict__)
    del PLAIN.items
    return y * STATE.doubled + depth, before, told


def in_a_thread(f, *args):
    result = []
    thread = threading.Thread(target=lambda: result.append(f(*args)))
    thread.start()
    thread.join()
    return result[0]


@torch.compiler.disable
def asked_elsewhere():
    return in_a_thread(lambda: (STATE.n, hasattr(PLAIN, "depth")))


@case(lambda: (t(3),))
def state_of_another_thread(x):
    PLAIN.depth = 5
    y = x + PLAIN.depth
    other = asked_elsewhere()
    del PLAIN.depth
    return y, other


@case(lambda: (t(3), weakref.WeakValueDictionary(), Tracked(1, [])), reuse=Reuse.FREE)
def weak_values(x, table, kept):
    table["a"] = kept
    return x + table["a"].n, len(table), "b" in table, list(table.keys())


@case(lambda: (t(3),))
def partials_of_everything(x):
    log = []
    note = functools.partial(log.append)
    note(1)
    p = functools.partial(print, "p", end=".\n")
    p("q")
    pow2 = functools.partial(pow, 2)
    method = functools.partial(Kid.who, Kid())
    tensor = functools.partial(torch.Tensor.add, x, alpha=3)
    nested = functools.partial(functools.partial(lambda a, b, c=0: (a, b, c), 1), 2, c=3)
    return tensor(x), log, pow2(3), method(), nested(), nested.args, nested.keywords, functools.partial(int, base=2)("101")


@case(lambda: (t(3),))
def reductions(x):
    return (
        x + sum([[1], [2]], [])[0],
        functools.reduce(lambda a, b: a + [b], range(3), []),
        sum((n for n in (1, 2)), 10),
        max("abc", key=lambda c: -ord(c)),
        min([(1, "b"), (1, "a")]),
        sorted([True, 0, 2.5]),
        list(itertools.accumulate([1, 2, 3], initial=0)),
        [list(g) for _, g in itertools.groupby([1, 1, 2, 1])],
        list(itertools.combinations("abc", 2)),
        "".join(reversed("abc")),
        all([]),
        any([]),
        list(itertools.takewhile(lambda n: n < 2, [1, 2, 1])),
        dict(zip("ab", itertools.count(1))),
        [*itertools.repeat(0, 2)],
        list(itertools.pairwise([1, 2, 3])),
        operator.itemgetter(*"ab")({"a": 1, "b": 2}),
        divmod(-7, 3),
        round(0.5),
        round(1.5),
        pow(2, -1),
        int("-0b11", 0),
        abs(-0.0),
    )
