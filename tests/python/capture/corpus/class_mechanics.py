"""What classes do behind attributes: descriptors, `__getattr__`, `super`, special methods, functions of autograd."""

import abc
import functools
import pathlib
import typing

import torch
from capture.cases import case, t


class Checked:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        if isinstance(value, int) and value < 0:
            raise ValueError("negative")
        setattr(instance, self.name, value)


class Described:
    size = Checked()

    def __init__(self, size):
        self.size = size


class Fallback:
    def __init__(self, inner):
        self.__dict__["inner"] = inner

    def __getattr__(self, name):
        if name.startswith("no_"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __setattr__(self, name, value):
        self.inner.__dict__[name] = value


class Everything:
    def __init__(self):
        self.log = []

    def __getattribute__(self, name):
        if name == "answer":
            return 42
        return super().__getattribute__(name)


class Base(abc.ABC):
    scale = 2
    registry: typing.ClassVar[list] = []

    @abc.abstractmethod
    def apply(self, x): ...

    @classmethod
    def make(cls, *args):
        return cls(*args)

    @staticmethod
    def twice(x):
        return x * 2

    @property
    def doubled(self):
        return self.scale * 2

    @doubled.setter
    def doubled(self, value):
        self.scale = value // 2

    @doubled.deleter
    def doubled(self):
        self.scale = 0


class Left(Base):
    def apply(self, x):
        return x + 1


class Right(Base):
    def apply(self, x):
        return x * 3


class Both(Left, Right):
    def apply(self, x):
        return super().apply(x) + super(Left, self).apply(x)


class Number:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Number(self.n + getattr(other, "n", other))

    __radd__ = __add__

    def __mul__(self, other):
        return NotImplemented

    def __rmul__(self, other):
        return Number(self.n * 100)

    def __eq__(self, other):
        return isinstance(other, Number) and self.n == other.n

    def __hash__(self):
        return hash(self.n)

    def __lt__(self, other):
        return self.n < other.n

    def __bool__(self):
        return self.n != 0

    def __index__(self):
        return self.n

    def __neg__(self):
        return Number(-self.n)

    def __contains__(self, item):
        return item == self.n

    def __call__(self, x):
        return x * self.n

    def __getitem__(self, key):
        return key

    def __repr__(self):
        return f"Number({self.n})"

    def __format__(self, spec):
        return f"<{self.n}:{spec}>"

    def __iadd__(self, other):
        self.n += other
        return self

    def __len__(self):
        return 3


@functools.total_ordering
class Ranked:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.save_for_backward(x)
        ctx.by = by
        return x * by

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.by + x * 0, None


class SetUp(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        zero = torch.zeros_like(x)
        a = zero if a is None else a
        b = zero if b is None else b
        return a * y + b, a * x + b


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(x > 0)
        return x.abs()

    @staticmethod
    def backward(ctx, g):
        return g * 3


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


@case(lambda: (t(3), Described(2)), lambda: (t(3), Described(5)))
def descriptors(x, held):
    held.size = held.size + 1
    try:
        held.size = -1
    except ValueError as error:
        return x * held.size, str(error)


@case(lambda: (t(3),))
def descriptors_of_a_new_object(x):
    held = Described(x)
    return held.size + 1, isinstance(Described.size, Checked), held._size is x


@case(lambda: (t(3), Fallback(Described(4))))
def attributes_passed_on(x, held):
    held.extra = 3
    return x * held.size + held.extra, hasattr(held, "no_such"), getattr(held, "no_way", 8)


@case(lambda: (t(3), Everything()))
def every_attribute_asked(x, held):
    held.log.append(1)
    return x + held.answer, len(held.log)


@case(lambda: (t(3),))
def the_order_of_bases(x):
    both = Both.make()
    return both.apply(x) + both.twice(x), [c.__name__ for c in Both.__mro__][:3], Both.scale


@case(lambda: (t(3), Left()))
def properties_set_and_deleted(x, held):
    held.doubled = 10
    y = x * held.doubled
    del held.doubled
    return y + held.scale, held.doubled


@case(lambda: (t(3),))
def an_abstract_class_refuses(x):
    try:
        Base()
    except TypeError:
        return x + 1


@case(lambda: (t(3),))
def special_methods(x):
    a, b = Number(2), Number(3)
    c = a + b + 1
    c += 4
    return (
        c(x) + (5 + a).n,
        (x.shape[0] * a).n,
        a == Number(2),
        a != b,
        a < b,
        bool(Number(0)),
        [10, 20, 30][a],
        -a.n,
        (-a).n,
        2 in a,
        a["key"],
        repr(a),
        f"{a:x}",
        len(a),
        {a: 1}[Number(2)],
        sorted([b, a])[0].n,
        max(a, b).n,
    )


@case(lambda: (t(3),))
def an_operator_that_refuses(x):
    try:
        Number(2) * "a"
    except TypeError as error:
        return x + 1, str(error)


@case(lambda: (t(3), Ranked(2), Ranked(3)))
def a_total_order(x, a, b):
    return x + (a <= b) + (a >= b), a > b


@case(lambda: (t(3, grad=True), 3), lambda: (t(3, grad=True), 4))
def a_function_of_autograd(x, by):
    return Scaled.apply(x, by) * 2


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def a_function_that_sets_up_its_context(x, y):
    a, b = SetUp.apply(x, y)
    return a + b


@case(lambda: (t(3, grad=True),))
def a_function_that_marks(x):
    return Marked.apply(x) + 1


@case(lambda: (t(3, grad=True),))
def a_function_in_place(x):
    return InPlace.apply(x * 1) + 1


@case(lambda: (t(3),))
def class_attributes_read_and_shadowed(x):
    held = Left()
    before = held.scale
    held.scale = 5
    return x * held.scale + before + Left.scale, "scale" in vars(held), type(held).__name__, held.__class__ is Left


@case(lambda: (t(3),))
def methods_as_values(x):
    held = Right()
    method = held.apply
    unbound = Right.apply
    return method(x) + unbound(held, x), method.__self__ is held, method.__func__ is unbound, [f(x) for f in (held.apply, held.twice)][1]


@case(lambda: (t(3), Number(2)), lambda: (t(3), Number(4)))
def an_object_that_is_called(x, number):
    return number(x) + number.n, x[:number]


@case(lambda: (t(3),))
def objects_in_sets_and_dicts(x):
    table = {Number(1): "a", Number(2): "b"}
    return x + len({Number(1), Number(1), Number(3)}), table[Number(2)], Number(3) in table


@case(lambda: (t(3),))
def instances_asked(x):
    held = Both()
    return x + isinstance(held, Base), isinstance(held, (int, Right)), issubclass(Both, Left), isinstance(3, typing.Hashable), type(held) is Both


@case(lambda: (t(3), Left()), lambda: (t(3), Both()))
def the_dict_of_an_object_follows_it(x, held):
    members = held.__dict__
    held.extra = 5
    before = len(members), "extra" in members, members["extra"]
    members["other"] = x + 1
    members.update(more=2)
    had = members.pop("extra")
    return held.other + held.more, before, had, sorted(members), hasattr(held, "extra"), members is held.__dict__


@case(lambda: (t(3),))
def the_dict_of_a_new_object_follows_it(x):
    held = Left()
    members = vars(held)
    held.extra = 5
    members["other"] = x + 1
    del members["extra"]
    return held.other, members == {"other": held.other}, members.get("extra"), members.setdefault("n", 4), held.n


@case(lambda: (t(3),))
def texts_of_exceptions(x):
    return x + 1, repr(ValueError(("a",))), repr(KeyError("k")), str(KeyError("k")), repr(OSError(1, "b")), repr(ValueError())


class Plain:
    def __init__(self):
        self.n = 1


class OwnAttributes(dict):
    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


@case(lambda: (t(3), Plain()))
def views_of_attributes_follow_the_object(x, held):
    names, values = vars(held).keys(), vars(held).values()
    held.k = 4
    return x + sum(values), list(names), len(names), "k" in names, dict(vars(held))


@case(lambda: (t(3), Plain()))
def attributes_added_while_they_are_iterated_over(x, held):
    try:
        for name in vars(held):
            setattr(held, name + "_", 2)
    except RuntimeError as error:
        return x + 1, str(error)
    return x


@case(lambda: (t(3), Plain(), Plain()))
def a_dict_that_two_objects_share(x, first, second):
    second.__dict__ = first.__dict__
    second.n = 9
    return x + first.n


@case(lambda: (t(3), OwnAttributes(a=1)))
def a_dict_that_is_its_own_dict(x, held):
    held.b = 5
    held["c"] = 7
    return x + held.a + held["b"] + held.c, held, list(held)


@case(lambda: (t(3),))
def a_dict_made_that_is_its_own_dict(x):
    held = OwnAttributes(a=1)
    held.b = 5
    held["c"] = 7
    return x + held.a + held["b"] + held.c, held, list(held)


class Shape:
    """As paths of the standard library do, it makes an instance of a class derived from it."""

    def __new__(cls, *sizes):
        return object.__new__(Square if cls is Shape and len(sizes) == 1 else cls)

    def __init__(self, *sizes):
        self.sizes = sizes

    def area(self):
        return self.sizes[0] * self.sizes[1]


class Square(Shape):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.is_square = True

    def area(self):
        return self.sizes[0] ** 2


class Borrowed:
    def __new__(cls, *sizes):
        return Shape(*sizes)

    def __init__(self, *sizes):
        raise RuntimeError("what is of another class is not initialised again")


@case(lambda: (t(3),))
def an_instance_of_a_derived_class_is_initialised(x):
    square, other = Shape(3), Shape(2, 5)
    return x * square.area() + other.area(), type(square).__name__, square.is_square, type(other).__name__


@case(lambda: (t(3),))
def an_instance_of_another_class_is_not_initialised_again(x):
    made = Borrowed(4)
    return x + made.area(), type(made).__name__


@case(lambda: (t(3),))
def an_instance_of_a_derived_class_over_a_break(x):
    square = Shape(3)
    torch._dynamo.graph_break()
    return x * square.area(), vars(square)


@case(lambda: (t(3),))
def paths_made_and_taken_apart(x):
    path = pathlib.PurePosixPath("folder", "sub", "name.txt")
    return x + len(path.parts), str(path.with_suffix(".py")), path.name, path.stem, str(path.parent / "other")
