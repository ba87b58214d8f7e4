"""What the verdicts come to, as tables in Markdown."""

import collections


def summary(verdicts: list[dict]) -> str:
    lines = ["| database | cases | same | one graph | raises as eager | broken | differs | errors and crashes | not repeatable |",
             "|---|---|---|---|---|---|---|---|---|"]
    for database in dict.fromkeys(v["database"] for v in verdicts):
        found = [v for v in verdicts if v["database"] == database]
        kinds = collections.Counter(v["kind"] for v in found)
        whole = sum(v["kind"] == "same" and v["graphs"] == 1 and not v["reasons"] for v in found)
        raises = sum(v["kind"] == "same" and bool(v["raised"]) for v in found)
        broken = sum(v["kind"] == "same" and bool(v["reasons"]) and not v["raised"] for v in found)
        bad = kinds["internal error"] + kinds["crash"]
        lines.append(f"| {database} | {len(found)} | {kinds['same']} | {whole} | {raises} | {broken} | {kinds['differs']} | {bad} "
                     f"| {kinds['broken input']} |")
    reasons: dict[str, set] = collections.defaultdict(set)
    for v in verdicts:
        if not v["raised"]:
            for reason in v["reasons"]:
                reasons[reason.partition(":")[0]].add(v["name"].partition(" ")[0])
    lines += ["", "| reason of a break | met with |", "|---|---|"]
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {reason} | {len(names)} of the names: {', '.join(sorted(names)[:12])} |")
    wrong = sorted({v["name"].partition(" ")[0] for v in verdicts if v["wrong_fakes"]})
    lines += ["", f"Facts of results that shape propagation gets wrong: {len(wrong)} of the names. {', '.join(wrong)}"]
    return "\n".join(lines)
