"""What instructions mean on trackers: the operations that rules and builtins share, gathered in one namespace.

The parts live in their own files; this one re-exports them so that rules can say ``core.get_attr``.
"""

from ..interp.state import need_constant
from .attributes import attribute_name, get_attr, special_method
from .calls import call, inline_call, send, value_of_stop
from .containers import del_item, mapping_items, sequence_items, set_item
from .hashed import dict_get, dict_set, hash_key, set_add, set_update
from .iteration import drawn, get_iter, next_item, unpack_iterable
from .names import cell_contents, check_written, delete_global, import_module, load_global, lookup_global, store_cell
from .operators import apply, format_value
from .storing import del_attr, set_attr
from .truth import truth
from .wrapping import need_constant_deep, wrap_class, wrap_constant

__all__ = [
    "apply",
    "attribute_name",
    "call",
    "cell_contents",
    "check_written",
    "del_attr",
    "del_item",
    "delete_global",
    "dict_get",
    "dict_set",
    "drawn",
    "format_value",
    "get_attr",
    "get_iter",
    "hash_key",
    "import_module",
    "inline_call",
    "load_global",
    "lookup_global",
    "mapping_items",
    "need_constant",
    "need_constant_deep",
    "next_item",
    "send",
    "sequence_items",
    "set_add",
    "set_attr",
    "set_item",
    "set_update",
    "special_method",
    "store_cell",
    "truth",
    "unpack_iterable",
    "value_of_stop",
    "wrap_class",
    "wrap_constant",
]
