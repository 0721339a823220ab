"""Globals and attributes of modules, read and written."""

import torch
from capture.cases import case, t

FACTOR = 3
COUNT = 0
LOG = []
TABLE = {"calls": 0}
BIAS = torch.ones(3)
LATEST = None


class Settings:
    level = 1


SETTINGS = Settings()


@case(lambda: (t(3),))
def global_constant(x):
    return x * FACTOR


@case(lambda: (t(3),))
def global_tensor(x):
    return x + BIAS


@case(lambda: (t(3),), watch=["COUNT"])
def global_counter(x):
    global COUNT
    COUNT += 1
    return x + COUNT


@case(lambda: (t(3),), watch=["LATEST"])
def global_holds_a_tensor(x):
    global LATEST
    LATEST = x * 2
    return LATEST + 1


@case(lambda: (t(3),), watch=["LOG"])
def global_list_grows(x):
    LOG.append(x + 1)
    LOG.append("done")
    return len(LOG)


@case(lambda: (t(3),), watch=["TABLE"])
def global_dict_changes(x):
    TABLE["calls"] += 1
    TABLE[f"result {TABLE['calls']}"] = x * TABLE["calls"]
    return x


@case(lambda: (t(3),), watch=["SETTINGS"])
def global_object_changes(x):
    SETTINGS.level = 5
    SETTINGS.seen = x + 1
    return x * SETTINGS.level


@case(lambda: (t(3),), watch=["BIAS"])
def global_tensor_changes_in_place(x):
    BIAS.add_(x)
    return BIAS * 2


@case(lambda: (t(3),), watch=["BIAS"])
def global_tensor_replaced(x):
    global BIAS
    BIAS = BIAS + x
    return BIAS


def bump():
    global COUNT
    COUNT += 10
    return COUNT


@case(lambda: (t(3),), watch=["COUNT"])
def global_written_by_a_callee(x):
    first = bump()
    return x * first + COUNT + bump()


@case(lambda: (t(3),))
def global_that_is_missing_raises(x):
    return x + NO_SUCH_NAME  # noqa: F821


@case(lambda: (t(3),), watch=["COUNT"])
def globals_by_dict(x):
    globals()["COUNT"] = 7
    return x + COUNT


@case(lambda: (t(3),), watch=["LATEST"])
def global_deleted_and_set(x):
    global LATEST
    LATEST = 1
    del LATEST
    try:
        LATEST
    except NameError:
        LATEST = x + 1
    return LATEST


@case(lambda: (t(3),), watch=["COUNT"])
def global_written_then_an_exception(x):
    global COUNT
    COUNT = x.shape[0]
    raise RuntimeError("after the write")


@case(lambda: (t(3),), watch=["COUNT", "LOG"])
def global_written_around_a_break(x):
    global COUNT
    COUNT += 1
    y = x * COUNT
    print("break")
    COUNT += 1
    LOG.append(COUNT)
    return y + COUNT


@case(lambda: (t(3),))
def import_inside(x):
    import math
    from torch import nn

    return x * math.sqrt(4), nn.functional.relu(x)


@case(lambda: (t(3),))
def attributes_of_modules(x):
    return torch.nn.functional.relu(x) * torch.pi, torch.float32.is_floating_point


@case(lambda: (t(3),), watch=["TABLE"])
def read_and_write_in_turn(x):
    for n in range(3):
        TABLE["calls"] = TABLE["calls"] + n
        x = x + TABLE["calls"]
    return x


@case(lambda: (t(3),), watch=["LOG"])
def global_list_replaced_in_part(x):
    LOG[:] = [1, 2, 3]
    LOG[1] = x
    return LOG[2] * x


@case(lambda: (t(3),), watch=["SETTINGS"])
def setattr_and_delattr(x):
    setattr(SETTINGS, "temporary", x)  # noqa: B010
    delattr(SETTINGS, "temporary")
    SETTINGS.__dict__["direct"] = 3
    return x * SETTINGS.direct
