"""What layers of torch.nn become in a captured region: programs that Pyrite reads, with numbers as constants and as values of a run."""

import pytest
import torch
import torch.nn as nn

from pyrite._watch import not_of_torch
from pyrite.fx import Imported

# A layer, and the sizes of what it is called with.
LAYERS = {
    "dropout": (lambda: nn.Dropout(0.3), (4, 8)),
    "dropout1d": (lambda: nn.Dropout1d(0.3), (4, 3, 8)),
    "dropout2d": (lambda: nn.Dropout2d(0.3), (4, 3, 8, 8)),
    "alpha_dropout": (lambda: nn.AlphaDropout(0.3), (4, 8)),
    "leaky_relu": (lambda: nn.LeakyReLU(0.3), (4, 8)),
    "elu": (lambda: nn.ELU(0.7), (4, 8)),
    "celu": (lambda: nn.CELU(0.7), (4, 8)),
    "hardtanh": (lambda: nn.Hardtanh(-0.5, 0.5), (4, 8)),
    "hardshrink": (lambda: nn.Hardshrink(0.3), (4, 8)),
    "softshrink": (lambda: nn.Softshrink(0.3), (4, 8)),
    "softplus": (lambda: nn.Softplus(0.7, 3.0), (4, 8)),
    "threshold": (lambda: nn.Threshold(0.1, 0.3), (4, 8)),
    "rrelu": (lambda: nn.RReLU(0.1, 0.3), (4, 8)),
    "layer_norm": (lambda: nn.LayerNorm(8, eps=1e-3), (4, 8)),
    "rms_norm": (lambda: nn.RMSNorm(8, eps=1e-3), (4, 8)),
    "group_norm": (lambda: nn.GroupNorm(2, 4, eps=1e-3), (2, 4, 8)),
    "batch_norm": (lambda: nn.BatchNorm1d(8, momentum=0.3), (4, 8)),
    "instance_norm": (lambda: nn.InstanceNorm1d(8, affine=True, track_running_stats=True), (4, 8, 5)),
    "local_response_norm": (lambda: nn.LocalResponseNorm(2, alpha=0.1, k=1.5), (2, 4, 8)),
    "cosine_similarity": (lambda: nn.CosineSimilarity(eps=0.1), (4, 8), (4, 8)),
    "pairwise_distance": (lambda: nn.PairwiseDistance(2.0, eps=0.1), (4, 8), (4, 8)),
    "huber_loss": (lambda: nn.HuberLoss(delta=0.3), (4, 8), (4, 8)),
    "smooth_l1_loss": (lambda: nn.SmoothL1Loss(beta=0.3), (4, 8), (4, 8)),
    "triplet_margin_loss": (lambda: nn.TripletMarginLoss(0.3), (4, 8), (4, 8), (4, 8)),
    "upsample": (lambda: nn.Upsample(scale_factor=1.5), (2, 3, 8)),
    "lp_pool": (lambda: nn.LPPool1d(2.0, 2), (2, 3, 8)),
    "attention": (lambda: nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True), (2, 5, 8), (2, 5, 8), (2, 5, 8)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.3, batch_first=True), (2, 5, 8)),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_read_with_numbers_as_constants_and_as_values(layer, dynamic):
    make, *sizes = LAYERS[layer]
    read = []

    def backend(module, example_inputs):
        read.append(Imported(module, example_inputs).graph.opaque_ops)
        return module.forward

    torch._dynamo.reset()
    torch.compile(make(), backend=backend, dynamic=dynamic)(*[torch.randn(*each) for each in sizes])
    assert read and not [name for operators in read for name in not_of_torch(operators)]
