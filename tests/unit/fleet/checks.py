"""What must hold of every decision that is recorded, judged by what truly happened.

How far a target may be is worked out here once more, and in another way: `reached` is the first stage that was never
seen to be done while the target was the same. What people said, and when clusters arrived, is what the simulated world
knows of it, and not what the code under test has noted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from starling.api import seconds
from starling.api.v1alpha1 import Admitted, Rollout, RolloutStage
from starling.fleet import Member
from starling.fleet.windows import is_open
from tests.unit.fleet.simulated import SimCluster, Thought
from tests.unit.fleet.simulated_people import People


def stage_of(policy: Rollout, labels: Mapping[str, str]) -> int:
    """The number of the stage that clusters with these labels are in."""
    for number, stage in enumerate(policy.stages):
        if stage.selector.match_labels.items() <= labels.items():
            return number
    return len(policy.stages)


def part(number: int | str, of: int) -> int:
    """What a number, or a percentage rounded down, comes to."""
    return number if isinstance(number, int) else of * int(number[:-1]) // 100


def stage_at(policy: Rollout, number: int) -> RolloutStage | None:
    """What the policy says of a stage; None: it is the rest."""
    return policy.stages[number] if number < len(policy.stages) else None


def bound(policy: Rollout, number: int, size: int) -> int:
    """How many of a stage may be on their way."""
    stage = stage_at(policy, number)
    most = stage.max_concurrent if stage is not None and stage.max_concurrent is not None else policy.max_concurrent
    return max(1, min(part(most, size), 200))


@dataclass(frozen=True, slots=True)
class Case:
    """A decision about to be recorded, by stage."""

    thought: Thought
    seen: dict[str, Member]
    stages: dict[str, int]

    @staticmethod
    def of(thought: Thought) -> "Case":
        seen = {member.name: member for member in thought.members}
        return Case(thought, seen, {name: stage_of(thought.policy, each.labels) for name, each in seen.items()})

    def size(self, number: int) -> int:
        return sum(member.selected and self.stages[name] == number for name, member in self.seen.items())

    def overdue(self, place: Admitted) -> bool:
        return self.thought.now - place.since >= timedelta(seconds=seconds(self.thought.policy.timeout))

    def held(self, name: str) -> bool:
        """Whether a cluster had a place before, and time left."""
        before = self.thought.record.names.get(name)
        return before is not None and not before.restore and not self.overdue(before)

    @property
    def new(self) -> Iterator[Admitted]:
        """Those that are admitted to where they weren't on their way to before."""
        before = self.thought.record.names
        for each in self.thought.decision.admitted:
            was = before.get(each.cluster)
            same = was is not None and not was.restore and (was.leave, was.target) == (each.leave, each.target)
            if not each.restore and not same:
                yield each


@dataclass(slots=True)
class Checks:
    """Follows one rollout; `most` is the most that were ever allowed to be on their way in a stage."""

    target: str = ""
    reached: int = 0
    most: dict[int, int] = field(default_factory=dict)
    asked: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    """What was to be confirmed: of which spec, that which clusters stay."""
    good: set[str] = field(default_factory=set)
    """Targets that have been through, or that people went back to, or that clusters were found with."""

    def decided(self, thought: Thought, people: People) -> None:
        """Check a decision that is being recorded."""
        case = Case.of(thought)
        _check_numbers(thought)
        self._check_bounds(case)
        self._check_course(case)
        _check_stops(case)
        self._check_order(case, people)
        self._check_ways(case)
        _check_windows(case)
        self._check_leaving(case)

    def admitted(self, thought: Thought, clusters: Mapping[str, SimCluster]) -> None:
        """Note by which labels clusters were admitted, and who was seen with others meanwhile."""
        before, seen = thought.record.names, {member.name: member for member in thought.members}
        for each in thought.decision.admitted:
            if (cluster := clusters.get(each.cluster)) is None:
                continue
            labels = seen[each.cluster].labels
            number = stage_of(thought.policy, labels)
            if each != before.get(each.cluster):
                cluster.stage, cluster.shifted = number, cluster.labels != labels
            cluster.shifted = cluster.shifted or cluster.stage != number

    def moving(self, clusters: Iterable[SimCluster]) -> None:
        """Check that no more are truly on their way than may be."""
        counts: dict[int, int] = {}
        for each in clusters:
            if each.moving and not each.excused and not each.shifted:
                counts[each.stage] = counts.get(each.stage, 0) + 1
        for number, count in counts.items():
            assert count <= self.most.get(number, 0), f"{count} on their way in stage {number}: {self.most}"

    def _check_bounds(self, case: Case) -> None:
        """Each that is admitted fits into its stage."""
        thought = case.thought
        for number in range(len(thought.policy.stages) + 1):
            most = bound(thought.policy, number, case.size(number))
            self.most[number] = max(self.most.get(number, 0), most)
            there = [each for each in thought.decision.admitted if case.stages[each.cluster] == number]
            if any(each.since == thought.now and not each.restore and not case.held(each.cluster) for each in there):
                holding = [each.cluster for each in there if not each.restore and not case.overdue(each)]
                assert len(holding) <= most, f"{holding} are admitted in stage {number}, {most} may be"

    def _check_course(self, case: Case) -> None:
        """A target ends, fails, and is tried again only for a reason."""
        before, facts, course = case.thought.record, case.thought.facts, case.thought.decision.course
        target, asked = facts.target, facts.asked if facts.asked and facts.asked.id != before.course.order else None
        retried = asked is not None and (asked.verb, asked.target) == ("retry", target)
        if target != self.target or (retried and before.course.failed_target == target):
            self.target, self.reached = target, 0
        while self.reached <= len(case.thought.policy.stages) and _is_done(case, self.reached):
            self.reached += 1
        if course.ended == target != before.course.ended and target:
            assert self.reached > len(case.thought.policy.stages), f"{target} ended in stage {self.reached}"
            self.good.add(target)
        if before.target == target == before.course.failed_target:
            undone = asked is not None and (asked.verb, asked.target) == ("undo", target)
            assert course.failed_target == target or retried, "a failed target was forgotten"
            back = before.course.rollback_to
            assert undone or retried or back in ("", course.rollback_to) or back in facts.forgotten
        if asked is not None and (asked.verb, asked.target) == ("undo", target):
            self.good.add(asked.to)
        self._check_good(case)

    def _check_good(self, case: Case) -> None:
        before, good = case.thought.record, case.thought.decision.course.last_good
        if good and good not in self.good:  # or else all were found with it
            assert not before.admitted
            assert {member.entry for member in case.seen.values() if member.selected} == {good}
            self.good.add(good)

    def _check_order(self, case: Case, people: People) -> None:
        """Nobody gets a target before those of earlier stages are well with it, and all is said that is to be said."""
        thought, course = case.thought, case.thought.decision.course
        for each in case.new:
            number = case.stages[each.cluster]
            if each.leave or each.target != thought.facts.target or course.ended == each.target:
                continue
            assert number <= self.reached, f"{each.cluster} of stage {number} is admitted, {self.reached} isn't done"
            stage = stage_at(thought.policy, number)
            if stage is not None and course.stage == stage.name:
                pair = (each.target, stage.name)
                assert stage.approval != "Manual" or pair in people.approved, f"nobody approved {pair}"
                assert stage.gate is None or pair in people.passed, f"no gate passed {pair}"

    def _check_ways(self, case: Case) -> None:
        """Clusters go to the target, unless it failed, or to what was good before."""
        thought, course = case.thought, case.thought.decision.course
        for each in case.new:
            if each.leave:
                continue
            failed = course.failed_target == thought.facts.target
            back = {course.rollback_to} if course.rollback_to else set()
            if case.seen[each.cluster].entry is None or each.cluster in thought.record.names:
                back.add(course.last_good)
            assert each.target in back or (not failed and each.target == thought.facts.target), f"{each} {course}"
            assert each.target == thought.facts.target or each.target in self.good, f"{each.target} was never good"

    def _check_leaving(self, case: Case) -> None:
        """Many are left only if someone said that the others stay."""
        thought, members = case.thought, case.thought.members
        stay = frozenset(member.name for member in members if member.selected)
        if any(each.leave for each in case.new):
            names = {each.cluster for each in thought.decision.admitted}
            going = sum(m.leaves or (not m.selected and m.name in names) for m in members)
            few = going <= max(1, (len(stay) + going) / 10)
            confirmed = self.asked.get(thought.facts.confirmed) == (thought.facts.salt, stay)
            assert few or confirmed, f"{going} of {len(stay) + going} leave, and nobody said they may"
            assert not any(each.leave and each.cluster in stay for each in thought.decision.admitted)
        if thought.decision.confirm:
            self.asked[thought.decision.confirm] = (thought.facts.salt, stay)


def _check_numbers(thought: Thought) -> None:
    """The counter tells what is new, and the summary adds up."""
    members, decision, record = thought.members, thought.decision, thought.record
    names = [each.cluster for each in decision.admitted]
    assert len(set(names)) == len(names) <= 200
    assert decision.admission >= record.admission
    assert decision.recheck_after is None or decision.recheck_after > 0
    summary = decision.summary
    counts = (summary.pending, summary.updating, summary.succeeded, summary.failed)
    assert sum(counts) + summary.unreachable + summary.held == summary.total == sum(m.selected for m in members)
    changed = [each for each in decision.admitted if each not in record.admitted]
    if changed:
        assert decision.admission > max((record.admission, *(m.admission for m in members)))
        assert all(each.admission == decision.admission for each in changed)


def _check_stops(case: Case) -> None:
    """Nothing new starts that someone has stopped."""
    thought = case.thought
    added = {each.cluster for each in thought.decision.admitted} - set(thought.record.names)
    assert not added or not (thought.policy.paused or thought.facts.suspended), f"{added} are admitted while it rests"


def _check_windows(case: Case) -> None:
    """While no window is open, clusters only return, or get their first."""
    thought, course = case.thought, case.thought.decision.course
    if is_open(thought.policy.windows, thought.now):
        return
    for each in case.new:
        first = case.seen[each.cluster].entry is None and each.target in (course.last_good, course.ended)
        returns = bool(course.rollback_to) and each.target == course.rollback_to
        assert each.leave or first or returns, f"{each} starts while no window is open"


def _is_done(case: Case, number: int) -> bool:
    """Whether a stage is through: all that can be are well, but for those that may fail, and have been long enough."""
    thought, target = case.thought, case.thought.facts.target
    names = [name for name, n in case.stages.items() if n == number and case.seen[name].selected]
    members = [case.seen[name] for name in names]
    able = [m for m in members if m.reachable and m.adopted and m.mode == "Active"]
    unwell = [member for member in able if not _is_well(case, member)]
    allowed = part(thought.policy.max_failures, len(members))
    if len(unwell) > allowed and thought.policy.on_failure != "Continue":
        return False
    if any(member.entry != target and member.name not in thought.record.names for member in unwell):
        return False
    away = [m for m in members if not m.reachable and not m.reports(target, "succeeded", "failed")]
    if thought.policy.unreachable == "Wait" and away:
        return False
    stage = stage_at(thought.policy, number)
    bake = timedelta(seconds=seconds(stage.bake)) if stage is not None else timedelta()
    times = [arrived[1] for name in names if (arrived := thought.arrived.get(name)) and arrived[0] == target]
    return all(thought.now - each >= bake for each in times)


def _is_well(case: Case, member: Member) -> bool:
    place = case.thought.record.names.get(member.name)
    newer = place is not None and place.admission > member.admission and not place.restore
    return member.reports(case.thought.facts.target, "succeeded") and not newer
