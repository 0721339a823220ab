"""Cases and programs that Pyrite is known to get wrong, each with the reason. A fixed one is taken out of here."""

CASES = {
    "tensor_subclasses.subclass_made_while_nothing_is_recorded": "a subclass of a view that torch makes in no_grad() is a leaf, and still says that it requires a gradient",
}

# What Pyrite's own programs get wrong, beside the cases above.
NATIVE = {
    "tensors.complex_tensors": "the conjugate of a complex tensor is a view in torch, and a tensor of its own in a compiled program",
}

PROGRAMS = {}
