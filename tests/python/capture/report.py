"""`python -m capture.report`: the corpus through one compiler, and a table of what differs from plain Python.

    python -m capture.report --compiler pyrite --cases 'breaks.*'
    python -m capture.report --compiler dynamo --record

Every case runs in a process of its own, so a crash is a line of the table. With `--together` one process serves as long as it lives, which
takes a tenth of the time; only a case that ends it gets its own. `--record` writes what TorchDynamo does with the cases to
`dynamo.json`, beside what it has of others: graphs, breaks, and where it differs from plain Python. `--json` prints rows of that form, one object, instead of the table.
"""

import argparse
import fnmatch
import functools
import json
import logging
import pathlib
import re
import sys
import time
import warnings
import zlib

from capture import harness, isolation
from capture.cases import corpus

RECORD = pathlib.Path(__file__).with_name("dynamo.json")
TIME_LIMIT = 60


def recorded():
    """What TorchDynamo does with each case."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def judge(case, compiler):
    """Where the case differs, and its graphs and breaks."""
    parting = harness.check(case, compiler)
    return parting, harness.count(case, compiler)


def is_among(name, every):
    """Whether a case is one of those that stand for `every` as many."""
    return zlib.crc32(name.encode()) % every == 0


def without_paths(text):
    """The first line of what differs, with files as they are named in the corpus: where a checkout lies is nobody's business."""
    return text and re.sub(r"[^\s\"']*/(?=[\w.-]+\.py\b)", "", text.splitlines()[0])


def row(told, death):
    """One row of the table."""
    parting, counts = told or (death, None)
    return {
        "graphs": counts.graphs if counts else None,
        "breaks": counts.breaks if counts else None,
        "differs": without_paths(parting),
    }


def write(rows):
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items())]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


HEADING = f"{'case':<55} {'graphs':>6} {'Dynamo':>6} {'breaks':>6} {'Dynamo':>6}  differs"


def print_row(name, row, other):
    shown = [row["graphs"], other.get("graphs"), row["breaks"], other.get("breaks")]
    figures = " ".join(f"{'-' if figure is None else figure:>6}" for figure in shown)
    print(f"{name:<55} {figures}  {(row['differs'] or '')[:200]}", flush=True)


def print_sum(rows, peer):
    right = sum(row["differs"] is None for row in rows.values())
    more = [name for name, row in rows.items() if (row["breaks"] or 0) > (peer.get(name, {}).get("breaks") or 0)]
    # A frame that Dynamo leaves to Python has no breaks there.
    plain = [name for name in more if not peer.get(name, {}).get("graphs")]
    print(f"{right} of {len(rows)} cases as in plain Python, {len(more)} with more breaks than Dynamo, which captures nothing of {len(plain)} of them")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", choices=harness.COMPILERS, default="pyrite")
    parser.add_argument("--cases", default="*", help="a pattern of names")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only one of N cases, always the same ones")
    parser.add_argument("--record", action="store_true", help="write dynamo.json")
    parser.add_argument("--together", action="store_true", help="run all cases in one process as long as none ends it")
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON object")
    options = parser.parse_args()
    if options.record and options.compiler != "dynamo":
        parser.error("--record goes with --compiler dynamo")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    isolation.prepare()
    compiler = harness.COMPILERS[options.compiler]()
    start = time.perf_counter()
    cases = {name: case for name, case in corpus().items() if fnmatch.fnmatch(name, options.cases) and is_among(name, options.every)}
    works = [functools.partial(judge, case, compiler) for case in cases.values()]
    if options.together:
        answers = isolation.together(works, TIME_LIMIT)
    else:
        answers = (isolation.in_a_fork(work, TIME_LIMIT) for work in works)
    rows, peer = {}, recorded()
    if not options.json:
        print(HEADING)
    for name, answer in zip(cases, answers, strict=True):
        rows[name] = row(*answer)
        if not options.json:
            print_row(name, rows[name], peer.get(name, {}))
    if options.record:
        write({name: row for name, row in {**peer, **rows}.items() if name in corpus()})
    if options.json:
        print(json.dumps(rows))
    else:
        print_sum(rows, peer)
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)
    return 0 if all(row["differs"] is None for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
