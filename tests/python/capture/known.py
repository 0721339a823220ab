"""Cases and programs that Pyrite is known to get wrong, each with the reason. A fixed one is taken out of here."""

ITSELF = "an operator without effect gives a new tensor where torch gives the input itself, or the other way round"
OFFSET = "a view that is returned has lost its offset into the memory of its base"
AGAIN = "a second call with fresh inputs of the same kind compiles again"

CASES = {
    "breaks.unknown_c_function": AGAIN,
    "containers.deque_of_the_caller": AGAIN,
    "containers.dict_union_and_comparison": "the keys of a dict are no set",
    "contexts.device_context": AGAIN,
    "dynamic.rank_that_changes": ITSELF,
    "globals_.setattr_and_delattr": "an attribute that is set and deleted is deleted without having been set",
    "modules.dropout_in_both_modes": ITSELF,
    "tensors.autograd_grad_inside": "a gradient taken with create_graph requires no gradient",
    "tensors.complex_tensors": OFFSET,
    "tensors.dropout": ITSELF,
    "tensors.meshgrid_and_broadcast": ITSELF,
    "tensors.parameter_made_outside_is_detached": "requires_grad_ on a detached tensor of the frame raises",
    "tensors.views_of_an_output": OFFSET,
}

PROGRAMS = {
    "destructor_that_runs_compiled_code": "an object that the frame alone knows is never made, so its destructor does not run",
    "tensor_subclasses": "a subclass of Tensor with __torch_function__ is not left alone",
    "objects_that_lie": "isinstance does not ask the property __class__",
}
