"""Breaks the rollout planner in ways that someone might, one at a time, and tells which of them the tests catch.

    python -m tests.mutations.rollout [--simulated] [NAME …]

Each mutation is a piece of text that occurs once in a file of the planner, and what is put in its place, in a copy. The
tests of single decisions run first, and the simulation if these find nothing; with --simulated it alone. It ends with 1
if any mutation survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = Path("tests/unit/fleet")
DECISIONS: Final = tuple(
    str(TESTS / f"test_rollout_{each}.py") for each in ("decisions", "stages", "failures", "timing")
)
SIMULATION: Final = (str(TESTS / "test_rollouts_keep_their_bounds.py"),)
AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way in which a file of the planner may be wrong."""

    name: str
    file: str
    text: str
    instead: str


MUTATIONS: Final = (
    # Bounds
    Mutation("one more at once than may", "rollout", "if room[numbers[name]] <= 0 or", "if room[numbers[name]] < 0 or"),
    Mutation(
        "shares are rounded up",
        "stages",
        'int(number.removesuffix("%")) // 100',
        'int(number.removesuffix("%")) // 100 + 1',
    ),
    Mutation("none of a small stage", "stages", "min(max(1, share(most, size))", "min(max(0, share(most, size))"),
    Mutation("a stage's own bound ignored", "stages", "if said.max_concurrent is not None else", "if False else"),
    Mutation("more than a record holds", "rollout", "(name not in held and left <= 0)", "False"),
    Mutation(
        "rollback ignores the bound",
        "rollout",
        "if room[numbers[name]] <= 0 or",
        "if (not facts.failed and room[numbers[name]] <= 0) or",
    ),
    Mutation(
        "places of another stage counted",
        "rollout",
        "room[self.staged.numbers[name]] -= place.holds",
        "room[0] -= place.holds",
    ),
    Mutation("the last stage that selects", "stages", "for n in range(last) if", "for n in reversed(range(last)) if"),
    # What is known of clusters
    Mutation(
        "stale counter accepted",
        "places",
        "self.member.entry is not None and self.member.admission >= self.admission",
        "self.member.entry is not None",
    ),
    Mutation(
        "unacknowledged word accepted", "places", "place.written and member.acknowledged and", "place.written and"
    ),
    Mutation("counter stands still", "rollout", "highest + 1 if changed", "highest if changed"),
    Mutation("timeout ignored", "places", "overdue = now - each.since >= timeout", "overdue = False"),
    Mutation(
        "unreachable counted as failed",
        "places",
        "(past or not (member.selected and member.able))",
        "past",
    ),
    Mutation(
        "restore forgotten", "places", "return replace(place, admission=0, leave=False, restore=True)", "return None"
    ),
    Mutation(
        "those on their way don't turn round", "places", "elsewhere = wanted is not None and", "elsewhere = False and"
    ),
    Mutation("an old view turns clusters round", "places", "(wanted, facts.aim, facts", "(wanted, facts"),
    # Stages
    Mutation("the next stage starts at once", "course", "turn = stage == facts.course.stage and", "turn = True and"),
    Mutation(
        "those on their way don't hold up a stage",
        "course",
        "if tally.pending or tally.holds or",
        "if tally.pending or",
    ),
    Mutation("Wait ignored", "course", 'staged.policy.unreachable == "Wait" and tally.unreachable', "False"),
    Mutation("the unwell don't hold up a stage", "course", "if not _well(tally, stage, failing=failing):", "if False:"),
    Mutation("forgotten bake", "course", "if now - (course.baking_since or now) < stage.bake:", "if False:"),
    Mutation(
        "bake from the first success",
        "course",
        "return replace(course, stage_started=started, baking_since=None)",
        "return replace(course, stage_started=started, baking_since=course.baking_since or (now if started else None))",
    ),
    Mutation("who was there doesn't bake", "course", "or (stage.bake and tally.there)", ""),
    Mutation("nobody looks when it has baked", "rollout", "if facts.course.baking_since is not None:", "if False:"),
    Mutation("approval of another target accepted", "course", "if order.target != facts.target:", "if False:"),
    Mutation("approval ignored", "course", "approved = not stage.manual or", "approved = True or"),
    Mutation(
        "approvals outlive their target",
        "course",
        "order=course.order, failures=course.failures",
        "order=course.order, failures=course.failures, approvals=course.approvals",
    ),
    Mutation(
        "orders carried out again", "course", "if order is None or order.id == course.order:", "if order is None:"
    ),
    Mutation("gate ignored", "course", "return approved and (stage.gate is None or", "return approved and (True or"),
    Mutation(
        "any gate will do", "course", "if stage.name in facts.passed and stage.gate", "if facts.passed and stage.gate"
    ),
    Mutation(
        "a new cluster gets the target at once",
        "course",
        "facts.target if started and may_update and first is None else first",
        "facts.target if started and may_update else first",
    ),
    # Failures
    Mutation("one more may fail", "course", "tally.failed > stage.budget", "tally.failed > stage.budget + 1"),
    Mutation(
        "failures counted over the fleet",
        "course",
        "if tally.failed > stage.budget]",
        "if sum(each.failed for each in tallies) > sum(each.budget for each in staged.stages)]",
    ),
    Mutation("a failed target goes on", "course", 'if beyond and policy.on_failure != "Continue":', "if False:"),
    Mutation("Continue ignored", "course", 'if beyond and policy.on_failure != "Continue":', "if beyond:"),
    Mutation("what failed is good", "course", "course = facts.course if failing else", "course ="),
    Mutation(
        "what nobody is well with is good", "course", "if not any(tally.succeeded for tally in tallies):", "if False:"
    ),
    Mutation(
        "what nobody got well with never ends", "course", "tally.succeeded or tally.failed for", "tally.succeeded for"
    ),
    Mutation(
        "back to what nobody knows", "course", "if course.rollback_to not in facts.forgotten else", "if True else"
    ),
    Mutation("bakes what hasn't begun", "standing", "(place.holds or place.unbegun) and", "place.holds and"),
    Mutation("rollback forgotten", "course", "return facts.course.rollback_to or first", "return first"),
    Mutation(
        "retry ignored", "course", 'case "retry" if course.failed_target == facts.target:', 'case "retry" if False:'
    ),
    Mutation("failures before a retry count", "course", "retried_at=highest)", "retried_at=0)"),
    Mutation(
        "a failure of before a retry counts at once",
        "places",
        'ends = ("succeeded",) if retried else',
        "ends = () if False else",
    ),
    Mutation(
        "a retry skips what bakes",
        "course",
        "tuple(name for name in course.stages_done if staged.number(name) < first)",
        "tuple(stage.name for stage in staged.stages[:-1])",
    ),
    Mutation("a retry forgets who is away", "course", "(waited_for and not each.reachable)", "False"),
    Mutation("a retry begins with the first stage", "course", "if staged.number(name) < first)", "if first < 0)"),
    Mutation("who is away isn't asked for", "course", "if asks(course, stage, tally):", "if False:"),
    Mutation("a stage that was done isn't", "course", "if stage.name in course.stages_done:", "if False:"),
    Mutation(
        "who took too long is never forgotten", "rollout", "kept = sum(not place.failed for", "kept = sum(True for"
    ),
    Mutation("undo ignored", "course", 'case "undo" if order.to and', 'case "undo" if False and order.to and'),
    Mutation("what failed is good once it is undone for", "course", "if failure is None or failure.by:", "if True:"),
    Mutation("what was undone stays good", "course", 'if course.last_good != facts.target else ""', 'if True else ""'),
    Mutation("failures forgotten", "course", "order=course.order, failures=course.failures", "order=course.order"),
    Mutation(
        "what was made good still failed",
        "course",
        "last_good=facts.target, failures=others)",
        "last_good=facts.target)",
    ),
    Mutation(
        "what came round isn't good",
        "course",
        "return _made_good(facts, tallies) if recovered",
        "return course if recovered",
    ),
    Mutation("what fails still is good", "course", "_well(tally, stage, failing=False) for", "True for"),
    Mutation("what comes is good before", "course", "recovered = all(not tally.pending and", "recovered = all("),
    Mutation(
        "through though a stage waits",
        "standing",
        'if standing.waits:\n        return "Waiting"',
        "if False:\n        pass",
    ),
    Mutation("good before it is through", "rollout", "if shared == facts.target:", "if False:"),
    # Targets and times
    Mutation("supersede ignored", "rollout", 'if policy.supersede == "Now" or', "if True or"),
    Mutation("nothing is ever superseded", "rollout", "or facts.ended or facts.failed:", "or facts.failed:"),
    Mutation("skipped target restarted", "places", "past = place.target != facts.aim or", "past ="),
    Mutation(
        "window ignored", "rollout", "may_update = is_open(self.staged.policy.windows, self.now)", "may_update = True"
    ),
    Mutation("stages start outside of windows", "course", " and is_open(staged.policy.windows, now)", ""),
    Mutation("jitter ignored", "course", "if not jitter:", "if True:"),
    Mutation("nobody looks when the jitter is over", "rollout", "and seconds(policy.jitter):", "and False:"),
    Mutation("pause ignored", "course", "return facts.suspended or staged.policy.paused", "return facts.suspended"),
)


def main() -> int:
    """Try all mutations, or those that are named; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--simulated", action="store_true", help="run the simulation alone")
    asked = parser.parse_args()
    chosen = [each for each in MUTATIONS if not asked.names or each.name in asked.names]
    suites = (SIMULATION,) if asked.simulated else (DECISIONS, SIMULATION)
    for each in chosen:
        mutated(each)  # all texts are there before anything runs
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        if failure := caught(None, Path(folder) / "whole", (DECISIONS,)):
            sys.exit(f"the tests fail though nothing is broken: {failure}")
        runs = [pool.submit(caught, each, Path(folder) / str(number), suites) for number, each in enumerate(chosen)]
        survivors = 0
        for each, run in zip(chosen, runs, strict=True):
            by = run.result()
            survivors += not by
            print(f"{'caught' if by else 'SURVIVED':9} {each.name:45} {by}", flush=True)  # noqa: T201 - what it is for
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")  # noqa: T201 - what it is for
    return 1 if survivors else 0


def mutated(mutation: Mutation) -> str:
    """The file's text, broken."""
    text = (ROOT / "src/starling/fleet" / f"{mutation.file}.py").read_text()
    if (found := text.count(mutation.text)) != 1:
        sys.exit(f"mutation {mutation.name!r}: {mutation.file}.py has its text {found} times, not once")
    return text.replace(mutation.text, mutation.instead)


def caught(mutation: Mutation | None, place: Path, suites: tuple[tuple[str, ...], ...]) -> str:
    """The test that fails in a copy with a mutation, or none at all; empty if all pass."""
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / TESTS, place / TESTS, ignore=shutil.ignore_patterns("__pycache__"))
    for each in ("pyproject.toml", "tests/rounds.py"):
        shutil.copy(ROOT / each, place / each)
    if mutation is not None:
        (place / "src/starling/fleet" / f"{mutation.file}.py").write_text(mutated(mutation))
    failed = next((found for suite in suites if (found := _failing(place, suite))), "")
    shutil.rmtree(place)
    return failed


def _failing(place: Path, suite: tuple[str, ...]) -> str:
    """The first test of a suite that fails; the code it runs is the copy's."""
    settings = {"PYTHONPATH": str(place / "src"), "STARLING_ROUNDS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(
        (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *suite),
        cwd=place,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode == 0:
        return ""
    failures = [line for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failures[0].partition("::")[2].partition(" - ")[0] if failures else f"pytest ended with {found.returncode}"


if __name__ == "__main__":
    sys.exit(main())
