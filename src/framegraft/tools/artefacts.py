"""``framegraft.prepare_debug(directory)``: everything that a capture makes, as files that a person can read.

One folder for each entry, named ``<frame>_<index>_<function>``:

    original.py            the user's function
    transformed.py         the code that runs instead (a disassembly, with the reason, where there is no source for it)
    __compiled_fn_N.py     the graph: readable, and runnable by itself with inputs of the same shapes
    __resume_at_M_N.py     the resume functions that the transformed code calls, and those that they call
    __step_at_M_N.py       the instruction that broke the graph, where that was in a function that the trace had entered
    guards.py              when the entry may be used again, with the reason of each guard
    break.txt              why the graph ended where it did
    frame.pkl              with ``frames=True``: the function and its arguments, for ``replay``; frame.txt where that is not possible
    aot_*.py, inductor_*.py  what AOTAutograd and inductor made of the graph, where they were used
"""

from __future__ import annotations

import logging
import pathlib
import textwrap
import weakref
from typing import Any

from torch._logging._internal import trace_log

from .. import _native, events
from ..bytecode.encode import in_order
from ..emit.resume import origin_of
from ..emit.step import Caller, Step
from ..run import records
from ..run.names import InstalledName
from . import sources
from .details import Break, Collector
from .frames import record_event

# Payloads of torch's structured trace -> file name.
_PAYLOADS = {
    "aot_joint_graph": "aot_joint.py",
    "aot_forward_graph": "aot_forward.py",
    "aot_backward_graph": "aot_backward.py",
    "aot_inference_graph": "aot_inference.py",
    "inductor_output_code": "inductor_output.py",
}
_NAMED = {"inductor_post_grad_graph": "inductor_post_grad.py", "fx_graph_runnable": "inductor_runnable.py"}


class Artefacts(Collector):
    """``with Artefacts(directory): ...`` writes a folder for each entry that is made inside. ``written`` lists them."""

    def __init__(self, directory: str | pathlib.Path, frames: bool = False) -> None:
        super().__init__(measure=False)
        self.frames = frames
        self.directory = pathlib.Path(directory).resolve()
        self.written: list[pathlib.Path] = []
        self._folders: dict[int, pathlib.Path] = {}
        self._by_id: dict[tuple[int, int], pathlib.Path] = {}
        self._current: list[records.Capture] = []
        self._inputs: dict[int, list[Any]] = {}
        self._compilers = _Compilers(self)

    def __enter__(self) -> Artefacts:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._compilers.attach()
        super().__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        super().__exit__(*exc_info)
        self._compilers.detach()

    def folder(self, capture: records.Capture) -> pathlib.Path:
        found = self._folders.get(capture.number)
        if found is None:
            code = capture.code()
            name = sources.function_name(code) if code is not None else "function"
            name = f"{capture.frame}_{capture.index}_{name}" + (f"_line_{capture.resume}" if capture.resume else "")
            found = self.directory / name
            again = 1
            while found in self.written:  # the numbers start anew after framegraft.reset()
                again += 1
                found = self.directory / f"{name}.{again}"
            found.mkdir(parents=True, exist_ok=True)
            self._folders[capture.number] = self._by_id[capture.frame, capture.index] = found
            self.written.append(found)
        return found

    def write(self, capture: records.Capture, name: str, text: str) -> pathlib.Path:
        path = self.folder(capture) / name
        path.write_text(text)
        return path

    # -- what happens

    def capture_started(self, event: events.CaptureStarted) -> None:
        super().capture_started(event)
        self._current.append(event.capture)

    def graph_compiled(self, event: events.GraphCompiled) -> None:
        super().graph_compiled(event)
        head = f"Graph {event.name} of {title(event.capture)}.\n\nRuns by itself: python {event.name}.py\n"
        self.write(event.capture, f"{event.name}.py", sources.graph_file(event.module, event.inputs, head))

    def entry_made(self, event: events.EntryMade) -> None:
        super().entry_made(event)
        capture, entry = event.capture, event.entry
        entry.info.folder = self.folder(capture)
        code = capture.code()
        text, _ = sources.user_source(capture.filename, capture.line)
        if not text and code is not None:
            text = "# The file is not to be had; this is decompiled.\n" + sources.readable_code(origin_of(code))[0]
        self.write(capture, "original.py", f"# {capture.filename}:{capture.line}\n{textwrap.dedent(text)}")
        transformed = in_order(entry.code)
        self.write(capture, "transformed.py", transformed_text(capture, transformed)[0])
        for name, resume in resume_functions(transformed):
            source, refused = sources.readable_code(resume.__code__, name)
            head = f'"""{_part(name, resume)} {title(capture)}{refusal(refused)}"""\n\n'
            self.write(capture, f"{name}.py", head + source)
        if self.frames:
            refused = record_event(event, self.folder(capture))
            if refused:
                self.write(capture, "frame.txt", refused + "\n")
        self.write(capture, "guards.py", sources.guards_text(self.detail(capture).guards, f"When {title(capture)} may be used again."))
        if capture.broken is not None:
            self.write(capture, "break.txt", Break.of(capture.broken).text + "\n")

    def capture_ended(self, event: events.CaptureEnded) -> None:
        capture = event.capture
        self._current.remove(capture)
        self.infos.clear()  # nothing of the program stays alive for the files' sake
        if capture.outcome != "entry" and capture.broken is not None:
            self.write(capture, "break.txt", Break.of(capture.broken).text + "\n")

    def payload(self, frame: int | None, index: int | None, name: str, text: str) -> None:
        """A compiler behind the capture has written something: now, or later, in the first backward pass."""
        folder = self._by_id.get((frame, index)) if frame is not None and index is not None else None
        if folder is None and self._current:
            folder = self.folder(self._current[-1])
        if folder is None:
            return
        path, again = folder / name, 1
        while path.exists() and path.read_text() != text:
            again += 1
            path = folder / name.replace(".", f"_{again}.")
        path.write_text(text)


def title(capture: records.Capture) -> str:
    where = f"{capture.filename}:{capture.resume or capture.line}"
    return f"{capture.name}{' (resumed)' if capture.resume else ''} ({where}), entry {capture.index}"


def _part(name: str, function: Any) -> str:
    if name.startswith(Caller.prefix):
        return f"The call that waits in {function.__code__.co_name}, for those who walk the stack. Made for"
    what = "The instruction that broke the graph, in" if name.startswith(Step.prefix) else "What is left of"
    return f"{what} {function.__code__.co_name} after the break. Made for"


def refusal(refused: str) -> str:
    return f"\n\nNo source for this code: {refused}\n" if refused else ""


def transformed_text(capture: records.Capture, code: Any) -> tuple[str, bool]:
    """The file of a transformed code, and whether it is source (not a disassembly)."""
    source, refused = sources.readable_code(code)
    return f'"""What runs instead of {title(capture)}.{refusal(refused)}"""\n\n{source}', not refused


def resume_functions(code: Any) -> list[tuple[str, Any]]:
    """(name, function) of the resume functions that a transformed code uses, of those that these call, and of single instructions."""
    found: list[tuple[str, Any]] = []
    for const in code.co_consts:
        if isinstance(const, InstalledName):
            if isinstance(const.obj, _native.CompiledFunction):
                found += [(const.name, const.obj.fn), *resume_functions(const.obj.fn.__code__)]
            elif const.name.startswith((Step.prefix, Caller.prefix)):
                found.append((const.name, const.obj))
    return found


class _Compilers(logging.Handler):
    """Listens to torch's structured trace, to which AOTAutograd and inductor tell what they make."""

    def __init__(self, artefacts: Artefacts) -> None:
        super().__init__()
        self._artefacts = weakref.ref(artefacts)
        self._before: tuple[int, bool] = (0, True)

    def attach(self) -> None:
        self._before = (trace_log.level, trace_log.propagate)
        trace_log.setLevel(logging.DEBUG)
        trace_log.propagate = False
        trace_log.addHandler(self)

    def detach(self) -> None:
        trace_log.removeHandler(self)
        trace_log.level, trace_log.propagate = self._before
        trace_log.setLevel(self._before[0])

    def emit(self, record: logging.LogRecord) -> None:
        metadata, payload = getattr(record, "metadata", None), getattr(record, "payload", None)
        artefacts = self._artefacts()
        if not isinstance(metadata, dict) or not isinstance(payload, str) or artefacts is None:
            return
        name = next((file for key, file in _PAYLOADS.items() if key in metadata), None)
        if name is None:
            named = metadata.get("artifact")
            name = _NAMED.get(named.get("name", "")) if isinstance(named, dict) else None
        if name is not None:
            payload = payload if name.startswith("inductor") else f"import torch\nfrom torch import device\n\n\n{payload}"
            artefacts.payload(metadata.get("frame_id"), metadata.get("frame_compile_id"), name, payload)


def prepare_debug(directory: str | pathlib.Path, frames: bool = False) -> Artefacts:
    """``with prepare_debug(directory): ...`` writes what is captured inside to files; see the module for their names.

    ``frames``: with each frame and its arguments as ``frame.pkl``, for ``replay``.
    """
    return Artefacts(directory, frames)
