"""The frame from which a compiled module is called: it is captured, so hooks and `forward` are followed from here."""


def call_module(module, args, kwargs):
    return module(*args, **kwargs)
