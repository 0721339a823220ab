"""PyTorch's dumps of the five models, forward and backward, at dynamo level and at AOT level, through `pyrite show` and `pyrite run`."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import torch

from models import dump_models, measured
from models.dumped import double, load_inputs, load_module
from operators.compare import value_difference

# A launcher holds the graph of its repro, and a readable graph has no inputs: it runs with those of the runnable one.
EXECUTED = [file for file in dump_models.FILES if "launcher" not in file]
RUNNABLE = [file for file in EXECUTED if "readable" not in file]

every_model = pytest.mark.parametrize("model", measured.MODELS)


def run_in_torch(text, inputs):
    module, _ = load_module(text, "printed.py")
    with torch.no_grad():
        return dump_models.tensors(module(*inputs))


class Dump:
    """One dump, as Pyrite prints it, and what torch computes from it."""

    def __init__(self, pyrite, folder, file):
        self.folder = folder
        self.stage = dump_models.FILES[file]
        self.text = pyrite("show", folder / file)
        _, self.load_args = load_module(pyrite("show", folder / file.replace("readable", "runnable")), file)

    def inputs(self):
        return load_inputs(self.load_args, self.folder)

    def assert_right(self, outputs):
        """The same dtypes and shapes as torch's, and values that are close to them or, as `compare` says, to a float64 run."""
        expected = torch.load(self.folder / f"{self.stage}.pt")
        assert len(outputs) == len(expected)
        for k, (want, have) in enumerate(zip(expected, outputs)):
            assert (want.dtype, want.shape) == (have.dtype, have.shape), f"output {k}"
            found = value_difference(want, have, lambda k=k: self.fp64()[k])
            assert found is None, f"output {k}: {found}"
        return expected

    @functools.cache
    def fp64(self):
        inputs = [double(value) for value in self.inputs()]
        return run_in_torch(self.text.replace("torch.float32", "torch.float64"), inputs)


@every_model
@pytest.mark.parametrize("file", dump_models.FILES)
def test_a_dump_is_printed_and_read_again_to_the_same_text(pyrite, dumps, tmp_path, model, file):
    text = pyrite("show", dumps / model / file)
    (tmp_path / "storages").symlink_to(dumps / model / "storages")
    (tmp_path / "printed.py").write_text(text)
    assert pyrite("show", tmp_path / "printed.py") == text


@every_model
@pytest.mark.parametrize("file", EXECUTED)
def test_the_print_of_a_dump_gives_the_same_results_in_torch(pyrite, dumps, model, file):
    dump = Dump(pyrite, dumps / model, file)
    outputs = run_in_torch(dump.text, dump.inputs())
    expected = dump.assert_right(outputs)
    assert [have.stride() for have in outputs] == [want.stride() for want in expected]


@every_model
@pytest.mark.parametrize("file", RUNNABLE)
def test_running_a_dump_agrees_with_torch(pyrite, dumps, tmp_path, model, file):
    saved = tmp_path / "outputs.npz"
    report = json.loads(pyrite("run", dumps / model / file, "--save-outputs", saved, "--json"))
    with numpy.load(saved) as arrays:
        outputs = [torch.from_numpy(arrays[name]) for name in arrays.files]
    expected = Dump(pyrite, dumps / model, file).assert_right(outputs)
    assert [tuple(output["stride"]) for output in report["outputs"] if "stride" in output] == [want.stride() for want in expected]


ASKING = """
import sys, time
from models import dump_models

def slowly(directory):
    with open(sys.argv[1], "a") as log:
        log.write("made\\n")
    time.sleep(1)
    (directory / "dumps.json").write_text("[]")

dump_models.dump_all = slowly
assert (dump_models.dumps() / "dumps.json").read_text() == "[]"
"""


def test_processes_that_ask_for_dumps_at_once_make_them_once(tmp_path):
    environment = {**os.environ, "PYRITE_DUMPS": str(tmp_path / "dumps"), "PYTHONPATH": str(pathlib.Path(__file__).parent.parent)}
    words = [sys.executable, "-c", ASKING, tmp_path / "log"]
    asking = [subprocess.Popen(words, env=environment) for _ in range(2)]
    assert [process.wait(timeout=300) for process in asking] == [0, 0]
    assert (tmp_path / "log").read_text() == "made\n"
