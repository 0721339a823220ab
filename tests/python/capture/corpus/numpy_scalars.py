"""What functions of numpy pick and compute without dimensions: numbers of numpy's own classes, not arrays."""

import numpy as np
from capture.cases import case, t


def floats():
    return t(3), np.arange(6, dtype=np.float32).reshape(2, 3)


def integers():
    return t(3), np.arange(6).reshape(2, 3)


@case(floats, integers)
def classes_of_picked_and_computed_numbers(x, a):
    numbers = [a[0, 0], a[1][2], a.sum(), a.mean(), a.max(), a[0, 0] * 2, a[0, 0] + a[1, 1], np.sin(a[0, 1]), a[0] @ a[1], a.sum() == 15, np.sum(a)]
    return x + 1, [type(number).__name__ for number in numbers], type(a[0]).__name__, a[0, 0].__class__.__name__


@case(floats, integers)
def what_picked_numbers_are_instances_of(x, a):
    number = a[0, 0]
    classes = (np.ndarray, np.generic, np.number, np.floating, np.integer, np.float32, float, int)
    return x + 1, [isinstance(number, each) for each in classes], [isinstance(a, each) for each in classes], type(number) is type(a), type(number) == np.float32


@case(floats, integers)
def promoted_numbers(x, a):
    number = a[1, 1]
    made = [number * 2, number * 2.5, 2.5 + number, number / 3, number + np.float64(1), a.sum() / 3, -number, abs(number), (a * number)[0, 1]]
    return x + 1, made, [type(each).__name__ for each in made]


@case(floats, integers)
def texts_of_picked_numbers(x, a):
    return x + 1, repr(a[1, 1]), str(a.sum()), f"{a[0, 1]:.2f}", "%s" % a[1, 1]


@case(floats, integers)
def arrays_without_dimensions(x, a):
    made = [np.array(3.0), np.asarray(a[0, 0]), np.zeros(()), np.full((), 2), np.reshape(a[0, :1], ()), np.copy(a[0, 0]), np.ones_like(a[0, 0])]
    return x + 1, made, [type(each).__name__ for each in made]


@case(floats, integers)
def arrays_that_lose_their_dimensions(x, a):
    made = [a[0, :1].reshape(()), a[:1, :1].squeeze(), np.squeeze(a[:1, :1]), a[0, ..., 0]]
    return x + 1, made, [type(each).__name__ for each in made]


@case(lambda: (t(3), np.array(2.0)), lambda: (t(3), np.array(3.0)))
def an_array_from_outside_without_dimensions(x, a):
    return x + 1, type(a).__name__, type(a * 2).__name__, isinstance(a, np.ndarray), a, type(a[()]).__name__
