"""Real architectures in plain torch, in miniature: what the forward does is what the big one's forward does."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inp, width, stride=1):
        super().__init__()
        out = width * self.expansion
        self.conv1 = nn.Conv2d(inp, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inp != out:
            self.downsample = nn.Sequential(nn.Conv2d(inp, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, depths=(1, 2, 1), width=4, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.pool = nn.MaxPool2d(3, 2, 1)
        inp, stages = width, []
        for i, depth in enumerate(depths):
            blocks = []
            for j in range(depth):
                blocks.append(Bottleneck(inp, width * 2**i, 2 if i and not j else 1))
                inp = width * 2**i * Bottleneck.expansion
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inp, classes)

    def forward(self, x):
        x = self.pool(self.stem(x))
        x = self.stages(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask.div_(keep)


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim, drop):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(1e-2 * torch.ones(dim))
        self.drop_path = DropPath(drop) if drop > 0.0 else nn.Identity()

    def forward(self, x):
        shortcut = x
        x = self.dwconv(x).permute(0, 2, 3, 1)
        x = self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        if self.gamma is not None:
            x = x.mul(self.gamma)
        x = x.permute(0, 3, 1, 2)
        return self.drop_path(x) + shortcut


class ConvNeXt(nn.Module):
    def __init__(self, dims=(8, 16), depths=(1, 2), classes=10):
        super().__init__()
        self.downsample_layers = nn.ModuleList([nn.Sequential(nn.Conv2d(3, dims[0], 4, 4), LayerNorm2d(dims[0]))])
        for a, b in zip(dims, dims[1:]):
            self.downsample_layers.append(nn.Sequential(LayerNorm2d(a), nn.Conv2d(a, b, 2, 2)))
        rates = iter([0.0, 0.1, 0.2, 0.3])
        self.stages = nn.ModuleList(
            [nn.Sequential(*[ConvNeXtBlock(d, next(rates)) for _ in range(n)]) for d, n in zip(dims, depths)]
        )
        self.norm, self.head = nn.LayerNorm(dims[-1]), nn.Linear(dims[-1], classes)

    def forward_features(self, x):
        for i in range(len(self.stages)):
            x = self.downsample_layers[i](x)
            x = self.stages[i](x)
        return self.norm(x.mean([-2, -1]))

    def forward(self, x):
        return self.head(self.forward_features(x))


class SqueezeExcite(nn.Module):
    def __init__(self, dim, squeezed):
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(dim, squeezed, 1), nn.Conv2d(squeezed, dim, 1)

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.expand(F.silu(self.reduce(s))))


class MBConv(nn.Module):
    def __init__(self, inp, out, expand, kernel, stride):
        super().__init__()
        mid = inp * expand
        self.skip = stride == 1 and inp == out
        layers = []
        if expand != 1:
            layers += [nn.Conv2d(inp, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.SiLU(inplace=True)]
        layers += [
            nn.Conv2d(mid, mid, kernel, stride, kernel // 2, groups=mid, bias=False),
            nn.BatchNorm2d(mid),
            nn.SiLU(inplace=True),
            SqueezeExcite(mid, max(1, inp // 4)),
            nn.Conv2d(mid, out, 1, bias=False),
            nn.BatchNorm2d(out),
        ]
        self.block = nn.Sequential(*layers)
        self.drop = DropPath(0.2)

    def forward(self, x):
        y = self.block(x)
        return x + self.drop(y) if self.skip else y


class EfficientNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.SiLU())
        plan = [(8, 8, 1, 3, 1), (8, 12, 4, 3, 2), (12, 12, 4, 5, 1), (12, 16, 6, 3, 2)]
        self.features = nn.Sequential(*[MBConv(*row) for row in plan])
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, classes))

    def forward(self, x):
        return self.classifier(self.features(self.stem(x)).mean((2, 3)))


def window_partition(x, size):
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size * size, c)


def window_reverse(windows, size, h, w):
    b = int(windows.shape[0] / (h * w / size / size))
    x = windows.view(b, h // size, w // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, -1)


class WindowAttention(nn.Module):
    def __init__(self, dim, size, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.bias_table = nn.Parameter(torch.randn((2 * size - 1) ** 2, heads) * 0.02)
        coords = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
        relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0) + size - 1
        self.register_buffer("index", relative[..., 0] * (2 * size - 1) + relative[..., 1])
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        attn = attn + self.bias_table[self.index.view(-1)].view(n, n, -1).permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            attn = attn.view(b // windows, windows, self.heads, n, n) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.heads, n, n)
        return self.proj((attn.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c))


class SwinBlock(nn.Module):
    def __init__(self, dim, resolution, heads, window, shift):
        super().__init__()
        self.window, self.shift = window, shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, window, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        mask = None
        if shift:
            image = torch.zeros(1, resolution, resolution, 1)
            parts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
            for i, h in enumerate(parts):
                for j, w in enumerate(parts):
                    image[:, h, w, :] = i * 3 + j
            ids = window_partition(image, window).squeeze(-1)
            mask = (ids.unsqueeze(1) - ids.unsqueeze(2)).ne(0).float() * -100.0
        self.register_buffer("attn_mask", mask)

    def forward(self, x):
        b, h, w, c = x.shape
        shortcut = x
        x = self.norm1(x)
        shifted = torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift > 0 else x
        windows = self.attn(window_partition(shifted, self.window), mask=self.attn_mask)
        shifted = window_reverse(windows.view(-1, self.window, self.window, c), self.window, h, w)
        x = torch.roll(shifted, (self.shift, self.shift), (1, 2)) if self.shift > 0 else shifted
        x = shortcut + x
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        _, h, w, _ = x.shape
        assert h % 2 == 0 and w % 2 == 0, f"x size ({h}*{w}) is not even."
        x = torch.cat([x[:, i::2, j::2] for j in range(2) for i in range(2)], -1)
        return self.reduction(self.norm(x))


class Swin(nn.Module):
    def __init__(self, dim=8, classes=10):
        super().__init__()
        self.embed = nn.Conv2d(3, dim, 4, 4)
        self.layers = nn.Sequential(
            SwinBlock(dim, 8, 2, 4, 0),
            SwinBlock(dim, 8, 2, 4, 2),
            PatchMerging(dim),
            SwinBlock(2 * dim, 4, 4, 4, 0),
        )
        self.norm, self.head = nn.LayerNorm(2 * dim), nn.Linear(2 * dim, classes)

    def forward(self, x):
        x = self.layers(self.embed(x).permute(0, 2, 3, 1))
        return self.head(self.norm(x).mean((1, 2)))


class CausalAttention(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.width = heads, width
        self.flash = hasattr(F, "scaled_dot_product_attention")
        self.register_buffer("tril", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x, manual):
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(self.width, dim=2)
        q, k, v = (u.view(b, t, self.heads, c // self.heads).transpose(1, 2) for u in (q, k, v))
        if self.flash and not manual:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.tril[:, :, :t, :t] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class GPTBlock(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalAttention(width, heads, block)
        self.mlp = nn.ModuleDict({"fc": nn.Linear(width, 4 * width), "proj": nn.Linear(4 * width, width)})

    def forward(self, x, manual=False):
        x = x + self.attn(self.ln_1(x), manual)
        return x + self.mlp["proj"](F.gelu(self.mlp["fc"](self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, words=40, width=16, heads=2, depth=2, block=16):
        super().__init__()
        self.block_size = block
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(words, width),
                wpe=nn.Embedding(block, width),
                drop=nn.Dropout(0.1),
                h=nn.ModuleList([GPTBlock(width, heads, block) for _ in range(depth)]),
                ln_f=nn.LayerNorm(width),
            )
        )
        self.lm_head = nn.Linear(width, words, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        _, t = idx.size()
        assert t <= self.block_size, f"Cannot forward sequence of length {t}, block size is only {self.block_size}"
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for i, block in enumerate(self.transformer.h):
            x = block(x, manual=bool(i % 2))
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return self.lm_head(x[:, [-1], :]), None


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * x.to(dtype)


class RotaryDecoder(nn.Module):
    """A Llama-like layer: rotary embedding, grouped keys, gated MLP, cache of keys and values as a list of tuples."""

    def __init__(self, width=16, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q, self.k = nn.Linear(width, width, bias=False), nn.Linear(width, self.size * groups, bias=False)
        self.v, self.o = nn.Linear(width, self.size * groups, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 32, bias=False), nn.Linear(width, 32, bias=False)
        self.down = nn.Linear(32, width, bias=False)
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        frequencies = 1.0 / (10000.0 ** (torch.arange(0, self.size, 2).float() / self.size))
        self.register_buffer("inv_freq", frequencies, persistent=False)

    @torch.no_grad()
    def rotary(self, positions):
        angles = positions[:, None].float() * self.inv_freq[None]
        both = torch.cat((angles, angles), dim=-1)
        return both.cos(), both.sin()

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    def forward(self, x, past=None):
        b, t, _ = x.shape
        start = 0 if past is None else past[0].shape[2]
        cos, sin = self.rotary(torch.arange(start, start + t, device=x.device))
        h = self.norm1(x)
        q = self.rotate(self.q(h).view(b, t, self.heads, -1).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(h).view(b, t, self.groups, -1).transpose(1, 2), cos, sin)
        v = self.v(h).view(b, t, self.groups, -1).transpose(1, 2)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        present = (k, v)
        k, v = (u.repeat_interleave(self.heads // self.groups, dim=1) for u in present)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
        return x + self.down(F.silu(self.gate(h := self.norm2(x))) * self.up(h)), present


class MixtureOfExperts(nn.Module):
    """Dense routing: every expert runs, weights of the others are zero, so there is one graph."""

    def __init__(self, width=8, experts=4, top=2):
        super().__init__()
        self.router, self.top = nn.Linear(width, experts), top
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, width)) for _ in range(experts)]
        )

    def forward(self, x):
        scores = self.router(x).softmax(-1)
        values, chosen = torch.topk(scores, self.top, dim=-1)
        weights = torch.zeros_like(scores).scatter(-1, chosen, values / values.sum(-1, keepdim=True))
        return sum(weights[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts)), chosen
