"""``torch.distributions``: plain Python that is traced like the program's, but for its lazy properties."""

from __future__ import annotations

from typing import Any

from torch.distributions.utils import lazy_property

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import MISSING, ObjectVariable, VariableTracker
from ..polyfills import distributions as polyfills
from ..semantics import calls
from ..semantics.wrapping import wrap_pinned

calls.REPLACED[lazy_property.__get__.__code__] = polyfills.read_lazily


@handles(polyfills.of_class)
def of_class(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    lazy = args[0]
    if not isinstance(lazy, ObjectVariable) or lazy.value is MISSING:
        raise GraphBreak("unsupported_attribute", "a lazy property made in the trace, read from its class")
    return wrap_pinned(tx, polyfills.of_class(lazy.value))
