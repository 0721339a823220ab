"""Every method of sets, dicts, lists, deques, counters, chain maps and texts, their errors, views and subclasses."""

import collections
import itertools
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque

import torch
from capture.cases import case, t


@case(lambda: (t(3), {1, 2}, {2, 3}))
def sets_combined(x, a, b):
    return x + len(a | b), sorted(a & b), sorted(a - b), sorted(a ^ b), sorted(a.union(b, [9])), sorted(a.intersection(b)), sorted(a.difference([1]))


@case(lambda: (t(3), {1, 2}, {2, 3}))
def sets_changed(x, a, b):
    a |= b
    a -= {1}
    a &= {2, 3, 4}
    a ^= {7}
    a.add(8)
    a.discard(100)
    a.remove(7)
    return x * len(a), sorted(a)


@case(lambda: (t(3), {1, 2, 3}))
def sets_updated(x, a):
    a.update([4], (5,))
    a.difference_update({1})
    a.intersection_update({2, 3, 4, 5})
    a.symmetric_difference_update({5, 6})
    return x + sum(a), sorted(a)


@case(lambda: (t(3), {1, 2}))
def sets_compared(x, a):
    return x + (a <= {1, 2, 3}), a < a, a >= {1}, a.issubset([1, 2, 3]), a.issuperset([1]), a.isdisjoint([5]), a == {2, 1}, a != frozenset([1, 2])


@case(lambda: (t(3), {1}))
def sets_that_refuse(x, a):
    told = []
    for step in (lambda: a.remove(5), lambda: a.add([]), lambda: set().pop(), lambda: a | [1], lambda: hash(a)):
        try:
            step()
        except (KeyError, TypeError) as error:
            told.append(type(error).__name__)
    return x + 1, told


@case(lambda: (t(3), frozenset([1, 2])))
def frozen_sets(x, a):
    b = a | {3}
    return x + len(b), type(b).__name__, hash(a) == hash(frozenset([2, 1])), {a: 1}[frozenset([1, 2])], sorted(a.union([5])), a.copy() == a


@case(lambda: (t(3), {"a": 1}))
def sets_of_keys(x, table):
    return x + len(table.keys() | {"b"}), sorted(table.keys() & {"a"}), sorted(set(table.items()) - {("a", 1)}), {*table, "c"} == {"a", "c"}


@case(lambda: (t(3),))
def sets_of_tensors(x):
    y = x + 1
    seen = {x, y, x}
    seen.discard(y)
    return y, len(seen), x in seen, y in seen


@case(lambda: (t(3),))
def set_comprehensions(x):
    return x * len({n % 3 for n in range(7)}), {n: {n} for n in range(2)}


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dicts_read(x, table):
    return x + table.get("a"), table.get("z", 5), list(table), list(table.values()), list(table.items()), "a" in table, len(table), table == {"b": 2, "a": 1}


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dicts_changed(x, table):
    table.setdefault("c", 3)
    table.setdefault("a", 100)
    table.update(d=4)
    table.update([("e", 5)], f=6)
    removed = table.pop("a"), table.pop("z", None), table.popitem()
    table |= {"g": 7}
    del table["b"]
    return x * table["c"], removed, list(table)


@case(lambda: (t(3), {"a": 1}))
def dicts_that_refuse(x, table):
    told = []
    for step in (lambda: table["z"], lambda: table.pop("z"), lambda: {}.popitem(), lambda: table.update(5), lambda: {[]: 1}, lambda: dict([1])):
        try:
            step()
        except (KeyError, TypeError, ValueError) as error:
            told.append(type(error).__name__)
    return x + 1, told


@case(lambda: (t(3), {"a": 1, "b": 2, "c": 3}))
def dicts_in_order(x, table):
    table["a"] = table.pop("a")
    return x + 1, list(reversed(table)), list(reversed(table.items())), next(iter(table)), dict(sorted(table.items(), reverse=True))


@case(lambda: (t(3),))
def dicts_from_many_things(x):
    made = dict.fromkeys("ab", 0), dict(a=1), dict([("k", 2)]), dict(zip("xy", [1, 2], strict=True)), {**{"a": 1}, "b": 2}, {k: v for k, v in [("q", 1)]}
    return x + len(made), made


@case(lambda: (t(3), {"x": t(3), "y": t(3)}))
def tensors_in_a_dict(x, table):
    total = sum(table.values())
    table["z"] = total + x
    return {key: value * 2 for key, value in table.items()}


@case(lambda: (t(3), {1: "a", 2.0: "b", (1, 2): "c", None: "d", True: "e", "s": "f"}))
def keys_of_all_types(x, table):
    return x + len(table), table[1], table[2], table[1, 2], table[None], table["s"]


@case(lambda: (t(3), OrderedDict(a=1, b=2, c=3)))
def ordered_dicts(x, table):
    table.move_to_end("a")
    table.move_to_end("c", last=False)
    first = table.popitem(last=False)
    return x * len(table), first, list(table), table == OrderedDict(b=2, a=1), list(reversed(table))


@case(lambda: (t(3), defaultdict(list, a=[1])))
def default_dicts(x, table):
    table["a"].append(2)
    table["b"].append(3)
    return x + len(table["missing"]), dict(table), table.default_factory is list, table.get("none")


@case(lambda: (t(3),))
def default_dicts_of_functions(x):
    table = defaultdict(lambda: x * 2)
    y = table["q"] + table["q"]
    nested = defaultdict(lambda: defaultdict(int))
    nested["a"]["b"] += 1
    return y, len(table), {k: dict(v) for k, v in nested.items()}


@case(lambda: (t(3), Counter("abca")))
def counters(x, counter):
    counter.update("bb")
    counter.subtract(["a"])
    counter["z"] += 1
    return x * counter["a"], counter.most_common(2), counter.total(), sorted(counter.elements()), counter["none"], counter + Counter("a"), counter & Counter("ab")


@case(lambda: (t(3), deque([1, 2, 3], maxlen=4)))
def deques(x, queue):
    queue.append(4)
    queue.append(5)
    queue.appendleft(0)
    queue.rotate(1)
    queue.extend([7])
    queue.extendleft([8])
    queue.insert(0, 9) if len(queue) < 4 else None
    return x + queue[0], list(queue), queue.count(8), queue.maxlen, queue.index(8), queue.pop(), queue.popleft(), list(reversed(queue))


@case(lambda: (t(3), deque([1, 2])))
def deques_changed_in_place(x, queue):
    queue += [3]
    queue[0] = 5
    del queue[1]
    queue.reverse()
    other = queue.copy()
    queue.clear()
    return x + len(other), list(other), len(queue), other == deque([3, 5]), bool(queue)


@case(lambda: (t(3), ChainMap({"a": 1}, {"a": 2, "b": 3})))
def chained_maps(x, chain):
    child = chain.new_child({"c": 4})
    child["a"] = 9
    return x * chain["b"], child["a"], sorted(child), len(child.maps), dict(chain.parents), chain.get("q")


class Settings(UserDict):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2


@case(lambda: (t(3), Settings(a=1)))
def user_dicts(x, settings):
    settings["b"] = 3
    return x + settings["a"], settings["b"], len(settings), "a" in settings, sorted(settings.data)


@case(lambda: (t(3), UserList([3, 1]), UserString("ab")))
def user_lists_and_texts(x, items, text):
    items.append(2)
    return x + items[0], sorted(items), len(items), text.upper() == "AB", text + "c"


@case(lambda: (t(3), [3, 1, 2]))
def lists_changed(x, items):
    items.append(5)
    items.extend((6, 7))
    items.insert(1, 9)
    items.remove(9)
    popped = items.pop(), items.pop(0)
    items[1:2] = [8, 8]
    items[::2] = [0] * len(items[::2])
    del items[0]
    items.sort(reverse=True)
    items *= 2
    return x * items[0], popped, items, items.index(8), items.count(8)


@case(lambda: (t(3), [1, 2]))
def lists_that_refuse(x, items):
    told = []
    steps = (lambda: items.remove(9), lambda: items.index(9), lambda: items[5], lambda: items.insert("a", 1), lambda: [].pop(), lambda: items + (1,), lambda: [1] < ["a"])
    for step in steps:
        try:
            step()
        except (ValueError, IndexError, TypeError) as error:
            told.append(str(error))
    return x + 1, told


@case(lambda: (t(3), [1, 2, 3]))
def lists_compared(x, items):
    return x + (items < [1, 2, 4]), items == [1, 2, 3], items != [1], [1, [2]] == [1, [2]], items >= [0], (1, 2) < (1, 3), [x] == [x], x in [x]


@case(lambda: (t(3),))
def lists_of_tensors_sorted(x):
    parts = [x, x * 2, x + 5]
    parts.sort(key=lambda p: p.shape)
    parts.reverse()
    return parts[0], parts[::-1][0], [*parts, *parts][4]


@case(lambda: (t(3),))
def lists_inside_lists(x):
    grid = [[0] * 2 for _ in range(2)]
    grid[0][1] = x
    grid[1] += [1]
    shared = [[]] * 2
    shared[0].append(1)
    return grid, shared, [b for a in [[1, 2], [3]] for b in a if b != 2]


@case(lambda: (t(3), (1, 2, 3)))
def tuples(x, items):
    a, *b = items
    return x + a, b, items.index(2), items.count(3), items + (4,), items * 2, items[::-1], hash(items) == hash((1, 2, 3)), sorted(items, reverse=True)


@case(lambda: (t(3), "Hello, World"))
def texts_examined(x, text):
    told = text.lower(), text.swapcase(), text.find("o"), text.rfind("o"), text.index("W"), text.count("l"), text.partition(", "), text.rpartition("o")
    return x + len(text), told, text.startswith(("He", "x")), text.endswith("ld"), text[::-1], text.isalpha(), "World" in text


@case(lambda: (t(3), " a,b ,c "))
def texts_taken_apart(x, text):
    return x, text.split(","), text.strip().split(None), text.rsplit(",", 1), "a\nb".splitlines(), text.removeprefix(" a"), text.removesuffix("c "), text.replace(",", ";", 1)


@case(lambda: (t(3), "ab"))
def texts_put_together(x, text):
    told = text.join(["1", "2"]), text.center(6, "*"), text.ljust(4) + "|", text.zfill(5), text * 3, text.title(), text.capitalize(), text.casefold()
    return x * 2, told, text.encode(), b"xy".decode(), text.translate(str.maketrans("a", "z")), "%s-%d" % (text, 3), "{0}{1!r:>5}".format(text, text)


@case(lambda: (t(3), b"abc"))
def bytes_examined(x, data):
    return x + data[0], data[1:], data.hex(), data.find(b"c"), data.upper(), len(data), list(data), data + b"d", bytearray(data)[0], data.startswith(b"a")


@case(lambda: (t(3), [1, 2, 3, 4]))
def iterators_of_itertools(x, items):
    told = (
        list(itertools.chain(items, [5])),
        list(itertools.islice(items, 1, 3)),
        list(itertools.pairwise(items)),
        list(itertools.takewhile(lambda n: n < 3, items)),
        list(itertools.dropwhile(lambda n: n < 3, items)),
        list(itertools.filterfalse(lambda n: n % 2, items)),
        list(itertools.compress(items, [1, 0, 1, 0])),
        list(itertools.starmap(pow, [(2, 3)])),
        list(itertools.zip_longest(items, [9], fillvalue=0)),
    )
    return x + len(told), told


@case(lambda: (t(3), [1, 2, 3]))
def combinations_of_itertools(x, items):
    return (
        x + len(list(itertools.product(items, repeat=2))),
        list(itertools.permutations(items, 2)),
        list(itertools.combinations(items, 2)),
        list(itertools.combinations_with_replacement("ab", 2)),
        list(itertools.accumulate(items, initial=10)),
        [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])],
        list(itertools.chain.from_iterable([[1], [2]])),
    )


@case(lambda: (t(3),))
def endless_iterators(x):
    counted = itertools.count(5, 2)
    cycled = itertools.cycle([x, x * 2])
    repeated = itertools.repeat(3, 2)
    return next(counted) + next(cycled) + next(cycled), next(counted), list(repeated), next(cycled)


@case(lambda: (t(3),))
def an_iterator_split_in_two(x):
    first, second = itertools.tee([x, x + 1, x + 2])
    next(first)
    return next(first) + next(second), len(list(second))


@case(lambda: (t(3), itertools.count(3)))
def an_endless_iterator_given(x, counted):
    return x + next(counted) * next(counted)


@case(lambda: (t(3), iter([1, 2, 3])))
def an_iterator_given_and_left(x, items):
    return x * next(items) + next(items), next(items, None)


@case(lambda: (t(3),))
def zips_maps_and_filters(x):
    pairs = zip([x, x * 2], [1, 2], strict=True)
    scaled = list(map(lambda a, b: a * b, [x, x], [3, 4]))
    kept = list(filter(None, [0, 1, 2]))
    return [a + b for a, b in pairs], scaled, kept, list(enumerate("ab", 5)), list(reversed(range(3)))


@case(lambda: (t(3),))
def a_zip_kept_and_advanced(x):
    pairs = zip([x, x * 2, x * 3], itertools.count())
    first = next(pairs)
    rest = list(pairs)
    return first[0] + rest[0][0], len(rest), next(pairs, "end")


@case(lambda: (t(3), {"a": 1}))
def views_that_follow(x, table):
    keys, values, items = table.keys(), table.values(), table.items()
    table["b"] = 2
    return x + len(keys), list(values), ("b", 2) in items, keys == {"a", "b"}, keys.isdisjoint({"q"}), keys.mapping["a"]


class Bag(collections.abc.MutableSet):
    def __init__(self, items=()):
        self.items = list(items)

    def __contains__(self, item):
        return item in self.items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)

    def add(self, item):
        if item not in self.items:
            self.items.append(item)

    def discard(self, item):
        if item in self.items:
            self.items.remove(item)


@case(lambda: (t(3), Bag([1, 2])))
def a_set_of_the_user(x, bag):
    bag.add(3)
    bag |= {4}
    bag.discard(1)
    return x + len(bag), sorted(bag), 4 in bag, bag.isdisjoint([9]), sorted(bag & {2, 3})


class Table(collections.abc.Mapping):
    def __init__(self, **held):
        self.held = held

    def __getitem__(self, key):
        return self.held[key]

    def __iter__(self):
        return iter(self.held)

    def __len__(self):
        return len(self.held)


@case(lambda: (t(3), Table(a=1, b=2)))
def a_mapping_of_the_user(x, table):
    return x * table["a"] + table.get("z", 3), "b" in table, list(table.items()), {**table}, dict(table), table == Table(a=1, b=2)


@case(lambda: (t(3),))
def a_mapping_of_the_user_spread(x):
    def gather(a, b):
        return a + b

    return gather(**Table(a=x, b=1))


@case(lambda: (t(3), [t(3), t(3)]))
def unpacked_everywhere(x, items):
    first, (second, *rest), [third] = items[0], (1, 2, 3), [x]
    *head, tail = [first, third]
    return head[0] + tail, second, rest


@case(lambda: (t(3), slice(1, 3)))
def slices_given(x, part):
    return x[part], [1, 2, 3, 4][part], part.start, part.indices(10), slice(None, 2) == slice(None, 2, None)


@case(lambda: (t(3), range(2, 10, 3)))
def ranges_given(x, numbers):
    return x + numbers[1], len(numbers), 5 in numbers, numbers.index(8), numbers[::-1], numbers.stop, list(numbers), numbers == range(2, 9, 3), sum(numbers)


@case(lambda: (t(3),))
def torch_sizes(x):
    size = x.unsqueeze(0).shape
    return x + size.numel(), size + (2,), size[1:], list(size), size == (1, 3), torch.Size([2, 3]), isinstance(size, tuple), size.count(3)
