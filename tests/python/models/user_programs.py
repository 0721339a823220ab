"""Programs as users write them, around a model rather than inside of one: losses, samplers, optimizers, second derivatives, distributions.

Each function of `PROGRAMS` builds something from a seed and returns `step`, a function of one number (the number of the call), which returns tensors;
what it reads and changes is its own. `step` is compiled as a whole, and what its calls return is compared with eager's: `test_user_programs.py`.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def state(*modules):
    return [each.detach().clone() for module in modules for each in module.state_dict().values() if each.is_floating_point()]


def mlp(*sizes, act=nn.Tanh):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


@program
def physics_informed():
    """A residual of a differential equation: gradients with respect to inputs, then to parameters."""
    net = mlp(2, 16, 16, 1)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    points = torch.rand(32, 2)

    def step(call):
        x = points.clone().requires_grad_()
        u = net(x)
        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        (ddu,) = torch.autograd.grad(du[:, 1].sum(), x, create_graph=True)
        loss = ((du[:, 0] - ddu[:, 1]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), *state(net)]

    return step


@program
def gan_with_penalty():
    """A critic with a gradient penalty, two optimizers."""
    generator, critic = mlp(4, 16, 3), mlp(3, 16, 1)
    g_opt, c_opt = torch.optim.RMSprop(generator.parameters(), 1e-3), torch.optim.RMSprop(critic.parameters(), 1e-3)
    real = torch.randn(16, 3)

    def step(call):
        torch.manual_seed(call)
        noise = torch.randn(16, 4)
        fake = generator(noise)
        mix = torch.rand(16, 1)
        between = (mix * real + (1 - mix) * fake.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
        c_loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
        g_loss = -critic(generator(noise)).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        return [c_loss.detach(), g_loss.detach(), *state(generator, critic)]

    return step


@program
def variational_autoencoder():
    encoder, decoder = mlp(8, 16, 6), mlp(3, 16, 8)
    opt = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], 1e-3)
    data = torch.randn(12, 8)

    def step(call):
        torch.manual_seed(call)
        mean, log_scale = encoder(data).chunk(2, -1)
        posterior = torch.distributions.Normal(mean, log_scale.exp())
        z = posterior.rsample()
        prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
        kl = torch.distributions.kl_divergence(posterior, prior).sum(-1)
        like = torch.distributions.Independent(torch.distributions.Normal(decoder(z), 0.5), 1).log_prob(data)
        loss = (kl - like).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return [loss.detach(), z.detach(), *state(encoder, decoder)]

    return step


@program
def policy_gradient():
    policy, value = mlp(4, 16, 3), mlp(4, 16, 1)
    opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], 1e-2)
    states = torch.randn(20, 4)

    def step(call):
        torch.manual_seed(call)
        distribution = torch.distributions.Categorical(logits=policy(states))
        actions = distribution.sample()
        rewards = torch.where(actions == 1, 1.0, -0.5)
        returns, total = [], torch.zeros(())
        for reward in reversed(rewards.unbind()):
            total = reward + 0.9 * total
            returns.insert(0, total)
        returns = torch.stack(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        baseline = value(states).squeeze(-1)
        advantage = returns - baseline.detach()
        loss = -(distribution.log_prob(actions) * advantage).mean() + F.smooth_l1_loss(baseline, returns) - 0.01 * distribution.entropy().mean()
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_([*policy.parameters(), *value.parameters()], 0.5)
        opt.step()
        return [loss.detach(), actions, norm, *state(policy, value)]

    return step


@program
def maml():
    """Inner steps of gradient descent that the outer gradient goes through."""
    net = mlp(1, 12, 12, 1)
    opt = torch.optim.SGD(net.parameters(), 1e-2, momentum=0.9, nesterov=True)
    x = torch.linspace(-2, 2, 10)[:, None]

    def step(call):
        total = 0.0
        for phase in (0.0, 0.5, 1.0):
            y = torch.sin(x + phase)
            fast = dict(net.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(torch.func.functional_call(net, fast, (x,)), y)
                grads = torch.autograd.grad(loss, fast.values(), create_graph=True)
                fast = {name: p - 0.1 * g for (name, p), g in zip(fast.items(), grads)}
            total = total + F.mse_loss(torch.func.functional_call(net, fast, (x,)), y)
        opt.zero_grad()
        total.backward()
        opt.step()
        return [total.detach(), *state(net)]

    return step


@program
def recurrent_tagger():
    embed, lstm, head = nn.Embedding(20, 8, padding_idx=0), nn.LSTM(8, 8, 2, batch_first=True, bidirectional=True, dropout=0.1), nn.Linear(16, 5)
    opt = torch.optim.Adagrad([*embed.parameters(), *lstm.parameters(), *head.parameters()], 1e-2)
    tokens, lengths = torch.randint(1, 20, (4, 9)), torch.tensor([9, 7, 5, 2])

    def step(call):
        torch.manual_seed(call)
        mask = torch.arange(9)[None] < lengths[:, None]
        packed = nn.utils.rnn.pack_padded_sequence(embed(tokens * mask), lengths, batch_first=True)
        out, (h, _) = lstm(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=9)
        logits = head(out)
        loss = F.cross_entropy(logits.transpose(1, 2), tokens % 5, reduction="none")
        loss = (loss * mask).sum() / mask.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), h.detach(), *state(embed, lstm, head)]

    return step


@program
def conditional_random_field():
    emissions, moves = nn.Parameter(torch.randn(3, 7, 5)), nn.Parameter(torch.randn(5, 5))
    tags = torch.randint(0, 5, (3, 7))

    def step(call):
        alpha = emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            alpha = torch.logsumexp(alpha[:, :, None] + moves[None] + emissions[:, t, None], 1)
        score = emissions.gather(2, tags[:, :, None]).squeeze(-1).sum(1) + moves[tags[:, :-1], tags[:, 1:]].sum(1)
        loss = (torch.logsumexp(alpha, 1) - score).mean()
        loss.backward()
        with torch.no_grad():
            for p in (emissions, moves):
                p -= 0.1 * p.grad
                p.grad.zero_()
        best = [emissions[:, 0]]
        back = []
        for t in range(1, emissions.shape[1]):
            top, which = (best[-1][:, :, None] + moves[None]).max(1)
            best.append(top + emissions[:, t])
            back.append(which)
        path = [best[-1].argmax(1)]
        for which in reversed(back):
            path.append(which.gather(1, path[-1][:, None]).squeeze(1))
        return [loss.detach(), torch.stack(path[::-1], 1), emissions.detach().clone(), moves.detach().clone()]

    return step


@program
def speech_ctc():
    net = nn.Sequential(nn.Conv1d(1, 8, 5, 2, 2), nn.GELU(), nn.Conv1d(8, 12, 3, padding="same"))
    opt = torch.optim.NAdam(net.parameters(), 1e-3)
    wave, targets = torch.randn(3, 1, 64), torch.randint(1, 12, (3, 6))

    def step(call):
        spectrum = torch.stft(wave[:, 0], 16, 8, window=torch.hann_window(16), return_complex=True).abs().log1p()
        logits = net(wave).permute(2, 0, 1).log_softmax(-1)
        loss = F.ctc_loss(logits, targets, torch.full((3,), logits.shape[0]), torch.tensor([6, 4, 2]), zero_infinity=True)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), spectrum, *state(net)]

    return step


@program
def sampler():
    """Denoising with a schedule, classifier-free guidance and clamping."""
    net = mlp(5, 16, 4, act=nn.SiLU)
    betas = torch.linspace(1e-4, 0.02, 10)
    keep = torch.cumprod(1 - betas, 0)

    @torch.no_grad()
    def step(call):
        torch.manual_seed(call)
        x = torch.randn(6, 4)
        for t in reversed(range(10)):
            when = torch.full((6, 1), t / 10)
            with_label, without = net(torch.cat([x, when], 1)), net(torch.cat([x, torch.zeros_like(when)], 1))
            noise = without + 2.0 * (with_label - without)
            mean = (x - betas[t] / (1 - keep[t]).sqrt() * noise) / (1 - betas[t]).sqrt()
            x = mean + (betas[t].sqrt() * torch.randn_like(x) if t > 0 else 0.0)
            x = x.clamp(-3, 3)
        return [x]

    return step


@program
def token_sampling():
    """Temperature, top-k, nucleus and repetition penalties, token by token."""
    table = nn.Embedding(50, 16)
    head = nn.Linear(16, 50)

    @torch.no_grad()
    def step(call):
        torch.manual_seed(call)
        tokens = torch.tensor([[3, 7], [11, 2]])
        done = torch.zeros(2, dtype=torch.bool)
        for _ in range(6):
            logits = head(table(tokens).mean(1)) / 0.8
            seen = logits.gather(1, tokens)
            logits = logits.scatter(1, tokens, torch.where(seen < 0, seen * 1.2, seen / 1.2))
            top = logits.topk(20, -1).values[:, -1:]
            logits = logits.masked_fill(logits < top, -torch.inf)
            ordered, index = logits.sort(dim=-1, descending=True, stable=True)
            drop = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) > 0.9
            logits = logits.masked_fill(drop.scatter(1, index, drop), -torch.inf)
            new = torch.multinomial(logits.softmax(-1), 1)
            new = torch.where(done[:, None], 0, new)
            done |= new[:, 0] == 0
            tokens = torch.cat([tokens, new], 1)
        return [tokens, done]

    return step


@program
def contrastive():
    image, text, scale = mlp(6, 16, 8), mlp(5, 16, 8), nn.Parameter(torch.tensor(math.log(1 / 0.07)))
    opt = torch.optim.AdamW([{"params": [*image.parameters(), *text.parameters()], "weight_decay": 0.1}, {"params": [scale], "lr": 1e-2, "weight_decay": 0.0}], 1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
    x, y = torch.randn(8, 6), torch.randn(8, 5)

    def step(call):
        a, b = F.normalize(image(x), dim=-1), F.normalize(text(y), dim=-1)
        logits = scale.exp().clamp(max=100) * a @ b.T
        labels = torch.arange(len(logits))
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels, label_smoothing=0.1)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step()
        return [loss.detach(), scale.detach().clone(), torch.tensor(schedule.get_last_lr()), *state(image, text)]

    return step


@program
def normalizing_flow():
    nets = nn.ModuleList(mlp(2, 12, 4) for _ in range(4))
    opt = torch.optim.Adamax(nets.parameters(), 1e-3)
    data = torch.randn(16, 4)

    def step(call):
        x, log_det = data, 0
        for k, net in enumerate(nets):
            a, b = x[:, ::2], x[:, 1::2]
            if k % 2:
                a, b = b, a
            s, t = net(a).chunk(2, 1)
            s = torch.tanh(s)
            b = b * s.exp() + t
            log_det = log_det + s.sum(1)
            x = torch.stack((b, a) if k % 2 else (a, b), 2).flatten(1)
        w = torch.eye(4) + 0.1 * torch.tril(torch.ones(4, 4), -1)
        x = x @ w.T
        log_det = log_det + torch.linalg.slogdet(w).logabsdet
        loss = (0.5 * (x**2).sum(1) + 2 * math.log(2 * math.pi) - log_det).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), *state(nets)]

    return step


@program
def neural_ode():
    net = mlp(3, 16, 3)
    opt = torch.optim.SGD(net.parameters(), 1e-2, weight_decay=1e-4)
    start, goal = torch.randn(5, 3), torch.randn(5, 3)

    def step(call):
        y, h = start, 0.1
        for _ in range(5):
            k1 = net(y)
            k2 = net(y + h / 2 * k1)
            k3 = net(y + h / 2 * k2)
            k4 = net(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        loss = F.huber_loss(y, goal, delta=0.5)
        grads = torch.autograd.grad(loss, list(net.parameters()))
        for p, g in zip(net.parameters(), grads):
            p.grad = g
        opt.step()
        return [loss.detach(), y.detach(), *state(net)]

    return step


@program
def detector_loss():
    """Boxes, overlaps, matching and suppression."""
    head = nn.Conv2d(4, 6, 1)
    features, truth = torch.randn(2, 4, 5, 5), torch.tensor([[0.1, 0.1, 0.5, 0.6], [0.4, 0.3, 0.9, 0.8]])

    def overlap(a, b):
        low = torch.maximum(a[:, None, :2], b[None, :, :2])
        high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
        inter = (high - low).clamp(min=0).prod(-1)
        area = lambda x: (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
        return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-6)

    def step(call):
        out = head(features).permute(0, 2, 3, 1).reshape(2, 25, 6)
        ys, xs = torch.meshgrid(torch.arange(5), torch.arange(5), indexing="ij")
        centre = torch.stack([xs, ys], -1).reshape(25, 2) / 5 + 0.1
        losses, kept = [], []
        for each in out:
            middle, size = centre + 0.1 * each[:, :2].tanh(), 0.3 * each[:, 2:4].sigmoid() + 0.05
            boxes = torch.cat([middle - size, middle + size], 1)
            scores = each[:, 4]
            iou = overlap(boxes, truth)
            best, which = iou.max(1)
            positive = best > 0.2
            target = truth[which]
            box = (1 - best)[positive].sum() / positive.sum().clamp(min=1) + F.l1_loss(boxes * positive[:, None], target * positive[:, None])
            losses.append(box + F.binary_cross_entropy_with_logits(scores, positive.float(), pos_weight=torch.tensor(3.0)))
            order = scores.argsort(descending=True)
            among = overlap(boxes[order], boxes[order]).triu(1)
            kept.append((among.amax(0) < 0.5).nonzero().squeeze(1))
        loss = torch.stack(losses).mean()
        loss.backward()
        grad = head.weight.grad.clone()
        head.zero_grad()
        return [loss.detach(), grad, *kept]

    return step


@program
def averaged_with_accumulation():
    """Gradient accumulation, an average of weights, batch norm and stochastic depth."""
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(0.2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    x, y = torch.randn(6, 3, 8, 8), torch.randint(0, 4, (6,))

    def step(call):
        torch.manual_seed(call)
        net.train()
        opt.zero_grad()
        total = 0.0
        for part, label in zip(x.split(2), y.split(2)):
            loss = F.cross_entropy(net(part.contiguous(memory_format=torch.channels_last)), label) / 3
            loss.backward()
            total += loss.detach()
        opt.step()
        average.update_parameters(net)
        net.eval()
        with torch.inference_mode():
            seen = net(x).argmax(1)
        return [total, seen.clone(), *state(net, average)]

    return step


@program
def mixed_precision():
    net = mlp(8, 16, 16, 4, act=nn.GELU)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, foreach=True)
    x, y = torch.randn(10, 8), torch.randn(10, 4)

    def step(call):
        with torch.autocast("cpu", torch.bfloat16):
            out = net(x)
            loss = F.mse_loss(out.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach()]

    return step


@program
def kalman_filter():
    """Small matrices: inverses, Cholesky factors, solves."""
    move, noise = nn.Parameter(torch.eye(3) + 0.1 * torch.randn(3, 3)), nn.Parameter(torch.zeros(3))
    seen = torch.randn(6, 3)

    def step(call):
        mean, cov, total = torch.zeros(3), torch.eye(3), 0.0
        for z in seen:
            mean, cov = move @ mean, move @ cov @ move.T + torch.diag(noise.exp())
            gap, spread = z - mean, cov + 0.5 * torch.eye(3)
            total = total + 0.5 * gap @ torch.linalg.solve(spread, gap) + torch.linalg.cholesky(spread).diagonal().log().sum()
            gain = cov @ torch.linalg.inv(spread)
            mean, cov = mean + gain @ gap, (torch.eye(3) - gain) @ cov
        grads = torch.autograd.grad(total, (move, noise))
        return [total.detach(), mean.detach(), *grads]

    return step


@program
def graph_attention():
    w, a = nn.Linear(5, 8, bias=False), nn.Parameter(torch.randn(16))
    nodes, edges = torch.randn(9, 5), torch.randint(0, 9, (2, 30))

    def step(call):
        h = w(nodes)
        source, target = edges
        logits = F.leaky_relu(torch.cat([h[source], h[target]], 1) @ a, 0.2)
        top = torch.full((9,), -torch.inf).scatter_reduce(0, target, logits, "amax")
        weight = (logits - top[target]).exp()
        norm = torch.zeros(9).index_add(0, target, weight)
        out = torch.zeros(9, 8).scatter_add(0, target[:, None].expand(-1, 8), (weight / norm[target])[:, None] * h[source])
        loss = F.elu(out).pow(2).mean()
        loss.backward()
        grads = [w.weight.grad.clone(), a.grad.clone()]
        w.weight.grad = a.grad = None
        return [loss.detach(), out.detach(), *grads]

    return step


@program
def quantized_training():
    """Fake quantization with straight-through estimators, as an autograd function and as detach."""

    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, levels):
            ctx.save_for_backward(x)
            return (x * levels).round() / levels

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() <= 1), None

    net = mlp(4, 8, 2)
    x = torch.randn(7, 4)

    def step(call):
        y = x
        for layer in net:
            if isinstance(layer, nn.Linear):
                scale = layer.weight.abs().amax(1, keepdim=True) / 7
                w = layer.weight + ((layer.weight / scale).round() * scale - layer.weight).detach()
                y = F.linear(Round.apply(y, 8), w, layer.bias)
            else:
                y = layer(y)
        q = torch.fake_quantize_per_tensor_affine(y, 0.1, 0, -8, 7)
        loss = q.pow(2).sum() + y.sum()
        loss.backward()
        grads = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        return [loss.detach(), *grads]

    return step


@program
def line_search():
    """Control flow on data: a loop that ends when a condition on tensors holds."""
    target = torch.tensor([1.0, -2.0, 0.5])

    def step(call):
        x, n = torch.zeros(3, requires_grad=True), 0
        while True:
            loss = ((x - target) ** 4).sum()
            (g,) = torch.autograd.grad(loss, x)
            size = 1.0
            while ((x - size * g - target) ** 4).sum() > loss and size > 1e-4:
                size /= 2
            x = (x - size * g).detach().requires_grad_()
            n += 1
            if g.norm() < 1e-2 or n >= 30:
                break
        return [x.detach(), torch.tensor(n), loss.detach()]

    return step


@program
def second_order():
    """Newton steps by Hessians, Jacobian-vector products and conjugate gradients."""

    def energy(x):
        return (1 - x[0]) ** 2 + 10 * (x[1:] - x[:-1] ** 2).pow(2).sum()

    start = torch.tensor([0.5, 0.3, 0.2])

    def step(call):
        x = start
        for _ in range(3):
            hessian, grad = torch.func.hessian(energy)(x), torch.func.grad(energy)(x)
            x = x - torch.linalg.solve(hessian + 1e-2 * torch.eye(3), grad)
        _, tangent = torch.func.jvp(torch.func.grad(energy), (x,), (torch.ones(3),))
        rows = torch.func.vmap(lambda v: torch.func.vjp(torch.func.grad(energy), x)[1](v)[0])(torch.eye(3))
        return [x, tangent, rows]

    return step


@program
def stateful_container():
    """A replay buffer of Python lists and dicts, and a model kept in a dataclass."""
    import dataclasses

    @dataclasses.dataclass
    class Learner:
        net: nn.Module
        opt: torch.optim.Optimizer
        history: list = dataclasses.field(default_factory=list)
        counts: dict = dataclasses.field(default_factory=dict)

    net = mlp(3, 8, 2)
    learner = Learner(net, torch.optim.SGD(net.parameters(), 0.1))

    def step(call):
        torch.manual_seed(call)
        sample = torch.randn(4, 3)
        learner.history.append((sample, call))
        learner.counts[call % 2] = learner.counts.get(call % 2, 0) + 1
        batch = torch.cat([each for each, when in learner.history if when % 2 == call % 2][-2:])
        loss = learner.net(batch).square().mean() * learner.counts[call % 2]
        learner.opt.zero_grad()
        loss.backward()
        learner.opt.step()
        return [loss.detach(), torch.tensor(len(batch)), torch.tensor(sorted(learner.counts.items())), *state(learner.net)]

    return step


@program
def complex_signals():
    filters = nn.Parameter(torch.randn(3, 9, dtype=torch.complex64))
    wave = torch.randn(3, 16)

    def step(call):
        spectrum = torch.fft.rfft(wave) * filters
        out = torch.fft.irfft(spectrum, n=16)
        phase = torch.angle(spectrum).cos() + torch.view_as_real(spectrum).pow(2).sum(-1)
        loss = out.pow(2).mean() + phase.mean()
        (grad,) = torch.autograd.grad(loss, filters)
        return [loss.detach(), out.detach(), grad]

    return step


@program
def seeded_attention():
    attention, norm = nn.MultiheadAttention(16, 4, dropout=0.1, batch_first=True), nn.LayerNorm(16)
    opt = torch.optim.RAdam([*attention.parameters(), *norm.parameters()], 1e-3)
    x, pad = torch.randn(2, 6, 16), torch.tensor([[False] * 6, [False] * 4 + [True] * 2])

    def step(call):
        torch.manual_seed(call)
        causal = nn.Transformer.generate_square_subsequent_mask(6).bool()
        out, weights = attention(norm(x), norm(x), norm(x), key_padding_mask=pad, attn_mask=causal, average_attn_weights=False)
        loss = (x + out).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), weights.detach(), *state(attention, norm)]

    return step


@program
def spectral_and_weight_norm():
    net = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8)), nn.ReLU(), nn.utils.parametrizations.weight_norm(nn.Linear(8, 3)))
    opt = torch.optim.SGD(net.parameters(), 0.05)
    x = torch.randn(5, 6)

    def step(call):
        loss = net(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return [loss.detach(), *state(net)]

    return step


@program
def checkpointed_blocks():
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.Dropout(0.1), nn.GELU()) for _ in range(3))
    tail = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    x = torch.randn(4, 8)

    def step(call):
        torch.manual_seed(call)
        y = x.clone().requires_grad_()
        h = y
        for block in blocks:
            h = h + checkpoint(block, h, use_reentrant=False)
        out = checkpoint_sequential(tail, 2, h, use_reentrant=False)
        loss = out.square().mean()
        loss.backward()
        grads = [p.grad.clone() for p in [*blocks.parameters(), *tail.parameters()]]
        blocks.zero_grad()
        tail.zero_grad()
        return [loss.detach(), y.grad, *grads]

    return step


@program
def hooks_and_grads():
    net = mlp(4, 8, 2)
    seen = []
    net[0].register_forward_hook(lambda module, args, out: seen.append(out.detach().mean()))
    net[2].register_full_backward_hook(lambda module, grad_in, grad_out: seen.append(grad_out[0].norm()))
    net[0].weight.register_hook(lambda grad: grad.clamp(-0.01, 0.01))
    x = torch.randn(5, 4)

    def step(call):
        seen.clear()
        h = net[:2](x)
        h.retain_grad()
        h.register_hook(lambda grad: grad * 2)
        loss = net[2](h).square().sum()
        loss.backward()
        grads = [h.grad, *(p.grad.clone() for p in net.parameters())]
        net.zero_grad()
        return [loss.detach(), torch.stack(seen), *grads]

    return step


@program
def sparse_embeddings():
    table = nn.Embedding(30, 4, sparse=True)
    bag = nn.EmbeddingBag(30, 4, mode="mean", padding_idx=0)
    opt = torch.optim.SparseAdam(table.parameters(), 1e-2)
    words = torch.randint(0, 30, (3, 5))

    def step(call):
        loss = table(words).square().sum() + bag(words).sin().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        grad = bag.weight.grad.clone()
        bag.zero_grad()
        return [loss.detach(), grad, *state(table)]

    return step


@program
def beam_search():
    table = torch.randn(12, 12).log_softmax(-1)

    def step(call):
        beams = [([call % 12], torch.zeros(()))]
        for _ in range(5):
            grown = []
            for tokens, score in beams:
                top, which = table[tokens[-1]].topk(3)
                grown += [(tokens + [w], score + t) for t, w in zip(top.unbind(), which.tolist())]
            grown.sort(key=lambda pair: float(pair[1]), reverse=True)
            beams = grown[:3]
        return [torch.tensor([tokens for tokens, _ in beams]), torch.stack([score for _, score in beams])]

    return step


@program
def lbfgs():
    x = nn.Parameter(torch.tensor([-1.0, 1.5]))
    opt = torch.optim.LBFGS([x], lr=0.5, max_iter=5, line_search_fn="strong_wolfe")

    def step(call):
        def closure():
            opt.zero_grad()
            loss = (1 - x[0]) ** 2 + 5 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        loss = opt.step(closure)
        return [loss.detach(), x.detach().clone()]

    return step


@program
def image_augmentation():
    pictures = torch.rand(3, 3, 12, 12)

    @torch.no_grad()
    def step(call):
        torch.manual_seed(call)
        angle = (torch.rand(3) - 0.5) * 0.6
        theta = torch.stack([torch.stack([angle.cos(), -angle.sin(), torch.zeros(3)], 1), torch.stack([angle.sin(), angle.cos(), torch.zeros(3)], 1)], 1)
        x = F.grid_sample(pictures, F.affine_grid(theta, list(pictures.shape), align_corners=False), align_corners=False, padding_mode="reflection")
        top, left = torch.randint(0, 4, (2,)).tolist()
        x = F.interpolate(x[:, :, top : top + 8, left : left + 8], size=(10, 10), mode="bicubic", antialias=True, align_corners=False)
        x = torch.where(torch.rand(3, 1, 1, 1) < 0.5, x.flip(-1), x)
        kernel = torch.tensor([1.0, 2.0, 1.0])
        kernel = (kernel[:, None] * kernel / 16).expand(3, 1, 3, 3)
        x = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), kernel, groups=3)
        mean, std = x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True)
        return [(x - mean) / std, torch.histc(x, 8, 0, 1), torch.quantile(x.flatten(1), torch.tensor([0.1, 0.5]), dim=1)]

    return step


@program
def mixture_of_experts_routing():
    gate, experts = nn.Linear(6, 4, bias=False), nn.ModuleList(mlp(6, 8, 6, act=nn.SiLU) for _ in range(4))
    x = torch.randn(10, 6)

    def step(call):
        probs = gate(x).softmax(-1)
        weight, chosen = probs.topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(experts):
            rows, slot = torch.where(chosen == number)
            if rows.numel():
                out.index_add_(0, rows, expert(x[rows]) * weight[rows, slot, None])
        balance = (F.one_hot(chosen[:, 0], 4).float().mean(0) * probs.mean(0)).sum() * 4
        loss = out.square().mean() + 0.01 * balance
        loss.backward()
        grads = [p.grad.clone() if p.grad is not None else torch.zeros(()) for p in [gate.weight, *experts.parameters()]]
        gate.zero_grad()
        experts.zero_grad()
        return [loss.detach(), out.detach(), *grads]

    return step


@program
def generator_of_batches():
    """A training loop over a generator, with enumerate, zip, a running mean kept by a closure, and early stopping."""
    net = mlp(3, 8, 1)
    opt = torch.optim.Adam(net.parameters(), 1e-2)
    data, target = torch.randn(12, 3), torch.randn(12, 1)
    best, patience = math.inf, 0

    def batches(size, order):
        for start in range(0, len(order), size):
            yield data[order[start : start + size]], target[order[start : start + size]]

    def step(call):
        nonlocal best, patience
        torch.manual_seed(call)
        losses = []
        for number, (x, y) in enumerate(batches(5, torch.randperm(12))):
            opt.param_groups[0]["lr"] = 1e-2 * min(1.0, (number + 1) / 3)
            loss = F.l1_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        mean = sum(losses) / len(losses)
        if mean < best:
            best, patience = mean, 0
        else:
            patience += 1
        return [torch.tensor(losses), torch.tensor([best, patience]), *state(net)]

    return step


@program
def key_value_cache():
    """Decoding with a cache that grows, kept in a list of dicts, with rotary positions."""
    width, heads, layers = 16, 2, 2
    blocks = nn.ModuleList(nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width), "norm": nn.RMSNorm(width)}) for _ in range(layers))
    table = nn.Embedding(30, width)

    def rotate(x, start):
        half = x.shape[-1] // 2
        angle = torch.arange(start, start + x.shape[2])[:, None] / 10000 ** (torch.arange(half) / half)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    @torch.no_grad()
    def step(call):
        cache = [{"k": None, "v": None} for _ in range(layers)]
        tokens = torch.tensor([[1, 2, 3 + call]])
        made = tokens
        for _ in range(4):
            x, start = table(made), tokens.shape[1] - made.shape[1]
            for block, kept in zip(blocks, cache):
                q, k, v = (each.view(1, -1, heads, width // heads).transpose(1, 2) for each in block["qkv"](block["norm"](x)).chunk(3, -1))
                q, k = rotate(q, start), rotate(k, start)
                if kept["k"] is not None:
                    k, v = torch.cat([kept["k"], k], 2), torch.cat([kept["v"], v], 2)
                kept["k"], kept["v"] = k, v
                y = F.scaled_dot_product_attention(q, k, v, is_causal=start == 0)
                x = x + block["out"](y.transpose(1, 2).flatten(2))
            made = (x[:, -1:] @ table.weight.T).argmax(-1)
            tokens = torch.cat([tokens, made], 1)
        return [tokens, cache[0]["k"], cache[-1]["v"]]

    return step


@program
def segmentation_training():
    down = nn.ModuleList([nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 12, 3, 2, 1), nn.Conv2d(12, 12, 3, 2, 1)])
    up = nn.ModuleList([nn.ConvTranspose2d(12, 12, 2, 2), nn.ConvTranspose2d(24, 6, 4, 2, 1)])
    head = nn.Conv2d(12, 4, 1)
    opt = torch.optim.SGD([*down.parameters(), *up.parameters(), *head.parameters()], 0.05)
    x, y = torch.randn(2, 3, 16, 16), torch.randint(-1, 4, (2, 16, 16))

    def step(call):
        skips, h = [], x
        for layer in down:
            h = F.leaky_relu(F.group_norm(layer(h), 3), 0.1)
            skips.append(h)
        h = skips.pop()
        for layer in up:
            h = torch.cat([F.silu(layer(h)), skips.pop()], 1)
        logits = head(h)
        loss = F.cross_entropy(logits, y, ignore_index=-1, weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))
        probs, known = logits.softmax(1), (y >= 0)
        hot = F.one_hot(y.clamp(min=0), 4).permute(0, 3, 1, 2) * known[:, None]
        dice = 1 - (2 * (probs * hot).sum((0, 2, 3)) / ((probs * known[:, None]).sum((0, 2, 3)) + hot.sum((0, 2, 3)) + 1e-6)).mean()
        opt.zero_grad()
        (loss + dice).backward()
        opt.step()
        matrix = torch.bincount((y * 4 + logits.argmax(1))[known], minlength=16).view(4, 4)
        return [loss.detach(), dice.detach(), matrix, *state(down, up, head)]

    return step


@program
def gated_cells():
    """Recurrent cells written out, with teacher forcing decided by random numbers of Python."""
    import random

    cell, first, head = nn.GRUCell(6, 10), nn.Linear(4, 10), nn.Linear(10, 6)
    goal = torch.randn(7, 3, 6)

    def step(call):
        draws = random.Random(call)
        h, x, losses = torch.tanh(first(torch.ones(3, 4))), torch.zeros(3, 6), []
        for t in range(7):
            h = cell(x, h)
            out = head(h)
            losses.append(F.mse_loss(out, goal[t]))
            x = goal[t] if draws.random() < 0.5 else out.detach()
        loss = sum(losses) / len(losses)
        loss.backward()
        grads = [p.grad.clone() for p in [*cell.parameters(), *first.parameters(), *head.parameters()]]
        for module in (cell, first, head):
            module.zero_grad(set_to_none=True)
        return [loss.detach(), h.detach(), *grads]

    return step


@program
def gaussian_process():
    x, y, at = torch.linspace(0, 1, 8)[:, None], torch.sin(6 * torch.linspace(0, 1, 8)), torch.linspace(0, 1, 5)[:, None]
    log_scale, log_noise = nn.Parameter(torch.tensor(-1.0)), nn.Parameter(torch.tensor(-2.0))
    opt = torch.optim.Adam([log_scale, log_noise], 0.05)

    def kernel(a, b):
        return torch.exp(-0.5 * torch.cdist(a, b).square() / log_scale.exp() ** 2)

    def step(call):
        k = kernel(x, x) + (log_noise.exp() + 1e-4) * torch.eye(8)
        factor = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(y[:, None], factor)
        loss = 0.5 * (y @ alpha).sum() + factor.diagonal().log().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            between = kernel(at, x)
            mean = (between @ alpha).squeeze(-1)
            v = torch.linalg.solve_triangular(factor, between.T, upper=False)
            variance = 1 - v.square().sum(0)
        return [loss.detach(), mean, variance, log_scale.detach().clone()]

    return step


@program
def hamiltonian_sampling():
    """Leapfrog steps with gradients of an energy, and an accept step that branches on data."""

    def energy(q):
        return 0.5 * (q**2).sum() + torch.logsumexp(torch.stack([q.sum(), -q.sum()]), 0)

    def step(call):
        torch.manual_seed(call)
        q, taken = torch.zeros(3), 0
        for _ in range(4):
            p = torch.randn(3)
            before = energy(q) + 0.5 * p @ p
            new, force = q, torch.func.grad(energy)
            p = p - 0.05 * force(new)
            for k in range(3):
                new = new + 0.1 * p
                p = p - (0.1 if k < 2 else 0.05) * force(new)
            if torch.rand(()) < torch.exp(before - energy(new) - 0.5 * p @ p):
                q, taken = new, taken + 1
        return [q, torch.tensor(taken)]

    return step


@program
def dictionaries_of_metrics():
    """Nested outputs: dataclasses, named tuples and dictionaries that are built, merged and averaged."""
    import collections

    Output = collections.namedtuple("Output", ["loss", "logits", "extras"])
    net = mlp(4, 8, 3)
    x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
    totals = collections.defaultdict(list)

    def forward(x, y=None, **extras):
        logits = net(x)
        loss = F.cross_entropy(logits, y) if y is not None else None
        return Output(loss, logits, {"top": logits.topk(2).indices, **extras})

    def step(call):
        out = forward(x, y, scale=2.0 * call)
        metrics = {"loss": out.loss.detach(), "accuracy": (out.logits.argmax(-1) == y).float().mean(), **{f"class {k}": (y == k).sum() for k in range(3)}}
        for name, value in metrics.items():
            totals[name].append(value)
        means = {name: torch.stack(values).float().mean() for name, values in totals.items() if name != "class 1"}
        (grad,) = torch.autograd.grad(out.loss, net[0].weight)
        return [*means.values(), out.extras["top"], torch.tensor(out.extras["scale"]), grad, torch.tensor(len(totals))]

    return step


@program
def functional_ensemble():
    """Per-sample gradients and an ensemble of models by vmap."""
    models = [mlp(3, 6, 2) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    base = mlp(3, 6, 2)
    x, y = torch.randn(5, 3), torch.randint(0, 2, (5,))

    def step(call):
        def loss(params, sample, label):
            return F.cross_entropy(torch.func.functional_call(base, params, (sample[None],)), label[None])

        each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(dict(base.named_parameters()), x, y)
        together = torch.func.vmap(lambda p, b, x: torch.func.functional_call(base, (p, b), (x,)), (0, 0, None))(parameters, buffers, x + call)
        jacobian = torch.func.vmap(torch.func.jacrev(lambda v: base(v)))(x)
        return [*(g.detach() for g in each.values()), together.detach(), jacobian.detach()]

    return step


@program
def masked_losses():
    """Boolean masks, indices by masks, sorting by lengths, and losses that skip padding."""
    logits, tokens = torch.randn(4, 6, 9, requires_grad=True), torch.randint(0, 9, (4, 6))
    lengths = torch.tensor([6, 3, 5, 1])

    def step(call):
        mask = torch.arange(6) < lengths[:, None]
        order = lengths.argsort(descending=True)
        picked = logits[mask]
        loss = F.nll_loss(picked.log_softmax(-1), tokens[mask], reduction="sum") / lengths.sum()
        focal = ((1 - picked.softmax(-1).gather(1, tokens[mask][:, None])) ** 2).mean()
        hinge = F.multi_margin_loss(logits[order, 0], tokens[order, 0])
        smooth = F.kl_div(logits[:, -1].log_softmax(-1), torch.full((4, 9), 1 / 9), reduction="batchmean")
        total = loss + focal + hinge + smooth + logits.masked_fill(~mask[..., None], 0.0).logsumexp(-1).mean() * call
        (grad,) = torch.autograd.grad(total, logits)
        ranked = [row[:n].tolist() for row, n in zip(tokens, lengths.tolist())]
        return [total.detach(), grad, picked.detach(), torch.tensor([len(each) for each in ranked])]

    return step


@program
def custom_optimizer():
    """An optimizer of the user's with state in dictionaries, and one written out over `foreach` operators."""

    class Lion(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-2, beta=0.9):
            super().__init__(params, {"lr": lr, "beta": beta})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if not state:
                        state["average"] = torch.zeros_like(p)
                    average = state["average"]
                    p.add_(average.mul(group["beta"]).add(p.grad, alpha=1 - group["beta"]).sign_(), alpha=-group["lr"])
                    average.lerp_(p.grad, 1 - 0.99)

    net = mlp(4, 8, 2)
    opt = Lion(net.parameters())
    shadow = [p.detach().clone() for p in net.parameters()]
    x = torch.randn(6, 4)

    def step(call):
        loss = net(x).square().mean()
        opt.zero_grad()
        loss.backward()
        torch._foreach_mul_([p.grad for p in net.parameters()], 0.5)
        opt.step()
        torch._foreach_lerp_(shadow, [p.detach() for p in net.parameters()], 0.1)
        return [loss.detach(), *state(net), *(each.clone() for each in shadow)]

    return step


@program
def windows_and_shifts():
    """Swin-like windows: rolls, partitions with symbolic arithmetic, relative biases by an index table."""
    table, qkv = nn.Parameter(torch.randn(9, 2)), nn.Linear(8, 24)
    x = torch.randn(1, 4, 4, 8)

    def partition(x, w):
        b, h, ww, c = x.shape
        return x.view(b, h // w, w, ww // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)

    def merge(x, w, h, ww):
        b = x.shape[0] // (h * ww // w // w)
        return x.view(b, h // w, ww // w, w, w, -1).permute(0, 1, 3, 2, 4, 5).reshape(b, h, ww, -1)

    def step(call):
        grid = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")).flatten(1)
        relative = (grid[:, :, None] - grid[:, None]).permute(1, 2, 0) + 1
        index = relative[..., 0] * 3 + relative[..., 1]
        shifted = torch.roll(x, (-1, -1), (1, 2))
        parts = partition(shifted, 2)
        q, k, v = qkv(parts).view(-1, 4, 3, 2, 4).permute(2, 0, 3, 1, 4)
        region = partition(((torch.arange(4) >= 3).long()[:, None] * 2 + (torch.arange(4) >= 3).long())[None, ..., None].float(), 2).squeeze(-1)
        mask = (region[:, None] != region[..., None]).float() * -100.0
        scores = q @ k.transpose(-1, -2) / 2 + table[index].permute(2, 0, 1) + mask[:, None]
        out = merge((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, 8), 2, 4, 4).roll((1, 1), (1, 2))
        loss = out.square().mean()
        grads = torch.autograd.grad(loss, (table, qkv.weight))
        return [out.detach(), *grads]

    return step


@program
def state_space_scan():
    """A selective scan: a loop over time with elementwise state, and the same by cumulative sums."""
    a, b, c = nn.Parameter(-torch.rand(4, 3)), nn.Linear(4, 3), nn.Linear(4, 3)
    x = torch.randn(2, 6, 4)

    def step(call):
        delta = F.softplus(x.mean(-1, keepdim=True) + call * 0.1)
        h, ys = x.new_zeros(2, 4, 3), []
        for t in range(x.shape[1]):
            decay = torch.exp(delta[:, t, :, None] * a)
            h = decay * h + delta[:, t, :, None] * b(x[:, t])[:, None] * x[:, t, :, None]
            ys.append(torch.einsum("bds,bs->bd", h, c(x[:, t])))
        y = torch.stack(ys, 1)
        sums = torch.cumsum(delta, 1).exp().log().diff(dim=1)
        loss = y.square().mean() + sums.mean()
        grads = torch.autograd.grad(loss, [a, b.weight, c.weight])
        return [y.detach(), sums.detach(), *grads]

    return step


@program
def volumes_and_video():
    conv, pool, head = nn.Conv3d(2, 4, (3, 3, 3), stride=(1, 2, 2), padding=1), nn.MaxPool3d((1, 2, 2)), nn.LazyLinear(3)
    head(torch.zeros(1, 4))
    clip = torch.randn(2, 2, 5, 8, 8)

    def step(call):
        h = F.relu6(conv(clip))
        h = pool(h) + F.avg_pool3d(h, (1, 2, 2), ceil_mode=True)
        h = F.interpolate(h, scale_factor=(1, 2, 2), mode="trilinear", align_corners=True)
        out = head(h.mean((2, 3, 4)))
        loss = F.gaussian_nll_loss(out, torch.zeros_like(out), torch.ones_like(out) * (1 + call))
        grads = torch.autograd.grad(loss, [*conv.parameters(), *head.parameters()])
        return [out.detach(), *grads]

    return step


@program
def polynomial_fit():
    """Least squares, QR, eigenvalues, and statistics of residuals."""
    t = torch.linspace(-1, 1, 20, dtype=torch.float64)

    def step(call):
        basis = torch.vander(t, 4 + call)
        y = torch.sin(3 * t) + 0.1 * torch.cos(17 * t)
        w = torch.linalg.lstsq(basis, y[:, None]).solution
        q, r = torch.linalg.qr(basis)
        other = torch.linalg.solve_triangular(r, q.T @ y[:, None], upper=True)
        rest = (y - (basis @ w).squeeze())
        gram = basis.T @ basis
        values = torch.linalg.eigvalsh(gram)
        return [w, other, values, rest.std(), rest.abs().median(), torch.quantile(rest, 0.9), torch.corrcoef(torch.stack([y, rest])), torch.linalg.norm(gram), torch.trapezoid(y, t)]

    return step


@program
def strings_and_settings():
    """Modules picked by names, settings in a dictionary, formatted names as keys, and a registry of functions."""
    settings = {"act": "gelu", "norm": "layer", "layers": 2, "width": 6, "residual": True}
    acts = {"relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh}
    blocks = nn.ModuleDict({f"block_{k}": nn.Linear(6, 6) for k in range(settings["layers"])})
    norms = nn.ModuleDict({"layer": nn.LayerNorm(6), "none": nn.Identity()})
    x = torch.randn(3, 6)

    def step(call):
        settings["act"] = ["gelu", "tanh", "relu"][call]
        h, seen = x, {}
        for name, block in blocks.items():
            y = acts[settings["act"]](block(norms[settings["norm"]](h)))
            h = h + y if settings.get("residual") and name.endswith(("_0", "_1")) else y
            seen[f"{name}/{settings['act']:>5}"] = h.detach().mean()
        assert all(key.count("/") == 1 for key in seen), sorted(seen)
        (grad,) = torch.autograd.grad(h.sum(), blocks["block_0"].weight)
        return [h.detach(), grad, *(seen[key] for key in sorted(seen, key=lambda key: key.split("/")[0]))]

    return step
