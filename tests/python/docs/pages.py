"""Pages of documentation as programs.

The fenced blocks of a page are carried out from top to bottom in one empty folder:

- a block ```` ```python NAME ```` is written to the file NAME;
- every line of a block ```` ```sh ```` is a command; `# exit N` at its end says with which code it ends, else it is 0;
- a block ```` ```text ```` right after commands shows what they print: its lines occur in this order, `…` stands for any
  text, and what is between two lines may be left out;
- a block ```` ```sh not run ```` is shown only. Such commands build or install; nothing else may be left out.

Blocks of other kinds are read by people.
"""

import os
import pathlib
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).parents[3]
FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALLING = re.compile(r"^(cargo|pip|git|apt-get|maturin|source|eval) ")


@dataclass
class Command:
    """A command with the code it ends with and the lines it prints."""

    words: str
    line: int
    code: int = 0
    expected: list = field(default_factory=list)


@dataclass
class File:
    """A file that the page writes."""

    name: str
    text: str


def steps(text):
    """What a page says to do, in order."""
    found, last = [], None
    for block in FENCE.finditer(text):
        info, body = block[1].strip(), block[2]
        line = text[: block.start()].count("\n") + 2
        between = text[last[1] : block.start()] if last else ""
        if info.startswith("python "):
            found.append(File(info.split(None, 1)[1], body))
        elif info == "sh":
            commands = list(commands_of(body, line))
            found += commands
            last = (commands[-1], block.end())
        elif info == "text" and last and not between.strip():
            last[0].expected = [line.strip() for line in body.splitlines() if line.strip()]
        elif info == "sh not run":
            for command in commands_of(body, line):
                if not INSTALLING.match(command.words):
                    raise ValueError(f"line {command.line}: `{command.words}` builds and installs nothing: let it run")
    return found


def commands_of(body, line):
    """The commands of a block; a backslash at the end of a line goes on in the next."""
    pending, start = "", line
    for number, words in enumerate(body.splitlines(), line):
        start = number if not pending else start
        pending += words
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        words, _, comment = pending.partition("  # ")
        exits = re.match(r"exit (\d+)", comment)
        if words.strip():
            yield Command(words.strip(), start, int(exits[1]) if exits else 0)
        pending = ""


def missing(expected, printed):
    """The first of the expected lines that is not printed where it should be, or None."""
    lines = iter(printed.splitlines())
    for wanted in expected:
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("…")))
        if not any(pattern.search(" ".join(line.split())) or pattern.search(line) for line in lines):
            return wanted
    return None


def environment(folder, binary):
    """An environment in which `pyrite` is the binary and `python` this interpreter, with Pyrite's variables unset."""
    programs = folder / "programs"
    programs.mkdir()
    for name, program in (("pyrite", binary), ("python", sys.executable), ("python3", sys.executable)):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
        script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYRITE_")}
    return {**kept, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}


def carry_out(page, folder, binary):
    """Does what a page says, in a folder, and returns how many commands that were; a surprise is an AssertionError."""
    around = environment(folder, binary)
    place = folder / "place"
    place.mkdir()
    count = 0
    for step in steps(page.read_text()):
        if isinstance(step, File):
            (place / step.name).write_text(step.text)
            continue
        where = f"{page.relative_to(ROOT)}:{step.line}: {step.words}"
        begun = time.monotonic()
        done = subprocess.run(
            ["bash", "-c", step.words], cwd=place, env=around, text=True, timeout=300, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        print(f"{time.monotonic() - begun:6.1f} s  {step.words}")
        assert done.returncode == step.code, f"{where}\nexit code {done.returncode}, the page says {step.code}\n{done.stdout}"
        lost = missing(step.expected, done.stdout)
        assert lost is None, f"{where}\nthe page shows `{lost}`; printed was\n{done.stdout}"
        count += 1
    return count
