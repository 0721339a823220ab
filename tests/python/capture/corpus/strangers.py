"""What models of strangers do that nobody here had thought of: found by compiling every architecture of transformers, and torch.distributions."""

import collections
import dataclasses

import torch
from capture.cases import Reuse, case, t


class Output(collections.OrderedDict):
    """A result whose fields are items and attributes at once."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def __setattr__(self, name, value):
        if name in {field.name for field in dataclasses.fields(self)} and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


@dataclasses.dataclass
class Pooled(Output):
    last: object = None
    pooled: object = None
    states: object = None


@case(lambda: (t(2, 3),))
def output_whose_field_is_set_again(x):
    found = Pooled(last=x + 1, pooled=x.sum())
    found.pooled = found.pooled * 2
    return found


@case(lambda: (t(2, 3),))
def output_whose_item_is_set(x):
    found = Pooled(last=x + 1)
    found["states"] = (x, x * 2)
    return found, found.states[1], len(found), list(found)


@case(lambda: (t(2, 3),))
def output_as_a_tuple(x):
    found = Pooled(last=x + 1, states=(x,))
    return found[0], found["last"], found[:1], found.to_tuple(), "pooled" in found


@case(lambda: (t(2, 3), Pooled(last=t(2, 3), pooled=t(2))))
def output_from_outside_is_changed(x, found):
    found.pooled = found.last.sum(-1) + x[:, 0]
    return found.pooled * 2


class Marked(list):
    pass


@case(lambda: (t(3),))
def dict_of_a_list_follows_its_attributes(x):
    made = Marked([1, 2])
    own = made.__dict__
    made.scale = x * 2
    before = sorted(own), "scale" in own, own["scale"]
    del made.scale
    return before, len(own), own.get("scale", x)


@case(lambda: (t(3),))
def dict_of_a_list_that_is_written(x):
    made = Marked([1, 2])
    made.__dict__["scale"] = x * 2
    return made.scale + 1


class Support(property):
    """A property that says more than one."""

    def __init__(self, getter=None, discrete=False):
        super().__init__(getter)
        self.discrete = discrete


class Counting(property):
    """A property that answers in its own way."""

    def __get__(self, owner, kind=None):
        return self if owner is None else super().__get__(owner, kind) + 1


class Range:
    def __init__(self, low, high):
        self.low, self.high = low, high

    @Support
    def width(self):
        return self.high - self.low

    @Counting
    def count(self):
        return 4


@case(lambda: (t(3), Range(1.0, 4.0)))
def property_of_a_derived_class(x, range):
    return x * range.width, Range.width.discrete


@case(lambda: (t(3), Range(1.0, 4.0)))
def property_of_a_derived_class_that_answers_otherwise(x, range):
    return x * range.count


@case(lambda: (t(3),))
def classes_of_numbers_as_element_types(x):
    return torch.zeros(2, dtype=int), torch.ones(2, dtype=float), x.to(bool), x.to(dtype=complex), torch.full((2,), 1, dtype=float) + x[:2]


@case(lambda: (torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False]), torch.tensor([False, False, True, True])))
def method_whose_receiver_is_its_second_operand(value, condition, other):
    return value.where(condition, other), value.where(condition=condition, other=other), torch.Tensor.where(value, condition, other)


@case(lambda: (t(4), torch.tensor([True, False, True, False])))
def values_where_a_condition_holds(x, condition):
    return x.where(condition, 0.0), x.where(condition, other=x * 2), x.polygamma(1), x.where(x > 0, -x)


@case(lambda: (t(3),))
def raises_only_where_it_is_compiled(x):
    mask = None
    if not torch.compiler.is_compiling():
        mask = torch.ones(3)
    return x * mask.shape[0]


class Inner:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Outer:
    def __init__(self, inner):
        self.inner = inner


@case(lambda: (t(3), Outer(Inner(scale=2, more=3))), lambda: (t(3), Outer(Inner(scale=4))), lambda: (t(3), Outer(Inner(scale=5, more=4))), reuse=Reuse.FREE)
def number_of_an_object_that_need_not_be_there(x, outer):
    total = x * outer.inner.scale
    return total + getattr(outer.inner, "more", 7)


@case(lambda: (t(3),))
def distribution_by_transforms(x):
    made = torch.distributions.Weibull(x.abs() + 1, x.abs() + 2, validate_args=False)
    return made.log_prob(x.abs() + 0.5), made.mean


@case(lambda: (t(3),))
def gamma_and_its_kin_are_drawn(x):
    made = torch.distributions.Gamma(x.abs() + 1, x.abs() + 2, validate_args=False)
    other = torch.distributions.Dirichlet(x.abs() + 1, validate_args=False)
    return made.rsample((2,)), other.sample(), torch.binomial(x.abs().ceil() + 3, torch.full((3,), 0.5))


@case(lambda: (t(3),))
def divergence_between_normals(x):
    one = torch.distributions.MultivariateNormal(x, torch.eye(3), validate_args=False)
    two = torch.distributions.MultivariateNormal(x + 1, torch.eye(3) * 2, validate_args=False)
    return torch.distributions.kl_divergence(one, two)


@case(lambda: (t(2, 8, 3), torch.tensor(2), torch.tensor(4)))
def sizes_that_are_tensors(x, rows, columns):
    made = x.new_zeros((rows, columns)), torch.zeros(rows, 3), torch.ones((columns,)), x.narrow(1, rows, 4), torch.arange(columns)
    return made, x[:, :rows]


@case(lambda: (t(2, 8, 3),))
def sizes_computed_by_torch(x):
    half = torch.div(8, 4, rounding_mode="trunc")
    less = half - 1
    return x.view(2, half, 4, 3), x.new_zeros((2, less, 3)) + 1, x.expand(less, 2, 8, 3)


@case(lambda: (t(2, 8),))
def places_that_are_not_zero(x):
    rows, columns = (x > 0).nonzero(as_tuple=True)
    return torch.nonzero(x > 0, as_tuple=False), rows, columns, torch.nonzero(x > 9), (x > 9)._is_all_true(), torch._is_any_true(x > 0)


@case(lambda: (t(4, 3), torch.tensor([[-1, 0, 3], [2, -4, 1]])))
def elements_taken_from_the_end(x, index):
    return torch.take_along_dim(x, index, 0), x.to(torch.complex64).take_along_dim(index, dim=0)


@case(lambda: (torch.ones(2, dtype=torch.int64),))
def number_doubled_many_times(x):
    """Asked for by each operand, it would be computed 2 to the power of 40 times."""
    count = torch.div(2, 2, rounding_mode="trunc")
    for _ in range(40):
        count = count + count
    return x + count.item()
