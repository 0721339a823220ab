"""Who looks at operators while a compiled program is called.

A compiled program reads memory and calls no operator, so a tracer that meets one would take its results for constants, and a
transform would not see what it transforms. Where somebody looks, the operators are run as they were written.
"""

from torch._C import _dispatch_tls_is_dispatch_key_included, _get_dispatch_stack_at, _get_tracing_state, _len_torch_dispatch_stack, _parse_dispatch_key
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

_OLDER_VMAP = _parse_dispatch_key("VmapMode")


def in_older_vmap():
    """Whether several backward passes run at once (`is_grads_batched`): by the `vmap` that was there before torch.func."""
    return _dispatch_tls_is_dispatch_key_included(_OLDER_VMAP)


def is_traced():
    """Whether a mode of torch's dispatcher (a tracer, fake tensors), a transform of torch.func, torch.jit.trace,
    forward-mode differentiation or several backward passes at once are active."""
    return (
        (_len_torch_dispatch_stack() > 0 and _somebody_looks())
        or peek_interpreter_stack() is not None
        or _get_tracing_state() is not None
        or forward_ad._current_level >= 0
        or in_older_vmap()
    )


def _somebody_looks():
    """Whether a mode is active beside that of AOTAutograd, which checks user-defined operators in a graph's first run."""
    modes = [_get_dispatch_stack_at(place) for place in range(_len_torch_dispatch_stack())]
    return any(type(mode).__name__ != "_AnalyzeCustomOpInputOutputMode" for mode in modes)
