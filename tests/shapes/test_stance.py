"""set_stance, the limits on captures, and what is said about a recompile."""

import threading
import warnings

import pytest
import torch

import framegraft
from framegraft.exc import ConfigError, RecompileError, RecompileLimitExceeded


def f(x, word="a"):
    return x * 2 if word == "a" else x * 3


@pytest.fixture
def counter():
    return framegraft.testing.CompileCounter()


@pytest.fixture
def compiled(counter):
    made = framegraft.compile(f, backend=counter, dynamic=False)
    made(torch.ones(2))
    return made


def test_force_eager(compiled, counter):
    ran = []
    seen = framegraft.compile(lambda x: ran.append(1) or x, backend="eager")
    seen(torch.ones(1))
    with framegraft.set_stance("force_eager"):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
        compiled(torch.ones(3))
    assert counter.frame_count == 1
    compiled(torch.ones(3))
    assert counter.frame_count == 2


def test_eager_on_recompile(compiled, counter):
    with framegraft.set_stance("eager_on_recompile"):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
        compiled(torch.ones(2))
        framegraft.compile(lambda x: x + 1, backend=counter)(torch.ones(2))
    assert counter.frame_count == 1


def test_fail_on_recompile(compiled, counter):
    with framegraft.set_stance("fail_on_recompile"):
        compiled(torch.ones(2))
        with pytest.raises(RecompileError, match=r"(?s)test_stance.py.*size=\[2\].*now:.*size=\[3\].*asked by:.*hint:"):
            compiled(torch.ones(3))
        with pytest.raises(RecompileError, match="never captured"):
            framegraft.compile(lambda x: x + 1, backend=counter)(torch.ones(2))
    compiled(torch.ones(3))
    assert counter.frame_count == 2


def test_as_a_function_and_as_a_decorator(compiled, counter):
    framegraft.set_stance("eager_on_recompile")
    try:
        compiled(torch.ones(3))
    finally:
        framegraft.set_stance("default")
    assert counter.frame_count == 1

    @framegraft.set_stance("force_eager")
    def call(x):
        return compiled(x)

    call(torch.ones(4))
    assert counter.frame_count == 1
    with framegraft.set_stance("force_eager"), framegraft.set_stance("default"):
        compiled(torch.ones(3))
    assert counter.frame_count == 2


def test_stance_is_the_threads_own(compiled, counter):
    with framegraft.set_stance("eager_on_recompile"):
        thread = threading.Thread(target=lambda: compiled(torch.ones(3)))
        thread.start()
        thread.join()
    assert counter.frame_count == 2


def test_unknown_stance():
    with pytest.raises(ConfigError, match="fail_on_recompile"):
        framegraft.set_stance("lazy")


def test_limit_on_all_captures_of_a_code(counter):
    class Box(torch.nn.Module):
        def forward(self, x):
            return x + 1

    def call(box, x):
        return box(x)

    made = framegraft.compile(call, backend=counter)
    with framegraft.config.patch(accumulated_cache_size_limit=3), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16):
            assert torch.equal(made(Box(), torch.ones(2, dtype=dtype)), torch.full((2,), 2, dtype=dtype))
    assert counter.frame_count == 3
    assert sum("accumulated_cache_size_limit" in str(w.message) for w in caught) == 1


def test_limit_where_no_fallback_is_allowed(counter):
    made = framegraft.compile(f, backend=counter, fullgraph=True, dynamic=False)
    with framegraft.config.patch(accumulated_cache_size_limit=2), pytest.raises(RecompileLimitExceeded):
        for n in range(2, 6):
            made(torch.ones(n))


def log_of(capfd, calls, **settings):
    made = framegraft.compile(f, backend="eager", **settings)
    framegraft.set_logs(recompiles=True)
    for args in calls:
        made(*args)
    return capfd.readouterr().err


def test_log_tells_was_is_line_and_hint(capfd):
    text = log_of(capfd, [(torch.ones(2),), (torch.ones(3),)])
    assert "size=[2]" in text and "size=[3]" in text and "test_stance.py" in text and "mark_dynamic" in text
    text = log_of(capfd, [(torch.ones(2), "a"), (torch.ones(2), "b")])
    assert "L['word'] == 'a'" in text and "now:      'b'" in text


def test_log_of_a_shape_guard(capfd):
    def g(x):
        return x + 1 if x.shape[0] > 4 else x

    made = framegraft.compile(g, backend="eager", dynamic=True)
    made(torch.ones(3))
    framegraft.set_logs(recompiles=True)
    made(torch.ones(9))
    text = capfd.readouterr().err
    assert "L['x'].size(0) <= 4" in text and "L['x'].size(0) is 9" in text
