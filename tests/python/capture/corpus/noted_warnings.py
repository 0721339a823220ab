"""Warnings inside of captured frames: recorded, filtered, raised, counted, and the state of the filters afterwards."""

import warnings

import torch
from capture.cases import case, t


@case(lambda: (t(3),))
def recorded(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=1)
        y = x + 1
    return y, len(caught), [str(each.message) for each in caught]


@case(lambda: (t(3),))
def recorded_around_tensors(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = x.sin()
        if y.shape[0] > 2:
            warnings.warn("long", UserWarning, stacklevel=2)
        y = y + len(caught)
    return y


@case(lambda: (t(3),))
def a_category(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    return x + 1, caught[0].category.__name__


@case(lambda: (t(3),))
def nothing_recorded(x):
    with warnings.catch_warnings(record=True) as caught:
        y = x + 1
    return y, len(caught)


@case(lambda: (t(3),))
def ignored_by_a_filter(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        warnings.warn("nobody reads this", stacklevel=1)
        return x * 2


@case(lambda: (t(3),))
def an_error_by_a_filter(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("now an error", stacklevel=1)
        except UserWarning as error:
            return x + 1, str(error)
    return x


@case(lambda: (t(3),))
def ignored_by_a_keyword(x):
    with warnings.catch_warnings(action="ignore"):
        warnings.warn("quiet", stacklevel=1)
        y = x + 1
    return y


@case(lambda: (t(3),))
def around_a_break(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x + 1
        print("break")
        y = y * 2
    return y


def warns(x):
    warnings.warn("from a callee", RuntimeWarning, stacklevel=2)
    return x * 2


@case(lambda: (t(3),))
def recorded_from_a_callee(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = warns(x)
    return y, [(each.category.__name__, str(each.message)) for each in caught]


@case(lambda: (t(3),))
def a_warning_object(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(FutureWarning("soon"), stacklevel=1)
    return x - 1, str(caught[0].message)


@case(lambda: (t(3),))
def filters_are_as_before(x):
    before = len(warnings.filters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x + 1
    return y, len(warnings.filters) == before


@case(lambda: (t(3),))
def once_and_again(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("once")
        for _ in range(3):
            warnings.warn("the same", stacklevel=1)
            x = x + 1
    return x, len(caught) >= 1
