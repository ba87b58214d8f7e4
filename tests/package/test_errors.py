import ast
import pathlib
import pickle

import pytest

import framegraft
from framegraft import errors, exc, reasons

PACKAGE = pathlib.Path(framegraft.__file__).parent


def test_unsupported_tells_reason_place_and_hint():
    error = exc.Unsupported("tensor_item", "x.item()", user_stack=[(__file__, 1, "outer"), (__file__, 2, "inner")])
    text = str(error)
    assert text.startswith("tensor_item: x.item()")
    assert reasons.REASONS["tensor_item"].why in text and reasons.REASONS["tensor_item"].hint in text
    assert f'File "{__file__}", line 1, in outer' in text and "import ast" in text
    assert text.index("outer") < text.index("inner")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == text and copy.user_stack == error.user_stack


def test_from_break():
    broken = errors.GraphBreak("print_call", "print")
    broken.user_stack = [(__file__, 3, "f")]
    error = exc.Unsupported.from_break(broken)
    assert (error.reason_id, error.detail, error.user_stack) == ("print_call", "print", broken.user_stack)


def test_control_flow_is_no_public_error():
    for internal in (errors.GraphBreak("x"), errors.UserRaise(1), errors.Restart()):
        assert not isinstance(internal, exc.FramegraftError)
    for name in exc.__all__:
        assert issubclass(getattr(exc, name), exc.FramegraftError)


def test_backend_failure_names_the_backend():
    assert "'mine'" in str(exc.BackendCompilerFailed("mine", "ValueError: no"))


def test_unknown_reason_is_generic():
    assert reasons.reason("made_up").id == "made_up"


def strings_of(node):
    """The literal strings an expression may evaluate to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from strings_of(node.body)
        yield from strings_of(node.orelse)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_every_reason_that_is_raised_is_documented(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in ("GraphBreak", "Unsupported"):
                for reason_id in strings_of(node.args[0]):
                    assert reason_id in reasons.REASONS, f"{path}:{node.lineno}: {reason_id}"


@pytest.mark.parametrize("reason", reasons.REASONS.values(), ids=lambda r: r.id)
def test_reasons_are_sentences(reason):
    assert reason.id.isidentifier() and reason.id.islower()
    for text in (reason.why, reason.hint):
        assert text[0].isupper() and text.endswith(".") and len(text) > 20, text
