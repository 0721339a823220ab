"""Whole models through capture: the five that Pyrite is measured with, and eight more of torchvision and transformers.

`MODELS` maps a name to a function that returns `(module, inputs)`; configurations are small, weights random, nothing is downloaded. Models of
torchvision keep their dropout and stochastic depth: with the same seed a compiler has to draw the same numbers.

`python -m capture.models` prints a table: whether outputs, gradients and buffers are eager's in train and eval mode, graphs and breaks, and
times side by side with TorchDynamo in one run. `--record` writes Dynamo's counts to `dynamo_models.json`.
"""

import argparse
import copy
import json
import logging
import math
import pathlib
import statistics
import time
import warnings
from dataclasses import dataclass

import torch

from capture import harness
from capture.cases import Call, seed_everything
from models import measured

RECORD = pathlib.Path(__file__).with_name("dynamo_models.json")


class First(torch.nn.Module):
    """A transformers model that returns its first tensor instead of a dataclass."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs):
        return self.model(inputs, return_dict=False)[0]


def mobilenet():
    from torchvision.models import mobilenet_v3_small

    return mobilenet_v3_small(weights=None, num_classes=10), (torch.randn(2, 3, 64, 64),)


def swin_t():
    from torchvision.models import swin_t as build

    return build(weights=None, num_classes=10), (torch.randn(1, 3, 64, 64),)


def densenet():
    from torchvision.models import densenet121

    return densenet121(weights=None, num_classes=10), (torch.randn(2, 3, 64, 64),)


def convnext():
    from torchvision.models import convnext_tiny

    return convnext_tiny(weights=None, num_classes=10), (torch.randn(1, 3, 64, 64),)


def t5_encoder():
    from transformers import T5Config, T5EncoderModel

    config = T5Config(vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0)
    return First(T5EncoderModel(config)), (torch.randint(0, 1000, (2, 16)),)


def llama():
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        use_cache=False,
    )
    return First(LlamaModel(config)), (torch.randint(0, 1000, (2, 16)),)


def whisper_encoder():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, max_source_positions=50, num_mel_bins=16, dropout=0.0
    )
    return First(WhisperEncoder(config)), (torch.randn(2, 16, 100),)


def vit_of_transformers():
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=32, patch_size=8)
    return First(ViTModel(config)), (torch.randn(2, 3, 32, 32),)


MODELS = {
    **measured.MODELS,
    "mobilenet_v3_small": mobilenet,
    "swin_t": swin_t,
    "densenet121": densenet,
    "convnext_tiny": convnext,
    "t5_encoder": t5_encoder,
    "llama": llama,
    "whisper_encoder": whisper_encoder,
    "vit_of_transformers": vit_of_transformers,
}


def build(name):
    """The model and its inputs, the same at every call."""
    seed_everything(0)
    return MODELS[name]()


def check(name, compiler):
    """Where a compiled model differs from eager in either mode, as a sentence, or `None`. Two steps of each, so that state is seen."""
    for mode in ("train", "eval"):
        compiler.reset()
        model, inputs = build(name)
        model.train(mode == "train")
        other = copy.deepcopy(model)
        compiled = compiler.compile(other)
        double = copy.deepcopy(model).double()
        for step in range(2):
            want, have = observed(model, model, inputs, step), observed(compiled, other, inputs, step)
            if found := parting(want, have, lambda: observed(double, double, doubled(inputs), step)):
                return f"{mode} mode, call {step + 1}: {found}"
            double.load_state_dict(model.state_dict())
    return None


def doubled(inputs):
    return tuple(value.detach().double().requires_grad_(value.requires_grad) if value.is_floating_point() else value for value in inputs)


def parting(want, have, fp64, again=None):
    """Where compiled results differ from eager's, as a sentence, or `None`. `fp64()` gives them in double precision, for those to be near to that
    are not near to eager's: a relu whose input is almost zero turns over by rounding. `again()` gives further results of eager's with those in
    double precision, from numbers that differ in their last bit: how far eager strays is told by several of its runs."""
    if found := form_difference(want, have):
        return found
    found = value_difference(want, have)
    # What is near to eager need not be as near to double precision as eager is.
    kinds = [kind for kind in KINDS if value_difference(of_kind(want, kind), have)]
    return found if found and not (kinds and as_near_fp64(want, have, fp64(), again, kinds)) else None


def of_kind(results, kind):
    return {name: value for name, value in results.items() if name.startswith(kind)}


def form_difference(want, have):
    """What differs that no rounding excuses."""
    if want.keys() != have.keys():
        return f"{sorted(want.keys() ^ have.keys())[:3]} on one side only"
    for name, expected in want.items():
        found = have[name]
        if (expected.dtype, expected.shape) != (found.dtype, found.shape):
            return f"{name} is {found.dtype} {tuple(found.shape)} instead of {expected.dtype} {tuple(expected.shape)}"
        if name.startswith("output") and walked(expected) != walked(found):
            return f"{name} has strides {found.stride()} instead of {expected.stride()}"
        if (not expected.is_floating_point() or name == "next random number") and not torch.equal(expected, found):
            return f"{name} differs"
    return None


def walked(tensor):
    """The strides of a tensor where there is more than one element: AOTAutograd gives other dimensions strides of its own."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size != 1]


def value_difference(want, have):
    for name, expected in want.items():
        if expected.numel() and expected.is_floating_point():
            # Relative to the largest element: sums in another order move the small ones.
            worst = (expected.double() - have[name].double()).abs().max().item()
            if not worst <= 1e-4 * expected.double().abs().max().item() + 1e-6:
                return f"{name} is off by {worst:.3g}"
    return None


KINDS = ("output", "gradient", "buffer")


def as_near_fp64(eager, compiled, fp64, again=None, kinds=KINDS):
    """Whether compiled results of these kinds are as near to double precision as eager's, each kind by itself."""

    def is_near(strays):
        judged = zip(KINDS, distances(compiled, fp64), strays)
        return all(found < math.inf and found <= max(2 * stray, 1e-5) for kind, found, stray in judged if kind in kinds)

    strays = distances(eager, fp64)
    if is_near(strays) or again is None:
        return is_near(strays)
    return is_near([max(each) for each in zip(strays, *(distances(*pair) for pair in again()))])


def distances(found, fp64):
    """How far results are from those in double precision, the farthest of each kind."""
    numbers = [name for name in fp64 if name != "next random number" and fp64[name].is_floating_point() and fp64[name].numel()]
    far = []
    for kind in KINDS:
        names = [name for name in numbers if name.startswith(kind)]
        # What is zero but for rounding has no scale of its own.
        least = max((fp64[name].norm().item() for name in names), default=0.0) * 1e-3 + 1e-12
        parts = [(found[name].double() - fp64[name]).norm().item() / max(fp64[name].norm().item(), least) for name in names]
        # NaN is farther than every number.
        far.append(max((math.inf if part != part else part for part in parts), default=0.0))
    return far


def perturbed(model, state, runs=3):
    """Copies of a model in a state, with parameters that differ in their last bit, each with its like in double precision."""
    for run in range(runs):
        copied = copy.deepcopy(model)
        copied.load_state_dict(state)
        generator = torch.Generator().manual_seed(run)
        with torch.no_grad():
            for parameter in copied.parameters():
                if parameter.is_floating_point():
                    aside = torch.where(torch.rand(parameter.shape, generator=generator) < 0.5, -math.inf, math.inf).to(parameter.dtype)
                    parameter.copy_(torch.nextafter(parameter, aside))
        yield copied, copy.deepcopy(copied).double()


def observed(function, model, inputs, seed):
    """Everything one step of training leaves, by name."""
    seed_everything(seed)
    output = function(*inputs)
    weights = torch.cos(torch.arange(output.numel(), dtype=output.dtype)).reshape(output.shape)
    (output * weights).sum().backward()
    left = {"output": output.detach()}
    left |= {f"gradient of {name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    left |= {f"buffer {name}": b.clone() for name, b in model.named_buffers()}
    left["next random number"] = torch.rand(())
    for p in model.parameters():
        p.grad = None
    return left


def count(name, compiler):
    """Graphs and breaks in evaluation mode."""
    compiler.reset()
    model, inputs = build(name)
    return compiler.explain(model.eval(), Call(inputs, {}))


@dataclass(frozen=True)
class Times:
    """Seconds: the first call without what eager needs, what a later call costs over eager's, and what it costs when its graph
    costs nothing: guards, and the way in and out."""

    first: float
    overhead: float
    path: float


def measure(name, compilers, rounds):
    """The times of each compiler on a model in evaluation mode, interleaved call by call with eager's."""
    model, inputs = build(name)
    model.eval()
    with torch.no_grad():
        eager = statistics.median(seconds(model, inputs) for _ in range(5))
        functions, first = {}, {}
        for compiler in compilers:
            compiler.reset()
            functions[compiler.name] = compiler.compile(copy.deepcopy(model))
            first[compiler.name] = seconds(functions[compiler.name], inputs) - eager
        remembered = {}
        for compiler in compilers:
            remembered[compiler.name] = compiler.compile_remembering(copy.deepcopy(model))
            remembered[compiler.name](*inputs)
        later = {who: [] for who in ("eager", *functions)}
        for _ in range(rounds):
            for who, function in (("eager", model), *functions.items()):
                later[who].append(seconds(function, inputs))
        paths = {who: statistics.median(seconds(function, inputs) for _ in range(4 * rounds)) for who, function in remembered.items()}
    # Medians of differences within a round: what slows the machine down slows down both sides.
    over = {who: statistics.median(b - a for a, b in zip(later["eager"], later[who])) for who in functions}
    return {who: Times(first[who], over[who], paths[who]) for who in functions}


def seconds(function, inputs):
    start = time.perf_counter()
    function(*inputs)
    return time.perf_counter() - start


def recorded():
    """How many graphs and breaks each model has in TorchDynamo."""
    return {name: harness.Counts(**row) for name, row in json.loads(RECORD.read_text()).items()}


def warm_up(compilers):
    """Takes what a compiler does once per process out of the first model's times."""
    for compiler in compilers:
        compiler.compile(torch.nn.Linear(2, 2))(torch.ones(1, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compilers", nargs="+", choices=harness.COMPILERS, default=["dynamo", "pyrite"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--times", action="store_true", help="measure only: do not check results")
    parser.add_argument("--record", action="store_true", help="write dynamo_models.json and nothing else")
    parser.add_argument("models", nargs="*", help="names; all of them if there are none")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # One thread: what is measured is the path to the operators, and threads of other programs disturb it less.
    torch.set_num_threads(1)
    names = options.models or list(MODELS)
    if options.record:
        counts = {name: vars(count(name, harness.Dynamo())) for name in names}
        RECORD.write_text(json.dumps(counts, indent=2) + "\n")
        return
    compilers = [harness.COMPILERS[name]() for name in options.compilers]
    warm_up(compilers)
    print(f"{'model':<20} {'compiler':<8} {'graphs':>6} {'breaks':>6} {'first call':>11} {'later calls':>12} {'path':>9}  differs")
    for name in names:
        times = measure(name, compilers, options.rounds)
        for compiler in compilers:
            counts, cost = count(name, compiler), times[compiler.name]
            told = f"{counts.graphs:>6} {counts.breaks:>6} {cost.first * 1e3:>8.1f} ms {cost.overhead * 1e6:>+9.0f} us {cost.path * 1e6:>6.0f} us"
            differs = None if options.times else check(name, compiler)
            print(f"{name:<20} {compiler.name:<8} {told}  {differs or ''}", flush=True)


if __name__ == "__main__":
    main()
