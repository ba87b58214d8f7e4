import logging

import pytest

import framegraft
from framegraft import config, exc, log


def test_defaults_are_the_documented_ones():
    assert config.cache_size_limit == 64
    assert config.automatic_dynamic_shapes and not config.specialize_int and not config.suppress_errors
    assert framegraft.config is config and config.config is config


def test_every_annotated_setting_is_checked():
    import sys

    annotated = {n for n in sys.modules["framegraft.config"].__annotations__ if not n.startswith("_")} - {"config"}
    assert annotated == set(config.settings())


@pytest.mark.parametrize(
    "name, value",
    [
        ("cache_size_limit", "8"),
        ("cache_size_limit", True),
        ("cache_size_limit", 0),
        ("suppress_errors", 1),
        ("force_break_at", -1),
        ("force_break_at", 1.5),
        ("log_level", "loud"),
        ("no_such_setting", 1),
    ],
)
def test_bad_assignments_raise_at_once(name, value):
    before = config.settings()
    with pytest.raises(exc.ConfigError):
        setattr(config, name, value)
    with pytest.raises(exc.ConfigError):
        config.patch(**{name: value})
    assert config.settings() == before


def test_unknown_names():
    with pytest.raises(exc.ConfigError, match="did you mean cache_size_limit"):
        config.cache_size_limt  # noqa: B018
    assert not hasattr(config, "nothing")
    with pytest.raises(exc.ConfigError):
        del config.cache_size_limit


def test_patch_as_context_decorator_and_after_an_error():
    @config.patch(cache_size_limit=3)
    def decorated():
        """Doc."""
        return config.cache_size_limit

    assert decorated() == 3 and decorated.__doc__ == "Doc."
    with pytest.raises(KeyError), config.patch({"output_code": True}, cache_size_limit=2):
        assert config.output_code and config.cache_size_limit == 2
        assert decorated() == 3 and config.cache_size_limit == 2
        raise KeyError
    assert config.cache_size_limit == 64 and not config.output_code


def test_output_code_switches_logs_and_leaves_others_alone():
    log.set_logs(guards=True)
    with config.patch(output_code=True):
        assert log.enabled("bytecode") and log.enabled("graph") and log.enabled("guards")
    assert not log.enabled("bytecode") and log.enabled("guards")


def test_log_level_takes_effect():
    with config.patch(log_level="info"):
        assert logging.getLogger("framegraft").level == logging.INFO
    assert logging.getLogger("framegraft").level == logging.WARNING
