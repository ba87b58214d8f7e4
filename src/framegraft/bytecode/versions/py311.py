"""CPython 3.11."""

from .features import Features

FEATURES = Features(
    name="3.11", null_above=False, compare_shift=0, jump_tests_bool=False, unchecked_loads=False, generators_wrapped=False,
    yield_tells_depth=False, looks_before=False, exits={"FOR_ITER": (), "SEND": ()},
)
