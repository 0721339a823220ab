"""Strings and formatting."""

import string

import torch
from capture.cases import case, t


@case(lambda: (t(3), "abc", 2.5), lambda: (t(3), "xyz", -1.0))
def f_string(x, name, value):
    return x + 1, f"{name} has {value:.2f} in {x.shape[0]} rows, {name!r:>8} {value=}"


@case(lambda: (t(3), 5, 3))
def nested_format_specification(x, width, places):
    return x * width, f"{3.14159:{width + 5}.{places}f}|{'s':^{width}}|{255:#x}|{1234567:,}"


@case(lambda: (t(2, 3),), lambda: (t(4, 5),))
def f_string_of_metadata(x):
    return x * 2, f"{x.shape} {x.dtype} {x.device} {tuple(x.shape)} {x.dim()}"


@case(lambda: (t(3), "  Some Text  "))
def string_methods(x, text):
    s = text.strip()
    return x + len(s), [s.lower(), s.upper(), s.replace("e", "E"), s.split(), s.title(), s.swapcase(), s.center(20, "*")]


@case(lambda: (t(3), "layer.3.weight"), lambda: (t(3), "head.bias"))
def branch_on_a_string(x, name):
    if name.startswith("layer") and name.endswith("weight"):
        return x * int(name.split(".")[1])
    return x + len(name.partition(".")[2])


@case(lambda: (t(3), "a,b,c"))
def split_and_join(x, text):
    parts = text.split(",")
    return x * len(parts), "-".join(reversed(parts)), text.rsplit(",", 1), "a\nb".splitlines()


@case(lambda: (t(3), "abc"))
def string_as_a_sequence(x, s):
    return x + s.index("b"), s[0], s[-1], s[::-1], s * 2, s + "d", "b" in s, [c for c in s], max(s)


@case(lambda: (t(3), "abc"))
def string_predicates(x, s):
    return x, s.isalpha(), s.isdigit(), s.islower(), "".isspace(), "12".isnumeric(), "a_1".isidentifier()


@case(lambda: (t(3), 7))
def percent_formatting(x, n):
    return x + n, "%d items of %s, %5.1f%%" % (n, "kind", 99.5), "%(a)s" % {"a": 1}


@case(lambda: (t(3), 7))
def format_method(x, n):
    return x * n, "{} {0}".replace("{0}", "z").format(n), "{a:>4}{b}".format(a=1, b=[n]), "{0[1]}".format([1, 2])


@case(lambda: (t(3),))
def string_comparison(x):
    return x, "a" < "b", "abc" == "ab" + "c", "a" != "b", sorted(["b", "a", "C"], key=str.lower)


@case(lambda: (t(3), "equation", "ij,jk->ik"))
def einsum_from_a_string(x, name, equation):
    left, right = equation.split("->")
    y = torch.einsum(equation, torch.ones(2, 3), x.repeat(3, 1))
    return y, left, right, name


@case(lambda: (t(3),))
def bytes_and_codes(x):
    return x + ord("a"), chr(98), b"ab"[0], "é".encode(), b"ab".decode(), bytes([1, 2])


@case(lambda: (t(3),))
def find_and_count(x):
    s = "banana"
    return x * s.count("an"), s.find("nan"), s.rfind("a"), s.find("z"), s.removeprefix("ba"), s.removesuffix("na")


@case(lambda: (t(3),))
def missing_substring_raises(x):
    return x + "abc".index("z")


@case(lambda: (t(3), "ab"), lambda: (t(3), "cd"))
def string_keys_built_up(x, prefix):
    table = {f"{prefix}.{n}": n for n in range(3)}
    return x * table[prefix + ".2"], list(table)


@case(lambda: (t(3),))
def repr_of_plain_values(x):
    return x, repr([1, "a", None, (1,), {"k": 2.0}]), str(True), repr(1e20), str(1 / 3)


@case(lambda: (t(3),))
def translate_and_template(x):
    table = str.maketrans("abc", "xyz")
    return x, "aabbcc".translate(table), string.Template("$a-$b").substitute(a=1, b=2), string.ascii_lowercase[:3]


@case(lambda: (t(2),))
def text_of_a_tensor(x):
    return x + 1, str(torch.ones(2)), f"{torch.zeros(1).item():.1f}"


@case(lambda: (t(3), "3"))
def parse_numbers(x, text):
    return x * int(text) + float("2.5"), int("ff", 16), int("0b11", 0), float("inf"), float("1e-3")


@case(lambda: (t(3),))
def padding(x):
    return x, "7".zfill(3), "a".ljust(3, "."), "a".rjust(3), "a\tb".expandtabs(4), "x".join(["1"])
