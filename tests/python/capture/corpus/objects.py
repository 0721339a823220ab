"""Classes and their objects: descriptors, metaclasses, slots, super, operators, attribute hooks, classes made inside."""

import abc
import contextlib
import types

import torch
from capture.cases import Reuse, case, t


class Vector:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Vector(self.x + (other.x if isinstance(other, Vector) else other))

    def __radd__(self, other):
        return Vector(other + self.x)

    def __mul__(self, by):
        return Vector(self.x * by) if isinstance(by, (int, float)) else NotImplemented

    __rmul__ = __mul__

    def __iadd__(self, other):
        self.x = self.x + other
        return self

    def __matmul__(self, other):
        return self.x @ other.x

    def __neg__(self):
        return Vector(-self.x)

    def __invert__(self):
        return self

    def __abs__(self):
        return Vector(self.x.abs())

    def __getitem__(self, index):
        return self.x[index]

    def __setitem__(self, index, value):
        self.x = self.x + value

    def __len__(self):
        return self.x.shape[0]

    def __bool__(self):
        return True

    def __call__(self, by=1):
        return self.x * by

    def __eq__(self, other):
        return isinstance(other, Vector) and len(self) == len(other)

    __hash__ = None

    def __lt__(self, other):
        return len(self) < len(other)

    def __divmod__(self, other):
        return self.x // other, self.x % other

    def __float__(self):
        return 2.5

    def __int__(self):
        return 7

    def __index__(self):
        return 1

    def __round__(self, digits=None):
        return digits

    def __pow__(self, n):
        return self.x**n

    def __rsub__(self, other):
        return other - self.x

    def __lshift__(self, other):
        return ("shift", other)


class Refuses:
    def __add__(self, other):
        return NotImplemented


class Base:
    kind = "base"

    def name(self):
        return "base"

    @classmethod
    def make(cls, *args):
        return cls(*args)

    @staticmethod
    def helper(x):
        return x + 1

    @property
    def size(self):
        return 1


class Middle(Base):
    def __init__(self, n=1):
        super().__init__()
        self.n = n

    def name(self):
        return "middle-" + super().name()

    @property
    def size(self):
        return super().size + self.n

    @size.setter
    def size(self, value):
        self.n = value


class Mixin(Base):
    def name(self):
        return "mixin-" + super().name()


class Leaf(Middle, Mixin):
    def name(self):
        return "leaf-" + super(Leaf, self).name()

    @classmethod
    def make(cls, *args):
        return super().make(*args)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Typed:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError("negative")
        setattr(instance, self.name, value)


class Checked:
    n = Typed()


class Lazy:
    def __get__(self, instance, owner):
        return owner.__name__


class Uses:
    lazy = Lazy()


class Dynamic:
    def __init__(self):
        self.log = []

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return len(name)
        raise AttributeError(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if name != "log":
            self.log.append(name)

    def __delattr__(self, name):
        self.log.append("del " + name)
        object.__delattr__(self, name)


class Intercepting:
    def __init__(self):
        self.a = 1

    def __getattribute__(self, name):
        if name == "b":
            return 42
        return super().__getattribute__(name)


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.by_meta = True
        return made

    def __len__(cls):
        return 3

    def __iter__(cls):
        return iter([1, 2])

    def __contains__(cls, item):
        return item == 1

    def __getitem__(cls, key):
        return key * 2

    @property
    def nick(cls):
        return cls.__name__.lower()

    def describe(cls):
        return "class " + cls.__name__


class WithMeta(metaclass=Meta):
    def __init__(self, n=0):
        self.n = n


class Shape(abc.ABC):
    registry = {}

    def __init_subclass__(cls, /, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.registry[tag] = cls

    @abc.abstractmethod
    def area(self): ...


class Square(Shape, tag="square"):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


class Generic:
    def __class_getitem__(cls, item):
        return (cls.__name__, item)


class Printed:
    def __repr__(self):
        return "Printed!"

    def __format__(self, spec):
        return f"<{spec}>"


class Sized:
    def __len__(self):
        return 0


class Counter:
    total = 0

    def __init__(self):
        type(self).total += 0
        self.__hidden = 3

    def hidden(self):
        return self.__hidden


@case(lambda: (t(3),))
def operators(x):
    v = Vector(x)
    w = v + v + 1
    return (w * 2).x, (2 * v).x, (1 + v).x, v @ v, (-v).x, abs(v).x, v(3), v[0], len(v), divmod(v, 2), v**2, 5 - v, v << 3, (~v).x


@case(lambda: (t(3),))
def operators_in_place(x):
    v = Vector(x)
    same = v
    v += 1
    v[0] = 2
    return v.x, same is v


@case(lambda: (t(3), Vector(torch.ones(3))))
def operators_from_outside(x, v):
    return (v + x).x, (x + v.x), v == Vector(x), v != Vector(x), v < v, not v, bool(v)


@case(lambda: (t(3),))
def operators_with_sum(x):
    return sum([Vector(x), Vector(x)], Vector(x)).x


@case(lambda: (t(3),))
def operators_that_refuse(x):
    out = []
    for broken in (lambda: Vector(x) * "a", lambda: Refuses() + 1, lambda: 1 + Refuses(), lambda: -Refuses(), lambda: Refuses() < 1, lambda: len(Refuses()), lambda: Refuses()[0], lambda: Refuses()(), lambda: iter(Refuses())):
        try:
            broken()
        except TypeError as error:
            out.append(str(error))
    return x * len(out), out


@case(lambda: (t(3),))
def conversions(x):
    v = Vector(x)
    return x * float(v) + int(v), [10, 20][v], round(v, 2), hasattr(v, "__hash__")


@case(lambda: (t(3),))
def unhashable(x):
    try:
        {Vector(x): 1}
    except TypeError as error:
        return x * 2, str(error)


@case(lambda: (t(3),))
def inheritance(x):
    leaf = Leaf.make(3)
    leaf.size = 5
    return x * leaf.size + leaf.n, leaf.name(), leaf.kind, Leaf.helper(1), isinstance(leaf, Mixin), Leaf.__mro__[1].__name__, issubclass(Leaf, Base)


@case(lambda: (t(3), Leaf(2)))
def inheritance_from_outside(x, leaf):
    leaf.size = leaf.size + 1
    return x * leaf.n, super(Leaf, leaf).name()


@case(lambda: (t(3), Slotted(2)))
def slots(x, s):
    s.b = 3
    y = x * s.a + s.b
    del s.b
    try:
        s.c = 1
    except AttributeError:
        y = y + 1
    return y, hasattr(s, "b")


@case(lambda: (t(3),))
def slots_made(x):
    s = Slotted(x)
    s.b = s.a + 1
    try:
        s.zzz = 1
    except AttributeError as error:
        return s.b, str(error)


@case(lambda: (t(3), Checked()))
def descriptors(x, c):
    c.n = 4
    try:
        c.n = -1
    except ValueError as error:
        x = x + len(str(error))
    return x * c.n, Checked.n.name, Uses().lazy, Uses.lazy


@case(lambda: (t(3),))
def attribute_hooks(x):
    d = Dynamic()
    d.a = 1
    d.b = 2
    del d.a
    try:
        d.nothing
    except AttributeError as error:
        x = x + len(str(error))
    return x * d.dyn_x, d.log, getattr(d, "nope", 3), hasattr(d, "dyn_y"), Intercepting().b + Intercepting().a


@case(lambda: (t(3), Dynamic()))
def attribute_hooks_from_outside(x, d):
    d.c = 3
    return x * d.dyn_abc, d.log


@case(lambda: (t(3),))
def metaclass(x):
    w = WithMeta(2)
    return x * w.n, w.by_meta, len(WithMeta), list(WithMeta), 1 in WithMeta, WithMeta[4], WithMeta.nick, WithMeta.describe(), type(WithMeta).__name__


@case(lambda: (t(3),))
def abstract_classes(x):
    try:
        Shape()
    except TypeError as error:
        x = x + len(type(error).__name__)
    return x * Square(3).area(), Shape.registry["square"] is Square


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_made_inside(x):
    class Local:
        scale = 3

        def __init__(self, y):
            self.y = y

        def scaled(self):
            return self.y * self.scale

    return Local(x).scaled(), Local.__name__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_made_inside_with_super(x):
    class Derived(Base):
        def name(self):
            return "derived-" + super().name()

    return x * 2, Derived().name(), Derived.helper(1)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_made_by_type(x):
    Made = type("Made", (Base,), {"kind": "made", "double": lambda self, y: y * 2})
    m = Made()
    return m.double(x), m.kind, m.name(), isinstance(m, Base)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def exception_class_made_inside(x):
    class Local(ValueError):
        pass

    try:
        raise Local("l")
    except ValueError as error:
        return x * 2, str(error), type(error).__name__


@case(lambda: (t(3),))
def generic_classes(x):
    return x * 2, Generic[int], list[int], dict[str, int], int | None


@case(lambda: (t(3),))
def texts(x):
    p = Printed()
    return x * 2, f"{p} {p!r} {p:abc}", str(p), [p].__repr__(), "%s" % p, "{}".format(p)


@case(lambda: (t(3),))
def truth_by_length(x):
    return x * 2, bool(Sized()), not Sized(), 1 if Sized() else 2, Sized() or 5


@case(lambda: (t(3),), reuse=Reuse.FREE)
def private_names(x):
    c = Counter()
    return x * c.hidden(), Counter.total, c._Counter__hidden


@case(lambda: (t(3),))
def class_attributes_shadowed(x):
    a, b = Base(), Base()
    a.kind = "own"
    return x * 2, a.kind, b.kind, Base.kind, "kind" in vars(a), "kind" in b.__dict__


@case(lambda: (t(3),))
def type_questions(x):
    return (
        x * 2,
        type(x) is torch.Tensor,
        type(Base()) is Base,
        Base().__class__.__name__,
        isinstance(Base, type),
        isinstance(3, (str, int)),
        isinstance(x, torch.Tensor | int),
        issubclass(bool, int),
        Base.__module__ == __name__,
        Base.name.__qualname__,
        callable(Base),
    )


@case(lambda: (t(3), types.SimpleNamespace(a=1)))
def objects_as_keys_and_members(x, n):
    b = Base()
    table = {b: 1}
    return x * table[b], b in [b], b in table, Base() in table, b == b, b != Base(), {b} == {b}


@case(lambda: (t(3),))
def methods_as_values(x):
    b = Middle(3)
    f, g = b.name, Base.name
    return x * 2, f(), g(b), b.name == b.name, b.name is b.name, [m() for m in (b.name, Base().name)]


@case(lambda: (t(3), Middle(1)))
def attributes_deleted(x, m):
    m.extra = 1
    del m.extra
    del m.n
    return x * 2, hasattr(m, "n"), m.__dict__


@case(lambda: (t(3), Middle(4)))
def dict_of_an_object(x, m):
    m.__dict__["z"] = 5
    held = vars(m)
    return x * held["n"] + m.z, sorted(held), m.__dict__.get("q", 1), list(m.__dict__.items())


class Managed:
    def __init__(self, log, swallow=()):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else None)
        return kind is not None and issubclass(kind, self.swallow)


@contextlib.contextmanager
def managed(log):
    log.append("in")
    try:
        yield len(log)
    except ValueError:
        log.append("caught")
    finally:
        log.append("out")


@case(lambda: (t(3),))
def managers(x):
    log = []
    with Managed(log) as a, Managed(log, (KeyError,)):
        x = x + len(a.log)
        raise KeyError
    with managed(log) as n:
        x = x * n
        raise ValueError
    return x, log


@case(lambda: (t(3),))
def manager_library(x):
    log = []
    with contextlib.suppress(KeyError):
        {}["a"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(Managed(log))
        stack.callback(log.append, "called")
        x = x + 1
    with contextlib.nullcontext(5) as five:
        x = x * five
    with contextlib.closing(types.SimpleNamespace(close=lambda: log.append("closed"))):
        pass
    return x, log


@case(lambda: (t(3),), reuse=Reuse.FREE)
def manager_as_decorator(x):
    log = []

    @managed(log)
    def f(y):
        log.append("body")
        return y * 2

    @torch.no_grad()
    def g(y):
        return y * 3

    return f(x) + g(x), log


@case(lambda: (t(3),))
def manager_held_over_a_break(x):
    log = []
    with managed(log):
        x = x + 1
        print("inside")
        x = x * 2
    return x, log


@case(lambda: (t(3),))
def manager_that_fails(x):
    log = []
    try:
        with Managed(log):
            raise ValueError("v")
    except ValueError as error:
        return x * 2, log, str(error)


@case(lambda: (t(3),))
def manager_returned_from(x):
    log = []

    def f():
        with Managed(log):
            return 5

    for i in range(3):
        with Managed(log):
            if i == 1:
                continue
            if i == 2:
                break
    return x * f(), log
