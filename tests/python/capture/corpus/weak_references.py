"""Weak references: to objects of the frame and from outside, as keys, in the library's containers."""

import weakref

from capture.cases import Reuse, case, t


class Token:
    """Something to refer to."""


class Knot:
    def __init__(self, value):
        self.value = value
        self.parent = None
        self.children = []

    def tie(self, child):
        child.parent = weakref.ref(self)
        self.children.append(child)
        return self


FIRST, SECOND = Token(), Token()
NOTED = weakref.WeakSet([FIRST])
NUMBERED = weakref.WeakKeyDictionary({FIRST: 5})


@case(lambda: (t(3),))
def parents_of_a_tree(x):
    root = Knot(x).tie(Knot(x + 1)).tie(Knot(2))
    return sum(child.value for child in root.children) + root.children[0].parent().value


@case(lambda: (t(3),))
def referent_that_has_ended(x):
    gone = weakref.ref(Token())
    held = Knot(2)
    reference = weakref.ref(held)
    before = reference() is held
    del held
    return x + 1, gone() is None, before, reference() is None


@case(lambda: (t(3),))
def one_reference_for_an_object(x):
    held = Knot(2)
    reference = weakref.ref(held)
    return x + 1, weakref.ref(held) is reference, weakref.ref(held) == reference, {reference: 1}[weakref.ref(held)]


@case(lambda: (t(3),))
def tree_that_leaves_the_frame(x):
    root = Knot(x + 1).tie(Knot(2))
    return root.value, root.children[0].parent() is root


@case(lambda: (t(3), FIRST), lambda: (t(3), SECOND))
def member_of_a_weak_set(x, token):
    return x + (token in NOTED) * 2


@case(lambda: (t(3), FIRST), lambda: (t(3), SECOND))
def value_of_a_weak_key(x, token):
    return x + NUMBERED.get(token, 1)


@case(lambda: (t(3),))
def weak_keys_in_order(x):
    return x + sum(NUMBERED.values()), len(NUMBERED), [key is FIRST for key in NUMBERED]


@case(lambda: (t(3), Token()))
def weak_keys_made_inside(x, token):
    numbers = weakref.WeakKeyDictionary()
    numbers[token] = x
    numbers[FIRST] = 2
    return numbers[token] + numbers[FIRST], len(numbers), SECOND in numbers


@case(lambda: (t(3), Token()))
def weak_set_made_inside(x, token):
    tokens = weakref.WeakSet()
    tokens.add(token)
    tokens.add(token)
    return x + len(tokens), token in tokens, FIRST in tokens


@case(lambda: (t(3), Token()), reuse=Reuse.FREE)
def weak_keys_that_leave_the_frame(x, token):
    numbers = weakref.WeakKeyDictionary()
    numbers[token] = 3
    return x + 1, len(numbers), list(numbers.values())


@case(lambda: (t(3),))
def reference_to_a_tensor(x):
    reference = weakref.ref(x)
    return reference() + 1, reference() is x
