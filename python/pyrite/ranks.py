"""Agreement between the ranks of a torch.distributed job.

Ranks often get batches of different sizes. Where each compiled for its own, they would go on to compile again at different
times, and those that wait in a collective would run into its time-out. So before a frame is compiled, the ranks tell one
another the sizes of its inputs through the job's store, and what differs is dynamic from the start, in all of them.

Nothing here can hang: a rank whose partners do not compile the same function within `config.collective_timeout` seconds
says so and goes on with its own sizes.
"""

from __future__ import annotations

import collections
import datetime
import json
import warnings

import torch.distributed

from pyrite import config

# How often each function was compiled: the ranks meet at the same turn.
_turns = collections.Counter()
_alone = set()


def run_compiler_collective(function, sizes):
    """The sizes, by input and dimension, that differ between ranks. `sizes` has a name and a shape for each input."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return []
    rank, count = distributed.get_rank(), distributed.get_world_size()
    if count == 1 or function in _alone:
        return []
    _turns[function] += 1
    keys = [f"pyrite/{function}/{_turns[function]}/{each}" for each in range(count)]
    store = distributed.distributed_c10d._get_default_store()
    store.set(keys[rank], json.dumps(sizes))
    try:
        store.wait(keys, datetime.timedelta(seconds=config.collective_timeout))
    except RuntimeError:
        _alone.add(function)
        warnings.warn(
            f"rank {rank} compiles {function} with its own sizes: the other ranks did not compile it within "
            f"{config.collective_timeout:g} s. Help: compile the same functions on all ranks, or set "
            "pyrite.config.enable_compiler_collectives = False.",
            RuntimeWarning,
            stacklevel=4,
        )
        return []
    return differing(sizes, [json.loads(store.get(key)) for key in keys])


def differing(sizes, of_ranks):
    """The places in `sizes` where the ranks have other numbers. Inputs are matched by name and number of dimensions."""
    others = [{(name, len(shape)): shape for name, shape in each} for each in of_ranks]
    found = []
    for index, (name, shape) in enumerate(sizes):
        shapes = [each[name, len(shape)] for each in others if (name, len(shape)) in each]
        found += [(index, dim) for dim in range(len(shape)) if len({other[dim] for other in shapes}) > 1]
    return found
