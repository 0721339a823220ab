"""Programs of torch.export, `.pt2` files, read without torch."""

import zipfile

import numpy as np
import pytest
import torch

import pyrite as package
from pyrite import backends


class Mixed(torch.nn.Module):
    """Parameters, a buffer, a constant, several outputs, lists of tensors, symbolic sizes."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0, 4.0]))
        self.constant = torch.ones(4)

    def forward(self, x):
        n = x.shape[0]
        first, second = self.linear(x).split([1, 3], 1)
        largest, place = x.max(1)
        filled = torch.full((n * 2, 4), 1.5, dtype=torch.float64)
        return torch.cat([second, first], 1) * self.scale + self.constant, largest, place, filled, x[torch.arange(2)]


def saved(module, inputs, path, **settings):
    torch.export.save(torch.export.export(module, inputs, **settings), path)
    return path


@pytest.fixture
def mixed(tmp_path):
    torch.manual_seed(0)
    module = Mixed().eval()
    batch = torch.export.Dim("batch")
    return module, saved(module, (torch.randn(5, 4),), tmp_path / "mixed.pt2", dynamic_shapes=({0: batch},))


@pytest.mark.parametrize("backend", ["aot_eager", "native"])
def test_an_archive_is_a_graph_with_its_weights(mixed, backend):
    module, path = mixed
    graph = package.Graph.from_file(path)
    x = torch.randn(5, 4)
    program = backends.compiled(graph, backend, None, (x,))
    for rows in (5, 7):
        x = torch.randn(rows, 4)
        with torch.no_grad():
            torch.testing.assert_close(program(x), list(module(x)))


def test_the_command_runs_an_archive_at_the_sizes_of_its_export(mixed, pyrite):
    _, path = mixed
    assert "aten.linear.default" in pyrite("show", path)
    said = pyrite("run", path, "--backend", "native")
    assert "native agrees" in said and "f32[5, 4]" in said


class Counting(torch.nn.Module):
    """Writes to a buffer and to an input, draws nothing, returns a size."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x, extra):
        self.count.add_(1)
        extra.mul_(2)
        return self.norm(x) * self.count.sum() + extra, x.shape[0] * 2


@pytest.mark.parametrize("decomposed", [False, True])
def test_writes_to_buffers_and_inputs_are_kept(tmp_path, pyrite, decomposed):
    program = torch.export.export(Counting(), (torch.randn(5, 4), torch.randn(4)), dynamic_shapes=({0: torch.export.Dim("batch")}, None))
    if decomposed:
        program = program.run_decompositions()
        assert any("MUTATION" in str(spec.kind) for spec in program.graph_signature.output_specs)
    path = tmp_path / "counting.pt2"
    torch.export.save(program, path)
    x, extra = torch.randn(6, 4), torch.randn(4)
    found = extra.clone()
    graph = package.Graph.from_file(path)
    outputs = backends.compiled(graph, "native", None, (x, found))(x, found)
    module, wanted = Counting(), extra.clone()
    expected = module(x, wanted)
    torch.testing.assert_close(outputs[0], expected[0].detach())
    torch.testing.assert_close(found, wanted)
    assert outputs[1] == 12
    assert "native agrees" in pyrite("run", path, "--backend", "native")


def test_an_archive_is_debugged_like_any_program(tmp_path, pyrite):
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()
    path = saved(module, (torch.randn(3, 4),), tmp_path / "relu.pt2")
    pyrite("run", path, "--backend", "relu_accuracy_error_TESTING_ONLY", code=1)
    small = tmp_path / "small"
    pyrite("minify", path, "--backend", "relu_accuracy_error_TESTING_ONLY", "--out", small)
    assert "relu" in "".join(each.read_text() for each in small.rglob("*.py"))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit_b_32"])
def test_exported_architectures_compute_what_torch_does(tmp_path, name):
    from models.sweep import build

    model, arguments = build(name, "eval")
    program = torch.export.export(model, (), arguments)
    torch.export.save(program, tmp_path / "model.pt2")
    graph = package.Graph.from_file(tmp_path / "model.pt2")
    given = tuple(arguments.values())
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(model(**arguments))
        found = backends.compiled(graph, "native", None, given)(*given)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_the_command_computes_what_torch_does(tmp_path, pyrite):
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Hardswish()).eval()

    class Constant(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            return self.module(x * 0 + 1)

    path = saved(Constant(), (torch.randn(1, 1, 6, 6),), tmp_path / "constant.pt2")
    pyrite("run", path, "--backend", "native", "--save-outputs", tmp_path / "out.npz")
    with torch.no_grad():
        expected = module(torch.ones(1, 1, 6, 6)).numpy()
    (found,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_what_is_no_program_is_refused_with_a_reason(tmp_path, mixed):
    _, path = mixed
    other = tmp_path / "other.pt2"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("other/data.pkl", b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(ValueError, match="torch.export"):
        package.Graph.from_file(other)
    cut = tmp_path / "cut.pt2"
    cut.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="torch.export"):
        package.Graph.from_file(cut)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w") as changed:
        for name in archive.namelist():
            data = archive.read(name)
            if name.endswith("model.json"):
                data = data.replace(b"torch.ops.aten.linear.default", b"__import__('os').system")
            changed.writestr(name, data)
    with pytest.raises(ValueError, match="torch.export"):
        package.Graph.from_file(other)
