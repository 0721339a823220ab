"""Programs that every compiler gets right, in f32 and bf16: nothing may be proven of them."""

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 neg reciprocal relu round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc pow(2) softmax(-1) log_softmax(-1) cumsum(0) cumsum(1) cumprod(1) sum mean amax(1) amin(0) var "
    "std(0) logsumexp(1) argmax(1) sort(0) flip(0) roll(3,0) transpose(0,1) norm(2) all any prod(1) cummax(1) triu tril nan_to_num clamp(0.2,0.7) "
    "erfinv lgamma digamma frac isnan logit(0.1) hardshrink"
).split()

BINARY = ["x + y", "x * y - y", "x / (y + 1)", "torch.maximum(x, y)", "torch.fmod(x, y + 1)", "torch.atan2(x, y)", "x @ y.t()", "torch.pow(x, y)", "torch.where(x > y, x, y)", "torch.cat([x, y], 1)", "torch.hypot(x, y)"]

LAYERS = [
    "torch.nn.functional.gelu(x) + y",
    "torch.nn.functional.silu(x) * y",
    "torch.nn.functional.layer_norm(x, (48,)) * y",
    "torch.nn.functional.linear(x, y).relu()",
    "torch.nn.functional.mse_loss(x, y)",
    "torch.nn.functional.softplus(x) - y",
    "torch.nn.functional.leaky_relu(x - 0.5, 0.1)",
    "torch.nn.functional.elu(x - 0.5)",
    "torch.nn.functional.conv2d(x.reshape(1, 3, 16, 32), y.reshape(16, 3, 32)[:, :, :9].reshape(16, 3, 3, 3))",
    "torch.nn.functional.max_pool2d(x.reshape(1, 3, 16, 32), 2)",
    "torch.nn.functional.avg_pool2d(x.reshape(1, 3, 16, 32), 2)",
    "torch.nn.functional.scaled_dot_product_attention(x.reshape(1, 2, 16, 48), y.reshape(1, 2, 16, 48), y.reshape(1, 2, 16, 48))",
    "torch.bmm(x.reshape(2, 16, 48), y.reshape(2, 48, 16))",
    "(x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() * y",
    "(x @ y.t()).softmax(-1)",
    "torch.nn.functional.pad(x, (1, 2, 3, 4)) ",
    "torch.index_select(x, 0, torch.arange(0, 32, 2, device='DEVICE'))",
    "x.gather(1, (y * 40).long())",
    "torch.zeros_like(x).scatter_add(1, (y * 40).long(), x)",
    "x.masked_fill(y > 0.5, 0.0)",
    "torch.nn.functional.cross_entropy(x, (y[:, 0] * 40).long())",
    "x.unfold(1, 5, 2).sum(-1)",
    "torch.stack([x, y]).mean(0)",
    "(x[:, ::2] * y[:, 1::2]).contiguous()",
]

PROGRAM = """
class Repro(torch.nn.Module):
    def forward(self, u : "DTYPE[32, 48]PLACE", v : "DTYPE[32, 48]PLACE"):
        x = u.sigmoid()
        y = v.sigmoid()
        z = EXPRESSION
        return (z,)
"""


def programs(device="cuda:0"):
    """Names and texts, for programs whose tensors are all on a device."""
    expressions = [f"x.{each}" if "(" in each else f"x.{each}()" for each in UNARY] + BINARY + LAYERS
    place = "" if device == "cpu" else f"[48, 1]{device}"
    for number, expression in enumerate(expressions):
        for dtype in ("f32", "bf16"):
            text = PROGRAM.replace("DTYPE", dtype).replace("EXPRESSION", expression)
            yield f"g{number:03}_{dtype}", text.replace("PLACE", place).replace("DEVICE", device)
