"""nn.Module: parameters, buffers, submodules, hooks, class patches."""

import torch
import torch.nn as nn

from .harness import X, defer, patch, probe


class Net(nn.Module):
    k = 2

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.register_buffer("shift", torch.ones(3))
        self.opt = {"scale": 2}

    def forward(self, x):
        return self.act(self.lin(x)) * self.k * self.opt["scale"] + self.shift


def net():
    torch.manual_seed(3)
    return Net()


@probe
def test_parameter_in_place(C):
    m = net()
    c = C(m)
    a = c(X())
    with torch.no_grad():
        m.lin.weight.fill_(0.5)
    return a, c(X())


@probe
def test_parameter_replaced(C):
    m = net()
    c = C(m)
    a = c(X())
    m.lin.weight = nn.Parameter(torch.ones(3, 3))
    return a, c(X())


@probe
def test_parameter_data_other_shape(C):
    m = net()
    c = C(m)
    a = c(X())
    m.lin.weight.data, m.lin.bias.data, m.shift = torch.ones(2, 3), torch.ones(2), torch.zeros(2)
    return a, c(X())


@probe
def test_parameter_frozen(C):
    m = net()
    c = C(m)
    a = c(X())
    for p in m.parameters():
        p.requires_grad_(False)
    return a, c(X())


@probe
def test_buffer_replaced(C):
    m = net()
    c = C(m)
    a = c(X())
    m.shift = torch.full((3,), 5.0)
    return a, c(X())


@probe
def test_buffer_becomes_attribute(C):
    m = net()
    c = C(m)
    a = c(X())
    del m.shift
    m.shift = 7
    return a, c(X())


@probe
def test_submodule_replaced(C):
    m = net()
    c = C(m)
    a = c(X())
    m.act = nn.Tanh()
    return a, c(X())


@probe
def test_submodule_set_in_private_dict(C):
    m = net()
    c = C(m)
    a = c(X())
    m._modules["act"] = nn.Sigmoid()
    return a, c(X())


@probe
def test_plain_attribute_shadows_class(C):
    m = net()
    c = C(m)
    a = c(X())
    m.k = 10
    b = c(X())
    del m.k
    return a, b, c(X())


@probe
def test_class_attribute(C):
    m = net()
    c = C(m)
    a = c(X())
    patch(Net, "k", 5)
    return a, c(X())


@probe
def test_dict_attribute(C):
    m = net()
    c = C(m)
    a = c(X())
    m.opt["scale"] = -1
    return a, c(X())


@probe
def test_forward_of_instance(C):
    m = net()
    c = C(lambda x: m(x))
    a = c(X())
    m.forward = lambda x: x * 100
    return a, c(X())


@probe
def test_forward_of_class(C):
    m = net()
    c = C(lambda x: m(x))
    a = c(X())
    patch(Net, "forward", lambda self, x: x * 100)
    return a, c(X())


@probe
def test_forward_of_library_class(C):
    m = net()
    c = C(m)
    a = c(X())
    patch(nn.ReLU, "forward", lambda self, x: x * 100)
    return a, c(X())


@probe
def test_call_of_module_patched(C):
    m = net()
    c = C(lambda x: m(x))
    a = c(X())
    patch(Net, "__call__", lambda self, x: x * 3)
    return a, c(X())


@probe
def test_forward_hook(C):
    m = net()
    c = C(m)
    a = c(X())
    h = m.lin.register_forward_hook(lambda mod, args, out: out + 10)
    b = c(X())
    h.remove()
    return a, b, c(X())


@probe
def test_forward_pre_hook_on_root(C):
    m = net()
    c = C(m)
    a = c(X())
    m.register_forward_pre_hook(lambda mod, args: (args[0] * 2,))
    return a, c(X())


@probe
def test_backward_hook(C):
    m = net()
    c = C(m)
    log = []

    def go():
        x = X().requires_grad_()
        c(x).sum().backward()
        return x.grad

    a = go()
    m.lin.register_full_backward_hook(lambda mod, gi, go: log.append(len(gi)) or (gi[0] * 2,))
    return a, go(), log


@probe
def test_hook_on_second_of_shared(C):
    shared = nn.Linear(3, 3)
    torch.manual_seed(0)
    nn.init.normal_(shared.weight)
    nn.init.zeros_(shared.bias)
    m = nn.Sequential(shared, nn.ReLU(), shared)
    c = C(m)
    a = c(X())
    m[2].register_forward_hook(lambda mod, args, out: out + 1)
    return a, c(X())


@probe
def test_global_pre_hook(C):
    m = net()
    c = C(m)
    a = c(X())
    h = nn.modules.module.register_module_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    defer(h.remove)
    b = c(X())
    h.remove()
    return a, b, c(X())


@probe
def test_train_eval(C):
    m = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Dropout(1.0))
    with torch.no_grad():
        m[0].weight.fill_(1.0)
    c = C(m)
    a = c(X())
    m.eval()
    b = c(X())
    m[1].training = True
    return a, b, c(X())


@probe
def test_dropout_rate(C):
    m = nn.Dropout(0.0)
    c = C(m)
    a = c(X())
    m.p = 1.0
    return a, c(X())


@probe
def test_sequential_grows(C):
    m = nn.Sequential(nn.ReLU())
    c = C(m)
    a = c(X())
    m.append(nn.Tanh())
    b = c(X())
    m[0] = nn.Sigmoid()
    d = c(X())
    del m[1]
    return a, b, d, c(X())


@probe
def test_modulelist_reordered(C):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.items = nn.ModuleList([nn.Tanh(), nn.Softplus()])

        def forward(self, x):
            for item in self.items:
                x = item(x)
            return x

    m = M()
    c = C(m)
    a = c(X())
    m.items = nn.ModuleList([m.items[1], m.items[0]])
    return a, c(X())


@probe
def test_moduledict_key(C):
    d = nn.ModuleDict({"a": nn.Tanh()})
    c = C(lambda x, k: d[k](x) if k in d else x)
    a = c(X(), "b")
    d["b"] = nn.ReLU()
    d["a"] = nn.Sigmoid()
    return a, c(X(), "b"), c(X(), "a")


@probe
def test_class_of_module_changed(C):
    class Other(nn.ReLU):
        def forward(self, x):
            return x - 50

    m = net()
    c = C(m)
    a = c(X())
    m.act.__class__ = Other
    return a, c(X())


@probe
def test_getattr_of_module_class(C):
    class M(nn.Module):
        def forward(self, x):
            return x * self.factor

        def __getattr__(self, name):
            return 3 if name == "factor" else super().__getattr__(name)

    m = M()
    c = C(m)
    a = c(X())
    m.factor = 5
    b = c(X())
    del m.factor
    patch(M, "__getattr__", lambda self, name: 9)
    return a, b, c(X())


@probe
def test_parametrization(C):
    m = nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        m.weight.fill_(2.0)

    class Halve(nn.Module):
        def forward(self, w):
            return w / 2

    c = C(lambda x: m(x))
    a = c(X())
    torch.nn.utils.parametrize.register_parametrization(m, "weight", Halve())
    b = c(X())
    torch.nn.utils.parametrize.remove_parametrizations(m, "weight")
    return a, b, c(X())


@probe
def test_tied_parameters_untied(C):
    m = nn.ModuleDict({"a": nn.Linear(3, 3, bias=False), "b": nn.Linear(3, 3, bias=False)})
    with torch.no_grad():
        m["a"].weight.fill_(1.0)
    m["b"].weight = m["a"].weight

    def f(x):
        m["a"].weight.data.mul_(2)
        return m["a"](x), m["b"](x)

    c = C(f)
    a = c(X())
    m["b"].weight = nn.Parameter(torch.ones(3, 3))
    return a, c(X())


@probe
def test_load_state_dict(C):
    m = net()
    c = C(m)
    a = c(X())
    m.load_state_dict({k: torch.zeros_like(v) for k, v in m.state_dict().items()})
    b = c(X())
    m.load_state_dict({k: torch.ones_like(v) for k, v in m.state_dict().items()}, assign=True)
    return a, b, c(X())


@probe
def test_counter_attribute_written_in_forward(C):
    class M(nn.Module):
        n = 0

        def forward(self, x):
            self.n += 1
            return x * self.n

    m = M()
    c = C(m)
    return [c(X()) for _ in range(3)], m.n


@probe
def test_dtype_moved(C):
    m = net()
    c = C(m)
    a = c(X())
    m.double()
    return a, c(X().double())


@probe
def test_named_parameters_walk(C):
    m = net()
    c = C(lambda x: sum(p.sum() for n, p in m.named_parameters() if "weight" in n) * x)
    a = c(X())
    m.extra_weight = nn.Parameter(torch.ones(3))
    return a, c(X())
