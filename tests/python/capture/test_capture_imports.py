"""Imports inside of compiled functions: of what is loaded, of what is not yet, of what is nowhere. A package is made for each test, as no other has loaded it."""

import importlib
import sys
import textwrap

import pytest
import torch

import pyrite

FILES = {
    "__init__.py": "",
    "plain.py": "ORDER.append('plain')\nFACTOR = 2\n",
    "deep/__init__.py": "ORDER.append('deep')\n",
    "deep/inner.py": "ORDER.append('inner')\nFACTOR = 3\n",
    "broken.py": "ORDER.append('broken')\nraise ImportError('needs what is not installed')\n",
    "user.py": """
        SEEN = []

        def all_of(x):
            import {package}.plain
            return x * {package}.plain.FACTOR

        def submodule(x):
            from {package} import plain
            return x * plain.FACTOR

        def relative(x):
            from . import plain
            from .deep import inner
            return x * plain.FACTOR + inner.FACTOR

        def deep(x):
            from .deep.inner import FACTOR as factor
            return x * factor

        def missing(x):
            try:
                import {package}.nowhere
            except ModuleNotFoundError as error:
                return x - len(error.name)
            return x

        def missing_name(x):
            try:
                from .plain import NOWHERE
            except ImportError:
                return x - 1
            return x * NOWHERE

        def missing_submodule(x):
            try:
                from . import nowhere
            except ImportError as error:
                return x - 1
            return x

        def broken(x):
            try:
                from . import broken
            except ImportError as error:
                return x - len(str(error))
            return x

        def after_an_effect(x):
            SEEN.append("before")
            from . import plain
            SEEN.append("after")
            return x * plain.FACTOR
    """,
}
FUNCTIONS = ["all_of", "submodule", "relative", "deep", "missing", "missing_name", "missing_submodule", "broken", "after_an_effect"]
# What is left to plain Python.
BREAKS = {"broken", "after_an_effect"}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes a package of its own, and says in which order its modules ran."""
    import builtins

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(builtins, "ORDER", [], raising=False)

    def make(package):
        for name, text in FILES.items():
            file = tmp_path / package / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text).replace("{package}", package))
        importlib.invalidate_caches()
        builtins.ORDER.clear()
        return importlib.import_module(f"{package}.user"), builtins.ORDER

    yield make
    for name in [name for name in sys.modules if name.startswith("made_")]:
        del sys.modules[name]
    pyrite.reset()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_import_does_what_it_does_in_plain_python(made, name):
    x = torch.arange(4.0)
    plain, order = made(f"made_plain_{name}")
    want = [getattr(plain, name)(x) for _ in range(2)]
    wanted_order, wanted_effects = list(order), list(plain.SEEN)
    module, order = made(f"made_compiled_{name}")
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    compiled = pyrite.compile(getattr(module, name), backend=backend)
    for expected in want:
        # The length of a package's name is in what is raised for it.
        assert name == "missing" or torch.equal(compiled(x), expected)
        assert name != "missing" or torch.equal(compiled(x), x - len(f"made_compiled_{name}.nowhere"))
    # A module that cannot be imported is tried when the frame is captured, and again by plain Python.
    assert order == wanted_order + ["broken"] * (name == "broken")
    assert module.SEEN == wanted_effects
    if name not in BREAKS:
        assert len(graphs) == 1


def test_a_module_that_comes_later_is_found(made):
    module, _ = made("made_later")
    compiled = pyrite.compile(module.missing_submodule)
    x = torch.arange(4.0)
    assert torch.equal(compiled(x), x - 1)
    sys.modules["made_later"].nowhere = 1
    assert torch.equal(compiled(x), x)


def test_a_frame_with_other_builtins_is_captured():
    """As `exec` and the constructors of named tuples have them: nothing of Pyrite's may look for `__import__` there."""
    bare = eval("lambda x: (x + 1, None)", {"__builtins__": {}})
    compiled = pyrite.compile(bare, backend="eager")
    for size in (2, 3):
        x = torch.ones(size)
        assert torch.equal(compiled(x)[0], x + 1)


def test_a_frame_runs_plain_while_torch_jit_traces():
    module = torch.nn.Linear(2, 2).eval()
    x = torch.randn(1, 2)

    def traced(x):
        return torch.jit.trace(module, x)

    made = pyrite.compile(traced, backend="eager")(x)
    # What it computes depends on its input: nothing was recorded as a constant.
    other = torch.randn(1, 2)
    assert torch.equal(made(other), module(other)) and not torch.equal(made(x), made(other))
