"""Breaks the kernels that Inductor generates for relu: PYRITE_TEST_KERNEL says how, `overrun`, `unwritten`, `nan`, `infinity`, `value` or
`fault`, or several of them with commas between.

The text of a generated module is changed before it is loaded, C++ and Triton alike, so a kernel that is taken out of it is broken by itself.
"""

import os
import re

from torch._inductor.codecache import PyCodeCache

WAYS = [way for way in os.environ.get("PYRITE_TEST_KERNEL", "").split(",") if way]

# In C++, the loop over elements and the operator itself; a vector kernel has both in other words than a scalar one.
RELU = re.compile(r"at::vec::clamp_min\((\w+), decltype\(\1\)\(0\)\)|max_propagate_nan\((\w+), decltype\(\2\)\(0\)\)|\((\w+) \* \(\3>0\)\)|std::max\((\w+), decltype\(\4\)\(0\)\)")


def broken_cpp(text, way):
    size = max([int(number) for number in re.findall(r"x\d+<static_cast<int64_t>\((\d+)L\)", text)] or [1])
    if way == "overrun":
        pointer = "in_out_ptr0" if "in_out_ptr0" in text else "out_ptr0"
        return re.sub(r"(extern \"C\"[^{]*\{)", rf"\1\n    {pointer}[{size}] = 1;", text, count=1)
    if way == "unwritten":
        return re.sub(r"(for\(int64_t x0=static_cast<int64_t>\()0L", r"\g<1>16L", text)
    value = {"nan": "(TMP - TMP) / (TMP - TMP)", "infinity": "TMP / (TMP - TMP)", "value": "TMP * TMP"}[way]
    return RELU.sub(lambda found: "(" + value.replace("TMP", next(filter(None, found.groups()))) + ")", text)


def broken_triton(text, way):
    def store(found):
        pointer, index, value, mask = found.groups()
        masked = "(x0 > 15)" if mask == "None" else f"({mask}) & (x0 > 15)"
        plain = f"tl.store({pointer} + ({index}), {value}, {mask})"
        return {
            "overrun": f"{plain}\n    tl.store({pointer} + ({index} + 8), {value}, {mask})",
            "unwritten": f"tl.store({pointer} + ({index}), {value}, {masked})",
            "nan": f"tl.store({pointer} + ({index}), {value} * float('nan'), {mask})",
            "infinity": f"tl.store({pointer} + ({index}), {value} + float('inf'), {mask})",
            "value": f"tl.store({pointer} + ({index}), {value} * {value} + 1, {mask})",
            "fault": f"tl.store({pointer} + ({index}).to(tl.int64) * 4294967296, {value}, {mask})",
        }[way]

    return re.sub(r"tl\.store\((\w+) \+ \(([^()]*)\), (\w+), (.*)\)$", store, text, flags=re.M)


def broken(text):
    for name in set(re.findall(r"^(\w*relu\w*) = async_compile\.", text, re.M)):
        found = re.search(rf"^{name} = async_compile\.(\w+)\(.*?^'''.*?\)$", text, re.M | re.S)
        change = broken_triton if found[1] == "triton" else broken_cpp
        kernel = found[0]
        for way in WAYS:
            kernel = change(kernel, way)
        text = text[: found.start()] + kernel + text[found.end() :]
    return text


write = PyCodeCache.write.__func__ if hasattr(PyCodeCache.write, "__func__") else PyCodeCache.write

if WAYS:
    PyCodeCache.write = classmethod(lambda cls, source, *words, **named: write(cls, broken(source), *words, **named))
