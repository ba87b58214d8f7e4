"""What surrounds the model: optimizers, schedules, hooks, averages, data."""

import copy
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

from .common import grads, mlp, params, program


@program
def contrastive(wrap):
    enc, proj = mlp(4, 8, 8), nn.Linear(8, 4)
    opt = optim.AdamW([*enc.parameters(), *proj.parameters()], 1e-2)

    @wrap
    def info_nce(a, b, t=0.1):
        za, zb = F.normalize(proj(enc(a)), dim=-1), F.normalize(proj(enc(b)), dim=-1)
        z = torch.cat([za, zb])
        n = z.shape[0]
        sim = z @ z.T / t
        sim = sim.masked_fill(torch.eye(n, dtype=torch.bool), float("-inf"))
        target = torch.arange(n).roll(n // 2)
        return F.cross_entropy(sim, target), (sim.argmax(-1) == target).float().mean().item()

    out = []
    for i in range(5):
        a = torch.randn(4 + i % 2, 4)
        l, acc = info_nce(a, a + 0.1 * torch.randn_like(a))
        opt.zero_grad()
        l.backward()
        opt.step()
        out.append((l.detach(), acc))
    return out, params(enc), grads(proj)


@program
def ema_weights(wrap):
    m = mlp()
    ema = copy.deepcopy(m)
    opt = optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True)
    for p in ema.parameters():
        p.requires_grad_(False)

    @torch.no_grad()
    def update(decay=0.9):
        for a, b in zip(ema.parameters(), m.parameters()):
            a.mul_(decay).add_(b, alpha=1 - decay)
        for a, b in zip(ema.buffers(), m.buffers()):
            a.copy_(b)

    @wrap
    def step(x, y):
        l = F.cross_entropy(m(x), y)
        opt.zero_grad(set_to_none=True)
        l.backward()
        opt.step()
        update()
        return l.detach(), ema(x)

    return [step(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(5)], params(m), params(ema)


@program
def functional_optimizer(wrap):
    m = mlp()
    ps = dict(m.named_parameters())
    ps = {k: v.detach().clone() for k, v in ps.items()}
    mom = {k: torch.zeros_like(v) for k, v in ps.items()}

    def loss(p, x, y):
        return F.cross_entropy(functional_call(m, p, (x,)), y)

    @wrap
    def step(p, mo, x, y, lr):
        g = grad(loss)(p, x, y)
        mo = {k: 0.9 * mo[k] + g[k] for k in p}
        return {k: p[k] - lr * mo[k] for k in p}, mo, loss(p, x, y)

    res = []
    for i in range(5):
        ps, mom, l = step(ps, mom, torch.randn(5, 4), torch.randint(0, 3, (5,)), 0.1 / (i + 1))
        res.append(l)
    return res, ps


@program
def per_sample_grads(wrap):
    m = mlp()
    ps = {k: v.detach() for k, v in m.named_parameters()}

    def loss(p, x, y):
        return F.cross_entropy(functional_call(m, p, (x[None],)), y[None])

    @wrap
    def f(p, x, y):
        g = vmap(grad(loss), in_dims=(None, 0, 0))(p, x, y)
        n = torch.stack([v.flatten(1).norm(dim=1) for v in g.values()]).norm(dim=0)
        c = (1 / n.clamp(min=1)).clamp(max=1.0)
        return {k: (v * c.view(-1, *[1] * (v.dim() - 1))).mean(0) for k, v in g.items()}, n

    return [f(ps, torch.randn(4 + i % 3, 4), torch.randint(0, 3, (4 + i % 3,))) for i in range(5)]


@program
def distillation(wrap):
    t, s = mlp(4, 16, 3).eval(), mlp()
    opt = optim.SGD(s.parameters(), 0.1)

    @wrap
    def step(x, y, T=2.0, alpha=0.5):
        with torch.no_grad():
            tl = t(x)
        sl = s(x)
        kd = F.kl_div(F.log_softmax(sl / T, -1), F.softmax(tl / T, -1), reduction="batchmean") * T * T
        l = alpha * kd + (1 - alpha) * F.cross_entropy(sl, y)
        opt.zero_grad()
        l.backward()
        opt.step()
        return {"loss": l.item(), "kd": kd.detach()}

    return [step(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(5)], params(s), grads(t)


@program
def lbfgs(wrap):
    m = mlp(4, 4, 1)
    opt = optim.LBFGS(m.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    res = []
    f = wrap(lambda x: m(x))

    def closure():
        opt.zero_grad()
        l = F.mse_loss(f(x), y)
        l.backward()
        return l

    for _ in range(4):
        res.append(opt.step(closure).detach())
    return res, params(m)


@program
def swa(wrap):
    m = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    c = wrap(m)
    sw = optim.swa_utils.AveragedModel(m)
    opt = optim.SGD(m.parameters(), 0.1)
    sch = optim.swa_utils.SWALR(opt, 0.05, anneal_epochs=2)
    res = []
    loader = DataLoader(TensorDataset(torch.randn(12, 4)), batch_size=4)
    for e in range(3):
        for (x,) in loader:
            l = c(x).square().mean()
            opt.zero_grad()
            l.backward()
            opt.step()
            res.append(l.detach())
        sw.update_parameters(m)
        sch.step()
    optim.swa_utils.update_bn(loader, sw)
    return res, params(sw), wrap(sw)(torch.randn(3, 4))


@program
def dataloader_inside(wrap):
    m = mlp()
    opt = optim.Adam(m.parameters(), 1e-2)
    ds = TensorDataset(torch.randn(14, 4), torch.randint(0, 3, (14,)))
    loader = DataLoader(ds, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3))

    @wrap
    def epoch():
        total, n = 0.0, 0
        for x, y in loader:
            opt.zero_grad()
            l = F.cross_entropy(m(x), y)
            l.backward()
            opt.step()
            total += l.item() * len(x)
            n += len(x)
        return total / n

    return [epoch() for _ in range(3)], params(m)


@program
def train_loop_with_class(wrap):
    class Trainer:
        def __init__(s):
            s.m = mlp()
            s.opt = optim.AdamW(s.m.parameters(), 1e-2)
            s.sched = optim.lr_scheduler.OneCycleLR(s.opt, 0.1, total_steps=10)
            s.step_no = 0
            s.history = []
            s.best = float("inf")

        def train_step(s, b):
            x, y = b
            s.m.train()
            out = s.m(x)
            l = F.cross_entropy(out, y)
            s.opt.zero_grad(set_to_none=True)
            l.backward()
            n = nn.utils.clip_grad_norm_(s.m.parameters(), 1.0)
            s.opt.step()
            s.sched.step()
            s.step_no += 1
            v = l.item()
            s.history.append(v)
            if v < s.best:
                s.best = v
            return {"loss": v, "norm": n, "lr": s.sched.get_last_lr()[0]}

    t = Trainer()
    st = wrap(t.train_step)
    return [st((torch.randn(5, 4), torch.randint(0, 3, (5,)))) for _ in range(6)], params(t.m), t.history, t.best, t.step_no


@program
def byol(wrap):
    on, pr = mlp(4, 8, 4), mlp(4, 4, 4)
    ta = copy.deepcopy(on)
    for p in ta.parameters():
        p.requires_grad = False
    opt = optim.SGD([*on.parameters(), *pr.parameters()], 0.1)

    @wrap
    def step(a, b, tau):
        def half(u, v):
            p = F.normalize(pr(on(u)), dim=-1)
            with torch.no_grad():
                z = F.normalize(ta(v), dim=-1)
            return 2 - 2 * (p * z).sum(-1)

        l = (half(a, b) + half(b, a)).mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        with torch.no_grad():
            for o, t in zip(on.parameters(), ta.parameters()):
                t.data = t.data * tau + o.data * (1 - tau)
        return l.detach()

    return (
        [step(torch.randn(5, 4), torch.randn(5, 4), 1 - 0.1 * (math.cos(math.pi * i / 5) + 1) / 2) for i in range(5)],
        params(on),
        params(ta),
    )


@program
def grad_scaler_accum(wrap):
    m = mlp()
    opt = optim.SGD(m.parameters(), 0.1)
    sc = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    @wrap
    def micro(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            l = F.cross_entropy(m(x), y) / 2
        sc.scale(l).backward()
        return l.detach()

    res = []
    for i in range(5):
        for _ in range(2):
            res.append(micro(torch.randn(5, 4), torch.randint(0, 3, (5,))))
        sc.unscale_(opt)
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        sc.step(opt)
        sc.update()
        opt.zero_grad()
        if i == 2:
            res.append(sc.get_scale())
    return res, params(m), sc.get_scale()


@program
def post_accumulate_optimizer(wrap):
    m = mlp()
    opts = {p: optim.SGD([p], 0.1, momentum=0.9) for p in m.parameters()}

    def hook(p):
        opts[p].step()
        opts[p].zero_grad()

    for p in m.parameters():
        p.register_post_accumulate_grad_hook(hook)

    @wrap
    def step(x):
        l = m(x).square().mean()
        l.backward()
        return l.detach()

    return [step(torch.randn(4, 4)) for _ in range(5)], params(m), grads(m)


@program
def tensor_hooks(wrap):
    m = mlp()
    seen = []

    @wrap
    def loss(x):
        h = m[0](x)
        h.register_hook(lambda g: g.clamp(-0.1, 0.1))
        h2 = F.relu(h)
        return m[2](h2).square().mean()

    for p in m.parameters():
        p.register_hook(lambda g: seen.append(g.norm().item()) or g * 0.5)
    res = []
    for _ in range(4):
        m.zero_grad()
        l = loss(torch.randn(4, 4))
        l.backward()
        res.append((l.detach(), grads(m)))
    return res, sorted(seen)


@program
def retain_grad(wrap):
    m = mlp()

    @wrap
    def f(x):
        h = m[0](x)
        h.retain_grad()
        return m[2](h.relu()).sum(), h

    res = []
    for _ in range(3):
        l, h = f(torch.randn(4, 4))
        l.backward()
        res.append((l.detach(), None if h.grad is None else h.grad.clone()))
    return res


@program
def label_smoothing_mixup(wrap):
    m = mlp()
    opt = optim.SGD(m.parameters(), 0.1)
    random.seed(1)

    @wrap
    def step(x, y, lam):
        perm = torch.randperm(x.size(0))
        o = m(lam * x + (1 - lam) * x[perm])
        l = lam * F.cross_entropy(o, y, label_smoothing=0.1) + (1 - lam) * F.cross_entropy(o, y[perm], label_smoothing=0.1)
        opt.zero_grad()
        l.backward()
        opt.step()
        return l.detach()

    return [step(torch.randn(6, 4), torch.randint(0, 3, (6,)), random.betavariate(1, 1)) for _ in range(6)], params(m)


@program
def sam(wrap):
    m = mlp()
    base = optim.SGD(m.parameters(), 0.1)

    class SAM:
        def __init__(s, ps, rho=0.05):
            s.ps = list(ps)
            s.rho = rho
            s.state = {}

        @torch.no_grad()
        def first(s):
            n = torch.norm(torch.stack([p.grad.norm(2) for p in s.ps if p.grad is not None]), 2)
            for p in s.ps:
                if p.grad is None:
                    continue
                s.state[p] = p.data.clone()
                p.add_(p.grad * (s.rho / (n + 1e-12)))
            base.zero_grad()

        @torch.no_grad()
        def second(s):
            for p in s.ps:
                p.data = s.state[p]
            base.step()
            base.zero_grad()

    s = SAM(m.parameters())

    @wrap
    def step(x, y):
        l = F.cross_entropy(m(x), y)
        l.backward()
        s.first()
        F.cross_entropy(m(x), y).backward()
        s.second()
        return l.detach()

    return [step(torch.randn(6, 4), torch.randint(0, 3, (6,))) for _ in range(5)], params(m)


@program
def early_stop_nan_check(wrap):
    m = mlp()
    opt = optim.SGD(m.parameters(), 0.1)

    @wrap
    def step(x):
        l = m(x).square().mean()
        if torch.isnan(l) or torch.isinf(l):
            return None
        opt.zero_grad()
        l.backward()
        for p in m.parameters():
            if p.grad is not None and not torch.isfinite(p.grad).all():
                return "skip"
        opt.step()
        return l.detach()

    return [step(torch.randn(4, 4) * (float("nan") if i == 2 else 1)) for i in range(5)], params(m)


@program
def lr_lambda_and_groups(wrap):
    m = mlp()
    opt = optim.SGD([{"params": m[0].parameters(), "lr": 0.1}, {"params": m[2].parameters()}], lr=0.01, momentum=0.9)
    sch = optim.lr_scheduler.SequentialLR(
        opt, [optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2), optim.lr_scheduler.ExponentialLR(opt, 0.9)], [2]
    )

    @wrap
    def step(x):
        l = m(x).square().mean()
        l.backward()
        opt.step()
        opt.zero_grad()
        return l.detach()

    res = []
    for _ in range(6):
        res.append((step(torch.randn(4, 4)), [g["lr"] for g in opt.param_groups]))
        sch.step()
    return res, params(m)


@program
def reduce_on_plateau(wrap):
    m = mlp()
    opt = optim.Adam(m.parameters(), 0.1)
    sch = optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, factor=0.5)

    @wrap
    def step(x):
        opt.zero_grad()
        l = m(x).square().mean()
        l.backward()
        opt.step()
        return l.detach()

    res = []
    for _ in range(8):
        l = step(torch.randn(4, 4))
        sch.step(l)
        res.append((l, opt.param_groups[0]["lr"]))
    return res, params(m)
