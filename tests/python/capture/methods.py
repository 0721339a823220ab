"""Every method of Python's own classes, with arguments of every kind: `python -m capture.methods list deque --help`.

Nobody here chose which method meets which argument. A frame makes an object, calls one method of it by its name, operators included, and returns what
that gives or raises, and the object. The captured frame has to return what plain Python does. The exit code is 1 when one differs.
"""

import argparse
import collections
import itertools
import sys
import types
import warnings
import zlib

import torch

import pyrite


class Items(list):
    pass


class Table(dict):
    pass


class Members(set):
    pass


class Line(collections.deque):
    pass


class Text(str):
    pass


class Whole(int):
    pass


Pair = collections.namedtuple("Pair", "first second")

# What makes an object of each class.
OBJECTS = {
    "list": "[3, 1, 2]",
    "tuple": "(3, 1, 2)",
    "dict": "{'a': 1, 2: 3}",
    "set": "{1, 2, 3}",
    "frozenset": "frozenset((1, 2))",
    "deque": "collections.deque([1, 2, 3], 4)",
    "OrderedDict": "collections.OrderedDict(a=1, b=2)",
    "defaultdict": "collections.defaultdict(int, a=1)",
    "Counter": "collections.Counter('aab')",
    "mappingproxy": "types.MappingProxyType({'a': 1})",
    "dict_keys": "{'a': 1, 2: 3}.keys()",
    "dict_values": "{'a': 1}.values()",
    "dict_items": "{'a': 1}.items()",
    "str": "'abc'",
    "bytes": "b'ab'",
    "int": "5",
    "bool": "True",
    "float": "2.5",
    "complex": "1j",
    "range": "range(3)",
    "slice": "slice(1, 2)",
    "NoneType": "None",
    "generator": "(each for each in (1, 2))",
    "list_iterator": "iter([1, 2])",
    "Items": "Items([1, 2])",
    "Table": "Table(a=1)",
    "Members": "Members((1, 2))",
    "Line": "Line((1, 2))",
    "Text": "Text('ab')",
    "Whole": "Whole(3)",
    "Pair": "Pair(1, 2)",
}
ARGUMENTS = """
()|(1)|(-1)|('a')|(2.5)|(None)|(int)|([1, 2])|((3, 1, 2))|({'a': 1})|({1, 2})|(frozenset((1,)))|(iter((1, 2)))|(slice(0, 2))|(0, 1)|('a', 1)|(2, 0, 1)|(1, 2, -1)|(1, 2, 3)
""".strip().split("|")
# What speaks of the object's address, class or memory, or is no method of its own.
OUTSIDE = """
__class__ __class_getitem__ __delattr__ __dir__ __getnewargs__ __getstate__ __hash__ __init_subclass__ __new__ __reduce__ __reduce_ex__ __setattr__ __setstate__
__sizeof__ __subclasshook__
""".split()
# Where a difference is known, and why.
KNOWN = {
    ("OrderedDict", "move_to_end", "(None)"): "CPython raises a KeyError without the key",
    ("OrderedDict", "pop", "(None)"): "CPython raises a KeyError without the key",
    ("deque", "__reversed__", "()"): "the class of the iterator",
    ("Line", "__reversed__", "()"): "the class of the iterator",
}

FRAME = """
def frame(x):
    held = {made}
    try:
        given = held.{method}{arguments}
    except Exception as error:
        given = type(error).__name__, str(error)
    return x + 1, given, held
"""


def calls(names):
    """The calls of methods of these classes: class, method, arguments."""
    for name in names:
        held = eval(OBJECTS[name])
        methods = [each for each in dir(held) if each not in OUTSIDE and callable(getattr(held, each))]
        # Texts of these hold their addresses.
        if isinstance(held, (types.GeneratorType, type(iter([])))):
            methods = [each for each in methods if each not in ("__repr__", "__str__", "__format__")]
        yield from itertools.product([name], methods, ARGUMENTS)


def frame_of(name, method, arguments):
    space = dict(globals())
    exec(FRAME.format(made=OBJECTS[name], method=method, arguments=arguments), space)
    return space["frame"]


def shown(value):
    """A value as it is compared: without addresses."""
    if isinstance(value, collections.abc.Iterator):
        return type(value).__name__, [shown(each) for each in itertools.islice(value, 20)]
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [shown(each) for each in value]
    return type(value).__name__, " ".join(word for word in repr(value).split() if "0x" not in word)


def outcome(frame):
    try:
        result, given, held = frame(torch.ones(2))
        return result.tolist(), shown(given), shown(held)
    except Exception as error:
        return type(error).__name__, str(error)


def differing(names, every):
    """Calls whose captured frames differ from plain Python: what was called, and both outcomes. Then how many were made."""
    count = 0
    for call in calls(names):
        if call in KNOWN or zlib.crc32(" ".join(call).encode()) % every:
            continue
        count += 1
        frame = frame_of(*call)
        want = outcome(frame)
        have = outcome(pyrite.compile(frame, backend="eager"))
        if have != want:
            yield call, want, have
    yield None, count, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", default=list(OBJECTS), help=f"classes, of {', '.join(OBJECTS)}")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only one of N calls, always the same ones")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    *found, (_, count, _) = differing(given.name, given.every)
    for (name, method, arguments), want, have in found:
        print(f"{name}.{method}{arguments}\n    gives     {have}\n    should be {want}")
    print(f"{count} calls, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
