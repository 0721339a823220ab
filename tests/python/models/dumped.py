"""Executes the text of a dump in torch: the module it defines, with the inputs it loads."""

import torch
from torch._dynamo.debug_utils import InputReader


def load_module(text, name):
    """The module of a dump and its `load_args`, which is None where the text has none. Executes the text."""
    scope = {"__name__": "dump", "torch": torch, "inf": float("inf"), "nan": float("nan"), "device": torch.device}
    exec(compile(text, name, "exec"), scope)
    return scope["Repro"](), scope.get("load_args")


class SeparateStorages(InputReader):
    """torch's reader gives storages with equal bytes the same memory, so that a write to a running mean of zeros also changes a bias of
    zeros. Each storage of a dump is one of its own."""

    def storage(self, *args, **kwargs):
        return super().storage(*args, **kwargs).clone()


def load_inputs(load_args, folder):
    """Fresh tensors from the storages in the folder, so that a run may write to them."""
    reader = SeparateStorages(save_dir=str(folder))
    load_args(reader)
    return reader.args


def double(value):
    wide = isinstance(value, torch.Tensor) and value.dtype == torch.float32
    return value.detach().double() if wide else value
