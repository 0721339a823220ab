"""Methods of lists, dictionaries and texts that are held as objects, attributes of functions, the `__dict__` of classes, calls that fit no function."""

import collections
import threading

import torch
from capture.cases import Reuse, case, t

LOG = []
NOTE = LOG.append
LOCK = threading.Lock()


@case(lambda: (t(3),), reuse=Reuse.FREE)
def method_of_a_list_that_grows(x):
    before = len(LOG)
    NOTE(3)
    return x + 1, len(LOG) - before


@case(lambda: (t(3),))
def method_of_a_global_list(x):
    LOG.clear()
    NOTE(3)
    NOTE(4)
    return x + len(LOG), LOG[-1]


@case(lambda: (t(3), [1, 2]), lambda: (t(3), [3]))
def methods_of_a_local_list(x, items):
    add, take = items.append, items.pop
    add(5)
    return x + take(0), len(items)


@case(lambda: (t(3), [].append), reuse=Reuse.FREE)
def method_given(x, note):
    note(3)
    return x + 1, note.__self__


@case(lambda: (t(3), {"a": 1}.get), reuse=Reuse.FREE)
def method_of_a_dict_given(x, get):
    return x + get("a") + get("b", 3)


@case(lambda: (t(3), [1, 2]))
def method_of_an_argument_twice(x, items):
    add = items.append
    for _ in range(3):
        add(len(items))
    return x + sum(items)


@case(lambda: (t(3),))
def lock_held(x):
    with LOCK:
        x = x + 1
    return x * 2


def counted(x):
    counted.calls = getattr(counted, "calls", 0) + 1
    return x + counted.calls


@case(lambda: (t(3),))
def attribute_of_a_function_set(x):
    counted.calls = 0
    return counted(x) + counted(x), counted.calls, hasattr(counted, "nothing")


@case(lambda: (t(3),), reuse=Reuse.FREE)
def attribute_of_a_function_holds_a_tensor(x):
    counted.last = x + 1
    return counted.last * 2


class Tool:
    size = 3

    def use(self):
        return 1

    @property
    def weight(self):
        return 2


@case(lambda: (t(3),))
def names_of_a_class(x):
    names = sorted(name for name in vars(Tool) if not name.startswith("_"))
    return x + Tool.__dict__["size"], names, "use" in Tool.__dict__, Tool.__dict__.get("nothing"), isinstance(Tool.__dict__["weight"], property)


@case(lambda: (t(3),))
def calls_that_do_not_fit(x):
    def optional(a, b=1):
        return a

    def named(a, *, k=1, m):
        return a

    def nothing():
        return 1

    told = []
    wrong = [lambda: optional(), lambda: optional(1, 2, 3), lambda: named(1, 2, m=1), lambda: named(1), lambda: nothing(1), lambda: nothing(1, 2)]
    for call in [*wrong, lambda: optional(1, c=2), lambda: optional(1, a=2), lambda: dict([1]), lambda: dict([[1, 2, 3]])]:
        try:
            call()
        except (TypeError, ValueError) as error:
            told.append((type(error).__name__, str(error)))
    return x + 1, told


@case(lambda: (t(3),))
def kinds_by_abstract_classes(x):
    kinds = collections.abc
    found = isinstance([], kinds.Sized), isinstance({}, kinds.MutableMapping), isinstance(x, kinds.Mapping), issubclass(list, kinds.Sequence)
    return torch.sin(x), found
