"""Random compositions of torch's functions at every entry point, called with changing sizes: `python -m border.compositions --help`.

A program is the text of a function: some statements over tensors of mixed dtypes and layouts and over Python numbers of unusual value, with views,
writes to views and to inputs, and outputs that are inputs, views or numbers. What it computes is exact (small whole numbers, so that a comparison
or an index never hangs on rounding) or smooth (nothing jumps). It is compiled once and called several times: other sizes, 0 and 1 among
them, other numbers, other layouts. All that `observe` sees is eager's, and what eager refuses is refused.

A program is drawn from a seed and its number alone: `--seed` and `--first` repeat it.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import sys
import time
import warnings

import cpu  # noqa: F401  (before torch)

import torch

from border.observe import WAYS, Judge
from border.samples import LAYOUTS, expanded, repeats
from capture import isolation

SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
DTYPES = (
    "float32", "float32", "float32", "float64", "bfloat16", "float16", "int64", "int64", "int32", "uint8", "int8", "bool", "bool", "complex64",
)  # fmt: skip
NUMBERS = (
    "2", "3", "-1", "0", "1", "True", "False", "0.5", "-0.0", "2.0", "float('inf')", "float('nan')", "-3", "7", "1e10", "2**31", "2**40", "255", "-128", "1e-3",
)  # fmt: skip

# Statements; `{a}`, `{b}`, `{c}` are tensors, `{s}` a number, `{f}` a floating dtype, `{t}` a dtype, `{d}` a dimension.
EXACT = """
{a} + {b}
{a} - {b}
{a} * {b}
{a} + {s}
{s} - {a}
{a} * {s}
{a} / 2
-{a}
{a}.abs()
{a} // 2
{a} % 3
{a} % -2
{a} // {b}
{a} % {b}
torch.fmod({a}, 2)
torch.div({a}, 2, rounding_mode="trunc")
torch.div({a}, {b}, rounding_mode="floor")
torch.remainder({s}, {a})
{a}.sign()
{a}.relu()
{a}.clamp(-2, 3)
{a}.clamp(min={s})
{a}.clamp(max={b})
torch.maximum({a}, {b})
torch.minimum({a}, {b})
torch.fmax({a}, {b})
{a} > {b}
{a} == {b}
{a} <= {s}
{a} != {s}
torch.where({a} > {b}, {a}, {b})
torch.where({a} > 0, {a}, {s})
torch.where({b} != 0, {s}, {a})
{a}.masked_fill({b} > 0, 2)
{a}.to(torch.{t})
{a}.to({b}.dtype)
{a}.float()
{a}.bool()
{a}.long()
{a}.clamp(0, 9).to(torch.uint8)
~{a}
{a} & {b}
{a} | {b}
{a} ^ {b}
{a} << 2
{a} >> 1
{a}.logical_not()
{a}.logical_xor({b})
{a}.round()
{a}.floor()
{a}.ceil()
{a}.trunc()
({a} / 2).round()
{a}.square()
{a} ** 2
{a} ** 0
{a}.isnan()
{a}.isinf()
torch.nan_to_num({a})
torch.heaviside({a}, {b})
torch.copysign({a}, {b})
{a}.sum()
{a}.sum({d})
{a}.sum({d}, keepdim=True)
{a}.sum((0, -1))
{a}.sum({d}, dtype=torch.float64)
{a}.amax({d})
{a}.amin({d}, keepdim=True)
{a}.max({d})[0]
{a}.max({d}).indices
{a}.min({d})[1]
{a}.max()
{a}.argmax({d})
{a}.argmin()
{a}.any({d})
{a}.all()
{a}.count_nonzero({d})
{a}.cumsum({d})
{a}.cummax({d})[0]
{a}.cummin({d})[1]
{a}.clamp(-1, 1).prod({d})
{a}.clamp(-1, 1).cumprod({d})
torch.aminmax({a})[1]
{a}.sort({d}, stable=True)[0]
{a}.sort({d}, stable=True, descending=True)[1]
{a}.argsort({d}, stable=True)
{a}.detach().topk(1, {d})[0]
{a}.detach().kthvalue(1, {d})[0]
{a}.detach().median({d})[0]
{a}.msort()
{a}.diff(dim={d})
{a}.nansum({d})
{a}[0]
{a}[-1]
{a}[..., 0]
{a}[1:]
{a}[:-1]
{a}[::2]
{a}[:, 1:]
{a}[..., ::3]
{a}[None]
{a}[..., None]
{a}[1:-1]
{a}[{a}.shape[0] // 2 :]
{a}.t()
{a}.mT
{a}.transpose(0, -1)
{a}.movedim(0, -1)
{a}.permute(*range({a}.dim())[::-1])
{a}.reshape(-1)
{a}.reshape({a}.shape[0], -1)
{a}.flatten()
{a}.view(-1)
{a}.view({a}.shape)
{a}.view_as({a})
{a}.unsqueeze({d})
{a}.squeeze()
{a}.squeeze({d})
{a}.expand(2, *{a}.shape)
{a}.expand_as({b})
{a}.broadcast_to({b}.shape)
{a}.unflatten(-1, (1, -1))
{a}.narrow({d}, 0, 1)
{a}.select({d}, -1)
{a}.unfold({d}, 1, 1)
{a}.unfold(-1, 2, 1)
{a}.diagonal()
{a}.split(2, {d})[-1]
{a}.chunk(2, {d})[0]
{a}.unbind({d})[-1]
torch.tensor_split({a}, 2, {d})[1]
{a}.tril()
{a}.triu(1)
{a}.flip({d})
{a}.flip(0, -1)
{a}.roll(1, {d})
{a}.roll(2)
{a}.rot90()
{a}.repeat(2, 1)
{a}.repeat_interleave(2, {d})
{a}.tile((2,))
{a}.contiguous()
{a}.clone()
{a}.clone(memory_format=torch.contiguous_format)
{a}.detach()
{a}.new_zeros({a}.shape)
{a}.new_full((2, {a}.shape[0]), {s})
torch.zeros_like({a})
torch.ones_like({a}, dtype=torch.{t})
torch.full_like({a}, {s})
torch.full(({a}.shape[0],), {s})
torch.arange({a}.shape[0])
torch.arange({a}.numel() + 1, dtype=torch.{t})
torch.eye({a}.shape[-1], {a}.shape[0])
torch.tensor({s})
torch.tensor([{s}, 1])
torch.scalar_tensor({s}, dtype=torch.{f})
torch.cat([{a}, {b}])
torch.cat([{a}, {a}], {d})
torch.cat([{a}, {b}, {a}], -1)
torch.cat([{a}.flatten(), {b}.flatten()])
torch.stack([{a}, {a}], {d})
torch.stack([{a}, {b}])
torch.hstack([{a}, {b}])
torch.vstack([{a}, {b}])
F.pad({a}, (1, 0))
F.pad({a}, (-1, 2), value={s})
F.pad({a}, (0, 1, 2, 0))
F.one_hot({a}.long().clamp(0, 4), 5)
F.embedding({a}.long().clamp(0, 0), {b})
{a}.index_select({d}, torch.tensor([0, 0]))
{a}[torch.tensor([0, -1])]
{a}[:, torch.tensor([0, 0, -1])]
{a}[torch.arange({a}.shape[0])]
{a}.gather({d}, torch.zeros_like({a}, dtype=torch.int64))
torch.take_along_dim({a}, {a}.argsort({d}, stable=True), {d})
torch.take({a}, torch.tensor([0, -1]))
{a}.scatter({d}, torch.zeros_like({a}, dtype=torch.int64), 2)
{a}.scatter_add({d}, torch.zeros_like({a}, dtype=torch.int64), {a})
{a}.index_add({d}, torch.tensor([0]), {a}.narrow({d}, 0, 1))
{a}.index_fill({d}, torch.arange({a}.dim() and {a}.shape[{d}])[:1], 3)
{a}.index_put((torch.tensor([0]),), {b})
{a}.masked_scatter({a} > 0, {a}.clone())
torch.select_scatter({a}, {a}.select({d}, 0), {d}, -1)
torch.slice_scatter({a}, {a}[:1], 0, 0, 1)
torch.diagonal_scatter({a}, {a}.diagonal())
torch.searchsorted(torch.arange(4.0), {a})
torch.bucketize({a}, torch.tensor([0, 2]))
torch.isin({a}, torch.tensor([1, 2]))
torch.isclose({a}, {b})
torch.outer({a}.flatten(), {b}.flatten())
torch.kron({a}, {b})
torch.meshgrid({a}.flatten(), {b}.flatten(), indexing="ij")[1]
torch.block_diag({a}, {b})
torch.addcmul({a}, {b}, {a})
torch.add({a}, {b}, alpha=2)
torch.rsub({a}, {s})
torch.lerp({a}, {b}, 2.0)
{a} @ {b}
{a}.clamp(-2, 2) @ {a}.clamp(-2, 2).mT
torch.einsum("...i,...i->...", {a}, {a})
torch.dot({a}.flatten(), {a}.flatten())
torch.real({a})
{a}.imag
{a}.conj()
torch.view_as_real({a})
torch.complex({a}, {a})
{a}.T
{a}.view(torch.int32)
{a}.view(torch.uint8)
{a}.view(torch.float32)
F.max_pool1d({a}[None].float(), 2)
F.interpolate({a}[None].float(), scale_factor=2)
torch.bincount({a}.flatten().long().clamp(0, 5), minlength=6)
torch.tril_indices({a}.shape[0], 3)
torch.combinations({a}.flatten()[:3])
{a}.as_strided((2,), (1,))
torch.broadcast_tensors({a}, {b})[0]
torch.atleast_2d({a})
torch.movedim({a}, 0, -1)
{a}.swapaxes(0, -1)
{a}.ravel()
{a}.type_as({b})
{a} + {a}.shape[0]
{a} * {a}.numel()
{a}.sum() / {a}.shape[0] if {a}.shape[0] in (1, 2, 4, 8, 16) else {a}
torch.result_type({a}, {b}) == torch.float32
{a}.shape[0]
{a}.is_contiguous()
{a}.numel() * 2
"""
SMOOTH = """
{a}.sin()
{a}.cos()
{a}.tanh()
{a}.sigmoid()
{a}.exp().clamp(max=9)
({a}.abs() + 1).log()
({a}.abs() + 1).sqrt()
({a}.square() + 1).rsqrt()
1 / ({a}.abs() + 1)
{a} / ({b}.abs() + 1)
{a}.erf()
{a}.atan()
{a}.expm1().clamp(max=9)
{a}.abs().log1p()
F.silu({a})
F.gelu({a})
F.gelu({a}, approximate="tanh")
F.elu({a})
F.softplus({a})
F.mish({a})
F.leaky_relu({a})
F.hardswish({a})
F.softmax({a}, {d})
F.log_softmax({a}, {d})
F.softmax({a}.float(), -1).to({a}.dtype)
F.normalize({a}, dim={d})
F.layer_norm({a}, {a}.shape[-1:])
F.rms_norm({a}, {a}.shape[-1:])
F.group_norm({a}[None], 1)
F.instance_norm({a}[None])
F.batch_norm({a}, None, None, training=True)
{a}.mean()
{a}.mean({d})
{a}.mean((0, -1), keepdim=True)
{a}.var({d}, correction=0)
{a}.std()
torch.var_mean({a}, {d})[0]
{a}.norm()
{a}.norm(dim={d})
torch.linalg.vector_norm({a}, 1, {d})
{a}.logsumexp({d})
{a}.logcumsumexp({d})
{a}.pow(3)
({a}.abs() + 1) ** 0.5
({a}.abs() + 1) ** {b}.clamp(-2, 2)
2 ** {a}.clamp(-3, 3)
torch.atan2({a}, {b}.abs() + 1)
torch.hypot({a}, {b})
torch.logaddexp({a}, {b})
torch.lerp({a}, {b}, 0.3)
torch.addcdiv({a}, {b}, {a}.abs() + 1)
torch.xlogy({a}, {b}.abs() + 1)
torch.sinc({a})
torch.cdist({a}, {a} + 1)
F.mse_loss({a}, {b})
F.smooth_l1_loss({a}, {b})
F.binary_cross_entropy_with_logits({a}, {b}.sigmoid())
F.cross_entropy({a}, torch.zeros({a}.shape[0], dtype=torch.int64))
F.cosine_similarity({a}, {b}, -1)
F.linear({a}, {b})
F.avg_pool1d({a}[None], 2)
F.adaptive_avg_pool1d({a}[None], 2)
F.interpolate({a}[None], size=5, mode="linear")
F.conv1d({a}[None], {a}[:, None, :1].expand(-1, {a}.shape[0], -1))
F.scaled_dot_product_attention({a}[None], {a}[None], {a}[None])
torch.cumsum({a}.sin(), {d})
torch.trapezoid({a}, dim={d})
torch.linspace(0, 1, {a}.shape[0]) * {a}.mean()
F.dropout({a}, 0.5)
torch.rand_like({a}) + {a}
torch.randn({a}.shape[0])
{a}.quantile(0.5)
"""
WRITES = """
{a}.add_({b})
{a}.add_(1)
{a}.mul_(2)
{a}.copy_({b})
{a}.fill_({s})
{a}.zero_()
{a}.neg_()
{a}.clamp_(-1, 2)
{a}.sub_({b}, alpha=2)
{a}[0] = {s}
{a}[0] = {b}
{a}[1:] = {b}
{a}[..., 0] += 1
{a}[:, 1:] *= 2
{a}[{a} > 0] = 0
{a}[torch.tensor([0, -1])] = {b}
{a}[torch.tensor([0, 0])] += 1
{a}.t().mul_(3)
{a}[::2].add_({b})
{a}.view(-1)[:2].zero_()
{a}.diagonal().fill_(2)
{a}.masked_fill_({b} > 0, {s})
{a}.index_add_(0, torch.tensor([0]), {b}[:1])
{a}.scatter_(0, torch.zeros_like({a}, dtype=torch.int64), 1)
{a}.index_fill_(0, torch.arange({a}.shape[0])[:1], 5)
{a}.select({d}, 0).copy_({b})
{a}.squeeze().add_(1)
{a}.unsqueeze_(0)
{a}.t_()
{a}.squeeze_()
{a}.transpose_(0, -1)
{a}.flatten().add_(1)
{a}.detach().add_(1)
{a}.relu_()
{a}.logical_not_()
{a}.unbind(0)[-1].sub_(1)
{a}.chunk(2)[0].mul_(-1)
{a}.expand(2, *{a}.shape)[0].add_(1)
{a}.real.add_(1)
{a} += {b}
{a} *= {s}
{a} -= {a}.sum()
torch.add({a}, {b}, out={c})
torch.sum({a}.clone(), 0, out={c})
torch.mul({a}, 2, out={a})
{a}.swapaxes_(0, -1)
{a}.data.add_(1)
{a}.triu_()
{a}.cumsum_(0)
{a}.floor_divide_(2)
{a}.remainder_(3)
{a}.bitwise_and_({b})
{a}.eq_({b})
{a}.index_copy_(0, torch.tensor([0]), {b}[:1])
{a}.scatter_add_(0, torch.zeros_like({a}, dtype=torch.int64), {b})
"""


def forms(text):
    return [line for line in text.strip().splitlines() if line]


EXACT, SMOOTH, WRITES = forms(EXACT), forms(SMOOTH), forms(WRITES)
# A part of what is in the exact list may jump, and stays out where numbers are rounded.
JUMPS = ("//", "%", "fmod", "div(", "remainder", "sign", "round", "floor", "ceil", "trunc", "sort", "arg", "ind", "==", "!=", ">", "<", "long", "bool", "to(torch.", "int", "type", "heaviside", "isin", "isclose", "nonzero", "cummin", "bucket", "search", "any", "all()", "logical", "one_hot", "embedding", "bincount", "max({d}).", "kth", "median", "topk", "copysign", "take_along", "view(torch", "[1]")  # fmt: skip


class Program:
    """A text, the shapes of its inputs by the names of their sizes, their dtypes, and which numbers it takes."""

    def __init__(self, text, shapes, dtypes, numbers, smooth):
        self.text, self.shapes, self.dtypes, self.numbers, self.smooth = text, shapes, dtypes, numbers, smooth

    def function(self, name="composition.py"):
        space = {"torch": torch, "F": torch.nn.functional}
        exec(compile(self.text, name, "exec"), space)
        return space["program"]


# What eager computes of these is wrong, or depends on the order of writes, where elements share memory.
UNSHARED = ("median", "kthvalue", "select_scatter", "slice_scatter", "diagonal_scatter", "as_strided")

SHAPES = (("n", "m"), ("n", "m"), ("m",), ("n", 1), (), ("n",), (1, "m"), ("n", "n"), (2, "n", "m"), (3, "m"), ("k", "n"))


def drawn(rng, shape, dtype, smooth):
    """A tensor's contents: small whole numbers, or any."""
    dtype = getattr(torch, dtype)
    if dtype is torch.bool:
        return torch.tensor([rng.random() < 0.5 for _ in range(numel(shape))], dtype=torch.bool).reshape(shape)
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    low = 0 if dtype is torch.uint8 else -4
    if smooth and (dtype.is_floating_point or dtype.is_complex):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    made = torch.randint(low, 5, shape, generator=generator).to(dtype)
    return made + 1j * torch.randint(low, 5, shape, generator=generator).to(dtype) if dtype.is_complex else made


def numel(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def arguments_for(rng, program, sizes, gradients):
    tensors = []
    for shape, dtype in zip(program.shapes, program.dtypes):
        shape = tuple(sizes.get(size, size) for size in shape)
        layouts = [each for each in LAYOUTS if each is not expanded] if any(each in program.text for each in UNSHARED) else LAYOUTS
        tensor = rng.choice(layouts)(rng, drawn(rng, shape, dtype, program.smooth))
        # Torch says in several ways what the gradient of elements in one place is.
        if gradients and not repeats(tensor) and (tensor.is_floating_point() or tensor.is_complex()) and rng.random() < 0.8:
            tensor.requires_grad_()
        tensors.append(tensor)
    numbers = [eval(rng.choice(NUMBERS)) if kind is None else kind(rng) for kind in program.numbers]
    return (*tensors, *numbers)


def draw(rng):
    """A program, and the arguments of its calls."""
    smooth = rng.random() < 0.35
    count = rng.randrange(1, 4)
    shapes = [rng.choice(SHAPES) for _ in range(count)]
    choice = [each for each in DTYPES if not smooth or each not in ("bfloat16", "float16", "uint8", "int8")]
    dtypes = [rng.choice(choice) for _ in range(count)]
    numbers = [rng.choice((lambda rng: rng.randrange(-3, 6), lambda rng: rng.choice((0.5, 2.0, -1.0, 3.0)), lambda rng: rng.random() < 0.5, None))] if rng.random() < 0.35 else []
    sizes = {name: rng.choice((2, 3, 4, 5, 8)) for name in "nmk"}
    program = Program("", shapes, dtypes, numbers, smooth)
    names = [f"x{index}" for index in range(count)]
    taken = [f"s{index}" for index in range(len(numbers))]
    space = {"torch": torch, "F": torch.nn.functional}
    space.update(zip([*names, *taken], arguments_for(rng, program, sizes, False)))
    lines = []
    for number in range(rng.randrange(3, 9)):
        for _ in range(4):
            known = [name for name, value in space.items() if isinstance(value, torch.Tensor)]
            kind = rng.random()
            form = rng.choice(WRITES if kind < 0.14 else SMOOTH if smooth and kind < 0.6 else EXACT)
            if smooth and form in EXACT and any(each in form for each in JUMPS):
                continue
            # What was made last is used most.
            pick = lambda: rng.choice(known[-3:]) if rng.random() < 0.6 else rng.choice(known)  # noqa: E731
            chosen = {"a": pick(), "b": pick(), "c": pick(), "d": rng.choice((0, -1, -1, 1)), "t": rng.choice(DTYPES), "f": rng.choice(("float32", "float64"))}
            chosen["s"] = rng.choice(taken) if taken and rng.random() < 0.6 else rng.choice(NUMBERS)
            text = form.format(**chosen)
            line = text if form in WRITES else f"v{number} = {text}"
            trial = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in space.items()}
            try:
                exec(line, trial)
                value = trial.get(f"v{number}")
                if isinstance(value, torch.Tensor) and (value.numel() > 20000 or value.layout is not torch.strided):
                    continue
                exec(line, space)
            except Exception:
                continue
            lines.append(line)
            break
    made = [name for name, value in space.items() if name.startswith("v") and isinstance(value, (torch.Tensor, int, float, bool))]
    if not made:
        return None
    # What nobody reads is returned: a compiler need not compute the rest, nor refuse it.
    read = {name for line in lines for name in re.findall(r"\w+", line.partition(" = ")[2] if line.startswith("v") else line)}
    given = [name for name in made if name not in read or rng.random() < 0.2]
    given = given or made[-1:]
    rng.shuffle(given)
    if rng.random() < 0.15:
        given.append(rng.choice(names))
    program.text = "\n    ".join([f"def program({', '.join([*names, *taken])}):", *lines, f"return {', '.join(given)},"]) + "\n"
    gradients = rng.random() < 0.4
    calls = []
    for call in range(rng.choice((1, 2, 3))):
        if call:
            sizes = sizes if rng.random() < 0.2 else {name: rng.choice(SIZES) for name in "nmk"}
        calls.append(arguments_for(rng, program, sizes, gradients))
    return program, calls


def described(arguments):
    from border.samples import described

    return described(list(arguments))


def check(seed, number, way=None):
    """What differs in one program, and whether there was one."""
    rng = random.Random(f"{seed}/{number}")
    chosen = rng.choice(list(WAYS))
    way = way or chosen
    drawn = draw(rng)
    if drawn is None:
        return 0, None
    program, calls = drawn
    judge = Judge(program.function(f"composition_{seed}_{number}.py"), way)
    for call, arguments in enumerate(calls):
        if found := judge.difference(arguments):
            lines = [f"--first {number}, {way}, call {call}: {found}", program.text, *(f"    {described(each)}" for each in calls[: call + 1])]
            return 1, "\n".join(lines)
    return 1, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, help="end after so long")
    parser.add_argument("--way", choices=WAYS, help="only this entry point")
    given = parser.parse_args()
    isolation.prepare()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    begun, total, found = time.monotonic(), 0, 0
    batch = 25
    for first in range(given.first, given.first + given.count, batch):
        if given.seconds and time.monotonic() - begun > given.seconds:
            break
        numbers = range(first, min(first + batch, given.first + given.count))
        works = [lambda number=number: check(given.seed, number, given.way) for number in numbers]
        for number, (answer, death) in zip(numbers, isolation.together(works, 120)):
            count, text = answer or (1, f"--first {number}: {death}")
            total += count
            if text:
                found += 1
                print(text, flush=True)
    print(f"seed {given.seed}: {total} programs, {found} differences, {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
