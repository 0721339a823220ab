"""Cases and programs that Pyrite is known to get wrong, each with the reason. A fixed one is taken out of here."""

CASES = {}

# What Pyrite's own programs get wrong, beside the cases above.
ITSELF = "an operator without effect gives a new tensor where torch gives the input itself, or the other way round"
OFFSET = "a view that is returned has lost its offset into the memory of its base"

NATIVE = {
    "tensors.autograd_grad_inside": "a gradient taken with create_graph requires no gradient",
    "tensors.complex_tensors": OFFSET,
    "tensors.meshgrid_and_broadcast": ITSELF,
    "tensors.views_of_an_output": OFFSET,
}

PROGRAMS = {}
