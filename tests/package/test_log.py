import logging
import re
import subprocess
import sys

import pytest

from framegraft import exc, log


def test_artifacts_print_with_a_prefix_on_each_line(capsys):
    log.set_logs(bytecode=True)
    assert log.enabled("bytecode") and not log.enabled("graph")
    with log.compile_id(2, 1):
        log.artifact("bytecode").debug("ORIGINAL BYTECODE %s\n  0 NOP", "f")
    log.artifact("graph").debug("not shown")
    first, second = capsys.readouterr().err.splitlines()
    prefix = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] \[2/1\] framegraft\.convert_frame\.__bytecode: \[DEBUG\] "
    assert re.fullmatch(prefix + "ORIGINAL BYTECODE f", first)
    assert re.fullmatch(prefix + "  0 NOP", second)


def test_bad_names_list_the_valid_ones():
    for bad in (lambda: log.set_logs(guard=True), lambda: log.set_logs_from_string("guard"), lambda: log.artifact("x")):
        with pytest.raises(exc.ConfigError, match=r"valid are .*guards"):
            bad()
    with pytest.raises(exc.ConfigError):
        log.set_logs(guards=1)


def test_string_syntax():
    log.set_logs_from_string("+dynamo, guards,bytecode,-bytecode")
    assert log.enabled("guards") and not log.enabled("bytecode")
    assert logging.getLogger("framegraft").level == logging.DEBUG
    log.reset_logs()
    assert not log.enabled("guards")


def test_set_logs_levels():
    log.set_logs(dynamo=logging.INFO)
    assert logging.getLogger("framegraft").level == logging.INFO
    log.set_logs(dynamo=False)
    assert logging.getLogger("framegraft").level == logging.WARNING


def test_environment_variable():
    code = "import framegraft.log as log; print(log.enabled('guards'), log.enabled('graph'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**__import__("os").environ, "FRAMEGRAFT_LOGS": "+dynamo,guards"},
        capture_output=True, text=True,
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_graph_table():
    import torch

    graph = torch.fx.symbolic_trace(lambda a, b: a + b.sin()).graph
    table = log.graph_table(graph).splitlines()
    assert table[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert set(table[1]) <= {"-", " "}
    assert len(table) == 2 + len(graph.nodes)


def test_set_logs_takes_a_string():
    log.set_logs("guards,-graph")
    assert log.enabled("guards") and not log.enabled("graph")
    log.set_logs("bytecode", graph=True)
    assert log.enabled("bytecode") and log.enabled("graph") and not log.enabled("guards")
    with pytest.raises(exc.ConfigError, match="nothing"):
        log.set_logs("guards,nothing")
    assert log.enabled("bytecode") and not log.enabled("guards")
    with pytest.raises(exc.ConfigError, match="list"):
        log.set_logs(["guards"])
    log.set_logs("")
    assert not log.enabled("bytecode")
