"""What is on the stack below a frame that has broken, and what it keeps alive."""

import sys
import traceback
import warnings
import weakref

from capture.cases import case, t


def names_below():
    """The functions from who calls this up to the case."""
    frame, names = sys._getframe(1), []
    while frame is not None and len(names) < 6:
        names.append(frame.f_code.co_name)
        if frame.f_code.co_name.startswith("frames_"):
            break
        frame = frame.f_back
    return names


def depth_below():
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


@case(lambda: (t(3),))
def frames_stand_once(x):
    print("first")
    y = x + 1
    first = depth_below()
    y = y * 2
    second = depth_below()
    y = y * 2
    print("third")
    return y, names_below(), depth_below() - first, second - first


def warned(number):
    warnings.warn(f"number {number}", stacklevel=2)


@case(lambda: (t(3),))
def frames_that_are_warned_of(x):
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        warned(1)
        print("break")
        x = x + 1
        warned(2)
        print("break")
        warned(3)
    first = noted[0].lineno
    return x, [(str(each.message), each.lineno - first) for each in noted]


def raising(number):
    raise ValueError(number)


@case(lambda: (t(3),))
def frames_in_tracebacks(x):
    print("break")
    x = x + 1
    print("break")
    x = x * 2
    try:
        raising(3)
    except ValueError as error:
        places = traceback.extract_tb(error.__traceback__)
    return x, [place.name for place in places]


@case(lambda: (t(3), 500))
def frames_with_hundreds_of_breaks(x, count):
    depths = []
    for _ in range(count):
        x = x + 1
        depths.append(depth_below())
        x = x - 1
    return x, len(set(depths))


class Held:
    def __init__(self, name):
        self.name = name


def made(name, seen):
    held = Held(name)
    seen.append(weakref.ref(held))
    return held


def alive(seen):
    return [each() is not None for each in seen]


@case(lambda: (t(3),))
def what_is_not_read_again_lives(x):
    seen = []
    first = made("first", seen)
    print("break")
    x = x + 1
    second = made("second", seen)
    print("break", alive(seen))
    x = x * 2
    print("break", alive(seen))
    first = made("third", seen)
    print("break")
    print("break", alive(seen))
    return x + 1, alive(seen)


@case(lambda: (t(3),))
def handlers_that_break(x):
    handled = []
    try:
        print("break")
        raising(1)
    except ValueError as error:
        print("break")
        x = x + 1
        handled.append(sys.exc_info()[1] is error)
        print("break")
        try:
            raising(2)
        except ValueError as inner:
            print("break")
            handled.append(inner.__context__ is error)
        x = x * 2
        print("break")
        handled.append(sys.exc_info()[1] is error)
    print("break")
    return x, handled, sys.exc_info()


@case(lambda: (t(3),))
def handlers_that_are_left(x):
    for number in range(3):
        try:
            raising(number)
        except ValueError:
            print("break")
            x = x + 1
            print("break")
            if number == 1:
                return x, sys.exc_info()[0].__name__
    return x


def leaves_a_handler(x):
    print("first")
    try:
        raising(3)
    except ValueError:
        print("break")
        x = x + 1
        print("break")
        return x


@case(lambda: (t(3),))
def what_is_handled_afterwards(x):
    y = leaves_a_handler(x)
    print("break")
    return y, sys.exc_info()[0]
