"""Backends of torch.compile that misbehave where a graph has a relu, for `--import broken_backends`."""

import multiprocessing
import os
import signal
import sys
import time

import torch
import torch._inductor.config
from torch._dynamo import register_backend


def has_relu(module):
    return any("relu" in str(node.target) for node in module.graph.nodes if node.op == "call_function")


def broken(name):
    """Registers a function as what happens when a compiled relu runs."""

    def wrap(happens):
        @register_backend(name=name)
        def compiler(module, _example_inputs, **_options):
            def run(*arguments):
                if has_relu(module):
                    happens()
                return module.forward(*arguments)

            return run

        return happens

    return wrap


@register_backend
def relu_compile_error(module, _example_inputs):
    if has_relu(module):
        raise ValueError("relu is refused")
    return module.forward


@register_backend
def relu_accuracy_error(module, _example_inputs):
    """PyTorch's backend of this kind knows `torch.relu` only; Pyrite's programs call the ATen operator."""
    for node in module.graph.nodes:
        if "relu" in str(node.target) and node.op == "call_function":
            with module.graph.inserting_after(node):
                wrong = module.graph.call_function(torch.add, (node, 1))
            node.replace_all_uses_with(wrong)
            wrong.args = (node, 1)
    module.recompile()
    return module.forward


@register_backend
def relu_unwritten(module, _example_inputs):
    """Leaves the last element of a result as it was allocated, which by chance is what it should be unless memory is poisoned."""

    def run(*arguments):
        outputs = module.forward(*arguments)
        if not has_relu(module):
            return outputs
        made = []
        for each in outputs:
            fresh = torch._C._dynamo.guards._empty_strided_cpu(tuple(each.shape), tuple(each.stride()), each.dtype)
            is_poisoned = bool(fresh.isnan().all())
            fresh.copy_(each.detach())
            if is_poisoned:
                fresh.view(-1)[-1] = torch.nan
            made.append(fresh)
        return tuple(made)

    return run


@broken("relu_runtime_error")
def relu_runtime_error():
    raise RuntimeError("relu is refused")


@broken("garbage")
def garbage():
    print("\x00 what is this? }{", flush=True)
    sys.stdout.flush()


@broken("bare_assert")
def bare_assert():
    raise AssertionError


class Mute(Exception):
    def __str__(self):
        raise ValueError("nobody knows")


@broken("mute")
def mute():
    raise Mute


@broken("no_text")
def no_text():
    raise RuntimeError("relu of \ud800 is refused")


@broken("unfinished")
def unfinished():
    """Prints without ending its line, and bytes that are no text."""
    sys.stdout.flush()
    os.write(1, b"\xff 50 %")
    raise ValueError("relu is refused")


@broken("terminated")
def terminated():
    os.kill(os.getpid(), signal.SIGTERM)


@broken("pool")
def pool():
    """Is right, and ends a process of its own as pools do: by SIGTERM."""
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,))
    child.start()
    child.terminate()
    child.join()


@broken("silent_exit")
def silent_exit():
    os._exit(0)


@broken("segfault")
def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


@broken("hungry")
def hungry():
    kept = []
    while True:
        kept.append(torch.empty(1 << 32, dtype=torch.uint8))


@broken("abort")
def abort():
    os.abort()


@broken("divide")
def divide():
    """What the processor does when an integer is divided by zero."""
    signal.raise_signal(signal.SIGFPE)


@broken("hang")
def hang():
    while True:
        time.sleep(1)


class Spoiled(torch.autograd.Function):
    """What is given, with a wrong gradient."""

    @staticmethod
    def forward(_context, value):
        return value.clone()

    @staticmethod
    def backward(_context, gradient):
        return gradient + 1


@register_backend
def relu_backward_error(module, _example_inputs):
    def run(*arguments):
        results = module.forward(*arguments)
        if not has_relu(module):
            return results
        return type(results)(Spoiled.apply(result) if result.requires_grad else result for result in results)

    return run


@register_backend
def in_single(module, _example_inputs):
    """Computes in single precision what is in half, and rounds at the end, as compilers do."""

    def run(*arguments):
        if not any(value.dtype == torch.half for value in arguments):
            return module.forward(*arguments)
        wide = [value.float() if value.dtype == torch.half else value for value in arguments]
        results = module.forward(*wide)
        return type(results)(result.half() for result in results)

    return run


@register_backend
def relu_error_unfused(module, _example_inputs):
    """Refuses relu only where one of Inductor's settings is another than usual."""
    if has_relu(module) and torch._inductor.config.max_fusion_size == 1:
        raise ValueError("relu is refused where nothing is fused")
    return module.forward


@register_backend
def once_rounded(module, _example_inputs):
    """Computes in single precision what is in bfloat16, and rounds at the end."""

    def run(*arguments):
        wide = [value.float() for value in arguments]
        return tuple(result.bfloat16() for result in module.forward(*wide))

    return run


@register_backend
def two_errors(module, _example_inputs):
    """Refuses relu, and without one cosines, with errors of one type from one function."""
    if has_relu(module):
        raise ValueError("relu is refused")
    if any("cos" in str(node.target) for node in module.graph.nodes):
        raise ValueError("a cosine cannot be lowered")
    return module.forward


@register_backend
def needs_all(module, _example_inputs):
    """Is wrong about relu in graphs that write too."""

    def run(*arguments):
        first, *rest = module.forward(*arguments)
        wrong = has_relu(module) and "add_" in module.code
        return (first, *(value + 1 if wrong else value for value in rest))

    return run
