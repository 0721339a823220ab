"""Whether the debugger's word holds: planted bugs, good programs, public reports, PyTorch's dumps, strangers' files."""
