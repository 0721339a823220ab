"""The frames from which compiled modules, and functions without a frame of their own that is captured, are called."""


def call_module(module, args, kwargs):
    return module(*args, **kwargs)


def call_function(function, args, kwargs):
    return function(*args, **kwargs)
