"""Context managers: torch's modes, own classes, contextlib."""

import contextlib

import torch
from capture.cases import case, t


@case(lambda: (t(3, grad=True),), lambda: (t(3),))
def no_grad(x):
    with torch.no_grad():
        y = x * 2
    return y, x * 3, torch.is_grad_enabled()


@case(lambda: (t(3, grad=True),))
def enable_grad_inside_no_grad(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        c = x * 4
    return a, b, c


@case(lambda: (t(3, grad=True), True), lambda: (t(3, grad=True), False))
def set_grad_enabled_as_a_context(x, flag):
    with torch.set_grad_enabled(flag):
        y = x.sin()
    return y * 2


@case(lambda: (t(3, grad=True),))
def set_grad_enabled_as_a_function(x):
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y, x * 3


@case(lambda: (t(3, grad=True),))
def grad_mode_left_changed(x):
    y = x * 2
    torch.set_grad_enabled(False)
    return y, x * 3


@torch.no_grad()
def without_gradients(x):
    return x * 2


@case(lambda: (t(3, grad=True),))
def no_grad_as_a_decorator(x):
    return without_gradients(x), x + 1


@case(lambda: (t(3, grad=True),))
@torch.no_grad()
def decorated_with_no_grad(x):
    return x * 2


@case(lambda: (t(3),))
def inference_mode(x):
    with torch.inference_mode():
        y = x * 2
    return y.sum().is_inference(), x + 1


@case(lambda: (t(4, 4), t(4, 4)))
def autocast_to_bfloat16(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y
        w = z.float().exp()
    return z, w, x @ y


@case(lambda: (t(4, 4), t(4, 4)))
def autocast_switched_off_inside(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.autocast("cpu", enabled=False):
            z = x @ y
        w = x @ y
    return z, w


class Scope:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, traceback):
        self.log.append(kind.__name__ if kind else "exit")
        return self.swallow


@case(lambda: (t(3), []))
def own_context(x, log):
    with Scope(log) as scope:
        y = x + len(scope.log)
    return y * 2


@case(lambda: (t(3), [], True), lambda: (t(3), [], False))
def own_context_with_an_exception(x, log, swallow):
    with Scope(log, swallow):
        x = x + 1
        raise ValueError("inside")
    return x


@case(lambda: (t(3), []))
def return_inside_with(x, log):
    with Scope(log):
        return x + 1


@case(lambda: (t(3), []))
def break_inside_with(x, log):
    for n in range(3):
        with Scope(log):
            if n == 1:
                break
            x = x + n
    return x


@case(lambda: (t(3), []))
def two_contexts_in_one_with(x, log):
    with Scope(log) as a, Scope(log) as b:
        x = x + len(a.log) + len(b.log)
    return x


@contextlib.contextmanager
def noted(log, name):
    log.append(f"{name} in")
    try:
        yield len(log)
    finally:
        log.append(f"{name} out")


@case(lambda: (t(3), []))
def contextmanager_function(x, log):
    with noted(log, "a") as n:
        y = x * n
        with noted(log, "b") as m:
            y = y + m
    return y


@case(lambda: (t(3), []))
def contextmanager_with_an_exception(x, log):
    try:
        with noted(log, "a"):
            raise KeyError("inside")
    except KeyError:
        x = x - 1
    return x


@case(lambda: (t(3), True), lambda: (t(3), False))
def nullcontext(x, flag):
    with torch.no_grad() if flag else contextlib.nullcontext():
        return x * 2


@case(lambda: (t(3), []))
def exit_stack(x, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(noted(log, "a"))
        stack.callback(log.append, "callback")
        x = x + 1
    return x


@case(lambda: (t(3, grad=True),))
def break_inside_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print("inside")
        z = x * 3
    return y, z, x * 4


@case(lambda: (t(3), []))
def break_inside_own_context(x, log):
    with Scope(log):
        y = x * 2
        print(len(log))
        y = y + 1
    return y


@case(lambda: (t(3), Scope([])))
def context_of_the_caller(x, scope):
    with scope:
        x = x + 1
    with scope as again:
        x = x * len(again.log)
    return x


@case(lambda: (t(3),))
def default_dtype_changed_and_put_back(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3) + x
    torch.set_default_dtype(before)
    return y, torch.ones(2)


@case(lambda: (t(3),))
def device_context(x):
    with torch.device("cpu"):
        return x + torch.ones(3)


@case(lambda: (t(2, 8, 4, 4),))
def sdpa_kernel_context(q):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q)


@case(lambda: (t(3),))
def profiler_record(x):
    with torch.profiler.record_function("step"):
        return x * 2


@case(lambda: (t(3, grad=True),))
def no_grad_left_and_entered_again_around_breaks(x):
    for _ in range(2):
        with torch.no_grad():
            y = x + 1
            print(end="")
            y = y * 2
    return x * 2, y


@case(lambda: (t(3, grad=True),))
def nested_grad_modes_entered_again_around_breaks(x):
    for _ in range(2):
        with torch.no_grad():
            y = x + 1
            with torch.enable_grad():
                z = x * 2
                print(end="")
                z = z + y
            y = y * 3
        z = z * x
    return y, z


@case(lambda: (t(3, grad=True),))
def set_grad_enabled_entered_again_around_breaks(x):
    for on in (False, True, False):
        with torch.set_grad_enabled(on):
            y = x + 1
            print(end="")
            y = y * x
    return x * 2, y
