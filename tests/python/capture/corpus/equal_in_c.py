"""Objects of classes that are derived from classes written in C, which say what they are equal to."""

import collections
import datetime
import decimal

from capture.cases import Reuse, case, t


class Turn(complex):
    def __format__(self, specification):
        return "turn"


class Members(frozenset):
    def __format__(self, specification):
        return "members"


class Held(set):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class Line(collections.deque):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class Day(datetime.date):
    pass


class Price(decimal.Decimal):
    pass


class Bytes(bytearray):
    pass


@case(lambda: (t(3), Turn(1j), Members((1, 2)), Held((1, 2)), Line((1, 2))), reuse=Reuse.FREE)
def values_from_outside_and_their_bases(x, turn, members, held, line):
    equal = [turn == 1j, 1j == turn, members == {1, 2}, {1, 2} == members, held == {1, 2}, {1, 2} == held, line == collections.deque((1, 2))]
    found = [turn in [1j], members in [{1, 2}], [held].count({1, 2}), {1j: 1}.get(turn), {frozenset((1, 2)): 1}.get(members)]
    return x + 1, equal, found


@case(lambda: (t(3), Day(2020, 1, 1), Price("1.5"), Bytes(b"ab")), reuse=Reuse.FREE)
def objects_from_outside_that_are_equal(x, day, price, text):
    equal = [day == datetime.date(2020, 1, 1), day == Day(2020, 1, 1), price == decimal.Decimal("1.5"), price == 1.5, text == b"ab", text == Bytes(b"ab"), day != Day(2020, 1, 1)]
    return x + 1, equal, day in [Day(2020, 1, 1)], [price] == [Price("1.5")], day < Day(2021, 1, 1)


@case(lambda: (t(3),))
def objects_made_that_are_equal(x):
    pairs = [(Turn(1j), 1j), (Members((1, 2)), {1, 2}), (Held((1, 2)), {1, 2}), (Day(2020, 1, 1), Day(2020, 1, 1)), (Price("1.5"), Price("1.5"))]
    return x + 1, [left == right for left, right in pairs], [left in [right] for left, right in pairs]
