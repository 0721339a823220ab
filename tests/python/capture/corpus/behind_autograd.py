"""Writes that autograd does not see: parameters under no_grad, `x.data`, parameters that are made, and statistics of norms."""

import torch
from capture.cases import case, t
from torch import nn


def parameter(*shape):
    return nn.Parameter(torch.ones(*shape))


@case(lambda: (parameter(3), t(3)))
def a_parameter_written_and_used(p, x):
    with torch.no_grad():
        p.mul_(0.5)
    return p * x


@case(lambda: (parameter(3), t(3)))
def a_parameter_used_and_written(p, x):
    y = p * x
    with torch.no_grad():
        p.add_(1)
    return y + p


@case(lambda: (parameter(3), t(3)))
def a_parameter_saved_and_written(p, x):
    y = p * p
    with torch.no_grad():
        p.copy_(x)
    return y


@case(lambda: (parameter(3), t(3)))
def a_parameter_written_twice(p, x):
    with torch.no_grad():
        p.copy_(x)
    y = (p * p).sum()
    with torch.no_grad():
        p.zero_()
    return y * 1, p * 2


@case(lambda: (parameter(3, 4), t(4)))
def a_row_of_a_parameter_written(p, x):
    with torch.no_grad():
        p[1] = x
    return (p * x).sum(0)


@case(lambda: (t(3, grad=True),))
def a_result_written_under_no_grad(x):
    y = x * 2
    with torch.no_grad():
        y.clamp_(max=0.5)
    return y * 3


@case(lambda: (t(3, grad=True), t(3)))
def whether_a_written_result_requires_a_gradient(x, y):
    z = x * 2
    with torch.no_grad():
        z.add_(y)
    return z.requires_grad, z.detach().requires_grad, z * 1


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def weights_normalized_before_their_use(layer, x):
    with torch.no_grad():
        layer.weight.div_(layer.weight.norm(dim=1, keepdim=True))
    return layer(x)


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def weights_initialised_before_their_use(layer, x):
    nn.init.constant_(layer.weight, 0.5)
    nn.init.zeros_(layer.bias)
    return layer(x)


@case(lambda: (t(3), t(3)))
def data_set(x, y):
    x.data = y
    return x + 1


@case(lambda: (t(3, grad=True), t(3)))
def data_of_a_leaf_set(x, y):
    x.data = y * 2
    return (x * x).sum()


@case(lambda: (t(3, grad=True),))
def data_set_after_a_use(x):
    y = x * 2
    x.data = x.data + 1
    return y + x


@case(lambda: (t(3),))
def data_of_a_result_set(x):
    z = torch.zeros(3)
    z.data = x * 2
    return z + 1


@case(lambda: (t(3, grad=True), t(5)))
def data_of_another_shape_set(x, y):
    x.data = y
    return x + 1, x.shape


@case(lambda: (t(3, grad=True),))
def data_written_in_place(x):
    x.data.mul_(2)
    return (x * x).sum()


@case(lambda: (t(3, grad=True),))
def data_written_after_a_use(x):
    y = x * x
    x.data.mul_(2)
    return y + x


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def data_of_a_weight_filled(layer, x):
    layer.weight.data.fill_(0.5)
    return layer(x)


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def data_of_a_weight_set(layer, x):
    layer.weight.data = layer.weight.data * 2
    return layer(x)


@case(lambda: ([parameter(3), parameter(2)],))
def data_of_several_parameters_written(parameters):
    for p in parameters:
        p.data.add_(torch.ones_like(p), alpha=-0.1)
    return [p * 2 for p in parameters]


@case(lambda: (t(3),))
def a_parameter_made(x):
    p = nn.Parameter(x)
    return p * 2, p.requires_grad, p.is_leaf, isinstance(p, nn.Parameter)


@case(lambda: (t(3),))
def a_parameter_without_gradient_made(x):
    p = nn.Parameter(x * 2, requires_grad=False)
    return p.requires_grad, p + 1


@case(lambda: (nn.Module(), t(3)))
def a_parameter_made_and_registered(m, x):
    m.register_parameter("w", nn.Parameter(x))
    return m.w * 2


@case(lambda: (nn.ParameterList([torch.ones(3)]), t(3)))
def a_parameter_appended_to_a_list(parameters, x):
    parameters.append(nn.Parameter(x))
    return parameters[1] * 2, len(parameters)


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def a_weight_replaced(layer, x):
    layer.weight = nn.Parameter(torch.ones(3, 3))
    return layer(x)


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def a_state_loaded(layer, x):
    layer.load_state_dict({name: value * 2 for name, value in layer.state_dict().items()})
    return layer(x)


@case(lambda: (t(2, 3),))
def a_layer_made_inside(x):
    return nn.Linear(3, 3)(x)


@case(lambda: (t(3, grad=True),))
def leaves_have_no_function(x):
    return x.grad_fn is None, x.detach().grad_fn is None, x * 2


@case(lambda: (nn.BatchNorm1d(3), t(4, 3)))
def statistics_of_a_norm_whose_result_is_not_used(norm, x):
    norm(x)
    return x + 1


@case(lambda: (nn.BatchNorm1d(3), t(4, 3)))
def the_shape_of_a_norm_in_training(norm, x):
    return norm(x).shape, norm.num_batches_tracked + 0


@case(lambda: (nn.InstanceNorm1d(3, track_running_stats=True), t(4, 3, 5)))
def statistics_of_an_instance_norm(norm, x):
    norm(x)
    return x * 2
