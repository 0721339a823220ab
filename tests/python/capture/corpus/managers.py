"""Context managers and exceptions: own classes, contextlib, torch's, over breaks, with what they suppress; exception objects and their chains."""

import contextlib
import sys
import traceback

import torch
from capture.cases import Reuse, case, t


class Noted:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else "out")
        return self.swallow


class Switch:
    state = 0

    def __init__(self, to):
        self.to = to

    def __enter__(self):
        self.before = Switch.state
        Switch.state = self.to

    def __exit__(self, *failure):
        Switch.state = self.before


@contextlib.contextmanager
def shifted(x):
    yield x + 1


@contextlib.contextmanager
def guarded(log):
    try:
        yield
    except ValueError as error:
        log.append(str(error))
    finally:
        log.append("finally")


@case(lambda: (t(3),))
def manager_that_swallows(x):
    log = []
    with Noted(log, swallow=True):
        x = x + 1
        raise ValueError("lost")
    return x, log


@case(lambda: (t(3),))
def managers_in_one_with(x):
    log = []
    with Noted(log) as a, Noted(log) as b:
        x = x + (a is not b)
    return x, log


@case(lambda: (t(3),))
def manager_with_a_class_attribute(x):
    with Switch(3):
        x = x * Switch.state
    return x + Switch.state


@case(lambda: (t(3),))
def manager_of_a_generator(x):
    with shifted(x) as y:
        z = y * 2
    return z


@case(lambda: (t(3),))
def manager_of_a_generator_that_handles(x):
    log = []
    with guarded(log):
        x = x + 1
        raise ValueError("handled")
    return x, log


@case(lambda: (t(3),))
def manager_left_by_return(x):
    log = []

    def inner():
        with Noted(log), shifted(x) as y:
            return y

    return inner(), log


@case(lambda: (t(3),))
def manager_left_by_break_and_continue(x):
    log = []
    for n in range(4):
        with Noted(log):
            if n == 1:
                continue
            if n == 3:
                break
            x = x + n
    return x, log


@case(lambda: (t(3),))
def manager_over_a_break(x):
    log = []
    with Noted(log):
        x = x + 1
        torch._dynamo.graph_break()
        x = x * 2
    return x, log


@case(lambda: (t(3),))
def generator_manager_over_a_break(x):
    log = []
    with guarded(log):
        x = x + 1
        torch._dynamo.graph_break()
        x = x * 2
    return x, log


@case(lambda: (t(3),))
def manager_over_a_break_in_a_callee(x):
    def inner(v):
        torch._dynamo.graph_break()
        return v + 1

    with torch.no_grad():
        return inner(x) * 2


@case(lambda: (t(3), contextlib.nullcontext()))
def manager_given(x, manager):
    with manager:
        return x + 1


@case(lambda: (t(3), torch.no_grad()))
def no_grad_given(x, manager):
    with manager:
        y = x * 2
    return y, torch.is_grad_enabled()


@case(lambda: (t(3), Noted([])), reuse=Reuse.FREE)
def own_manager_given(x, manager):
    with manager as held:
        x = x + len(held.log)
    return x


@case(lambda: (t(3),))
def exit_called_by_hand(x):
    log = []
    manager = Noted(log)
    manager.__enter__()
    x = x * 2
    manager.__exit__(None, None, None)
    return x, log


@case(lambda: (t(3, grad=True),))
def grad_modes_mixed(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        c = x * 4
    with torch.set_grad_enabled(False):
        d = x * 5
    torch.set_grad_enabled(False)
    e = x * 6
    torch.set_grad_enabled(True)
    return a, b, c, d, e, a.requires_grad, b.requires_grad, torch.is_grad_enabled()


@torch.no_grad()
def silent(x):
    return x * 2


@torch.no_grad
def silent_without_parentheses(x):
    return x * 3


@case(lambda: (t(3, grad=True),))
def no_grad_decorators(x):
    return silent(x), silent_without_parentheses(x), x * 4


@case(lambda: (t(3, grad=True),))
def saved_tensor_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
        return (x * x).sum()


@case(lambda: (t(3, grad=True),))
def saved_tensor_hooks_off(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        return (x * x).sum()


@case(lambda: (t(3, grad=True),))
def saved_tensor_hooks_off_and_used(x):
    try:
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            with torch.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
                return (x * x).sum()
    except RuntimeError as error:
        return x + 1, str(error)


@case(lambda: (t(1, 2, 4, 8),))
def sdpa_kernels(q):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        asked = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    return y, asked, torch.backends.cuda.flash_sdp_enabled()


@case(lambda: (t(1, 2, 4, 8),))
def sdpa_kernels_in_a_list(q):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel([SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION]):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q), torch.backends.cuda.cudnn_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled()


@case(lambda: (t(3),))
def autocast_asked(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        asked = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    return x + 1, asked, torch.is_autocast_enabled("cpu")


@case(lambda: (t(3),))
def profiler_ranges(x):
    with torch.profiler.record_function("range"), torch.autograd.profiler.record_function("other"):
        return x + 1


@case(lambda: (t(3),))
def detect_anomaly(x):
    with torch.autograd.set_detect_anomaly(False):
        return x + 1


@case(lambda: (t(3),))
def preserved_version(x):
    with torch.autograd._unsafe_preserve_version_counter(x):
        return x.mul_(2) + 1


class Refused(Exception):
    def __init__(self, code, *, detail=None):
        super().__init__(f"code {code}")
        self.code, self.detail = code, detail


@case(lambda: (t(3),))
def exception_with_attributes(x):
    try:
        raise Refused(4, detail=x)
    except Refused as error:
        return error.detail * error.code, str(error), error.args


@case(lambda: (t(3),))
def exception_from_another(x):
    try:
        try:
            {}["k"]
        except KeyError as error:
            raise Refused(1) from error
    except Refused as error:
        return x + 1, type(error.__cause__).__name__, error.__suppress_context__, error.__cause__ is error.__context__


@case(lambda: (t(3),))
def exception_from_none(x):
    try:
        try:
            [][1]
        except IndexError:
            raise Refused(1) from None
    except Refused as error:
        return x + 1, error.__cause__, error.__suppress_context__, type(error.__context__).__name__


@case(lambda: (t(3),))
def exception_in_finally(x):
    log = []
    try:
        try:
            raise ValueError("first")
        finally:
            log.append(str(sys.exc_info()[1]))
            x = x + 1
    except ValueError:
        log.append("caught")
    return x, log, sys.exc_info() == (None, None, None)


@case(lambda: (t(3),))
def exception_groups(x):
    found = []
    try:
        raise ExceptionGroup("many", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        found.append(len(group.exceptions))
    except* KeyError:
        found.append("key")
    return x + len(found), found


@case(lambda: (t(3),))
def exception_notes(x):
    try:
        error = ValueError("a")
        error.add_note("more")
        raise error
    except ValueError as caught:
        return x + 1, caught.__notes__


@case(lambda: (t(3),))
def exception_traceback_asked(x):
    try:
        raise ValueError("a")
    except ValueError as error:
        return x + 1, error.__traceback__ is not None


@case(lambda: (t(3),))
def exception_with_another_traceback(x):
    try:
        raise ValueError("a").with_traceback(None)
    except ValueError as error:
        return x + len(error.args)


@case(lambda: (t(3),))
def exception_of_a_tuple_of_classes(x):
    wanted = (KeyError, IndexError)
    try:
        return [x][3]
    except wanted:
        return x + 2


@case(lambda: (t(3),), reuse=Reuse.FREE)
def exception_matched_by_a_subclass(x):
    class Own(LookupError):
        pass

    try:
        raise Own("own")
    except LookupError as error:
        return x + len(str(error))


@case(lambda: (t(3),))
def exception_out_of_nested_calls(x):
    def inner(n):
        if n == 0:
            raise Refused(3)
        return inner(n - 1) + 1

    try:
        return inner(3)
    except Refused as error:
        return x * error.code


@case(lambda: (t(3),))
def exception_raised_again(x):
    log = []
    try:
        try:
            raise Refused(2)
        except Refused:
            log.append("inner")
            raise
    except Refused as error:
        log.append(error.code)
    return x + 1, log


@case(lambda: (t(3),))
def exceptions_compared(x):
    a = ValueError("q")
    return x + 1, a == a, a == ValueError("q"), isinstance(a, Exception), repr(a), str(KeyError("k")), ValueError("a", 1).args, bool(a)


@case(lambda: (t(3), 3), lambda: (t(3), 0))
def assertion_with_a_message(x, n):
    try:
        assert n > 0, f"{n} is not positive"
    except AssertionError as error:
        return x + len(str(error)), str(error)
    return x


@case(lambda: (t(3),))
def try_else_finally(x):
    log = []
    for n in range(3):
        try:
            if n == 1:
                raise ValueError
        except ValueError:
            log.append("except")
            continue
        else:
            log.append("else")
        finally:
            log.append("finally")
        x = x + n
    return x, log


@case(lambda: (t(3),))
def stop_iteration_as_a_value(x):
    def generator():
        yield 1
        return x

    running = generator()
    next(running)
    try:
        next(running)
    except StopIteration as stop:
        return stop.value + 1


@case(lambda: (t(3),))
def attribute_errors(x):
    try:
        x.nothing_of_this_name
    except AttributeError as error:
        found = error.name
    try:
        None.other
    except AttributeError as error:
        return x + 1, found, error.name, str(error)


@case(lambda: (t(3),))
def errors_of_builtins(x):
    found = []
    for wrong in (lambda: int("q"), lambda: [].pop(), lambda: {}.popitem(), lambda: 1 / 0, lambda: "a" + 1, lambda: len(3), lambda: next(iter([])), lambda: [1].index(2), lambda: set().pop(), lambda: max([]), lambda: chr(-1), lambda: (1)[0], lambda: None(), lambda: "%d" % "a"):
        try:
            wrong()
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return x + len(found), found


@case(lambda: (t(3),))
def handler_in_a_callee_sees_the_exception(x):
    def asked():
        return sys.exc_info()[0]

    try:
        raise KeyError("a")
    except KeyError:
        kind = asked()
    return x + 1, kind is KeyError


@case(lambda: (t(3),))
def traceback_printed(x):
    try:
        raise ValueError("shown")
    except ValueError as error:
        return x + 1, traceback.format_exception_only(error)[0]


@case(lambda: (t(3), False), lambda: (t(3), True))
def raised_out_after_a_graph(x, fails):
    y = x + 1
    if fails:
        raise Refused(7)
    return y


@case(lambda: (t(3),))
def generator_thrown_into(x):
    def generator():
        total = 0
        while True:
            try:
                got = yield total
                total = total + (got or 0)
            except ValueError as error:
                total = len(str(error))
            except GeneratorExit:
                return

    running = generator()
    next(running)
    a = running.send(4)
    b = running.throw(ValueError("abc"))
    running.close()
    return x + a + b


@case(lambda: (t(3),))
def generator_with_a_result(x):
    def inner():
        got = yield x
        return got * 2

    def outer():
        result = yield from inner()
        yield result + 1

    running = outer()
    first = next(running)
    return running.send(first)


@case(lambda: (t(3),))
def generator_over_a_break(x):
    def generator():
        yield x + 1
        yield x + 2

    running = generator()
    a = next(running)
    torch._dynamo.graph_break()
    return a + next(running)


@case(lambda: (t(3),))
def generator_returned_unstarted(x):
    def generator():
        yield x + 1

    return generator


@case(lambda: (t(3),))
def generators_zipped(x):
    def numbers(n):
        for i in range(n):
            yield x + i

    total = 0
    for a, (n, b) in zip(numbers(3), enumerate(numbers(3))):
        total = total + a * b + n
    return total, sum(numbers(2)), list(map(lambda v: v * 2, numbers(2)))[1]


@case(lambda: (t(3),))
def generator_expressions_nested(x):
    return sum(x * a + b for a in range(2) for b in range(a + 1) if a != 3), {k: v for k, v in ((n, n * 2) for n in range(2))}


@case(lambda: (t(3),))
def generator_attributes(x):
    def generator():
        yield 1

    running = generator()
    return x + next(running), running.__name__, running.gi_running


@case(lambda: (t(3),))
def generator_with_effects(x):
    log = []

    def generator():
        log.append("a")
        yield x
        log.append("b")

    for v in generator():
        log.append("use")
        x = x + v
    return x, log


@case(lambda: (t(3),))
def generator_reading_a_changing_cell(x):
    n = 1

    def generator():
        while n < 4:
            yield n

    total = x
    for got in generator():
        total = total + got
        n = n + 1
    return total
