"""Context managers and decorators of torch."""

import contextlib

import torch
from capture.cases import case, t


@case(lambda: (t(3, grad=True),))
def inference_mode(x):
    with torch.inference_mode():
        y = x * 2
    return y.clone()


@torch.inference_mode()
def by_inference(x):
    return x * 2


@case(lambda: (t(3),))
def inference_mode_as_a_decorator(x):
    return by_inference(x)


@torch.enable_grad()
def with_grad(x):
    return x * 2


@case(lambda: (t(3, grad=True),))
def enable_grad_as_a_decorator(x):
    with torch.no_grad():
        return with_grad(x)


@case(lambda: (t(3, grad=True),))
def no_grad_of_a_lambda(x):
    return torch.no_grad()(lambda y: y * 2)(x)


@case(lambda: (t(4, 4),))
def autocast_off(x):
    with torch.autocast("cpu", enabled=False):
        return x @ x


@case(lambda: (t(3),))
def autocast_questions(x):
    return torch.is_autocast_enabled("cpu"), torch.is_autocast_cpu_enabled(), torch.get_autocast_dtype("cpu"), x + 1


@case(lambda: (t(3, grad=True),))
def saved_tensors_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda y: y * 2, lambda y: y / 2):
        return (x * x).sum()


@case(lambda: (t(3, grad=True),))
def saved_tensors_hooks_off(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        return (x * x).sum()


@case(lambda: (t(3),))
def profiled(x):
    with torch.profiler.record_function("name"):
        y = x * 2
    with torch.autograd.profiler.record_function("other"):
        return y + 1


@case(lambda: (t(3),))
def device_as_a_context(x):
    with torch.device("cpu"):
        return torch.ones(3) + x


@case(lambda: (t(3),))
def no_torch_function(x):
    with torch._C.DisableTorchFunctionSubclass():
        return x * 2


@case(lambda: (t(3),))
def no_torch_function_at_all(x):
    with torch._C.DisableTorchFunction():
        return x * 2


@case(lambda: (t(1, 1, 4, 8),))
def sdpa_kernel(x):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x)


@case(lambda: (t(3, grad=True),))
def null_context(x):
    with contextlib.nullcontext():
        y = x * 2
    with contextlib.nullcontext(5) as five:
        return y + five


@case(lambda: (t(3, grad=True),))
def exit_stack_of_modes(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = x * 2
    return y, x * 3


@case(lambda: (t(3, grad=True), True), lambda: (t(3, grad=True), False))
def mode_chosen_by_an_argument(x, flag):
    with torch.no_grad() if flag else contextlib.nullcontext():
        return x * 2


@case(lambda: (t(3, grad=True),))
def mode_held_in_a_local(x):
    mode = torch.no_grad()
    with mode:
        y = x * 2
    with mode:
        z = x * 3
    return y, z


@case(lambda: (t(3, grad=True),))
def mode_over_a_break(x):
    with torch.no_grad():
        y = x * 2
        print("break")
        z = y * 3
    return y, z, x * 4


@case(lambda: (t(3),))
def anomaly(x):
    return torch.is_anomaly_enabled(), x + 1


@case(lambda: (t(3, grad=True),))
def grad_mode_in_a_generator(x):
    @contextlib.contextmanager
    def quiet():
        with torch.no_grad():
            yield

    with quiet():
        y = x * 2
    return y


@case(lambda: (t(3, grad=True),))
def set_multithreading(x):
    with torch.autograd.set_multithreading_enabled(False):
        return x * 2


@case(lambda: (t(3, grad=True),))
def forward_ad(x):
    import torch.autograd.forward_ad as fwAD

    with fwAD.dual_level():
        dual = fwAD.make_dual(x.detach(), torch.ones(3))
        y = dual.sin()
        return fwAD.unpack_dual(y).tangent


@case(lambda: (t(3),))
def deterministic(x):
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    y = x * 2
    torch.use_deterministic_algorithms(before)
    return y


@case(lambda: (t(3),))
def flags_of_backends(x):
    return torch.backends.cudnn.enabled, torch.backends.mkldnn.is_available(), x * 2


@case(lambda: (t(3, grad=True),))
def set_grad_enabled_held(x):
    guard = torch.set_grad_enabled(False)
    y = x * 2
    with guard:
        z = x * 3
    torch.set_grad_enabled(True)
    return y, z
