"""Things that hide things: classes over tensors that are written, shown or returned; attributes of classes and of values; nested overrides."""

import collections
import contextlib
import functools
import types

import torch
from capture.cases import Reuse, case, t
from torch.overrides import TorchFunctionMode


class Sub(torch.Tensor):
    tag = "sub"


class Counted(torch.Tensor):
    count = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.count = cls.count + 1
        return super().__torch_function__(func, types, args, kwargs or {})


class Metered(torch.Tensor):
    """A tensor with a unit that its results inherit."""

    @staticmethod
    def __new__(cls, data, unit="m"):
        made = torch.Tensor._make_subclass(cls, data)
        made.unit = unit
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        units = [arg.unit for arg in args if isinstance(arg, cls) and hasattr(arg, "unit")]
        if isinstance(result, cls) and units:
            result.unit = units[0]
        return result


def sub(*shape, grad=False):
    return t(*shape, grad=grad).as_subclass(Sub)


@case(lambda: (sub(2, 3),))
def view_of_a_subclass_written(x):
    y = x[0]
    y.add_(1)
    x.view(-1)[5] = 7
    return x * 1, y, type(y) is Sub


@case(lambda: (sub(3), t(3)))
def plain_tensor_written_from_a_subclass(x, y):
    y.copy_(x)
    y += x
    return y, type(y) is torch.Tensor


@case(lambda: (sub(3),))
def subclass_returned_as_it_is(x):
    return x, x.detach(), x.as_subclass(Sub) is x


@case(lambda: (sub(3, grad=True),))
def subclass_with_gradients(x):
    y = (x * x).sum()
    return y, y.requires_grad, x.is_leaf, type(y) is Sub


@case(lambda: (t(3).as_subclass(Counted),), reuse=Reuse.FREE)
def class_that_counts_calls(x):
    before = Counted.count
    y = x + 1
    z = y * 2
    seen = Counted.count - before
    Counted.count = before
    return z, seen > 1


@case(lambda: (Metered(t(3), "kg"),), lambda: (Metered(t(3), "s"),))
def units_inherited(x):
    y = (x + 1) * 2
    return y, y.unit, torch.sin(y).unit, x.sum().unit


@case(lambda: (t(3),))
def units_made_inside(x):
    y = Metered(x, "s")
    return y * 2, (y * 2).unit, isinstance(y, Metered)


@case(lambda: (sub(3), sub(3)))
def subclasses_compared(x, y):
    return x is y, (x == y).shape, torch.equal(x, x), x.allclose(x), [x] == [x]


@case(lambda: (sub(3),))
def subclass_as_a_key(x):
    table = {x: 1}
    return table[x], x in table, len({x, x})


@case(lambda: (sub(3),))
def subclass_copied(x):
    return x.clone(), type(x.clone()) is Sub, torch.zeros_like(x), type(torch.zeros_like(x)) is Sub, x.new_ones(2), x.to(torch.float64), x.float() is x


@case(lambda: (sub(3), t(3)), lambda: (t(3), sub(3)), lambda: (sub(3), sub(3)))
def operands_of_both_kinds(x, y):
    return x + y, y - x, x @ y, torch.stack([x, y]), torch.where(x > 0, x, y), torch.maximum(x, y)


@case(lambda: (sub(4),))
def subclass_split(x):
    a, b = x.chunk(2)
    c, d = torch.split(x, 2)
    return a + d, type(c) is Sub, [type(row) is Sub for row in x.view(2, 2)]


@case(lambda: (sub(3),))
def subclass_reversed_operators(x):
    return 1 + x, 2 - x, 3 * x, 1 / x, 2**x, -x, abs(x), 2 > x, 1 == x, 7 // x, 5 % x


@case(lambda: (sub(3), 2), lambda: (sub(3), 3), lambda: (sub(4), 3))
def subclass_and_numbers(x, n):
    return x * n + x.shape[0] + len(x) + x.dim() + x.numel() + x.size(0)


class Chatty(TorchFunctionMode):
    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


@case(lambda: (t(3),))
def mode_that_notes(x):
    log = []
    with Chatty(log):
        y = torch.sin(x) + 1
        z = y.reshape(3, 1) * 2
    torch.cos(x)
    return z, log


@case(lambda: (t(3),))
def mode_that_notes_attributes(x):
    log = []
    with Chatty(log):
        n = x.shape[0]
        kind = x.dtype
        y = x[0] + n
        x.requires_grad
    return y, log, str(kind)


@case(lambda: (t(3),))
def mode_around_functional(x):
    log = []
    with Chatty(log):
        y = torch.nn.functional.relu(x)
        z = torch.nn.functional.softmax(y, dim=0)
        w = torch.zeros(2)
    return y + z, w, log


@case(lambda: (sub(3),))
def mode_and_a_subclass(x):
    log = []
    with Chatty(log):
        y = x * 2
    return y, type(y) is Sub, log


@case(lambda: (t(3),))
def mode_left_by_an_exception(x):
    log = []
    try:
        with Chatty(log):
            torch.sin(x)
            raise ValueError
    except ValueError:
        y = torch.cos(x)
    return y, log


@case(lambda: (t(3),))
def mode_in_a_generator(x):
    log = []

    @contextlib.contextmanager
    def noted():
        with Chatty(log):
            yield

    with noted():
        y = torch.sin(x)
    return y + torch.cos(x), log


class Config:
    level = 1
    names = ("a",)

    @classmethod
    def bump(cls):
        cls.level += 1
        return cls.level


class Special(Config):
    pass


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_attribute_through_a_base(x):
    before = Config.level
    Config.level = 5
    a = Special.level, Special().level, Config().level
    Special.level = 7
    b = Special.level, Config.level
    del Special.level
    Config.level = before
    return x + sum(a) + sum(b), Special.level


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_attribute_bumped(x):
    before = Config.level
    n = Config.bump() + Config.bump()
    Config.level = before
    return x * n, Config.level


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_attribute_kept(x):
    Config.level = 3
    result = x * Config.level
    Config.level = 1
    return result


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_attribute_and_an_instance(x):
    held = Config()
    held.level = 4
    Config.level = 9
    a = held.level
    del held.level
    b = held.level
    Config.level = 1
    return x + a + b


class Id(int):
    pass


class Label(str):
    def __repr__(self):
        return f"<{str(self)}>"


class Doubled(int):
    def __add__(self, other):
        return int(self) * 2 + other


@case(lambda: (t(3), Id(2)), lambda: (t(3), 2), lambda: (t(3), Id(3)))
def number_of_a_class_and_a_plain_one(x, n):
    return x * n, type(n) is int, {2: "two", 3: "three"}[n]


@case(lambda: (t(3), Label("q")))
def text_with_its_own_repr(x, name):
    return x + len(name), repr(name), f"{name!r}", [name]


@case(lambda: (t(3), Doubled(3)))
def number_with_its_own_operator(x, n):
    return x + (n + 1)


def tagged(value, **held):
    made = Id(value)
    made.__dict__.update(held)
    return made


@case(lambda: (t(3), tagged(2, unit="m")), lambda: (t(3), tagged(2, unit="s")), lambda: (t(3), tagged(2)))
def number_with_attributes(x, n):
    return x * n, getattr(n, "unit", None)


@case(lambda: (t(3),))
def number_given_an_attribute(x):
    n = Id(4)
    n.unit = "m"
    return x * n, n.unit


class Celsius(float):
    def __new__(cls, value, scale=1):
        made = super().__new__(cls, value * scale)
        return made

    @property
    def kelvin(self):
        return self + 273.15


@case(lambda: (t(3),))
def float_with_its_own_new(x):
    warm = Celsius(20, scale=2)
    return x + warm.kelvin, type(warm) is Celsius, warm > 30, Celsius(1) == 1.0


class Point(tuple):
    def __init__(self, items):
        self.seen = len(items)


@case(lambda: (t(3),))
def tuple_with_its_own_init(x):
    point = Point((x, 1))
    return point[0] * point.seen


@case(lambda: (t(3),), lambda: (t(4),))
def rows_reversed_and_written(x):
    y = x.view(-1, 1)
    for row in reversed(y):
        row.add_(1)
    return x * 1


@case(lambda: (t(4), torch.tensor(1)))
def picked_and_only_read(x, n):
    y = x[n]
    return y * 2 + x[n + 1], x.sum()


@case(lambda: (t(4), torch.tensor(1)))
def picked_then_the_source_is_written(x, n):
    y = x[n]
    x.add_(1)
    return y * 2


@case(lambda: (t(4, 4), torch.tensor(1)))
def picked_view_held_in_a_list(x, n):
    rows = [x[n], x[n + 1]]
    return rows


@case(lambda: (t(4), torch.tensor([2])))
def index_of_one_element_is_a_copy(x, n):
    y = x[n]
    y.add_(1)
    return x * 1, y


class Registry(dict):
    def __missing__(self, key):
        return key * 2


@case(lambda: (t(3),))
def ordered_dict_with_attributes(x):
    held = collections.OrderedDict(a=x)
    held.note = 3
    return held["a"] * held.note, held


@case(lambda: (t(3),))
def functions_bound_by_hand(x):
    def scale(self, by):
        return self * by

    return scale.__get__(x)(3), scale.__get__(2, int)(4), scale.__call__(x, 2), types.MethodType(scale, x)(5)


@case(lambda: (t(3),))
def things_that_cannot_be_called(x):
    found = []
    for thing in (None, 3, "a", 1.5, (), torch.float32):
        try:
            thing()
        except TypeError as error:
            found.append(str(error))
    return x + len(found), found


@functools.singledispatch
def sized(value):
    return 0


@sized.register(list)
@sized.register(tuple)
def _(value):
    return len(value)


@sized.register(torch.Tensor)
def _(value):
    return value.numel()


@case(lambda: (t(3), [1, 2]), lambda: (t(3), (1,)), lambda: (t(3), "a"))
def dispatched_by_class(x, value):
    return x * sized(value) + sized(x)


@torch._dynamo.allow_in_graph
def allowed(x):
    return x * 2


@case(lambda: (sub(3),))
def allowed_function_of_a_subclass(x):
    y = allowed(x)
    return y, type(y) is Sub


@case(lambda: (sub(3, grad=True),))
def checkpoint_of_a_subclass(x):
    y = torch.utils.checkpoint.checkpoint(lambda v: torch.sin(v) * 2, x, use_reentrant=False)
    return y, type(y) is Sub


@case(lambda: (t(2, 3), sub(3)))
def vmap_over_a_subclass_outside(x, y):
    try:
        z = torch.func.vmap(lambda row: row + y)(x)
    except Exception as error:
        return type(error).__name__
    return z, type(z) is Sub


@case(lambda: ([sub(3), sub(3)],))
def foreach_of_subclasses(xs):
    ys = torch._foreach_mul(xs, 2)
    return ys, [type(y) is Sub for y in ys]


@case(lambda: (sub(3),))
def hook_of_a_subclass(x):
    y = x * 2
    return torch.Tensor.sin(y), Sub.sin(y), getattr(torch.Tensor, "cos")(x), type(torch.Tensor.sin(y)) is Sub


@case(lambda: (t(3),), reuse=Reuse.FREE)
def getters_shown(x):
    class Seen(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func == torch.Tensor.shape.__get__:
                return (9,)
            return func(*args, **(kwargs or {}))

    with Seen():
        n = x.shape
    return n, x.shape


@case(lambda: (t(3, grad=True),))
def mode_that_is_shown_a_switch(x):
    log = []
    with Chatty(log):
        with torch.no_grad():
            y = x * 2
        torch.set_grad_enabled(True)
        z = x + y
    return z, log


@case(lambda: (t(3, grad=True) * 2,))
def class_given_after_a_break_without_gradients(x):
    with torch.no_grad():
        torch._dynamo.graph_break()
        y = x * 2
    return x.as_subclass(Sub), y


@case(lambda: (sub(3, grad=True),))
def subclass_met_without_gradients(x):
    with torch.no_grad():
        torch._dynamo.graph_break()
        asked = x.requires_grad
        with torch.enable_grad():
            y = x * 2
    return y, asked, y.requires_grad
