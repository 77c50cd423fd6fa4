"""What is shown of unmodified servers, and who their processes are."""
import os
import subprocess
import unittest

from experiments.found import Found
from experiments.served import PIPELINED, Served, beside, to_alone
from peers.memcached import Memcached
from peers.redis import Redis
from peers.served import Served as ServedPeer
from replica import PROGRAMS, children_of


class Unmodified(unittest.TestCase):
    def test_each_stands_beside_the_same_program_alone(self):
        systems = ["memcached", "redis", *(f"quorumwire run, {program}" for program in PROGRAMS)]
        found = [beside(system, systems, PIPELINED) for system in systems]
        self.assertEqual(found, [None, None, ("redis", (PIPELINED,)), ("memcached", (PIPELINED,))])

    def test_a_figure_has_its_ratio(self):
        found = Found()
        for round_number, (alone, served) in enumerate([(2.0, 3.0), (2.0, 5.0), (2.0, 4.0)]):
            found.add(Served.name, round_number, "redis", (PIPELINED,), {"leader_us": alone})
            found.add(Served.name, round_number, "quorumwire run, redis-server", (PIPELINED,), {"leader_us": served})
        self.assertIn("4.00 (2.00; 1.50–2.50)", Served().section(found))
        self.assertEqual(to_alone(found, "quorumwire run, redis-server", PIPELINED, "leader_us").value, 2.0)
        self.assertIsNone(to_alone(found, "redis", PIPELINED, "leader_us"))

    def test_no_other_experiment_and_no_other_system_takes_part(self):
        experiment = Served()
        taken = [Redis("x", replicated=False), Memcached("x"), *(ServedPeer("x", program) for program in PROGRAMS)]
        self.assertTrue(all(experiment.takes(peer) for peer in taken))
        self.assertFalse(experiment.takes(Redis("x", replicated=True)))
        self.assertTrue(all(peer.experiments == (Served.name,) and not peer.workloads for peer in taken[2:]))

    def test_children_are_found(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
            self.assertIn(child.pid, children_of(os.getpid()))
            child.stdin.close()


if __name__ == "__main__":
    unittest.main()
