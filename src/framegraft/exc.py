"""The public errors of Framegraft; ``FramegraftError`` is the base class of all."""

from .errors import (
    BackendCompilerFailed,
    ConfigError,
    FramegraftError,
    InternalError,
    InvalidBackend,
    RecompileLimitExceeded,
    Unsupported,
)

__all__ = [
    "BackendCompilerFailed",
    "ConfigError",
    "FramegraftError",
    "InternalError",
    "InvalidBackend",
    "RecompileLimitExceeded",
    "Unsupported",
]
