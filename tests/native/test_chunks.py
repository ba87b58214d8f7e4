"""Chunks of Python's stack that a call has let go of are kept for the next one."""

import subprocess
import sys

PROGRAM = """
import sys
import threading
if sys.argv[1] == "kept":
    import framegraft
import resource


def leaf():
    return 0


def deep(depth, then):
    return then() if depth == 0 else deep(depth - 1, then)


def faults():
    # From each place in a chunk, so that one of these frames is the first of another.
    most = 0
    for depth in range(0, 200, 5):
        def calls():
            for _ in range(10):
                deep(100, leaf)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(50):
                deep(100, leaf)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        most = max(most, deep(depth, calls))
    return most


results = [faults()]
threads = [threading.Thread(target=lambda: results.append(faults())) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.setrecursionlimit(20_000)
assert deep(15_000, leaf) == 0  # more chunks than are kept
print(results[0])
"""


def page_faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_calls_at_the_end_of_a_chunk_map_nothing() -> None:
    kept = page_faults("kept")
    assert kept < 50, f"{kept} in 50 calls"
    if sys.version_info >= (3, 11):
        assert page_faults("not kept") >= 50  # or the test would see nothing
