"""State of a training program: gradients, optimizers' groups and state, hooks, lists that grow, presence of attributes."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

from .harness import X, outcome, probe


@probe
def test_gradient_appears_and_goes(C):
    w = torch.ones(3, requires_grad=True)

    def f(x):
        return x * 2 if w.grad is None else x + w.grad

    c = C(f)
    out = [c(X())]
    w.grad = torch.full((3,), 5.0)
    out.append(c(X()))
    w.grad = None
    out.append(c(X()))
    w.grad = torch.zeros(3)
    out.append(c(X()))
    return out


@probe
def test_gradient_changes_in_place_and_in_shape(C):
    w = torch.ones(3, requires_grad=True)
    w.grad = torch.ones(3)
    c = C(lambda x: x * w.grad)
    out = [c(X())]
    w.grad.mul_(4)
    out.append(c(X()))
    w.grad = torch.ones(3, requires_grad=True)
    out.append(c(X()).requires_grad)
    return out


@probe
def test_groups_of_an_optimizer(C):
    w, v = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([w], lr=0.5)
    step = C(lambda: opt.step())
    out = []

    def go():
        for p in (w, v):
            p.grad = torch.ones(2)
        step()
        out.append((w.detach().clone(), v.detach().clone()))

    go()
    opt.param_groups[0]["lr"] = 0.25
    go()
    opt.add_param_group({"params": [v]})
    go()
    opt.param_groups[0]["params"].pop()
    go()
    opt.param_groups[1]["maximize"] = True
    go()
    return out


@probe
def test_state_of_an_optimizer(C):
    w = nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([w], lr=0.5, momentum=0.5)
    step = C(lambda: opt.step())
    out = []

    def go():
        w.grad = torch.ones(2)
        step()
        out.append(w.detach().clone())

    go()
    go()
    opt.state[w]["momentum_buffer"] = torch.full((2,), 9.0)
    go()
    opt.state.pop(w)
    go()
    opt.state[w]["momentum_buffer"] = None
    go()
    return out


@probe
def test_dict_with_tensors_as_keys(C):
    a, b = torch.ones(3), torch.zeros(3)
    table = {a: 2}

    def f(x, k):
        return x * table[k] if k in table else x

    c = C(f)
    out = [c(X(), a), c(X(), b)]
    table[b] = 7
    out.append(c(X(), b))
    table[a] = 5
    out.append(c(X(), a))
    del table[a]
    out.append(c(X(), a))
    return out


@probe
def test_list_that_grew(C):
    log = [1.0]

    def f(x):
        log.append(2.0)
        return x * len(log)

    def g(x):
        log.append(3.0)
        return x + log[0]

    c, d = C(f), C(g)
    out = [c(X()), c(X()), d(X())]
    log[0] = 8.0
    out += [d(X()), c(X())]
    log.clear()
    out += [c(X()), d(X()), list(log)]
    return out


@probe
def test_function_of_a_checkpoint_patched(C):
    class A:
        def body(self, x):
            return x.sin()

    a = A()
    c = C(lambda x: checkpoint(a.body, x, use_reentrant=False) * 2)
    out = [c(X())]
    A.body = lambda self, x: x.cos()
    out.append(c(X()))
    return out


@probe
def test_slot_deleted(C):
    class A:
        __slots__ = ("k",)

    obj = A()
    obj.k = 3

    def f(x):
        return x if hasattr(obj, "k") else x * 5

    c = C(f)
    out = [c(X())]
    del obj.k
    out.append(c(X()))
    obj.k = None
    out.append(c(X()))
    return out


@probe
def test_function_attribute_deleted(C):
    def helper(x):
        return x

    helper.mark = 1
    c = C(lambda x: x * 2 if hasattr(helper, "mark") else x * 3)
    out = [c(X())]
    del helper.mark
    out.append(c(X()))
    return out


@probe
def test_default_factory_replaced(C):
    import collections

    d = collections.defaultdict(lambda: 2)
    c = C(lambda x, k: x * d[k])
    out = [c(X(), "a"), c(X(), "a")]
    d.default_factory = lambda: 6
    out += [c(X(), "b"), c(X(), "a"), sorted(d)]
    d.default_factory = None
    out.append(outcome(lambda: c(X(), "z")))
    return out
