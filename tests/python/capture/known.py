"""Cases and programs that Pyrite is known to get wrong, each with the reason. A fixed one is taken out of here."""

CASES = {}

# What Pyrite's own programs get wrong, beside the cases above.
NATIVE = {
    "tensors.complex_tensors": "the conjugate of a complex tensor is a view in torch, and a tensor of its own in a compiled program",
}

PROGRAMS = {}
