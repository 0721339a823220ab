"""Operators and backends whose kernels fault, hang or want too much memory, for `--import faulty`.

A backend misbehaves where a graph has a relu; the operators misbehave wherever they are called.
"""

import torch
import triton
import triton.language as tl
from torch._dynamo import register_backend


@triton.jit
def store_far_away(pointer, distance, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(pointer + place * distance, place.to(tl.float32))


@triton.jit
def load_between_elements(pointer, into, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    between = (pointer.to(tl.int64) + 2 + place * 4).to(tl.pointer_type(tl.float32))
    tl.store(into + place, tl.load(between))


@triton.jit
def wait_forever(pointer, BLOCK: tl.constexpr):
    value = tl.load(pointer, volatile=True)
    while value == value:
        value = tl.load(pointer, volatile=True)
    tl.store(pointer + tl.arange(0, BLOCK), value)


@triton.jit
def stop_the_thread(pointer, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    stopped = tl.inline_asm_elementwise("trap; mov.u32 $0, $1;", "=r,r", [place], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(pointer + place, stopped.to(tl.float32))


def illegal_access():
    store_far_away[(1,)](torch.zeros(64, device="cuda"), 1 << 32, 64)


def misaligned_address():
    load_between_elements[(1,)](torch.zeros(256, device="cuda"), torch.zeros(64, device="cuda"), 64)


def device_assert():
    torch.zeros(4, device="cuda").index_put_((torch.tensor([9], device="cuda"),), torch.ones(1, device="cuda"))


def launch_failure():
    stop_the_thread[(1,)](torch.zeros(64, device="cuda"), 64)


def hang():
    wait_forever[(1,)](torch.zeros(64, device="cuda"), 64)


def out_of_memory():
    torch.empty(4 << 30, dtype=torch.uint8, device="cuda")


def has_relu(module):
    return any("relu" in str(node.target) for node in module.graph.nodes if node.op == "call_function")


def faulty_backend(happens):
    @register_backend(name=happens.__name__)
    def compiler(module, _example_inputs, **_options):
        def run(*arguments):
            if has_relu(module):
                happens()
            return module.forward(*arguments)

        return run


for each in (illegal_access, misaligned_address, device_assert, launch_failure, hang, out_of_memory):
    faulty_backend(each)


@torch.library.custom_op("faulty::far_store", mutates_args=())
def far_store(x: torch.Tensor) -> torch.Tensor:
    """A copy of its input, and a store beyond it."""
    result = x.clone()
    store_far_away[(1,)](result, 1 << 32, 64)
    return result


@far_store.register_fake
def _(x):
    return torch.empty_like(x)
