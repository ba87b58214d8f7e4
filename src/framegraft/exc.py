"""The public errors of Framegraft; ``FramegraftError`` is the base class of all."""

from .errors import (
    BackendCompilerFailed,
    ConfigError,
    ConstraintViolation,
    DecompileError,
    DoubleBackwardError,
    ExportError,
    FramegraftError,
    InternalError,
    InvalidBackend,
    RecompileError,
    RecompileLimitExceeded,
    Unsupported,
)

__all__ = [
    "BackendCompilerFailed",
    "ConfigError",
    "ConstraintViolation",
    "DecompileError",
    "DoubleBackwardError",
    "ExportError",
    "FramegraftError",
    "InternalError",
    "InvalidBackend",
    "RecompileError",
    "RecompileLimitExceeded",
    "Unsupported",
]
