"""Models as users run them, from Python: rows for `bench.py --only models`.

Every contender has a process of its own, which builds the model, makes the first call and then waits. The processes of one model take turns in
short rounds until the spread of the ratios is known, so that what else happens on the machine meets all of them alike. A row says what was
measured, when, on which processor, and whether the machine was quiet; rows that a file already has are not measured again.

    python -m bench.model_bench [--file FILE] [--models NAME,...] [--modes inference,training] [--threads 1,2] [--contenders NAME,...]
                          [--dtype f32|bf16] [--again] [--patience SECONDS]

`ratio` is the time of a contender in that of Inductor, the median over the rounds; `spread` is half of the distance between the quartiles.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
CONTENDERS = ["eager", "inductor", "max-autotune", "torch.compile(pyrite)", "pyrite"]
DEFAULT = ["eager", "inductor", "torch.compile(pyrite)", "pyrite"]
# Half of the distance between the quartiles of a ratio that is small enough to stop at.
KNOWN = 0.02
ROUNDS = (5, 15)
ROUND_SECONDS = 0.5
# Quiet is a machine that does nothing else for nine tenths of its time.
QUIET = 0.10
BARS = {"mean": 0.85, "inductor": 1.05, "eager": 1.0}


def decoder(model, **options):
    import torch
    import transformers

    built = getattr(transformers, model)
    configuration = built.config_class(vocab_size=8000, use_cache=False, **options)
    return built(configuration), {"input_ids": torch.randint(0, 8000, (2, 128))}


def vision(model, batch, size):
    import torch
    import torchvision

    return getattr(torchvision.models, model)(weights=None), {"x": torch.randn(batch, 3, size, size)}


def llama(**options):
    sizes = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1408}
    return decoder("LlamaModel", **{**sizes, **options})


def encoder(model, batch=4, length=128, **options):
    import torch
    import transformers

    built = getattr(transformers, model)
    return built(built.config_class(vocab_size=8000, **options)), {"input_ids": torch.randint(0, 8000, (batch, length))}


BERT = {"hidden_size": 768, "num_hidden_layers": 4, "num_attention_heads": 12, "intermediate_size": 3072}


def vit():
    import torch
    import transformers

    model = transformers.ViTModel(transformers.ViTConfig(**BERT))
    return model, {"pixel_values": torch.randn(2, 3, 224, 224)}


def unet():
    """A small diffusion U-Net: group norm, attention in the middle, skips."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before, after):
            super().__init__()
            self.norm1, self.conv1 = nn.GroupNorm(8, before), nn.Conv2d(before, after, 3, padding=1)
            self.norm2, self.conv2 = nn.GroupNorm(8, after), nn.Conv2d(after, after, 3, padding=1)
            self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

        def forward(self, x):
            hidden = self.conv1(nn.functional.silu(self.norm1(x)))
            return self.conv2(nn.functional.silu(self.norm2(hidden))) + self.skip(x)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 32, 3, padding=1)
            self.down = nn.ModuleList([Block(32, 64), Block(64, 128)])
            self.middle = Block(128, 128)
            self.up = nn.ModuleList([Block(256, 64), Block(128, 32)])
            self.last = nn.Conv2d(32, 3, 3, padding=1)

        def forward(self, x):
            x, kept = self.first(x), []
            for block in self.down:
                x = block(x)
                kept.append(x)
                x = nn.functional.avg_pool2d(x, 2)
            x = self.middle(x)
            for block in self.up:
                x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
                x = block(torch.cat([x, kept.pop()], 1))
            return self.last(x)

    return UNet(), {"x": torch.randn(1, 3, 96, 96)}


def mlp():
    import torch
    from torch import nn

    layers = [layer for _ in range(6) for layer in (nn.Linear(1024, 1024), nn.LayerNorm(1024), nn.GELU())]
    return nn.Sequential(*layers), {"input": torch.randn(64, 1024)}


def mixer():
    import torch
    from torch import nn

    class Mixer(nn.Module):
        def __init__(self, tokens, width):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
            self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    return nn.Sequential(*(Mixer(196, 512) for _ in range(4))), {"input": torch.randn(2, 196, 512)}


def recurrent(kind):
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(8000, 256)
            self.cell = getattr(nn, kind)(256, 256, batch_first=True)
            self.head = nn.Linear(256, 512)

        def forward(self, words):
            return self.head(self.cell(self.words(words))[0])

    return Recurrent(), {"words": torch.randint(0, 8000, (8, 64))}


def long_attention():
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm(768), nn.Linear(768, 3 * 768), nn.Linear(768, 768)

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).view(*x.shape[:2], 3, 12, 64).permute(2, 0, 3, 1, 4)
            hidden = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(hidden.transpose(1, 2).reshape(x.shape))

    return nn.Sequential(Attention(), Attention()), {"input": torch.randn(1, 1024, 768)}


MODELS = {
    "bert": lambda: encoder("BertModel", **BERT),
    "distilbert": lambda: encoder("DistilBertModel", dim=768, n_layers=4, n_heads=12, hidden_dim=3072),
    "albert": lambda: encoder("AlbertModel", embedding_size=128, **BERT),
    "gpt2": lambda: decoder("GPT2Model", n_embd=768, n_layer=4, n_head=12),
    "llama": llama,
    "qwen2": lambda: decoder(
        "Qwen2Model", hidden_size=512, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, intermediate_size=1408
    ),
    "t5": lambda: encoder("T5EncoderModel", d_model=512, d_kv=64, d_ff=1024, num_layers=4, num_heads=8),
    "long attention": long_attention,
    "vit": vit,
    "swin": lambda: vision("swin_t", 1, 160),
    "mixer": mixer,
    "mlp": mlp,
    "resnet18": lambda: vision("resnet18", 4, 160),
    "resnet50": lambda: vision("resnet50", 2, 160),
    "efficientnet": lambda: vision("efficientnet_b0", 4, 128),
    "mobilenet": lambda: vision("mobilenet_v3_large", 4, 160),
    "convnext": lambda: vision("convnext_tiny", 1, 160),
    "regnet": lambda: vision("regnet_y_400mf", 4, 160),
    "unet": unet,
    "lstm": lambda: recurrent("LSTM"),
}


def tensors(value):
    """The floating-point tensors in an output, whatever holds them."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    items = value.values() if hasattr(value, "values") else value if isinstance(value, (list, tuple)) else []
    return [tensor for item in items for tensor in tensors(item)]


def prepared(name, contender, mode, dtype):
    """A function without arguments that makes one call, or one training step."""
    import torch

    torch.manual_seed(0)
    model, arguments = MODELS[name]()
    if dtype == "bf16":
        model = model.to(torch.bfloat16)
        arguments = {key: value.to(torch.bfloat16) if value.is_floating_point() else value for key, value in arguments.items()}
    model.train(mode == "training")
    if contender == "eager":
        compiled = model
    elif contender == "inductor":
        compiled = torch.compile(model)
    elif contender == "max-autotune":
        compiled = torch.compile(model, mode="max-autotune")
    elif contender == "torch.compile(pyrite)":
        compiled = torch.compile(model, backend="pyrite")
    else:
        import pyrite

        compiled = pyrite.compile(model)
    if mode == "inference":

        def call():
            with torch.no_grad():
                compiled(**arguments)

        return call
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step():
        optimizer.zero_grad()
        sum(output.float().square().mean() for output in tensors(compiled(**arguments))).backward()
        optimizer.step()

    return step


def work(name, contender, mode, threads, dtype):
    """The process of a contender: the first call, then as many as each line of the input gives it seconds for."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    torch.set_num_threads(threads)
    call = prepared(name, contender, mode, dtype)
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    # Training has a second shape of its inputs: gradients that are there.
    call()
    print(json.dumps({"first": first, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), file=answers, flush=True)
    for line in sys.stdin:
        times, end = [], time.perf_counter() + float(line)
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        print(json.dumps({"best": min(times), "median": statistics.median(times)}), file=answers, flush=True)


class Contender:
    """A process that waits for its turn."""

    def __init__(self, name, contender, mode, threads, dtype, cache):
        fresh = {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "PYRITE_CACHE_DIR": f"{cache}/pyrite"}
        # Threads that have nothing to do must not spin while it is another's turn.
        quiet = {"OMP_NUM_THREADS": str(threads), "PYRITE_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        self.process = subprocess.Popen(
            [sys.executable, HERE, "--work", name, contender, mode, str(threads), dtype],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **fresh, **quiet},
        )

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            error = self.process.stderr.read().strip().splitlines()
            raise RuntimeError(error[-1] if error else f"exit code {self.process.wait()}")
        return json.loads(line)

    def turn(self, seconds):
        print(seconds, file=self.process.stdin, flush=True)
        return self.answer()

    def close(self):
        self.process.kill()
        self.process.communicate()


def idle_share(seconds=1.0):
    """The part of the machine's time in which nobody worked."""

    def counted():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return fields[3] + fields[4], sum(fields)

    before = counted()
    time.sleep(seconds)
    after = counted()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def wait_for_quiet(patience):
    """Waits until nobody else works; says whether that came to be."""
    end = time.monotonic() + patience
    while (idle := idle_share()) < 1 - QUIET:
        if time.monotonic() > end:
            return False
        print(f"the machine is busy ({1 - idle:.0%}); waiting", file=sys.stderr, flush=True)
        time.sleep(5)
    return True


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def half_spread(values):
    quartiles = statistics.quantiles(values, n=4)
    return (quartiles[2] - quartiles[0]) / 2


def measure(name, mode, threads, dtype, contenders, patience):
    """The row of a model."""
    row = {
        "model": name,
        "mode": mode,
        "threads": threads,
        "dtype": dtype,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
        "cpu": processor(),
        "contenders": {},
    }
    running = {}
    with tempfile.TemporaryDirectory() as cache:
        try:
            for contender in contenders:
                # One at a time: a first call is part of what is measured.
                process = Contender(name, contender, mode, threads, dtype, cache)
                try:
                    row["contenders"][contender] = process.answer()
                    running[contender] = process
                except RuntimeError as error:
                    process.close()
                    row["contenders"][contender] = {"error": str(error)}
            row["quiet"] = wait_for_quiet(patience)
            rounds = {contender: [] for contender in running}
            base = "inductor" if "inductor" in running else next(iter(running), None)
            for count in range(1, ROUNDS[1] + 1):
                for contender, process in running.items():
                    rounds[contender].append(process.turn(ROUND_SECONDS)["best"])
                ratios = {c: [own / theirs for own, theirs in zip(rounds[c], rounds[base])] for c in running}
                if count >= ROUNDS[0] and all(half_spread(values) <= KNOWN for values in ratios.values()):
                    break
            for contender in running:
                row["contenders"][contender] |= {
                    "seconds": min(rounds[contender]),
                    "ratio": statistics.median(ratios[contender]),
                    "spread": half_spread(ratios[contender]),
                }
        finally:
            for process in running.values():
                process.close()
    return row


def key(row):
    return row["model"], row["mode"], row["threads"], row["dtype"]


def load(file):
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def summary(rows):
    """The table, and what misses its bar."""
    lines, missed, found = [], [], []
    for row in rows:
        cells = [f"{row['model']:15} {row['mode']:9} {row['threads']} {row['dtype']:4}"]
        for contender, got in row["contenders"].items():
            if "error" in got:
                cells.append(f"{contender}: {got['error'][:60]}")
                continue
            cells.append(f"{contender} {got['seconds'] * 1e3:.1f} ms ×{got['ratio']:.2f} ±{got['spread']:.2f} first {got['first']:.1f} s {got['peak_mb']:.0f} MB")
        lines.append(" | ".join(cells) + ("" if row["quiet"] else " | not quiet"))
        ours, eager = row["contenders"].get("pyrite", {}), row["contenders"].get("eager", {})
        if "ratio" not in ours or "ratio" not in row["contenders"].get("inductor", {}):
            missed.append(f"{' '.join(map(str, key(row)))}: not measured")
            continue
        found.append(ours["ratio"])
        if ours["ratio"] > BARS["inductor"]:
            missed.append(f"{' '.join(map(str, key(row)))}: ×{ours['ratio']:.2f} of Inductor")
        if "ratio" in eager and ours["ratio"] / eager["ratio"] > BARS["eager"]:
            missed.append(f"{' '.join(map(str, key(row)))}: ×{ours['ratio'] / eager['ratio']:.2f} of eager")
    if found:
        mean = math.exp(statistics.fmean(map(math.log, found)))
        lines.append(f"geometric mean over {len(found)} rows: ×{mean:.3f} of Inductor (bar {BARS['mean']})")
        if mean > BARS["mean"]:
            missed.append(f"geometric mean ×{mean:.2f}")
    return lines, missed


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", type=pathlib.Path, default=pathlib.Path("target/bench/models.jsonl"), help="rows are kept there")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--modes", default="inference,training")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}")
    parser.add_argument("--contenders", default=",".join(DEFAULT), help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--again", action="store_true", help="measure also what the file has")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine before each model")
    chosen = parser.parse_args(arguments)
    for name in chosen.models.split(","):
        if name not in MODELS:
            parser.error(f"there is no model {name}; there are {', '.join(MODELS)}")
    for name in chosen.contenders.split(","):
        if name not in CONTENDERS:
            parser.error(f"there is no contender {name}; there are {', '.join(CONTENDERS)}")
    chosen.file.parent.mkdir(parents=True, exist_ok=True)
    rows = {key(row): row for row in load(chosen.file)}
    wanted = [
        (name, mode, int(threads), chosen.dtype)
        for name in chosen.models.split(",")
        for mode in chosen.modes.split(",")
        for threads in dict.fromkeys(chosen.threads.split(","))
    ]
    for index, place in enumerate(wanted, 1):
        if place in rows and not chosen.again:
            continue
        print(f"[{index}/{len(wanted)}] {' '.join(map(str, place))}", file=sys.stderr, flush=True)
        row = measure(*place, chosen.contenders.split(","), chosen.patience)
        rows[place] = row
        with chosen.file.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(summary([row])[0][0], flush=True)
    lines, missed = summary([rows[place] for place in wanted])
    print("\n".join(lines))
    for line in missed:
        print(f"bar missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--work":
        work(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), sys.argv[6])
        sys.exit()
    sys.exit(main())
