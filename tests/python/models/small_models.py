"""Architectures written out here, in a few lines each: what libraries do not have small, or have behind code that no compiler is asked to follow.

`SMALL` maps a name to a function that returns `(module, arguments)`, as in `architectures.py`.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def pictures(size=32):
    return torch.randn(2, 3, size, size)


class Residual(nn.Module):
    """A block of a diffusion model: two convolutions that a moment in time shifts."""

    def __init__(self, width, time):
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(2))
        self.convolutions = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(time, 2 * width)

    def forward(self, x, time):
        scale, shift = self.time(F.silu(time))[:, :, None, None].chunk(2, 1)
        y = self.convolutions[0](F.silu(self.norms[0](x)))
        y = self.norms[1](y) * (1 + scale) + shift
        return x + self.convolutions[1](F.silu(y))


class PixelAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(4, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, 2, c // 2, h * w).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(b, c, h, w)
        return x + self.out(y)


class Diffusion(nn.Module):
    """A U-Net that is told the time."""

    def __init__(self, width=16):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(2 * width, 3, 3, padding=1)
        self.down, self.up = nn.Conv2d(width, width, 3, 2, 1), nn.ConvTranspose2d(width, width, 4, 2, 1)
        self.blocks = nn.ModuleList(Residual(width, width) for _ in range(3))
        self.attention = PixelAttention(width)

    def forward(self, x, moment):
        steps = torch.exp(-math.log(1e4) * torch.arange(8) / 8).to(x)
        angles = moment[:, None].to(x.dtype) * steps
        time = torch.cat([angles.sin(), angles.cos()], 1)
        x = self.blocks[0](self.first(x), time)
        y = self.attention(self.blocks[1](self.down(x), time))
        return self.last(torch.cat([x, self.up(self.blocks[2](y, time))], 1))


class Segmentation(nn.Module):
    """A decoder with atrous pyramids over a small encoder, and the label of each pixel."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.pyramid = nn.ModuleList(nn.Conv2d(16, 8, 3, padding=rate, dilation=rate) for rate in (1, 2, 4))
        self.head = nn.Conv2d(40, 5, 1)

    def forward(self, x):
        y = self.encoder(x)
        whole = F.adaptive_avg_pool2d(y, 1).expand_as(y)
        scores = self.head(torch.cat([F.relu(each(y)) for each in self.pyramid] + [whole], 1))
        scores = F.interpolate(scores, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return scores, scores.argmax(1)


class Detection(nn.Module):
    """A pyramid of features, boxes relative to anchors, and the best few of them."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in ((3, 8), (8, 16), (16, 32)))
        self.lateral = nn.ModuleList(nn.Conv2d(width, 16, 1) for width in (16, 32))
        self.classes, self.boxes = nn.Conv2d(16, 3 * 4, 3, padding=1), nn.Conv2d(16, 3 * 4, 3, padding=1)

    def forward(self, x):
        maps = []
        for stage in self.stages:
            x = F.relu(stage(x))
            maps.append(x)
        top = self.lateral[1](maps[2])
        levels = [self.lateral[0](maps[1]) + F.interpolate(top, size=maps[1].shape[-2:], mode="nearest"), top]
        scores, boxes = [], []
        for level in levels:
            b, _, h, w = level.shape
            scores.append(self.classes(level).view(b, 3, 4, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, 4))
            delta = self.boxes(level).view(b, 3, 4, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, 4)
            y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            centre = torch.stack([x, y], -1).view(-1, 1, 2).expand(-1, 3, 2).reshape(-1, 2).to(delta)
            boxes.append(torch.cat([delta[..., :2] + centre, delta[..., 2:].clamp(max=4).exp()], -1))
        scores, boxes = torch.cat(scores, 1).sigmoid(), torch.cat(boxes, 1)
        best, place = scores.max(-1).values.topk(5, dim=1)
        return best, boxes.gather(1, place[..., None].expand(-1, -1, 4))


class Experts(nn.Module):
    """Tokens go to two of four experts."""

    def __init__(self, width=16):
        super().__init__()
        self.router = nn.Linear(width, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, width, 32) * 0.1), nn.Parameter(torch.randn(4, 32, width) * 0.1)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        share = torch.zeros(*x.shape[:-1], 4, dtype=x.dtype).scatter(-1, chosen, weights)
        hidden = F.gelu(torch.einsum("bsd,edf->bsef", x, self.up))
        return torch.einsum("bsef,efd,bse->bsd", hidden, self.down, share), share.mean((0, 1))


class StateSpace(nn.Module):
    """A diagonal linear recurrence, as a loop and as a convolution."""

    def __init__(self, width=8, state=4):
        super().__init__()
        self.rate, self.put, self.get = (nn.Parameter(torch.randn(width, state) * 0.3) for _ in range(3))

    def forward(self, x):
        decay = torch.sigmoid(self.rate)
        state = torch.zeros(x.shape[0], *decay.shape, dtype=x.dtype)
        outputs = []
        for moment in x.unbind(1):
            state = decay * state + self.put * moment[..., None]
            outputs.append((state * self.get).sum(-1))
        powers = decay[..., None] ** torch.arange(x.shape[1])
        kernel = (self.get[..., None] * self.put[..., None] * powers).sum(1).flip(-1)[:, None]
        along = F.conv1d(F.pad(x.transpose(1, 2), (x.shape[1] - 1, 0)), kernel, groups=x.shape[2])
        return torch.stack(outputs, 1), along.transpose(1, 2)


class Graph(nn.Module):
    """Attention over the edges of a graph."""

    def __init__(self, width=8):
        super().__init__()
        self.node, self.edge, self.last = nn.Linear(width, width), nn.Linear(2 * width, 1), nn.Linear(width, 3)

    def forward(self, x, source, target):
        for _ in range(2):
            h = self.node(x)
            score = F.leaky_relu(self.edge(torch.cat([h[source], h[target]], -1))).squeeze(-1)
            most = torch.full((x.shape[0],), -math.inf, dtype=x.dtype).scatter_reduce(0, target, score, "amax")
            weight = (score - most[target]).exp()
            total = torch.zeros(x.shape[0], dtype=x.dtype).index_add(0, target, weight)
            message = h[source] * (weight / total[target].clamp(min=1e-6))[:, None]
            x = F.elu(torch.zeros_like(h).index_add(0, target, message)) + h
        return self.last(x).log_softmax(-1)


class Tagger(nn.Module):
    """A bidirectional LSTM over embedded words, padded."""

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.last = nn.Embedding(30, 8, padding_idx=0), nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), nn.Linear(12, 5)

    def forward(self, words):
        states, (h, c) = self.lstm(self.embedding(words))
        return self.last(states).masked_fill((words == 0)[..., None], 0.0), h, c


class Translator(nn.Module):
    """A GRU that reads, and a cell that writes with attention."""

    def __init__(self):
        super().__init__()
        self.embedding, self.reader, self.writer, self.last = nn.Embedding(30, 8), nn.GRU(8, 8, batch_first=True), nn.GRUCell(16, 8), nn.Linear(8, 30)

    def forward(self, words):
        states, last = self.reader(self.embedding(words))
        h, token, scores = last[0], words[:, 0], []
        for _ in range(4):
            attention = torch.bmm(states, h[:, :, None]).softmax(1)
            h = self.writer(torch.cat([self.embedding(token), (attention * states).sum(1)], -1), h)
            scores.append(self.last(h))
            token = scores[-1].argmax(-1)
        return torch.stack(scores, 1), token


class Decoder(nn.Module):
    """A decoder with rotary positions, grouped heads, RMS norms, a gate and a cache that it writes."""

    def __init__(self, width=16, heads=4, kept=2, room=12):
        super().__init__()
        self.heads, self.kept, self.size = heads, kept, width // heads
        self.embedding = nn.Embedding(40, width)
        self.q, self.k, self.v = nn.Linear(width, width, bias=False), nn.Linear(width, kept * self.size, bias=False), nn.Linear(width, kept * self.size, bias=False)
        self.out, self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((width, width), (width, 32), (width, 32), (32, width)))
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(3))
        self.register_buffer("keys", torch.zeros(4, kept, room, self.size))
        self.register_buffer("values", torch.zeros(4, kept, room, self.size))

    def turned(self, x, start):
        angles = torch.arange(start, start + x.shape[-2])[:, None] * 10 ** (-torch.arange(0, self.size, 2) / self.size)
        cos, sin = (torch.cat([part, part], -1).to(x.dtype) for part in (angles.cos(), angles.sin()))
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def step(self, words, start):
        x = self.embedding(words)
        b, s, _ = x.shape
        h = self.norms[0](x)
        q = self.turned(self.q(h).view(b, s, self.heads, self.size).transpose(1, 2), start)
        k = self.turned(self.k(h).view(b, s, self.kept, self.size).transpose(1, 2), start)
        v = self.v(h).view(b, s, self.kept, self.size).transpose(1, 2)
        if not self.training:
            self.keys[:b, :, start : start + s] = k
            self.values[:b, :, start : start + s] = v
            k, v = self.keys[:b, :, : start + s], self.values[:b, :, : start + s]
        mask = torch.ones(s, start + s).tril(start).bool()
        y = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True).transpose(1, 2).reshape(b, s, -1)
        x = x + self.out(y)
        h = self.norms[1](x)
        x = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return self.norms[2](x) @ self.embedding.weight.t()

    def forward(self, words):
        scores = self.step(words, 0)
        if self.training:
            return scores
        token, found = scores[:, -1:].argmax(-1), []
        for place in range(words.shape[1], words.shape[1] + 4):
            found.append(token)
            token = self.step(token, place)[:, -1:].argmax(-1)
        return scores, torch.cat(found, 1)


class Ranking(nn.Module):
    """Sparse features as bags of embeddings, and every product of two of them."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(20, 8, mode="sum") for _ in range(3))
        self.dense, self.last = nn.Linear(5, 8), nn.Linear(8 + 6, 1)

    def forward(self, dense, sparse):
        features = torch.stack([F.relu(self.dense(dense)), *(bag(sparse[:, k]) for k, bag in enumerate(self.bags))], 1)
        products = torch.bmm(features, features.transpose(1, 2))
        rows, columns = torch.tril_indices(4, 4, -1)
        return self.last(torch.cat([features[:, 0], products[:, rows, columns]], 1)).sigmoid()


class Waves(nn.Module):
    """Dilated causal convolutions with gates over sound, and its spectrum."""

    def __init__(self, width=8):
        super().__init__()
        self.first, self.last = nn.Conv1d(1, width, 1), nn.Conv1d(width, 4, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**k) for k in range(4))
        self.skips = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(4))

    def forward(self, x):
        y, total = self.first(x), 0
        for k, (gate, skip) in enumerate(zip(self.gates, self.skips)):
            a, b = gate(F.pad(y, (2**k, 0))).chunk(2, 1)
            h = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(h)
            y = y + h
        frames = x.squeeze(1).unfold(1, 16, 8) * torch.hann_window(16).to(x.dtype)
        return self.last(F.relu(total)), frames.pow(2).mean(-1).clamp(min=1e-5).log()


class Points(nn.Module):
    """A cloud of points: the nearest neighbours of each, and the largest of what is learned of them."""

    def __init__(self):
        super().__init__()
        self.edge, self.last = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.ReLU()), nn.Linear(16, 4)

    def forward(self, x):
        near = (x[:, :, None] - x[:, None]).pow(2).sum(-1).topk(4, largest=False).indices
        neighbours = x[torch.arange(x.shape[0])[:, None, None], near]
        features = self.edge(torch.cat([neighbours - x[:, :, None], x[:, :, None].expand_as(neighbours)], -1))
        return self.last(features.amax(2).amax(1))


class Variational(nn.Module):
    """An autoencoder that draws its code."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Sequential(nn.Linear(20, 16), nn.GELU(), nn.Linear(16, 8)), nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 20))

    def forward(self, x):
        mean, spread = self.encoder(x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1).mean()
        return self.decoder(code), divergence


class Mixer(nn.Module):
    """Patches whose rows and columns are mixed in turn."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, 8)
        self.rows, self.columns = nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16)), nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.rows(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return (x + self.columns(self.norms[1](x))).mean(1)


class Radiance(nn.Module):
    """Colours along rays: positions by frequency, a network, and the sum that light makes of them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3 * 9, 32), nn.Softplus(), nn.Linear(32, 4))

    def forward(self, origin, direction):
        depth = torch.linspace(0.5, 4, 8).to(origin.dtype)
        points = origin[:, None] + direction[:, None] * depth[:, None]
        angles = points[..., None] * (2.0 ** torch.arange(4))
        features = torch.cat([points[..., None], angles.sin(), angles.cos()], -1).flatten(-2)
        colour, density = self.layers(features.to(origin.dtype)).split([3, 1], -1)
        alpha = 1 - torch.exp(-F.relu(density.squeeze(-1)) * torch.diff(depth, append=depth[-1:] + 1))
        passed = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-6], 1), 1)[:, :-1]
        return (colour.sigmoid() * (alpha * passed)[..., None]).sum(1), alpha.sum(1)


def words(most=30):
    return torch.randint(1, most, (2, 6))


SMALL = {
    "diffusion": lambda: (Diffusion(), {"x": pictures(16), "moment": torch.randint(0, 100, (2,))}),
    "segmentation": lambda: (Segmentation(), {"x": pictures()}),
    "detection": lambda: (Detection(), {"x": pictures()}),
    "experts": lambda: (Experts(), {"x": torch.randn(2, 5, 16)}),
    "state_space": lambda: (StateSpace(), {"x": torch.randn(2, 7, 8)}),
    "graph": lambda: (Graph(), {"x": torch.randn(9, 8), "source": torch.randint(0, 9, (24,)), "target": torch.randint(0, 9, (24,))}),
    "tagger": lambda: (Tagger(), {"words": words()}),
    "translator": lambda: (Translator(), {"words": words()}),
    "decoder": lambda: (Decoder(), {"words": words()}),
    "ranking": lambda: (Ranking(), {"dense": torch.randn(2, 5), "sparse": torch.randint(0, 20, (2, 3, 4))}),
    "waves": lambda: (Waves(), {"x": torch.randn(2, 1, 64)}),
    "points": lambda: (Points(), {"x": torch.randn(2, 10, 3)}),
    "variational": lambda: (Variational(), {"x": torch.randn(2, 20)}),
    "mixer": lambda: (Mixer(), {"x": pictures()}),
    "radiance": lambda: (Radiance(), {"origin": torch.randn(2, 3), "direction": torch.randn(2, 3)}),
}
