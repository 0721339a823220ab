"""The settings of Pyrite, each with its meaning; see `config.py`."""

import contextlib
from typing import Any

ENVIRONMENT: dict[str, str]
DEBUG_SETTINGS: tuple[str, ...]

strict: bool
cache_size_limit: int
debug: bool
debug_calls: int
crash_reports: bool
repro_after: str | None
repro_level: int
debug_dir: str
reference: str
accuracy: str
fallback_random: bool
debug_function: str | None
verbose: bool
verify: bool
suppress_errors: bool
replay_record_enabled: bool
enable_compiler_collectives: bool
collective_timeout: float

def patch(**settings: Any) -> contextlib.ContextDecorator: ...
def reset() -> None: ...
def debugs() -> bool: ...
def debug_settings() -> dict[str, Any]: ...
