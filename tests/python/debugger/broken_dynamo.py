"""A Dynamo that loses what a traced function appends to lists from outside, for `--import broken_dynamo`."""

from torch._dynamo.side_effects import SideEffects
from torch._dynamo.variables.lists import ListVariable

is_modified = SideEffects.is_modified
SideEffects.is_modified = lambda self, item: not isinstance(item, ListVariable) and is_modified(self, item)
