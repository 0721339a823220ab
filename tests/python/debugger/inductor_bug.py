"""Breaks Inductor on purpose: PYRITE_TEST_BUG says which operators and how, such as `relu:accuracy` or `relu:accuracy,log1p:accuracy`."""

import os

import torch._inductor.config

for bug in os.environ["PYRITE_TEST_BUG"].split(","):
    operator, how = bug.split(":")
    for target in (torch._inductor.config.cpp, torch._inductor.config.triton):
        if hasattr(target, name := f"inject_{operator}_bug_TESTING_ONLY"):
            setattr(target, name, how)
