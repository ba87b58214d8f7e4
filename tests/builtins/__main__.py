"""``python -m tests.builtins [--share 0.1] [--only list.]``: all cases, differences printed, verdicts counted."""

import argparse
import collections
import itertools
import sys
import time

from .cases import MODULES, SAMPLES, function_cases, method_cases, operator_cases, some
from .check import difference


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.builtins")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    cases = itertools.chain(*(method_cases(k) for k in SAMPLES), *(function_cases(m) for m in MODULES), operator_cases())
    verdicts: collections.Counter = collections.Counter()
    wrong = 0
    begun = time.monotonic()
    for case in some((c for c in cases if args.only in c.id), args.share, args.seed):
        for inside in (False, True):
            found, verdict = difference(case, inside)
            verdicts[verdict] += 1
            if found is not None:
                wrong += 1
                print(f"{'inside ' if inside else 'outside'} {case}\n    {found}", flush=True)
    print(f"{sum(verdicts.values())} calls in {time.monotonic() - begun:.0f} s, {wrong} differ; {verdicts.most_common()}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
