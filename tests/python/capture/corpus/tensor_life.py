"""Tensors whose state is looked at and changed: gradients, versions, data, modes, leaves."""

import torch
from capture.cases import Message, case, t
from torch import nn


@case(lambda: (t(3),))
def gradients_asked_for(x):
    y = x.clone().requires_grad_()
    return y * 2, y.requires_grad, y.is_leaf


@case(lambda: (t(3),))
def gradients_asked_for_an_argument(x):
    x.requires_grad_(True)
    return x * 2


@case(lambda: (t(3, grad=True),))
def gradients_no_longer_asked_for(x):
    y = x.detach().requires_grad_(False)
    return y * 2, y.requires_grad


@case(lambda: (t(3),))
def the_attribute_set(x):
    y = x + 1
    y.requires_grad = True
    return y * 2


@case(lambda: (t(3), t(3)))
def data_replaced(x, y):
    x.data = y
    return x + 1


@case(lambda: (t(3), t(3)))
def data_of_a_new_tensor_replaced(x, y):
    z = x + 1
    z.data = y * 2
    return z * 3


@case(lambda: (t(3, grad=True),))
def data_read(x):
    return x.data * 2, (x.data + x).sum()


@case(lambda: (nn.Parameter(torch.ones(3)), t(3)))
def data_of_a_parameter_changed(p, x):
    p.data.mul_(2)
    return p * x


@case(lambda: (nn.Parameter(torch.ones(3)), t(3)))
def a_parameter_changed_without_gradients(p, x):
    with torch.no_grad():
        p.add_(x, alpha=-0.1)
    return p * x


@case(lambda: (nn.Parameter(torch.ones(3)), t(3)))
def a_parameter_copied_into(p, x):
    with torch.no_grad():
        p.copy_(x)
        p[0] = 1
        p.zero_()
        p += 1
    return p * 2


@case(lambda: (t(3),))
def versions(x):
    before = x._version
    x.add_(1)
    return x * 2, x._version - before


@case(lambda: (t(3),))
def the_version_of_a_new_tensor(x):
    y = x + 1
    before = y._version
    y.mul_(2)
    y[0] = 1
    return y, before, y._version


@case(lambda: (t(3),))
def in_inference_mode(x):
    with torch.inference_mode():
        y = x * 2
    return y + 0, y.is_inference()


@case(lambda: (t(3, grad=True),))
def in_inference_mode_with_gradients(x):
    with torch.inference_mode():
        y = x * 2
        inside = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return x + 1, inside, y.requires_grad


@case(lambda: (t(3, grad=True),))
def inference_mode_switched_off(x):
    with torch.inference_mode(False):
        y = x * 2
    return y + 1


@torch.inference_mode()
def inferred(x):
    return x.sin()


@case(lambda: (t(3),))
def a_function_in_inference_mode(x):
    return inferred(x) * 1


@case(lambda: (t(3, grad=True),))
def gradients_by_hand(x):
    (g,) = torch.autograd.grad((x * x).sum(), x)
    return g * 2


@case(lambda: (t(3, grad=True),))
def gradients_of_gradients(x):
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return g


@case(lambda: (t(3, grad=True),))
def backward_inside(x):
    (x * 2).sum().backward()
    return x.grad + 1


@case(lambda: (t(3, grad=True),))
def the_gradient_set_to_nothing(x):
    x.grad = None
    return x * 2, x.grad is None


@case(lambda: (t(3, grad=True), t(3)))
def the_gradient_set(x, g):
    x.grad = g * 2
    return x + x.grad


@case(lambda: (t(3),))
def hooks_on_a_new_tensor(x):
    y = x.clone().requires_grad_()
    y.register_hook(lambda g: g * 2)
    return y * 3


@case(lambda: (t(3, grad=True),))
def a_hook_on_a_result(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y.sum()


@case(lambda: (t(2, 3),))
def attributes_of_tensors(x):
    return x.T + x.mT, x.ndim, x.itemsize, x.nbytes, x.device.type, x.layout, x.is_cuda, x.is_sparse, x.dtype.itemsize, x.names


@case(lambda: (t(2, 3),))
def sizes_asked(x):
    return x.size(), x.size(0), x.size(dim=1), x.stride(), x.stride(0), x.storage_offset(), x.is_contiguous(), x.dim(), x.numel(), len(x)


@case(lambda: (t(3),))
def an_attribute_of_its_own(x):
    x.mark = 3
    y = x + x.mark
    y.mark = "y"
    return y, hasattr(x, "mark"), getattr(y, "other", 1)


@case(lambda: (t(3),))
def types_of_tensors(x):
    return x.type(torch.float64), x.type(), x.type("torch.IntTensor"), isinstance(x, torch.FloatTensor), x.to(x), x.double().type_as(x)


@case(lambda: (t(3),))
def made_of_another(x):
    return x.new_zeros(2), x.new_ones((2,)), x.new_full((2,), 3), x.new_empty(2).fill_(1), x.new_tensor([1.0, 2.0])


@case(lambda: (t(3),), message=Message.ANY)
def a_wrong_shape_caught(x):
    try:
        return x + torch.ones(4)
    except RuntimeError:
        return x + 1


@case(lambda: (t(3, 4),), message=Message.ANY)
def a_wrong_view_caught(x):
    try:
        return x.view(5, 5)
    except RuntimeError as error:
        return x * 2, type(error).__name__


@case(lambda: (t(3),), message=Message.ANY)
def a_wrong_dimension_raised(x):
    return x.sum(dim=3)


@case(lambda: (t(3),), message=Message.ANY)
def a_wrong_index_caught(x):
    try:
        return x[5]
    except IndexError:
        return x[0]


@case(lambda: (t(4), torch.tensor(2)))
def picked_by_a_tensor(x, i):
    return x[i] + 1


@case(lambda: (t(4, 2), torch.tensor(2)))
def picked_by_a_tensor_and_returned(x, i):
    return x[i]


@case(lambda: (t(4), torch.tensor(2)))
def written_where_a_tensor_says(x, i):
    x[i] = 5
    return x * 2


@case(lambda: (t(3),))
def out_arguments(x):
    y = torch.empty(3)
    torch.add(x, 1, out=y)
    return y * 2


@case(lambda: (t(3), torch.empty(3)))
def an_out_argument_given(x, y):
    torch.mul(x, 2, out=y)
    return y + 1


@case(lambda: (t(3),))
def swapped_dtypes(x):
    with torch.no_grad():
        return x.half().float(), x.to(torch.int32), x.bool(), x.long() % 2, x.to("cpu"), x.cpu()


@case(lambda: (t(3, grad=True),))
def leaves(x):
    y = x * 2
    return y, x.is_leaf, y.is_leaf, x.requires_grad, y.grad_fn is None, x.grad_fn is None


@case(lambda: (t(3),))
def storages_shared(x):
    y = x.view(3, 1)
    y.add_(1)
    z = x[1:]
    z.mul_(2)
    return x * 1, y, z


@case(lambda: (t(3),))
def set_grad_enabled_as_a_function(x):
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y, torch.is_grad_enabled()
