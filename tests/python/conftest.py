"""What the tests share: the pyrite binary, named by PYRITE_BIN, and PyTorch's dumps of the five models."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cpu  # noqa: E402, F401  (before torch)

# Several processes share the processors. Threads of torch that wait for work by spinning would take them from those that have some.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


# Proofs take a fresh interpreter and fresh caches each, minutes in all: `cargo xtask nightly` runs them.
collect_ignore = [] if os.environ.get("PYRITE_PROOFS") else [f"debugger/test_{name}.py" for name in ("minifier", "proof", "scripts", "torch_backends")]

# Why tests may be skipped. Any other reason fails the run: a package that cannot be imported is no reason to test less.
EXPECTED_SKIPS = ("no Chromium", "memory is read where Linux has it", "tests of others are not installed")


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    reasons = [str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr) for report in reporter.stats.get("skipped", [])]
    unexpected = sorted({reason for reason in reasons if not any(expected in reason for expected in EXPECTED_SKIPS)})
    if unexpected and exitstatus == pytest.ExitCode.OK:
        reporter.write_line("")
        reporter.write_line(f"unexpected skips: {'; '.join(unexpected)}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def pyrite():
    """Runs the pyrite command and returns its standard output; an unexpected exit code fails the test with what it wrote."""
    binary = os.environ.get("PYRITE_BIN")
    if not binary:
        pytest.fail("set PYRITE_BIN to the path of the pyrite binary", pytrace=False)

    def run(*arguments, code=0):
        done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            pytest.fail(f"pyrite {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}", pytrace=False)
        return done.stdout

    return run


@pytest.fixture(scope="session")
def dumps():
    """The directory with the dumps of the five models."""
    from models import dump_models

    return dump_models.dumps()
