"""Traces to report on, written in the format that docs/trace-format.md describes."""

import json


def write(folder, records):
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"time": 0.0, "stage": None, "graph": None, **record}) for record in records)
    (folder / "trace.jsonl").write_text("".join(line + "\n" for line in lines))
    return folder


def run(*words):
    return {"event": "run", "versions": {"pyrite": "0.1.0"}, "argv": list(words), "started": 1.7e9, "pid": 7}


def step(name, stage, begin, seconds, depth=0):
    shared = {"event": "stage", "stage": stage, "graph": "forward_0", "name": name, "depth": depth}
    yield {**shared, "time": begin, "mark": "begin"}
    yield {**shared, "time": begin + seconds, "mark": "end", "seconds": seconds}


class GraphWriter:
    """Nodes with the modules they come from, and the edges between them."""

    def __init__(self):
        self.nodes, self.edges, self.lines = [], [], []

    def add(self, name, target="", module=None, inputs=(), op="call_function", shape=(8, 16)):
        row = {"name": name, "op": op, "target": target, "shape": list(shape), "dtype": "f32"}
        if module:
            row["module"] = module
        self.edges += [(number, len(self.nodes)) for number in inputs]
        self.nodes.append(row)
        if target:
            arguments = ", ".join(self.nodes[number]["name"] for number in inputs)
            self.lines.append(f'        {name}: "f32[8, 16]" = torch.ops.{target}({arguments})')
        return len(self.nodes) - 1

    def record(self, stage="aot", graph="forward_0", file="forward.py"):
        text = "class Forward(torch.nn.Module):\n    def forward(self, x):\n" + "\n".join(self.lines) + "\n"
        return {
            "event": "graph", "stage": stage, "graph": graph, "file": file, "text": text, "nodes": self.nodes,
            "edges": self.edges,
        }


def transformer(layers):
    """A transformer, 34 nodes a layer and four around them."""
    graph = GraphWriter()
    tokens = graph.add("x", op="placeholder")
    table = graph.add("table", op="placeholder")
    value = graph.add("embedding", "aten.embedding.default", "embed", (table, tokens))
    for layer in range(layers):
        path = f"layers.{layer}"

        def linear(name, of, part):
            weight = graph.add(f"{name}_weight_{layer}", op="placeholder")
            bias = graph.add(f"{name}_bias_{layer}", op="placeholder")
            transposed = graph.add(f"{name}_t_{layer}", "aten.t.default", f"{path}.{part}", (weight,))
            return graph.add(f"{name}_addmm_{layer}", "aten.addmm.default", f"{path}.{part}", (bias, of, transposed))

        def call(name, operator, part, *inputs):
            module = f"{path}.{part}" if part else path
            return graph.add(f"{name}_{layer}", f"aten.{operator}", module, inputs)

        normal = call("norm1", "layer_norm.default", "norm1", value)
        query, key, content = (linear(name, normal, f"attention.{name}") for name in ("query", "key", "content"))
        scores = call("scores", "bmm.default", "attention", query, key)
        scaled = call("scaled", "div.Tensor", "attention", scores)
        weights = call("softmax", "_softmax.default", "attention", scaled)
        mixed = linear("out", call("mixed", "bmm.default", "attention", weights, content), "attention.out")
        value = call("add1", "add.Tensor", "", value, mixed)
        wide = linear("up", call("norm2", "layer_norm.default", "norm2", value), "mlp.up")
        narrow = linear("down", call("gelu", "gelu.default", "mlp", wide), "mlp.down")
        value = call("add2", "add.Tensor", "", value, narrow)
        value = call("keep", "clone.default", "", value)
    graph.add("output", op="output", inputs=(value,))
    return graph


SPREAD = {"map": ["0000", "0098", "0000"], "cell": [2, 4], "histogram": [90, 0, 0, 0, 0, 0, 0, 0, 6, 4]}


def divergences(graph, first):
    """Small errors before a node, large ones from there on."""
    parted = False
    for node in graph.nodes:
        if node["op"] != "call_function":
            continue
        parted = parted or node["name"] == first
        yield {
            "event": "divergence", "stage": "debug", "graph": "forward_0", "node": node["name"], "op": node["target"],
            "backend_error": 0.25 if parted else 3e-8, "reference_error": 2e-8,
            "class": "value" if parted else None, "value": "element 3 is 0.5 and should be 0.4" if parted else None,
            **({"spread": SPREAD} if parted else {}),
        }


def search(sizes):
    """A search that goes through these numbers of nodes, with a failed try before every success."""
    query = 0
    for number, nodes in enumerate(sizes):
        program = "".join(f"    value_{line} = relu(value)\n" for line in range(nodes))
        for verdict, text in (("pass", None), ("fail", program)):
            if number == 0 and text is None:
                continue
            query += 1
            yield {
                "event": "minify", "stage": "debug", "query": query, "seconds": query * 0.2,
                "pass": "" if number == 0 else "bottom-up", "verdict": verdict,
                "nodes": nodes if text else sizes[number - 1], "elements": nodes * 100, "text": text,
            }


REPRO = "import torch\n\nclass Repro(torch.nn.Module):\n    def forward(self, x):\n        return (x.relu(),)\n"


def kernels():
    """A kernel of two nodes that ran twice, one that never ran, and a call between them."""
    shared = {"stage": "native", "graph": "forward_0"}
    for name in ("gelu_1_scaled_1", "gelu_2"):
        yield {**shared, "event": "kernel", "name": name, "loops": f"for i in {name}", "disassembly": "0000 ret", "bytes": 42}
    for seconds in (5e-5, 3e-5):
        yield {**shared, "event": "kernel_time", "name": "gelu_1_scaled_1", "seconds": seconds}
    yield {**shared, "event": "kernel_time", "name": "query_addmm_0", "seconds": 9e-5, "op": "aten.addmm.default"}


def session(folder, layers=3, first="gelu_1", source=None):
    """A whole session: stages, a graph that parts at a node, breaks, a search and its repro."""
    graph = transformer(layers)
    records = [
        run("pyrite", "debug", "model.py", "--backend", "native"),
        *step("capture", "capture", 0.0, 0.1),
        *step("aot", "aot", 0.1, 0.3),
        *step("joint", "aot", 0.1, 0.1, depth=1),
        *step("native", "native", 0.4, 0.2),
        graph.record(),
        *divergences(graph, first),
        *kernels(),
        {"event": "guard", "stage": "capture", "graph": "forward_0", "guard": "x.size(0) == 8"},
        *search([40, 21, 9, 3]),
        {"event": "finding", "step": "confirm", "text": "3 of 3 runs of native fail: wrong results"},
        {"event": "artifact", "stage": "aot", "graph": "forward_0", "name": "joint", "file": "joint.py", "text": "# joint"},
        {"event": "repro", "path": str(folder / "repro.py"), "text": REPRO, "signature": "native: value", "proven": True},
    ]
    if source:
        records.append({
            "event": "break", "stage": "capture", "reason": "call of print", "hint": "take it out", "function": "forward",
            "file": str(source), "line": 3, "source": source.read_text().splitlines()[2], "stack": [],
        })
    return write(folder, records)


def failed_unet(folder, levels=5):
    """A session that ended in an error: a U-Net, whose skips lead over all that is between them."""
    graph = GraphWriter()
    value, kept = graph.add("x", op="placeholder"), []
    for level in range(levels):
        kept.append(graph.add(f"conv_{level}", "aten.convolution.default", inputs=(value,)))
        value = graph.add(f"pool_{level}", "aten.avg_pool2d.default", inputs=(kept[-1],))
    for level in range(levels):
        value = graph.add(f"up_{level}", "aten.upsample_nearest2d.vec", inputs=(value,))
        value = graph.add(f"cat_{level}", "aten.cat.default", inputs=(value, kept.pop()))
        value = graph.add(f"mix_{level}", "aten.convolution.default", inputs=(value,))
    graph.add("output", op="output", inputs=(value,))
    text = REPRO.replace("self, x", "self, x, y").replace("x.relu()", "torch.ops.aten.cat.default([x, y], 1)")
    signature = "forward: error RuntimeError at codecache.py by aten.cat.default"
    return write(
        folder,
        [
            run("pyrite", "debug", "unet.py", "--backend", "torch:inductor"),
            graph.record(),
            {"event": "finding", "step": "confirm", "text": "3 of 3 runs of torch:inductor fail: RuntimeError"},
            *search([26, 3]),
            {"event": "repro", "path": str(folder / "repro.py"), "text": text, "signature": signature, "proven": True},
        ],
    )
