"""Breaks Inductor on purpose: PYRITE_TEST_BUG says which operator and how, such as `relu:accuracy`."""

import os

import torch._inductor.config

operator, how = os.environ["PYRITE_TEST_BUG"].split(":")
setattr(torch._inductor.config.cpp, f"inject_{operator}_bug_TESTING_ONLY", how)
