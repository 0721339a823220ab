"""Breaks Inductor on purpose: PYRITE_TEST_BUG says which operators and how, such as `relu:accuracy` or `relu:accuracy,log1p:accuracy`."""

import os

import torch._inductor.config

for bug in os.environ["PYRITE_TEST_BUG"].split(","):
    operator, how = bug.split(":")
    setattr(torch._inductor.config.cpp, f"inject_{operator}_bug_TESTING_ONLY", how)
