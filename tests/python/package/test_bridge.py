"""torch tensors go into compiled programs and come out of them without copies, as what they are."""

import gc

import pytest
import torch

import pyrite
from pyrite import _native

HEAD = "class Repro(torch.nn.Module):\n    def forward(self, {inputs}):\n"


def program(inputs, body, *examples, backend="eager"):
    """The program of a forward function, compiled for example inputs."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    graph = pyrite.Graph.from_text(HEAD.format(inputs=inputs) + lines)
    return _native.compile(graph, backend, None, examples)


ADD = "add = torch.ops.aten.add.Tensor(x, 1)\nreturn (add,)"

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16]
DTYPES += [torch.float32, torch.float64, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_every_dtype_comes_and_goes(dtype, backend):
    x = torch.ones(3, dtype=dtype)
    [result] = program("x", "c = torch.ops.aten.clone.default(x)\nreturn (c,)", x, backend=backend)(x)
    assert result.dtype == dtype and torch.equal(result, x) and result.data_ptr() != x.data_ptr()


LAYOUTS = {
    "scalar": torch.tensor(2.0),
    "empty": torch.empty(0, 3),
    "transposed": torch.arange(6.0).reshape(2, 3).t(),
    "offset": torch.arange(10.0)[3:7],
    "strided": torch.arange(24.0).reshape(4, 6)[::2, 1::2],
    "expanded": torch.arange(3.0).expand(4, 3),
    "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_every_layout_is_read_where_it_lies(name, backend):
    x = LAYOUTS[name]
    [result] = program("x", ADD, x, backend=backend)(x)
    expected = x + 1
    assert torch.equal(result, expected) and result.stride() == expected.stride()


def test_results_live_on_after_the_program_and_its_inputs():
    x = torch.arange(1000.0)
    run = program("x", ADD, x)
    [result] = run(x)
    del run, x
    assert result.sum() == 1000 * 999 / 2 + 1000
    result.add_(1)
    assert result[0] == 2


def test_an_output_that_is_an_input_is_that_object_and_a_view_is_a_view_of_it():
    x = torch.arange(6.0)
    body = "view = torch.ops.aten.view.default(x, [2, 3])\nselect = torch.ops.aten.select.int(view, 0, 1)\nreturn (x, view, select)"
    for backend in ("eager", "native"):
        same, view, row = program("x", body, x, backend=backend)(x)
        assert same is x and view._base is x and row._base is x
        assert row.storage_offset() == 3
        view[1, 0] = 40
        assert x[3] == 40 and row[0] == 40
        x[3] = 3


def test_writes_reach_the_input_and_count_its_version_up():
    x = torch.zeros(4)
    body = "add_ = torch.ops.aten.add_.Tensor(x, 1)\nreturn (add_,)"
    for backend in ("eager", "native"):
        before = x._version
        run = program("x", body, x, backend=backend)
        [result] = run(x)
        assert result is x and x._version > before and run.written == [0]
    assert x.tolist() == [2, 2, 2, 2]


def test_inputs_that_share_memory_see_each_others_writes():
    base = torch.zeros(6)
    x, y = base[:3], base[1:]
    body = "fill_ = torch.ops.aten.fill_.Scalar(x, 5)\nadd = torch.ops.aten.add.Tensor(y, 0)\nreturn (add,)"
    for backend in ("eager", "native"):
        base.zero_()
        [result] = program("x, y", body, x, y, backend=backend)(x, y)
        assert result.tolist() == [5, 5, 0, 0, 0] and base.tolist() == [5, 5, 5, 0, 0, 0]


def test_numbers_and_none_come_back_as_they_are():
    x = torch.ones(2)
    body = "sym_size = torch.ops.aten.sym_size.int(x, 0)\nreturn (x, None, sym_size, 2.5)"
    same, nothing, size, number = program("x", body, x)(x)
    assert same is x and nothing is None and size == 2 and number == 2.5


class Marked(torch.Tensor):
    """A subclass, as libraries make them."""


REFUSED = {
    "meta device": (lambda: torch.empty(2, device="meta"), "not on the CPU"),
    "sparse": (lambda: torch.eye(2).to_sparse(), "not strided"),
    "subclass": (lambda: torch.ones(2).as_subclass(Marked), "subclass"),
    "list": (lambda: [1, 2], "neither a tensor nor a number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_an_input_is_refused_with_the_reason(name):
    make, reason = REFUSED[name]
    run = program("x", ADD, torch.ones(2))
    with pytest.raises(TypeError, match=reason):
        run(make())


def test_a_type_that_an_operator_does_not_have_is_refused_by_name():
    run = program("x", ADD, torch.ones(2))
    with pytest.raises(NotImplementedError, match="aten.add.Tensor of float8_e4m3fn tensors"):
        run(torch.ones(2).to(torch.float8_e4m3fn))


def test_a_wrong_number_of_arguments_and_a_wrong_shape_are_errors():
    run = program("x", ADD, torch.ones(2), backend="native")
    with pytest.raises(TypeError, match="takes 1 arguments, 2 were given"):
        run(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="compiled for"):
        run(torch.ones(3))


def test_unreadable_text_and_unknown_backends_are_named():
    with pytest.raises(ValueError, match="line|:1"):
        pyrite.Graph.from_text("not python (")
    with pytest.raises(ValueError, match="there is no backend `nope`; there are eager"):
        program("x", ADD, torch.ones(2), backend="nope")


@pytest.mark.filterwarnings("error")
def test_unknown_options_get_a_warning_that_names_them():
    graph = pyrite.Graph.from_text(HEAD.format(inputs="x") + "        return (x,)\n")
    with pytest.raises(UserWarning, match="does not know the options speed"):
        _native.compile(graph, "eager", {"speed": 9}, (torch.ones(1),))


def test_a_graph_shows_itself_and_runs():
    graph = pyrite.Graph.from_text(HEAD.format(inputs="x") + f"        {ADD.splitlines()[0]}\n        return (add,)\n")
    assert [node.op for node in graph.nodes] == ["placeholder", "call_function", "output"]
    assert graph.nodes[1].target == "aten.add.Tensor" and graph.op_count == 1
    assert "torch.ops.aten.add.Tensor(x, 1)" in graph.code
    [result] = graph(torch.ones(2))
    assert result.tolist() == [2, 2]


DRAWS = """rand = torch.ops.aten.rand.default([5], device='cpu', pin_memory=False)
randn_like = torch.ops.aten.randn_like.default(x, pin_memory=False)
bernoulli = torch.ops.aten.bernoulli.p(x, 0.5)
return (rand, randn_like, bernoulli)"""


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_random_numbers_are_those_that_eager_draws(backend):
    x = torch.ones(33)
    run = program("x", DRAWS, x, backend=backend)

    def eager(x):
        return [torch.rand(5), torch.randn_like(x), torch.bernoulli(x, 0.5)]

    for seed in (0, 7):
        torch.manual_seed(seed)
        expected = [*eager(x), *eager(x), torch.rand(3)]
        torch.manual_seed(seed)
        found = [*run(x), *run(x), torch.rand(3)]
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_program_that_draws_nothing_leaves_the_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    program("x", ADD, torch.ones(2))(torch.ones(2))
    assert torch.equal(before, torch.get_rng_state())


def test_results_that_share_memory_keep_their_offsets_and_their_storage():
    def views(x):
        y = x * 2
        return y, y.view(-1), y[1], y.T

    results = pyrite.compile(views, backend="native")(torch.arange(6.0).view(2, 3))
    assert [result.storage_offset() for result in results] == [0, 0, 3, 0]
    assert len({result.untyped_storage().data_ptr() for result in results}) == 1
    results[0][1] = -1
    assert results[2].tolist() == [-1.0, -1.0, -1.0] and not results[2]._is_view()


def test_a_result_in_the_middle_of_its_memory_outlives_the_program():
    rows = pyrite.compile(lambda x: (x * 2)[1:], backend="native")(torch.arange(4096.0).view(2, 2048))
    gc.collect()
    assert rows.storage_offset() == 2048 and rows[0, -1] == 4095 * 2


@torch.no_grad()
def test_weights_that_are_written_behind_torch_s_back_are_seen():
    linear = torch.nn.Linear(64, 96)
    x = torch.randn(40, 64)
    compiled = pyrite.compile(linear)
    numbers = linear.weight.numpy()
    writes = [lambda: None, lambda: linear.weight.data.neg_(), lambda: linear.weight.add_(1), lambda: numbers.fill(0.5), lambda: None]
    for write in writes:
        for _ in range(3):
            assert torch.allclose(compiled(x), linear(x), atol=1e-4)
        write()
    pyrite.reset()


def by_torch(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="pyrite", options={"strict": True})


@pytest.mark.parametrize("way", [pyrite.compile, by_torch])
def test_a_tensor_that_is_conjugated_when_it_is_read_is_an_input(way):
    z = torch.complex(torch.randn(3, 4), torch.randn(3, 4))
    program = way(lambda z: (z * 2).sum(1))
    for given in (z, z.conj(), z.t().conj().t(), z[:, ::2].conj()):
        assert torch.allclose(program(given), (given * 2).sum(1))
    negative = z.conj().imag
    assert negative.is_neg() and torch.equal(way(lambda x: x + 1)(negative), negative + 1)


def test_a_view_of_a_conjugated_input_is_a_view_of_it():
    z = torch.complex(torch.randn(3, 4), torch.randn(3, 4))
    program = pyrite.compile(lambda z: z[1:])
    program(z)
    view = program(z.conj())
    assert view.is_conj() and torch.equal(view, z.conj()[1:]) and view.data_ptr() == z[1:].data_ptr()


@pytest.mark.parametrize("way", [pyrite.compile, by_torch])
def test_a_gradient_that_is_conjugated_when_it_is_read_is_taken(way):
    found = []
    for function in (torch.fft.fft, way(lambda x: torch.fft.fft(x) * 2)):
        x = torch.arange(6.0, requires_grad=True)
        y = function(x)
        y.backward(torch.complex(torch.arange(6.0), torch.ones(6)).conj())
        found.append(x.grad)
    assert torch.allclose(2 * found[0], found[1])


def test_a_complex_number_is_a_constant():
    program = pyrite.compile(lambda x: (torch.tensor(1 + 2j), torch.tensor([2j]) * x))
    x = torch.ones(2)
    assert program(x)[0].item() == 1 + 2j and torch.equal(program(x)[1], torch.full((2,), 2j))
