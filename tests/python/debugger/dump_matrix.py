"""Has PyTorch's own debugger leave its dumps, as a user finds them on disk: `python dump_matrix.py DIRECTORY [MODEL...]`.

A dump is made for each model, stage (after dynamo, after aot), level 1 to 4 and way of running (inference, training that fails in the
forward half, training that fails in the backward half), and beside them what Inductor leaves with TORCH_COMPILE_DEBUG. The compiler that
fails is not Inductor's code generator: it is replaced by one that raises, or returns wrong numbers for level 4, so that no C++ is
compiled. Everything that is written is written by torch.

Each dump lies in `DIRECTORY/MODEL/WAY-after-STAGE-LEVEL/`. `dumps.json` lists the files in it that are programs, with the reason where
torch made none.
"""

import contextlib
import json
import os
import pathlib
import sys
import traceback

import torch
import torch._dynamo.config
import torch._inductor.compile_fx
import torch._inductor.config
import torch.nn.functional as F
import torch.utils._content_store
import torch.utils.checkpoint
from torch import nn
from torch._dynamo.repro.after_aot import save_graph_repro

WAYS = ("infer", "forward", "backward")
# Which levels are dumped, of 1 to 4.
LEVELS = tuple(int(level) for level in os.environ.get("PYRITE_DUMP_LEVELS", "1,2,3,4").split(","))


@torch.library.custom_op("pyrite_dumps::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


twice.register_autograd(lambda context, gradient: gradient * 2)


@torch.library.custom_op("pyrite_dumps::double_in_place", mutates_args=("x",))
def double_in_place(x: torch.Tensor) -> None:
    x.mul_(2)


class Block(nn.Module):
    """A model of a few lines: the parts of `parts` as submodules, `body(self, *inputs)` as its forward."""

    def __init__(self, body, **parts):
        super().__init__()
        self.body = body
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs):
        return self.body(self, *inputs)


def simple(body, *inputs, **parts):
    return lambda: (Block(body, **parts), [value() if callable(value) else value for value in inputs])


def checkpointed(self, x):
    inner = lambda value: torch.relu(self.second(torch.sin(self.first(value))))  # noqa: E731
    return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False)


@torch.compiler.nested_compile_region
def region(x, y):
    return torch.relu(x @ y) + 1


def attention(self, x):
    q, k, v = self.project(x).reshape(2, 8, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
    return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 8, 8)).relu()


def counted(self, x):
    self.calls.add_(1)
    return torch.relu(x) * self.calls


def looped(self, x):
    def more(i, value):
        return i < 3

    def step(i, value):
        return i + 1, value * 1.5

    return torch._higher_order_ops.while_loop(more, step, (torch.tensor(0), torch.relu(x)))[1]


def written(self, x):
    y = torch.relu(x).clone()
    double_in_place(y)
    return y + 1


def mixed(self, x):
    with torch.autocast("cpu", torch.bfloat16):
        return self.a(x).relu()


def detached(self, x):
    with torch.no_grad():
        scale = x.abs().max()
    return torch.relu(x) / scale


def scanned(self, x):
    return torch._higher_order_ops.scan(lambda carry, row: (carry + row, (carry * row).relu()), x[0], x)[1]


def counted_out(self, x):
    count = (x > 0).sum().item()
    torch._check(count >= 0)
    return torch.relu(x) * count


class Tied(nn.Module):
    """Parameters and buffers that are one tensor or lie in one storage, and constants."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 6)
        self.head = nn.Linear(6, 6, bias=False)
        self.head.weight = self.table.weight
        memory = torch.arange(12.0)
        self.register_buffer("low", memory[:6])
        self.register_buffer("high", memory[3:9])

    def forward(self, i):
        return torch.relu(self.head(self.table(i)) + self.low * self.high + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))


class Counting(Block):
    def __init__(self):
        super().__init__(counted)
        self.register_buffer("calls", torch.zeros(()))


def floats(*shape):
    return lambda: torch.randn(shape)


MODELS = {
    "mlp": simple(lambda s, x: s.b(s.a(x).relu()), floats(4, 8), a=nn.Linear(8, 16), b=nn.Linear(16, 4)),
    "batch_norm": simple(
        lambda s, x: s.norm(s.conv(x)).relu().mean((2, 3)), floats(2, 3, 8, 8), conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4)
    ),
    "dropout": simple(lambda s, x: F.dropout(s.a(x).relu(), 0.5, training=True), floats(4, 8), a=nn.Linear(8, 8)),
    "checkpoint": simple(checkpointed, floats(4, 8), first=nn.Linear(8, 8), second=nn.Linear(8, 8)),
    "checkpoint_dropout": simple(
        lambda s, x: torch.utils.checkpoint.checkpoint(lambda v: F.dropout(s.a(v).relu(), 0.5, training=True), x, use_reentrant=False),
        floats(4, 8),
        a=nn.Linear(8, 8),
    ),
    "nested": simple(lambda s, x, y: region(region(x, y), y), floats(4, 4), floats(4, 4)),
    "cond": simple(
        lambda s, x: torch.cond(x.sum() > 0, lambda v: v.sin().relu(), lambda v: v.cos().relu(), (x,)), floats(4, 4)
    ),
    "while_loop": simple(looped, floats(4)),
    "custom_op": simple(lambda s, x: twice(s.a(x)).relu(), floats(4, 8), a=nn.Linear(8, 8)),
    "embedding": simple(lambda s, i: s.table(i).sum(1).relu(), lambda: torch.randint(0, 10, (4, 3)), table=nn.Embedding(10, 6)),
    "attention": simple(attention, floats(2, 8, 8), project=nn.Linear(8, 24), out=nn.Linear(8, 8)),
    "layer_norm": simple(lambda s, x: F.gelu(s.norm(x)).relu(), floats(4, 8), norm=nn.LayerNorm(8)),
    "buffer": lambda: (Counting(), [torch.randn(4)]),
    "in_place": simple(lambda s, x: x.clone().add_(1).relu_().mul_(2).view(-1), floats(4, 4)),
    "views": simple(lambda s, x: torch.relu(x.t()[1:, ::2].expand(2, 3, 2)).permute(2, 0, 1), floats(4, 4)),
    "index": simple(lambda s, x, i: x[i].relu().index_add(0, i, x[i]), floats(6, 3), lambda: torch.tensor([0, 2, 4, 5, 1, 3])),
    "sort": simple(lambda s, x: torch.topk(torch.sort(x, -1)[0].relu(), 2)[0], floats(4, 6)),
    "half": simple(lambda s, x: s.a(x).relu(), lambda: torch.randn(4, 8).half(), a=nn.Linear(8, 8).half()),
    "complex": simple(lambda s, x: torch.view_as_real(torch.fft.rfft(x.relu())), floats(4, 8)),
    "scalars": simple(lambda s, x: torch.where(x > 0.1, x * 3, x.double().relu().float()) // 0.3, floats(4, 4)),
    "dynamic": simple(lambda s, x: (s.a(x).relu() * x.shape[0]).sum(0), floats(5, 8), a=nn.Linear(8, 4)),
    "writing_op": simple(written, floats(4, 4)),
    "autocast": simple(mixed, floats(4, 8), a=nn.Linear(8, 8)),
    "no_grad": simple(detached, floats(4, 4)),
    "scan": simple(scanned, floats(3, 4)),
    "unbacked": simple(counted_out, floats(4, 4)),
    "tied": lambda: (Tied(), [torch.tensor([[0, 5], [2, 3]])]),
    "float8": simple(lambda s, x: torch.relu(x.to(torch.float8_e4m3fn).to(torch.float32)), floats(4, 4)),
    "complex_weights": simple(
        lambda s, x: torch.view_as_real(s.w * torch.view_as_complex(x.relu())), floats(4, 2), w=nn.Parameter(torch.randn(4, dtype=torch.complex64))
    ),
    "integers": simple(
        lambda s, i: ((i & 6) ^ (i << 1)).clamp(0, 9) + torch.bitwise_not(i).to(torch.uint8), lambda: torch.randint(-9, 9, (5, 3))
    ),
    "empty": simple(lambda s, x: s.a(x).relu().sum(0), floats(0, 8), a=nn.Linear(8, 4)),
    "channels_last": simple(
        lambda s, x: s.conv(x).relu(), lambda: torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last), conv=nn.Conv2d(3, 4, 3)
    ),
    "lstm": simple(lambda s, x: s.cell(x)[0].relu(), floats(3, 2, 4), cell=nn.LSTM(4, 5)),
    "random": simple(lambda s, x: torch.relu(x + torch.rand_like(x)) * torch.bernoulli(torch.full_like(x, 0.5)), floats(4, 4)),
    "vmap": simple(lambda s, x: torch.func.vmap(torch.func.grad(lambda row: row.sin().relu().sum()))(x), floats(3, 4)),
    "nothing_and_more": simple(lambda s, x: (x.relu(), None, 3, [x.sin(), {"a": x.cos()}]), floats(4)),
    "groups": simple(lambda s, x: s.norm(s.conv(x)).relu(), floats(2, 4, 8), conv=nn.Conv1d(4, 8, 3, groups=2), norm=nn.GroupNorm(2, 8)),
}


class Failure(Exception):
    """What the compiler raises."""


def wrong(value):
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value + 1 if floating else value


class Wrong(nn.Module):
    """A compiled module whose numbers are wrong."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *arguments):
        return tuple(wrong(value) for value in self.module(*arguments))


def after_dynamo(level):
    """A compiler of what Dynamo captured, which raises or computes a different result."""

    def compile_fx(module, example_inputs, *_args, **_options):
        if level == 4:
            return Wrong(module)
        raise Failure("this compiler raises")

    return torch._inductor.compile_fx, "compile_fx", compile_fx


def after_aot(level, half, folder):
    """Inductor up to its passes. Of the forward or the backward half, its code generator raises or computes a different result."""

    def inner(module, example_inputs, **options):
        fails = bool(options.get("is_backward")) == (half == "backward")
        if level == 1 and fails:
            # What TORCH_COMPILE_DEBUG leaves for the same graph.
            with open(folder / "fx_graph_runnable.py", "w") as file:
                save_graph_repro(file, module, example_inputs, "inductor")
            (folder / "fx_graph_readable.py").write_text(module.print_readable(print_output=False))
        if fails and level in (1, 2):
            raise Failure("this compiler raises")

        def run(arguments):
            outputs = module(*arguments)
            return tuple(wrong(value) for value in outputs) if fails and level == 4 else outputs

        run._boxed_call = True
        return run

    return torch._inductor.compile_fx, "_compile_fx_inner", inner


@contextlib.contextmanager
def inside(folder):
    before = os.getcwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def dump(name, way, stage, level, folder):
    """Has torch leave a dump in a folder; returns the programs in it and why there is none."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    training = way != "infer"
    if training:
        inputs = [value.requires_grad_() if value.is_floating_point() else value for value in inputs]
    place, attribute, compiler = after_dynamo(level) if stage == "dynamo" else after_aot(level, way, folder)
    reason = None
    with inside(folder), contextlib.ExitStack() as stack:
        root = str(folder / "torch_compile_debug")
        stack.enter_context(torch._dynamo.config.patch(repro_after=stage, repro_level=level, debug_dir_root=root))
        stack.enter_context(torch._dynamo.config.patch(capture_scalar_outputs=True))
        stack.enter_context(torch._inductor.config.patch(force_disable_caches=True))
        stack.enter_context(torch.set_grad_enabled(training))
        store = torch.utils._content_store
        # By default a kernel of Inductor computes the names of storages, and Inductor is what is replaced here.
        original = store.hash_storage
        named = lambda storage, **_options: original(storage, stable_hash=True)  # noqa: E731
        for where, what, by in ((place, attribute, compiler), (store, "hash_storage", named)):
            stack.callback(setattr, where, what, getattr(where, what))
            setattr(where, what, by)
        try:
            output = torch.compile(model, dynamic=name == "dynamic")(*inputs)
            if training:
                found = [value for value in torch.utils._pytree.tree_leaves(output) if isinstance(value, torch.Tensor) and value.requires_grad]
                if found:
                    sum(value.sum() for value in found).backward()
        except BaseException as error:
            said = "".join(traceback.format_exception(error))
            reason = None if "Failure" in said or "AccuracyError" in said else f"{type(error).__name__}: {error}".splitlines()[0]
    programs = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))
    return programs, reason


def plan(names):
    for name in names:
        for stage in ("dynamo", "aot"):
            for way in WAYS if stage == "aot" else WAYS[:2]:
                for level in LEVELS:
                    yield name, way, stage, level


def main(directory, names):
    found = []
    for name, way, stage, level in plan(names):
        folder = directory / name / f"{way}-after-{stage}-{level}"
        programs, reason = dump(name, way, stage, level, folder.resolve())
        found.append({"model": name, "way": way, "stage": stage, "level": level, "folder": str(folder), "programs": programs, "reason": reason})
    (directory / "dumps.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.splitlines()[0])
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or list(MODELS))
