from . import equations, loops, models  # noqa: F401 - they register themselves
from .common import PROGRAMS

__all__ = ["PROGRAMS"]
