"""What tensors carry beside their values: gradients, hooks, attributes, metadata, storage; and the ways of Tensor that are rarely used."""

import torch
from capture.cases import Message, Reuse, case, t


@case(lambda: (t(3, grad=True),))
def backward_and_grad(x):
    (x * x).sum().backward()
    return x.grad


@case(lambda: (t(3, grad=True),))
def grad_accumulated_by_hand(x):
    (g,) = torch.autograd.grad((x * x).sum(), [x])
    return g * 2


@case(lambda: (t(3),))
def requires_grad_switched_on(x):
    y = x.detach().requires_grad_()
    return y.requires_grad, (y * 2).requires_grad, x.requires_grad


@case(lambda: (t(3, grad=True),))
def detached(x):
    y = x.detach()
    return y + 1, y.requires_grad, x.is_leaf, (x * 2).is_leaf, (x * 2).grad_fn is not None


@case(lambda: (t(3, grad=True),))
def data_read(x):
    return x.data * 2, x.data.requires_grad


@case(lambda: (t(3), t(3)))
def data_set(x, y):
    x.data = y * 2
    return x + 1


@case(lambda: (t(3, grad=True),))
def hook_that_scales(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y.sum()


@case(lambda: (t(3, grad=True),))
def hook_of_a_function(x):
    def scaled(g):
        return g + 1

    x.register_hook(scaled)
    return (x * 2).sum()


@case(lambda: (t(3),))
def attributes_of_the_users(x):
    x.label = "q"
    y = x + len(x.label)
    y.extra = [1, 2]
    return y, y.extra, hasattr(x, "absent"), getattr(x, "absent", 3)


@case(lambda: (t(2, 3),))
def metadata(x):
    return (
        x.shape, x.size(), x.size(0), x.size(-1), x.dim(), x.ndim, x.ndimension(), x.numel(), x.nelement(), x.stride(), x.stride(0), x.dtype, x.device,
        x.layout, x.is_contiguous(), x.is_floating_point(), x.is_complex(), x.is_cuda, x.is_sparse, x.is_quantized, x.is_meta, x.element_size(),
        x.storage_offset(), x.itemsize, x.nbytes, x.requires_grad, x.is_leaf, x.device.type, len(x), x.T.shape, x.is_signed(), x.is_inference(), x.get_device(),
    ), x + 1  # fmt: skip


@case(lambda: (t(2, 3),))
def types_and_casts(x):
    return x.type(), x.type(torch.float64).dtype, x.type("torch.IntTensor").dtype, x.to(torch.int32), x.long(), x.half().dtype, x.bool(), x.to("cpu"), x.to(x.double()).dtype, x.type_as(x.int()), isinstance(x, torch.FloatTensor), x.float() is x


@case(lambda: (t(2, 3),))
def new_tensors(x):
    return x.new_zeros(2), x.new_ones((2, 2)), x.new_full((2,), 3), x.new_empty(2).shape, x.new_tensor([1, 2]), x.new(3).shape, torch.zeros_like(x, dtype=torch.int64), torch.full_like(x, 2), torch.empty_like(x).shape


@case(lambda: (t(3),))
def shape_unpacked(x):
    (n,) = x.shape
    a, b = x.view(1, 3).shape
    return x * n + a + b, x.shape == (3,), x.shape[0] == 3, list(x.shape), tuple(x.size()), torch.Size([1, 2]) + x.shape, x.shape.numel(), x.shape[:1], isinstance(x.shape, tuple)


@case(lambda: (t(3), t(3)))
def identity_of_tensors(x, y):
    seen = {id(x): 1}
    return x + (x is x) + (x is y), id(y) in seen, x in [x], [x, y].index(x)


@case(lambda: (t(3),))
def items_and_numbers(x):
    return x[0].item() * 2


@case(lambda: (torch.tensor([2, 3]),))
def tolist(x):
    a, b = x.tolist()
    return torch.ones(a, b)


@case(lambda: (torch.tensor(3),))
def int_of_a_tensor(n):
    return torch.ones(int(n))


@case(lambda: (t(4),))
def nonzero_of_data(x):
    return (x > 0).nonzero().sum()


@case(lambda: (t(4), torch.tensor(2)))
def index_by_an_integer_tensor(x, n):
    return x[n] + 1, x[n].shape


@case(lambda: (t(4), torch.tensor(2)))
def write_through_an_index_by_an_integer_tensor(x, n):
    y = x[n]
    y.add_(10)
    return x * 1


@case(lambda: (t(4, 3), torch.tensor(2), 1))
def write_through_a_mixed_index(x, n, m):
    y = x[n, m:]
    y.zero_()
    x[m][n].add_(5)
    return x + 1


@case(lambda: (t(4, 3), torch.tensor(2)))
def write_through_a_nested_index(x, n):
    row = x[1]
    row[n] += 3
    z = x[..., n]
    z.mul_(2)
    return x * 1


@case(lambda: (t(4, 3), torch.tensor(1)))
def integer_tensor_among_slices(x, n):
    a = x[1:, n]
    b = x[n, None]
    return a, b, x[n, n], x[:, n].stride()


@case(lambda: (t(4), torch.tensor(True)), lambda: (t(4), torch.tensor(False)))
def bool_tensor_as_an_index(x, flag):
    return x[flag].sum() + 1


@case(lambda: (t(4), torch.tensor([1, 2])))
def write_to_a_gathered_copy(x, places):
    y = x[places]
    y.add_(10)
    return x * 1, y


@case(lambda: (t(4, 4),))
def views_and_their_base(x):
    y = x.view(-1)
    y[0] = 5
    return x._is_view(), y._base is x, x * 1, y.data_ptr() == x.data_ptr()


@case(lambda: (t(3),))
def version_counted(x):
    before = x._version
    x.add_(1)
    return x._version - before


@case(lambda: (t(2, 3),))
def rare_methods(x):
    return x.apply_ is not None, x.expand(2, 2, 3).shape, x.unfold(1, 2, 1).shape, x.rot90(), x.flip(0), x.roll(1), x.diff(), x.trapz().shape, x.logsumexp(0), x.movedim(0, 1).shape, x.unflatten(1, (3, 1)).shape, x.narrow(1, 0, 2), x.addmm(x @ x.T @ x, torch.eye(3)) if False else x, x.tile(2).shape, x.nan_to_num(), x.cummax(0).values


@case(lambda: (t(2, 3),))
def methods_held(x):
    add, name = x.add, "mul"
    return add(1), getattr(x, name)(2), torch.Tensor.sub(x, 1), getattr(torch, "sin")(x), x.__add__(1), x.__getitem__(0), torch.Tensor.__mul__(x, 3)


@case(lambda: (t(3),))
def setattr_of_grad(x):
    x.grad = None
    return x + 1, x.grad


@case(lambda: (t(3, grad=True),))
def grad_cleared_and_read(x):
    x.grad = torch.ones(3)
    y = x.grad * 2
    x.grad = None
    return y


@case(lambda: (t(2, 2), t(2, 2)))
def out_arguments(x, y):
    out = torch.empty(2, 2)
    torch.add(x, y, out=out)
    torch.mul(out, 2, out=out)
    return out


@case(lambda: (t(3),))
def tensor_constructors(x):
    return torch.tensor(3), torch.tensor([1.5, 2]), torch.tensor([[1], [2]]), torch.as_tensor([1]), torch.scalar_tensor(2.0), torch.arange(3), torch.linspace(0, 1, 3), torch.eye(2), torch.Tensor([1, 2]), torch.FloatTensor([1]), torch.LongTensor([3]), torch.full((2,), True), torch.tensor(x.shape), torch.zeros(2, 0), torch.empty(0).numel(), torch.logspace(0, 1, 2), torch.complex(x, x)


@case(lambda: (t(3),))
def numbers_from_torch(x):
    return torch.finfo(x.dtype).max, torch.iinfo(torch.int32).min, torch.pi, torch.inf, torch.finfo(torch.float16).eps, torch.float32.itemsize, torch.promote_types(torch.int32, torch.float16), torch.result_type(x, 1), torch.can_cast(torch.float32, torch.int32), x.dtype.is_floating_point, torch.get_default_dtype()


@case(lambda: (t(3),))
def generators_of_random_numbers(x):
    torch.manual_seed(3)
    a = torch.rand(3)
    return x + a, torch.randn_like(x).shape, torch.randperm(3).shape, torch.bernoulli(torch.full((3,), 0.5)).shape, torch.initial_seed()


@case(lambda: (t(3),))
def dtype_held(x):
    kinds = {torch.float32: 1, torch.float64: 2}
    return x + kinds[x.dtype], x.to(dtype=getattr(torch, "float64")), str(x.dtype), x.device == torch.device("cpu"), torch.device("cpu", 0).index, str(x.device)


@case(lambda: (t(3),), message=Message.ANY)
def shape_error_caught(x):
    try:
        return x + torch.ones(4)
    except RuntimeError:
        return x + 1


@case(lambda: (t(3, grad=True),), reuse=Reuse.FREE)
def no_grad_write_to_a_leaf(x):
    with torch.no_grad():
        x.add_(1)
        x.copy_(x * 2)
    return x * 2


@case(lambda: (t(3, grad=True), t(3)))
def copy_into_a_slice(x, y):
    z = torch.zeros(6)
    z[:3] = x
    z[3:].copy_(y)
    z[-1] = 4
    return z * 2


@case(lambda: (t(3, 3),))
def index_put(x):
    y = x.clone()
    y[y > 0] = 0
    y[[0, 1], [1, 2]] = 5
    y[:, 0] += 2
    y.index_put_((torch.tensor([0]), torch.tensor([0])), torch.tensor([9.0]))
    y.masked_fill_(y == 5, -1)
    return y


@case(lambda: (t(3),))
def tensors_as_conditions_of_identity(x):
    y = None
    for v in (x, None):
        if v is not None:
            y = v
    return y + 1 if y is not None else x, not (x is None), x is not y


@case(lambda: (t(3), t(3)))
def swapped_data(x, y):
    x.copy_(y)
    y.zero_()
    return x, y


@case(lambda: (t(2, 3),))
def iterated(x):
    rows = [row * 2 for row in x]
    a, b = x
    return rows, a + b, list(zip(x, x))[0][0], [*x][1], len(x), list(reversed(x))[0], dict(enumerate(x))[0]


@case(lambda: (t(2, 3),), lambda: (t(4, 3),))
def sizes_in_python(x):
    n = x.size(0)
    return x * n + sum(range(n)), [n] * 2, {n: 1}[n], f"{n}", n == x.shape[0], max(n, 3), n // 2, n % 2, float(n), -n, n**2, n / 2, bool(n), str(n), hash(n) == hash(int(n)), divmod(n, 2), min([n, 5]), n & 1, n << 1


@case(lambda: (t(2, 3),), lambda: (t(2, 3, grad=True),))
def views_made_while_nothing_is_recorded(x):
    y = x * 2
    with torch.no_grad():
        of_result, of_argument, computed = y.view(-1), x[0], y + 1
    after = of_result[1:]
    told = [(v.requires_grad, v.is_leaf) for v in (of_result, of_argument, computed, after)]
    return told, computed, y


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def gradients_by_their_other_name(x, other):
    (x * x).sum().backward()
    return x._grad, other._grad


@case(lambda: (torch.ones(2), torch.tensor([1, 2])))
def complex_numbers_under_another_default(x, whole):
    torch.set_default_dtype(torch.float64)
    try:
        made = [torch.tensor(1j), torch.tensor([1j, 2.0]), torch.as_tensor([[2, 1j]]), torch.full((2,), 1j), torch.linspace(0, 1j, 3), whole * 1j, x * 1j]
        return made + [torch.tensor(2.5), torch.tensor([1, 2.5]), torch.arange(0, 1, 0.5)]
    finally:
        torch.set_default_dtype(torch.float32)
