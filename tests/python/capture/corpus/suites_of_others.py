"""What the test suites of other packages found when each of their tests ran inside of a captured frame, reduced."""

import collections
import copy
import types

import torch

from capture.cases import Reuse, case, t


class Answering(type):
    """A class of classes with attributes that it computes."""

    @property
    def kind(cls):
        return "of the metaclass"

    @property
    def replaced(cls):
        return lambda rule: ("of the metaclass", rule)


class Answered(metaclass=Answering):
    kind = "of the class"

    def replaced(self, rule):
        return "of the class"


@case(lambda: (t(3),))
def metaclasses_come_first(x):
    return x, Answered.kind, getattr(Answered, "kind"), Answered.replaced(3), Answered().kind


@case(lambda: ({(1,): 7}, ((1,),), t(3)), lambda: ({(2,): 7}, ((2,),), t(3)), lambda: ({(3,): 7}, ((3,),), t(3)))
def tuples_of_numbers_as_keys(table, keys, x):
    made = {keys[0]: 5}
    (number,) = max(made)
    return x, made.get((number,), 0), (number,) in made, table.get((number,)), len({keys[0], (keys[0][0],)}), {(number,)} & {keys[0]}


@case(lambda: (1, t(3)), lambda: (2, t(3)), lambda: (3, t(3)))
def slices_of_numbers(number, x):
    return x, slice(number, None) == slice(number, None), slice(number) != slice(number + 1)


@case(lambda: (5, t(3)), lambda: (6, t(3)), lambda: (7, t(3)))
def numbers_that_are_computed_again_and_again(number, x):
    a, b = number, 1
    for _ in range(40):
        a, b = (a * b + a) % 7, (a * a - b) // 2
    return x, a, b


class Formatted:
    def __init__(self):
        self.held = [1, 2]

    def __format__(self, specification):
        return f"<{specification}>"

    def __str__(self):
        return "str"

    def __repr__(self):
        return "repr"


class Unformatted:
    def __str__(self):
        return "str"


@case(lambda: (2, t(3)), lambda: (3, t(3)), lambda: (4, t(3)))
def formats_by_fields(number, x):
    one = Formatted()
    return (
        x,
        "{}|{:>4}|{!r}|{!s:>5}|{!a}".format(one, one, one, one, one),
        "{0.held[1]} {0} {name:{width}}".format(one, name=one, width=number),
        "{:04}|{:<4}|{!r:>3}|{:{}}".format(number, number, number, number, number + 3),
        "{{}} {}".format(Unformatted()),
    )


@case(lambda: (2, t(3)), lambda: (3, t(3)), lambda: (4, t(3)))
def formats_that_are_refused(number, x):
    said = []
    for make in (lambda: "{:4}".format(Unformatted()), lambda: "{} {}".format(Formatted()), lambda: "{} {0}".format(Formatted()), lambda: "{0} {}".format(Formatted()), lambda: "{a}".format(b=Formatted())):
        try:
            said.append(make())
        except (TypeError, IndexError, ValueError, KeyError) as error:
            said.append(f"{type(error).__name__}: {error}")
    return x, said


class Iterated:
    """Iteration over other items than those that are held."""

    def __iter__(self):
        return iter("it")


class List(Iterated, list):
    pass


class Tuple(Iterated, tuple):
    pass


class Deque(Iterated, collections.deque):
    pass


class Ordered(Iterated, collections.OrderedDict):
    pass


@case(lambda: (t(3),))
def what_is_held_and_what_is_iterated(x):
    held, pair = List([1, 2]), Tuple((1, 2))
    return (
        x,
        (held == [1, 2], held + [3], [3] + held, held * 2, held.copy(), repr(held), 1 in held, "i" in held, held < [1, 3], list(held), [*held]),
        (pair == (1, 2), pair + (3,), (3,) + pair, pair * 2, 1 in pair, "i" in pair, list(pair)),
        (1 in Deque([1]), "i" in Deque([1])),
        Ordered(a=1) == collections.OrderedDict(a=1),
    )


class Large:
    def __hash__(self):
        return 12345678901234567890123


class Least:
    def __hash__(self):
        return -1


@case(lambda: (t(3),))
def hashes_are_reduced(x):
    return x, hash(Large()), hash(Least())


@case(lambda: (t(3),))
def sums_of_texts(x):
    said = []
    for start in ("", b"", bytearray()):
        try:
            sum([start], start)
        except TypeError as error:
            said.append(str(error))
    return x, said


@case(lambda: ((t(3),) * 2,))
def tensors_in_tuples(pair):
    return pair[0] + pair[1], len({id(each) for each in pair})


@case(lambda: (torch.finfo(torch.float32), t(3)), lambda: (torch.finfo(torch.float64), t(3)))
def limits_of_types(limits, x):
    return x, limits.max, limits.bits, str(limits.dtype)


@case(lambda: (slice(None, [1]), t(3)), lambda: (slice(1, None), t(3)), lambda: (slice(2, 3), t(3)))
def slices_of_anything(part, x):
    return x, part.start, part.step


@case(lambda: (limits_of_types.__code__, t(3)), lambda: (slices_of_anything.__code__, t(3)))
def names_of_code(code, x):
    return x, code.co_name, code.co_argcount


@case(lambda: (list[int], t(3)), lambda: (dict[str, int], t(3)))
def parts_of_generic_classes(alias, x):
    return x, alias.__origin__, alias.__args__


@case(lambda: (memoryview(b"ab"), t(3)), lambda: (memoryview(bytearray(b"abc")), t(3)), reuse=Reuse.FREE)
def sizes_of_views(view, x):
    return x, view.nbytes, view.readonly


@case(lambda: (t(3, grad=True),), lambda: (t(3, grad=True) * 2,), lambda: (t(3, grad=True),))
def leaves_and_others(x):
    return x + 1, x.is_leaf, x.grad_fn is None


@case(lambda: (t(2, 3),), lambda: (t(4, 3)[1:3],), lambda: (t(4, 3)[2:],))
def where_tensors_begin(x):
    return x + 1, x.storage_offset(), x[1:].storage_offset()


class Pile(list):
    pass


class Table(dict):
    pass


@case(lambda: (t(3),), reuse=Reuse.FREE)
def copies_keep_their_class(x):
    made = [Pile([1]), Table(a=1), collections.Counter("aab"), collections.OrderedDict(a=1), [1], {1: 2}]
    copies = [copy.copy(each) for each in made]
    return x + 1, [type(each).__name__ for each in copies], [each == other for each, other in zip(made, copies)]


@case(lambda: (t(3, grad=True),))
def arrays_without_gradients(x):
    b = x + 2
    return b, torch.asarray(b, requires_grad=False), torch.asarray(b)


class Hashed:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        return self.number == other.number


@case(lambda: (t(3),))
def views_of_proxies_and_of_orders(x):
    proxy = types.MappingProxyType({"a": 1})
    ordered = collections.OrderedDict(a=1)
    views = [proxy.items(), proxy.keys(), ordered.keys(), ordered.values()]
    print("break")
    return x, [type(view).__name__ for view in views], [list(view) for view in views]


@case(lambda: (t(3),))
def iterators_over_objects_that_hash(x):
    table, group = {Hashed(1): 1, Hashed(2): 2}, {Hashed(3)}
    keys, pairs, members = iter(table), zip(table), iter(group)
    first = next(keys).number
    print("break")
    return x, first, [key.number for key in keys], [key.number for key, in pairs], [member.number for member in members]


class Named:
    pass


def named_and_empty():
    return Named(), {}, t(3)


def named_and_known():
    named = Named()
    return named, {(named, 1): 5}, t(3)


@case(named_and_empty, named_and_known, named_and_empty, reuse=Reuse.FREE)
def keys_that_hold_objects_are_there_later(named, table, x):
    return x, table.get((named, 1), "missing"), (named, 1) in table


@case(lambda: (t(3), Named()), reuse=Reuse.FREE)
def addresses_that_are_keys_later(x, named):
    table, found = {}, []
    for _ in range(3):
        print("break")
        found.append(id(named) in table)
        table[id(named)] = 1
    return x, found


class Guarded(dict):
    def __setitem__(self, key, value):
        raise TypeError("not supported")

    def setdefault(self, key, value=None):
        raise TypeError("not supported")


def guarded():
    named = Named()
    named.__dict__ = Guarded(held=1)
    return named, t(3)


@case(guarded)
def dictionaries_of_attributes_with_methods_of_their_own(named, x):
    told = []
    for change in (lambda: named.__dict__.setdefault("more", 1), lambda: named.__dict__.__setitem__("more", 1)):
        try:
            change()
        except TypeError as error:
            told.append(str(error))
    named.set = 2
    return x, told, sorted(vars(named).items())


class Choosing:
    def choose(self):
        return 1


CHOOSE = Choosing().choose


@case(lambda: (t(3), Named()))
def methods_that_were_bound_outside(x, named):
    named.choose = CHOOSE
    print("break")
    return x, named.choose is CHOOSE, CHOOSE


def thrown_into():
    try:
        yield 1
    except ValueError as error:
        yield str(error)


@case(lambda: (t(3),))
def exceptions_thrown_in_parts(x):
    steps = thrown_into()
    return x, next(steps), steps.throw(ValueError, "text")


@case(lambda: (t(3), [3, 1, 2]))
def searches_that_end(x, items):
    told = []
    for bounds in ((0, 1), (1, 2), (0, -1), (-1,), (5,), (0, 3)):
        try:
            told.append((items.index(2, *bounds), (3, 1, 2).index(2, *bounds)))
        except ValueError as error:
            told.append(str(error))
    return x, told, {1} in {1, 2}, {1} in {frozenset((1,)), 2}


NUMBERS = [0, -1, -2, 2**61 - 2, 2**61 - 1, 2**61, 2**63 - 1, 2**63, -(2**61), -(2**63), -(2**63) - 1, 2**70]


@case(lambda: (t(3),))
def hashes_that_fill_the_machines_numbers(x):
    hashes = [hash(Hashed(number)) for number in NUMBERS]
    table = {Hashed(number): number for number in NUMBERS}
    return x, hashes, [hash(number) for number in NUMBERS], [table[Hashed(number)] for number in NUMBERS], table


@case(lambda: ({Hashed(number): number for number in NUMBERS}, t(3)))
def keys_whose_hashes_fill_the_machines_numbers(table, x):
    return x, [table.get(Hashed(number)) for number in NUMBERS], Hashed(2**62) in table
