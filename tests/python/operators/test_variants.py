"""Every way in which torch's functions are written, on some of the OpInfos; `python -m operators.variants` takes all."""

import pytest

from operators import variants
from operators.conformance import opinfos

# Every fiftieth, so that all kinds of functions are among them, and methods whose receiver is not their operator's first argument.
SOME = sorted({*[name for name in opinfos() if name not in variants.LEFT_OUT][::50], "where", "polygamma.polygamma_n_1"} & set(opinfos()))


@pytest.mark.parametrize("name", SOME)
def test_functions_methods_and_operators_do_what_they_do_in_eager_mode(name):
    calls, differences = variants.check(opinfos()[name], 3)
    assert differences == [] and calls
