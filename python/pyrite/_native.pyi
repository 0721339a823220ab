"""The Rust half of the package."""

__version__: str

class Node:
    """A node of a graph: what FX calls its name, op and target."""

    name: str
    op: str
    target: str

class Graph:
    """A graph of tensor operators. Its text is Python that PyTorch runs too."""

    @staticmethod
    def from_text(text: str) -> Graph:
        """Reads a graph from its text: Pyrite's, or what FX prints."""

    code: str
    nodes: list[Node]
    op_count: int

    def print_readable(self) -> str:
        """The text with the type, shape and strides of every value, and the user's stacks."""
