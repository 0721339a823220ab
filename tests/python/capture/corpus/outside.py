"""What a frame reads of the outside, and what it may find changed at the next call: every kind of read is guarded."""

import abc
import collections
import enum
import functools
import inspect
import itertools
import sys
import types

import torch
from capture import cases
from capture.cases import case, t

SETTINGS = {"scale": 2}
SENTINEL = object()
OTHER = object()
PROXY = types.MappingProxyType(SETTINGS)


def doubled(x):
    return x * 2


def tripled(x):
    return x * 3


@case(lambda: (t(3),), lambda: (t(4),), lambda: (t(5),), lambda: (t(6),))
def a_branch_on_a_size_before_a_break(x):
    k = 1 if x.shape[0] > 4 else 0
    print()
    return x.sum() * 0 + k


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), 6))
def a_branch_on_a_number_before_a_break(x, n):
    k = "large" if n > 4 else "small"
    print(k)
    return x + len(k)


@case(lambda: (t(3),), lambda: (t(4),), lambda: (t(5),), lambda: (t(6),))
def a_loop_over_a_size_before_a_break(x):
    seen = [n for n in range(x.shape[0])]
    print(seen)
    return x + len(seen)


@case(lambda: (t(3), t(3)), lambda: (t(4), t(5)), lambda: (t(5), t(5)), lambda: (t(6), t(6)))
def two_sizes_that_are_compared_before_a_break(x, y):
    same = x.size(0) == y.size(0)
    print(same)
    return x.sum() + y.sum() + same


@case(lambda: (t(3), [1]), lambda: (t(3), [1, 2]))
def a_list_that_its_own_extension_looks_at(x, items):
    items.extend(len(items) for _ in range(3))
    items += (n + len(items) for n in range(2))
    return x + sum(items), items


@case(lambda: (t(3), {}), lambda: (t(3), {"a": 1}))
def a_dict_that_its_own_update_looks_at(x, table):
    table.update((f"k{n}", len(table)) for n in range(3))
    return x + len(table), table


@case(lambda: (t(3), set()), lambda: (t(3), {1, 2}))
def a_set_that_its_own_update_looks_at(x, seen):
    seen.update(len(seen) + 10 for _ in range(3))
    return x + len(seen), sorted(seen)


@case(lambda: (t(3), collections.deque()), lambda: (t(3), collections.deque([1], 3)))
def a_deque_that_its_own_extension_looks_at(x, queue):
    queue.extend(len(queue) for _ in range(2))
    queue.extendleft(10 + len(queue) for _ in range(3))
    return x + len(queue), queue


@case(lambda: (t(3), []), lambda: (t(3), [0]))
def an_extension_that_raises_in_between(x, items):
    def yielding():
        yield 1
        yield 2
        raise ValueError("no more")

    try:
        items.extend(yielding())
    except ValueError as error:
        return x + len(items), str(error), items


@case(lambda: (t(3),))
def what_is_left_of_an_iterator(x):
    left = iter([1, 2, 3, 4, 5, 6, 7])
    found = 2 in left
    taken = list(itertools.islice(left, 2))
    first = next(left)
    try:
        a, b = left
    except ValueError:
        a = b = None
    return x + first, found, taken, list(left), a, b


@case(lambda: (t(3),))
def effects_of_items_and_of_what_is_done_with_them(x):
    log = []

    def items():
        for n in (3, 1, 2):
            log.append(("item", n))
            yield n

    def key(n):
        log.append(("key", n))
        return -n

    log.append(max(items(), key=key))
    log.append(min(items(), key=key))
    log.append(list(itertools.zip_longest(items(), items())))
    log.append([(n, list(group)) for n, group in itertools.groupby(items())])
    return x, log


@case(lambda: (t(3), collections.OrderedDict(a=1, b=2, c=3)))
def an_ordered_dict_that_is_reordered(x, table):
    table.move_to_end("a")
    table.move_to_end("c", last=False)
    first = table.popitem(last=False)
    try:
        table.move_to_end("missing")
    except KeyError as error:
        return x, list(table), first, error.args


def reordered(*names):
    table = collections.OrderedDict(a=1, b=2, c=3)
    for name in names:
        table.move_to_end(name)
    return table


@case(lambda: (t(3), reordered()), lambda: (t(3), reordered("a")), lambda: (t(3), reordered("a", "b")))
def the_order_of_an_ordered_dict(x, table):
    for place, (name, value) in enumerate(table.items()):
        x = x * place + value
    return x, list(table)


@case(lambda: (t(3), 2), lambda: (t(3), 5))
def the_contents_of_a_proxy(x, scale):
    SETTINGS["scale"] = scale
    return scaled_by_a_proxy(x)


def scaled_by_a_proxy(x):
    print(end="")
    return x * PROXY["scale"] + len(PROXY), "scale" in PROXY, "shift" in PROXY, dict(PROXY)


def proxy(**entries):
    return types.MappingProxyType(entries)


@case(lambda: (t(3), proxy(a=1)), lambda: (t(3), proxy(a=2)), lambda: (t(3), proxy(a=1, b=3)))
def a_proxy_as_an_argument(x, table):
    return x * table["a"] + table.get("b", 0), list(table.items())


@case(lambda: (t(3), {doubled: 1}, doubled), lambda: (t(3), {doubled: 1}, tripled), lambda: (t(3), {tripled: 2}, tripled))
def a_function_in_a_dict(x, table, function):
    return function(x) * (table[function] if function in table else 10), len({doubled, function})


class Plain:
    pass


P, Q = Plain(), Plain()


@case(lambda: (t(3), {P: 1}, P), lambda: (t(3), {P: 1}, Q), lambda: (t(3), {Q: 2}, Q))
def an_object_in_a_dict(x, table, held):
    return x * (table[held] if held in table else 10)


@case(lambda: (t(3), P, Q), lambda: (t(3), P, P))
def objects_that_may_be_one_as_keys(x, a, b):
    return x + len({a: 1, b: 2}) + len({a, b})


def named(**attributes):
    x = t(3)
    for name, value in attributes.items():
        setattr(x, name, value)
    return x


@case(lambda: (named(),), lambda: (named(scale=4),), lambda: (named(scale=5),))
def an_attribute_that_a_tensor_may_have(x):
    return x * x.scale if hasattr(x, "scale") else x + 1


@case(lambda: (t(3), {}), lambda: (t(3), {"scale": 3}))
def an_attribute_that_a_function_may_have(x, attributes):
    doubled.__dict__.clear()
    doubled.__dict__.update(attributes)
    return with_the_attribute_of_a_function(x)


def with_the_attribute_of_a_function(x):
    print(end="")
    return x * getattr(doubled, "scale", 1)


@case(lambda: (t(3), False), lambda: (t(3), True))
def an_attribute_that_a_module_may_have(x, has):
    if has:
        cases.extra_setting = 3
    elif hasattr(cases, "extra_setting"):
        del cases.extra_setting
    return with_the_attribute_of_a_module(x)


def with_the_attribute_of_a_module(x):
    print(end="")
    return x * cases.extra_setting if hasattr(cases, "extra_setting") else x


class Point(collections.namedtuple("Point", "x y")):
    pass


def point(**attributes):
    made = Point(1, 2)
    made.__dict__.update(attributes)
    return made


@case(lambda: (t(3), point()), lambda: (t(3), point(z=5)), lambda: (t(3), point(z=6)))
def an_attribute_of_a_derived_named_tuple(x, p):
    return x * p.x + (p.z if hasattr(p, "z") else p.y)


@case(lambda: (t(3), False), lambda: (t(3), True))
def whether_algorithms_are_deterministic(x, on):
    torch.use_deterministic_algorithms(on)
    try:
        return asked_whether_deterministic(x)
    finally:
        torch.use_deterministic_algorithms(False)


def asked_whether_deterministic(x):
    print(end="")
    return x + 1 if torch.are_deterministic_algorithms_enabled() else x - 1


@case(lambda: (t(3), True), lambda: (t(3), False))
def a_setting_of_a_backend(x, on):
    before = torch.backends.cudnn.enabled, torch.backends.mkldnn.enabled
    torch.backends.cudnn.enabled = on
    try:
        return asked_for_a_backend(x)
    finally:
        torch.backends.cudnn.enabled, _ = before


def asked_for_a_backend(x):
    print(end="")
    return x + 1 if torch.backends.cudnn.enabled else x - 1


@case(lambda: (t(3), 1), lambda: (t(3), 4))
def a_global_of_another_file(x, value):
    cases.remember(value)
    return x * cases.REMEMBERED


class Even(type):
    def __instancecheck__(cls, value):
        return value % 2 == 0

    def __subclasscheck__(cls, other):
        return other is int


class EvenNumber(metaclass=Even):
    pass


@case(lambda: (t(3), 2), lambda: (t(3), 3))
def a_class_that_says_who_its_instances_are(x, n):
    return x + isinstance(n, EvenNumber), issubclass(int, EvenNumber), issubclass(str, (EvenNumber, bytes))


class Square:
    pass


def shape(registers):
    made = abc.ABCMeta("Shape", (), {})
    if registers:
        made.register(Square)
    return made


@case(lambda: (t(3), shape(False)), lambda: (t(3), shape(True)), reuse=cases.Reuse.FREE)
def a_class_that_is_registered(x, made):
    before = isinstance(Square(), made)
    made.register(bool)
    return x + before, isinstance(True, made)


@case(lambda: (t(3), Square()), lambda: (t(3), [1]), lambda: (t(3), {1: 2}), lambda: (t(3), range(2)), lambda: (t(3), "ab"))
def what_an_object_is_to_abstract_classes_and_patterns(x, value):
    match value:
        case [*items]:
            found = ["sequence", items]
        case {**table}:
            found = ["mapping", table]
        case str(text):
            found = ["text", text]
        case _:
            found = ["other"]
    return x, found, isinstance(value, collections.abc.Sized), isinstance(value, collections.abc.Hashable)


@case(lambda: (t(3), SENTINEL), lambda: (t(3), OTHER), lambda: (t(3), None))
def a_sentinel(x, given):
    return x + 1 if given is SENTINEL else x - 1


@case(lambda: (t(2, 3, 4),))
def sizes_as_text(x):
    size = x.shape[-2:]
    return x, "{}".format(size), f"{size}", "%s" % (size,), str(size), format([1, 2]), ascii([1, "é"]), repr((size, [size]))


def with_default(n):
    def function(x, scale=n):
        return x * scale

    return function


@case(lambda: (t(3), with_default(2)), lambda: (t(3), with_default(3)), reuse=cases.Reuse.FREE)
def the_default_in_a_signature(x, function):
    return x * inspect.signature(function).parameters["scale"].default


@case(lambda: (t(3), 1), lambda: (t(3), 2))
def defaults_that_are_replaced(x, n):
    scaled_by_default.__defaults__ = (n,)
    return calling_with_default(x)


def scaled_by_default(x, by=1):
    return x * by


def calling_with_default(x):
    print(end="")
    return scaled_by_default(x)


def one(x):
    return x + 1


def two(x):
    return x + 2


def patched(x):
    return x


@case(lambda: (t(3), one), lambda: (t(3), two))
def code_that_is_replaced(x, function):
    patched.__code__ = function.__code__
    return calling_patched(x)


def calling_patched(x):
    print(end="")
    return patched(x)


class Made:
    scale = 1

    def apply(self, x):
        return x * self.scale


@case(lambda: (t(3), 2), lambda: (t(3), 3), reuse=cases.Reuse.FREE)
def a_class_whose_attribute_is_replaced(x, scale):
    Made.scale = scale
    return made_and_applied(x)


def made_and_applied(x):
    print(end="")
    return Made().apply(x)


def plus(self, x):
    return x + 7


APPLY = Made.apply


@case(lambda: (t(3), APPLY), lambda: (t(3), plus), reuse=cases.Reuse.FREE)
def a_method_that_is_replaced(x, method):
    Made.apply = method
    return made_and_applied(x)


@case(lambda: (t(3),))
def a_function_that_names_itself(x):
    def count(n):
        return 0 if n == 0 else 1 + count(n - 1)

    return x, count, count.__closure__[0].cell_contents is count


class Falsy:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        return self.value

    def __len__(self):
        return self.value

    def __str__(self):
        return self.value

    def __iter__(self):
        return self.value


@case(lambda: (t(3), 0.5), lambda: (t(3), -1), lambda: (t(3), True), lambda: (t(3), "a"))
def special_methods_that_give_something_else(x, value):
    told, odd = [], Falsy(value)
    for ask in (bool, len, str, iter):
        try:
            told.append(type(ask(odd)).__name__)
        except (TypeError, ValueError) as error:
            told.append(f"{type(error).__name__}: {error}")
    return x, told


class Base:
    def name(self):
        return "base"


class Derived(Base):
    @staticmethod
    def named(x):
        return super().name()

    def __init__(self, result=None):
        self.result = result


@case(lambda: (t(3),))
def super_in_a_static_method(x):
    try:
        return x, Derived.named(x)
    except TypeError as error:
        return x + 1, str(error)


class Odd:
    def __init__(self):
        return 3


@case(lambda: (t(3),))
def an_initialisation_that_returns(x):
    try:
        Odd()
    except TypeError as error:
        return x + 1, str(error)


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {}))
def a_dict_that_changes_while_it_is_iterated_over(x, table):
    try:
        for key in table:
            table[key + "c"] = 1
    except RuntimeError as error:
        return x, str(error), table
    return x + 1, table


def set_of(*members):
    made = set()
    for member in members:
        made.add(member)
    return made


@case(lambda: (t(3), set_of(1, 9)), lambda: (t(3), set_of(9, 1)), lambda: (t(3), frozenset(set_of(9, 1))))
def the_order_of_a_set(x, members):
    for place, member in enumerate(members):
        x = x * place + member
    return x


class Counting:
    def __init__(self):
        self.asked = 0

    @property
    def value(self):
        self.asked += 1
        return self.asked


@case(lambda: (t(3), Counting()))
def a_property_is_asked_once(x, counting):
    return x * getattr(counting, "value", 0), hasattr(counting, "value"), counting.asked


if sys.version_info < (3, 13):

    class Registry:
        size = 4

        @classmethod
        @property
        def doubled(cls):
            return cls.size * 2

    @case(lambda: (t(3),))
    def a_property_of_a_class(x):
        return x * Registry.doubled + Registry().doubled


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    @property
    def scale(self):
        return SETTINGS["scale"] * self.value


@case(lambda: (t(3), Color.RED, 2), lambda: (t(3), Color.BLUE, 2), lambda: (t(3), Color.RED, 3))
def a_property_of_a_member(x, color, scale):
    SETTINGS["scale"] = scale
    print(end="")
    return x * color.scale, color.name, Color["RED"] is color


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"a": 1}), lambda: (t(3), {"a": 2, "c": 1}))
def a_dict_of_which_one_key_is_read(x, table):
    return x * table["a"] + ("b" in table)


class Holder:
    def __init__(self):
        self.a = 2


def with_its_dict():
    holder = Holder()
    return t(3), holder, holder.__dict__


@case(with_its_dict)
def an_object_and_its_dict(x, holder, attributes):
    attributes["a"] = 5
    x = x * holder.a
    holder.a = 7
    return x + attributes["a"], attributes


@case(lambda: (t(3), functools.partial(scaled_by_default, by=3)), lambda: (t(3), functools.partial(scaled_by_default, by=4)))
def the_parts_of_a_partial(x, function):
    return function(x), function.func is scaled_by_default, function.args, function.keywords, hasattr(function, "missing")


@case(lambda: (t(3, grad=True),))
def a_write_to_data_after_saving(x):
    y = x * x
    x.data.mul_(2)
    return y


@case(lambda: (t(3), 3, 4), lambda: (t(5), 6, 4))
def symbolic_extremes(x, a, b):
    return x * torch.sym_max(a, b) + torch.sym_min(x.shape[0], b)


@case(lambda: (t(3),))
def whether_tracing_and_modes(x):
    return x + torch._C._is_torch_function_enabled(), torch.jit.is_tracing(), torch.is_inference_mode_enabled()


@case(lambda: (t(3), [1, 2]), lambda: (t(3), [1, 2, 3]))
def a_list_that_grows_while_it_is_iterated_over(x, items):
    for item in items:
        print(item)
        if len(items) < 6:
            items.append(item + 1)
        x = x + item
    return x, items


@case(lambda: (t(3), {"a": 1, "b": 2}))
def a_dict_that_grows_after_a_break(x, table):
    try:
        for key in table:
            print(key)
            table[key + "c"] = 1
    except RuntimeError as error:
        return x, str(error), table
