"""`torch.compile(m, backend="pyrite_debug")`: any backend, checked as it runs, with a repro where it fails."""

import pathlib
import re

import pytest
import torch

import pyrite as package
from pyrite import AccuracyError, CompileError, config


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    torch._dynamo.reset()
    with config.patch(debug_dir=str(tmp_path / "debug")):
        yield
    torch._dynamo.reset()


def debugged(fn, backend, **options):
    return torch.compile(fn, backend="pyrite_debug", options={"backend": backend, "strict": True, **options})


def model(x):
    return (x * 2).relu().sum(1) + x.mean(1)


def repro_of(failure):
    """The repro that an exception names in its last line."""
    path = pathlib.Path(str(failure.value).strip().splitlines()[-1])
    assert path.is_file() and path.suffix == ".py"
    return path


def test_a_right_backend_gives_its_results():
    x = torch.randn(4, 5, requires_grad=True)
    out = debugged(model, "aot_eager_decomp_partition")(x)
    torch.testing.assert_close(out, model(x))


def test_a_difference_is_an_accuracy_error_with_a_minified_repro(pyrite):
    with pytest.raises(AccuracyError, match="differs from eager") as failure:
        debugged(model, "relu_accuracy_error_TESTING_ONLY")(torch.randn(4, 5))
    path = repro_of(failure)
    assert path.parent.name == "minified"
    operators = re.findall(r"torch\.ops\.aten\.(\w+)", path.read_text())
    assert operators == ["relu"]
    pyrite("run", path, "--backend", "relu_accuracy_error_TESTING_ONLY", code=1)


def test_a_compile_error_names_the_repro(pyrite):
    with pytest.raises(CompileError) as failure:
        debugged(model, "relu_compile_error_TESTING_ONLY")(torch.randn(4, 5))
    pyrite("run", repro_of(failure), "--backend", "relu_compile_error_TESTING_ONLY", code=1)


def test_a_runtime_error_names_the_repro():
    with pytest.raises(RuntimeError) as failure:
        debugged(model, "relu_runtime_error_TESTING_ONLY", repro_level=1)(torch.randn(4, 5))
    assert repro_of(failure).name == "repro.py"


def test_a_backend_of_torch_is_run_beside():
    x = torch.randn(4, 5)
    torch.testing.assert_close(debugged(model, "eager")(x), model(x))
    torch._dynamo.reset()
    torch.testing.assert_close(debugged(model, "torch:aot_eager")(x), model(x))


def test_wrong_settings_are_named():
    with pytest.raises(AttributeError, match="has no setting `repro_levl`"), config.patch(repro_levl=3):
        pass
    with pytest.raises(AttributeError, match="has no setting"):
        config.strickt = True
    with pytest.raises(ValueError, match="repro_level is `9`, expected a number from 1 to 4"):
        package._native.compile_debugged(
            package.Graph.from_text("class R(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n"),
            "eager",
            repro_level=9,
        )


def test_a_name_in_a_call_of_torch_compile_means_torchs_backend():
    means = package.torch_backend._as_torch_means
    assert [means(name) for name in ("aot_eager", "inductor", "native")] == ["torch:aot_eager", "torch:inductor", "native"]
    assert means("relu_accuracy_error_TESTING_ONLY") == "relu_accuracy_error_TESTING_ONLY"
    assert package.torch_backend.named("aot_eager") == "aot_eager"


def test_inductor_is_checked_with_the_settings_of_this_process():
    from torch._inductor import config as inductor

    with inductor.patch({"max_fusion_size": 3, "cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}):
        found = package.torch_backend._as_set_here("torch:inductor?cpp.simdlen=0&max_fusion_size=1")
    name, _, settings = found.partition("?")
    settings = settings.split("&")
    assert name == "torch:inductor" and settings == sorted(settings)
    # This process may have changed others too.
    assert {'cpp.inject_relu_bug_TESTING_ONLY="accuracy"', "cpp.simdlen=0", "max_fusion_size=1"} <= set(settings)
    assert "max_fusion_size=3" not in settings
    assert "max_fusion_size" not in package.torch_backend._as_set_here("torch:inductor")
    assert package.torch_backend._as_set_here("native") == "native"
