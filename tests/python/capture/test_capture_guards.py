"""What may change between two calls, with and without being noticed: a captured function follows every change of what it relies on."""

import pytest
import torch
from capture import harness

pyrite = pytest.importorskip("pyrite")

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")


class Scale(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Shift(Scale):
    def forward(self, x):
        return x + self.factor


def make_model():
    return torch.nn.Sequential(Scale(2.0), torch.nn.Linear(2, 2), Scale(3.0)).eval()


def replace_submodule(model):
    model[2] = Shift(5.0)


def set_attribute(model):
    model[0].factor = 7.0


def add_hook(model):
    model[2].register_forward_hook(lambda module, args, output: output - 1)


def swap_parameter(model):
    model[1].weight = torch.nn.Parameter(torch.ones(2, 2))


def write_into_a_parameter(model):
    with torch.no_grad():
        model[1].bias.fill_(4.0)


def change_class(model):
    model[0].__class__ = Shift


def give_the_instance_a_forward(model):
    model[2].forward = lambda x: -x


def replace_the_dict_of_an_instance(model):
    model[0].__dict__ = {**model[0].__dict__, "factor": 11.0}


def remove_submodule(model):
    del model[2]


CHANGES = [
    replace_submodule,
    set_attribute,
    add_hook,
    swap_parameter,
    write_into_a_parameter,
    change_class,
    give_the_instance_a_forward,
    replace_the_dict_of_an_instance,
    remove_submodule,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_change_of_a_module_is_seen(change, backend):

    model, x = make_model(), torch.randn(3, 2)
    compiled = pyrite.compile(model, backend=backend)
    for _ in range(4):
        torch.testing.assert_close(compiled(x), model(x))
    change(model)
    for _ in range(4):
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_changes_to_and_fro_are_seen_without_compiling_again(rounds):

    compiler = harness.Pyrite()
    model, x = make_model(), torch.randn(3, 2)
    compiled = compiler.compile(model)
    for _ in range(rounds):
        for factor in (2.0, 9.0):
            model[0].factor = factor
            for _ in range(3):
                torch.testing.assert_close(compiled(x), model(x))
    assert compiler.compilations() == 2
    pyrite.reset()


def test_two_models_share_what_was_compiled():
    compiler = harness.Pyrite()
    first, second, x = make_model(), make_model(), torch.randn(3, 2)
    second.load_state_dict({name: value + 1 for name, value in first.state_dict().items()})

    def call(model, x):
        return model(x)

    compiled = compiler.compile(call)
    for _ in range(8):
        for model in (first, second):
            torch.testing.assert_close(compiled(model, x), model(x))
    assert compiler.compilations() == 1


OFFSET = 1.0


def shifted(x):
    return x + OFFSET


def test_a_change_of_a_global_is_seen():

    global OFFSET
    compiled, x = pyrite.compile(shifted, backend="eager"), torch.ones(2)
    for OFFSET in (1.0, 2.0, 1.0, 3.0):
        for _ in range(3):
            torch.testing.assert_close(compiled(x), shifted(x))


def test_a_dict_that_the_caller_keeps_is_read_at_every_call():

    def call(x, table):
        return x * table["factor"] + len(table)

    compiled, x, table = pyrite.compile(call, backend="eager"), torch.ones(2), {"factor": 2}
    for change in (lambda: None, lambda: table.update(factor=3), lambda: table.update(more=1), lambda: table.pop("more")):
        change()
        for _ in range(3):
            torch.testing.assert_close(compiled(x, table), call(x, table))


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_inputs_that_come_to_share_memory_are_told_apart_where_one_is_written(backend):

    def call(a, b):
        a.add_(1)
        return a * b

    def arguments():
        whole = torch.arange(4.0)
        return [(torch.ones(3), torch.full((3,), 2.0)), (whole[:3], whole[1:]), (whole[:3], whole[:3])]

    compiled = pyrite.compile(call, backend=backend)
    for index in (0, 0, 1, 2, 0, 1):
        torch.testing.assert_close(compiled(*arguments()[index]), call(*arguments()[index]))


def test_the_backend_eager_is_torch_itself():

    seen = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    x = torch.randn(4, requires_grad=True)
    compiled = pyrite.compile(lambda x: torch.nn.functional.dropout(x.sin(), 0.5), backend="eager")
    torch.manual_seed(0)
    want = torch.nn.functional.dropout(x.sin(), 0.5)
    torch.manual_seed(0)
    have = compiled(x)
    assert torch.equal(want, have) and type(have.grad_fn) is type(want.grad_fn)
    (gradient,) = torch.autograd.grad(have.sum(), x, create_graph=True)
    assert gradient.requires_grad


def scaled(x, n):
    return x * n + n, n - 1


def every_tenth(x, step):
    return (x + step, step + 1) if step % 10 == 0 else (x - 1, step)


def told(x, n):
    return x + n, [n], f"step {n}"


def picked(x, n):
    return x[n % 3], [10, 20, 30][n % 3], n / 2


@pytest.mark.parametrize("compiler", [harness.Pyrite, harness.Native], ids=lambda compiler: compiler.name)
@pytest.mark.parametrize(
    ("function", "numbers", "compilations"),
    [
        (scaled, [5, 6, 7, 900, 8, 1, 0, -3, 9, 10], 2),
        (every_tenth, range(2, 42), 3),
        (told, range(2, 6), 4),
        (picked, range(2, 6), 4),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_number_that_changes_is_compiled_once_for_all_where_python_need_not_know_it(compiler, function, numbers, compilations):
    compiler = compiler()
    compiler.reset()
    compiled, x = compiler.compile(function), torch.randn(4)
    for number in numbers:
        (want, *others), (have, *found) = function(x, number), compiled(x, number)
        torch.testing.assert_close(have, want)
        assert found == others and [type(value) for value in found] == [type(value) for value in others]
    assert compiler.compilations() == compilations


def counting(x, log):
    try:
        for n in range(5):
            sent = yield x + n
            if sent is not None:
                log.append(sent)
    finally:
        log.append("closed")


def left(x, log):
    for y in counting(x, log):
        if y.shape[0] == 3:
            break
    log.append("after")
    return y * 2


def sent_to_and_closed(x, log):
    generator = counting(x, log)
    total = next(generator) + generator.send("sent")
    generator.close()
    log.append("after")
    return total


@pytest.mark.parametrize("function", [left, sent_to_and_closed], ids=lambda function: function.__name__)
def test_a_generator_that_is_left_does_what_it_does_in_the_end_at_once(function):

    x, want, have = torch.ones(3), [], []
    expected = function(x, want)
    told = pyrite.explain(function)(x, have)
    assert have == want and told.graph_break_count == 0
    have.clear()
    torch.testing.assert_close(pyrite.compile(function, backend="eager")(x, have), expected)
    assert have == want


def counted(function, **options):
    """The compiled function, and a list that grows by one with every graph that is compiled."""
    native, compiled = pyrite.backends.lookup("native", None), []

    def backend(graph, inputs):
        compiled.append(graph)
        return native(graph, inputs)

    return pyrite.compile(function, backend=backend, **options), compiled


def test_a_dimension_that_is_marked_as_dynamic_is_a_symbol_at_once():
    function, compiled = counted(lambda x: x.sin().sum(0))
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    for argument in (x, torch.randn(7, 3), torch.randn(9, 3)):
        torch.testing.assert_close(function(argument), argument.sin().sum(0))
    assert len(compiled) == 1


def test_a_dimension_that_is_marked_as_static_is_never_a_symbol():
    function, compiled = counted(lambda x: x * 2, dynamic=True)
    for rows in (4, 5, 6):
        x = torch.randn(rows, 3)
        torch._dynamo.mark_static(x, 0)
        torch._dynamo.maybe_mark_dynamic(x, 1)
        function(x)
    assert len(compiled) == 3


LAYOUTS = {
    "no rows": lambda n: torch.randn(0, n),
    "no columns": lambda n: torch.randn(n, 0),
    "nothing inside": lambda n: torch.randn(2, 0, n),
    "transposed": lambda n: torch.randn(5, n).t(),
    "one channel, last": lambda n: torch.randn(2, 1, n, 4).to(memory_format=torch.channels_last),
    "channels last": lambda n: torch.randn(2, 3, n, 4).to(memory_format=torch.channels_last),
    "one row": lambda n: torch.randn(1, n)[:, ::2],
    "expanded": lambda n: torch.randn(n, 1).expand(n, 3),
    "stepped": lambda n: torch.randn(n, 8)[:, ::2],
    "number": lambda n: torch.randn(()),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_was_just_captured_holds(name):
    """With `fullgraph` a frame whose guards do not hold right after its capture is an error."""
    function = pyrite.compile(lambda x: x + 1, dynamic=True, fullgraph=True)
    for size in (6, 6, 10):
        x = LAYOUTS[name](size)
        have = function(x)
        torch.testing.assert_close(have, x + 1)
        strides = [pair for size, *pair in zip(x.shape, have.stride(), (x + 1).stride()) if size > 1 and x.numel()]
        assert all(mine == theirs for mine, theirs in strides)


def test_dense_tensors_of_other_sizes_need_no_other_graph():
    for name in ("transposed", "channels last"):
        function, compiled = counted(lambda x: x + 1, dynamic=True)
        for size in (6, 10, 7):
            function(LAYOUTS[name](size))
        assert len(compiled) == 1, name


def test_what_the_compiler_cannot_compile_runs_plain_unless_it_must_be_one_graph(monkeypatch):
    from pyrite import _native, backends

    def refuses(graph, inputs):
        raise _native.CompileError("it cannot")

    monkeypatch.setattr(backends, "lookup", lambda backend, options: refuses)
    x = torch.randn(3)
    assert torch.equal(pyrite.compile(lambda x: x * 2)(x), x * 2)
    with pytest.raises(_native.CompileError, match="it cannot"):
        pyrite.compile(lambda x: x * 2, fullgraph=True)(x)


class Shown(torch.overrides.TorchFunctionMode):
    """Notes the functions that it is shown."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_mode_outside_is_shown_the_functions_as_they_are_written(backend):
    def function(x):
        return torch.sin(x).softmax(0) + torch.nn.functional.gelu(x)

    compiled = pyrite.compile(function, backend=backend)
    x = torch.randn(4)
    compiled(x)
    seen = []
    for run in (function, compiled):
        with Shown() as mode:
            run(x)
        seen.append(mode.seen)
    assert seen[0] == seen[1]


def test_whether_torch_functions_are_enabled_is_asked_again():
    compiled = pyrite.compile(lambda x: x + torch._C._is_torch_function_enabled(), backend="eager")
    x = torch.zeros(2)
    assert compiled(x).tolist() == [1, 1]
    with torch._C.DisableTorchFunctionSubclass():
        assert compiled(x).tolist() == [0, 0]
    assert compiled(x).tolist() == [1, 1]


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap, lambda f: lambda x: torch.func.jvp(f, (x,), (x,))])
def test_a_transformation_takes_a_compiled_function(transform, backend):
    def function(x):
        return (x * x).sum()

    x = torch.randn(3, 2)[0] if transform is not torch.func.vmap else torch.randn(3, 2)
    compiled = pyrite.compile(function, backend=backend)
    compiled(torch.randn(2))
    torch.testing.assert_close(transform(compiled)(x), transform(function)(x))


def test_a_compiled_module_has_the_mode_and_the_names_of_its_original():
    model = make_model()
    compiled = pyrite.compile(model, backend="eager")
    assert compiled.training is model.training is False
    compiled.train()
    assert compiled.training is model.training is True
    model.extra = 3
    assert set(dir(model)) <= set(dir(compiled))
    assert "extra" in dir(compiled) and compiled.extra == 3


def test_compiling_is_what_torch_says_it_is():
    import torch._dynamo

    def function(x):
        told = [torch.compiler.is_compiling(), torch._dynamo.is_compiling(), torch._utils.is_compiling()]
        print(end="")
        told += [torch.compiler.is_compiling(), torch._dynamo.is_compiling(), torch._utils.is_compiling()]
        return x + 1, told

    assert pyrite.compile(function, backend="eager")(torch.ones(2))[1] == torch.compile(function, backend="eager")(torch.ones(2))[1]
    assert function(torch.ones(2))[1] == [False] * 6


class Liar:
    """A class whose name and length are not what they seem."""

    asked = 0

    def __len__(self):
        type(self).asked += 1
        return 2


def test_no_length_is_asked_of_the_users_code_by_guards():
    liar = type("list_iterator", (Liar,), {})
    compiled = pyrite.compile(lambda x, held: x + 1, backend="eager")
    for _ in range(3):
        compiled(torch.ones(2), liar())
    assert liar.asked == 0


class Equal:
    """Says of everything that it is equal, and that it was asked."""

    asked = 0

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        type(self).asked += 1
        return self.number == other.number


def test_no_key_is_compared_by_the_users_code_in_guards():
    compiled = pyrite.compile(lambda x, table: x + len(table), backend="eager")
    for number in range(3):
        compiled(torch.ones(2), {Equal(number): 1})
    assert Equal.asked == 0
