"""The rounds of an experiment: systems take turns, each turn begins with fresh processes and empty data."""
import contextlib
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from load import measure_command, printed_by
from processes import OUTSIDE, why


class Length(NamedTuple):
    """How long and how often."""

    rounds: int
    warm_up_seconds: int
    seconds: int
    kills: int
    seconds_after_kill: int
    fractions: tuple  # of the measured maximum, for open loops
    value_bytes: tuple
    replicas: tuple
    budget_seconds: float  # for all experiments together; what does not fit is named


class Variant(NamedTuple):
    """A system as one experiment runs it."""

    peer: object
    folder: Path  # where the data of its servers are
    setting: tuple = ()


class Experiment:
    """What all have in common; each says what a turn is and how it is shown."""

    name = ""
    title = ""
    about = ""
    setting_names = ()
    # Ours once more behind another protocol adds nothing to most.
    redis_clients = False

    def rounds(self, length):
        return length.rounds

    def how(self, length):
        """How often and how long, in words."""
        return f"{length.rounds} rounds, each {length.seconds} s after {length.warm_up_seconds} s of warm-up"

    def takes(self, peer):
        only = getattr(peer, "experiments", None)
        if only is not None and self.name not in only:
            return False
        if getattr(peer, "dead", False):
            return False
        return self.redis_clients or getattr(peer, "protocol", "") != "redis" or not peer.name.startswith("quorumwire")

    def variants(self, systems, _length):
        """`systems`: a Systems."""
        return [Variant(peer, systems.data) for peer in systems.ready if self.takes(peer)]

    def why_not(self, _peer):
        """Why a system that could be asked takes no part; None if it does."""
        return None

    def part_of(self, _peer, _length):
        """What alone a system takes part with, and why; None if with everything."""
        return None

    def turn(self, turn):
        raise NotImplementedError

    def section(self, found):
        raise NotImplementedError

    def plots(self, _found, _folder):
        """(plot, caption) each."""
        return []


class Systems(NamedTuple):
    """What can be measured, and where."""

    ready: list
    with_replicas: object  # (count) -> peers of so many replicas, those only that are ready
    data: Path  # tmpfs
    disk: Path  # a folder on a disk
    absent: tuple = ()  # (peer, why) of those that cannot be measured, or are not to be


class Turn(NamedTuple):
    """One system that runs, in one round."""

    experiment: Experiment
    variant: Variant
    cluster: object
    folder: Path
    stack: contextlib.ExitStack
    round: int
    length: Length
    found: object
    say: object

    @property
    def system(self):
        return self.variant.peer.name

    def take(self, setting, connections, in_flight, more=(), warm_up=True):
        """One load: warmed up, measured, noted; what the load program printed, or None if it failed."""
        setting = (*self.variant.setting, *setting)
        try:
            if warm_up and self.length.warm_up_seconds:
                self.run(connections, in_flight, self.length.warm_up_seconds, more)
            command = self.cluster.load_with(connections, in_flight, self.length.seconds, list(more))
            sample, printed = measure_command(self.cluster, command, self.length.seconds)
        except OUTSIDE as failed:
            self.fail(setting, why(failed))
            return None
        figures = {**sample._asdict(), "offered_per_second": printed.get("offered_per_second")}
        self.found.add(self.experiment.name, self.round, self.system, setting, figures)
        shown = " ".join(map(str, setting))
        self.say(f"{self.experiment.name}, round {self.round}, {self.system} {shown}: {sample.operations_per_second:,.0f}/s, "
                 f"p50 {sample.p50_us:,.0f} µs, p99 {sample.p99_us:,.0f} µs, others {sample.others_percent:.0f} %")
        return printed

    def run(self, connections, in_flight, seconds, more=()):
        return printed_by(self.cluster.load_with(connections, in_flight, seconds, list(more)), seconds)

    def fail(self, setting, reason):
        self.say(f"{self.experiment.name}, round {self.round}, {self.system} {setting} failed: {reason}")
        self.found.fail(self.experiment.name, self.round, self.system, setting, reason)


def measure_all(experiments, systems, length, pinning, found, say, done):
    """All experiments, one after the other, until the budget is used up; `done` is given each when it is over."""
    end = time.monotonic() + length.budget_seconds
    for experiment in experiments:
        absent = {(experiment.name, peer.name): why for peer, why in systems.absent if experiment.takes(peer)}
        found.not_offered.update(absent)
        for peer in (it for it in systems.ready if experiment.takes(it)):
            reason, part = experiment.why_not(peer), experiment.part_of(peer, length)
            if reason is not None:
                found.not_offered[experiment.name, peer.name] = reason
            elif part is not None:
                found.partly[experiment.name, peer.name] = part
        for round_number in range(1, experiment.rounds(length) + 1):
            for variant in experiment.variants(systems, length):
                if (experiment.name, variant.peer.name) in found.not_offered:
                    continue
                if time.monotonic() > end:
                    found.left_out[experiment.name] = f"no time was left after round {round_number - 1} and parts of the next"
                    continue
                take_turn(experiment, variant, round_number, length, pinning, found, say)
        done(experiment)


def take_turn(experiment, variant, round_number, length, pinning, found, say):
    """Starts a system and hands it to the experiment; only this system runs meanwhile."""
    try:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=variant.folder, prefix="quorumwire-bench-")))
            with pinning.as_server():
                cluster = variant.peer.start(stack, folder)
            if cluster.load_with is None:
                found.not_offered[experiment.name, variant.peer.name] = "its load program takes no other loads"
                return
            with pinning.as_load():
                experiment.turn(Turn(experiment, variant, cluster, folder, stack, round_number, length, found, say))
    except OUTSIDE as failed:
        say(f"{experiment.name}, round {round_number}, {variant.peer.name} failed: {why(failed)}")
        found.fail(experiment.name, round_number, variant.peer.name, variant.setting, why(failed))
