"""Exceptions in depth: attributes, chains, groups, notes, frames that raise, assertions."""

import contextlib
import sys
import warnings

import torch
from capture.cases import case, t


class Refused(Exception):
    def __init__(self, code, *, hint="none"):
        super().__init__(f"code {code}")
        self.code, self.hint = code, hint

    def __str__(self):
        return f"Refused({self.code})"


class Coded(ValueError):
    code = 7


def fails(n):
    if n > 1:
        raise Refused(n, hint="less")
    return n


@case(lambda: (t(3), 5), lambda: (t(3), 0))
def raised_out_of_a_call(x, n):
    y = x * 2
    fails(n)
    return y


@case(lambda: (t(3),))
def raised_at_once(x):
    raise Refused(3)


@case(lambda: (t(3), []))
def raised_after_an_effect(x, log):
    log.append(x * 2)
    raise KeyError("gone")


@case(lambda: (t(3),))
def attributes_of_exceptions(x):
    try:
        fails(4)
    except Refused as error:
        return x * error.code, error.hint, error.args, str(error), repr(error), error.__class__.__name__, isinstance(error, Exception)


@case(lambda: (t(3),))
def attributes_set_on_exceptions(x):
    try:
        error = ValueError("v", 2)
        error.extra = 3
        raise error
    except ValueError as caught:
        caught.args = (caught.args[0], x)
        return x * caught.extra, caught.args[0], caught is error, Coded().code


@case(lambda: (t(3),))
def builtin_attributes(x):
    out = []
    try:
        {}["k"]
    except KeyError as error:
        out.append(error.args)
    try:
        x.nothing
    except AttributeError as error:
        out.append(error.name)
    try:
        undefined_name
    except NameError as error:
        out.append(error.name)
    try:
        next(iter([]))
    except StopIteration as error:
        out.append(error.value)
    try:
        import nothing_like_it
    except ImportError as error:
        out.append(error.name)
    try:
        raise SystemExit(3)
    except SystemExit as error:
        out.append(error.code)
    try:
        raise OSError(2, "no", "file")
    except FileNotFoundError as error:
        out.append((error.errno, error.strerror, error.filename))
    return x * len(out), out


@case(lambda: (t(3),))
def chains(x):
    try:
        try:
            {}["a"]
        except KeyError as error:
            raise ValueError("v") from error
    except ValueError as error:
        y = x * 2, type(error.__cause__).__name__, error.__cause__ is error.__context__, error.__suppress_context__
    try:
        try:
            {}["a"]
        except KeyError:
            raise ValueError("w") from None
    except ValueError as error:
        return y, error.__cause__, type(error.__context__).__name__, error.__suppress_context__


@case(lambda: (t(3),))
def implicit_context(x):
    try:
        try:
            1 / 0
        finally:
            [][1]
    except IndexError as error:
        return x * 2, type(error.__context__).__name__, error.__context__.__context__


@case(lambda: (t(3),))
def reraised(x):
    log = []
    try:
        try:
            fails(9)
        except Refused:
            log.append("inner")
            raise
    except Refused as error:
        log.append(error.code)
    return x * 2, log


@case(lambda: (t(3),))
def returned_exception(x):
    try:
        fails(3)
    except Refused as error:
        kept = error
    return x * 2, kept


@case(lambda: (t(3),))
def raised_with_context_out(x):
    y = x + 1
    try:
        {}["a"]
    except KeyError:
        raise Coded("c") from RuntimeError("cause")
    return y


@case(lambda: (t(3),))
def notes(x):
    error = ValueError("v")
    error.add_note("n")
    try:
        raise error
    except ValueError as caught:
        return x * 2, caught.__notes__


@case(lambda: (t(3),))
def several_handlers(x):
    out = []
    for broken in (lambda: 1 / 0, lambda: [][0], lambda: int("a"), lambda: None.a, lambda: "a" + 1, lambda: fails(3)):
        try:
            broken()
        except (ZeroDivisionError, IndexError) as error:
            out.append(("first", str(error)))
        except ValueError as error:
            out.append(("second", str(error)))
        except AttributeError as error:
            out.append(("third", str(error)))
        except Exception as error:
            out.append(("last", type(error).__name__, str(error)))
        else:
            out.append("none")
        finally:
            out.append("f")
    return x * len(out), out


@case(lambda: (t(3),))
def finally_overrides(x):
    def f():
        try:
            return 1
        finally:
            return 2

    def g():
        for _ in range(2):
            try:
                raise ValueError
            finally:
                break
        return 3

    return x * f() + g()


@case(lambda: (t(3), 2), lambda: (t(3), 3))
def assertions(x, n):
    assert n > 1, "too small"
    try:
        assert n > 2, f"{n} is small"
    except AssertionError as error:
        return x * 2, str(error)
    return x


@case(lambda: (t(3), 1))
def assertion_that_fails(x, n):
    y = x * 2
    assert n > 1, "too small"
    return y


@case(lambda: (t(3),))
def exception_group(x):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        log.append(len(group.exceptions))
    except* KeyError:
        log.append("k")
    return x * 2, log


@case(lambda: (t(3),))
def exc_info(x):
    try:
        1 / 0
    except ZeroDivisionError as error:
        kind, value, _ = sys.exc_info()
        return x * 2, kind.__name__, value is error, sys.exc_info()[0] is ZeroDivisionError


@case(lambda: (t(3),))
def name_is_unbound_after(x):
    try:
        1 / 0
    except ZeroDivisionError as error:
        pass
    try:
        error
    except UnboundLocalError as unbound:
        return x * 2, str(unbound)


@case(lambda: (t(3),))
def wrong_calls(x):
    def f(a, b, *, c=1):
        return a

    out = []
    for broken in (lambda: f(), lambda: f(1), lambda: f(1, 2, 3), lambda: f(1, 2, d=4), lambda: f(1, a=1), lambda: f(*[1], **{"b": 1, "e": 2})):
        try:
            broken()
        except TypeError as error:
            out.append(str(error))
    return x * len(out), out


@case(lambda: (t(3),))
def wrong_unpacking(x):
    out = []
    for value in ([1], [1, 2, 3], 5):
        try:
            a, b = value
        except (ValueError, TypeError) as error:
            out.append(str(error))
    return x * len(out), out


@case(lambda: (t(3),))
def torch_errors(x):
    try:
        x.view(7)
    except RuntimeError as error:
        return x * 2, type(error).__name__


@case(lambda: (t(3),))
def warnings_caught(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("w")
        x = x + 1
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("v", UserWarning)
    return x * len(seen)


@case(lambda: (t(3),))
def suppressed(x):
    with contextlib.suppress(Refused, ZeroDivisionError):
        x = x + 1
        fails(5)
        x = x + 100
    return x


@case(lambda: (t(3),))
def stop_iteration_with_a_value(x):
    def g():
        yield 1
        return x * 3

    it = g()
    next(it)
    try:
        next(it)
    except StopIteration as stop:
        return stop.value


@case(lambda: (t(3),))
def nested_handlers(x):
    out = []
    try:
        try:
            raise ValueError("a")
        except ValueError as a:
            try:
                raise KeyError("b")
            except KeyError as b:
                out.append(b.__context__ is a)
            out.append(sys.exc_info()[1] is a)
    finally:
        out.append(sys.exc_info()[1])
    return x * 2, out


@case(lambda: (t(3),))
def loop_with_retries(x):
    tries = 0
    while True:
        try:
            tries += 1
            if tries < 3:
                raise Refused(tries)
        except Refused:
            continue
        else:
            break
    return x * tries


@case(lambda: (t(3), 3), lambda: (t(3), 1))
def matched(x, n):
    match n:
        case 1 | 2:
            return x
        case int(k) if k > 2:
            return x * k
        case _:
            return x + 1


@case(lambda: (t(3), {"op": "add", "args": [1, 2]}), lambda: (t(3), ["mul", 3]), lambda: (t(3), "s"), lambda: (t(3), (1, (2, 3))))
def matched_shapes(x, value):
    match value:
        case {"op": "add", "args": [a, *rest], **more}:
            return x + a + len(rest) + len(more)
        case ["mul", by]:
            return x * by
        case str() as text:
            return x, text
        case (a, (b, c)):
            return x * a * b * c
        case None:
            return None


@case(lambda: (t(3), Refused(2)), lambda: (t(3), complex(1, 2)))
def matched_objects(x, value):
    match value:
        case Refused(code=2, hint=h):
            return x * 2, h
        case complex(real=r, imag=i):
            return x * r + i
