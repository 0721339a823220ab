"""Classes derived from Tensor and Parameter as users write them: attributes, constructors, class methods, what results are."""

import torch
from capture.cases import Reuse, case, t
from torch import nn
from torch.nn.parameter import Buffer


class Tagged(torch.Tensor):
    """Made with a tag of its own."""

    @staticmethod
    def __new__(cls, data, tag="none"):
        return torch.Tensor._make_subclass(cls, data)

    def __init__(self, data, tag="none"):
        self.tag = tag

    def described(self):
        return f"{self.tag}:{self.dim()}"


class Meters(torch.Tensor):
    unit = "m"

    @classmethod
    def of(cls, data):
        return data.as_subclass(cls)

    @property
    def in_kilometers(self):
        return self / 1000

    def __add__(self, other):
        return super().__add__(other) * 1

    def norm(self, *args, **kwargs):
        return super().norm(*args, **kwargs) + 1


class Kilometers(Meters):
    unit = "km"


class Keeping(torch.Tensor):
    """Hands its notes on to results."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        note = next((arg.note for arg in args if isinstance(arg, Keeping) and hasattr(arg, "note")), None)
        if isinstance(result, Keeping) and note is not None:
            result.note = note
        return result


class Replaced(torch.Tensor):
    """Has its own idea of some functions."""

    HANDLED = {}

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in cls.HANDLED:
            return cls.HANDLED[func](*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


def implements(function):
    def register(implementation):
        Replaced.HANDLED[function] = implementation
        return implementation

    return register


@implements(torch.mean)
def mean(x, dim=None):
    return torch.sum(x) * 100


@implements(torch.nn.functional.relu)
def relu(x, inplace=False):
    return x + 1


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.sin:
            raise TypeError("no sines here")
        return super().__torch_function__(func, types, args, kwargs or {})


class Silent(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    def doubled(self):
        return self * 2


class Weight(nn.Parameter):
    """A parameter with attributes of its own."""

    def __new__(cls, data, requires_grad=True, scale=1.0):
        made = super().__new__(cls, data, requires_grad)
        made.scale = scale
        return made

    def scaled(self):
        return self * self.scale


class Loading(nn.Parameter):
    @property
    def loader(self):
        return "mine"


class Mixin:
    def twice(self):
        return self * 2


class Mixed(Mixin, torch.Tensor):
    pass


def meters(*shape, grad=False):
    return t(*shape, grad=grad).as_subclass(Meters)


def noted(*shape, note="n"):
    made = t(*shape).as_subclass(Keeping)
    made.note = note
    return made


class WithWeight(nn.Module):
    def __init__(self, scale=2.0):
        super().__init__()
        torch.manual_seed(0)
        self.weight = Weight(torch.randn(3), scale=scale)

    def forward(self, x):
        return x * self.weight.scaled()


class WithBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = Buffer(torch.arange(3.0))
        self.passing = Buffer(torch.ones(3), persistent=False)

    def forward(self, x):
        self.kept.add_(1)
        return x + self.kept * self.passing


class MyBuffer(torch.Tensor):
    pass


class WithMyBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.arange(3.0).as_subclass(MyBuffer))

    def forward(self, x):
        return x * self.kept


@case(lambda: (Tagged(t(3), "a"),), lambda: (Tagged(t(3), "b"),))
def tag_of_an_argument(x):
    return x * 2 if x.tag == "a" else x * 3


@case(lambda: (t(3),))
def made_by_its_class(x):
    y = Tagged(x, "made")
    return y + 1, y.tag


@case(lambda: (t(3),))
def made_and_described(x):
    return Tagged(x * 2, tag="m").described()


@case(lambda: (Tagged(t(3), "a"),))
def tag_of_a_result(x):
    y = x + 1
    return hasattr(y, "tag"), type(y) is Tagged, y


@case(lambda: (meters(3),))
def own_operator(x):
    return x + x, x + 1, 1 + x


@case(lambda: (meters(3),))
def own_method_of_torchs_name(x):
    return x.norm(), torch.norm(x)


@case(lambda: (meters(3),))
def own_property(x):
    return x.in_kilometers.unit, x.in_kilometers


@case(lambda: (t(3),))
def made_by_a_class_method(x):
    return Meters.of(x) * 2, Kilometers.of(x).unit


@case(lambda: (meters(3), t(3).as_subclass(Kilometers)))
def derived_and_base(x, y):
    return type(x * y).__name__, type(y * x).__name__, isinstance(y, Meters), x * y


@case(lambda: (meters(3, grad=True),))
def gradient_of_a_class(x):
    return (x * x).sum()


@case(lambda: (noted(3), t(3)), lambda: (noted(3, note="other"), t(3)))
def note_of_results(x, y):
    z = x * y
    return z.note, z


@case(lambda: (noted(3),))
def note_through_a_break(x):
    y = x + 1
    print(y.note)
    return (y * 2).note


@case(lambda: (t(4).as_subclass(Replaced),))
def replaced_functions(x):
    return torch.mean(x), torch.nn.functional.relu(x), torch.sin(x)


@case(lambda: (t(4).as_subclass(Replaced),))
def replaced_function_by_name(x):
    return torch.mean(x, dim=0), x.mean()


@case(lambda: (t(4).as_subclass(Refusing),))
def refused_function(x):
    try:
        torch.sin(x)
    except TypeError as error:
        return str(error), torch.cos(x)


@case(lambda: (t(4).as_subclass(Refusing),))
def refused_to_the_caller(x):
    return torch.sin(x + 1)


@case(lambda: (t(3).as_subclass(Silent),))
def silent_class(x):
    y = x * 2
    return type(y) is torch.Tensor, x.doubled(), y


@case(lambda: (t(3).as_subclass(Mixed),))
def method_of_a_mixin(x):
    return x.twice() + 1


@case(lambda: (t(3).as_subclass(Mixed),))
def asked_for_attributes(x):
    return getattr(x, "missing", 7), hasattr(x, "twice"), x.shape


@case(lambda: (WithWeight(), t(3)), lambda: (WithWeight(3.0), t(3)))
def weight_with_a_scale(module, x):
    return module(x)


@case(lambda: (Weight(torch.ones(3), scale=4.0), t(3)))
def weight_as_an_argument(w, x):
    return isinstance(w, nn.Parameter), isinstance(w, Weight), type(w).__name__, w.scale, x * w


@case(lambda: (Weight(torch.ones(3)), t(3)))
def class_of_what_a_weight_gives(w, x):
    y = w * x
    return type(y) is torch.Tensor, y.requires_grad, w.is_leaf, y


@case(lambda: (Loading(torch.ones(3)),))
def property_of_a_weight(w):
    return w.loader, w + 1


@case(lambda: (Weight(torch.ones(3)), t(3)))
def weight_written_without_recording(w, x):
    with torch.no_grad():
        w.add_(1)
    return w * x


@case(lambda: (Weight(torch.ones(3)),))
def weight_detached(w):
    d = w.detach()
    return type(d).__name__, d.requires_grad, d * 2, w.data + 1


@case(lambda: (WithBuffer(), t(3)))
def buffers_of_torch(module, x):
    return module(x), isinstance(module.kept, Buffer)


@case(lambda: (WithMyBuffer(), t(3)))
def buffer_of_a_class(module, x):
    return module(x), type(module.kept).__name__


@case(lambda: (nn.LazyLinear(2), t(4, 3)), reuse=Reuse.FREE)
def lazy_layer(layer, x):
    return layer(x).shape


@case(lambda: (meters(4),))
def pieces_of_a_class(x):
    a, b = x.chunk(2)
    return type(a).__name__, a * b, x.unbind()[0], list(x)[1]


@case(lambda: (meters(3),))
def class_taken_off(x):
    y = x.as_subclass(torch.Tensor)
    return type(y) is torch.Tensor, y * 2, torch.Tensor.add(x, 1)


@case(lambda: (meters(3), {"a": meters(2)}))
def classes_in_containers(x, data):
    data["b"] = x * 2
    return [data["a"] + 1, data["b"]], {type(value).__name__ for value in data.values()}


@case(lambda: (meters(3),))
def attribute_hung_on(x):
    x.extra = 5
    y = x * x.extra
    y.more = x.extra + 1
    return y, y.more


@case(lambda: (meters(3),))
def deleted_attribute(x):
    x.extra = 5
    del x.extra
    return hasattr(x, "extra"), x + 1


@case(lambda: (meters(3),), reuse=Reuse.FREE)
def class_made_inside(x):
    class Local(torch.Tensor):
        def tripled(self):
            return self * 3

    return (x.as_subclass(Local).tripled() + 1).as_subclass(torch.Tensor)


@case(lambda: (meters(2, 3),))
def layers_on_a_class(x):
    torch.manual_seed(0)
    return nn.functional.linear(x, torch.ones(2, 3)), nn.functional.softmax(x, -1)


@case(lambda: (t(4, 3, grad=True),), lambda: (t(4, 3),))
def leaves_of_views_that_are_not_recorded(x):
    with torch.no_grad():
        parts = [*x.chunk(2), *x.split(3), *x.unbind(1), *x.tensor_split(2), x[0], *x.hsplit(3)]
    return [part.is_leaf for part in parts], [part.requires_grad for part in parts], parts


@case(lambda: (t(4, 3, grad=True),), lambda: (t(4, 3),))
def leaves_of_views_of_a_result(x):
    y = x * 2
    with torch.no_grad():
        a, b = y.chunk(2)
        c = a.as_subclass(Meters)
        d = y.as_subclass(Meters).split(2)[1]
    return a.is_leaf, b.requires_grad, c.is_leaf, c.requires_grad, d.is_leaf, a, b, c, d


@case(lambda: (t(4, 3, grad=True),))
def leaves_of_views_that_are_recorded(x):
    a, b = (x * 2).chunk(2)
    c = a.as_subclass(Meters)
    return a.is_leaf, c.is_leaf, c.requires_grad, b, c


@case(lambda: (meters(4, grad=True),))
def leaves_of_a_class(x):
    with torch.no_grad():
        y = x.view(2, 2)
        z = x * 2
    return y.is_leaf, y.requires_grad, z.is_leaf, z.requires_grad, y, z
