"""Public architectures of transformers and torchvision in small configurations: random weights, nothing downloaded.

`ARCHITECTURES` maps a name to a function that returns `(module, arguments)`, the arguments by name. It is the same at every call that follows
the same seed. Dropout and stochastic depth are what the libraries set, so that a compiler has to draw eager's numbers.
"""

import functools

import torch

from models.small_models import SMALL

TINY = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
LAYERS = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def words():
    return torch.randint(3, 50, (2, 7))


def pictures(size):
    return torch.randn(2, 3, size, size)


def transformer(model, inputs, **options):
    """A model class of transformers in the configuration that the options make."""
    import transformers

    built = getattr(transformers, model)
    return built(built.config_class(**options)), {name: make() for name, make in inputs.items()}


def vision(model, size, **options):
    import torchvision

    return getattr(torchvision.models, model)(weights=None, **options), {"x": pictures(size)}


READING = {"input_ids": words}


def looking(size):
    return {"pixel_values": functools.partial(pictures, size)}


TRANSFORMERS = {
    "albert": ("AlbertModel", READING, {**LAYERS, "vocab_size": 60, "embedding_size": 8, "intermediate_size": 32}),
    "bart": (
        "BartModel",
        READING,
        {
            "vocab_size": 60,
            "d_model": 16,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "max_position_embeddings": 64,
        },
    ),
    "bloom": ("BloomForCausalLM", READING, {"vocab_size": 60, "hidden_size": 16, "n_layer": 2, "n_head": 2}),
    "clip": ("CLIPVisionModel", looking(32), {**LAYERS, "intermediate_size": 32, "image_size": 32, "patch_size": 8}),
    "deberta_v2": (
        "DebertaV2Model",
        READING,
        {**TINY, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]},
    ),
    "dinov2": ("Dinov2Model", looking(28), {**LAYERS, "image_size": 28, "patch_size": 14}),
    "distilbert": ("DistilBertModel", READING, {"vocab_size": 60, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    "electra": ("ElectraModel", READING, {**TINY, "embedding_size": 8}),
    "gemma": ("GemmaForCausalLM", READING, {**TINY, "num_key_value_heads": 1, "head_dim": 8}),
    "gpt_neox": ("GPTNeoXForCausalLM", READING, TINY),
    "levit": (
        "LevitModel",
        looking(64),
        {"image_size": 64, "hidden_sizes": [16, 24, 32], "num_attention_heads": [1, 2, 2], "depths": [1, 1, 1], "key_dim": [8, 8, 8]},
    ),
    "longformer": ("LongformerModel", READING, {**TINY, "attention_window": 4}),
    "mamba": ("MambaForCausalLM", READING, {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}),
    "mistral": ("MistralForCausalLM", READING, {**TINY, "num_key_value_heads": 1, "sliding_window": 4}),
    "mixtral": ("MixtralForCausalLM", READING, {**TINY, "num_key_value_heads": 1, "num_local_experts": 3, "num_experts_per_tok": 2}),
    "opt": (
        "OPTForCausalLM",
        READING,
        {**LAYERS, "vocab_size": 60, "ffn_dim": 32, "max_position_embeddings": 64, "word_embed_proj_dim": 16},
    ),
    "phi": ("PhiForCausalLM", READING, TINY),
    "qwen2": ("Qwen2ForCausalLM", READING, {**TINY, "num_key_value_heads": 1}),
    "roberta": ("RobertaForMaskedLM", READING, TINY),
    "segformer": (
        "SegformerModel",
        looking(32),
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [2, 1],
            "hidden_sizes": [8, 16],
            "num_attention_heads": [1, 2],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "mlp_ratios": [2, 2],
        },
    ),
    "t5": (
        "T5Model",
        {"input_ids": words, "decoder_input_ids": words},
        {"vocab_size": 60, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2},
    ),
    "wav2vec2": (
        "Wav2Vec2Model",
        {"input_values": lambda: torch.randn(2, 800)},
        {
            **LAYERS,
            "intermediate_size": 32,
            "conv_dim": (8, 8),
            "conv_kernel": (10, 3),
            "conv_stride": (5, 2),
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
        },
    ),
    "bert": ("BertModel", READING, TINY),
    "cohere": ("CohereForCausalLM", READING, {**TINY, "num_key_value_heads": 1}),
    "falcon": ("FalconForCausalLM", READING, {**LAYERS, "vocab_size": 60}),
    "gemma2": ("Gemma2ForCausalLM", READING, {**TINY, "num_key_value_heads": 1, "head_dim": 8, "sliding_window": 4}),
    "gpt2": ("GPT2LMHeadModel", READING, {"vocab_size": 60, "n_positions": 64, "n_embd": 16, "n_layer": 2, "n_head": 2}),
    "hubert": (
        "HubertModel",
        {"input_values": lambda: torch.randn(2, 800)},
        {**LAYERS, "intermediate_size": 32, "conv_dim": (8, 8), "conv_kernel": (10, 3), "conv_stride": (5, 2), "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2},
    ),
    "llama": ("LlamaForCausalLM", READING, {**TINY, "num_key_value_heads": 1}),
    "phi3": ("Phi3ForCausalLM", READING, {**TINY, "num_key_value_heads": 1, "pad_token_id": 0}),
    "qwen3": ("Qwen3ForCausalLM", READING, {**TINY, "num_key_value_heads": 1, "head_dim": 8}),
    "stablelm": ("StableLmForCausalLM", READING, {**TINY, "num_key_value_heads": 1}),
    "whisper": (
        "WhisperModel",
        {"input_features": lambda: torch.randn(2, 8, 40), "decoder_input_ids": words},
        {
            "vocab_size": 60,
            "d_model": 16,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "num_mel_bins": 8,
            "max_source_positions": 20,
            "max_target_positions": 20,
            "pad_token_id": 0,
        },
    ),
    "yolos": ("YolosModel", looking(32), {**LAYERS, "intermediate_size": 32, "image_size": [32, 32], "patch_size": 8, "num_detection_tokens": 4}),
    "xlnet": ("XLNetModel", READING, {"vocab_size": 60, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}),
}

# The side of a picture, and what the constructor is told.
TORCHVISION = {
    "alexnet": (80, {}),
    "convnext_tiny": (64, {}),
    "mobilenet_v3_small": (64, {}),
    "resnet18": (64, {}),
    "densenet121": (64, {}),
    "efficientnet_b0": (64, {}),
    # Their auxiliary classifiers take larger pictures. Smaller ones would be one pixel in the end, and a mean of two values turns any rounding
    # into something else.
    "googlenet": (64, {"aux_logits": False, "init_weights": False}),
    "inception_v3": (160, {"aux_logits": False, "init_weights": False}),
    "maxvit_t": (224, {}),
    "mnasnet0_5": (64, {}),
    "mobilenet_v2": (64, {}),
    "regnet_y_400mf": (64, {}),
    "resnext50_32x4d": (64, {}),
    "shufflenet_v2_x0_5": (64, {}),
    "squeezenet1_1": (64, {}),
    "swin_v2_t": (64, {}),
    "vgg11": (64, {}),
    "vit_b_32": (64, {"image_size": 64}),
    "wide_resnet50_2": (64, {}),
}

# The side of a picture, and the name of the argument that it is.
SEGMENTATION = {"deeplabv3_mobilenet_v3_large": (64, "x"), "lraspp_mobilenet_v3_large": (64, "input")}


def segmentation(model, size, argument):
    import torchvision

    return getattr(torchvision.models.segmentation, model)(weights=None, weights_backbone=None, num_classes=5), {argument: pictures(size)}


ARCHITECTURES = {
    **SMALL,
    **{name: functools.partial(segmentation, name, *given) for name, given in SEGMENTATION.items()},
    **{name: functools.partial(transformer, model, inputs, **options) for name, (model, inputs, options) in TRANSFORMERS.items()},
    **{name: functools.partial(vision, name, size, num_classes=10, **options) for name, (size, options) in TORCHVISION.items()},
}
