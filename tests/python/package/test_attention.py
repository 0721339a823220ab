"""Attention through `pyrite.compile` against eager: values, gradients and strides, at sizes around the kernels' blocks."""

import itertools

import pytest
import torch
import torch.nn.functional as F

import pyrite

# Sequences, heads, heads of keys, queries, keys, width.
SIZES = [(2, 4, 4, 6, 5, 8), (1, 3, 3, 130, 70, 16), (2, 4, 2, 33, 300, 64), (1, 2, 2, 1, 700, 32), (1, 1, 1, 257, 513, 24)]
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-10}


def heads(batch, count, rows, width, dtype, order):
    """Queries, keys or values with their heads outside of the rows, or inside of them as models have them."""
    if order == "heads inside":
        return torch.randn(batch, rows, count, width, dtype=dtype).transpose(1, 2).requires_grad_()
    return torch.randn(batch, count, rows, width, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_attention_and_its_gradients_are_those_of_eager(sizes, dtype):
    batch, count, shared, rows, keys, width = sizes
    torch.manual_seed(0)
    for order, kind in itertools.product(["heads outside", "heads inside"], ["plain", "causal", "bool mask", "mask"]):
        query = heads(batch, count, rows, width, dtype, order)
        key, value = (heads(batch, shared, keys, width, dtype, order) for _ in range(2))
        mask = {"bool mask": torch.rand(rows, keys) > 0.3, "mask": torch.randn(batch, 1, rows, keys, dtype=dtype)}.get(kind)

        def attention(q, k, v, mask=mask, causal=kind == "causal"):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=count != shared)

        results = []
        for function in (attention, pyrite.compile(attention, fullgraph=True)):
            output = function(query, key, value)
            torch.manual_seed(1)
            results.append([output, *torch.autograd.grad(output, (query, key, value), torch.randn(output.shape, dtype=dtype))])
        for name, eager, ours in zip(("output", "query's", "key's", "value's"), *results):
            torch.testing.assert_close(ours, eager, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype], msg=lambda m: f"{order}, {kind}, {name}: {m}")
            assert ours.stride() == eager.stride(), (order, kind, name)


def test_a_query_that_sees_no_key_gives_zeros():
    query, key, value = (torch.randn(1, 2, 5, 8) for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[2] = False
    attention = pyrite.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask), fullgraph=True)
    output = attention(query, key, value)
    assert output[:, :, 2].eq(0).all() and output.isfinite().all()


def test_the_scores_of_long_sequences_are_never_in_memory():
    # 1.5 GB of scores if they were.
    length = 20_000
    query, key, value = (torch.randn(1, 1, length, 8) for _ in range(3))
    attention = pyrite.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), fullgraph=True)
    before = peak_bytes()
    output = attention(query, key, value)
    assert peak_bytes() - before < 200 << 20
    rows = torch.tensor([0, 7, length - 1])
    exact = torch.softmax(query[0, 0, rows].double() @ key[0, 0].double().T / 8**0.5, -1) @ value[0, 0].double()
    torch.testing.assert_close(output[0, 0, rows].double(), exact, atol=1e-5, rtol=1e-5)


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
