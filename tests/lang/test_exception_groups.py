"""What exceptions have learnt with CPython 3.11: groups, ``except*`` and notes (not collected before; see conftest.py)."""

from .differential import differential


@differential()
def test_except_star(x):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), ValueError(3)])
    except* ValueError as group:
        log.append([e.args for e in group.exceptions])
    except* KeyError as group:
        log.append(len(group.exceptions))
    return x + 1, log


@differential()
def test_notes(x):
    error = ValueError("with notes")
    error.add_note("one")
    error.add_note("two")
    x = x + 1
    raise error
