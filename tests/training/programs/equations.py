"""Generative models, reinforcement learning, and programs that differentiate gradients."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.func import functional_call

from .common import grads, mlp, params, program


@program
def wgan_gp(wrap):
    G, D = mlp(2, 8, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    od = optim.RMSprop(D.parameters(), 1e-2)

    def penalty(real, fake):
        eps = torch.rand(real.size(0), 1)
        x = (eps * real + (1 - eps) * fake).requires_grad_(True)
        out = D(x)
        g = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True, retain_graph=True)[0]
        return ((g.norm(2, dim=1) - 1) ** 2).mean()

    @wrap
    def loss(real, z):
        fake = G(z).detach()
        return D(fake).mean() - D(real).mean() + 10 * penalty(real, fake)

    out = []
    for _ in range(5):
        od.zero_grad()
        l = loss(torch.randn(6, 4), torch.randn(6, 2))
        l.backward()
        od.step()
        out.append(l.detach())
    return out, params(D), grads(D)


@program
def maml(wrap):
    m = mlp(2, 8, 1)
    meta = optim.Adam(m.parameters(), 1e-2)

    @wrap
    def inner(p, x, y):
        l = F.mse_loss(functional_call(m, p, (x,)), y)
        g = torch.autograd.grad(l, list(p.values()), create_graph=True)
        return {k: v - 0.1 * gg for (k, v), gg in zip(p.items(), g)}

    res = []
    for i in range(4):
        p = dict(m.named_parameters())
        p = inner(p, torch.randn(4, 2), torch.randn(4, 1))
        l = F.mse_loss(functional_call(m, p, (torch.randn(4, 2),)), torch.randn(4, 1))
        meta.zero_grad()
        l.backward()
        meta.step()
        res.append(l.detach())
    return res, params(m)


@program
def reinforce(wrap):
    pi = mlp(3, 8, 2)
    opt = optim.Adam(pi.parameters(), 1e-2)

    @wrap
    def loss(obs, act, ret):
        d = torch.distributions.Categorical(logits=pi(obs))
        return -(d.log_prob(act) * ret).mean() - 0.01 * d.entropy().mean()

    @wrap
    def act(obs):
        with torch.no_grad():
            return torch.distributions.Categorical(logits=pi(obs)).sample()

    res = []
    for i in range(5):
        o = torch.randn(6, 3)
        a = act(o)
        l = loss(o, a, torch.randn(6))
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append((a, l.detach()))
    return res, params(pi)


@program
def ppo(wrap):
    class AC(nn.Module):
        def __init__(s):
            super().__init__()
            s.b = nn.Sequential(nn.Linear(3, 8), nn.Tanh())
            s.pi = nn.Linear(8, 2)
            s.v = nn.Linear(8, 1)
            s.logstd = nn.Parameter(torch.zeros(2))

        def forward(s, x):
            h = s.b(x)
            return torch.distributions.Normal(s.pi(h), s.logstd.exp()), s.v(h).squeeze(-1)

    m = AC()
    opt = optim.Adam(m.parameters(), 1e-2)

    @wrap
    def update(o, a, oldlp, adv, ret, clip=0.2):
        d, v = m(o)
        lp = d.log_prob(a).sum(-1)
        r = (lp - oldlp).exp()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        pl = -torch.min(r * adv, r.clamp(1 - clip, 1 + clip) * adv).mean()
        vl = F.mse_loss(v, ret)
        l = pl + 0.5 * vl - 0.01 * d.entropy().sum(-1).mean()
        opt.zero_grad()
        l.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.5)
        opt.step()
        return pl.detach(), vl.item(), ((r - 1).abs() > clip).float().mean().item()

    res = []
    for i in range(4):
        o = torch.randn(6, 3)
        with torch.no_grad():
            d, _ = m(o)
            a = d.sample()
            lp = d.log_prob(a).sum(-1)
        res.append(update(o, a, lp, torch.randn(6), torch.randn(6)))
    return res, params(m)


@program
def dqn_target(wrap):
    q, t = mlp(3, 8, 2), mlp(3, 8, 2)
    t.load_state_dict(q.state_dict())
    opt = optim.RMSprop(q.parameters(), 1e-2)

    @wrap
    def step(i, s, a, r, s2, done):
        with torch.no_grad():
            y = r + 0.9 * (1 - done) * t(s2).max(1).values
        l = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
        opt.zero_grad()
        l.backward()
        for p in q.parameters():
            p.grad.data.clamp_(-1, 1)
        opt.step()
        if i % 2 == 1:
            t.load_state_dict(q.state_dict())
        return l.detach()

    return (
        [step(i, torch.randn(5, 3), torch.randint(0, 2, (5,)), torch.randn(5), torch.randn(5, 3), torch.zeros(5)) for i in range(5)],
        params(q),
        params(t),
    )


@program
def vae(wrap):
    class VAE(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Linear(6, 8)
            s.mu = nn.Linear(8, 2)
            s.lv = nn.Linear(8, 2)
            s.d = mlp(2, 8, 6)

        def forward(s, x):
            h = F.relu(s.e(x))
            mu, lv = s.mu(h), s.lv(h)
            z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
            return s.d(z), mu, lv

    m = VAE()
    opt = optim.Adam(m.parameters(), 1e-2)

    @wrap
    def step(x, beta):
        o, mu, lv = m(x)
        rec = F.binary_cross_entropy_with_logits(o, x, reduction="sum")
        kl = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
        l = rec + beta * kl
        opt.zero_grad()
        l.backward()
        opt.step()
        return l.item(), kl.detach()

    return [step(torch.rand(4, 6), min(1.0, i / 3)) for i in range(5)], params(m)


@program
def vqvae(wrap):
    class VQ(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Linear(6, 4)
            s.cb = nn.Embedding(5, 4)
            s.d = nn.Linear(4, 6)
            s.register_buffer("use", torch.zeros(5))

        def forward(s, x):
            z = s.e(x)
            d = torch.cdist(z, s.cb.weight)
            i = d.argmin(1)
            q = s.cb(i)
            if s.training:
                s.use.index_add_(0, i, torch.ones(len(i)))
            l = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            q = z + (q - z).detach()
            return s.d(q), l, i

    m = VQ()
    opt = optim.Adam(m.parameters(), 1e-2)
    c = wrap(m)
    res = []
    for _ in range(5):
        x = torch.randn(6, 6)
        o, l, i = c(x)
        l = l + F.mse_loss(o, x)
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append((l.detach(), i))
    return res, params(m)


@program
def diffusion(wrap):
    T = 10
    betas = torch.linspace(1e-3, 0.1, T)
    ab = torch.cumprod(1 - betas, 0)

    class Net(nn.Module):
        def __init__(s):
            super().__init__()
            s.t = nn.Embedding(T, 8)
            s.i = nn.Linear(3, 8)
            s.o = nn.Linear(8, 3)

        def forward(s, x, t):
            return s.o(F.silu(s.i(x) + s.t(t)))

    m = Net()
    opt = optim.AdamW(m.parameters(), 1e-2)

    @wrap
    def step(x):
        t = torch.randint(0, T, (x.size(0),))
        n = torch.randn_like(x)
        a = ab[t][:, None]
        l = F.mse_loss(m(a.sqrt() * x + (1 - a).sqrt() * n, t), n)
        opt.zero_grad()
        l.backward()
        opt.step()
        return l.detach()

    @wrap
    @torch.no_grad()
    def sample(n):
        x = torch.randn(n, 3)
        for t in reversed(range(T)):
            e = m(x, torch.full((n,), t))
            x = (x - betas[t] / (1 - ab[t]).sqrt() * e) / (1 - betas[t]).sqrt()
            if t > 0:
                x = x + betas[t].sqrt() * torch.randn_like(x)
        return x

    return [step(torch.randn(4, 3)) for _ in range(5)], sample(3), sample(2), params(m)


@program
def pinn(wrap):
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = optim.Adam(net.parameters(), 1e-2)

    @wrap
    def residual(x, t):
        x.requires_grad_(True)
        t.requires_grad_(True)
        u = net(torch.stack([x, t], -1)).squeeze(-1)
        ut = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
        ux = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        uxx = torch.autograd.grad(ux.sum(), x, create_graph=True)[0]
        return (ut + u * ux - 0.01 * uxx).square().mean()

    res = []
    for _ in range(4):
        l = residual(torch.rand(6), torch.rand(6))
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(net)


@program
def neural_ode(wrap):
    f = mlp(2, 8, 2)
    opt = optim.Adam(f.parameters(), 1e-2)

    @wrap
    def odeint(y, n, h):
        ys = [y]
        for _ in range(n):
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            ys.append(y)
        return torch.stack(ys)

    res = []
    for i in range(4):
        o = odeint(torch.randn(3, 2), 3, 0.1 * (i + 1))
        l = o.square().mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(f)


@program
def gumbel_softmax(wrap):
    m = mlp()
    d = nn.Linear(3, 4)
    opt = optim.Adam([*m.parameters(), *d.parameters()], 1e-2)

    @wrap
    def f(x, tau):
        return F.mse_loss(d(F.gumbel_softmax(m(x), tau=tau, hard=True)), x)

    res = []
    for i in range(5):
        l = f(torch.randn(4, 4), max(0.5, 1.0 * math.exp(-0.1 * i)))
        opt.zero_grad()
        l.backward()
        opt.step()
        res.append(l.detach())
    return res, params(m)


@program
def hessian_vector(wrap):
    m = mlp(3, 4, 1)
    ps = list(m.parameters())

    @wrap
    def hvp(x, v):
        l = m(x).square().mean()
        g = torch.autograd.grad(l, ps, create_graph=True)
        dot = sum((a * b).sum() for a, b in zip(g, v))
        return torch.autograd.grad(dot, ps, allow_unused=True, materialize_grads=True)

    return [hvp(torch.randn(4, 3), [torch.randn_like(p) for p in ps]) for _ in range(3)]
