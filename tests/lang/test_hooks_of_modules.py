"""Hooks that a function puts on modules from outside, or takes away; weak references, by which their handles know the hooks."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

import framegraft
from framegraft.testing import CompileCounter


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 3)))


def add_one(module, args, output):
    return output + 1


def installs(net, x):
    """Once, as a library does that wants to see what layers give."""
    if getattr(net, "installed", None) is None:
        net.seen = []
        for name, layer in net.named_modules():
            if isinstance(layer, nn.Linear):
                layer.register_forward_hook(lambda module, args, output, name=name: net.seen.append((name, output.shape)))
        net.installed = True
    net.seen.clear()
    return net(x), list(net.seen)


def removes(net, x):
    handle = net[0].register_forward_hook(add_one)
    first = net(x)
    handle.remove()
    handle.remove()
    return first, net(x), handle.id in net[0]._forward_hooks


def in_a_block(net, x):
    with net[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,)), net[2].register_forward_hook(add_one):
        first = net(x)
    return first, net(x)


def with_keywords(net, x):
    handles = [
        net[0].register_forward_hook(lambda module, args, kwargs, output: output * 3, with_kwargs=True, always_call=True),
        net[0].register_forward_pre_hook(lambda module, args, kwargs: ((args[0] + 1,), kwargs), with_kwargs=True, prepend=True),
        net.register_forward_hook(add_one),
    ]
    result = net(x)
    for handle in handles[1:]:
        handle.remove()
    return result, net(x), list(map(bool, handles[0].extra_dict_ref[0]().values())), len(net[0]._forward_hooks)


def keeps_a_handle(net, x):
    net.handle = net[0].register_forward_hook(add_one)
    return net(x), net.handle.id == max(net[0]._forward_hooks)


def state(net):
    """Which hooks there are, and in which order."""
    return [(name, [getattr(h, "__name__", "") for h in hooks.values()], sorted(hooks) == list(hooks))
            for name, layer in net.named_modules() for hooks in (layer._forward_hooks, layer._forward_pre_hooks)]


@pytest.mark.parametrize("fn", [installs, removes, in_a_block, with_keywords, keeps_a_handle])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks(fn, backend):
    x = torch.arange(6.0).reshape(2, 3)
    expected, results = [], []
    for run, told in ((fn, expected), (framegraft.compile(fn, backend=backend), results)):
        net = model()
        for _ in range(4):
            with torch.no_grad():
                told.append((run(net, x), state(net)))
    for (result, hooks), (wanted, hooks_wanted) in zip(results, expected, strict=True):
        assert str(result[1:]) == str(wanted[1:]) and torch.equal(result[0], wanted[0])
        assert hooks == hooks_wanted


def handles_are_kept(net, x, handles):
    handles.append(net[0].register_forward_hook(add_one))
    first = net(x)
    handles[0].remove()
    return first, net(x)


def test_handles_that_are_kept_remove_their_own_hooks():
    for run in (handles_are_kept, framegraft.compile(handles_are_kept, backend="eager")):
        net, handles = model(), []
        for _ in range(3):
            first, second = run(net, torch.ones(2, 3), handles)
        assert len(net[0]._forward_hooks) == 2 and len({h.id for h in handles}) == 3
        handles[1].remove()
        assert list(net[0]._forward_hooks) == [handles[2].id]


def test_one_graph():
    counter = CompileCounter()
    compiled = framegraft.compile(removes, backend=counter, fullgraph=True)
    net = model()
    for _ in range(3):
        compiled(net, torch.ones(2, 3))
    assert counter.frame_count == 1


def test_the_first_call_is_one_graph():
    compiled = framegraft.compile(installs, backend="eager", fullgraph=True)
    net = model()
    for _ in range(3):
        _, seen = compiled(net, torch.ones(2, 3))
        assert [name for name, _ in seen] == ["0", "2.0"]


def test_numbers_of_hooks_that_a_backend_registers():
    """While the frame is captured, or the graph runs: no number is given twice."""
    other = nn.Linear(3, 3)

    def backend(gm, inputs):
        other.register_forward_hook(add_one)

        def run(*args):
            other.register_forward_hook(add_one)
            return gm(*args)

        return run

    net = model()
    compiled = framegraft.compile(keeps_a_handle, backend=backend)
    compiled(net, torch.ones(2, 3))
    assert RemovableHandle.next_id > max(max(other._forward_hooks), net.handle.id)
    net[0].register_forward_hook(add_one)
    assert len(net[0]._forward_hooks) == 2 and len(other._forward_hooks) == 2


class Thing:
    pass


def refers(x, thing):
    reference = weakref.ref(thing)
    return x + 1, reference, reference() is thing, reference is weakref.ref(thing)


def test_weak_references():
    compiled = framegraft.compile(refers, backend="eager", fullgraph=True)
    for thing in (Thing(), Thing(), nn.Linear(1, 1)):
        result, reference, *same = compiled(torch.ones(1), thing)
        assert int(result) == 2 and reference is weakref.ref(thing) and same == [True] * 2


def test_a_weak_reference_keeps_nothing_alive():
    def f(x, things):
        reference = weakref.ref(things.pop())
        return x + 1, reference() is None

    def plain(x, things):
        return f(x, things)

    for run in (plain, framegraft.compile(f, backend="eager")):
        for _ in range(2):
            assert run(torch.ones(1), [Thing()])[1]
    compiled, things = framegraft.compile(refers, backend="eager"), [Thing()]
    reference = compiled(torch.ones(1), things[0])[1]
    things.clear()
    gc.collect()
    assert reference() is None


def test_weak_references_that_there_are_none_of():
    def f(x):
        try:
            weakref.ref(x.shape[0])
        except TypeError as error:
            return x + 1, str(error)

    assert framegraft.compile(f, backend="eager")(torch.ones(1))[1] == f(torch.ones(1))[1]
