"""What was found at the border with PyTorch, reduced; and samples of the sweeps `border.samples`, `border.compositions` and `border.examples`."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy
import pytest
import torch
import torch.nn.functional as F

import pyrite
from border import compositions, examples, samples
from border.observe import WAYS, Judge
from capture import isolation
from operators.harness import opinfos

# Quick in all, and the same at every run; the sweeps take other seeds.
SEED = 0
COUNT = 40
NAMES = [name for name in opinfos() if name not in samples.LEFT_OUT]
EXAMPLES = list(examples.docstrings(["torch._torch_docs"]))[7::100]


STRANGER = """
import torch

class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.by = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.by

def {name}(x):
    return x + {by}
"""
TESTS_OF_STRANGER = """
import pytest, torch, unittest
from stranger import *

@pytest.fixture
def x():
    return torch.randn(2, 3)

@pytest.mark.parametrize("scale", [1, 2])
def test_right(x, scale):
    assert right(x * scale).shape == x.shape and Scale()(x).shape == x.shape

class TestOther(unittest.TestCase):
    def test_wrong(self):
        self.assertEqual(wrong(torch.ones(3)).sum(), 3)

def test_that_fails_anyway():
    assert right(1) == 1
"""


@pytest.fixture
def stranger(tmp_path):
    """A folder as `border.ecosystem` has them, with a package of two functions, one of which does something else where it is compiled."""
    (tmp_path / "lib/stranger").mkdir(parents=True)
    (tmp_path / "src/stranger-1.0/tests").mkdir(parents=True)
    functions = STRANGER.format(name="right", by=1) + STRANGER.format(name="wrong", by="float(torch.compiler.is_compiling())")
    (tmp_path / "lib/stranger/__init__.py").write_text(functions)
    (tmp_path / "lib/stranger-1.0.dist-info").mkdir()
    (tmp_path / "lib/stranger-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (tmp_path / "lib/stranger-1.0.dist-info/RECORD").write_text("stranger/__init__.py,,\n")
    (tmp_path / "src/stranger-1.0/tests/test_stranger.py").write_text(TESTS_OF_STRANGER)
    return tmp_path


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch._dynamo.reset()
    pyrite.reset()


@pytest.mark.parametrize("number", range(COUNT))
def test_a_sample_does_what_it_does_in_eager(number):
    _, difference = samples.check(SEED, number, NAMES)
    assert difference is None, difference


@pytest.mark.parametrize("number", range(COUNT))
def test_a_composition_does_what_it_does_in_eager(number):
    _, difference = compositions.check(SEED, number)
    assert difference is None, difference


@pytest.mark.parametrize("way", ["torch", "pyrite"])
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_in_the_documentation_does_what_it_does_in_eager(number, way, tmp_path):
    isolation.prepare()
    answer, death = isolation.in_a_fork(lambda: examples.quietly(lambda: examples.check(EXAMPLES[number], way, str(tmp_path))), 120)
    assert death is None, death
    assert not answer[2], answer[2]


def test_tests_of_a_package_are_run_compiled(stranger):
    words = [sys.executable, "-m", "border.ecosystem", "stranger", "missing", "--folder", str(stranger), "--way", "pyrite"]
    done = subprocess.run(words, cwd=Path(__file__).parent.parent, env=os.environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "missing: skipped" in done.stdout
    assert "test_stranger.py::TestOther::test_wrong, pyrite, calls: line 15, call 1 of wrong" in done.stdout, done.stdout + done.stderr
    assert "test_stranger.py::TestOther::test_wrong, pyrite, tests: first call" in done.stdout
    # Two calls each of `right` and of a `Scale`, in both instances of their test, and one of `wrong`.
    assert "1 files, 0 of them not read, 3 tests that pass plainly, 1 left out: 9 calls compared, 2 differences" in done.stdout


def r(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype)


def transposed(*shape):
    return r(*shape).transpose(0, 1)


def with_its_view(x):
    y = torch.slice_scatter(x, x[:1], 0, 0, 1)
    return y, y[:, 1:]


def conjugate_written(z):
    y = z.conj()
    y.mul_(2 + 1j)
    return z * 1


def conjugate_read_after_a_write(z):
    y = z.mH[0].conj()
    z.mul_(1j)
    return y.clone(), z.conj()[0] + 1


def conjugate_resolved(z):
    y = z.conj()
    copy, negated = y.resolve_conj(), y.imag
    copy.add_(2)
    own = negated.resolve_neg()
    own.add_(1)
    torch._neg_view(z.real).clone().add_(1)
    return copy, own, y * 1, z.resolve_conj() is z


def conjugates_of_one(z):
    y = z * 2
    return y.conj(), y[0], y.conj().imag, y.real, [y.mT.conj()]


def negative_written(z):
    torch._neg_view(z)[0].add_(2)
    return z * 1


def branch_that_returns_what_it_writes(x):
    with torch.no_grad():
        y = torch.compile(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin_(), lambda x: x + 1, (x,)))(x)
    return x, y


# What each is called with, call after call.
CASES = {
    "outputs_of_other_dtypes_are_views": (
        lambda x, z: (x.view(torch.int32), x.view(torch.int16), torch.view_as_real(z), z.imag, z.real, torch.view_as_complex(x)),
        [(r(3, 2), r(3, 4, dtype=torch.complex64)), (r(5, 2), r(2, 2, dtype=torch.complex64))],
    ),
    "parts_of_complex_numbers_have_gradients": (
        lambda z: (z.imag, torch.view_as_real(z)),
        [(r(3, 4, dtype=torch.complex64).requires_grad_(),)],
    ),
    "circular_padding_repeats_what_negative_padding_leaves": (
        lambda x: (F.pad(x, (-1, 1, -2, 1), mode="circular"), F.pad(x, (2, -1, 0, -2), mode="circular"), F.pad(x, (1, 2, 2, 1), mode="circular")),
        [(r(1, 3, 4, 5).requires_grad_(),), (r(2, 3, 6, 7).requires_grad_(),)],
    ),
    "losses_promote_one_number_as_a_tensor_of_several": (
        lambda x, y: (F.mse_loss(x, y), F.l1_loss(x, y, reduction="none"), F.smooth_l1_loss(y, x)),
        [(r(5, 5, dtype=torch.bfloat16), r())],
    ),
    "views_of_results_that_begin_later": (with_its_view, [(r(20, 17)[1:9, 1::2],), (r(9, 17)[1:9, 1:],)]),
    "views_of_views_of_inputs_that_begin_later": (
        lambda x: (x.ravel(), x.ravel().view(torch.uint8), x.ravel()[1:]),
        [(torch.arange(64)[8:].view(2, 4, 7),), (torch.arange(64)[3:].view(1, 61),)],
    ),
    "a_size_that_comes_out_as_one_is_broadcast": (
        lambda x: (x * x[:, 1:], torch.maximum(x, x.unfold(-1, 2, 1)), x[..., ::3] / (x + 9), x[torch.arange(x.shape[0])[:, None], x[:, 1:].long() * 0]),
        [(r(3, 2),), (r(5, 2),), (r(5, 3),)],
    ),
    "powers_of_a_number_are_contiguous": (lambda x: (2**x, torch.float_power(2, x), 1**x), [(transposed(3, 5),), (transposed(4, 2),)]),
    "logits_lie_as_their_targets": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
        [(transposed(5, 4), torch.rand(4, 5)), (r(4, 5), torch.rand(5, 4).t())],
    ),
    "reversed_differences_lie_as_their_second_operand": (lambda x, y: torch.rsub(x, y), [(transposed(5, 4), r(4, 5)), (r(4, 5), transposed(5, 4))]),
    "a_tensor_in_a_format_is_itself": (lambda x: (x.to(torch.float32, memory_format=torch.contiguous_format), x.float()), [(transposed(2, 3),)]),
    "permutations_of_lu_have_no_gradient": (lambda x: torch.linalg.lu(x)[1:] + torch.linalg.lu(x)[:1], [(r(3, 3).requires_grad_(),)]),
    "integers_are_not_unpooled": (
        lambda x, places: F.max_unpool2d(x, places, 2),
        [(torch.ones(1, 1, 2, 2, dtype=torch.int64), torch.tensor([0, 2, 8, 10]).view(1, 1, 2, 2))],
    ),
    "targets_of_lesser_types": (lambda x, y: F.soft_margin_loss(x, y, reduction="none"), [(r(4), torch.tensor([True, False, True, True]))]),
    "orders_of_norms_that_change": (
        lambda x, order: torch.linalg.vector_norm(x, order),
        [(r(5), 2), (r(6), 3), (r(6), 4)],
    ),
    "factors_of_decompositions_lie_by_columns": (
        lambda x: (*(each.abs() for each in torch.svd(x)), torch.linalg.svd(x)[2].abs(), torch.linalg.svd(x, full_matrices=False)[2].abs(), torch.linalg.eig(x @ x.mT)[1].stride()),
        [(r(5, 3),), (r(2, 3, 4),)],
    ),
    "several_backward_passes_at_once": (
        lambda x: (torch.autograd.functional.jacobian(lambda x: (x.sin() * x).cumsum(0), x, vectorize=True), x * 2),
        [(r(3).requires_grad_(),), (r(1).requires_grad_(),)],
    ),
    "writes_to_conjugates_reach_the_tensor": (conjugate_written, [(r(3, dtype=torch.complex64),), (r(2, 4, dtype=torch.complex64),)]),
    "conjugates_are_read_after_a_write": (conjugate_read_after_a_write, [(r(2, 3, dtype=torch.complex64),), (r(4, 4, dtype=torch.complex64),)]),
    "conjugates_are_resolved_by_a_copy": (conjugate_resolved, [(r(3, dtype=torch.complex64),), (r(2, 4, dtype=torch.complex64),)]),
    "writes_to_negatives_reach_the_tensor": (negative_written, [(r(3, dtype=torch.complex64),), (r(2, 4, dtype=torch.complex64),)]),
    "branches_return_copies_of_what_they_write": (branch_that_returns_what_it_writes, [(torch.ones(4),), (-torch.ones(4),)]),
    "conjugates_and_negatives_are_views": (
        lambda z: (z.conj(), z.mT.conj()[0], z.mH, z.conj().imag, (z * 2).conj(), z.conj().clone(), z.conj() * 1, z.conj().resolve_conj(), torch._neg_view(z)),
        [(r(3, 4, dtype=torch.complex64),), (r(2, 5, dtype=torch.complex64).requires_grad_(),)],
    ),
    "parts_of_conjugates_share_memory": (conjugates_of_one, [(r(3, 4, dtype=torch.complex64),), (r(2, 5, dtype=torch.complex64),)]),
    "numbers_of_numpy_have_types": (
        lambda x, a: (x * 2, torch.tensor(a), torch.as_tensor(a), torch.tensor([a, 1]), torch.tensor([[2.5], [a]]), torch.tensor(a, dtype=torch.float64)),
        [(r(2), number) for number in (numpy.float64(0.1), numpy.float32(0.1), numpy.float16(3), numpy.int32(4), numpy.uint8(5), 0.5)],
    ),
    "chunks_of_nothing_are_refused": (lambda x: torch._chunk_cat([x, x], 0, 2), [(r(3, 2),), (r(3, 0),)]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_what_was_found_stays_right(name, way):
    function, calls = CASES[name]
    judge = Judge(function, way)
    for arguments in calls:
        assert judge.difference(arguments) is None


@pytest.mark.parametrize("way", WAYS)
def test_writes_to_a_returned_conjugate_reach_the_tensor(way):
    function = WAYS[way][0](lambda z: (z.conj(), z.conj().imag))
    for size in (3, 5):
        z = r(size, dtype=torch.complex64)
        y, imaginary = function(z)
        y.fill_(1 + 2j)
        assert z.tolist() == [1 - 2j] * size
        imaginary.zero_()
        assert z.tolist() == [1] * size


def test_a_returned_conjugate_is_differentiated_twice():
    def differentiated(function, z):
        y = function(z)
        (first,) = torch.autograd.grad(y, z, torch.full_like(y, 1 + 2j), create_graph=True)
        (second,) = torch.autograd.grad(first, z, torch.full_like(first, 3 - 1j))
        return y.is_conj(), y, first, second

    def function(z):
        return (z * z * z).conj()

    z = r(3, dtype=torch.complex64).requires_grad_()
    torch.testing.assert_close(differentiated(pyrite.compile(function), z), differentiated(function, z))


def test_the_judge_sees_a_difference_of_each_kind():
    """Each function stands for a wrong compiler."""

    def told(plain, wrong, *arguments):
        judge = Judge(plain, "pyrite")
        judge.compiled = wrong
        return judge.difference(arguments)

    x = r(3, 4)
    assert "strides" in told(lambda x: x + 1, lambda x: (x + 1).t().contiguous().t(), x)
    assert "place" in told(lambda x: x[1:], lambda x: x[1:].clone(), x)
    assert "bits" in told(lambda z: z.conj(), lambda z: z.conj().resolve_conj(), r(3, dtype=torch.complex64))
    assert "kind" in told(lambda x: x + 1, lambda x: x.double() + 1, x)
    assert "value" in told(lambda x: x + 1, lambda x: x + 2, x)
    assert "inputs 0" in told(lambda x: x.add_(1) * 0, lambda x: x * 0, x)
    assert "autograd" in told(lambda x: x * 2, lambda x: (x * 2).detach(), r(3).requires_grad_())
    assert "gradients 0" in told(lambda x: x * 2, lambda x: x * 2 + (x - x.detach()), r(3).requires_grad_())
    assert "random" in told(lambda x: x * 1, lambda x: (torch.rand(()), x * 1)[1], x)
    assert "eager raises" in told(lambda x: x.view(5), lambda x: x, x)
    assert "outputs" in told(lambda x: (x, x), lambda x: (x,), x)
