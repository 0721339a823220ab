"""Exceptions: raised, caught, chained, and let out of the frame."""

import contextlib

import torch
from capture.cases import Message, case, t


class Refused(Exception):
    def __init__(self, reason, code):
        super().__init__(reason)
        self.code = code


class VeryRefused(Refused):
    pass


def refuse(n):
    if n > 2:
        raise Refused(f"{n} is too much", n)
    return n


@case(lambda: (t(3), 1), lambda: (t(3), 5))
def caught_here(x, n):
    try:
        return x * refuse(n)
    except Refused as error:
        return x - error.code


@case(lambda: (t(3), 5), lambda: (t(3), 1))
def raised_out(x, n):
    y = x + 1
    refuse(n)
    return y


@case(lambda: (t(3),))
def raised_directly(x):
    y = x * 2
    raise ValueError(f"{y.shape[0]} rows")


@case(lambda: (t(3), 1), lambda: (t(3), 9))
def try_else_finally(x, n):
    log = []
    try:
        refuse(n)
    except Refused:
        log.append("except")
        x = x - 1
    else:
        log.append("else")
        x = x + 1
    finally:
        log.append("finally")
        x = x * 2
    return x, log


@case(lambda: (t(3), []))
def finally_runs_on_the_way_out(x, log):
    try:
        log.append(x + 1)
        raise RuntimeError("out")
    finally:
        log.append("finally")


@case(lambda: (t(3),))
def return_in_finally(x):
    try:
        return x + 1
    finally:
        x = x * 2


@case(lambda: (t(3),))
def finally_overrides_a_return(x):
    try:
        return x + 1
    finally:
        return x * 2  # noqa: B012


@case(lambda: (t(3), KeyError), lambda: (t(3), ValueError), lambda: (t(3), TypeError))
def several_handlers(x, kind):
    try:
        raise kind("k")
    except (KeyError, IndexError):
        return x + 1
    except ValueError as error:
        return x + 2, str(error)
    except Exception as error:
        return x + 3, type(error).__name__


@case(lambda: (t(3),))
def caught_by_a_base_class(x):
    try:
        raise VeryRefused("no", 4)
    except Refused as error:
        return x * error.code, type(error)


@case(lambda: (t(3),))
def raised_again(x):
    try:
        refuse(7)
    except Refused:
        x = x + 1
        raise


@case(lambda: (t(3),))
def raised_from(x):
    try:
        {}["missing"]
    except KeyError as error:
        raise ValueError("no such thing") from error


@case(lambda: (t(3),))
def raised_from_none(x):
    try:
        {}["missing"]
    except KeyError:
        raise ValueError("no such thing") from None


@case(lambda: (t(3),))
def raised_while_handling(x):
    try:
        refuse(9)
    except Refused:
        [][1]


@case(lambda: (t(3),))
def nested_handlers(x):
    try:
        try:
            raise KeyError("inner")
        except ValueError:
            x = x * 100
        finally:
            x = x + 1
    except KeyError:
        x = x * 2
    return x


@case(lambda: (t(3),))
def caught_in_a_loop(x):
    caught = []
    for n in range(5):
        try:
            x = x + refuse(n)
        except Refused as error:
            caught.append(error.code)
            continue
        x = x * 2
    return x, caught


@case(lambda: (t(3),))
def break_out_of_try(x):
    for n in range(3):
        try:
            if n == 1:
                break
        finally:
            x = x + 1
    return x


@case(lambda: (t(3), {"a": 1}, "a"), lambda: (t(3), {"a": 1}, "b"))
def key_error_as_control_flow(x, table, key):
    try:
        return x * table[key]
    except KeyError:
        return x


@case(lambda: (t(3), 5), lambda: (t(3), "5"), lambda: (t(3), "x"), lambda: (t(3), None))
def conversion_errors(x, text):
    try:
        return x * int(text)
    except ValueError:
        return x + 1
    except TypeError:
        return x + 2


@case(lambda: (t(3), 0), lambda: (t(3), 2))
def division_by_zero(x, n):
    try:
        return x * (6 // n)
    except ZeroDivisionError as error:
        return x, str(error)


@case(lambda: (t(3),))
def attribute_error_caught(x):
    try:
        return x.no_such_method()
    except AttributeError:
        return x + 1


@case(lambda: (t(3), t(4)), lambda: (t(3), t(3)), message=Message.ANY)
def shapes_that_do_not_fit(x, y):
    return x + y


@case(lambda: (t(3), t(4)), lambda: (t(3), t(3)))
def shapes_that_do_not_fit_caught(x, y):
    try:
        return x + y
    except RuntimeError:
        return x.sum() + y.sum()


@case(lambda: (t(2, 3), t(2, 3)), message=Message.ANY)
def matmul_that_does_not_fit(x, y):
    return torch.relu(x) @ y


@case(lambda: (t(3),), message=Message.ANY)
def index_out_of_bounds(x):
    return x[5]


@case(lambda: (t(3),))
def type_error_of_an_operator(x):
    return x + "text"


@case(lambda: (t(3),))
def type_error_of_python(x):
    y = x + 1
    return y, 1 + "text"


@case(lambda: (t(3),))
def suppressed(x):
    with contextlib.suppress(KeyError):
        x = x + 1
        {}["missing"]
        x = x * 100
    return x


@case(lambda: (t(3),))
def stop_iteration_inside(x):
    items = iter([1, 2])
    while True:
        try:
            x = x * next(items)
        except StopIteration:
            break
    return x


@case(lambda: (t(3),))
def exception_kept(x):
    kept = None
    try:
        refuse(5)
    except Refused as error:
        kept = error
    return x * kept.code, kept.args


@case(lambda: (t(3),))
def name_of_the_exception_is_deleted(x):
    error = 1
    try:
        refuse(5)
    except Refused as error:  # noqa: F841
        pass
    return x, error


@case(lambda: (t(3), -1), lambda: (t(3), 1))
def assert_with_a_message(x, n):
    y = x + 1
    assert n > 0, ("n has to be positive", n)
    return y


@case(lambda: (t(3),))
def raise_a_class_and_an_instance(x):
    caught = []
    for raised in (KeyError, KeyError("k"), Refused("r", 1)):
        try:
            raise raised
        except Exception as error:
            caught.append((type(error), error.args))
    return x + len(caught), caught


@case(lambda: (t(3),))
def raise_something_else_raises(x):
    raise x


@case(lambda: (t(3), [1]))
def side_effects_before_an_exception(x, items):
    items.append(x * 2)
    x.add_(1)
    raise Refused("after the effects", 1)


@case(lambda: (t(3),))
def exception_groups(x):
    try:
        raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])
    except* ValueError as group:
        x = x + len(group.exceptions)
    except* KeyError:
        x = x * 2
    return x


@case(lambda: (t(3),))
def not_implemented(x):
    class Abstract:
        def forward(self, y):
            raise NotImplementedError("subclasses do")

    try:
        Abstract().forward(x)
    except NotImplementedError as error:
        return x, str(error)


@case(lambda: (t(3), 3), lambda: (t(4), 3), lambda: (t(3), 2))
def checks_of_sizes(x, size):
    torch._check(x.shape[0] >= size, lambda: f"{x.shape[0]} is below {size}")
    torch._check_value(x.shape[0] == size, lambda: f"{x.shape[0]} is not {size}")
    return x * size


def chain_of(error):
    """The classes and messages of what an exception came after."""
    links = []
    while error is not None:
        links.append((type(error).__name__, str(error), error.__suppress_context__, type(error.__cause__).__name__))
        error = error.__context__
    return links


@case(lambda: (t(3), {}), lambda: (t(3), {"a": 1}))
def the_context_of_an_exception(x, table):
    try:
        try:
            table["a"]
        except KeyError:
            raise ValueError("no a")
        finally:
            x = x + 1
    except ValueError as error:
        return x, chain_of(error), error
    return x * 2, None


@case(lambda: (t(3),))
def the_context_in_a_finally_clause(x):
    try:
        try:
            raise ValueError("first")
        finally:
            raise TypeError("second")
    except TypeError as error:
        return x, chain_of(error)


def fail_while_handling():
    raise LookupError("inner")


def raise_again():
    raise


@case(lambda: (t(3),))
def the_context_across_frames(x):
    told = []
    try:
        1 // 0
    except ZeroDivisionError:
        try:
            fail_while_handling()
        except LookupError as error:
            told.append(chain_of(error))
        try:
            raise_again()
        except ZeroDivisionError as error:
            told.append(chain_of(error))
    try:
        fail_while_handling()
    except LookupError as error:
        told.append(chain_of(error))
    return x, told


@case(lambda: (t(3),))
def causes_and_contexts(x):
    told = []
    for cause in (None, KeyError("k"), KeyError):
        try:
            try:
                int("no number")
            except ValueError:
                raise RuntimeError("outer") from cause
        except RuntimeError as error:
            told.append(chain_of(error))
    return x, told


@case(lambda: (t(3),))
def an_exception_that_is_raised_twice(x):
    kept = ValueError("kept")
    told = []
    for _ in range(2):
        try:
            try:
                raise KeyError("before")
            except KeyError:
                raise kept
        except ValueError as error:
            told.append(chain_of(error))
    try:
        raise kept
    except ValueError as error:
        told.append(error is kept)
    return x, told, kept


def yields_while_handling():
    try:
        yield 1
    except ValueError:
        raise TypeError("in the generator")


@case(lambda: (t(3),))
def the_context_in_a_generator(x):
    steps = yields_while_handling()
    next(steps)
    try:
        steps.throw(ValueError("thrown"))
    except TypeError as error:
        return x, chain_of(error)


@case(lambda: (t(3), 5), lambda: (t(3), ValueError), lambda: (t(3), "text"))
def something_that_cannot_be_raised(x, what):
    try:
        raise what
    except TypeError as error:
        return x, "type", str(error)
    except ValueError as error:
        return x, "value", error.args


@case(lambda: (t(3),))
def what_an_exception_says_of_itself(x):
    told = []
    try:
        x.missing_attribute
    except AttributeError as error:
        told += [error.name, error.obj is x, error.__cause__, error.__context__]
    try:
        undefined_name  # noqa: F821
    except NameError as error:
        told += [error.name, error.args]
    error = ValueError("a")
    error.args = ("b", 2)
    error.add_note("seen")
    return x, told, error, error.args, error.__notes__


@case(lambda: (t(3),))
def a_call_while_an_exception_is_handled(x):
    try:
        raise KeyError("outer")
    except KeyError:
        return caught_inside(x)


def caught_inside(x):
    print(end="")
    try:
        raise ValueError("inner")
    except ValueError as error:
        return x, chain_of(error)
