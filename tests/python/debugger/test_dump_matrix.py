"""What PyTorch's debugger leaves on disk is read, run and debugged as it lies there: models × levels × after × inference and training.

A few models by default; PYRITE_DUMP_MATRIX=all takes every model and level.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ALL = os.environ.get("PYRITE_DUMP_MATRIX") == "all"
SAMPLE = ["mlp", "checkpoint_dropout", "nested", "custom_op", "tied"]
# What only torch can run, or cannot differentiate either; Pyrite says so, and which backend can.
LEFT_TO_TORCH = {
    "custom_op": "torch.ops.pyrite_dumps.twice",
    "while_loop": "higher_order.while_loop",
    "cond": "higher_order.cond",
    "complex": "fft_rfft",
    "scalars": "derivative of aten.floor_divide",
    "writing_op": "torch.ops.pyrite_dumps.double_in_place",
    "scan": ("higher_order.scan", "prims.rev"),
    "float8": "float8_e4m3fn",
}
# What is not read yet, and what is said: transforms of functions as Dynamo traces them step by step, and operators as arguments.
NOT_READ = {("vmap", "dynamo"): "torch._functorch.predispatch", ("writing_op", "aot"): "is nothing that a graph can use as a value"}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """The dumps, each with its folder and its programs, made by torch in a process of its own."""
    place = tmp_path_factory.mktemp("dumps")
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "PYRITE_DUMP_LEVELS": "1,2,3,4" if ALL else "2,4"}
    words = [sys.executable, HERE / "dump_matrix.py", place, *([] if ALL else SAMPLE)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((place / "dumps.json").read_text())


def programs(dumps, wanted=True):
    """The programs of dumps that have all of their graphs, or those that have not: older versions of torch leave out nested ones."""
    for dump in dumps:
        # Torch leaves out the value of a number that data decides, `reader.symint(None)`, and cannot run the file either.
        if (dump["model"], dump["stage"]) in NOT_READ or (dump["model"], dump["way"]) == ("unbacked", "backward"):
            continue
        for program in dump["programs"]:
            path = pathlib.Path(dump["folder"]) / program
            if wanted != bool(re.search(r"= (GraphModule|<lambda>)\(\)", path.read_text())):
                yield dump, path


def pyrite(*words):
    return subprocess.run([os.environ["PYRITE_BIN"], *map(str, words)], capture_output=True, text=True, timeout=300)


def test_torch_leaves_the_dumps_that_it_promises(dumps):
    """Where torch leaves none, it says why; a change there is a change of torch's."""
    for dump in dumps:
        what = f"{dump['model']} {dump['way']} after {dump['stage']}, level {dump['level']}: {dump['reason']}"
        assert dump["programs"] or dump["reason"] or dump["level"] == 4 or dump["way"] != "infer", what


def test_every_dump_is_read(dumps):
    for _, path in programs(dumps):
        done = pyrite("show", path)
        assert done.returncode == 0, f"{path}\n{done.stderr}"


def test_what_is_not_read_yet_is_named(dumps):
    for dump in dumps:
        for program in dump["programs"]:
            if reason := NOT_READ.get((dump["model"], dump["stage"])):
                done = pyrite("show", pathlib.Path(dump["folder"]) / program)
                assert done.returncode == 0 or done.returncode == 2 and reason in done.stderr, f"{program}\n{done.stderr}"


def test_a_dump_without_its_nested_graphs_says_so(dumps):
    """What torch cannot run either is told, with the name of the graph that is not there."""
    tried = set()
    for dump, path in programs(dumps, wanted=False):
        done = pyrite("show", path)
        assert done.returncode == 2 and "reader::lost-body" in done.stderr, f"{path}\n{done.stderr}"
        if dump["model"] not in tried:
            tried.add(dump["model"])
            plain = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
            assert plain.returncode == 1 and "Error" in plain.stderr, f"{path}\n{plain.stderr}"


def test_every_dump_runs_or_says_who_can_run_it(dumps):
    ran = 0
    for dump, path in programs(dumps):
        done = pyrite("run", path)
        if done.returncode == 0:
            ran += 1
            continue
        # Annotations alone do not say which strides and sizes inputs had.
        if path.name == "fx_graph_readable.py":
            assert "inputs::" in done.stderr or "run::invalid" in done.stderr or dump["model"] in LEFT_TO_TORCH, done.stderr
            continue
        left = LEFT_TO_TORCH.get(dump["model"], "nothing")
        assert done.returncode == 2 and any(name in done.stderr for name in ([left] if isinstance(left, str) else left)), f"{path}\n{done.stderr}"
        assert "torch:eager" in done.stderr, done.stderr
    assert ran > len(dumps) / 2


def test_dumps_that_were_written_with_data_are_run_with_it(dumps):
    """Levels 3 and 4 dump real inputs; those of lower levels after aot are fake and say so."""
    for dump, path in programs(dumps):
        if dump["level"] < 3 or "minifier" not in str(path) or dump["model"] in LEFT_TO_TORCH:
            continue
        done = pyrite("run", path)
        assert "no stored data" not in done.stderr, f"{path}\n{done.stderr}"


def test_a_dump_that_was_moved_keeps_its_data(dumps, tmp_path):
    [dump] = [d for d in dumps if (d["model"], d["way"], d["stage"], d["level"]) == ("mlp", "infer", "aot", 4)]
    moved = tmp_path / "elsewhere"
    pathlib.Path(dump["folder"]).rename(moved)
    try:
        for program in dump["programs"]:
            done = pyrite("run", moved / program)
            assert done.returncode == 0 and "no stored data" not in done.stderr, f"{program}\n{done.stderr}"
        # The file alone is not enough, and it does not reach outside of its folder by itself.
        alone = tmp_path / "alone"
        alone.mkdir()
        (alone / "repro.py").write_bytes((moved / dump["programs"][-1]).read_bytes())
        assert pyrite("run", alone / "repro.py").returncode == 2
        storages = next(moved.rglob("storages"))
        assert pyrite("run", alone / "repro.py", "--storages", storages).returncode == 0
    finally:
        moved.rename(dump["folder"])


def test_dumps_are_debugged(dumps, tmp_path):
    """The failing operator of every model is found in what torch dumped of it."""
    # The backend with the planted bug does not look into nested graphs.
    left_out = {*LEFT_TO_TORCH, "nested"}
    chosen = {}
    for dump, path in programs(dumps):
        if dump["model"] not in left_out and path.name == "minifier_launcher.py" and dump["way"] != "backward":
            chosen.setdefault((dump["model"], dump["stage"], dump["way"]), path)
    assert chosen
    for number, (what, path) in enumerate(chosen.items()):
        backend = ["--backend", "relu_accuracy_error_TESTING_ONLY"]
        done = pyrite("minify", path, *backend, "--json", "--runs", "1", "--out", tmp_path / str(number))
        assert done.returncode == 0, f"{what}\n{done.stdout}\n{done.stderr}"
        report = json.loads(done.stdout)
        assert report["proven"] and report["nodes_after"] <= 4, f"{what}: {report}"
