"""Makes `torch.compile(backend="pyrite")` known where torch's registry of backends is, or will be, imported.

torch finds installed packages by their entry points; a package that is merely on the path is found by this. Neither torch nor
its compiler is imported here.
"""

import importlib.metadata
import importlib.util
import sys

REGISTRY = "torch._dynamo.backends.registry"
BACKENDS = {"pyrite": "pyrite.torch_backend:pyrite", "pyrite_debug": "pyrite.torch_backend:pyrite_debug"}


def add_to(registry):
    """Puts the backends into torch's table; they are imported when they are asked for."""
    for name, value in BACKENDS.items():
        registry._BACKENDS.setdefault(name, importlib.metadata.EntryPoint(name, value, "torch_dynamo_backends"))


class _Finder:
    """Meets the registry when it is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != REGISTRY:
            return None
        sys.meta_path.remove(_Finder)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            add_to(module)

        spec.loader.exec_module = exec_module
        return spec


def register():
    """Registers now, or as soon as there is a registry."""
    if registry := sys.modules.get(REGISTRY):
        add_to(registry)
    elif _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
