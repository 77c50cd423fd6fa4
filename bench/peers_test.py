"""The words of the load programs: each option once, whatever an experiment asks for."""
import unittest
from pathlib import Path

from load import LATENCY, READS, Cluster, Server
from peers import interface
from peers.quorumwire import Load
from processes import Failed
from replica import leader_of_serving


def options(words):
    """Name and word behind it; a name that stands twice is refused by the load program."""
    names = [word for word in words if word.startswith("--")]
    assert len(set(names)) == len(names), words
    return {name: words[words.index(name) + 1] if words[-1] != name else None for name in names}


class LoadWords(unittest.TestCase):
    load = Load(Path("quorumwire"), "127.0.0.1:1,127.0.0.1:2", "--protocol", "redis", "--wait", "1")

    def test_a_workload_has_the_usual_values(self):
        given = options(self.load.of_workload(LATENCY, 3))
        self.assertEqual((given["--value-bytes"], given["--keys"], given["--write-percent"]), ("64", "1000", "100"))
        self.assertEqual((given["--seconds"], given["--connections"], given["--in-flight"]), ("3", "1", "1"))
        self.assertEqual((given["--protocol"], given["--wait"]), ("redis", "1"))
        self.assertEqual(options(self.load.of_workload(READS, 3))["--write-percent"], "0")

    def test_what_an_experiment_asks_for_replaces_what_is_usual(self):
        given = options(self.load.with_more(8, 64, 2, ["--value-bytes", "1392", "--rate", "1000", "--cdf"]))
        self.assertEqual((given["--value-bytes"], given["--rate"], given["--keys"]), ("1392", "1000", "1000"))
        self.assertIn("--cdf", given)

    def test_a_load_that_outlives_its_server_waits_for_each_answer_on_three_connections(self):
        words = self.load.surviving(8, ["--interval-ms", "50"])
        given = options(words)
        self.assertEqual((given["--connections"], given["--in-flight"]), ("3", "1"))
        self.assertIn("--survive", words)
        self.assertEqual(given["--addr"], "127.0.0.1:1,127.0.0.1:2")


class WhoLeads(unittest.TestCase):
    def test_it_is_asked_again_where_that_is_possible(self):
        servers = [Server(1, False), Server(2, True)]
        self.assertEqual(Cluster(servers, None).leader_pid(), 2)
        self.assertEqual(Cluster(servers, None, leader_now=lambda: 1).leader_pid(), 1)


class WhoServes(unittest.TestCase):
    def status(self, *reports, leader=1):
        return {"leader": leader, "replicas": [{"id": n, "report": report} for n, report in enumerate(reports)]}

    def test_all_must_report_and_with_a_plane_run_a_fast_term(self):
        slow, fast = {"fast_term": None}, {"fast_term": 7}
        for reports, without, with_plane in (((slow, slow), 1, None), ((fast, slow), 1, None), ((fast, fast), 1, 1), ((fast, None), None, None), ((fast,), None, None)):
            status = self.status(*reports)
            self.assertEqual(leader_of_serving(status, [0, 1], "none"), without, reports)
            self.assertEqual(leader_of_serving(status, [0, 1], "xdp"), with_plane, reports)
        self.assertIsNone(leader_of_serving(self.status(slow, slow, leader=None), [0, 1], "none"))
        self.assertIsNone(leader_of_serving({}, [0, 1], "none"))


class Iperf(unittest.TestCase):
    # What iperf3 3.12 says at the end, shortened.
    PRINTED = '''{"end": {
        "sum_sent": {"start": 0, "end": 1.002829, "bytes": 2287206400, "bits_per_second": 18246033172.15597, "retransmits": 6, "sender": false},
        "sum_received": {"start": 0, "end": 1.000025, "bytes": 2286288790, "bits_per_second": 18289853073.67316, "sender": false}}}'''

    def test_what_arrived_counts(self):
        self.assertAlmostEqual(interface.gbit_per_second(self.PRINTED), 18.29, places=2)

    def test_a_failure_says_why_whatever_the_exit_code(self):
        with self.assertRaisesRegex(Failed, "unable to connect"):
            interface.gbit_per_second('{"intervals": [], "end": {}, "error": "unable to connect to server: Connection refused"}')
        with self.assertRaises(Failed):
            interface.gbit_per_second("")

    def test_the_client_sends_or_out_of_a_host_receives(self):
        into, out_of = (interface.of_client(direction, 3, 1) for direction in (interface.INTO, interface.OUT_OF))
        self.assertNotIn("--reverse", into)
        self.assertEqual(out_of, [*into, "--reverse"])


if __name__ == "__main__":
    unittest.main()
