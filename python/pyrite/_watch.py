"""What happens to the compiled regions of a script that is debugged as a whole."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib.machinery
import os
import pathlib
import sys

from pyrite import _native, config
from pyrite._native import AccuracyError


@dataclasses.dataclass
class Failure:
    """A region that failed: with which backend, what was said, and the program as it was before it was minified."""

    backend: str
    message: str
    repro: str | None
    # Whether the region was tested in this process, because no other can import the backend.
    is_local: bool = False

    @staticmethod
    def of(backend, error):
        """What an exception of a checked region says."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        path = pathlib.Path(lines[-1])
        if not (path.suffix == ".py" and path.is_file()):
            return Failure(backend, lines[0], None)
        if path.parent.name == "minified":
            whole = [path.parent.parent / name for name in ("repro.py", "minifier_launcher.py")]
            path = next((each for each in whole if each.is_file()), path)
        return Failure(backend, lines[0], str(path))


@dataclasses.dataclass
class Watch:
    """What happened to the regions of a script."""

    regions: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)
    unchecked: list[str] = dataclasses.field(default_factory=list)
    # Modules that define operators or backends which workers import.
    imports: list[str] = dataclasses.field(default_factory=list)
    # Whether some of those operators are ones that Pyrite does not know, so that torch says what is right.
    unknown_operators: bool = False

    def without_failure(self):
        """What is said of a script without failures."""
        said = f"{self.regions} compiled region{'' if self.regions == 1 else 's'}, no failure"
        if self.unchecked:
            return f"{said}; {len(self.unchecked)} of them could not be checked"
        return said if self.regions else f"{said}; processes that the script starts are not watched"

    def import_all(self, modules):
        """Remembers modules, and returns all that workers have to import."""
        self.imports = sorted({*self.imports, *modules})
        return self.imports


_watches: list[Watch] = []


def current():
    """The innermost watch, if there is one."""
    return _watches[-1] if _watches else None


@contextlib.contextmanager
def watching():
    """Notes what happens to regions."""
    watch = Watch()
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)


@contextlib.contextmanager
def noted(backend):
    """Notes the failure of a region, which is raised on."""
    try:
        yield
    except (AccuracyError, RuntimeError, NotImplementedError) as error:
        if watch := current():
            watch.failures.append(Failure.of(backend, error))
        raise


class Checked:
    """A region of `pyrite.compile` under the debugger: its first calls are checked, the others run eagerly.

    Backends of torch's run in processes of their own, where nobody can record gradients: they are given copies, and the
    results are those of an eager run.
    """

    def __init__(self, program, graph, backend):
        self.program, self.graph, self.backend = program, graph, backend
        self.calls = 0
        self.eager = None
        if watch := current():
            watch.regions += 1

    def __call__(self, *arguments):
        self.calls += 1
        if not config.debug_calls or self.calls <= config.debug_calls:
            with noted(self.backend):
                if not self.backend.startswith("torch:"):
                    return self.program(*arguments)
                beside(self.program, arguments)
        return self._eagerly(arguments)

    def _eagerly(self, arguments):
        if self.eager is None:
            try:
                self.eager = _native.run_by_torch(self.graph)
            except NotImplementedError:
                self.eager = _native.compile(self.graph, "eager", None, arguments)
        return self.eager(*arguments)


def beside(program, arguments):
    """Runs a program on copies of arguments, those that share memory do so again, and leaves no trace of it."""
    import torch

    memo, differentiated = {}, torch.is_grad_enabled()

    def copied(value):
        if not isinstance(value, torch.Tensor):
            return value
        return copy.deepcopy(value.detach(), memo).requires_grad_(value.requires_grad and differentiated)

    with torch.random.fork_rng(devices=[]):
        program(*map(copied, arguments))


def judged_here(function, name):
    """A backend that no worker can import, as one whose calls are compared with eager in this process."""
    import torch

    def wrong(message):
        if watch := current():
            said = f"{message} (tested in this process, because no other can import the backend)"
            watch.failures.append(Failure(name, said, None, is_local=True))

    def backend(module, example_inputs, **options):
        if watch := current():
            watch.regions += 1
        try:
            with _native.crashes_in(f"the backend {name}, which compiles a region"):
                compiled = function(module, example_inputs, **options)
        except Exception as error:
            wrong(f"it raises {type(error).__name__} while it compiles: {error}")
            raise

        def run(*arguments):
            with torch.random.fork_rng(devices=[]):
                state = torch.get_rng_state()
                want = _left_by(module.forward, arguments, module)
                torch.set_rng_state(state)
                try:
                    with _native.crashes_in(f"a region that the backend {name} compiled"):
                        have = _left_by(compiled, arguments, module)
                except Exception as error:
                    wrong(f"it raises {type(error).__name__}: {error}")
                else:
                    torch.set_rng_state(state)
                    if found := _difference(want, have, lambda: _left_in_double(module, arguments)):
                        wrong(found)
            return module.forward(*arguments)

        return run

    return backend


def _left_by(function, arguments, module):
    """What a call on copies of arguments leaves behind: results, what it wrote, and gradients of a loss. The tensors of the module that
    the region is are those of the script, so they are put back."""
    import torch
    import torch.utils._pytree as pytree

    memo = {}
    given = [copy.deepcopy(v.detach(), memo).requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v for v in arguments]
    attributes = [*module.parameters(), *module.buffers()]
    before = [value.detach().clone() for value in attributes]
    try:
        results = pytree.tree_leaves(function(*given))
        counted = [v for v in results if isinstance(v, torch.Tensor) and v.requires_grad and (v.is_floating_point() or v.is_complex())]
        wanted = [v for v in given if isinstance(v, torch.Tensor) and v.requires_grad]
        gradients = []
        if counted and wanted:
            loss = sum(value.abs().mean() if value.is_complex() else value.mean() for value in counted)
            gradients = torch.autograd.grad(loss, wanted, allow_unused=True)
        after = [value.detach().clone() for value in attributes]
    finally:
        for value, was in zip(attributes, before):
            # What autograd has saved of the script's own calls counts writes to `value`, but not to its data.
            value.data.copy_(was)
    return {"results": results, "inputs": given, "attributes": after, "gradients": list(gradients)}


def _left_in_double(module, arguments):
    """What the region leaves behind in double precision; None where it cannot be computed so."""
    from torch._dynamo.debug_utils import cast_to_fp64

    try:
        function, inputs = cast_to_fp64(copy.deepcopy(module), list(arguments))
        return _left_by(function, inputs, function)
    except Exception:
        return None


def _difference(want, have, exact):
    """How a call differs from an eager one, as the debugger compares; None where it does not, or by rounding alone."""
    from pyrite._session import same

    found = same(want, have)
    if not found and (exact := exact()) is not None:
        found = same(want, have, exact=exact)
    if not found:
        lines = [line.strip() for line in str(found).splitlines() if line.strip()]
        return "; ".join(line.rstrip(":;") for line in lines)
    for number, (one, other) in enumerate(zip(want["results"], have["results"])):
        if _strides(one) != _strides(other):
            return f"result {number} has the strides {one.stride()} in eager, {other.stride()} compiled"
    return None


def _strides(value):
    """The strides of dimensions in which steps are taken."""
    is_dense = hasattr(value, "stride") and str(value.layout) == "torch.strided"
    return [stride for stride, size in zip(value.stride(), value.shape) if size > 1] if is_dense and value.numel() > 1 else None


def module_of(function):
    """The module in which others find a function; None where it is the script itself or cannot be found."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return module if found is function and module != "__main__" else None


def module_registering(function):
    """The module of a backend's function, where importing it registers the backend; None where that is the script's doing."""
    name = getattr(function, "__module__", None)
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__" or not file or not os.path.isfile(file):
        return None
    return name if "register_backend" in pathlib.Path(file).read_text(encoding="utf-8", errors="replace") else None


# The namespaces of operators that torch itself defines.
_OF_TORCH = {"torch", "aten", "higher_order", "inductor", "prim", "prims", "quantized"}


def _space(operator):
    return operator.removeprefix("torch.ops.").split(".")[0]


def not_of_torch(operators):
    """The operators that a process does not have that has only imported torch."""
    return [name for name in operators if _space(name) not in _OF_TORCH]


def modules_defining(operators):
    """The modules in whose text the namespaces of operators occur; none where one of them occurs nowhere."""
    spaces = {_space(name) for name in operators}
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or not file or not file.endswith(tuple(importlib.machinery.SOURCE_SUFFIXES)):
            continue
        if file.startswith(_packages()) or not os.path.isfile(file):
            continue
        text = pathlib.Path(file).read_text(encoding="utf-8", errors="replace")
        for space in spaces:
            if f'"{space}' in text or f"'{space}" in text:
                found.setdefault(space, []).append(name)
    return sorted({name for names in found.values() for name in names}) if set(found) == spaces else []


def _packages():
    import torch

    return os.path.dirname(torch.__file__), os.path.dirname(os.path.abspath(__file__))
