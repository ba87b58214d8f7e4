"""Why a graph broke, in words for the user. ``docs/reasons.md`` and ``explain`` are made from this table.

A reason has an id that never changes its meaning, a *why* (one sentence about the cause), a *hint* (what the user may do)
and an *example*, which a test runs: compiled, ``f`` breaks for this reason when it is called with a tensor. Whoever raises
``GraphBreak`` adds a *detail*: the function, attribute or opcode that was met.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One kind of graph break."""

    id: str
    why: str
    hint: str
    example: str


_SEED = (
    # --- the value of a tensor is needed -----------------------------------------------------------------------------
    Reason(
        "data_dependent_branch",
        "The program branches on the value of a tensor, which is not known while the graph is captured.",
        "Use torch.where or torch.cond, or hoist the test out of the compiled function.",
        """\
def f(x):
    if x.sum() > 0:
        return x + 1
    return x - 1
""",
    ),
    Reason(
        "tensor_item",
        "A Python number, list or string is made from the value of a tensor (item, tolist, int, float, index, format).",
        "Keep the value in a tensor, or move the conversion to the end of the function.",
        """\
def f(x):
    return x * x.max().item()
""",
    ),
    Reason(
        "dynamic_output_shape",
        "The shape of the result depends on the value of a tensor (nonzero, boolean masks, unique, repeat_interleave).",
        "Use an operation of fixed output shape, such as torch.where with three arguments, or masked_fill.",
        """\
def f(x):
    return x[x > 0] + 1
""",
    ),
    # --- calls that cannot be seen through ---------------------------------------------------------------------------
    Reason(
        "finaliser",
        "An object is made, or let go of, that runs code of the program when it dies (__del__, a weak reference's callback, a generator).",
        "Let such objects live and die outside of the compiled function.",
        """\
class Noisy:
    def __del__(self):
        print("gone")

def f(x):
    noisy = Noisy()
    return x + 1
""",
    ),
    Reason(
        "print_call",
        "Output is written in the middle of the function, and its order with everything else must be kept.",
        "Print outside of the compiled function, or guard the call with `if not framegraft.is_compiling():`.",
        """\
def f(x):
    y = x + 1
    print("half-way")
    return y * 2
""",
    ),
    Reason(
        "io_call",
        "The program reads or writes a file, a socket, the console or the clock, or imports a new module.",
        "Do input and output outside of the compiled function; import at the top of the file.",
        """\
def f(x):
    y = x + 1
    with open("/dev/null", "w") as file:
        file.write("half-way")
    return y * 2
""",
    ),
    Reason(
        "unknown_c_function",
        "A function implemented in C is called, and Framegraft does not know what it does.",
        "Call it outside of the compiled function. If it is pure, mark it with framegraft.assume_constant_result; "
        "if it only computes on tensors, with framegraft.allow_in_graph.",
        """\
import zlib

def f(x):
    return x * zlib.crc32(b"seed")
""",
    ),
    Reason(
        "untraceable_call",
        "The object that is called, or one of its arguments, has no form in which it can be traced.",
        "Call a plain function or method, or move the call out of the compiled function.",
        """\
import logging

def f(x):
    logging.getLogger("model").info("called")
    return x + 1
""",
    ),
    Reason(
        "disallowed_function",
        "The function was marked with framegraft.disallow_in_graph.",
        "Remove the mark if the function can be captured.",
        """\
def probe(x):
    return x.sin()

framegraft.disallow_in_graph(probe)

def f(x):
    return probe(x) + 1
""",
    ),
    Reason(
        "inline_disabled",
        "The function is marked with framegraft.disable, or belongs to a module that is never traced into.",
        "Nothing is wrong; use framegraft.allow_in_graph if the call computes on tensors only.",
        """\
@framegraft.disable
def untouched(x):
    return x.sin()

def f(x):
    return untouched(x) + 1
""",
    ),
    Reason(
        "recursion",
        "The call is recursive beyond the depth that one graph unrolls.",
        "Write the recursion as a loop, or compile the inner function on its own.",
        """\
def power(x, n):
    return x if n == 0 else power(x * x, n - 1)

def f(x):
    return power(x, 300)
""",
    ),
    Reason(
        "numpy_call",
        "NumPy is asked for what a node of the graph cannot do: the result has a form that depends on values, or shares memory.",
        "Use the torch function of the same name, or convert once, outside of the compiled function.",
        """\
import numpy

def f(x):
    return torch.from_numpy(numpy.unique(x.numpy())) + 1
""",
    ),
    Reason(
        "random_call",
        "Python's or NumPy's random generator is called; its state lives outside of the graph.",
        "Use torch.rand and its relatives, or draw the number outside and pass it in.",
        """\
import random

def f(x):
    scales = [0.5, 1.0, 1.5]
    random.shuffle(scales)
    return x * scales[0]
""",
    ),
    Reason(
        "user_graph_break",
        "The program called framegraft.graph_break().",
        "Remove the call to capture one graph.",
        """\
def f(x):
    y = x + 1
    framegraft.graph_break()
    return y * 2
""",
    ),
    Reason(
        "forced_break",
        "The setting config.force_break_at, which exists for tests, asked for a break at this instruction.",
        "Set config.force_break_at to None.",
        """\
framegraft.config.force_break_at = 3

def f(x):
    y = x + 1
    return y * 2
""",
    ),
    Reason(
        "introspection",
        "The program looks at its own frames, code, closures or variables (locals, inspect, sys._getframe, exec).",
        "Move the introspection out of the compiled function.",
        """\
def f(x):
    y = x + 1
    return y * len(locals())
""",
    ),
    # --- the language ------------------------------------------------------------------------------------------------
    Reason(
        "unsupported_opcode",
        "The function uses a bytecode instruction, or a form of one, that Framegraft does not trace yet.",
        "Move the statement into a helper that is not compiled, or write it in another way.",
        """\
def f(x):
    class Local:
        factor = 2
    return x * Local.factor
""",
    ),
    Reason(
        "unsupported_attribute",
        "An attribute is read whose look-up runs code, or on an object, that Framegraft cannot follow.",
        "Read the attribute outside of the compiled function and pass its value in.",
        """\
def f(x):
    return x + len(x.__dict__)
""",
    ),
    Reason(
        "unsupported_mutation",
        "An object is changed in a way that cannot be replayed after the graph has run.",
        "Make the change outside of the compiled function, or return the new value.",
        """\
def f(x):
    x.unsqueeze_(0)
    return x + 1
""",
    ),
    Reason(
        "unsupported_iterator",
        "The program iterates over an object whose items cannot be known while the graph is captured.",
        "Iterate over a list, tuple, dict, range or module container, or make a list of the items outside.",
        """\
steps = map(abs, [-1, 2])

def f(x):
    for step in steps:
        x = x + step
    return x
""",
    ),
    Reason(
        "unsupported_builtin_method",
        "A builtin or standard library type is used with a method or operand that is not modelled for it.",
        "Use the plain operator or a simpler method of the same type.",
        """\
import array

numbers = array.array("i", [1, 2])

def f(x):
    return x * numbers.count(1)
""",
    ),
    Reason(
        "unsupported_context",
        "The `with` statement uses a context manager that can neither be traced nor re-entered after a break.",
        "Enter the context manager outside of the compiled function.",
        """\
import threading

lock = threading.Lock()

def f(x):
    with lock:
        return x + 1
""",
    ),
    Reason(
        "raised_exception",
        "An exception is raised or handled that did not start inside of the captured code.",
        "Let the exception leave the compiled function, or raise and handle it inside.",
        """\
def f(x):
    raise ValueError("no")
""",
    ),
    Reason(
        "unreconstructible_value",
        "A value that is still needed after a break was made while tracing and cannot be built again in plain Python.",
        "Make the object outside of the compiled function, or do not keep it alive across the break.",
        """\
def f(x):
    table = {"a": 1}
    keys = iter(table)
    table["b"] = 2  # keys can only raise now, and no other iterator is like it
    return x + 1, keys
""",
    ),
    # --- tensors -----------------------------------------------------------------------------------------------------
    Reason(
        "fake_tensor_failure",
        "Shape propagation of the operation failed: it has no meta implementation, or it rejects these arguments.",
        "Run the function in eager mode to see whether it raises there too; if not, register a fake implementation.",
        """\
def f(x):
    return x @ torch.ones(7, 7)
""",
    ),
    Reason(
        "input_subclass",
        "A tensor is of a subclass with behaviour of its own that a graph would not keep: methods in the place of Tensor's, a "
        "__torch_function__ that is not traced, or one near a function that torch calls.",
        "Unwrap it to plain tensors before the call.",
        """\
class Units(torch.Tensor):
    def sum(self):
        return super().sum() * 2

def f(x):
    return x.as_subclass(Units).sum()
""",
    ),
    Reason(
        "sparse_or_complex_layout",
        "A tensor has a layout (sparse, nested, mkldnn, quantized) that is not captured.",
        "Convert the tensor to a dense strided one outside of the compiled function.",
        """\
sparse = torch.eye(3).to_sparse()

def f(x):
    return sparse @ x
""",
    ),
    Reason(
        "autograd_in_trace",
        "The autograd engine is driven inside of the function (backward, torch.autograd.grad, .grad of a result).",
        "Compile the forward function and call backward() on its result.",
        """\
weight = torch.ones(3, requires_grad=True)

def f(x):
    loss = (x * weight).sum()
    loss.backward()
    return weight.grad
""",
    ),
    Reason(
        "hook_on_intermediate",
        "A hook is one that the graph cannot hold: it may look at what changes before the backward pass, or its handle is used.",
        "Register hooks before the compiled function is called; on tensors that it makes, hooks that only compute a gradient.",
        """\
weight, scale = torch.ones(3, requires_grad=True), [2.0]

def f(x):
    y = x * weight
    y.register_hook(lambda grad: grad * scale[0])
    return y + 1
""",
    ),
    # --- the frame as a whole ----------------------------------------------------------------------------------------
    Reason(
        "skipped_frame",
        "The function is one that is never captured: a generator, a class body, or code of a library that is skipped.",
        "Nothing is wrong; compile the functions that it calls.",
        """\
def f(x):
    yield x + 1
""",
    ),
    Reason(
        "cache_limit",
        "The function was compiled config.cache_size_limit times; further calls with new properties run in eager mode.",
        "FRAMEGRAFT_LOGS=recompiles says which guard fails; pass what changes as a tensor, or raise the limit.",
        """\
framegraft.config.cache_size_limit = 2

@framegraft.compile(backend="eager")
def f(x, how="sum"):
    return x.sum() if how == "sum" else x.mean()

for how in ("sum", "mean", "average", "middle"):
    f(torch.ones(3), how)
""",
    ),
    Reason(
        "backend_failed",
        "The backend raised an error while it compiled the graph.",
        'Try backend="eager": if that works, the fault is in the backend. config.suppress_errors falls back to eager.',
        """\
framegraft.config.suppress_errors = True

def compiler(gm, example_inputs):
    raise NotImplementedError("no code for this graph")

@framegraft.compile(backend=compiler)
def f(x):
    return x + 1
""",
    ),
)

REASONS: dict[str, Reason] = {r.id: r for r in _SEED}
assert len(REASONS) == len(_SEED), "a reason id is given twice"


def reason(id: str) -> Reason:
    """The reason called ``id``; a generic one for an id that is not in the table (a test keeps that from happening)."""
    found = REASONS.get(id)
    if found is not None:
        return found
    return Reason(id, "The program does something that cannot be captured.", "Do it outside of the compiled function.", "")
