"""Lists, tuples, dicts, sets and their relatives: methods, slices, unpacking, identity, changes that the caller sees."""

import collections
import copy
import types

import torch
from capture.cases import case, t


@case(lambda: (t(3),))
def list_built_by_methods(x):
    items = [x]
    items.append(x + 1)
    items.extend([x + 2, x + 3])
    items.insert(0, x - 1)
    last = items.pop()
    first = items.pop(0)
    items.reverse()
    return items, first, last


@case(lambda: (t(3), [1, 2]), lambda: (t(3), []))
def list_of_the_caller_grows(x, items):
    items.append(x + 1)
    items += [3]
    return len(items)


@case(lambda: (t(3), [t(3), t(3)]), lambda: (t(3), [t(3)]))
def list_of_the_caller_is_read(x, items):
    return sum(items, x)


@case(lambda: (t(3), [3, 1, 2]))
def list_of_the_caller_is_sorted(x, items):
    items.sort(reverse=True)
    items[0] = x * items[0]
    del items[1]
    return items


@case(lambda: (t(3), [1, 2, 3, 4, 5, 6]))
def list_slices(x, n):
    n[1:3] = [20, 30, 40]
    del n[-1]
    return x * n[1], n[::2], n[::-1], n[-3:], n[:2] + n[4:]


@case(lambda: (t(3),))
def list_queries(x):
    items = [5, 3, 5, 1]
    return x + items.index(5, 1), items.count(5), 3 in items, len(items), items.copy() == items


@case(lambda: (t(3),))
def list_arithmetic(x):
    return [x] * 2 + [x + 1], [1, 2] < [1, 3], [1] == [1], [] or [3]


@case(lambda: (t(3),))
def list_clear_and_remove(x):
    items = [1, 2, 3, 2]
    items.remove(2)
    kept = list(items)
    items.clear()
    return x + len(items), kept


@case(lambda: (t(3),))
def list_index_raises(x):
    items = [x]
    return items[3]


@case(lambda: (t(3),))
def list_remove_raises(x):
    [1, 2].remove(5)
    return x


@case(lambda: (t(3), (1, 2, 3)), lambda: (t(3), (4, 5, 6)))
def tuple_unpacked(x, values):
    a, b, c = values
    return x * a + b, c


@case(lambda: (t(3), [1, 2, 3, 4]), lambda: (t(3), [1, 2]))
def starred_unpacking(x, values):
    first, *middle, last = values
    *start, end = values
    return x + first + last + end, middle, start


@case(lambda: (t(3), (1, (2, [3, 4]))))
def nested_unpacking(x, values):
    a, (b, (c, d)) = values
    return x + a + b + c + d


@case(lambda: (t(3), [1, 2, 3]))
def unpacking_too_many_raises(x, values):
    a, b = values
    return x + a + b


@case(lambda: (t(3), [1]))
def unpacking_too_few_raises(x, values):
    a, b, *c = values
    return x + a + b


@case(lambda: (t(3),))
def tuple_operations(x):
    pair = (x, 1)
    longer = pair + (2, 3) * 2
    numbers = longer[1:4]
    return longer, numbers, numbers.count(2), numbers.index(3), hash((1, 2)) == hash((1, 2))


@case(lambda: (t(3),))
def starred_displays(x):
    items = [1, 2]
    return [0, *items, 3], (*items, x), {*items, 5}, {**{"a": 1}, "b": x}


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"b": 2, "a": 1}), lambda: (t(3), {"a": 1}))
def dict_iterated(x, table):
    for key, value in table.items():
        x = x * value + len(key)
    return x, list(table), list(table.values())


@case(lambda: (t(3), {"a": t(3)}), lambda: (t(3), {}))
def dict_of_the_caller_grows(x, table):
    table["sum"] = x + table.get("a", 1)
    table.setdefault("n", 3)
    table.update({"z": 1}, y=2)
    return table.pop("missing", None)


@case(lambda: (t(3), {"a": 1, "b": 2, "c": 3}))
def dict_shrinks(x, table):
    value = table.pop("a")
    del table["b"]
    last = table.popitem()
    return x * value, last, len(table)


@case(lambda: (t(3),))
def dict_built_in_many_ways(x):
    return dict(a=x), dict([("b", x + 1)]), {k: x * k for k in range(3)}, dict.fromkeys(["p", "q"], 0), dict(zip("ab", [1, 2]))


@case(lambda: (t(3),))
def dict_keys_of_many_kinds(x):
    table = {1: x, "s": x + 1, (1, 2): x + 2, None: x + 3, True: x + 4, 2.5: x + 5}
    return table[1], table["s"], table[(1, 2)], table[None], table[2.5], len(table)


@case(lambda: (t(3),))
def dict_with_a_tensor_key(x):
    y = x + 1
    table = {x: 1, y: 2}
    return y * table[x], table[y], x in table


@case(lambda: (t(3),))
def dict_missing_key_raises(x):
    return {"a": x}["b"]


@case(lambda: (t(3), {"a": 1}), lambda: (t(3), {"b": 1}))
def dict_membership(x, table):
    return x + 1 if "a" in table else x - 1


@case(lambda: (t(3),))
def dict_union_and_comparison(x):
    a, b = {"p": 1}, {"q": 2}
    c = a | b
    a |= {"p": 5}
    return x * c["q"], a, c, a == {"p": 5}, c.keys() & {"p"}, c.keys() == {"q", "p"}


@case(lambda: (t(3),))
def dict_changed_while_iterated_raises(x):
    table = {"a": 1}
    for key in table:
        table[key + "x"] = x
    return table


@case(lambda: (t(3),))
def dict_order_after_reinsertion(x):
    table = {"a": 1, "b": x, "c": 3}
    del table["a"]
    table["a"] = 5
    return table, list(reversed(table))


@case(lambda: (t(3), {3, 1}), lambda: (t(3), {2}))
def set_operations(x, numbers):
    a = {1, 2, 3}
    return x + len(a & numbers), a | numbers, a - numbers, a ^ numbers, a >= {1}, numbers.issubset(a), a.isdisjoint({9})


@case(lambda: (t(3), {1}))
def set_of_the_caller_grows(x, numbers):
    numbers.add(2)
    numbers.discard(5)
    numbers.update([7, 8])
    numbers.remove(1)
    return x * len(numbers)


@case(lambda: (t(3),))
def set_of_tensors(x):
    y = x + 1
    return len({x, y, x}), x in {x, y}, y * 2


@case(lambda: (t(3), frozenset({1, 2})), lambda: (t(3), frozenset()))
def frozenset_in_a_branch(x, allowed):
    return x * len(allowed) if 1 in allowed else x, {allowed: 1}


@case(lambda: (t(3),))
def deque(x):
    line = collections.deque([1, 2, 3], maxlen=3)
    line.append(x)
    line.appendleft(0)
    line.rotate(1)
    first = line.popleft()
    return line, first, list(line)


@case(lambda: (t(3), collections.deque([1, 2])))
def deque_of_the_caller(x, line):
    line.append(x * line[0])
    line.extend([5, 6])
    return line.pop(), len(line)


@case(lambda: (t(3),))
def ordered_dict(x):
    table = collections.OrderedDict(a=1, b=x)
    table["c"] = 3
    table.move_to_end("a")
    return table, list(table), table.popitem(last=False)


@case(lambda: (t(3), collections.OrderedDict(a=1, b=2)))
def ordered_dict_of_the_caller(x, table):
    for name in table:
        table[name] = x * table[name]
    return list(table.keys())


@case(lambda: (t(3),))
def default_dict(x):
    groups = collections.defaultdict(list)
    for n in range(4):
        groups[n % 2].append(x + n)
    return groups, groups[7], len(groups)


@case(lambda: (t(3),))
def counter(x):
    counts = collections.Counter("abracadabra")
    counts.update("aa")
    return x * counts["a"], counts.most_common(1), counts["z"]


@case(lambda: (t(3),))
def chain_map(x):
    chained = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    return x * chained["a"] + chained["b"], sorted(chained)


@case(lambda: (t(3),))
def mapping_proxy_and_namespace(x):
    space = types.SimpleNamespace(a=1, b=x)
    space.c = space.b + space.a
    return space.c, types.MappingProxyType({"k": 2})["k"]


@case(lambda: (t(3), [t(2), [t(2), {"k": t(2)}]]))
def nested_containers(x, tree):
    def walk(node):
        if isinstance(node, torch.Tensor):
            return node * 2
        if isinstance(node, dict):
            return {k: walk(v) for k, v in node.items()}
        return type(node)(walk(item) for item in node)

    return walk(tree), x


@case(lambda: (t(3),))
def comprehensions(x):
    squares = [n * n for n in range(6) if n % 2]
    pairs = [(a, b) for a in range(3) for b in range(a)]
    return [x * n for n in squares], pairs, {n % 3 for n in range(9)}, {str(n): x + n for n in range(2)}


@case(lambda: (t(3),))
def nested_comprehension_with_a_closure(x):
    k = 2
    return [[x * i * k for i in range(j)] for j in range(3)]


@case(lambda: (t(3), [t(3)]))
def identity_of_what_is_returned(x, items):
    pair = [x, x]
    return pair, pair, items, items[0], (x is pair[0], pair[0] is pair[1], items is pair)


@case(lambda: (t(3),))
def aliased_lists(x):
    a = [x]
    b = a
    b.append(x + 1)
    c = a[:]
    c.append(x + 2)
    return a, b, c, a is b


@case(lambda: (t(3),))
def list_inside_itself_by_index(x):
    outer = [[0] * 2] * 2
    outer[0][1] = x
    return outer, outer[0] is outer[1]


@case(lambda: (t(3), [1, [2, 3]]))
def shallow_and_deep_copies(x, nested):
    shallow, deep = copy.copy(nested), copy.deepcopy(nested)
    nested[1].append(4)
    return x * len(shallow[1]), deep


@case(lambda: (t(3), [[1], [2]]))
def inner_list_of_the_caller(x, rows):
    for row in rows:
        row.append(x * row[0])
    return rows


@case(lambda: (t(3), {"list": [1]}))
def list_in_a_dict_of_the_caller(x, table):
    table["list"].append(x)
    table["list"] = table["list"] + [2]
    return table


@case(lambda: (t(3),))
def tuple_of_one_and_none(x):
    return (x,), (), [()], (None,)


@case(lambda: (t(3), [5, 6, 7]))
def enumerate_and_assign(x, items):
    for i, item in enumerate(items):
        items[i] = x[i] * item
    return items


@case(lambda: (t(3), slice(0, 2)), lambda: (t(3), slice(1, None)))
def slice_object(x, part):
    return x[part], [1, 2, 3][part], part.start, slice(1, 5).indices(3)


@case(lambda: (t(3), [3, 1, 2]))
def sorted_copy_and_min_max(x, items):
    return x * min(items), max(items), sorted(items), sum(items), sorted(items, key=lambda n: -n)


class Stack(list):
    def push(self, item):
        self.append(item)
        return self


@case(lambda: (t(3), Stack([1])))
def list_subclass(x, stack):
    stack.push(x + 1).push(2)
    return stack, len(stack)


class Defaults(dict):
    def __missing__(self, key):
        return len(key)


@case(lambda: (t(3), Defaults(a=5)))
def dict_subclass(x, table):
    return x * table["a"] + table["missing"]


@case(lambda: (t(3),))
def list_compared_with_tensors(x):
    pair = [x, 1]
    return pair == pair, [1, 2] == (1, 2), x * 2


@case(lambda: (t(3), [1, 2, 3, 4]))
def list_multiplied_in_place(x, items):
    items *= 2
    items[2:4] = []
    return x + sum(items)


class Attributes(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value

    def scaled(self, x):
        return x * self.factor


@case(lambda: (t(3), Attributes(factor=2, bias=torch.ones(3))), lambda: (t(3), Attributes(factor=3, bias=torch.zeros(3), more=1)))
def dict_with_attributes(x, table):
    y = table.scaled(x) + table.bias
    table.seen = y.shape[0]
    table["last"] = y
    return y, getattr(table, "more", None), hasattr(table, "absent"), len(table), list(table), "bias" in table, type(table) is dict


@case(lambda: (t(3),))
def dict_subclass_made_inside(x):
    made = Attributes({"factor": 2}, bias=x)
    made.extra = x + 1
    return made, made.scaled(x), made.copy(), isinstance(made, dict)


class Ordered(collections.OrderedDict):
    def newest(self):
        return next(reversed(self))


@case(lambda: (t(3), Ordered(a=1, b=2)))
def ordered_dict_subclass(x, table):
    table["c"] = x
    table.move_to_end("a")
    return table.newest(), list(table), x * table["b"]


class Noted(list):
    def __init__(self, *items):
        super().__init__(items)
        self.note = "noted"


@case(lambda: (t(3), Stack([1, 2, 3])), lambda: (t(3), Noted(1, 2)))
def list_subclass_as_a_list(x, items):
    head, *rest = items
    items += [4]
    return x * sum(items), rest, items[1:], items + [5], sorted(items), isinstance(items, list), type(items) is list, items[-1]
