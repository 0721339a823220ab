"""Functions that keep their results (`functools.lru_cache`), called with sizes, lists and what changes; classes that know those derived from them."""

import functools

import torch

from capture.cases import Reuse, case, t

CALLS = []


@functools.lru_cache(maxsize=None)
def halves(shape):
    return tuple(size // 2 for size in shape)


@functools.lru_cache(maxsize=None)
def noted(size):
    CALLS.append(size)
    return size * 2


@functools.lru_cache(maxsize=None)
def registry_for(size):
    return {"seen": 0}


class Recipe:
    def __init__(self, factor):
        self.factor = factor


@functools.lru_cache(maxsize=None)
def recipe_for(pattern, axes):
    return Recipe(len(pattern) + len(axes))


@functools.lru_cache(maxsize=None)
def shaped_by(recipe, shape):
    return (shape[0] * shape[1], recipe.factor)


@case(lambda: (t(4, 6),))
def kept_by_a_shape(x):
    return x.reshape(-1)[: halves(x.shape)[1]] + halves(x.shape)[0]


@case(lambda: (t(4, 6),), lambda: (t(8, 6),), lambda: (t(10, 6),))
def kept_by_a_size(x):
    return x + halves((x.shape[0], 6))[0]


@case(lambda: (t(4, 6),))
def kept_by_what_was_kept(x):
    recipe = recipe_for("a b -> (a b)", ("a", "b"))
    count, factor = shaped_by(recipe, x.shape)
    return x.reshape(count) * factor, recipe is recipe_for("a b -> (a b)", ("a", "b"))


@case(lambda: (t(4),), lambda: (t(6),), lambda: (t(4),), watch=("CALLS", "noted"))
def kept_with_an_effect(x):
    return x * noted(x.shape[0])


@case(lambda: (t(4),), lambda: (t(6),), lambda: (t(9),), lambda: (t(9),), watch=("registry_for",), reuse=Reuse.FREE)
def kept_and_written(x):
    registry = registry_for(x.shape[0])
    registry["seen"] += 1
    return x * registry["seen"]


@case(lambda: (t(3),))
def kept_by_what_has_no_hash(x):
    try:
        return x + halves([2, 4])[0]
    except TypeError as error:
        return x - len(str(error))


class Base:
    weight = 1


class Left(Base):
    weight = 2


class Right(Base):
    weight = 3


class Below(Left):
    weight = 5


@case(lambda: (t(3),))
def classes_derived_from_one(x):
    found, waiting = [], Base.__subclasses__()
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        found.append(each.weight)
    return x * sum(found), found


@case(lambda: (t(3),))
def a_list_of_derived_classes_is_new(x):
    classes = Base.__subclasses__()
    classes.clear()
    return x + len(Base.__subclasses__()), torch.Size(x.shape), classes


@case(lambda: (t(3),))
def kept_by_a_function_that_raises(x):
    calls = []

    @functools.lru_cache(4)
    def refused(number):
        calls.append(number)
        raise TypeError("refused")

    try:
        refused(1)
    except TypeError:
        pass
    print("break")
    return x + len(calls), len(calls)


SETTING = [1]


@functools.lru_cache
def setting():
    return SETTING[0]


def forgotten(value):
    """Arguments made after a setting has changed and the cache was emptied."""

    def make():
        SETTING[0] = value
        setting.cache_clear()
        return (t(3),)

    return make


@case(forgotten(1), forgotten(2), forgotten(1), reuse=Reuse.FREE)
def kept_until_it_is_forgotten(x):
    return x * setting()


class Counter:
    def __init__(self):
        self.count = 1

    @functools.lru_cache
    def seen(self):
        return self.count


@case(lambda: (Counter(), t(3)), reuse=Reuse.FREE)
def kept_of_an_object_that_has_changed(counter, x):
    counter.count += 1
    return x + counter.seen()
