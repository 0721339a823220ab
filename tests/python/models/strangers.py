"""Every architecture of transformers that can be built small, through `pyrite.compile`: `python -m models.strangers --help`.

Nobody chose these models: each configuration class is taken as it is, its sizes are made small, and inputs are tried until eager mode takes
some. Outputs, gradients, buffers and the state of the random generator must be eager's, as `sweep.py` compares them, without gradients and in
training mode. Where an architecture breaks into several graphs, TorchDynamo is asked how many it makes. Each runs in a process of its own. The
exit code is 1 when one differs.
"""

import argparse
import contextlib
import copy
import io
import logging
import os
import sys
import warnings

import cpu  # noqa: F401  (before torch)

import pyrite
import torch

from capture import isolation
from capture.cases import seed_everything
from models import sweep

# What sizes are made, where a configuration has them.
SMALL = {
    16: "hidden_size d_model n_embd dim embed_dim embedding_size projection_dim word_embed_proj_dim moe_intermediate_size shared_expert_intermediate_size",
    32: "hidden_dim intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner image_size",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers num_encoder_layers "
    "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads num_experts_per_tok type_vocab_size num_conv_pos_embedding_groups",
    1: "num_key_value_heads n_group topk_group decoder_start_token_id first_k_dense_replace",
    8: "head_dim d_kv kv_channels patch_size q_lora_rank kv_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim num_conv_pos_embeddings hidden_size_per_layer_input",
    4: "num_local_experts num_experts n_routed_experts state_size conv_kernel time_step_rank sliding_window",
    60: "vocab_size vocab_size_per_layer_input",
    64: "max_position_embeddings n_positions n_ctx max_target_positions",
}
SIZES = {name: size for size, names in SMALL.items() for name in names.split()} | {"max_source_positions": 50, "num_mel_bins": 16, "max_length": 20}
# Sizes of stages, one after the other.
STAGES = {"hidden_sizes": 16, "embed_dims": 16, "encoder_hidden_sizes": 16, "decoder_hidden_sizes": 16, "depths": 1}
LARGEST = 30_000_000

# Models that do something else where they are told that they are compiled, by whatever compiler.
OTHERWISE = {"paligemma": "masks nothing where it is compiled, by TorchDynamo as well"}


def shrunk(config):
    """A configuration whose sizes are small."""
    for key, value in list(vars(config).items()):
        if isinstance(value, type(config).__mro__[-2]) or hasattr(value, "model_type"):
            shrunk(value)
        elif key in SIZES and type(value) is int:
            with contextlib.suppress(Exception):
                setattr(config, key, min(value, SIZES[key]) if value > 0 else SIZES[key])
        elif key.endswith("_token_id") and type(value) is int and value >= SIZES["vocab_size"]:
            setattr(config, key, 1)
        elif key == "layer_types" and isinstance(value, list):
            setattr(config, key, list(dict.fromkeys(value))[:2] if len(set(value)) > 1 else value[:2])
        elif key in STAGES and isinstance(value, list):
            setattr(config, key, [STAGES[key]] * len(value))
    return config


def inputs(model, config):
    """Arguments that a model might take, the likeliest first."""
    torch.manual_seed(1)
    size = getattr(config, "image_size", None) or getattr(getattr(config, "vision_config", None), "image_size", None) or 32
    size = size[0] if isinstance(size, (list, tuple)) else size
    channels, bins = getattr(config, "num_channels", 3) or 3, getattr(config, "num_mel_bins", 16) or 16

    def words():
        return torch.randint(3, 50, (2, 7))

    def pictures(size):
        return torch.randn(2, channels, size, size)

    match model.main_input_name:
        case "pixel_values":
            yield {"pixel_values": pictures(size)}
            yield {"pixel_values": pictures(64)}
            yield {"pixel_values": pictures(224)}
            yield {"pixel_values": pictures(size), "input_ids": words()}
            yield {"pixel_values": torch.randn(2, 4, channels, size, size)}
        case "input_values":
            yield {"input_values": torch.randn(2, 2000)}
            yield {"input_values": torch.randn(2, bins, 100)}
        case "input_features":
            yield {"input_features": torch.randn(2, bins, 100)}
            yield {"input_features": torch.randn(2, 100, bins)}
            yield {"input_features": torch.randn(2, bins, 100), "decoder_input_ids": words()}
        case name:
            yield {name: words()}
            yield {name: words(), "attention_mask": torch.ones(2, 7, dtype=torch.long)}
            yield {name: words(), "decoder_input_ids": words()}
            yield {name: words(), "pixel_values": pictures(size)}


def built(kind, built_by):
    """A small model and arguments that eager mode takes; nothing where there are none."""
    from transformers import CONFIG_MAPPING

    config = shrunk(CONFIG_MAPPING[kind]())
    with torch.device("meta"):
        if sum(parameter.numel() for parameter in built_by(copy.deepcopy(config)).parameters()) > LARGEST:
            return None
    seed_everything(0)
    model = built_by(config).eval()
    for given in inputs(model, config):
        with contextlib.suppress(Exception), torch.no_grad():
            found = list(sweep.tensors(model(**given)))
            if found and all(torch.isfinite(each).all() for each in found if each.is_floating_point()):
                return model, given
    return None


def check(kind, built_by):
    """What came of an architecture, mode by mode, and whether it differs; nothing where it cannot be built."""
    try:
        model, given = built(kind, built_by)
    except Exception:
        return None
    said, differing = [], False
    for mode in ("eval", "train"):
        model.train(mode == "train")
        try:
            sweep.observed(copy.deepcopy(model), copy.deepcopy(model), given, 0)
        except Exception as error:
            said.append(f"{mode}: eager raises {type(error).__name__}")
            continue
        try:
            differs, _ = sweep.compared(copy.deepcopy(model), given)
            explained = pyrite.explain(copy.deepcopy(model))(**given)
            graphs = f"{explained.graph_count} graphs" + (f" (Dynamo {by_dynamo(model, given)})" if explained.graph_break_count else "")
        except Exception as error:
            differs, graphs = f"{type(error).__name__}: {error}"[:200], "-"
        differing |= differs is not None
        said.append(f"{mode}: {graphs}" + (f", {differs}" if differs else ""))
    return ", ".join(said), differing


def by_dynamo(model, given):
    torch._dynamo.reset()
    try:
        return torch._dynamo.explain(copy.deepcopy(model))(**given).graph_count
    except Exception as error:
        return type(error).__name__


def architectures():
    """Names of configurations, and the class of models of each."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto

    for kind in sorted(CONFIG_MAPPING.keys()):
        try:
            found = modeling_auto.MODEL_MAPPING[CONFIG_MAPPING[kind]]
        except Exception:
            # It needs a package that is not there, or has no model.
            continue
        yield kind, found[0] if isinstance(found, (tuple, list)) else found


def main():
    parser = argparse.ArgumentParser(description="Compare every architecture of transformers that can be built small with torch eager.")
    parser.add_argument("--only", help="only these, by name, separated by commas")
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds per architecture")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.environ["HF_HUB_OFFLINE"] = "1"
    isolation.prepare()
    wanted = options.only and options.only.split(",")
    tried, wrong = 0, 0
    for kind, built_by in architectures():
        if wanted and kind not in wanted:
            continue

        def work(kind=kind, built_by=built_by):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return check(kind, built_by) or ("", None)

        found, death = isolation.in_a_fork(work, options.time_limit)
        said, differing = found or (death, True)
        if differing is None:
            continue
        tried += 1
        if differing and kind not in OTHERWISE:
            wrong += 1
        print(f"{kind:<28} {said}", flush=True)
    print(f"{tried} architectures: {tried - wrong} as in eager, {wrong} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
