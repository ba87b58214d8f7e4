"""CPython 3.12."""

from .features import Features

FEATURES = Features(
    name="3.12", null_above=False, compare_shift=4, jump_tests_bool=False, unchecked_loads=True, generators_wrapped=True,
    yield_tells_depth=True, looks_before=False, exits={"FOR_ITER": ("END_FOR",), "SEND": ("END_SEND",)},
)
