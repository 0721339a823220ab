"""torch.compile rebuilt in Rust: every stage can be stopped, dumped, replayed, compared and shrunk."""

import torch  # noqa: F401  (loads the libraries that the extension module looks into)

from pyrite._native import Graph, Node, __version__

__all__ = ["Graph", "Node", "__version__"]
