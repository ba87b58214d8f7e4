"""The public errors of Framegraft; ``FramegraftError`` is the base class of all."""

from .errors import (
    BackendCompilerFailed,
    ConfigError,
    DecompileError,
    ExportError,
    FramegraftError,
    InternalError,
    InvalidBackend,
    RecompileLimitExceeded,
    Unsupported,
)

__all__ = [
    "BackendCompilerFailed",
    "ConfigError",
    "DecompileError",
    "ExportError",
    "FramegraftError",
    "InternalError",
    "InvalidBackend",
    "RecompileLimitExceeded",
    "Unsupported",
]
