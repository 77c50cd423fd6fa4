"""How long, how often and what: the profiles, and what `--only` makes of them."""
from typing import NamedTuple

from experiments import ALL
from experiments.turns import Length
from load import LATENCY, MANY, PIPELINED, READS, WIDE

# Parts beside the experiments.
SIDE_BY_SIDE = "side-by-side"
PLANES = "planes"
# An experiment that the usual run has, too.
SERVED = "served"
# What the report calls what `side-by-side` measures.
CLOSED_LOOPS = "closed loops"
EXPERIMENTS = [experiment.name for experiment in ALL]
PARTS = [SIDE_BY_SIDE, *EXPERIMENTS, PLANES]
HOUR = 60 * 60
# What of each kind the short profile looks at.
SHORT_SYSTEMS = ("quorumwire memory", "quorumwire memory, Redis client", "etcd", "redis, WAIT 1", "redis")


class Profile(NamedTuple):
    """One run."""

    name: str
    rounds: int
    warm_up_seconds: int
    seconds: int
    workloads: list
    limit_seconds: int
    parts: list
    length: Length  # of the experiments
    systems: object = None  # names; None for all
    redis_benchmark: bool = True
    writes_results: bool = True  # RESULTS.md; else a file in out/


ALL_FRACTIONS = (0.1, 0.25, 0.5, 0.65, 0.75, 0.85, 0.95, 1.05, 1.2)
NORMAL = Length(
    rounds=5, warm_up_seconds=1, seconds=3, kills=30, seconds_after_kill=8, fractions=ALL_FRACTIONS,
    value_bytes=(8, 64, 256, 1024, 1392, 16384), replicas=(3, 5, 7), budget_seconds=12 * HOUR,
)
SHORT_LENGTH = Length(
    rounds=1, warm_up_seconds=1, seconds=1, kills=2, seconds_after_kill=5, fractions=(0.25, 0.5, 0.75, 1.05),
    value_bytes=(64, 1392), replicas=(3, 5), budget_seconds=170,
)
SHORT = Profile(
    "short", 1, 1, 1, [LATENCY, MANY, PIPELINED, READS], HOUR // 4, [SIDE_BY_SIDE, "outstanding", "sweep", "failover", "follower"],
    SHORT_LENGTH, SHORT_SYSTEMS, redis_benchmark=False, writes_results=False,
)
USUAL = Profile("usual", 5, 1, 3, [LATENCY, MANY, PIPELINED, READS], 3 * HOUR // 2, [SIDE_BY_SIDE, SERVED, PLANES], NORMAL)
FULL = Profile("full", 5, 2, 5, [LATENCY, MANY, PIPELINED, READS, WIDE], 16 * HOUR, PARTS, NORMAL)


class Refused(Exception):
    """A word that is not allowed; the text names it and what is."""


def chosen(profile, only, system_names):
    """The profile with what `--only` names: parts, systems, or both; either alone leaves the other as it is.

    Systems alone leave out data planes and unmodified servers, which have systems of their own.
    """
    if not only:
        return profile
    words = [word.strip() for word in only.split(";")]
    for word in words:
        if word not in PARTS and word not in system_names:
            raise Refused(f"--only: {word!r} is refused; allowed: {', '.join(PARTS)}; {'; '.join(system_names)}")
    systems = tuple(word for word in words if word in system_names)
    parts = [part for part in PARTS if part in words]
    return profile._replace(
        parts=parts or [part for part in profile.parts if part not in (SERVED, PLANES)],
        systems=systems or profile.systems,
        limit_seconds=FULL.limit_seconds if any(part in EXPERIMENTS for part in parts) else profile.limit_seconds,
    )


def shortened(profile, rounds=None, seconds=None, kills=None):
    """For trials."""
    length = profile.length._replace(**given(rounds=rounds, seconds=seconds, kills=kills))
    return profile._replace(**given(rounds=rounds, seconds=seconds), length=length)


def given(**values):
    return {name: value for name, value in values.items() if value is not None}


def is_trial(profile, asked):
    """Whether it leaves RESULTS.md alone: shorter than it should be, another program, or not all systems."""
    return any((asked.rounds, asked.seconds, asked.kills, asked.binary)) or profile.systems is not None


def parts_left_out(profile):
    missing = [part for part in PARTS if part not in profile.parts]
    return [f"parts: {', '.join(missing)}"] if missing else []


def systems_left_out(profile, system_names):
    return [name for name in system_names if profile.systems is not None and name not in profile.systems]


def left_out(profile, system_names):
    """What a profile leaves out of the parts that it measures, in words; empty if nothing."""
    systems = systems_left_out(profile, system_names)
    words = [f"systems: {'; '.join(systems)}"] if systems else []
    words += ["redis-benchmark"] if not profile.redis_benchmark else []
    words += [f"rounds: {profile.rounds}, not {FULL.rounds}"] if profile.rounds < FULL.rounds else []
    return words
