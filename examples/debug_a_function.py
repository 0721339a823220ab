"""The debugger as a library: from a call that fails to the smallest program that does, as data.

python examples/debug_a_function.py [BACKEND]; without a backend, one that is wrong about relu on purpose.
"""

import sys
import tempfile

import pyrite
import torch


def model(x, w):
    hidden = torch.relu(torch.cos(torch.sin(x) @ w))
    return torch.sigmoid(hidden).sum(-1)


backend = sys.argv[1] if len(sys.argv) > 1 else "relu_accuracy_error_TESTING_ONLY"
with tempfile.TemporaryDirectory() as folder, pyrite.config.patch(debug_dir=f"{folder}/regions"):
    found = pyrite.debug.session(model, args=(torch.randn(4, 6), torch.randn(6, 6)), backend=backend, out=f"{folder}/found")
    print(repr(found))
    print(found)

# What `pyrite compare` does with files: everything counts, not only tensors.
comparison = pyrite.debug.same({"loss": 1.0, "step": 3}, {"loss": 1.0, "step": 4})
print(comparison)
