"""Frames that are kept in files, to be captured again elsewhere: `record` and `replay`.

A file is a zip archive with three members: `record.json` says what was kept and why, `source.py` is the function's text for
people, `frame.pickle` has the function and its arguments. Looking at a file (with any archiver, or with `read`) executes
nothing. `replay` unpickles the frame and runs it: that executes what the file says, so it does so only with `trust=True`.

Code of libraries (the standard library, torch, other installed packages) is named, code of the user's own files is stored, with
the globals that it uses. What cannot be stored, such as open files, is left out and listed.
"""

from __future__ import annotations

import abc
import builtins
import copyreg
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import io
import json
import logging
import marshal
import os
import pathlib
import pickle
import re
import sys
import sysconfig
import types
import zipfile

import torch

from pyrite import _native, config
from pyrite._errors import PyriteError

_FORMAT = 1
_MAGIC = importlib.util.MAGIC_NUMBER.hex()
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(_PATHS[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")) + (
    os.path.dirname(os.path.abspath(torch.__file__)) + os.sep,
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
)


class Missing:
    """Stands where a value was that could not be stored; using it is an error."""

    def __init__(self, what):
        self.__dict__["what"] = what

    def __reduce__(self):
        return Missing, (self.what,)

    def __getattr__(self, name):
        raise PyriteError(
            f"the record has no {self.what}, which the frame uses: it could not be stored. Help: the log named the reason when the "
            "frame was recorded; give the frame something that can be pickled, and record it again."
        )

    def __call__(self, *args, **kwargs):
        return self.__getattr__("__call__")

    def __repr__(self):
        return f"<missing: {self.what}>"


def _found_by_name(thing):
    """Whether a function or class belongs to a library, so that its name says all."""
    module = sys.modules.get(thing.__module__)
    if module is None or thing.__module__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    return (file is None or os.path.abspath(file).startswith(_LIBRARIES)) and _is_there(module, thing.__qualname__, thing)


def _is_there(module, name, thing):
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing


class _Pickler(pickle.Pickler):
    """Stores functions, classes, cells and code by value where they are the user's own."""

    def __init__(self, file):
        super().__init__(file, protocol=5)
        self.missing = []
        # Tensors that share memory do so again: storages are stored once.
        self.storages = {}

    def reducer_override(self, thing):
        if isinstance(thing, types.FunctionType):
            return NotImplemented if _found_by_name(thing) else self._function(thing)
        if isinstance(thing, type):
            return NotImplemented if _found_by_name(thing) else self._class(thing)
        if isinstance(thing, types.CodeType):
            return _make_code, (marshal.dumps(thing.replace(co_consts=())), thing.co_consts)
        if isinstance(thing, types.CellType):
            return _make_cell, (), _contents(thing), None, None, _fill_cell
        if isinstance(thing, types.ModuleType):
            return importlib.import_module, (thing.__name__,)
        if isinstance(thing, types.MappingProxyType):
            return types.MappingProxyType, (dict(thing),)
        if isinstance(thing, torch.UntypedStorage):
            content = torch.empty(0, dtype=torch.uint8, device="cpu").set_(thing).numpy().tobytes()
            return _make_storage, (content,)
        if type(thing) in (torch.Tensor, torch.nn.Parameter) and _is_plain(thing):
            storage = thing.untyped_storage()
            storage = self.storages.setdefault(storage._cdata, storage)
            layout = (thing.storage_offset(), tuple(thing.shape), thing.stride())
            return _make_tensor, (type(thing), storage, thing.dtype, layout, thing.requires_grad)
        try:
            reduce = copyreg.dispatch_table.get(type(thing))
            reduced = reduce(thing) if reduce else thing.__reduce_ex__(5)
            if isinstance(reduced, str) and not _is_there(sys.modules.get(thing.__module__), reduced, thing):
                raise TypeError(f"it is not found as {thing.__module__}.{reduced}")
            return reduced
        except Exception as error:
            return self._left_out(thing, error)

    def _left_out(self, thing, error):
        what = f"{type(thing).__module__}.{type(thing).__qualname__}"
        self.missing.append(f"{what}: {error}")
        return Missing, (what,)

    def _function(self, function):
        used = {name: function.__globals__[name] for name in sorted(_names(function.__code__)) if name in function.__globals__}
        state = {
            "globals": used,
            "attributes": {
                "__defaults__": function.__defaults__,
                "__kwdefaults__": function.__kwdefaults__,
                "__qualname__": function.__qualname__,
                "__module__": function.__module__,
                "__doc__": function.__doc__,
                **function.__dict__,
            },
        }
        made = (function.__code__, function.__globals__.get("__name__", "__main__"), function.__name__, function.__closure__)
        return _make_function, made, state, None, None, _fill_function

    def _class(self, class_):
        if type(class_) not in (type, abc.ABCMeta):
            return self._left_out(class_, TypeError(f"classes of {type(class_).__name__} cannot be stored"))
        if "__slots__" in vars(class_):
            return self._left_out(class_, TypeError("classes with __slots__ cannot be stored"))
        own = {name: value for name, value in vars(class_).items() if name not in ("__dict__", "__weakref__", "_abc_impl")}
        made = (type(class_), class_.__name__, class_.__bases__, class_.__module__, class_.__qualname__)
        return _make_class, made, own, None, None, _fill_class


def _names(code):
    """The names that code, and code inside of it, may look up in its globals."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _contents(cell):
    try:
        return (cell.cell_contents,)
    except ValueError:
        return None


# The globals of stored functions, by module, while a frame is read.
_spaces: dict[str, dict] = {}


def _is_plain(tensor):
    strided = tensor.layout is torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized
    return strided and not tensor.is_conj() and not tensor.is_neg()


def _make_storage(content):
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).untyped_storage() if content else torch.UntypedStorage(0)


def _make_tensor(class_, storage, dtype, layout, requires_grad):
    tensor = torch.empty(0, dtype=dtype, device="cpu").set_(storage, *layout)
    if class_ is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _make_code(stored, constants):
    return marshal.loads(stored).replace(co_consts=constants)


def _make_cell():
    return types.CellType()


def _fill_cell(cell, contents):
    if contents:
        cell.cell_contents = contents[0]


def _make_function(code, module, name, closure):
    space = _spaces.setdefault(module, {"__name__": module, "__builtins__": builtins})
    return types.FunctionType(code, space, name, None, closure)


def _fill_function(function, state):
    function.__globals__.update(state["globals"])
    for name, value in state["attributes"].items():
        setattr(function, name, value)


def _make_class(metaclass, name, bases, module, qualname):
    return metaclass(name, bases, {"__module__": module, "__qualname__": qualname})


def _fill_class(class_, own):
    for name, value in own.items():
        setattr(class_, name, value)


def record(path, function, *args, **kwargs):
    """Keeps a call of a function or module in a file, for `pyrite.replay`. Nothing is called."""
    if isinstance(function, torch.nn.Module):
        function, args = type(function).forward, (function, *args)
    _write(pathlib.Path(path), function, args, kwargs, "on demand", {})
    return path


def keep(function, slots, reason, settings):
    """Keeps a frame that could not be captured in a new file of `config.debug_dir`; a failure to do so is logged."""
    log = logging.getLogger("pyrite.debug")
    code = function.__code__
    try:
        slots = list(slots)
        args, slots = slots[: code.co_argcount], slots[code.co_argcount :]
        keywords = dict(zip(code.co_varnames[code.co_argcount :], slots[: code.co_kwonlyargcount]))
        slots = slots[code.co_kwonlyargcount :]
        if code.co_flags & inspect.CO_VARARGS:
            args += slots.pop(0)
        if code.co_flags & inspect.CO_VARKEYWORDS:
            keywords |= slots.pop(0)
        path = _free(pathlib.Path(config.debug_dir) / "frames", function.__qualname__)
        _write(path, function, tuple(args), keywords, reason, settings)
    except Exception as error:
        log.warning("the frame of %s could not be recorded: %s", function.__qualname__, error)
        return None
    log.warning("the frame of %s was recorded: pyrite.replay(%r, trust=True)", function.__qualname__, str(path))
    return path


def _free(folder, name):
    """A new file's path, numbered from the first that is free."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "_", name).strip("_") or "frame"
    number = 1
    while True:
        path = folder / f"{name}_{number}.zip"
        try:
            path.open("xb").close()
            return path
        except FileExistsError:
            number += 1


def _write(path, function, args, kwargs, reason, settings):
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump((function, args, kwargs))
    frame = buffer.getvalue()
    code = function.__code__
    backend = settings.get("backend", "eager")
    told = {
        "format": _FORMAT,
        "function": function.__qualname__,
        "file": code.co_filename,
        "line": code.co_firstlineno,
        "reason": reason,
        "backend": backend if isinstance(backend, str) else "eager",
        "fullgraph": bool(settings.get("fullgraph", False)),
        "dynamic": settings.get("dynamic"),
        "missing": pickler.missing,
        "bytecode": _MAGIC,
        "pyrite": _native.__version__,
        "torch": torch.__version__,
        "sha256": hashlib.sha256(frame).hexdigest(),
    }
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = f"# the text of {function.__qualname__} is not known\n"
    partial = path.with_name(path.name + ".partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("record.json", json.dumps(told, indent=1))
            archive.writestr("source.py", source)
            archive.writestr("frame.pickle", frame)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


# What a record says that is acted on.
_TOLD = {"backend": str, "fullgraph": bool, "dynamic": (bool, types.NoneType), "function": str}


def _room():
    """How many bytes a record may become when it is read."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@dataclasses.dataclass
class Record:
    """What a file says of the frame in it, and the frame as it is stored."""

    told: dict
    source: str
    frame: bytes


def read(path):
    """What a file of `record` holds. Executes nothing of it."""

    def bad(cause, remedy="record the frame again with pyrite.config.replay_record_enabled = True"):
        return PyriteError(f"{path}: {cause}. Help: {remedy}.")

    try:
        if not os.path.isfile(path) and os.path.exists(path):
            raise ValueError("it is no file")
        with zipfile.ZipFile(path) as archive:
            room = _room()
            for name in ("record.json", "source.py", "frame.pickle"):
                # A few bytes may say of themselves that they become as many as no machine has memory for.
                room -= archive.getinfo(name).file_size
                if room < 0:
                    raise ValueError(f"{name} would need more memory than this machine has")
            told = json.loads(archive.read("record.json"))
            source = archive.read("source.py").decode()
            frame = archive.read("frame.pickle")
    except FileNotFoundError:
        raise bad("there is no such file", "give the path that the log named when the frame was recorded") from None
    except Exception as error:
        # Whatever a damaged archive does to those who read it.
        raise bad(f"not a recorded frame ({str(error) or type(error).__name__})") from None
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        raise bad("the record has a format that this version of Pyrite does not know")
    if not all(isinstance(told.get(name), kinds) for name, kinds in _TOLD.items()):
        raise bad("the record does not say what a record says")
    if told.get("sha256") != hashlib.sha256(frame).hexdigest():
        raise bad("the frame in it is damaged: its checksum differs")
    return Record(told, source, frame)


def replay(path, *, trust=False):
    """Captures and runs a recorded frame again, with the settings it was compiled with, and returns an `Explanation`.

    This executes code from the file: it unpickles the function with its arguments and calls it. So it is refused, with a
    `PyriteError` that says what the file holds, unless `trust=True` says that the file is one of yours; to look at one, open
    the archive: `source.py` and `record.json` in it are text. What the frame, or a graph that must not break, raises is raised
    here too. A file that cannot be used is a `PyriteError`.
    """
    from pyrite._explain import ExplainWithBackend, compile

    record = read(path)
    if not trust:
        raise PyriteError(
            f"{path}: replaying it would execute code from the file: the function {record.told.get('function')} of "
            f"{record.told.get('file')}, with everything that its arguments need. Help: look at source.py in the archive, and if "
            "you trust where the file comes from, repeat the call with trust=True."
        )
    told = record.told
    if told.get("bytecode") != _MAGIC:
        raise PyriteError(
            f"{path}: the frame was recorded with another version of CPython (its code has the number {told.get('bytecode')}, "
            f"this interpreter's has {_MAGIC}). Help: replay it with that version."
        )
    _spaces.clear()
    try:
        function, args, kwargs = pickle.loads(record.frame)
    except Exception as error:
        raise PyriteError(
            f"{path}: the frame cannot be restored: {type(error).__name__}: {error}. Help: install the packages that it was "
            f"recorded with (torch {told.get('torch')}, pyrite {told.get('pyrite')}, and what {told.get('file')} imports)."
        ) from error
    finally:
        _spaces.clear()
    explaining = ExplainWithBackend(told["backend"])
    compile(function, backend=explaining, fullgraph=told["fullgraph"], dynamic=told["dynamic"])(*args, **kwargs)
    return explaining.output()
