"""Arrays of numpy in, out and between."""

import numpy
import numpy as np
import torch
import torch._numpy  # noqa: F401  (imported by the first capture otherwise)
from capture.cases import case, t


def a(*shape):
    return np.random.randn(*shape).astype(np.float32)


@case(lambda: (a(3),))
def array_in_and_out(x):
    return x * 2 + 1


@case(lambda: (a(3), a(3)))
def functions_of_arrays(x, y):
    return np.sin(x) + np.maximum(x, y), np.sum(x), np.dot(x, y)


@case(lambda: (t(3),))
def tensor_to_array(x):
    return x.numpy() * 2


@case(lambda: (a(3),))
def array_to_tensor(x):
    return torch.from_numpy(x) * 2, torch.as_tensor(x) + 1, torch.tensor(x)


@case(lambda: (t(3),))
def through_numpy_and_back(x):
    return torch.from_numpy(np.exp(x.numpy())) + x


@case(lambda: (t(3),))
def array_made_inside(x):
    return torch.from_numpy(np.arange(3.0)) + x


@case(lambda: (a(2, 3),))
def attributes_of_arrays(x):
    return x.shape, x.ndim, x.dtype == np.float32, x.T, x.size, len(x)


@case(lambda: (a(2, 3),))
def methods_of_arrays(x):
    return x.sum(), x.mean(axis=0), x.reshape(3, 2), x.astype(np.float64), x.max(), x.transpose(1, 0), x.copy()


@case(lambda: (a(2, 3),))
def class_of_an_array_tells_its_library(x):
    made = x + 1
    said = [each.__class__.__module__.split(".")[0] for each in (x, made)]
    return made, said, made.__class__ is np.ndarray, type(made) is made.__class__


@case(lambda: (t(3), np.float64(0.1)), lambda: (t(3), np.float32(0.1)), lambda: (t(3), np.int32(4)))
def tensors_of_numbers_have_their_types(x, number):
    return x + 1, torch.tensor(number), torch.as_tensor(number), torch.tensor([number, 1]), np.asarray([number]) * 3


@case(lambda: (a(4, 3),))
def items_of_arrays(x):
    return x[0], x[:, 1], x[1:3], x[..., None], x[x > 0].shape[0] >= 0


@case(lambda: (a(3),))
def array_is_written(x):
    y = x.copy()
    y[0] = 5
    y += 1
    return y


@case(lambda: (a(3),))
def comparisons_of_arrays(x):
    return x > 0, x == x, np.where(x > 0, x, -x), np.abs(x), -x


@case(lambda: (a(3, 3),))
def linear_algebra_of_arrays(x):
    return np.linalg.norm(x), x @ x, np.matmul(x, x), np.einsum("ij,jk->ik", x, x)


@case(lambda: (a(3),))
def arrays_together(x):
    return np.concatenate([x, x]), np.stack([x, x]), np.zeros_like(x), np.ones((2, 2)), np.expand_dims(x, 0)


@case(lambda: (t(3),))
def numbers_of_numpy(x):
    return x * np.float32(2.0), x + np.pi, x * np.int64(3), np.sqrt(2.0) * x


@case(lambda: (t(3),))
def array_of_a_detached_tensor(x):
    return x.detach().cpu().numpy().sum()


@case(lambda: (t(3),))
def array_protocol(x):
    return np.asarray(x) + 1, np.array(x)


@case(lambda: (a(3),))
def array_as_a_list(x):
    return x.tolist()[0] is not None, x.item(0) is not None


@case(lambda: (t(3),))
def numpy_dtypes(x):
    return np.dtype("float32") == np.float32, np.finfo(np.float32).eps, x


@case(lambda: (a(3),))
def array_in_a_module_function(x):
    return numpy.clip(x, 0, 1), numpy.argmax(x), numpy.cumsum(x)
