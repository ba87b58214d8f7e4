"""What turns a captured graph into a callable: a registry of names, and the backends that come with the package."""

from .registry import call_backend, list_backends, lookup_backend, make_backend, register_backend

__all__ = ["call_backend", "list_backends", "lookup_backend", "make_backend", "register_backend"]
