"""Programs that compute with numpy between tensors."""

import numpy as np
import torch
from capture.cases import Message, Reuse, case, t


def a(*shape):
    return np.random.randn(*shape)


@case(lambda: (t(3),))
def through_an_array_and_back(x):
    return torch.from_numpy(np.sin(x.numpy()) + 1)


@case(lambda: (a(3),), lambda: (a(4),))
def arrays_in_and_out(v):
    return v * 2 + 1, v.sum(), v.mean()


@case(lambda: (a(3), a(3)))
def functions_of_arrays(v, w):
    return np.maximum(v, w), np.where(v > 0, v, w), np.concatenate([v, w]), np.stack([v, w])


@case(lambda: (a(2, 3),))
def shapes_of_arrays(v):
    return v.T, v.reshape(3, 2), v.ravel(), v.shape[0], v.ndim, v.size, np.transpose(v)


@case(lambda: (a(2, 3),))
def types_of_arrays(v):
    return v.astype(np.float32), v.astype("int64"), v.astype(int)


@case(lambda: (a(3),))
def an_iteration_over_an_array(v):
    total = 0
    for item in v:
        total = total + item * 2
    return total


@case(lambda: (a(2, 3),))
def rows_of_an_array(v):
    return [row.sum() for row in v]


@case(lambda: (a(3), np.zeros(3)))
def a_function_that_writes_its_result(v, out):
    np.add(v, 1, out=out)
    np.multiply(out, 2, out)
    return out


@case(lambda: (a(3),))
def an_array_written_in_place(v):
    v += 1
    v[0] = 5
    v[1:] *= 2
    return v


@case(lambda: (a(3),))
def arrays_made_inside(v):
    return v + np.arange(3) + np.zeros(3) + np.ones_like(v) + np.array([1.0, 2.0, 3.0]) + np.full(3, 2.0), np.linspace(0, 1, 5), np.eye(2)


@case(lambda: (a(2, 3), a(3, 2)))
def products_of_arrays(v, w):
    return v @ w, np.dot(v, w), np.matmul(v, w), np.einsum("ij,jk->ik", v, w), np.linalg.norm(v)


@case(lambda: (a(5),))
def reductions_of_arrays(v):
    return np.max(v), np.argmax(v), np.cumsum(v), np.std(v), np.var(v), v.min(), np.any(v > 0), np.all(v > -100), np.prod(v)


@case(lambda: (a(5),))
def order_of_arrays(v):
    return np.sort(v), np.argsort(v), np.flip(v), np.clip(v, -1, 1), np.abs(v), np.round(v, 1)


@case(lambda: (t(3),))
def a_tensor_in_numpy_functions(x):
    return np.sin(x.numpy()), np.mean(x.detach().numpy())


@case(lambda: (t(4), a(4)))
def an_array_beside_a_tensor(x, v):
    return x + torch.from_numpy(v).float(), torch.tensor(v), torch.as_tensor(v)


@case(lambda: (t(3),))
def numbers_of_numpy(x):
    return x * np.float32(2), x + np.int64(3), x * np.pi, x / np.e, np.sqrt(4.0) * x


@case(lambda: (a(3),))
def an_index_of_numpy(v):
    i = np.argmax(v)
    return v[i], v[np.array([0, 2])], v[v > 0], v[::-1], v[..., None], v[np.newaxis]


@case(lambda: (t(3),))
def types_of_numpy(x):
    return x.to(torch.float64), np.dtype("float32").name, np.float64(3).item()


@case(lambda: (a(3),))
def scalars_of_arrays(v):
    return float(v[0]), int(v.shape[0]), v[0].item(), v.tolist()


@case(lambda: (a(4),))
def pieces_of_arrays(v):
    return np.split(v, 2), np.array_split(v, 2), np.tile(v, 2), np.repeat(v, 2), np.pad(v, 1)


@case(lambda: (np.arange(6),), lambda: (np.arange(8),))
def integers_of_numpy(v):
    return v // 2, v % 3, v << 1, v & 1, ~v, v.dtype == np.int64


@case(lambda: (a(3),))
def copies_of_arrays(v):
    w = v.copy()
    w[0] = 9
    return v, w, np.asarray(v) is v, np.array(v, copy=True)


@case(lambda: ([1.0, 2.0], t(2)))
def a_list_to_an_array(items, x):
    v = np.array(items)
    return v * 2, x + torch.from_numpy(v).float()


@case(lambda: (a(2, 2),))
def functions_of_linear_algebra(v):
    return np.linalg.inv(v), np.linalg.det(v), np.trace(v), np.diag(v), np.triu(v)


@case(lambda: (a(3),))
def comparisons_of_arrays(v):
    return np.allclose(v, v), np.array_equal(v, v + 1), np.isnan(v), np.isfinite(v).all(), (v == v).sum()


@case(lambda: (a(3), a(3)))
def operators_of_arrays(v, w):
    return v - w, v / w, v**2, -v, v > w, abs(v), v // w, divmod(v, w)[0]


@case(lambda: (a(3),))
def a_function_over_an_array(v):
    f = np.vectorize(lambda item: item * 2)
    return f(v)


@case(lambda: (a(2, 3),))
def broadcast_arrays(v):
    return np.broadcast_to(v[0], (2, 3)) + v, np.expand_dims(v, 0), np.squeeze(v[:1]), np.moveaxis(v, 0, 1), np.swapaxes(v, 0, 1)


@case(lambda: (a(3),))
def an_array_in_a_branch(v):
    if v.shape[0] == 3 and len(v) > 2:
        return v + 1
    return v - 1


@case(lambda: (a(3), "sin"), lambda: (a(3), "cos"))
def a_function_of_numpy_by_name(v, name):
    return getattr(np, name)(v)


@case(lambda: (a(3),))
def ufunc_methods(v):
    return np.add.reduce(v), np.maximum.accumulate(v), np.multiply.outer(v, v)
