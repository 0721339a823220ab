"""Every module of installed packages that can be built small, through `pyrite.compile`: `python -m models.packages timm.layers einops --help`.

Nobody chose these modules: each class that derives from `torch.nn.Module` in the packages named, or below them, is built with small numbers for its
required arguments, by their names, and inputs are tried until eager mode takes some. Outputs, gradients, buffers and the random generator must be
eager's, as `sweep.py` compares them, evaluating and training. Where a module breaks into several graphs, TorchDynamo is asked how many it makes.
The models that `timm` lists are packages' modules, too: `--timm` builds them by their names. Each runs in a process of its own. The exit code is 1 when
one differs.
"""

import argparse
import contextlib
import copy
import importlib
import inspect
import io
import itertools
import logging
import os
import pkgutil
import sys
import warnings

import cpu  # noqa: F401  (before torch)

import pyrite
import torch

from capture import isolation
from capture.cases import seed_everything
from models import sweep
from models.strangers import by_dynamo

# What arguments of constructors are made, by their names.
VALUES = {
    32: "dim dims in_dim input_dim dim_in out_dim dim_out embed_dim hidden_dim d_model hidden_size features in_features out_features num_features embedding_dim "
    "in_channels out_channels in_chs out_chs channels hidden_channels mid_channels num_channels ch in_ch out_ch nf in_planes out_planes planes inplanes c1 c2 chs "
    "hidden_features latent_dim codebook_dim mlp_dim image_size img_size input_size max_seq_len seq_len model_dim time_embed_dim inner_dim "
    "num_embeddings vocab_size num_tokens codebook_size n_embed cross_attention_dim context_dim temb_channels sequence_length resolution",
    8: "dim_head head_dim attention_head_dim dim_key dim_value patch_size window_size num_groups groups emb_dim k n_fft",
    4: "heads num_heads n_heads num_attention_heads nhead head num_codebooks num_quantizers num_experts levels",
    2: "depth depths num_layers n_layers layers num_blocks n_blocks scale_factor spatial_dims num_stages n_block stride upscale_factor scale num_memory_kv dimension",
    5: "num_classes classes n_classes num_labels class_num out_classes num_class",
    3: "kernel_size in_chans image_channels img_channels in_c kernel n_dims ndim",
    0.1: "dropout drop p drop_rate attn_drop emb_dropout drop_prob rate prob alpha margin",
    1: "dilation padding expansion num_res_blocks ratio",
}
BY_NAME = {name: value for value, names in VALUES.items() for name in names.split()}
LARGEST = 20_000_000


def arguments_of(cls):
    """Arguments for a constructor; nothing where a required one has no value."""
    found = {}
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is not parameter.empty:
            if type(parameter.default) is int and parameter.default > 64 and type(BY_NAME.get(name)) is int:
                found[name] = BY_NAME[name]
            continue
        if name not in BY_NAME:
            if "dim" in name or "channels" in name or "features" in name or "size" in name:
                found[name] = 32
                continue
            return None
        found[name] = BY_NAME[name]
    return found


def shapes():
    """Sizes of inputs, the likeliest first."""
    yield from [(2, 16, 32), (2, 32, 16, 16), (2, 3, 32, 32), (2, 32), (2, 32, 16), (2, 3, 64, 64), (2, 1, 32, 32), (2, 16, 16, 32)]
    yield from [(2, 32, 8, 8, 8), (2, 3, 8, 32, 32), (2, 4, 16, 8), (2, 32, 32), (2, 256, 32), (2, 3, 224, 224), (2, 2048), (2, 1, 2048), (32,)]


def inputs(module):
    """Arguments that a module might take, by the names of its parameters."""
    names = []
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if not names and parameter.kind is parameter.VAR_POSITIONAL:
                return
            continue
        if parameter.default is parameter.empty:
            names.append(name)

    def other(name, like):
        match name:
            case "t" | "time" | "times" | "timesteps" | "timestep" | "temb" if like.dim() != 2:
                return torch.rand(like.shape[0]) * 10
            case "mask" | "attn_mask" | "attention_mask" | "key_padding_mask":
                return torch.ones(like.shape[:2], dtype=torch.bool)
            case "target" | "labels" | "label":
                return torch.randint(0, 5, like.shape[:1])
            case "edge_index":
                return torch.randint(0, like.shape[0], (2, 40))
            case "batch" | "index":
                return torch.arange(like.shape[0]) // 4
            case _:
                return torch.randn(like.shape)

    for shape in shapes():
        torch.manual_seed(1)
        first = torch.randn(shape)
        yield {name: first if k == 0 else other(name, first) for k, name in enumerate(names)}
    yield {name: torch.randint(0, 30, (2, 16)) for name in names}
    if len(names) > 1:
        nodes = torch.randn(16, 32)
        yield {name: nodes if k == 0 else other(name, nodes) for k, name in enumerate(names)}


def built(make):
    """A module and arguments that eager mode takes; nothing where there are none."""
    seed_everything(0)
    module = make()
    if module is None or sum(parameter.numel() for parameter in module.parameters()) > LARGEST:
        return None
    module.eval()
    for given in inputs(module):
        with contextlib.suppress(Exception), torch.no_grad():
            # Called twice: some change what they take by their first call.
            module(**given)
            found = list(sweep.tensors(module(**given)))
            if found and all(torch.isfinite(each).all() for each in found if each.is_floating_point()):
                return module, given
    return None


def check(make):
    """What came of a module, mode by mode, and whether it differs, and breaks more often than Dynamo; nothing where it cannot be built."""
    try:
        module, given = built(make)
    except Exception:
        return None
    said, differing, breaks = [], False, 0
    for mode in ("eval", "train"):
        module.train(mode == "train")
        if module.training:
            # Where nothing is to be learned there are gradients all the same.
            given = {name: each.detach().clone().requires_grad_(each.is_floating_point()) for name, each in given.items()}
        try:
            model = copy.deepcopy(module)
            sweep.observed(model, model, given, 0)
        except Exception as error:
            said.append(f"{mode}: eager raises {type(error).__name__}")
            continue
        try:
            differs, _ = sweep.compared(copy.deepcopy(module), given)
            with torch.set_grad_enabled(module.training):
                explained = pyrite.explain(copy.deepcopy(module))(**given)
            graphs = f"{explained.graph_count} graphs"
            if explained.graph_break_count:
                theirs = by_dynamo(module, given)
                breaks += isinstance(theirs, int) and explained.graph_count > theirs
                graphs += f" (Dynamo {theirs}; {explained.break_reasons[0].reason[:150]})"
        except Exception as error:
            differs, graphs = f"{type(error).__name__}: {error}"[:200], "-"
        differing |= differs is not None
        said.append(f"{mode}: {graphs}" + (f", DIFFERS: {differs}" if differs else ""))
    return ", ".join(said), differing, breaks


def classes(package):
    """The modules' classes of a package and of what lies below it, by their names."""
    found = {}

    def visit(name):
        try:
            module = importlib.import_module(name)
        except BaseException:
            # It needs what is not installed.
            return
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, torch.nn.Module) and each.__module__ == name and not inspect.isabstract(each):
                found[f"{name}.{each.__qualname__}"] = each
        for _, below, _ in pkgutil.iter_modules(getattr(module, "__path__", [])):
            if below not in ("tests", "test", "scripts", "__main__"):
                visit(f"{name}.{below}")

    visit(package)
    return found


def makers(packages, timm_models):
    """How each module is made, by its name."""
    for package in packages:
        for name, cls in classes(package).items():
            with contextlib.suppress(ValueError, TypeError):
                if (arguments := arguments_of(cls)) is not None:
                    yield name, lambda cls=cls, arguments=arguments: cls(**arguments)
    if timm_models:
        import timm

        for _, family in itertools.groupby(timm.list_models(), lambda name: name.split("_")[0]):
            for name in list(family)[:timm_models]:
                yield f"timm {name}", lambda name=name: timm.create_model(name, pretrained=False, num_classes=5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="*", help="packages, or modules of packages, that are installed")
    parser.add_argument("--timm", type=int, metavar="N", help="so many models of every family of timm, too")
    parser.add_argument("--only", help="only modules whose name has this text")
    parser.add_argument("--part", default="1/1", help="only one part of the modules, such as 2/4")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds per module")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.environ["HF_HUB_OFFLINE"] = "1"
    isolation.prepare()
    part, parts = map(int, options.part.split("/"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = [each for each in makers(options.package, options.timm) if not options.only or options.only in each[0]]
    tried, wrong, breaking = 0, 0, 0
    for name, make in found[part - 1 :: parts]:

        def work(make=make):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return check(make) or ("", None, 0)

        answer, death = isolation.in_a_fork(work, options.time_limit)
        said, differing, breaks = answer or (death, True, 0)
        if differing is None:
            continue
        tried += 1
        wrong += differing
        breaking += bool(breaks)
        print(f"{name}  {said}", flush=True)
    print(f"{tried} modules: {tried - wrong} as in eager, {wrong} not; {breaking} break more often than by TorchDynamo")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
