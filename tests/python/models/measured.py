"""The five models that Pyrite is measured with: small configurations, random weights from seed 0, nothing downloaded.

`MODELS` maps a name to a function that returns `(module, inputs)`. Modules are in training mode, because the backward pass is wanted too,
but have no dropout, so that two runs agree. A model returns a tensor or a tuple of tensors.
"""

import torch


class Outputs(torch.nn.Module):
    """A transformers model that returns plain tensors instead of a dataclass."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False, return_dict=False)[0]


def mlp():
    blocks = []
    for _ in range(20):
        blocks += [torch.nn.Linear(256, 256), torch.nn.LayerNorm(256), torch.nn.GELU()]
    return torch.nn.Sequential(*blocks), (torch.randn(64, 256),)


def resnet18():
    from torchvision.models import resnet18 as build

    return build(weights=None), (torch.randn(4, 3, 128, 128),)


def vit():
    from torchvision.models import VisionTransformer

    model = VisionTransformer(image_size=128, patch_size=16, num_layers=6, num_heads=4, hidden_dim=128, mlp_dim=512)
    # torchvision starts the head at zero, which would make every output zero and hide mistakes before it.
    torch.nn.init.normal_(model.heads.head.weight, std=0.05)
    return model, (torch.randn(4, 3, 128, 128),)


def bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=1000,
        hidden_size=256,
        num_hidden_layers=6,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=128,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return Outputs(BertModel(config)), (torch.randint(0, 1000, (4, 64)),)


def gpt2():
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        vocab_size=1000,
        n_positions=128,
        n_embd=256,
        n_layer=6,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return Outputs(GPT2Model(config)), (torch.randint(0, 1000, (4, 64)),)


MODELS = {"mlp": mlp, "resnet18": resnet18, "vit": vit, "bert": bert, "gpt2": gpt2}


def build(name):
    """The model and its inputs, the same at every call."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    return model.train(), inputs
