"""torch.func: vmap, grad, vjp, jvp, jacobians, functional_call, alone and inside of each other."""

import functools

import torch
from capture.cases import case, t


@case(lambda: (t(3, 4),), lambda: (t(5, 4),))
def vmap_of_a_lambda(x):
    return torch.func.vmap(lambda row: row.sin().sum())(x)


@case(lambda: (t(3, 4), t(3, 4)))
def vmap_of_two_inputs(x, y):
    return torch.vmap(torch.dot)(x, y)


@case(lambda: (t(3, 4), t(4)))
def vmap_with_in_dims(x, y):
    return torch.func.vmap(lambda a, b: a * b, in_dims=(0, None))(x, y)


@case(lambda: (t(3, 4), t(3, 4)))
def vmap_with_another_in_dim(x, y):
    return torch.func.vmap(lambda a, b: (a * b).sum(), in_dims=1)(x, y)


@case(lambda: (t(3, 4),))
def vmap_with_out_dims(x):
    return torch.func.vmap(lambda a: (a * 2, a.sum()), out_dims=(1, 0))(x)


@case(lambda: (t(3, 4), t(4)))
def vmap_with_a_free_tensor(x, y):
    def inner(row):
        return row * y

    return torch.func.vmap(inner)(x)


SCALE = torch.arange(4.0)


@case(lambda: (t(3, 4),))
def vmap_with_a_global_tensor(x):
    return torch.func.vmap(lambda row: row * SCALE)(x)


@case(lambda: (t(3, 4),))
def vmap_with_an_input_read_inside_first(x):
    return torch.func.vmap(lambda row: row + SCALE.sum())(x).sum() + SCALE


@case(lambda: ({"a": t(3, 4), "b": t(3)},))
def vmap_of_a_dict(inputs):
    return torch.func.vmap(lambda d: {"sum": d["a"].sum() + d["b"]})(inputs)


@case(lambda: (t(2, 3, 4),))
def nested_vmap(x):
    return torch.func.vmap(torch.func.vmap(lambda row: row.cos().sum()))(x)


@case(lambda: (t(3, 4),))
def vmap_of_a_partial(x):
    return torch.func.vmap(functools.partial(torch.sum, dim=-1))(x)


@case(lambda: (t(3, 4),))
def vmap_with_chunks(x):
    return torch.func.vmap(lambda row: row * 2, chunk_size=2)(x)


@case(lambda: (t(3, 4),))
def vmap_with_keywords(x):
    return torch.func.vmap(lambda row, scale=1.0: row * scale)(x)


@case(lambda: (t(3),))
def vmap_over_an_indexed_table(x):
    return torch.func.vmap(lambda i: SCALE[i])(torch.arange(3)) + x


@case(lambda: (t(3),))
def grad_of_a_sum(x):
    return torch.func.grad(lambda y: y.sin().sum())(x)


@case(lambda: (t(3), t(3)))
def grad_with_argnums(x, y):
    return torch.func.grad(lambda a, b: (a * b).sum(), argnums=1)(x, y)


@case(lambda: (t(3), t(3)))
def grad_with_two_argnums(x, y):
    return torch.func.grad(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(x, y)


@case(lambda: (t(3),))
def grad_with_aux(x):
    return torch.func.grad(lambda y: (y.sin().sum(), y.cos()), has_aux=True)(x)


@case(lambda: (t(3),))
def grad_and_value(x):
    return torch.func.grad_and_value(lambda y: y.sin().sum())(x)


@case(lambda: (t(()),))
def second_derivative(x):
    return torch.func.grad(torch.func.grad(torch.sin))(x)


@case(lambda: (t(3), t(3)))
def grad_with_a_free_tensor(x, y):
    return torch.func.grad(lambda a: (a * y).sum())(x)


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def grad_of_free_tensors_that_require_gradients(x, y):
    return torch.func.grad(lambda a: (a * a * y).sum())(x)


@case(lambda: (t(3), 2.5))
def grad_with_a_number(x, scale):
    def loss(y, k):
        return (y * y * k).sum()

    return torch.func.grad(loss)(x, scale)


@case(lambda: (t(3),))
def grad_of_a_dict_of_parameters(x):
    parameters = {"w": x, "b": x + 1}
    return torch.func.grad(lambda p: (p["w"] * p["b"]).sum())(parameters)


@case(lambda: (t(3, 4), t(3, 4)))
def gradients_per_sample(x, y):
    return torch.func.vmap(torch.func.grad(lambda a, b: ((a - b) ** 2).sum()))(x, y)


@case(lambda: (t(3),))
def grad_of_a_closure_over_a_list(x):
    scales = [2.0, 3.0]

    def inner(y):
        return sum((y * s).sum() for s in scales)

    return torch.func.grad(inner)(x)


@torch.func.grad
def decorated(x):
    return (x * x).sum()


@case(lambda: (t(3),))
def grad_as_a_decorator(x):
    return decorated(x)


@case(lambda: (t(3), t(3)))
def vjp_of_a_function(x, v):
    out, pull = torch.func.vjp(lambda y: y.sin(), x)
    return out, pull(v)


@case(lambda: (t(3), t(3)))
def vjp_with_two_inputs(x, y):
    out, pull = torch.func.vjp(lambda a, b: (a * b, a + b), x, y)
    return out, pull((x, y))


@case(lambda: (t(3),))
def vjp_with_aux(x):
    out, pull, aux = torch.func.vjp(lambda y: (y.sin(), y.cos()), x, has_aux=True)
    return out, pull(x), aux


@case(lambda: (t(3), t(3)))
def jvp_of_a_function(x, v):
    return torch.func.jvp(torch.sin, (x,), (v,))


@case(lambda: (t(3), t(3)))
def jvp_of_two_inputs(x, v):
    return torch.func.jvp(lambda a, b: a * b.cos(), (x, v), (v, x))


@case(lambda: (t(3), t(3)))
def jvp_with_aux(x, v):
    return torch.func.jvp(lambda a: (a.sin(), a.cos()), (x,), (v,), has_aux=True)


@case(lambda: (t(3),))
def forward_jacobian(x):
    return torch.func.jacfwd(lambda y: y.sin() * y.sum())(x)


@case(lambda: (t(3),))
def reverse_jacobian(x):
    return torch.func.jacrev(lambda y: y.sin() * y.sum())(x)


@case(lambda: (t(3), t(3)))
def jacobian_with_argnums(x, y):
    return torch.func.jacrev(lambda a, b: a * b, argnums=(0, 1))(x, y)


@case(lambda: (t(3),))
def jacobian_with_aux(x):
    return torch.func.jacfwd(lambda y: (y.sin(), y.cos()), has_aux=True)(x)


@case(lambda: (t(3),))
def hessian(x):
    return torch.func.hessian(lambda y: (y.sin() * y).sum())(x)


@case(lambda: (t(3), t(3)))
def linearized(x, v):
    out, push = torch.func.linearize(torch.sin, x)
    return out, push(v)


def net():
    return torch.nn.Linear(4, 2)


@case(lambda: (net(), t(3, 4)))
def functional_call_of_a_module(module, x):
    parameters = {"weight": torch.ones(2, 4), "bias": torch.zeros(2)}
    return torch.func.functional_call(module, parameters, (x,))


@case(lambda: (net(), t(3, 4)))
def grad_of_a_functional_call(module, x):
    parameters = dict(module.named_parameters())

    def loss(p):
        return torch.func.functional_call(module, p, (x,)).sum()

    return torch.func.grad(loss)({name: p.detach() for name, p in parameters.items()})


@case(lambda: (net(), t(3, 4), t(3, 2)))
def gradients_per_sample_of_a_module(module, x, y):
    parameters = {name: p.detach() for name, p in module.named_parameters()}

    def loss(p, a, b):
        return ((torch.func.functional_call(module, p, (a,)) - b) ** 2).mean()

    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)


@case(lambda: (net(), t(3, 4)))
def vmap_of_a_module(module, x):
    return torch.func.vmap(module)(x)


@case(lambda: (t(3), 1), lambda: (t(3), 2))
def grad_with_a_branch(x, k):
    def inner(y):
        if k == 1:
            return y.sin().sum()
        return y.cos().sum()

    return torch.func.grad(inner)(x)


@case(lambda: (t(3),))
def grad_counts_calls(x):
    calls = []

    def inner(y):
        calls.append(1)
        return y.sin().sum()

    return torch.func.grad(inner)(x), len(calls)


@case(lambda: (t(3, 4),))
def vmap_with_randomness(x):
    return torch.func.vmap(lambda row: row + torch.rand(4), randomness="different")(x)


@case(lambda: (t(3, 4),))
def vmap_between_operators(x):
    y = x.sin()
    z = torch.func.vmap(lambda row: row / row.norm())(y)
    return z.cos() + y


@case(lambda: (t(3, 4, grad=True),))
def vmap_with_gradients(x):
    return torch.func.vmap(lambda row: row.exp().sum())(x).sum()


@case(lambda: (t(3, 4),))
def vmap_of_a_method(x):
    return torch.func.vmap(torch.Tensor.sum)(x)


@case(lambda: (t(3, 4),))
def vmap_of_an_operator(x):
    return torch.vmap(torch.ops.aten.sin.default)(x)


@case(lambda: (t(4, 4),))
def vmap_of_a_factory_inside(x):
    return torch.func.vmap(lambda row: row + torch.ones(4) * row.new_zeros(4).cos())(x)
