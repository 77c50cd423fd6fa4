"""The experiments beside the closed loops that `run` puts on everybody: one object each, in the order of the report."""
from experiments.failover import Failover
from experiments.follower import Follower
from experiments.loads import Durability, Mixed, Payload, Replicas
from experiments.outstanding import Outstanding
from experiments.served import Served
from experiments.sweep import Sweep
from experiments.traffic import Traffic

ALL = [Outstanding(), Sweep(), Payload(), Replicas(), Durability(), Mixed(), Failover(), Follower(), Traffic(), Served()]
