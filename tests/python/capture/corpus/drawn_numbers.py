"""Python's and numpy's random numbers in captured frames: every function of `random`, in loops, callees, branches, and around breaks."""

import random
from random import randint, shuffle

import numpy as np
import torch
from capture.cases import case, t


@case(lambda: (t(3),))
def a_choice(x):
    return x * random.choice([2, 3, 5])


@case(lambda: (t(3),))
def a_choice_of_tensors(x):
    return random.choice([x + 1, x * 2, x - 3])


@case(lambda: (t(3),))
def a_choice_of_functions(x):
    return random.choice([torch.sin, torch.cos, torch.tanh])(x)


@case(lambda: (t(3), [1, 2, 3, 4, 5]))
def a_list_of_the_caller_shuffled(x, items):
    random.shuffle(items)
    return x + items[0] * 10


@case(lambda: (t(3),))
def tensors_shuffled(x):
    parts = [x, x + 1, x + 2, x + 3]
    shuffle(parts)
    return parts[0] - parts[1]


@case(lambda: (t(3),))
def a_sample(x):
    picked = random.sample([1, 2, 3, 4, 5, 6], 3)
    return x * sum(picked), picked


@case(lambda: (t(3),))
def choices_with_weights(x):
    return x + random.choices([1, 2, 3], weights=[1, 5, 1], k=4)[2]


@case(lambda: (t(3),))
def an_imported_function(x):
    return x + randint(0, 9), randint(5, 6)


@case(lambda: (t(3),))
def a_number_in_a_callee(x):
    def noisy(a):
        return a * random.uniform(0.5, 1.5)

    return noisy(noisy(x))


@case(lambda: (t(3),))
def a_number_that_chooses_a_branch(x):
    if random.random() > 0.5:
        return x.sin()
    return x.cos()


@case(lambda: (t(3),))
def a_number_as_a_size(x):
    return torch.zeros(random.randint(2, 6)) + x.sum()


@case(lambda: (t(3),))
def a_layer_that_is_dropped(x):
    for n in range(4):
        if random.uniform(0, 1) < 0.5:
            continue
        x = x * (n + 1)
    return x


@case(lambda: (t(3),))
def numbers_around_a_break(x):
    a = random.random()
    print("break")
    return x * a + random.random()


@case(lambda: (t(3),))
def a_state_taken_and_given_back(x):
    state = random.getstate()
    first = random.random()
    random.setstate(state)
    return x * first, random.random()


@case(lambda: (t(3), random.Random(7)))
def a_generator_that_shuffles(x, generator):
    items = [1, 2, 3]
    generator.shuffle(items)
    return x * items[0] + generator.sample(range(10), 2)[1]


@case(lambda: (t(3),))
def a_generator_made_here_chooses(x):
    generator = random.Random(11)
    return x * generator.choice([1, 2, 3]) + generator.getrandbits(3), generator.sample([4, 5, 6], 2)


@case(lambda: (t(3),))
def many_distributions(x):
    drawn = [random.gauss(0, 1), random.expovariate(2.0), random.betavariate(1, 2), random.triangular(0, 1, 0.5)]
    return x * sum(drawn), random.paretovariate(3.0), random.weibullvariate(1, 2), random.vonmisesvariate(0, 1), random.gammavariate(2, 1)


@case(lambda: (t(3),))
def a_seed_then_choices(x):
    random.seed(12)
    return x * random.choice([2, 3]), random.sample(range(5), 2), random.random()


@case(lambda: (t(3),))
def a_random_order(x):
    order = sorted([0, 1, 2], key=lambda _: random.random())
    return x[order[0]] * 2 + order[1]


@case(lambda: (t(3),))
def bits_and_bytes(x):
    return x + random.getrandbits(8), random.randbytes(3)


@case(lambda: (t(3),))
def numbers_of_numpy_drawn(x):
    return x * np.random.uniform(0, 1), np.random.randint(3, 9)


@case(lambda: (t(3),))
def an_array_of_numpy_drawn(x):
    return x + torch.from_numpy(np.random.randn(3)).float()


@case(lambda: (t(4),))
def a_permutation_of_numpy(x):
    order = np.random.permutation(4)
    return x[torch.as_tensor(order)] * 2


@case(lambda: (t(3),))
def numpy_seeded_and_drawn(x):
    np.random.seed(3)
    return x * float(np.random.rand()), np.random.choice([1, 2, 3])


@case(lambda: (t(3),))
def a_generator_of_numpy(x):
    generator = np.random.default_rng(5)
    return x * generator.random(), generator.integers(0, 10, 3)


@case(lambda: (t(3), np.random.default_rng(4)))
def a_generator_of_numpy_given(x, generator):
    return x + generator.normal()


@case(lambda: (t(3),))
def a_seed_from_a_number_drawn(x):
    torch.manual_seed(random.randint(0, 100))
    return x + torch.rand(3)


@case(lambda: (t(3), 4), lambda: (t(3), 9))
def a_bound_that_is_given(x, n):
    return x + random.randrange(n), random.randint(n, n + 3)


@case(lambda: (t(5),), lambda: (t(8),))
def a_bound_that_is_a_size(x):
    return x[random.randrange(x.shape[0])] + 1


@case(lambda: (t(3),))
def numbers_in_a_comprehension(x):
    return [x * random.random() for _ in range(3)], {n: random.randint(0, 5) for n in range(2)}
