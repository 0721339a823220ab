"""`pyrite.export`: one graph with what has to hold of its arguments, saved to a file that Python and the command read."""

import json
import random

import pytest
import torch
from capture import harness
from torch import nn

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")

GLOBAL = torch.full((4,), 2.0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, extra, *, scale=1.0):
        self.seen.add_(1)
        y = self.linear(x) * scale * GLOBAL
        return {"y": y + extra["k"], "rows": x.shape[0] * 2, "same": x, "seen": self.seen * 1}


def example(rows=6):
    return (torch.randn(rows, 4), {"k": torch.randn(rows, 1)}), {"scale": 2.0}


def exported(package, model):
    rows = torch.export.Dim("rows", min=2, max=64)
    args, kwargs = example()
    return package.export(model, args, kwargs, dynamic_shapes={"x": {0: rows}, "extra": {"k": {0: rows}}})


@pytest.fixture
def package():
    import pyrite

    pyrite.reset()
    return pyrite


def test_a_program_computes_what_the_module_does_for_sizes_that_are_free(package):
    model = Model()
    program = exported(package, model)
    assert model.seen == 0, "exporting changes nothing"
    for rows in (6, 3, 64):
        args, kwargs = example(rows)
        plain = Model()
        have, want = program(*args, **kwargs), plain(*args, **kwargs)
        model.seen.zero_()
        torch.testing.assert_close(have["y"], want["y"])
        assert have["rows"] == rows * 2 and have["same"] is args[0] and have["seen"] == 1


def test_the_signature_names_what_every_input_is(package):
    signature = exported(package, Model()).graph_signature
    assert sorted(signature.parameters) == ["linear.bias", "linear.weight"] and signature.buffers == ["seen"]
    assert len(signature.user_inputs) == 2
    assert [spec.kind.value for spec in signature.inputs].count("constant") == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda args, kwargs: args.__setitem__(0, torch.randn(6, 5)), "the size 1 of x is 5, expected 4"),
        (lambda args, kwargs: args.__setitem__(0, torch.randn(5, 4)), "both are `rows`"),
        (lambda args, kwargs: args.__setitem__(0, torch.randn(6, 4).double()), "expected torch.float32"),
        (lambda args, kwargs: args.__setitem__(0, 3), "expected a tensor"),
        (lambda args, kwargs: args.__setitem__(1, {"j": torch.randn(6, 1)}), "structure of the arguments"),
        (lambda args, kwargs: kwargs.update(scale=3.0), "exported for 2.0"),
        (lambda args, kwargs: args.__setitem__(slice(0, 2), [torch.randn(65, 4), {"k": torch.randn(65, 1)}]), "at most 64"),
    ],
)
def test_a_call_that_does_not_fit_is_an_error_with_a_remedy(package, change, said):
    program = exported(package, Model())
    args, kwargs = example()
    args = list(args)
    change(args, kwargs)
    with pytest.raises(package.ExportError, match=said):
        program(*args, **kwargs)


def test_what_was_assumed_of_sizes_is_checked_at_the_call(package):
    def function(x):
        return x * 2 if x.shape[0] > 4 else x + 1

    program = package.export(function, (torch.ones(6),), dynamic_shapes=({0: "n"},))
    assert torch.equal(program(torch.ones(9)), torch.full((9,), 2.0))
    with pytest.raises(package.ExportError, match="n = 3"):
        program(torch.ones(3))


def test_a_size_that_the_program_fixes_cannot_be_free(package):
    def function(x):
        return x + sum(range(x.shape[0]))

    with pytest.raises(package.ExportError, match="requires it to be 6"):
        package.export(function, (torch.ones(6),), dynamic_shapes=({0: "n"},))


def test_a_break_is_an_error_that_says_where(package):
    def function(x):
        print("here")
        return x + 1

    with pytest.raises(package.GraphBreakError, match="print") as caught:
        package.export(function, (torch.ones(2),))
    assert "Help" in str(caught.value) and "test_capture_export.py" in str(caught.value)


def test_an_assertion_about_data_is_part_of_the_program(package, tmp_path):
    def function(x):
        torch._assert(x.sum() > 0, "positive")
        return x + 1

    package.export(function, (torch.ones(2),)).save(tmp_path / "f.py")
    program = package.load(tmp_path / "f.py")
    assert torch.equal(program(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(AssertionError, match="asserts"):
        program(-torch.ones(2))


def test_random_numbers_of_python_are_refused(package):
    def function(x):
        return x * random.random()

    with pytest.raises(package.ExportError, match="draws Python random numbers"):
        package.export(function, (torch.ones(2),))


def test_effects_on_objects_of_python_are_refused_and_do_not_happen(package):
    log = []

    def function(x):
        log.append(1)
        return x + 1

    with pytest.raises(package.ExportError, match="changes 1 objects of Python"):
        package.export(function, (torch.ones(2),))
    assert log == []


def test_a_saved_program_is_read_by_python_and_by_the_command(package, pyrite, tmp_path):
    model = Model()
    program = exported(package, model)
    program.save(tmp_path / "model.py")
    loaded = package.load(tmp_path / "model.py")
    args, kwargs = example(5)
    want = Model()(*args, **kwargs)
    torch.testing.assert_close(loaded(*args, **kwargs)["y"], want["y"])
    assert loaded.state_dict.keys() == program.state_dict.keys() and loaded.ranges == program.ranges
    with pytest.raises(package.ExportError, match="both are `rows`"):
        loaded(args[0], {"k": torch.randn(6, 1)}, **kwargs)
    assert json.loads(pyrite("run", tmp_path / "model.py", "--json"))["verdict"] == "pass"


def test_a_damaged_file_is_an_error_with_a_remedy(package, tmp_path):
    exported(package, Model()).save(tmp_path / "model.py")
    text = (tmp_path / "model.py").read_text()
    (tmp_path / "other.py").write_text(text.replace('"format": 1', '"format": 99'))
    with pytest.raises(package.ExportError, match="format 99"):
        package.load(tmp_path / "other.py")
    for storage in (tmp_path / "storages").iterdir():
        storage.write_bytes(storage.read_bytes()[:-40])
    with pytest.raises(package.ExportError, match="storage"):
        package.load(tmp_path / "model.py")
    (tmp_path / "none.py").write_text("print('hello')\n")
    with pytest.raises(package.ExportError, match="not written by pyrite.export"):
        package.load(tmp_path / "none.py")
