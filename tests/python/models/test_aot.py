"""Ahead-of-time autograd against torch autograd: the five models from their dumps, and small programs as Dynamo captures them."""

import functools
import json
import re
from collections import Counter

import pytest
import torch

from models import measured
from models.training import Dump, capture, gradient_difference, run
from operators.compare import value_difference

every_model = pytest.mark.parametrize("model", measured.MODELS)
both_partitioners = pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_default_partitioner"])

BACKENDS = [
    "eager",
    "eager_noexcept",
    "eager_debug",
    "pre_dispatch_eager",
    "aot_eager",
    "aot_eager_default_partitioner",
    "aot_eager_decomp_partition",
    "aot_eager_decomp_partition_with_mode",
    "aot_eager_decomp_partition_crossref",
    "invoke_subgraph",
    "ts",
    "aot_ts",
    "native",
    "cuda",
]
FAILING = [
    "relu_compile_error_TESTING_ONLY",
    "relu_runtime_error_TESTING_ONLY",
    "relu_accuracy_error_TESTING_ONLY",
    "relu_flaky_error_TESTING_ONLY",
    "non_leaf_compile_error_TESTING_ONLY",
]
MISCOMPILING = ["native_fusion_error_TESTING_ONLY"]
# It takes programs of loops alone, on a machine with a GPU.
ON_A_GPU = "cuda"


@functools.cache
def trained(path, precision):
    return Dump(path).train(precision=precision)


def assert_trains_alike(pyrite, path, folder, *options):
    """Pyrite's outputs, gradients and final inputs are torch's."""
    dump = Dump(path)
    want, exact = dump.train(), dump.train(precision=torch.float64)
    have, report = run(pyrite, path, folder, *options)
    assert_same(want, have, exact)
    return want, report


def assert_same(want, have, exact):
    for what in ("outputs", "inputs"):
        tensors = [v for v in getattr(want, what) if isinstance(v, torch.Tensor)]
        fp64s = [v for v in getattr(exact, what) if isinstance(v, torch.Tensor)]
        assert len(tensors) == len(getattr(have, what))
        for k, (expected, actual, fp64) in enumerate(zip(tensors, getattr(have, what), fp64s)):
            assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape), f"{what} {k}"
            found = value_difference(expected, actual, lambda fp64=fp64: fp64)
            assert found is None, f"{what} {k}: {found}"
    assert (found := gradient_difference(want, have, exact)) is None, found


def test_the_backends_have_pytorchs_names(pyrite):
    listed = json.loads(pyrite("backends", "--json"))
    assert [row["name"] for row in listed] == BACKENDS + FAILING + MISCOMPILING
    assert all(row["help"] for row in listed)


@every_model
def test_a_model_has_torchs_gradients(pyrite, dumps, tmp_path, model):
    path = dumps / model / "dynamo_repro.py"
    have, _ = run(pyrite, path, tmp_path, "--backend", "aot_eager")
    want = trained(path, torch.float32)
    assert len(want.gradients) > 10
    assert_same(want, have, trained(path, torch.float64))


@every_model
def test_a_model_in_double_precision_has_torchs_gradients_to_nine_digits(pyrite, dumps, tmp_path, model):
    path = dumps / model / "dynamo_repro.py"
    have, _ = run(pyrite, path, tmp_path, "--backend", "aot_eager", "--check", "fp64")
    want = trained(path, torch.float64)
    assert have.gradients.keys() == want.gradients.keys()
    for k, expected in want.gradients.items():
        torch.testing.assert_close(have.gradients[k], expected, rtol=0, atol=1e-9 * want.scale(k), msg=lambda m, k=k: f"input {k}: {m}")


@every_model
@pytest.mark.parametrize("backend", [name for name in BACKENDS[1:] if name != ON_A_GPU])
def test_every_backend_agrees_with_eager(pyrite, dumps, model, backend):
    report = json.loads(pyrite("run", dumps / model / "dynamo_repro.py", "--backend", backend, "--json"))
    # Machine code rounds elsewhere than kernels do, which can turn a relu over.
    assert report["verdict"] in (["pass", "noise"] if backend == "native" else ["pass"])
    assert len(report["gradients"]) > 10


def test_a_program_with_matmuls_is_not_for_the_gpu_backend(pyrite, dumps):
    report = json.loads(pyrite("run", dumps / "mlp" / "dynamo_repro.py", "--backend", ON_A_GPU, "--json", code=1))
    assert report["signature"]["stage"] == "compile"


@pytest.mark.parametrize(
    "backend, stage, kind", [(FAILING[0], "compile", "error"), (FAILING[1], "forward", "error"), (FAILING[2], "forward", "value")]
)
def test_a_failing_backend_fails_at_its_stage(pyrite, dumps, backend, stage, kind):
    report = json.loads(pyrite("run", dumps / "resnet18" / "dynamo_repro.py", "--backend", backend, "--json", code=1))
    signature = report["signature"]
    assert (report["verdict"], signature["stage"], signature["class"]) == ("fail", stage, kind)
    if kind == "error":
        assert signature["site"]["place"].startswith("aten.relu")


@pytest.mark.parametrize("backend", FAILING)
def test_a_failing_backend_passes_without_relu(pyrite, dumps, backend):
    report = json.loads(pyrite("run", dumps / "mlp" / "dynamo_repro.py", "--backend", backend, "--json"))
    assert report["verdict"] == "pass"


def test_a_backend_refuses_inputs_that_are_no_leaves(pyrite, tmp_path):
    path = capture(tmp_path, lambda x: x.sin(), torch.randn(4, requires_grad=True) * 2)
    report = json.loads(pyrite("run", path, "--backend", FAILING[-1], "--json", code=1))
    assert (report["signature"]["stage"], report["signature"]["class"]) == ("compile", "error")
    path = capture(tmp_path, lambda x: x.sin(), torch.randn(4, requires_grad=True))
    pyrite("run", path, "--backend", FAILING[-1])


@both_partitioners
@pytest.mark.parametrize("seed", [0, 7])
def test_forward_and_backward_use_one_dropout_mask(pyrite, tmp_path, backend, seed):
    def function(x, w):
        hidden = torch.nn.functional.dropout(x @ w, 0.4, training=True)
        return torch.nn.functional.dropout(hidden.tanh(), 0.25, training=True) * x

    path = capture(tmp_path, function, torch.randn(16, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True))
    want = Dump(path).train(seed=seed)
    have, _ = run(pyrite, path, tmp_path, "--backend", backend, "--seed", seed)
    assert_same(want, have, want)
    pyrite("run", path, "--backend", backend, "--memory-budget", 0)


def grad(*shape):
    """An input that wants a gradient and may be written to."""
    return torch.randn(*shape, requires_grad=True) * 1.0


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def write_to_an_input(x, buffer):
    buffer.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
    return x * buffer, buffer.sum()


def write_to_an_input_that_wants_a_gradient(x, w):
    y = x * 2
    x.mul_(w)
    return x + y, y


def return_an_input(x, w):
    return x, w * x, x.view(-1), w.t()


def return_views_of_one_value(x, w):
    y = x @ w
    return y, y[0], y.t(), y.view(-1)[1:]


def write_through_a_view(x, w):
    y = x * 2
    y[0].add_(w[0])
    y[:, 1].mul_(w[:, 2])
    return y, y.sum(0)


def write_through_a_view_of_a_view(x, w):
    y = (x * w).clone()
    part = y.view(2, 2, 4)[0].t()
    part[1:].copy_(w[:3, :2])
    y.relu_()
    return y.exp(), part


def write_under_a_view(x, w):
    y = x + 1
    view = y[1:]
    y.mul_(w)
    return view * 2, y


def write_through_a_view_of_an_input(x, w):
    x[1:3].zero_()
    x.view(-1)[::2].add_(w.view(-1)[::2])
    return x * w


def write_what_was_read_before(x, w):
    before = x * 2
    x.copy_(w)
    return before * w + x


def write_with_indices(x, w):
    y = x.clone()
    y[torch.tensor([0, 2])] = w[:2]
    y.index_add_(0, torch.tensor([1, 1]), w[2:])
    y.masked_fill_(w > 0.5, 2.0)
    return y * w


def use_an_output_twice_and_none_at_all(x, w):
    a, b, c = torch.split(x @ w, [1, 2, 1], dim=1)
    return a * a, c.detach(), (b > 0), b.argmax(1)


def swap_two_inputs(x, w):
    old = x.clone()
    x.copy_(w)
    w.copy_(old)
    return x - 2 * w


WRITING = [
    (write_to_an_input, lambda: (leaf(4, 4), torch.randn(4))),
    (write_to_an_input_that_wants_a_gradient, lambda: (grad(4, 4), leaf(4, 4))),
    (return_an_input, lambda: (leaf(4, 4), leaf(4, 4))),
    (return_views_of_one_value, lambda: (leaf(4, 4), leaf(4, 4))),
    (write_through_a_view, lambda: (leaf(4, 4), leaf(4, 4))),
    (write_through_a_view_of_a_view, lambda: (leaf(4, 4), leaf(4, 4))),
    (write_under_a_view, lambda: (leaf(4, 4), leaf(4, 4)[0])),
    (write_through_a_view_of_an_input, lambda: (grad(4, 4), leaf(4, 4))),
    (write_what_was_read_before, lambda: (grad(4, 4), leaf(4, 4))),
    (write_with_indices, lambda: (leaf(4, 4), leaf(4, 4))),
    (use_an_output_twice_and_none_at_all, lambda: (leaf(4, 4), leaf(4, 4))),
    (swap_two_inputs, lambda: (grad(4, 4), grad(4, 4))),
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_default_partitioner", "aot_eager_decomp_partition", "aot_ts"])
@pytest.mark.parametrize("function, inputs", WRITING, ids=[function.__name__ for function, _ in WRITING])
def test_writes_and_aliases_train_as_in_torch(pyrite, tmp_path, function, inputs, backend):
    torch.manual_seed(1)
    path = capture(tmp_path, function, *inputs())
    assert_trains_alike(pyrite, path, tmp_path, "--backend", backend)


def without_gradients_in_between(x, w):
    with torch.no_grad():
        scale = (x * w).exp()
    return (x * scale).sum(), w * scale


def without_gradients_at_all(x, w):
    with torch.no_grad():
        return x * w


def with_gradients_inside(x, w):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * w
        c = x * 3
    return a + b * c


def detached(x, w):
    return x.detach() * w + (x * w.detach()).sin()


SWITCHING = [without_gradients_in_between, without_gradients_at_all, with_gradients_inside, detached]


@both_partitioners
@pytest.mark.parametrize("function", SWITCHING, ids=[function.__name__ for function in SWITCHING])
def test_regions_without_gradients_are_torchs(pyrite, tmp_path, function, backend):
    torch.manual_seed(1)
    path = capture(tmp_path, function, leaf(4, 4), leaf(4, 4))
    assert_trains_alike(pyrite, path, tmp_path, "--backend", backend)


def autocast_region(dtype):
    def function(x, w, b):
        y = x.exp()
        with torch.autocast("cpu", dtype):
            hidden = torch.nn.functional.linear(y, w, b)
            normed = torch.nn.functional.layer_norm(hidden.relu(), (8,))
            with torch.autocast("cpu", enabled=False):
                kept = x @ w
            scores = torch.softmax(hidden @ w, -1)
            joined = torch.cat([hidden, x])
        return hidden, normed, kept, scores, joined, y @ w

    return function


def network(x, w, b):
    hidden = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))
    hidden = torch.nn.functional.layer_norm(hidden + x, (8,), b)
    return hidden, torch.bmm(hidden[None], w[None]), torch.nn.functional.mse_loss(hidden @ w, x), torch.softmax(hidden.mm(w), 1)


ABBREVIATIONS = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def assert_as_precise(want, have, exact, dtype):
    """As near to double precision as torch is, or near to torch by the precision of the type."""
    tolerance = 4 * torch.finfo(dtype).eps
    for what, expected, actual, fp64 in want_and_have(want, have, exact):
        scale = fp64.abs().max().item() or 1.0
        error = (expected.double() - fp64).abs().max().item()
        distance = (actual.double() - expected.double()).abs().max().item()
        assert distance <= max(2 * error, tolerance * scale), f"{what}: {distance} from torch's, which is {error} from fp64"


def want_and_have(want, have, exact):
    assert len(want.outputs) == len(have.outputs)
    for k, row in enumerate(zip(want.outputs, have.outputs, exact.outputs)):
        yield f"output {k}", *row
    assert want.gradients.keys() == have.gradients.keys()
    for k in want.gradients:
        yield f"gradient of input {k}", want.gradients[k], have.gradients[k], exact.gradients[k]


def assert_lower(pyrite, path, folder, dtype, options, autocast):
    """Runs in a lower precision and compares dtypes exactly, values as the precision allows."""
    dump = Dump(path)
    want, exact = dump.train(autocast=autocast), dump.train(precision=torch.float64)
    have, report = run(pyrite, path, folder, *options)
    assert [row["dtype"] for row in report["outputs"]] == [ABBREVIATIONS[v.dtype] for v in want.outputs]
    assert [row["dtype"] for row in report["gradients"]] == [ABBREVIATIONS[v.dtype] for v in want.gradients.values()]
    assert_as_precise(want, have, exact, dtype)


@both_partitioners
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_autocast_region_is_torchs(pyrite, tmp_path, dtype, backend):
    torch.manual_seed(1)
    path = capture(tmp_path, autocast_region(dtype), leaf(8, 8), leaf(8, 8), leaf(8))
    assert "_enter_autocast" in path.read_text()
    assert_lower(pyrite, path, tmp_path, dtype, ["--backend", backend], None)


@both_partitioners
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_run_under_autocast_is_torchs(pyrite, tmp_path, dtype, backend):
    torch.manual_seed(1)
    path = capture(tmp_path, network, leaf(8, 8), leaf(8, 8), leaf(8))
    assert_lower(pyrite, path, tmp_path, dtype, ["--backend", backend, "--autocast", ABBREVIATIONS[dtype]], dtype)


@pytest.mark.parametrize("model", ["mlp", "gpt2"])
def test_a_model_under_autocast_is_torchs(pyrite, dumps, tmp_path, model):
    options = ["--backend", "aot_eager", "--autocast", "bf16"]
    assert_lower(pyrite, dumps / model / "dynamo_repro.py", tmp_path, torch.bfloat16, options, torch.bfloat16)


MATMULS = re.compile(r"torch\.ops\.aten\.(\w*mm|mv|dot|linear|matmul|convolution\w*|\w*attention\w*)\.\w+\(")


@every_model
@pytest.mark.parametrize("table", ["composite", "core"])
def test_no_matmul_is_computed_twice(pyrite, dumps, model, table):
    """Forward and backward half together contain each matmul of the joint graph once."""
    path = dumps / model / "dynamo_repro.py"

    def matmuls(stage):
        return Counter(MATMULS.findall(pyrite("compile", path, "--decompositions", table, "--print", stage)))

    joint = matmuls("joint")
    assert joint.total() > 10
    assert matmuls("forward") + matmuls("backward") == joint


UNKNOWN_DERIVATIVE = '''import torch

class Repro(torch.nn.Module):
    def forward(self, x):
        # File: /home/user/train.py:12 in forward, code: y = x.sin()
        sin = torch.ops.aten.sin.default(x)
        # File: /home/user/train.py:13 in forward, code: z = special(y)
        special = {operator}(sin)
        # File: /home/user/train.py:14 in forward, code: return z * 2
        mul = torch.ops.aten.mul.Tensor(special, 2)
        return (mul,)

def load_args(reader):
    buf0 = reader.storage(None, 36)
    reader.tensor(buf0, (3, 3), requires_grad=True, is_leaf=True)  # x
load_args._version = 0
'''


def test_a_derivative_that_is_not_there_is_a_diagnostic_with_operator_node_and_python_line(pyrite, tmp_path):
    path = tmp_path / "repro.py"
    path.write_text(UNKNOWN_DERIVATIVE.format(operator="torch.ops.mylib.special.default"))
    for command in (["run", path, "--backend", "aot_eager"], ["compile", path]):
        report = json.loads(pyrite(*command, "--json", code=2))
        assert report["verdict"] == "invalid"
        text = json.dumps(report["diagnostics"])
        for part in ("mylib.special", "`special`", "/home/user/train.py:13", "derivative"):
            assert part in text, f"{part} is not in {text}"
        assert '"line": 8' in text
