"""Methods of tensors that are named otherwise than the operators they are, or that no operator stands for."""

import itertools

import torch
from capture.cases import Message, Reuse, case, t
from torch import nn


def bools(*values):
    return torch.tensor(values, dtype=torch.bool)


@case(lambda: (bools(1, 0, 1), bools(1, 1, 0), bools(1, 1, 1)), lambda: (bools(0, 0, 1), bools(0, 1, 0), bools(0, 1, 1)))
def where_of_bools(x, condition, other):
    return x.where(condition, other), x.where(condition, True), x.where(condition=condition, other=other)


@case(lambda: (t(3, 4, grad=True), t(3, 4)))
def where_of_floats(x, y):
    return x.where(y > 0, y), x.where(x > 0, 3.0)


@case(lambda: (t(4).abs() + 1,))
def polygamma_as_a_method(x):
    y = x.clone()
    y.polygamma_(0)
    return x.polygamma(1), x.polygamma(n=2), y


@case(lambda: (t(3, 4, 5).to(memory_format=torch.contiguous_format), t(2, 3, 4, 5)))
def conversions_with_a_memory_format(x, y):
    z = y.double(memory_format=torch.channels_last)
    return x.float(memory_format=torch.preserve_format), z, z.stride(), x.bool(memory_format=torch.contiguous_format), y.cfloat(), y.cdouble().dtype


@case(lambda: (t(3, 4, grad=True), t(1, 4)))
def sums_to_a_size(x, y):
    return x.sum_to_size(1, 4) + y, x.sum_to_size(4), x.sum_to_size((3, 1)), x.sum_to_size(3, 4), x.sum_to_size(torch.Size([]))


@case(lambda: (t(4, 4), t(4)))
def functions_by_their_methods(x, y):
    return x.quantile(0.5), x.nanquantile(0.25, dim=1), x.matrix_exp(), y.kron(y), y.inner(y), y.diagflat(), x.isreal(), y.dist(y * 2), x.nanmean(dim=0), x.pinverse().shape, +x


@case(lambda: (t(4, 3), t(4, 3)))
def products_by_their_methods(x, y):
    return x.cross(y, dim=1), torch.cross(x, y, dim=1), x.true_divide(2).true_divide_(y)


@case(lambda: (t(4, 4), t(3, 5), 2.0), lambda: (t(4, 4), t(3, 5), 3.0))
def diagonals_filled(x, y, value):
    x, y = x.clone(), y.clone()
    return x.fill_diagonal_(value), y.fill_diagonal_(1), x.diagonal().sum()


@case(lambda: (torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor(3.0)))
def places_of_what_is_not_zero(x, one):
    rows, columns = x.nonzero(as_tuple=True)
    return rows, columns, torch.nonzero(x), torch.nonzero(x, as_tuple=False), torch.nonzero(one, as_tuple=True)


@case(lambda: (torch.arange(3), t(3), torch.tensor(2)))
def types_of_results(n, x, one):
    return [torch.result_type(*pair) for pair in [(n, x), (n, 1), (n, 2.5), (one, x), (1.5, one), (one, n), (n > 1, 1), (n > 1, n > 1)]]


@case(lambda: (t(3), [1, 2, 3]))
def arrays_by_the_standard_name(x, items):
    y = torch.asarray(x)
    return y is x, torch.asarray(items), torch.asarray(2.5), torch.asarray(x, dtype=torch.float64), torch.asarray(x, copy=True) is x


@case(lambda: (t(3, 3),))
def factors_by_a_method(x):
    factors, pivots = x.lu()
    return factors, pivots, x.norm("nuc").shape, x.norm(2, dim=0)


@case(lambda: (nn.Linear(3, 2), t(4, 3)), lambda: (nn.Linear(3, 2), t(4, 3, grad=True)))
def frozen_then_used(module, x):
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    y = module(x)
    return y, y.requires_grad, module.weight.requires_grad


@case(lambda: (nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)), t(4, 3)))
def one_layer_frozen_by_its_attribute(module, x):
    module[0].weight.requires_grad = False
    module[0].bias.requires_grad = False
    return module(x), [parameter.requires_grad for parameter in module.parameters()]


@case(lambda: (nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)), t(4, 3)))
def a_module_frozen_whole(module, x):
    module.requires_grad_(False)
    module[1].requires_grad_(True)
    return module(x)


@case(lambda: (t(3), t(3)))
def an_argument_that_requires_gradients_from_now_on(x, y):
    x.requires_grad_()
    z = x * y
    return z, x.requires_grad, z.requires_grad, x.is_leaf


@case(lambda: (t(3), t(3)))
def switched_to_and_fro(x, y):
    x.requires_grad_()
    x.requires_grad_(False)
    y.requires_grad = True
    return x * y


@case(lambda: (nn.Linear(3, 2), t(4, 3)))
def frozen_after_its_first_use(module, x):
    y = module(x)
    module.weight.requires_grad_(False)
    return y, module(x)


@case(lambda: (nn.Linear(3, 2), t(4, 3)))
def frozen_before_a_break(module, x):
    module.requires_grad_(False)
    y = module(x)
    print("between")
    module.requires_grad_(True)
    return y, module(x)


@case(lambda: ((t(3) * 2).requires_grad_() * 2,), message=Message.ANY)
def frozen_although_it_is_no_leaf(x):
    x.requires_grad_(False)
    return x * 2


@case(lambda: (torch.arange(3),), message=Message.ANY)
def integers_that_require_gradients(x):
    x.requires_grad_()
    return x * 2


@case(lambda: (nn.Linear(3, 2), t(4, 3)))
def frozen_where_data_is_asserted(module, x):
    module.weight.requires_grad_(False)
    assert (x * x).sum() >= 0
    return module(x)


@case(lambda: (t(3),))
def arguments_of_itertools_by_name(x):
    sums = list(itertools.accumulate([1, 2, 3], func=lambda a, b: a * b))
    pairs = list(itertools.combinations(iterable=[1, 2, 3], r=2)) + list(itertools.permutations("ab", r=1))
    return x * sum(sums), pairs, list(itertools.repeat(object=1, times=2)), list(itertools.combinations_with_replacement([1, 2], r=2))


@case(lambda: (t(3), -1), lambda: (t(3), 0))
def arguments_that_itertools_refuses(x, n):
    told = []
    for function in (
        lambda: list(itertools.combinations([1, 2], n)),
        lambda: list(itertools.permutations([1, 2], n)),
        lambda: list(itertools.combinations_with_replacement([1, 2], n)),
        lambda: list(itertools.product([1, 2], repeat=n)),
        lambda: itertools.tee([1, 2], n),
        lambda: list(itertools.repeat(1, n)),
    ):
        try:
            told.append(function())
        except ValueError as error:
            told.append(str(error))
    return x + 1, told


@case(lambda: (t(3),))
def numbers_read_from_bytes(x):
    return x + int.from_bytes(b"\x01\x02", "big"), float.fromhex("0x1p3"), bytes.fromhex("0a0b"), int.from_bytes(b"\xff", byteorder="little", signed=True)


@case(lambda: (t(2, 3), torch.tensor(1.0)))
def functions_that_return_their_argument(x, one):
    return (
        [function(x) is x for function in (torch.atleast_1d, torch.atleast_2d, torch.atleast_3d, torch.conj, torch.conj_physical, torch.positive, torch.real, torch.resolve_conj, torch.resolve_neg)],
        [x.conj() is x, x.resolve_neg() is x, torch.atleast_1d(one) is one, torch.asarray(x) is x, torch.nn.functional.feature_alpha_dropout(x) is x, +x is x],
        x + 1,
    )


@case(lambda: (t(3),))
def functions_that_end_an_iteration(x):
    def told(make):
        source = iter([1, 2])
        try:
            return list(make(lambda *_: next(source)))
        except RuntimeError as error:
            return str(error)

    return (
        x + 1,
        told(lambda pull: iter(pull, None)),
        told(lambda pull: itertools.starmap(pull, [(1,), (2,), (3,)])),
        told(lambda pull: itertools.accumulate([1, 2, 3, 4], pull)),
        told(lambda pull: itertools.takewhile(pull, [1, 2, 3])),
        told(lambda pull: itertools.filterfalse(pull, [1, 2, 3])),
        told(lambda pull: map(pull, [1, 2, 3])),
        told(lambda pull: filter(pull, [1, 2, 3])),
        told(lambda pull: (pull() for _ in range(3))),
    )
