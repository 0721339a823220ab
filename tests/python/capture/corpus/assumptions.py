"""What is assumed of the world between two calls: each case changes one thing that an earlier call has seen."""

import collections
import functools
import inspect
import sys
import types

import torch
from capture import cases
from capture.cases import Reuse, case, t


class Box:
    def __init__(self, **held):
        self.__dict__.update(held)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, **held):
        for name, value in held.items():
            setattr(self, name, value)


class Flexible(type):
    accepted = (int,)

    def __instancecheck__(cls, value):
        return type(value) in cls.accepted

    def __subclasscheck__(cls, value):
        return value in cls.accepted


class Kind(metaclass=Flexible):
    pass


class Sub(collections.namedtuple("Sub", "a b")):
    pass


def accept(*classes):
    Flexible.accepted = classes
    return t(3)


def with_defaults(*defaults):
    def f(x, a=1, b=2):
        return x * a + b

    f.__defaults__ = defaults
    return f


def with_keyword_default(value):
    def f(x, *, scale=1):
        return x * scale

    f.__kwdefaults__ = {"scale": value}
    return f


def closing_over(value):
    def f(x):
        return x * value

    return f


def marked(x, **attributes):
    for name, value in attributes.items():
        setattr(x, name, value)
    return x


def ordered(*names):
    return collections.OrderedDict((name, place) for place, name in enumerate(names))


def moved(name):
    d = ordered("a", "b", "c")
    d.move_to_end(name)
    return d


def sub(**attributes):
    s = Sub(1, 2)
    for name, value in attributes.items():
        setattr(s, name, value)
    return s


SETTING = 1
TABLE = {"k": 1}
SWITCH = Box(on=True)


def setting(value):
    global SETTING
    SETTING = value
    return t(3)


def table(**held):
    TABLE.clear()
    TABLE.update(held)
    return t(3)


def switch(**held):
    SWITCH.__dict__.clear()
    SWITCH.__dict__.update(held)
    return t(3)


def deterministic(on):
    torch.use_deterministic_algorithms(on)
    return t(3)


def remembered(value):
    cases.remember(value)
    return t(3)


def recursion(limit):
    sys.setrecursionlimit(limit)
    return t(3)


@case(lambda: (t(3),), lambda: (t(4),), lambda: (t(5),), lambda: (t(6),))
def branch_on_a_size_before_a_break(x):
    k = 1 if x.shape[0] > 4 else 0
    print(k)
    return x.sum() * 0 + k


@case(lambda: (t(2), 2), lambda: (t(3), 3), lambda: (t(4), 5), lambda: (t(5), 9))
def loop_on_a_size_before_a_break(x, n):
    total = 0
    for i in range(x.shape[0]):
        if i < n:
            total += i
    print(total)
    return x + total


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), 12))
def number_compared_before_a_break(x, n):
    small = n < 5
    print("between")
    return x * (2 if small else 3)


@case(lambda: (t(3), 1.5), lambda: (t(3), 2.5), lambda: (t(3), 3.5), lambda: (t(3), -1.0))
def float_compared_before_a_break(x, v):
    sign = 1 if v > 2 else -1
    print("between")
    return x * sign


@case(lambda: (t(3), moved("a")), lambda: (t(3), moved("b")), lambda: (t(3), ordered("a", "b", "c")))
def order_of_an_ordered_dict(x, d):
    return x * next(iter(d.values())), list(d)


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"b": 2, "a": 1}))
def order_of_a_dict(x, d):
    return x * list(d.values())[0], d.popitem()[0]


@case(lambda: (t(3), {"a": 1}), lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"a": 1, "c": 3}))
def one_key_of_a_dict(x, d):
    return x * d["a"]


@case(lambda: (t(3), {"a": 1}), lambda: (t(3), {"a": 1, "b": 2}))
def absence_of_a_key(x, d):
    return x * d.get("b", 5) + ("b" in d)


@case(lambda: (t(3), types.MappingProxyType({"a": 1})), lambda: (t(3), types.MappingProxyType({"a": 2})), lambda: (t(3), types.MappingProxyType({})))
def contents_of_a_proxy(x, p):
    return x * p.get("a", 7) + len(p)


@case(lambda: (t(3), {torch.sin: 1}), lambda: (t(3), {torch.cos: 1}), lambda: (t(3), {}))
def function_in_a_dict(x, d):
    return x + (1 if torch.sin in d else 2)


@case(lambda: (t(3), closing_over(1)), lambda: (t(3), closing_over(2)), reuse=Reuse.FREE)
def cell_of_a_function(x, f):
    return f(x)


@case(lambda: (t(3), with_defaults(1, 2)), lambda: (t(3), with_defaults(3, 4)), lambda: (t(3), with_defaults(5)), reuse=Reuse.FREE)
def defaults_of_a_function(x, f):
    return f(x, 2) if len(f.__defaults__) < 2 else f(x)


@case(lambda: (t(3), with_keyword_default(1)), lambda: (t(3), with_keyword_default(3)), reuse=Reuse.FREE)
def keyword_defaults_of_a_function(x, f):
    return f(x), f.__kwdefaults__["scale"]


@case(lambda: (t(3), with_defaults(1, 2)), lambda: (t(3), with_defaults(3, 4)), reuse=Reuse.FREE)
def signature_of_a_function(x, f):
    return x * inspect.signature(f).parameters["a"].default


@case(lambda: (marked(t(3)),), lambda: (marked(t(3), note=2),), lambda: (marked(t(3), note=3),))
def attribute_of_a_tensor(x):
    return x * (x.note if hasattr(x, "note") else 1)


@case(lambda: (t(3), Box(a=1)), lambda: (t(3), Box(a=1, b=2)), lambda: (t(3), Box(b=2)))
def attributes_of_an_object(x, box):
    return x * getattr(box, "a", 10) + getattr(box, "b", 20), hasattr(box, "b"), sorted(box.__dict__)


@case(lambda: (t(3), Slotted(a=1)), lambda: (t(3), Slotted(a=1, b=2)), lambda: (t(3), Slotted(b=2)))
def slots_of_an_object(x, s):
    return x * getattr(s, "a", 10) + getattr(s, "b", 20), hasattr(s, "b")


@case(lambda: (t(3), sub()), lambda: (t(3), sub(note=4)))
def attribute_of_a_named_tuple(x, s):
    return x * s.a + (s.note if hasattr(s, "note") else 0)


@case(lambda: (accept(int), 1), lambda: (accept(str), 1), lambda: (accept(int, str), 1), reuse=Reuse.FREE)
def instance_check_of_a_metaclass(x, value):
    return x * (2 if isinstance(value, Kind) else 3), issubclass(int, Kind)


@case(lambda: (setting(1),), lambda: (setting(2),), lambda: (setting("s"),), lambda: (setting(None),), reuse=Reuse.FREE)
def global_of_the_module(x):
    return x * 2, SETTING, SETTING == 2


@case(lambda: (table(k=1),), lambda: (table(k=2),), lambda: (table(k=2, j=3),), lambda: (table(),))
def global_dict(x):
    return x * TABLE.get("k", 9) + len(TABLE)


@case(lambda: (switch(on=True),), lambda: (switch(on=False),), lambda: (switch(),), lambda: (switch(on=1),))
def global_object(x):
    return (x + 1 if getattr(SWITCH, "on", None) else x - 1), getattr(SWITCH, "on", None) is True


@case(lambda: (deterministic(False),), lambda: (deterministic(True),), lambda: (deterministic(False),))
def deterministic_algorithms(x):
    return x * (2 if torch.are_deterministic_algorithms_enabled() else 3)


@case(lambda: (remembered(1),), lambda: (remembered(2),), lambda: (remembered(None),))
def global_of_another_module(x):
    return x * (cases.REMEMBERED or 5)


@case(lambda: (recursion(5000),), lambda: (recursion(6000),))
def recursion_limit(x):
    return x * sys.getrecursionlimit()


@case(lambda: (t(3), [1, 2]), lambda: (t(3), [1, 2, 3]), lambda: (t(3), []), lambda: (t(3), [2, 1]))
def items_of_a_list(x, items):
    return x * sum(items) + len(items), items == [1, 2], items[:1]


@case(lambda: (t(3), {1, 2}), lambda: (t(3), {1, 3}), lambda: (t(3), set()))
def members_of_a_set(x, s):
    return x * len(s), 2 in s


@case(lambda: (t(3), frozenset({1})), lambda: (t(3), frozenset({1, 2})))
def members_of_a_frozenset(x, s):
    return x * len(s | {5})


@case(lambda: (t(3), collections.deque([1, 2], maxlen=3)), lambda: (t(3), collections.deque([1, 2], maxlen=2)), lambda: (t(3), collections.deque([1, 2])))
def length_limit_of_a_deque(x, d):
    d.append(3)
    return x * d[0] + len(d)


@case(lambda: (t(3), collections.defaultdict(int)), lambda: (t(3), collections.defaultdict(list)), lambda: (t(3), collections.defaultdict(None, a=1)))
def factory_of_a_defaultdict(x, d):
    try:
        return x * 2, d["z"]
    except KeyError:
        return x * 3


@case(lambda: (t(3), 1), lambda: (t(3), 1.0), lambda: (t(3), True), lambda: (t(3), "1"), lambda: (t(3), None))
def type_of_a_value(x, v):
    return x * 2, type(v).__name__, v == 1, isinstance(v, int)


@case(lambda: (t(3), "a"), lambda: (t(3), "b"), lambda: (t(3), b"a"))
def text(x, s):
    return x * len(s), s == "a", f"{s!r:>6}"


@case(lambda: (lambda y: (y, y))(t(3)), lambda: (t(3), t(3)), lambda: (lambda y: (y, y[:]))(t(3)))
def two_arguments_are_one(x, y):
    x.add_(1)
    return x * y, x is y


@case(lambda: (t(3), (lambda a: [a, a])([1])), lambda: (t(3), [[1], [1]]))
def two_items_are_one(x, rows):
    rows[0].append(2)
    return x * len(rows[1]), rows[0] is rows[1]


@case(lambda: (t(3),), lambda: (t(3, grad=True),), lambda: (t(3).double(),), lambda: (t(1, 3),))
def kind_of_a_tensor(x):
    return x * 2, x.requires_grad, x.dtype == torch.float64, x.dim()


@case(lambda: (t(3), functools.partial(torch.mul, other=2)), lambda: (t(3), functools.partial(torch.mul, other=3)), lambda: (t(3), functools.partial(torch.add, other=3)))
def parts_of_a_partial(x, p):
    return p(x), p.keywords["other"]


@case(lambda: (t(3), iter([1, 2, 3])), lambda: (t(3), iter([1])), lambda: (t(3), iter([])))
def rest_of_an_iterator(x, it):
    return x * next(it, 7), list(it)


@case(lambda: (t(3), [1, 2]))
def extended_by_a_generator_that_raises(x, items):
    def g():
        yield 3
        yield len(items)
        raise ValueError("stop")

    try:
        items.extend(g())
    except ValueError:
        pass
    try:
        items += g()
    except ValueError:
        pass
    return x * len(items), items


@case(lambda: (t(3), {"a": 1}, {1}, collections.deque([1])))
def updated_by_a_generator_that_raises(x, d, s, q):
    def pairs():
        yield "b", 2
        yield "n", len(d)
        raise ValueError

    def singles():
        yield 7
        yield len(s) + 10
        raise ValueError

    for change in (lambda: d.update(pairs()), lambda: s.update(singles()), lambda: q.extendleft(singles()), lambda: q.extend(singles())):
        try:
            change()
        except ValueError:
            pass
    return x * 2, d, s, q


@case(lambda: (t(2, 3),), lambda: (t(4, 3),), lambda: (t(5, 3),))
def text_of_a_size(x):
    return x * 2, "{}".format(x.shape[-2:]), f"{x.shape}", str(x.shape[0]), "%s" % (x.size(0),), repr(tuple(x.shape)), f"{x.shape[0]:03d}"


class FloatBool:
    def __bool__(self):
        return 1.0


class NegativeLength:
    def __len__(self):
        return -1


class TextHash:
    def __hash__(self):
        return "h"


class NoIterator:
    def __iter__(self):
        return 5


class NumberText:
    def __str__(self):
        return 5

    def __repr__(self):
        return None


class StaticSuper:
    @staticmethod
    def f():
        return super().f()


class FloatIndex:
    def __index__(self):
        return 1.0


@case(lambda: (t(3),))
def special_methods_that_are_wrong(x):
    out = []
    wrong = (
        lambda: bool(FloatBool()),
        lambda: len(NegativeLength()),
        lambda: hash(TextHash()),
        lambda: {TextHash(): 1},
        lambda: list(NoIterator()),
        lambda: str(NumberText()),
        lambda: repr(NumberText()),
        lambda: StaticSuper.f(),
        lambda: [1, 2][FloatIndex()],
        lambda: 1 if FloatBool() else 2,
        lambda: not NegativeLength(),
    )
    for each in wrong:
        try:
            out.append(each())
        except Exception as error:
            out.append((type(error).__name__, str(error)))
    return x * len(out), out


@case(lambda: (t(3),))
def contexts_across_frames(x):
    def inner():
        raise KeyError("inner")

    def middle():
        try:
            inner()
        finally:
            [][0]

    try:
        middle()
    except IndexError as error:
        first = error
    try:
        try:
            middle()
        except IndexError:
            inner()
    except KeyError as error:
        second = error
    return x * 2, first, second, type(first.__context__).__name__, type(second.__context__.__context__).__name__


@case(lambda: (t(3),))
def function_that_names_itself_returned(x):
    def f(n, depth=0):
        f.last = depth
        return x if n == 0 else f(n - 1, depth + 1)

    y = f(2)
    return y * 2, f, f.last
