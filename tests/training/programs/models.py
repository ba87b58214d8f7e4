"""Models out of the ordinary."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

from .common import grads, mlp, params, program


@program
def packed_rnn(wrap):
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(10, 4, padding_idx=0)
            s.r = nn.LSTM(4, 6, batch_first=True, bidirectional=True)
            s.o = nn.Linear(12, 2)

        def forward(s, x, lens):
            p = nn.utils.rnn.pack_padded_sequence(s.e(x), lens, batch_first=True, enforce_sorted=False)
            out, (h, c) = s.r(p)
            out, l = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
            return s.o(torch.cat([h[0], h[1]], -1)), out.sum(), l

    m = M()
    opt = optim.SGD(m.parameters(), 0.1)
    c = wrap(m)
    res = []
    for i in range(5):
        seqs = [torch.randint(1, 10, (n,)) for n in ([3, 5, 2, 4] if i % 2 else [2, 2, 6, 1])]
        x = nn.utils.rnn.pad_sequence(seqs, batch_first=True)
        lens = torch.tensor([len(s) for s in seqs])
        y, t, l = c(x, lens)
        loss = F.cross_entropy(y, torch.randint(0, 2, (4,))) + t * 0.01
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        res.append((loss.item(), l))
    return res, params(m), grads(m)


@program
def lora(wrap):
    class LoRA(nn.Module):
        def __init__(s, base, r=2, alpha=4):
            super().__init__()
            s.base = base
            base.weight.requires_grad_(False)
            base.bias.requires_grad_(False)
            s.A = nn.Parameter(torch.randn(r, base.in_features) * 0.1)
            s.B = nn.Parameter(torch.zeros(base.out_features, r))
            s.scale = alpha / r
            s.merged = False

        def forward(s, x):
            y = s.base(x)
            return y if s.merged else y + (x @ s.A.T @ s.B.T) * s.scale

        @torch.no_grad()
        def merge(s):
            s.base.weight += s.scale * (s.B @ s.A)
            s.merged = True

    m = mlp()
    m[0] = LoRA(m[0])
    m[2] = LoRA(m[2])
    c = wrap(m)
    opt = optim.AdamW([p for p in m.parameters() if p.requires_grad], 0.05)
    res = []
    x = torch.randn(5, 4)
    for i in range(5):
        if i == 4:
            m[0].merge()
        l = F.cross_entropy(c(x), torch.arange(5) % 3)
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m), grads(m)


@program
def frozen_then_unfrozen(wrap):
    m = mlp()
    m[0].requires_grad_(False)
    c = wrap(m)
    opt = optim.SGD(m.parameters(), 0.1)
    res = []
    for i in range(6):
        if i == 2:
            m[0].requires_grad_(True)
        if i == 4:
            m.eval()
        l = c(torch.randn(5, 4)).square().mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m), grads(m)


@program
def weight_tying_lm(wrap):
    class LM(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(12, 8)
            s.l = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, norm_first=True)
            s.h = nn.Linear(8, 12, bias=False)
            s.h.weight = s.e.weight

        def forward(s, x, y=None):
            mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
            z = s.h(s.l(s.e(x), src_mask=mask, is_causal=True))
            return z if y is None else F.cross_entropy(z.flatten(0, 1), y.flatten(), ignore_index=-100)

    m = LM()
    opt = optim.AdamW(m.parameters(), 1e-2)
    c = wrap(m)
    res = []
    for i in range(5):
        x = torch.randint(0, 12, (2, 5 + i))
        y = x.roll(-1, 1).clone()
        y[:, -1] = -100
        l = c(x, y)
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m), grads(m)


@program
def moe(wrap):
    class MoE(nn.Module):
        def __init__(s, n=4, k=2):
            super().__init__()
            s.g = nn.Linear(4, n)
            s.x = nn.ModuleList([mlp(4, 6, 4) for _ in range(n)])
            s.k = k
            s.aux = None

        def forward(s, x):
            logits = s.g(x)
            w, idx = logits.softmax(-1).topk(s.k, -1)
            w = w / w.sum(-1, keepdim=True)
            out = torch.zeros_like(x)
            for i, e in enumerate(s.x):
                tok, slot = torch.where(idx == i)
                if tok.numel() == 0:
                    continue
                out.index_add_(0, tok, e(x[tok]) * w[tok, slot, None])
            s.aux = (logits.softmax(-1).mean(0) ** 2).sum()
            return out

    m = MoE()
    opt = optim.Adam(m.parameters(), 1e-2)
    c = wrap(m)
    res = []
    for i in range(5):
        x = torch.randn(8, 4)
        y = c(x)
        l = (y - x).square().mean() + 0.1 * m.aux
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append((l.detach(), m.aux.detach()))
    return res, params(m), grads(m)


@program
def moe_dense(wrap):
    class MoE(nn.Module):
        def __init__(s, n=3):
            super().__init__()
            s.g = nn.Linear(4, n)
            s.w = nn.Parameter(torch.randn(n, 4, 4) * 0.2)

        def forward(s, x):
            p = s.g(x).softmax(-1)
            v, i = p.max(-1)
            oh = F.one_hot(i, p.size(-1)).to(x.dtype)
            y = torch.einsum("bn,bi,nio->bo", oh, x, s.w) * v[:, None]
            return y, {"load": oh.mean(0), "imp": p.mean(0)}

    m = MoE()
    opt = optim.Adam(m.parameters(), 1e-2)
    c = wrap(m)
    res = []
    for i in range(5):
        x = torch.randn(6, 4)
        y, st = c(x)
        l = (y - x).square().mean() + (st["load"] * st["imp"]).sum()
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append((l.detach(), st["load"]))
    return res, params(m), grads(m)


@program
def custom_function(wrap):
    class STE(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, levels):
            ctx.levels = levels
            ctx.save_for_backward(x)
            return (x * levels).round() / levels

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() <= 1), None

    class Rev(torch.autograd.Function):
        @staticmethod
        def forward(x, a):
            return x.view_as(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.a = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return -ctx.a * g, None

    f = mlp(4, 8, 8)
    a, b = nn.Linear(8, 3), nn.Linear(8, 2)
    ps = [*f.parameters(), *a.parameters(), *b.parameters()]
    opt = optim.SGD(ps, 0.1)

    @wrap
    def loss(x, y, d, lam):
        h = STE.apply(torch.tanh(f(x)), 8)
        return F.cross_entropy(a(h), y) + F.cross_entropy(b(Rev.apply(h, lam)), d)

    res = []
    for i in range(5):
        l = loss(torch.randn(6, 4), torch.randint(0, 3, (6,)), torch.randint(0, 2, (6,)), 0.1 * i)
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, [p.detach().clone() for p in ps]


@program
def seq2seq_teacher(wrap):
    class S2S(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(8, 6)
            s.enc = nn.GRU(6, 6, batch_first=True)
            s.dec = nn.GRUCell(6, 6)
            s.o = nn.Linear(6, 8)

        def forward(s, x, y, force):
            _, h = s.enc(s.e(x))
            h = h[0]
            tok = torch.zeros(len(x), dtype=torch.long)
            outs = []
            for t in range(y.size(1)):
                h = s.dec(s.e(tok), h)
                o = s.o(h)
                outs.append(o)
                tok = y[:, t] if force[t] else o.argmax(-1)
            return torch.stack(outs, 1)

    random.seed(0)
    m = S2S()
    opt = optim.Adam(m.parameters(), 1e-2)
    c = wrap(m)
    res = []
    for _ in range(4):
        x, y = torch.randint(0, 8, (3, 5)), torch.randint(0, 8, (3, 4))
        o = c(x, y, [random.random() < 0.5 for _ in range(4)])
        l = F.cross_entropy(o.flatten(0, 1), y.flatten())
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m)


@program
def spectral_and_weight_norm(wrap):
    m = nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Linear(4, 8)), nn.ReLU(), nn.utils.parametrizations.weight_norm(nn.Linear(8, 3))
    )
    opt = optim.SGD(m.parameters(), 0.1)
    c = wrap(m)
    res = []
    for i in range(5):
        if i == 3:
            m.eval()
        l = c(torch.randn(4, 4)).square().mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m)


@program
def pruning(wrap):
    from torch.nn.utils import prune

    m = mlp()
    prune.l1_unstructured(m[0], "weight", 0.5)
    opt = optim.SGD(m.parameters(), 0.1)
    c = wrap(m)
    res = []
    for i in range(5):
        if i == 3:
            prune.random_unstructured(m[2], "weight", 0.3)
        l = c(torch.randn(4, 4)).square().mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m)


@program
def batchnorm_momentum_none(wrap):
    m = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4, momentum=None), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2))
    opt = optim.SGD(m.parameters(), 0.1)
    c = wrap(m)
    res = []
    for i in range(6):
        l = c(torch.randn(3, 2, 8)).square().mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    m.eval()
    res.append(c(torch.randn(3, 2, 8)))
    return res, params(m)


@program
def multi_task_uncertainty(wrap):
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.b = mlp(4, 8, 8)
            s.heads = nn.ModuleDict({"a": nn.Linear(8, 3), "b": nn.Linear(8, 1)})
            s.lv = nn.ParameterDict({"a": nn.Parameter(torch.zeros(())), "b": nn.Parameter(torch.zeros(()))})

        def forward(s, x, tg):
            h = s.b(x)
            ls = {"a": F.cross_entropy(s.heads["a"](h), tg["a"]), "b": F.mse_loss(s.heads["b"](h).squeeze(-1), tg["b"])}
            return sum(torch.exp(-s.lv[k]) * v + s.lv[k] for k, v in ls.items()), {k: v.detach() for k, v in ls.items()}

    m = M()
    opt = optim.Adam(m.parameters(), 1e-2)
    c = wrap(m)
    res = []
    for _ in range(4):
        l, d = c(torch.randn(5, 4), {"a": torch.randint(0, 3, (5,)), "b": torch.randn(5)})
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append((l.detach(), d))
    return res, params(m)


@program
def sparse_embedding(wrap):
    e = nn.Embedding(10, 4, sparse=True)
    h = nn.Linear(4, 2)
    opt = optim.SparseAdam(e.parameters(), 1e-2)
    o2 = optim.SGD(h.parameters(), 0.1)
    f = wrap(lambda i: h(e(i)).square().mean())
    res = []
    for _ in range(4):
        l = f(torch.randint(0, 10, (5,)))
        opt.zero_grad()
        o2.zero_grad()
        l.backward()
        opt.step()
        o2.step()
        res.append(l.detach())
    return res, e.weight.detach().clone()


@program
def ctc(wrap):
    m = nn.LSTM(3, 5)
    h = nn.Linear(5, 6)
    ps = [*m.parameters(), *h.parameters()]
    opt = optim.SGD(ps, 0.1)
    crit = nn.CTCLoss(zero_infinity=True)

    @wrap
    def loss(x, t, il, tl):
        o, _ = m(x)
        return crit(h(o).log_softmax(-1), t, il, tl)

    res = []
    for _ in range(4):
        l = loss(torch.randn(8, 2, 3), torch.randint(1, 6, (2, 3)), torch.tensor([8, 7]), torch.tensor([3, 2]))
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, [p.detach().clone() for p in ps]


@program
def tbptt(wrap):
    cell = nn.LSTMCell(3, 4)
    h = nn.Linear(4, 1)
    ps = [*cell.parameters(), *h.parameters()]
    opt = optim.SGD(ps, 0.1)

    @wrap
    def chunk(x, state):
        hs = []
        hx, cx = state
        for t in range(x.size(0)):
            hx, cx = cell(x[t], (hx, cx))
            hs.append(h(hx))
        return torch.cat(hs).square().mean(), (hx.detach(), cx.detach())

    st = (torch.zeros(2, 4), torch.zeros(2, 4))
    res = []
    for _ in range(5):
        l, st = chunk(torch.randn(3, 2, 3), st)
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, st, [p.detach().clone() for p in ps]


@program
def parameter_list_inplace_state(wrap):
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.ps = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(3)])
            s.calls = 0
            s.last = None
            s.cache = {}

        def forward(s, x):
            s.calls += 1
            for i, p in enumerate(s.ps):
                x = x * p + i
            s.last = x.detach()
            s.cache[s.calls % 2] = x.sum().detach()
            return x

    m = M()
    opt = optim.SGD(m.parameters(), 0.01)
    c = wrap(m)
    res = []
    for _ in range(5):
        l = c(torch.randn(2, 3)).square().mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append((l.detach(), m.last.clone(), dict(m.cache)))
    return res, m.calls


@program
def stochastic_depth(wrap):
    class Block(nn.Module):
        def __init__(s, p):
            super().__init__()
            s.f = nn.Linear(4, 4)
            s.p = p

        def forward(s, x):
            if not s.training or s.p == 0:
                return x + s.f(x)
            keep = 1 - s.p
            mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
            return x + s.f(x) * mask.div_(keep)

    class LayerDrop(nn.Module):
        def __init__(s):
            super().__init__()
            s.b = nn.ModuleList([Block(i * 0.1) for i in range(4)])

        def forward(s, x):
            for b in s.b:
                if s.training and torch.rand([]) < 0.3:
                    continue
                x = b(x)
            return x

    m = LayerDrop()
    opt = optim.SGD(m.parameters(), 0.05)
    c = wrap(m)
    res = []
    for _ in range(6):
        l = c(torch.randn(4, 4)).square().mean()
        opt.zero_grad()
        if l.requires_grad:
            l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m)
