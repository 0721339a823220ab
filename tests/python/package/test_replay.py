"""Frames that cannot be captured are kept in files and captured again from them."""

import hashlib
import json
import os
import pathlib
import pickle
import subprocess
import sys
import zipfile

import pytest
import torch

import pyrite as package
from pyrite import config


@pytest.fixture(autouse=True)
def recording(tmp_path):
    package.reset()
    with config.patch(replay_record_enabled=True, debug_dir=str(tmp_path / "debug")):
        yield
    package.reset()


def frames(tmp_path):
    return sorted((tmp_path / "debug" / "frames").glob("*.zip"))


SCALE = 3.0


class Doubling(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.weight * 2


def helper(x):
    return x * SCALE


def stopping(x, model, *rest, flag, **more):
    y = helper(model(x))
    torch.save
    print(end="")
    return y + len(rest) + more["shift"]


def test_a_break_that_must_not_be_is_recorded_and_repeated(tmp_path):
    compiled = package.compile(stopping, backend="eager", fullgraph=True)
    with pytest.raises(package.GraphBreakError, match="print") as first:
        compiled(torch.ones(2), Doubling(), 5, 6, flag=None, shift=1)
    [path] = frames(tmp_path)
    with pytest.raises(package.GraphBreakError, match="print") as again:
        package.replay(path, trust=True)
    assert str(again.value) == str(first.value)
    with zipfile.ZipFile(path) as archive:
        told = json.loads(archive.read("record.json"))
        assert b"def stopping(x, model" in archive.read("source.py")
    assert (told["function"], told["line"]) == ("stopping", stopping.__code__.co_firstlineno)
    assert "print" in told["reason"] and told["missing"] == []


def test_a_call_is_recorded_on_demand_and_runs_in_another_process(tmp_path):
    path = package.record(tmp_path / "call.zip", stopping, torch.ones(2), Doubling(), 5, flag=None, shift=1)
    text = f"""if True:
        import pyrite
        found = pyrite.replay({str(path)!r}, trust=True)
        print(found.graph_count, found.graph_break_count, found.op_count)
    """
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100, cwd="/")
    assert done.stdout == "2 1 5\n", done.stderr


def test_a_module_is_recorded_by_value(tmp_path):
    model = Doubling()
    path = package.record(tmp_path / "call.zip", model, torch.ones(2))
    model.weight.data.zero_()
    assert package.replay(path, trust=True).ops_per_graph == [["aten.mul.Tensor", "aten.mul.Tensor"]]


def test_a_backend_that_fails_leaves_its_frame(tmp_path):
    def failing(graph, example_inputs):
        raise KeyError("no kernel")

    with pytest.raises(KeyError):
        package.compile(helper, backend=failing)(torch.ones(2))
    [path] = frames(tmp_path)
    assert package.replay(path, trust=True).op_count == 1


def test_arguments_that_share_memory_do_so_in_the_record(tmp_path):
    x = torch.zeros(4)

    def writes(a, b):
        a.add_(1)
        assert b[0] == 1
        return b * 1

    path = package.record(tmp_path / "call.zip", writes, x[:2], x)
    package.replay(path, trust=True)


def test_what_cannot_be_stored_is_listed_and_missed_by_name(tmp_path):
    with open(tmp_path / "text", "w") as file:

        def writing(x):
            file.write("text")
            return x + 1

        path = package.record(tmp_path / "call.zip", writing, torch.ones(2))
    with zipfile.ZipFile(path) as archive:
        [missing] = json.loads(archive.read("record.json"))["missing"]
    assert "TextIOWrapper" in missing
    with pytest.raises(package.PyriteError, match="TextIOWrapper"):
        package.replay(path, trust=True)


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path):
    with config.patch(replay_record_enabled=False), pytest.raises(package.GraphBreakError):
        package.compile(stopping, fullgraph=True)(torch.ones(2), Doubling(), flag=None, shift=1)
    assert frames(tmp_path) == []


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (pathlib.Path.touch, (self.path,))


def test_a_record_is_not_unpickled_unless_it_is_trusted(tmp_path):
    path = package.record(tmp_path / "call.zip", helper, torch.ones(2))
    frame = pickle.dumps(Evil(tmp_path / "was_run"))
    with zipfile.ZipFile(path) as archive:
        told = json.loads(archive.read("record.json"))
    told["sha256"] = hashlib.sha256(frame).hexdigest()
    evil = rewritten(path, **{"frame.pickle": frame, "record.json": json.dumps(told)})
    with pytest.raises(package.PyriteError, match=r"other.zip: .* execute code .* helper .*trust=True"):
        package.replay(evil)
    assert not (tmp_path / "was_run").exists()
    with pytest.raises(package.PyriteError):
        package.replay(evil, trust=True)
    assert (tmp_path / "was_run").exists()


def rewritten(path, **members):
    """A copy of a record with other members."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    other = pathlib.Path(path).with_name("other.zip")
    with zipfile.ZipFile(other, "w") as archive:
        for name, content in (found | members).items():
            archive.writestr(name, content)
    return other


def test_a_bad_file_is_refused_with_its_cause_before_anything_of_it_runs(tmp_path):
    with pytest.raises(package.PyriteError, match="no_such.zip: there is no such file. Help"):
        package.replay(tmp_path / "no_such.zip")
    (tmp_path / "text.zip").write_text("not an archive")
    with pytest.raises(package.PyriteError, match="not a recorded frame"):
        package.replay(tmp_path / "text.zip")
    path = package.record(tmp_path / "call.zip", helper, torch.ones(2))

    with pytest.raises(package.PyriteError, match="checksum"):
        package.replay(rewritten(path, **{"frame.pickle": pickle.dumps(Evil(tmp_path / "was_run"))}))
    with zipfile.ZipFile(path) as archive:
        told = json.loads(archive.read("record.json"))
    with pytest.raises(package.PyriteError, match="another version of CPython"):
        package.replay(rewritten(path, **{"record.json": json.dumps(told | {"bytecode": "00"})}), trust=True)
    with pytest.raises(package.PyriteError, match="format"):
        package.replay(rewritten(path, **{"record.json": json.dumps(told | {"format": 99})}))
    assert not (tmp_path / "was_run").exists()


def test_whatever_a_strangers_archive_holds_is_told_as_what_it_is(tmp_path, monkeypatch):
    # A machine of a megabyte.
    monkeypatch.setattr(package._replay, "_room", lambda: 1 << 20)
    path = package.record(tmp_path / "call.zip", helper, torch.ones(2))
    with zipfile.ZipFile(path) as archive:
        told = json.loads(archive.read("record.json"))
        members = {name: archive.read(name) for name in archive.namelist()}

    def as_json(**changed):
        return {"record.json": json.dumps(told | changed)}

    broken = {
        "deep": {"record.json": "[" * 100_000},
        "list": {"record.json": "[]"},
        "latin": {"source.py": b"caf\xe9"},
        "backend": as_json(backend=["cmd:touch was_run"]),
        "dynamic": as_json(dynamic={}),
        "without": as_json(function=None),
    }
    paths = {}
    for name, changed in broken.items():
        paths[name] = rewritten(path, **changed).rename(tmp_path / f"{name}.zip")
    # The directory of an archive says how large a member becomes, and whether a password opens it.
    raw = (tmp_path / "call.zip").read_bytes()
    at = raw.rindex(b"PK\x01\x02")
    paths["large"] = tmp_path / "large.zip"
    paths["large"].write_bytes(raw[: at + 24] + (2**32 - 2).to_bytes(4, "little") + raw[at + 28 :])
    paths["secret"] = tmp_path / "secret.zip"
    paths["secret"].write_bytes(raw[: at + 8] + b"\x01\x00" + raw[at + 10 :])
    for cut in range(0, len(raw), max(1, len(raw) // 40)):
        paths[f"cut{cut}"] = tmp_path / f"cut{cut}.zip"
        paths[f"cut{cut}"].write_bytes(raw[:cut])
    paths["stored"] = tmp_path / "stored.zip"
    with zipfile.ZipFile(paths["stored"], "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    damaged = bytearray(paths["stored"].read_bytes())
    damaged[damaged.index(members["frame.pickle"]) + 3] ^= 255
    paths["stored"].write_bytes(damaged)
    os.mkfifo(tmp_path / "pipe")
    for path in (*paths.values(), tmp_path, tmp_path / "pipe", pathlib.Path("/dev/zero")):
        with pytest.raises(package.PyriteError, match="Help: "):
            package.replay(path, trust=True)
