"""Exceptions as programs around tensors use them: attributes, groups, contexts, generators that are thrown into, managers that swallow."""

import contextlib
import functools
import sys
import traceback
import warnings

import torch
from capture.cases import Message, Reuse, case, t

LOG = []


class Failure(Exception):
    def __init__(self, code, *rest, hint=None):
        super().__init__(code, *rest)
        self.code = code
        self.hint = hint

    def __str__(self):
        return f"failure {self.code}"


class Worse(Failure):
    pass


class Stubborn(BaseException):
    pass


@case(lambda: (t(3), 1), lambda: (t(3), 2), lambda: (t(3), 3), watch=("LOG",))
def an_exception_with_attributes(x, n):
    try:
        if n == 1:
            raise Failure(4, hint="again")
        if n == 2:
            raise Worse(5)
        y = x + 1
    except Worse as error:
        return x - error.code, error.hint, error.args
    except Failure as error:
        return x * error.code, error.hint, str(error), error.args
    else:
        return y
    finally:
        LOG.append(n)


@case(lambda: (t(3),), watch=("LOG",))
def a_chain_of_causes(x):
    try:
        try:
            raise KeyError("k")
        except KeyError as error:
            raise Failure(1) from error
    except Failure as error:
        LOG.append((type(error.__cause__).__name__, error.__cause__.args, error.__suppress_context__))
        return x + 1, error.__context__ is error.__cause__


@case(lambda: (t(3),))
def a_context_that_is_suppressed(x):
    try:
        try:
            int("q")
        except ValueError:
            raise Failure(2) from None
    except Failure as error:
        return x + 1, error.__cause__, type(error.__context__).__name__, error.__suppress_context__


@case(lambda: (t(3), [1]), lambda: (t(3), []))
def a_loop_with_else(x, items):
    for item in items:
        try:
            if item == 1:
                raise StopIteration
        except StopIteration:
            break
    else:
        return x - 1
    return x + 1


@case(lambda: (t(3), 0), lambda: (t(3), 2))
def a_division_that_fails(x, n):
    try:
        return x * (4 // n)
    except ZeroDivisionError as error:
        return x, str(error)


@case(lambda: (t(3), {"a": 1}), lambda: (t(3), {}))
def a_key_that_is_missing(x, d):
    try:
        return x * d["a"]
    except KeyError as error:
        return x, error.args, repr(error)


@case(lambda: (t(3), [1, 2]), lambda: (t(3), []))
def an_index_that_is_missing(x, items):
    try:
        return x * items[1]
    except (IndexError, TypeError) as error:
        return x, str(error), type(error) is IndexError


@case(lambda: (t(3),))
def an_attribute_that_is_missing(x):
    try:
        return x.nothing_of_the_kind
    except AttributeError as error:
        return x + 1, error.name


@case(lambda: (t(3),))
def errors_of_names(x):
    try:
        return x + unknown_name  # noqa: F821
    except NameError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def an_unbound_local(x):
    try:
        if x.dim() > 5:
            y = 1
        return x + y
    except UnboundLocalError as error:
        return x + 1, str(error)


def finally_returns(x, log):
    try:
        raise ValueError("lost")
    finally:
        log.append("finally")
        return x * 3  # noqa: B012


@case(lambda: (t(3), []))
def a_return_in_finally(x, log):
    return finally_returns(x, log), log


@case(lambda: (t(3), []))
def finally_in_a_loop(x, log):
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            x = x + i
        finally:
            log.append(i)
    return x, log


@contextlib.contextmanager
def swallowing(log, *kinds):
    log.append("in")
    try:
        yield log
    except kinds as error:
        log.append(str(error))
    finally:
        log.append("out")


class Swallow:
    def __init__(self, answer):
        self.answer = answer
        self.seen = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.seen = (kind.__name__ if kind else None, str(error), trace is None)
        return self.answer


@case(lambda: (t(3), []))
def a_manager_that_swallows(x, log):
    with swallowing(log, ValueError) as held:
        held.append("body")
        raise ValueError("swallowed")
    return x + 1, log


@case(lambda: (t(3), True), lambda: (t(3), False))
def a_manager_that_answers(x, answer):
    s = Swallow(answer)
    try:
        with s:
            raise KeyError("q")
    except KeyError:
        return x - 1, s.seen
    return x + 1, s.seen


@case(lambda: (t(3), []))
def managers_in_a_row(x, log):
    with swallowing(log, KeyError), swallowing(log, ValueError), contextlib.suppress(TypeError):
        raise KeyError("outer")
    return x * len(log), log


@case(lambda: (t(3), []))
def a_stack_of_managers(x, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(swallowing(log, ValueError))
        stack.callback(log.append, "callback")
        stack.push(lambda *details: log.append(details[0].__name__ if details[0] else None))
        raise ValueError("in the stack")
    return x + len(log), log


@case(lambda: (t(3), []))
def a_manager_around_a_break(x, log):
    with swallowing(log, ValueError):
        y = x + 1
        print("break")
        raise ValueError("after the break")
    return y * 2, log


@case(lambda: (t(3),), reuse=Reuse.FREE)
def closing_and_null(x):
    class Door:
        closed = 0

        def close(self):
            Door.closed += 1

    with contextlib.closing(Door()), contextlib.nullcontext(5) as five:
        y = x * five
    return y + 1


def counting(log):
    try:
        sent = yield 1
        log.append(sent)
        yield 2
    except Failure as error:
        log.append(error.code)
        yield 99
    finally:
        log.append("closed")


@case(lambda: (t(3), []))
def a_generator_that_is_thrown_into(x, log):
    g = counting(log)
    first = next(g)
    second = g.throw(Failure(8))
    rest = list(g)
    return x * first + second, rest, log


@case(lambda: (t(3), []))
def a_generator_that_is_closed(x, log):
    g = counting(log)
    next(g)
    value = g.send("hello")
    g.close()
    return x + value, log


@case(lambda: (t(3), []))
def a_generator_that_returns(x, log):
    def inner():
        yield 1
        return x * 2

    def outer():
        result = yield from inner()
        log.append("done")
        return result + 1

    g = outer()
    next(g)
    try:
        next(g)
    except StopIteration as stop:
        return stop.value, log
    return x


@case(lambda: (t(3),))
def a_generator_that_raises_stop_iteration(x):
    def bad():
        yield 1
        raise StopIteration("no")

    try:
        return list(bad())
    except RuntimeError as error:
        return x + 1, str(error), type(error.__cause__).__name__


@case(lambda: (t(3),), message=Message.ANY)
def an_error_of_an_operator(x):
    return x @ torch.ones(7, 2)


@case(lambda: (t(3),))
def an_error_of_an_operator_that_is_handled(x):
    try:
        return x.reshape(7)
    except RuntimeError:
        return x + 1


@case(lambda: (t(3), None), lambda: (t(3), 2))
def assertions(x, n):
    try:
        assert n is not None, "no number"
        assert n > 1, f"too small: {n}"
    except AssertionError as error:
        return x - 1, str(error)
    return x * n


@case(lambda: (t(3),))
def an_exception_as_a_value(x):
    errors = [ValueError("a"), KeyError("b")]
    return x + len(errors), [str(e) for e in errors], errors[0].args, isinstance(errors[1], LookupError)


@case(lambda: (t(3),))
def an_exception_that_is_returned(x):
    try:
        raise Failure(3, hint=x)
    except Failure as error:
        kept = error
    return kept.hint + kept.code, kept


@case(lambda: (t(3),))
def notes(x):
    error = ValueError("n")
    error.add_note("first")
    error.add_note("second")
    return x + 1, error.__notes__


@case(lambda: (t(3),))
def reraised(x):
    seen = []
    try:
        try:
            raise ValueError("once")
        except ValueError as error:
            seen.append(str(error))
            raise
    except ValueError as error:
        seen.append(error.__context__)
    return x + 1, seen


@case(lambda: (t(3),))
def nested_contexts(x):
    try:
        try:
            raise ValueError(1)
        except ValueError:
            try:
                raise KeyError(2)
            except KeyError:
                raise TypeError(3) from None
    except TypeError as error:
        chain = []
        while error:
            chain.append(type(error).__name__)
            error = error.__context__
    return x + len(chain), chain


@case(lambda: (t(3),))
def what_is_being_handled(x):
    before = sys.exc_info()
    try:
        raise ValueError("now")
    except ValueError:
        during = sys.exc_info()[1]
    after = sys.exc_info()
    return x + 1, before, str(during), after


def raise_in(x, depth):
    if depth == 0:
        raise Failure(depth, "deep")
    try:
        return raise_in(x, depth - 1)
    except Failure as error:
        error.code += 1
        raise


@case(lambda: (t(3), 2), lambda: (t(3), 4))
def raised_through_frames(x, depth):
    try:
        return raise_in(x, depth)
    except Failure as error:
        return x * error.code, error.args


@case(lambda: (t(3), 1), watch=("LOG",))
def raised_out_of_the_function(x, n):
    y = x + 1
    LOG.append(n)
    raise Failure(n, y.shape[0])


@case(lambda: (t(3),))
def raised_while_handling(x):
    try:
        raise KeyError("first")
    except KeyError:
        raise ValueError("second")  # noqa: B904


@case(lambda: (t(3),))
def a_group(x):
    got = []
    try:
        raise ExceptionGroup("several", [ValueError("a"), TypeError("b")])
    except* ValueError as group:
        got.append(len(group.exceptions))
    except* TypeError as group:
        got.append(str(group.exceptions[0]))
    return x + 1, got


@case(lambda: (t(3),))
def warnings_caught(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", UserWarning, stacklevel=1)
    return x + len(caught), str(caught[0].message)


@case(lambda: (t(3),))
def a_warning_that_is_an_error(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("bad", RuntimeWarning, stacklevel=1)
        except RuntimeWarning as error:
            return x + 1, str(error)
    return x


def guarded(kind):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except kind as error:
                return error.args[0]

        return wrapper

    return decorate


@guarded(ValueError)
def picky(x, n):
    """Refuses negative numbers."""
    if n < 0:
        raise ValueError(x - 1)
    return x + n


@case(lambda: (t(3), 1), lambda: (t(3), -1))
def a_decorator_that_handles(x, n):
    return picky(x, n), picky.__name__, picky.__doc__, picky.__wrapped__(x, 1)


@case(lambda: (t(3),))
def a_base_exception(x):
    try:
        raise Stubborn("s")
    except Exception:
        return x - 1
    except BaseException as error:
        return x + 1, error.args


@case(lambda: (t(3),))
def the_text_of_a_traceback(x):
    try:
        raise ValueError("text")
    except ValueError as error:
        lines = traceback.format_exception_only(type(error), error)
    return x + 1, lines


@case(lambda: (t(3), 3), lambda: (t(3), "3"))
def errors_of_types(x, n):
    try:
        return x + (1 + n)
    except TypeError as error:
        return x, str(error)


@case(lambda: (t(3), (1, 2)), lambda: (t(3), (1, 2, 3)), lambda: (t(3), (1,)))
def unpacked_wrongly(x, pair):
    try:
        a, b = pair
    except ValueError as error:
        return x, str(error)
    return x * a + b


@case(lambda: (t(3),))
def called_wrongly(x):
    def f(a, /, b, *, c=1):
        return a + b + c

    got = []
    for args, kwargs in [((1,), {}), ((1, 2, 3), {}), ((1,), {"b": 1, "d": 2}), ((1, 2), {"b": 3})]:
        try:
            f(*args, **kwargs)
        except TypeError as error:
            got.append(str(error))
    return x + len(got), got


class Locked:
    __slots__ = ("a",)

    def __init__(self):
        self.a = 1


@case(lambda: (t(3), Locked()))
def an_attribute_that_cannot_be_set(x, o):
    try:
        o.b = 2
    except AttributeError as error:
        return x + o.a, str(error)
    return x
