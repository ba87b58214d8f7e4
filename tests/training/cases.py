"""Training programs: each makes a model, an optimizer and a function of one step, which is what gets captured."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class MLP(nn.Module):
    def __init__(self, width=8, dropout=0.0):
        super().__init__()
        self.one, self.two, self.three = nn.Linear(4, width), nn.Linear(width, width), nn.Linear(width, 3)
        self.drop = nn.Dropout(dropout)

    def body(self, x):
        return self.drop(F.gelu(self.two(F.relu(self.one(x)))))

    def forward(self, x):
        return self.three(self.body(x))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3))
        self.norm = nn.GroupNorm(2, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.norm(self.conv(x.view(-1, 1, 8, 8))).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(self.embed(x)).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRUCell(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 6)
        for _ in range(3):
            h = self.rnn(x, h)
        return self.head(h)


class Breaking(MLP):
    """Breaks the graph in forward: at a print, at a branch on a value, in a loop."""

    def forward(self, x):
        h = self.body(x)
        print(end="")
        for i in range(2):
            if h.sum() > 1000:
                h = h + i
            h = h * 1.1
        return self.three(h)


class Checkpointed(MLP):
    def __init__(self, reentrant, **more):
        super().__init__(**more)
        self.reentrant = reentrant

    def forward(self, x):
        if self.reentrant:  # wants an input that requires grad
            x = x.clone().requires_grad_()
        return self.three(checkpoint(self.body, x, use_reentrant=self.reentrant))


class CheckpointedSequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)])
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(checkpoint_sequential(self.layers, 2, x, use_reentrant=False))


class Clamp(torch.autograd.Function):
    """Passes gradients straight through."""

    @staticmethod
    def forward(ctx, x, low):
        ctx.save_for_backward(x)
        ctx.low = low
        return x.clamp(min=low)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > ctx.low * 2), None


class WithFunction(MLP):
    def forward(self, x):
        return self.three(Clamp.apply(self.body(x), 0.01))


class Frozen(MLP):
    """The first layer learns nothing; a running mean is kept without gradients."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        with torch.no_grad():
            h = F.relu(self.one(x))
            self.mean.mul_(0.9).add_(h.mean(0), alpha=0.1)
        return self.three(F.gelu(self.two(h - self.mean)))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.b(self.a(x).tanh()))


def features(i):
    return torch.randn(6, 4), torch.randint(0, 3, (6,))


def images(i):
    return torch.randn(4, 64), torch.randint(0, 3, (4,))


def words(i):
    return torch.randint(0, 16, (4, 5)), torch.randint(0, 3, (4,))


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def sgd(model):
    return optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def adam(model):
    """With a large eps: gradients that are nothing but rounding (of a bias before a norm) would be made steps of full size."""
    return optim.Adam(model.parameters(), lr=0.01, eps=1e-3)


def adamw(model):
    return optim.AdamW(model.parameters(), lr=0.01, eps=1e-3, foreach=True)


class Case:
    """``wrapped``: what is captured, 'model' (its call), 'loss' or 'step' (forward, backward and optimizer)."""

    def __init__(self, model, optimizer=sgd, data=features, wrapped="model", loss=loss_of, around=None, step=None, scheduler=None,
                 exact=True, set_up=None):
        self.model, self.optimizer, self.data, self.wrapped, self.loss = model, optimizer, data, wrapped, loss
        self.around, self.step, self.scheduler, self.exact, self.set_up = around, step, scheduler, exact, set_up


def plain_step(model, optimizer, loss, x, y):
    optimizer.zero_grad()
    value = loss(model, x, y)
    value.backward()
    optimizer.step()
    return value.detach()


def accumulating(model, optimizer, loss, x, y):
    optimizer.zero_grad(set_to_none=False)
    total = 0
    for part in range(3):
        value = loss(model, x[part * 2 : part * 2 + 2], y[part * 2 : part * 2 + 2]) / 3
        value.backward()
        total = total + value.detach()
    optimizer.step()
    return total


def clipping(model, optimizer, loss, x, y):
    optimizer.zero_grad()
    value = loss(model, x, y)
    value.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return value.detach() + norm


def clipping_values(model, optimizer, loss, x, y):
    optimizer.zero_grad()
    value = loss(model, x, y)
    value.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.01)
    optimizer.step()
    return value.detach()


def functional_gradients(model, optimizer, loss, x, y):
    names, params = zip(*model.named_parameters())
    value = loss(model, x, y)
    grads = torch.autograd.grad(value, params)
    with torch.no_grad():
        for p, g in zip(params, grads):
            p.sub_(g, alpha=0.1)
    return value.detach()


def penalty(model, x, y):
    """A gradient penalty: the gradient of a gradient."""
    x = x.clone().requires_grad_()
    out = model(x)
    (grad,) = torch.autograd.grad(F.cross_entropy(out, y), x, create_graph=True)
    return F.cross_entropy(out, y) + grad.square().sum()


def scaled(model, optimizer, loss, x, y):
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    optimizer.zero_grad()
    value = loss(model, x, y)
    scaler.scale(value).backward()
    scaler.step(optimizer)
    scaler.update()
    return value.detach()


def autocast_bf16(model, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
    return F.cross_entropy(out.float(), y)


def mixed(model, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
        with torch.autocast("cpu", enabled=False):
            more = model(x)
    return F.cross_entropy(out.float() + more, y)


def detached_target(model, x, y):
    with torch.no_grad():
        target = model(x).softmax(-1)
    return F.kl_div(model(x * 1.1).log_softmax(-1), target, reduction="batchmean")


def smoothed(model, x, y):
    return F.cross_entropy(model(x), y, label_smoothing=0.1) + sum(p.square().sum() for p in model.parameters()) * 1e-3


def double_gradients(model):
    for p in model.parameters():
        p.register_hook(lambda grad: grad * 2)


def count_gradients(model):
    model.seen = []
    for name, p in model.named_parameters():
        p.register_post_accumulate_grad_hook(lambda p, i=len(name): model.seen.append(i))


def module_hooks(model):
    model.two.register_forward_hook(lambda m, args, out: out * 1.5)
    model.two.register_full_backward_hook(lambda m, gin, gout: (gin[0] * 0.5,))


def step_lr(optimizer):
    return optim.lr_scheduler.StepLR(optimizer, 2, 0.5)


def cosine(optimizer):
    return optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)


CASES = {
    "mlp sgd": Case(MLP),
    "mlp adam": Case(MLP, adam),
    "mlp adamw foreach": Case(MLP, adamw),
    "mlp dropout": Case(lambda: MLP(dropout=0.5), exact=False),
    "mlp loss": Case(MLP, adam, wrapped="loss", loss=smoothed),
    "mlp whole step": Case(MLP, sgd, wrapped="step", step=plain_step),
    "mlp whole step adam": Case(MLP, adam, wrapped="step", step=plain_step),
    "conv sgd": Case(ConvNet, sgd, images),
    "conv whole step": Case(ConvNet, adamw, images, wrapped="step", step=plain_step),
    "attention": Case(Attention, adam, words),
    "attention whole step": Case(Attention, sgd, words, wrapped="step", step=plain_step),
    "recurrent": Case(Recurrent, adam),
    "tied": Case(Tied, sgd),
    "breaks in forward": Case(Breaking, adam),
    "breaks in a whole step": Case(Breaking, sgd, wrapped="step", step=plain_step),
    "checkpoint": Case(lambda: Checkpointed(False), adam),
    "checkpoint reentrant": Case(lambda: Checkpointed(True), adam),
    "checkpoint with dropout": Case(lambda: Checkpointed(False, dropout=0.5), sgd, exact=False),
    "checkpoint sequence": Case(CheckpointedSequence, sgd),
    "autograd function": Case(WithFunction, sgd),
    "no_grad region": Case(Frozen, sgd),
    "accumulation": Case(MLP, sgd, step=accumulating),
    "accumulation whole step": Case(MLP, adam, wrapped="step", step=accumulating),
    "clipping": Case(MLP, sgd, wrapped="step", step=clipping),
    "clipping values": Case(ConvNet, sgd, images, wrapped="step", step=clipping_values),
    "functional gradients": Case(MLP, sgd, wrapped="step", step=functional_gradients),
    "scaler": Case(MLP, sgd, wrapped="step", step=scaled),
    "autocast": Case(MLP, sgd, wrapped="loss", loss=autocast_bf16),
    "autocast conv": Case(ConvNet, adam, images, wrapped="loss", loss=autocast_bf16),
    "autocast off inside": Case(MLP, sgd, wrapped="loss", loss=mixed),
    "target without gradients": Case(MLP, sgd, wrapped="loss", loss=detached_target),
    "hooks on gradients": Case(MLP, sgd, set_up=double_gradients),
    "hooks after accumulation": Case(MLP, sgd, wrapped="step", step=plain_step, set_up=count_gradients),
    "hooks on modules": Case(MLP, sgd, set_up=module_hooks),
    "steps of the rate": Case(MLP, sgd, wrapped="step", step=plain_step, scheduler=step_lr),
    "cosine rate": Case(MLP, adam, scheduler=cosine),
}


def train(case, wrap, count=5):
    """Losses, all gradients of the last step, parameters and buffers, and the next random numbers."""
    torch.manual_seed(0)
    model = case.model()
    if case.set_up is not None:
        case.set_up(model)
    optimizer = case.optimizer(model)
    scheduler = case.scheduler(optimizer) if case.scheduler else None
    step = case.step or plain_step
    loss, call = case.loss, model
    if case.wrapped == "step":
        step = wrap(step)
    elif case.wrapped == "loss":
        loss = wrap(loss)
    else:
        call = wrap(model)
    losses = []
    for i in range(count):
        x, y = case.data(i)
        losses.append(step(call, optimizer, loss, x, y))
        if scheduler is not None:
            scheduler.step()
    grads = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    state = {k: v.clone() for k, v in model.state_dict().items()}
    return losses, grads, state, getattr(model, "seen", None), torch.rand(2)
