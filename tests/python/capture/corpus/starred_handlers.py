"""`except*`, groups of exceptions, and what handlers of groups raise and leave."""

import torch
from capture.cases import case, t


@case(lambda: (t(3),))
def one_kind_of_a_group(x):
    try:
        raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])
    except* ValueError as group:
        x = x + len(group.exceptions)
    except* KeyError as group:
        x = x * 3
    return x


@case(lambda: (t(3),))
def a_plain_exception_in_a_group(x):
    try:
        raise ValueError("alone")
    except* ValueError as group:
        return_value = x + 1, type(group).__name__, str(group.exceptions[0])
    return return_value


@case(lambda: (t(3),))
def the_rest_of_a_group_goes_on(x):
    try:
        try:
            raise ExceptionGroup("several", [ValueError("a"), TypeError("b")])
        except* ValueError:
            x = x + 1
    except ExceptionGroup as rest:
        return x, rest.message, [type(each).__name__ for each in rest.exceptions]


@case(lambda: (t(3),))
def nothing_was_raised(x):
    try:
        x = x + 1
    except* ValueError:
        x = x * 100
    else:
        x = x * 2
    finally:
        x = x - 1
    return x


@case(lambda: (t(3),))
def groups_within_groups(x):
    log = []
    try:
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError(1), OSError(2)]), ValueError(3)])
    except* ValueError as group:
        log.append(len(group.exceptions))
    except* OSError as group:
        log.append(group.exceptions[0].exceptions[0].args)
    return x + 1, log


@case(lambda: (t(3),))
def a_group_split_by_hand(x):
    group = ExceptionGroup("several", [ValueError("a"), KeyError("b")])
    match, rest = group.split(ValueError)
    return x + 1, str(match.exceptions[0]), [type(each).__name__ for each in rest.exceptions], group.subgroup(OSError)


@case(lambda: (t(3),))
def raised_inside_of_a_handler_of_groups(x):
    try:
        try:
            raise ExceptionGroup("several", [ValueError("a")])
        except* ValueError:
            raise RuntimeError("again")
    except ExceptionGroup as error:
        return x + 1, type(error.exceptions[0]).__name__
    except RuntimeError as error:
        return x - 1, str(error)


@case(lambda: (t(3),))
def a_group_over_a_break(x):
    try:
        raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])
    except* ValueError:
        print("value")
        x = x + 1
    except* KeyError:
        print("key")
        x = x * 2
    return x


@case(lambda: (t(3), [1, 0, 2, "q"]))
def errors_gathered_in_a_loop(x, items):
    errors = []
    for item in items:
        try:
            x = x + 1 // item
        except (ZeroDivisionError, TypeError) as error:
            errors.append(error)
    try:
        if errors:
            raise ExceptionGroup("while adding", errors)
    except* ZeroDivisionError as group:
        x = x * len(group.exceptions)
    except* TypeError as group:
        x = x - len(group.exceptions)
    return x


class Derived(ExceptionGroup):
    def derive(self, exceptions):
        return Derived(self.message, exceptions)


@case(lambda: (t(3),))
def a_group_of_a_class_of_its_own(x):
    try:
        raise Derived("mine", [ValueError("a"), KeyError("b")])
    except* ValueError as group:
        x = x + (1 if type(group) is Derived else 2)
    except* KeyError as group:
        x = x * (3 if isinstance(group, Derived) else 4)
    return x


@case(lambda: (t(3),))
def a_torch_error_in_a_handler_of_groups(x):
    try:
        x.reshape(7)
    except* RuntimeError as group:
        x = x + len(group.exceptions)
    return torch.sin(x)
