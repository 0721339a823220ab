"""Readers for the `load_args` function of a repro that need neither its data nor torch."""


class InputCounter:
    """Counts what `load_args` of a repro asks for and loads nothing, such as for a progress bar; it takes the place of torch's `NopInputReader`.

    >>> counter = InputCounter()
    >>> load_args(counter)
    >>> counter.total, counter.bytes, counter.arguments
    """

    def __init__(self):
        # Storages to load, their bytes, and the arguments of the program.
        self.total = 0
        self.bytes = 0
        self.arguments = 0

    def storage(self, storage_hash, nbytes, *, device=None, dtype_hint=None):
        self.total += 1
        self.bytes += nbytes

    def tensor(self, *_args, **_metadata):
        self.arguments += 1

    def symint(self, *_args, **_names):
        self.arguments += 1

    def const(self, _name):
        self.arguments += 1

    def unsupported(self, _name):
        self.arguments += 1

    def generator(self, _device_type, _device_index):
        self.arguments += 1

    def opaque(self, _class_name):
        self.total += 1
        self.arguments += 1
