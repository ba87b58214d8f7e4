"""CPython 3.13."""

from .features import Features

FEATURES = Features(
    name="3.13", null_above=True, compare_shift=5, jump_tests_bool=True, unchecked_loads=True, generators_wrapped=True,
    yield_tells_depth=False, looks_before=True, exits={"FOR_ITER": ("END_FOR", "POP_TOP"), "SEND": ("END_SEND",)},
)
