"""Context managers that are held, stacked, entered by hand, shared with the caller, or alive while a frame is left and resumed."""

import contextlib

import torch
import torch._dynamo
from capture.cases import Reuse, case, t

LOG = []


class Scaled:
    factor = 1

    def __init__(self, by):
        self.by = by

    def __enter__(self):
        self.before, Scaled.factor = Scaled.factor, self.by
        return self

    def __exit__(self, *told):
        Scaled.factor = self.before
        return False


class Counted:
    def __init__(self):
        self.depth = self.most = 0

    def __enter__(self):
        self.depth += 1
        self.most = max(self.most, self.depth)
        return self.depth

    def __exit__(self, kind, error, traceback):
        self.depth -= 1
        return kind is KeyError


@contextlib.contextmanager
def traced(log, name):
    log.append(f"+{name}")
    try:
        yield name
    finally:
        log.append(f"-{name}")


@contextlib.contextmanager
def swallowing(kind, log):
    try:
        yield
    except kind as error:
        log.append(str(error))


@case(lambda: (t(3),))
def a_class_attribute_set_for_a_while(x):
    with Scaled(3):
        y = x * Scaled.factor
    return y + Scaled.factor


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_class_attribute_over_a_break(x):
    with Scaled(3):
        y = x * Scaled.factor
        torch._dynamo.graph_break()
        y = y + Scaled.factor
    return y + Scaled.factor


@case(lambda: (t(3), Counted()))
def a_manager_of_the_caller_twice(x, counted):
    with counted as depth, counted as deeper:
        x = x * depth + deeper
    return x, counted.most


@case(lambda: (t(3), Counted()))
def a_manager_of_the_caller_that_swallows(x, counted):
    with counted:
        x = x + 1
        raise KeyError("gone")
    return x, counted.depth


@case(lambda: (t(3), Counted()))
def a_manager_of_the_caller_that_lets_pass(x, counted):
    try:
        with counted:
            raise ValueError("seen")
    except ValueError as error:
        return x + 1, str(error), counted.depth


@case(lambda: (t(3), Counted()))
def a_manager_of_the_caller_over_a_break(x, counted):
    with counted as depth:
        y = x + depth
        print("break")
        y = y * 2
    return y, counted.depth


@case(lambda: (t(3), []))
def a_generator_manager_over_a_break_in_a_callee(x, log):
    def inner(a):
        with traced(log, "inner"):
            a = a + 1
            print("break")
            return a * 2

    return inner(x) + 1, log


@case(lambda: (t(3), []))
def a_stack_with_callbacks(x, log):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "last")
        stack.enter_context(traced(log, "a"))
        stack.callback(log.append, "first")
        x = x + 1
    return x, log


@case(lambda: (t(3), []))
def a_stack_over_a_break(x, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(traced(log, "a"))
        stack.enter_context(torch.no_grad())
        y = x + 1
        print("break")
        y = y * 2
    return y, log


@case(lambda: (t(3), [], 3), lambda: (t(3), [], 1))
def a_stack_of_so_many(x, log, n):
    with contextlib.ExitStack() as stack:
        for k in range(n):
            x = x + len(stack.enter_context(traced(log, str(k))))
    return x, log


@case(lambda: (t(3), []))
def a_stack_given_away(x, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(traced(log, "a"))
        kept = stack.pop_all()
    log.append("between")
    kept.close()
    return x + 1, log


@case(lambda: (t(3), []))
def an_error_swallowed_by_a_generator(x, log):
    with swallowing(ValueError, log):
        x = x + 1
        raise ValueError("inside")
    return x * 2, log


@case(lambda: (t(3), []))
def an_error_swallowed_by_a_generator_over_a_break(x, log):
    with swallowing(ValueError, log):
        x = x + 1
        print("break")
        raise ValueError("inside")
    return x * 2, log


@case(lambda: (t(3), []))
def a_generator_manager_as_a_decorator(x, log):
    @traced(log, "decorated")
    def inner(a):
        return a * 2

    return inner(x) + inner(x), log


@case(lambda: (t(3), True), lambda: (t(3), False))
def a_manager_chosen(x, off):
    manager = torch.no_grad() if off else contextlib.nullcontext()
    with manager:
        y = x * 2
    return y


@case(lambda: (t(3, grad=True), True), lambda: (t(3, grad=True), False))
def a_manager_chosen_over_a_break(x, off):
    with torch.no_grad() if off else contextlib.nullcontext():
        y = x * 2
        print("break")
        z = y + 1
    return z, torch.is_grad_enabled()


@case(lambda: (t(3), contextlib.nullcontext(5)))
def a_null_context_of_the_caller(x, manager):
    with manager as n:
        return x + n


@case(lambda: (t(3, grad=True), torch.no_grad()))
def a_grad_mode_of_the_caller(x, manager):
    with manager:
        y = x * 2
    return y, x * 3


@case(lambda: (t(3, grad=True), torch.no_grad()))
def a_grad_mode_of_the_caller_over_a_break(x, manager):
    with manager:
        y = x * 2
        print("break")
        y = y + 1
    return y, x * 3


@case(lambda: (t(3, grad=True),))
def a_grad_mode_entered_by_hand(x):
    mode = torch.no_grad()
    mode.__enter__()
    y = x * 2
    mode.__exit__(None, None, None)
    return y, x * 3


@case(lambda: (t(3, grad=True),))
def a_grad_mode_switched_and_a_break(x):
    torch.set_grad_enabled(False)
    y = x * 2
    print("break")
    torch.set_grad_enabled(True)
    return y, x * 3


@case(lambda: (t(3), []))
def managers_in_a_loop(x, log):
    for name in "abc":
        with traced(log, name):
            if name == "b":
                continue
            x = x + 1
    return x, log


@case(lambda: (t(3), []))
def managers_in_a_loop_with_a_break(x, log):
    for name in "ab":
        with traced(log, name):
            x = x + 1
            print(name)
    return x, log


@case(lambda: (t(3), []))
def a_return_through_managers(x, log):
    with traced(log, "a"), traced(log, "b"):
        return x + 1, list(log)


@case(lambda: (t(3), []))
def a_return_through_managers_after_a_break(x, log):
    with traced(log, "a"), traced(log, "b"):
        print("break")
        return x + 1, list(log)


@contextlib.contextmanager
def nested(log):
    with traced(log, "outer"):
        with traced(log, "inner"):
            yield 2


@case(lambda: (t(3), []))
def a_generator_manager_with_managers(x, log):
    with nested(log) as n:
        x = x * n
    return x, log


@case(lambda: (t(3), []))
def suppressed_errors(x, log):
    with contextlib.suppress(KeyError, IndexError):
        log.append(1)
        {}["missing"]
        log.append(2)
    with contextlib.suppress(ValueError):
        x = x + 1
    return x, log


@case(lambda: (t(3), []))
def output_redirected(x, log):
    import io

    held = io.StringIO()
    with contextlib.redirect_stdout(held):
        print("hidden")
        y = x + 1
    return y, held.getvalue()


class Reentrant(contextlib.ContextDecorator):
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, *told):
        self.log.append("out")


@case(lambda: (t(3), []))
def a_manager_class_as_a_decorator(x, log):
    @Reentrant(log)
    def inner(a):
        return a + 1

    with Reentrant(log):
        x = inner(x)
    return x, log


@case(lambda: (t(3), []))
def a_manager_kept_in_a_local(x, log):
    manager = traced(log, "held")
    x = x + 1
    with manager as name:
        x = x + len(name)
    return x, log


@case(lambda: (t(3), []))
def a_manager_entered_twice_raises(x, log):
    manager = traced(log, "held")
    with manager:
        x = x + 1
    try:
        with manager:
            x = x * 100
    except (RuntimeError, AttributeError) as error:
        return x, type(error).__name__


@case(lambda: (t(3),))
def an_object_that_is_no_manager(x):
    try:
        with object():
            x = x + 1
    except TypeError as error:
        return x, "context manager" in str(error)


@case(lambda: (t(3, grad=True),))
def grad_modes_as_decorators(x):
    @torch.no_grad()
    def quiet(a):
        return a * 2

    @torch.enable_grad()
    def loud(a):
        return a * 3

    with torch.no_grad():
        z = loud(x)
    return quiet(x), z


@case(lambda: (t(4, 4),))
def autocast_over_a_break(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        print("break")
        z = y @ x
    return y, z


@case(lambda: (t(4, 4),))
def autocast_as_a_decorator(x):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def inner(a):
        return a @ a

    return inner(x), x @ x


@case(lambda: (t(3),))
def inference_over_a_break(x):
    with torch.inference_mode():
        y = x + 1
        print("break")
        z = y * 2
    return z.is_inference(), z.clone() + 0


@case(lambda: (t(3),), reuse=Reuse.FREE)
def an_exit_that_raises(x):
    class Raising:
        def __enter__(self):
            return 1

        def __exit__(self, *told):
            raise KeyError("exit")

    try:
        with Raising() as n:
            x = x + n
            raise ValueError("body")
    except KeyError as error:
        return x, type(error.__context__).__name__


def switched_off():
    """A mode that was switched when it was made, and was on before."""
    mode = torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    return mode


@case(lambda: (t(3, grad=True), switched_off()))
def a_grad_mode_that_was_noted_before(x, manager):
    with torch.no_grad():
        with manager:
            y = x * 2
        z = x * 3
    return y, z, torch.is_grad_enabled()
