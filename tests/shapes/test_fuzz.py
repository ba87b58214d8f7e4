"""Random programs over random shapes, 0 and 1 among them: captured with symbols, they do what eager mode does."""

import random

import pytest
import torch

import framegraft

SIZES = (0, 1, 2, 3, 4, 5, 7, 8)

# Statements over the tensors x (a, b, c), y (a, b) and z (b,), the ints n and k, and what earlier statements made.
STATEMENTS = """
x = x + y.unsqueeze(-1)
x = x * z.view(1, -1, 1)
x = x.transpose(0, 1).contiguous().transpose(0, 1)
x = x.permute(2, 0, 1).permute(1, 2, 0)
x = x.relu() - x.sum(0, keepdim=True)
x = torch.cat([x, x], 0)[: x.shape[0]]
x = x[:, : x.size(1) // 2 + 1]; y = y[:, : y.size(1) // 2 + 1]; z = z[: z.size(0) // 2 + 1]
x = x.reshape(x.shape[0] * x.shape[1], -1).reshape(x.shape)
x = x.flatten(1).view(x.size(0), x.size(1), x.size(2))
x = torch.nn.functional.pad(x, (1, 0))
x = x[..., 1:] if x.shape[-1] > 1 else x
x = x.masked_fill(x > 1, float(n))
x = torch.where(x > k, x, x * 0.5)
x = x.softmax(-1)
x = x @ x.transpose(1, 2) @ x
x = x + torch.arange(x.size(1)).view(-1, 1)
x = x.expand(2, *x.shape).mean(0)
x = x - torch.zeros(x.shape[1], x.shape[2])
x = torch.stack([x, x * 2]).sum(0)
x = x.clone().add_(y.sum()).mul_(0.5)
x = x.roll(1, 0).flip(1)
x = x / max(x.shape[0], 1)
x = x.narrow(0, 0, min(x.size(0), 2)) if x.size(0) >= 2 else x; y = y.narrow(0, 0, min(y.size(0), 2)) if y.size(0) >= 2 else y
x = x.cumsum(1).to(torch.float32)
y = y.t().contiguous().t()
y = y.repeat(1, 2)[:, : y.shape[1]]
y = y[torch.arange(y.shape[0])]
y = y + torch.eye(y.size(0))[:, :1]
y = y.clamp(min=-n, max=n + 1)
y, z = y * 2, z + y.shape[0]
z = z + torch.full((z.numel(),), n)
z = z.unfold(0, 1, 1).sum(-1)
z = torch.outer(z, z).diagonal()
z = z.index_select(0, torch.arange(z.shape[0] - 1, -1, -1))
n = n + x.shape[0] * 2 - y.numel() // (k + 1)
n = -n % 7 if n < 0 else n // 2
n = abs(n - 3) + min(n, k, 5) + max(x.dim(), k)
k = (k + len(x)) % 4
k = int(k / 2 + 0.5)
t.append(tuple(x.shape)); t.append(n)
t.append(x.shape[1:] + (n,)); t.append(x.stride())
t.append(f"{n}:{list(y.shape)}")
t.append(x.numel() == y.numel() * x.shape[-1])
if x.shape[0] == y.shape[0]: t.append("same")
if x.size(0) > 3 and n != 2: x = x * 2
for i in range(min(k, 3)): x = x + i
for s in x.shape: n = n + s
while k > 2: k -= 1
""".strip().splitlines()


def program(rng):
    lines = ["def f(x, y, z, n, k):", "    t = []"]
    for _ in range(rng.randint(2, 7)):
        lines.append(f"    {rng.choice(STATEMENTS)}")
    lines.append("    return x, y, z, n, k, t")
    return "\n".join(lines)


def made(source):
    space = {"torch": torch}
    exec(compile(source, "<fuzz>", "exec"), space)
    return space["f"]


def arguments(rng, sizes):
    a, b, c = sizes
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    x, y, z = (torch.randn(s, generator=generator) for s in ((a, b, c), (a, b), (b,)))
    kind = rng.randrange(4)
    if kind == 1:
        x = x.transpose(0, 2).contiguous().transpose(0, 2)
    elif kind == 2:
        x = torch.randn(a, b * 2, c, generator=generator)[:, ::2]
    return [x, y, z, rng.randrange(0, 9), rng.randrange(0, 4)]


def outcome(fn, args):
    args = [a.clone(memory_format=torch.preserve_format) if isinstance(a, torch.Tensor) else a for a in args]
    try:
        return [described(v) for v in fn(*args)], [described(a) for a in args]
    except Exception as error:
        return type(error), str(error)


def described(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride() if value.numel() > 1 else None, value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value), [described(v) for v in value]
    return type(value), value


def check(seed, backend="eager", calls=7, compare=None):
    rng = random.Random(seed)
    source = program(rng)
    eager, captured = made(source), made(source)
    compiled = framegraft.compile(captured, backend=backend, dynamic=rng.choice([None, None, True]))
    base = [rng.choice(SIZES) for _ in range(3)]
    for _ in range(calls):
        sizes = [rng.choice(SIZES) if rng.random() < 0.5 else n for n in base]
        args = arguments(rng, sizes)
        expected, got = outcome(eager, args), outcome(compiled, args)
        assert got == expected if compare is None else compare(got, expected), f"seed {seed}, sizes {sizes}:\n{source}\n{expected}\n{got}"


@pytest.mark.parametrize("seed", range(60))
def test_fuzz(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1600))
def test_long_fuzz(seed):
    check(seed)


def close(got, expected):
    """As eager mode, but for the last bits of floats and for strides, in which compilers are free."""
    if isinstance(expected, (list, tuple)) and type(got) is type(expected) and len(got) == len(expected):
        if len(expected) == 4 and isinstance(expected[0], torch.dtype):
            return got[:2] == expected[:2] and torch.allclose(torch.tensor(got[3]), torch.tensor(expected[3]), 1e-4, 1e-5, equal_nan=True)
        return all(map(close, got, expected))
    return got == expected


@pytest.mark.parametrize("seed", range(100, 112))
def test_fuzz_behind_autograd(seed):
    check(seed, "aot_eager", 5, close)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 215))
def test_fuzz_behind_inductor(seed):
    check(seed, "inductor", 4, close)
