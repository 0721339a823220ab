"""Random numbers of Python and of torch, and where their generators stand afterwards."""

import random

import torch
from capture.cases import case, t

GENERATOR = random.Random(7)


@case(lambda: (t(3),))
def one_number(x):
    return x * random.random()


@case(lambda: (t(3),))
def numbers_in_a_range(x):
    return x + random.randint(1, 10), x * random.uniform(2.0, 3.0), random.randrange(5)


@case(lambda: (t(3),))
def numbers_before_and_after_a_graph(x):
    first = random.random()
    y = torch.sin(x * first)
    second = random.random()
    return y + second, first, second


@case(lambda: (t(3),))
def numbers_that_decide(x):
    if random.random() > 0.5:
        return x + 1
    return x - 1


@case(lambda: (t(3), [1, 2, 3]), lambda: (t(3), [4, 5]))
def choices(x, items):
    return x + random.choice(items)


@case(lambda: (t(3),))
def numbers_in_a_loop(x):
    for _ in range(3):
        x = x + random.uniform(0, 1)
    return x


@case(lambda: (t(3),))
def a_seeded_generator(x):
    return x * GENERATOR.random() if False else x + 1


@case(lambda: (t(3), random.Random(3)))
def a_generator_given(x, generator):
    return x * generator.random(), generator.randint(0, 9)


@case(lambda: (t(3), [1, 2, 3, 4]))
def items_shuffled(x, items):
    random.shuffle(items)
    return x + items[0], random.sample(items, 2)


@case(lambda: (t(3),))
def seeded_in_the_frame(x):
    random.seed(5)
    return x + random.random()


@case(lambda: (t(3),))
def of_a_normal_distribution(x):
    return x + random.gauss(0.0, 1.0)


@case(lambda: (t(3),))
def of_torch(x):
    return x + torch.rand(3), torch.randn(2), torch.randint(0, 5, (2,)), torch.randperm(4)


@case(lambda: (t(3),))
def of_torch_like_another(x):
    return torch.rand_like(x) + torch.randn_like(x), torch.bernoulli(torch.full((3,), 0.5)), torch.empty(3).uniform_(0, 1)


@case(lambda: (t(3),))
def of_both(x):
    return x * random.random() + torch.rand(3)
