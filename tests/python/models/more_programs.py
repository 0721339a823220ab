"""More programs as users write them: see `user_programs.py`. These are about data on its way to a model and back, and about models that change."""

import collections
import copy
import dataclasses
import itertools
import math
import random

import torch
from torch import nn
from torch.nn import functional as F

from models.user_programs import mlp, program, state


@program
def seq2seq_translation():
    """nn.Transformer with masks, teacher forcing, then greedy decoding of another length each call."""
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
    embed, head = nn.Embedding(20, 16), nn.Linear(16, 20)
    opt = torch.optim.AdamW([*model.parameters(), *embed.parameters(), *head.parameters()], 1e-3)

    def step(call):
        torch.manual_seed(call)
        source, target = torch.randint(1, 20, (3, 5 + call)), torch.randint(1, 20, (3, 6))
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        out = head(model(embed(source), embed(target[:, :-1]), tgt_mask=mask, src_key_padding_mask=source == 3))
        loss = F.cross_entropy(out.flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1, ignore_index=3)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        with torch.no_grad():
            memory = model.encoder(embed(source))
            words = torch.ones(3, 1, dtype=torch.long)
            for _ in range(3):
                decoded = model.decoder(embed(words), memory)
                words = torch.cat([words, head(decoded[:, -1:]).argmax(-1)], 1)
        return [loss.detach(), words, *state(head)]

    return step


@program
def volume_rendering():
    """Positional encodings, stratified samples, inverse sampling by searchsorted, transmittance by cumprod."""
    field = mlp(3 * 9, 32, 4, act=nn.ReLU)
    opt = torch.optim.Adam(field.parameters(), 5e-3)

    def encode(x):
        return torch.cat([x] + [fn(2.0**k * math.pi * x) for k in range(4) for fn in (torch.sin, torch.cos)], -1)

    def render(origins, directions, t):
        points = origins[:, None] + directions[:, None] * t[..., None]
        raw = field(encode(points))
        density, colour = F.softplus(raw[..., 0]), torch.sigmoid(raw[..., 1:])
        gaps = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 1e10)], -1)
        alpha = 1 - torch.exp(-density * gaps.clamp(max=10))
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * through
        return (weights[..., None] * colour).sum(1), weights

    def step(call):
        generator = torch.Generator().manual_seed(call)
        origins = torch.randn(6, 3, generator=generator)
        directions = F.normalize(torch.randn(6, 3, generator=generator), dim=-1)
        t = torch.linspace(0.5, 2, 8).expand(6, 8) + 0.05 * torch.rand(6, 8, generator=generator)
        coarse, weights = render(origins, directions, t)
        cdf = torch.cumsum(weights.detach() + 1e-5, -1)
        cdf = cdf / cdf[:, -1:]
        u = torch.rand(6, 5, generator=generator)
        at = torch.searchsorted(cdf, u, right=True).clamp(max=7)
        fine, _ = render(origins, directions, torch.sort(torch.cat([t, t.gather(1, at)], 1), 1).values)
        loss = F.mse_loss(coarse, torch.full_like(coarse, 0.3)) + F.mse_loss(fine, torch.full_like(fine, 0.3))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), at, *state(field)]

    return step


@program
def proximal_policy():
    """Actor and critic: generalized advantages by a reversed loop, clipped ratios, entropy, gradient clipping, early stop."""
    actor, critic = mlp(4, 16, 3), mlp(4, 16, 1)
    opt = torch.optim.Adam(itertools.chain(actor.parameters(), critic.parameters()), 1e-2, eps=1e-5)

    def step(call):
        torch.manual_seed(call)
        states, rewards, done = torch.randn(12, 4), torch.randn(12), torch.rand(12) < 0.2
        with torch.no_grad():
            policy = torch.distributions.Categorical(logits=actor(states))
            actions = policy.sample()
            old, values = policy.log_prob(actions), critic(states).squeeze(-1)
        advantage, after, found = 0.0, 0.0, []
        for reward, value, end in zip(reversed(rewards), reversed(values), reversed(done)):
            delta = reward + 0.99 * after * (~end) - value
            advantage = delta + 0.95 * 0.99 * advantage * (~end)
            after = value
            found.insert(0, advantage)
        advantages = torch.stack(found)
        returns = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        losses = []
        for order in torch.randperm(12).split(5):
            policy = torch.distributions.Categorical(logits=actor(states[order]))
            ratio = (policy.log_prob(actions[order]) - old[order]).exp()
            clipped = torch.clamp(ratio, 0.8, 1.2)
            gain = torch.min(ratio * advantages[order], clipped * advantages[order]).mean()
            error = F.huber_loss(critic(states[order]).squeeze(-1), returns[order])
            loss = -gain + 0.5 * error - 0.01 * policy.entropy().mean()
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(actor.parameters(), 0.1)
            opt.step()
            losses.append(loss.detach())
            if ((ratio - 1) - ratio.log()).mean().item() > 0.5:
                break
        return [torch.stack(losses), norm, *state(actor, critic)]

    return step


@program
def denoising_schedule():
    """Training with a noise schedule that is gathered by time, and sampling backwards with a buffer that is updated."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.time, self.body = nn.Embedding(10, 8), mlp(5 + 8, 24, 5, act=nn.SiLU)
            betas = torch.linspace(1e-3, 0.2, 10)
            self.register_buffer("betas", betas, persistent=False)
            self.register_buffer("bars", torch.cumprod(1 - betas, 0))

        def forward(self, x, t):
            return self.body(torch.cat([x, self.time(t)], -1))

    net = Net()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)

    def step(call):
        torch.manual_seed(call)
        x, t = torch.randn(7, 5), torch.randint(0, 10, (7,))
        noise, bar = torch.randn_like(x), net.bars[t, None]
        loss = F.mse_loss(net(bar.sqrt() * x + (1 - bar).sqrt() * noise, t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            sample = torch.randn(4, 5)
            for t in reversed(range(10)):
                times = torch.full((4,), t, dtype=torch.long)
                beta, bar = net.betas[t], net.bars[t]
                sample = (sample - beta / torch.sqrt(1 - bar) * net(sample, times)) / torch.sqrt(1 - beta)
                if t > 0:
                    sample = sample + beta.sqrt() * torch.randn_like(sample)
        return [loss.detach(), sample, *state(net)]

    return step


@program
def low_rank_adapters():
    """Frozen layers with trained low-rank updates, merged and taken apart again."""

    class Adapted(nn.Module):
        def __init__(self, base, rank=2):
            super().__init__()
            self.base, self.merged = base.requires_grad_(False), False
            self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
            self.up = nn.Parameter(torch.zeros(base.out_features, rank))

        def merge(self, sign=1):
            self.base.weight.data += sign * self.up @ self.down
            self.merged = sign > 0

        def forward(self, x):
            return self.base(x) if self.merged else self.base(x) + x @ self.down.t() @ self.up.t()

    net = mlp(4, 8, 3)
    for name, module in list(net.named_children()):
        if isinstance(module, nn.Linear):
            setattr(net, name, Adapted(module))
    trained = [p for p in net.parameters() if p.requires_grad]
    opt = torch.optim.Adam([{"params": trained[::2], "lr": 1e-2}, {"params": trained[1::2], "lr": 5e-2}])
    x = torch.randn(6, 4)

    def step(call):
        loss = (net(x) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            before = net(x)
            for module in net:
                if isinstance(module, Adapted):
                    module.merge()
            merged = net(x)
            for module in net:
                if isinstance(module, Adapted):
                    module.merge(-1)
        return [loss.detach(), before, merged, *state(net)]

    return step


@program
def vector_quantizer():
    """Nearest codes, straight-through gradients, averages of codes that are updated in place, dead codes that are reset."""
    encoder, decoder = mlp(6, 16, 4), mlp(4, 16, 6)
    codes, counts, sums = torch.randn(8, 4), torch.ones(8), torch.randn(8, 4)
    opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-3)

    def step(call):
        torch.manual_seed(call)
        x = torch.randn(10, 6)
        z = encoder(x)
        with torch.no_grad():
            nearest = torch.cdist(z, codes).argmin(-1)
            hot = F.one_hot(nearest, 8).float()
            counts.mul_(0.9).add_(hot.sum(0), alpha=0.1)
            sums.mul_(0.9).add_(hot.t() @ z, alpha=0.1)
            codes.copy_(sums / counts.clamp(min=1e-3)[:, None])
            dead = counts < 0.5
            if dead.any():
                codes[dead] = z[torch.arange(int(dead.sum())) % 10]
        quantized = z + (codes[nearest] - z).detach()
        loss = F.mse_loss(decoder(quantized), x) + 0.25 * F.mse_loss(z, codes[nearest].detach())
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), nearest, codes.clone(), counts.clone(), *state(encoder)]

    return step


@program
def recommendations():
    """Bags of features of many lengths, pairwise interactions by triangular indices, weights by frequency."""
    bags = nn.ModuleList(nn.EmbeddingBag(30, 8, mode=mode) for mode in ("sum", "mean", "max"))
    dense, top = mlp(5, 16, 8, act=nn.ReLU), mlp(8 + 6, 16, 1, act=nn.ReLU)
    opt = torch.optim.Adagrad([*bags.parameters(), *dense.parameters(), *top.parameters()], 0.05)

    def step(call):
        torch.manual_seed(call)
        lengths = torch.randint(1, 4, (3, 6))
        features = [dense(torch.randn(6, 5))]
        for bag, count in zip(bags, lengths):
            offsets = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)[:-1]])
            features.append(bag(torch.randint(0, 30, (int(count.sum()),)), offsets))
        stacked = torch.stack(features, 1)
        pairs = torch.bmm(stacked, stacked.transpose(1, 2))
        rows, cols = torch.tril_indices(4, 4, offset=-1)
        logits = top(torch.cat([features[0], pairs[:, rows, cols]], 1)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits, (torch.arange(6) % 2).float(), pos_weight=torch.tensor(2.0))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), pairs.detach(), *state(bags, top)]

    return step


@program
def long_convolution():
    """Convolutions by Fourier transforms, with an implicit filter and a decay."""
    filter_net, mix = mlp(1, 8, 4), nn.Conv1d(4, 4, 3, padding=2, groups=4)
    opt = torch.optim.NAdam([*filter_net.parameters(), *mix.parameters()], 1e-2)

    def step(call):
        torch.manual_seed(call)
        length = 12 + 4 * call
        x = torch.randn(2, 4, length)
        times = torch.linspace(0, 1, length)[:, None]
        filters = (filter_net(times) * torch.exp(-3 * times)).t()
        size = 2 * length
        spectrum = torch.fft.rfft(mix(x)[..., :length], n=size) * torch.fft.rfft(filters, n=size)
        y = torch.fft.irfft(spectrum, n=size)[..., :length] + x
        loss = (y[..., 1:] - y[..., :-1]).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), y.detach(), *state(filter_net)]

    return step


@program
def optimal_transport():
    """Sinkhorn in logarithms until it converges, with gradients through all iterations."""
    points = nn.Parameter(torch.randn(5, 2))
    target = torch.randn(7, 2)
    opt = torch.optim.SGD([points], 0.1)

    def step(call):
        cost = torch.cdist(points, target) ** 2
        f, g = torch.zeros(5), torch.zeros(7)
        rounds = 0
        for _ in range(30):
            before = f
            f = -0.5 * torch.logsumexp((g[None] - cost) / 0.5 - math.log(7), 1)
            g = -0.5 * torch.logsumexp((f[:, None] - cost) / 0.5 - math.log(5), 0)
            rounds += 1
            if (f - before).abs().max() < 1e-2:
                break
        plan = torch.exp((f[:, None] + g[None] - cost) / 0.5) / 35
        loss = (plan * cost).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), plan.detach(), torch.tensor(rounds), points.detach().clone()]

    return step


@program
def samples_own_gradients():
    """Gradients of each sample by vmap over grad, clipped and noised: private training."""
    net = mlp(3, 8, 2)
    data, labels = torch.randn(6, 3), torch.randint(0, 2, (6,))

    def loss_of(parameters, x, y):
        return F.cross_entropy(torch.func.functional_call(net, parameters, (x[None],)), y[None])

    def step(call):
        torch.manual_seed(call)
        parameters = {name: p.detach() for name, p in net.named_parameters()}
        grads = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0))(parameters, data, labels)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()], 1).norm(dim=1)
        scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        with torch.no_grad():
            for name, p in net.named_parameters():
                clipped = torch.einsum("n,n...->...", scale, grads[name])
                p -= 0.1 * (clipped + 0.01 * torch.randn_like(clipped)) / 6
        return [norms, *state(net)]

    return step


@program
def optical_flow():
    """Warping by grid_sample with gradients to image and flow, a pyramid, smoothness."""
    flow = nn.Parameter(torch.zeros(1, 2, 8, 8))
    first, second = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
    opt = torch.optim.Adam([flow], 0.05, amsgrad=True)

    def step(call):
        total = 0.0
        for scale in (1, 2):
            a, b = F.avg_pool2d(first, scale), F.avg_pool2d(second, scale)
            size = a.shape[-2:]
            moved = F.interpolate(flow, size=size, mode="bilinear", align_corners=True)
            theta = torch.eye(2, 3)[None]
            grid = F.affine_grid(theta, [1, 3, *size], align_corners=False) + moved.permute(0, 2, 3, 1)
            warped = F.grid_sample(b, grid, mode="bilinear", padding_mode="border", align_corners=False)
            total = total + (warped - a).abs().mean() / scale
        total = total + 0.1 * (flow[..., 1:] - flow[..., :-1]).pow(2).mean() + 0.1 * flow.diff(dim=2).pow(2).mean()
        opt.zero_grad()
        total.backward()
        opt.step()
        return [total.detach(), warped.detach(), flow.detach().clone()]

    return step


@program
def early_exits():
    """Layers that stop when they are sure, with a dictionary of what happened."""
    blocks = nn.ModuleList(mlp(6, 12, 6) for _ in range(4))
    heads = nn.ModuleList(nn.Linear(6, 3) for _ in range(4))
    seen = collections.Counter()

    def step(call):
        torch.manual_seed(call)
        x = torch.randn(1, 6) * (1 + 3 * call)
        logits = None
        for depth, (block, head) in enumerate(zip(blocks, heads)):
            x = x + block(x)
            logits = head(x)
            if logits.softmax(-1).max() > 0.6:
                break
        seen[depth] += 1
        return [logits.detach(), torch.tensor([seen[d] for d in range(4)])]

    return step


@program
def rotary_with_cache():
    """Rotary positions as complex numbers, grouped heads, a cache that is written by index, tokens one by one."""
    width, heads, kept = 16, 4, 2
    qkv = nn.Linear(width, (heads + 2 * kept) * 4)
    out = nn.Linear(heads * 4, width)
    turns = torch.polar(torch.ones(16, 2), torch.outer(torch.arange(16.0), torch.tensor([1.0, 0.1])))
    cache = torch.zeros(2, 2, 16, kept, 4)

    def rotated(x, at):
        as_complex = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(as_complex * turns[at][:, None]).flatten(-2).type_as(x)

    def attend(x, at):
        q, k, v = qkv(x).unflatten(-1, (-1, 4)).split([heads, kept, kept], 2)
        q, k = rotated(q, at), rotated(k, at)
        cache[0].index_copy_(1, at, k)
        cache[1].index_copy_(1, at, v)
        upto = int(at[-1]) + 1
        keys, values = (each[:, :upto].repeat_interleave(heads // kept, 2).transpose(1, 2) for each in cache)
        mask = torch.arange(upto)[None] <= at[:, None]
        y = F.scaled_dot_product_attention(q.transpose(1, 2), keys, values, attn_mask=mask)
        return out(y.transpose(1, 2).flatten(2))

    @torch.no_grad()
    def step(call):
        torch.manual_seed(call)
        results = [attend(torch.randn(2, 3, width), torch.arange(3))]
        for at in range(3, 5 + call):
            results.append(attend(torch.randn(2, 1, width), torch.tensor([at])))
        return [torch.cat(results, 1), cache.clone()]

    return step


@program
def teacher_and_student():
    """A teacher that follows its student, centred targets, several crops, a queue of negatives."""
    student = mlp(8, 16, 4)
    teacher = copy.deepcopy(student).requires_grad_(False)
    centre, queue, place = torch.zeros(1, 4), F.normalize(torch.randn(4, 12), dim=0), [0]
    opt = torch.optim.AdamW(student.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5)

    def step(call):
        torch.manual_seed(call)
        x = torch.randn(3, 8)
        crops = [x + 0.1 * torch.randn_like(x) for _ in range(3)]
        with torch.no_grad():
            targets = [((teacher(c) - centre) / 0.1).softmax(-1) for c in crops[:2]]
        loss, terms = 0.0, 0
        for i, target in enumerate(targets):
            for j, crop in enumerate(crops):
                if i == j:
                    continue
                loss = loss - (target * (student(crop) / 0.2).log_softmax(-1)).sum(-1).mean()
                terms += 1
        keys = F.normalize(student(crops[2]), dim=-1)
        loss = loss / terms + torch.logsumexp(keys @ queue, -1).mean() * 0.1
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step()
        with torch.no_grad():
            for mine, theirs in zip(teacher.parameters(), student.parameters()):
                mine.lerp_(theirs, 0.1)
            centre.mul_(0.9).add_(0.1 * torch.stack(targets).mean((0, 1)))
            queue[:, place[0] : place[0] + 3] = keys.t()
            place[0] = (place[0] + 3) % 12
        return [loss.detach(), centre.clone(), queue.clone(), torch.tensor(schedule.get_last_lr()), *state(teacher)]

    return step


@program
def own_functions_and_hooks():
    """A Function with several outputs and undefined gradients, hooks on modules and tensors, gradients of inputs."""

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            ctx.set_materialize_grads(False)
            return torch.round(x / scale) * scale, x.abs() > 1

        @staticmethod
        def backward(ctx, grad, unused):
            x, scale = ctx.saved_tensors
            if grad is None:
                return None, None
            inside = (x.abs() <= 1).to(grad.dtype)
            return grad * inside, (grad * (torch.round(x / scale) - x / scale)).sum() if ctx.needs_input_grad[1] else None

    net, scale = mlp(3, 8, 2), nn.Parameter(torch.tensor(0.25))
    seen = []
    net[0].register_forward_hook(lambda module, args, out: out * 1.5)
    net[2].register_forward_pre_hook(lambda module, args: (args[0] + 0.1,))
    net[0].register_full_backward_hook(lambda module, grad_in, grad_out: seen.append(grad_out[0].norm()))

    def step(call):
        torch.manual_seed(call)
        x = torch.randn(4, 3, requires_grad=True)
        rounded, outside = Rounded.apply(net(x), scale)
        x.register_hook(lambda grad: grad * 2)
        loss = (rounded.square() * ~outside).sum()
        loss.backward()
        found = [loss.detach(), x.grad.clone(), scale.grad.clone(), seen[-1].detach(), torch.tensor(len(seen))]
        scale.grad = None
        net.zero_grad()
        return found

    return step


@dataclasses.dataclass
class Batch:
    """Rows with a length each."""

    values: torch.Tensor
    lengths: torch.Tensor
    names: list = dataclasses.field(default_factory=list)

    @property
    def mask(self):
        return torch.arange(self.values.shape[1]) < self.lengths[:, None]

    def map(self, function):
        return dataclasses.replace(self, values=function(self.values))


@program
def padded_batches():
    """Dataclasses, sorted and padded sequences, pooling by mask, a confusion matrix that is kept."""
    net = nn.GRU(4, 6, batch_first=True, bidirectional=True)
    head = nn.Linear(12, 3)
    confusion = torch.zeros(3, 3, dtype=torch.long)

    def step(call):
        rng = random.Random(call)
        lengths = sorted((rng.randint(1, 6) for _ in range(4)), reverse=True)
        torch.manual_seed(call)
        rows = [torch.randn(length, 4) for length in lengths]
        batch = Batch(nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor(lengths), [f"row {n}" for n in lengths])
        batch = batch.map(lambda values: values * 2).map(torch.tanh)
        hidden, _ = net(batch.values)
        mask = batch.mask.unsqueeze(-1)
        pooled = torch.where(mask, hidden, -math.inf).amax(1) + (hidden * mask).sum(1) / batch.lengths[:, None]
        logits = head(pooled)
        labels = torch.tensor([len(name) % 3 for name in batch.names])
        for true, said in zip(labels.tolist(), logits.argmax(-1).tolist()):
            confusion[true, said] += 1
        loss = F.nll_loss(logits.log_softmax(-1), labels, weight=torch.tensor([1.0, 2.0, 0.5]))
        grads = torch.autograd.grad(loss, list(head.parameters()))
        return [loss.detach(), confusion.clone(), *grads]

    return step


@program
def growing_network():
    """A network that gets a layer more after some calls, with buffers that are replaced and parameters that are tied."""

    class Growing(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(5, 5)])
            self.norm = nn.BatchNorm1d(5)
            self.register_buffer("seen", torch.tensor(0))

        def grow(self):
            self.layers.append(nn.Linear(5, 5))
            self.layers[-1].weight = self.layers[0].weight

        def forward(self, x):
            for layer in self.layers:
                x = self.norm(torch.relu(layer(x)) + x)
            self.seen = self.seen + x.shape[0]
            return x

    net = Growing()

    def step(call):
        torch.manual_seed(call)
        if call:
            torch.manual_seed(100 + call)
            net.grow()
        loss = net(torch.randn(4 + call, 5)).square().mean()
        grads = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for p, g in zip(net.parameters(), grads):
                p.sub_(g, alpha=0.1)
        return [loss.detach(), net.seen.clone(), net.norm.running_mean.clone(), net.norm.num_batches_tracked.clone(), *grads]

    return step


@program
def anomaly_scores():
    """Quantiles, histograms, medians, ranks and correlations of what a model gives."""
    net = mlp(4, 8, 2)

    def step(call):
        torch.manual_seed(call)
        x = torch.randn(15, 4)
        scores = (net(x) - x[:, :2]).norm(dim=1)
        limit = torch.quantile(scores, torch.tensor([0.25, 0.5, 0.9]))
        spread = (scores - scores.median()).abs().median()
        ranks = scores.argsort().argsort()
        correlation = torch.corrcoef(torch.stack([scores, x[:, 0], x[:, 1]]))
        bins = torch.histc(scores.detach(), bins=5, min=0, max=4)
        found = torch.bucketize(scores, limit)
        counts = torch.bincount(found, minlength=4)
        worst = scores.topk(3)
        loss = (scores.clamp(max=float(limit[2])) / spread.clamp(min=1e-3)).mean() + correlation[0, 1]
        grads = torch.autograd.grad(loss, list(net.parameters()))
        return [limit.detach(), ranks, correlation.detach(), bins, counts, worst.values.detach(), worst.indices, *grads]

    return step


@program
def iterative_solvers():
    """Conjugate gradients, power iteration, Newton-Schulz, triangular solves, with gradients through the implicit function."""
    base = torch.randn(5, 5)
    weight = nn.Parameter(base @ base.t() / 5 + torch.eye(5))

    def step(call):
        torch.manual_seed(call)
        b = torch.randn(5)
        matrix = (weight + weight.t()) / 2 + 0.1 * torch.eye(5)
        x, r = torch.zeros(5), b
        p, rs = r, r @ r
        while rs > 1e-8:
            ap = matrix @ p
            alpha = rs / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            p, rs = r + (new / rs) * p, new
        v = torch.ones(5)
        for _ in range(10):
            v = F.normalize(matrix @ v, dim=0)
        inverse = matrix.t() / matrix.norm() ** 2
        for _ in range(8):
            inverse = inverse @ (2 * torch.eye(5) - matrix @ inverse)
        factor = torch.linalg.cholesky(matrix)
        solved = torch.cholesky_solve(b[:, None], factor).squeeze(1)
        loss = x.sum() + (v @ matrix @ v) + inverse.diagonal().sum() + factor.diagonal().log().sum() + solved.norm()
        (grad,) = torch.autograd.grad(loss, weight)
        return [x.detach(), v.detach(), inverse.detach(), solved.detach(), grad]

    return step


@program
def tokens_and_text():
    """Bytes and strings to tensors and back, dictionaries of counts, regular expressions outside of tensors."""
    table = nn.Embedding(64, 6)
    words = "the quick brown fox jumps over the lazy dog the end".split()
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys(words))}
    counts = collections.defaultdict(int)

    def step(call):
        chosen = words[call : call + 6]
        for word in chosen:
            counts[word] += 1
        ids = torch.tensor([vocabulary[word] for word in chosen])
        raw = torch.tensor(list(" ".join(chosen).encode()), dtype=torch.uint8)
        weights = torch.tensor([1 / counts[word] for word in chosen])
        vectors = table(ids) * weights[:, None]
        pairs = torch.combinations(ids, 2)
        like = F.cosine_similarity(table(pairs[:, 0]), table(pairs[:, 1]), dim=-1)
        best = int(like.argmax())
        said = f"{chosen[0]}:{best}:{raw.sum().item()}"
        return [vectors.detach(), like.detach(), raw, torch.tensor(list(said.encode()))]

    return step


@program
def resumed_training():
    """A checkpoint that is taken, loaded again and gone on from, of model, optimizer, schedule and scaler."""
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Dropout(0.3), nn.PReLU(), nn.Linear(8, 2))
    opt = torch.optim.Adam(net.parameters(), 1e-2, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=20)
    saved = {}

    def train(seed):
        torch.manual_seed(seed)
        loss = F.smooth_l1_loss(net(torch.randn(6, 4)), torch.ones(6, 2))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        opt.step()
        schedule.step()
        return loss.detach()

    def step(call):
        losses = [train(call)]
        if call == 0:
            saved.update(model=copy.deepcopy(net.state_dict()), opt=copy.deepcopy(opt.state_dict()), schedule=schedule.state_dict())
        losses.append(train(call + 10))
        if call == 1:
            net.load_state_dict(saved["model"])
            opt.load_state_dict(saved["opt"])
            schedule.load_state_dict(saved["schedule"])
        net.eval()
        with torch.inference_mode():
            shown = net(torch.ones(2, 4)).clone()
        net.train()
        return [*losses, shown, torch.tensor(schedule.get_last_lr()), *state(net)]

    return step


@program
def mixup_and_cutmix():
    """Augmentation by permutations, random boxes and interpolations of labels; statistics of batch norm."""
    net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4))
    opt = torch.optim.RMSprop(net.parameters(), 1e-3, momentum=0.9, centered=True)
    rng = random.Random(0)

    def step(call):
        torch.manual_seed(call)
        x, y = torch.rand(6, 3, 8, 8), torch.randint(0, 4, (6,))
        order, share = torch.randperm(6), rng.betavariate(1, 1)
        if call % 2:
            x, other = share * x + (1 - share) * x[order], y[order]
        else:
            top, left = rng.randrange(4), rng.randrange(4)
            x = x.clone()
            x[:, :, top : top + 4, left : left + 4] = x[order, :, top : top + 4, left : left + 4]
            other, share = y[order], 1 - 16 / 64
        x = torch.where(torch.rand(6, 1, 1, 1) < 0.5, x.flip(-1), x)
        logits = net(x)
        loss = share * F.cross_entropy(logits, y) + (1 - share) * F.cross_entropy(logits, other)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), (logits.argmax(1) == y).float().mean(), *state(net)]

    return step
