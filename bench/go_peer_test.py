"""Who leads is what the replicas say, and only if all say the same."""
import contextlib
import socket
import threading
import unittest

from load import LATENCY, Server
from peers import go_peer
from peers.dragonboat import Dragonboat
from peers.hashicorp_raft import HashicorpRaft


@contextlib.contextmanager
def replicas(*answers):
    """Ports at which each answer is given once, in the parts it has."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in answers]
        ports = [listener.getsockname()[1] for listener in listeners]
        for listener, answer in zip(listeners, answers):
            thread = threading.Thread(target=give, args=(listener, [part.format(*ports).encode() for part in answer]))
            thread.start()
            stack.callback(thread.join)
        yield ports


def give(listener, parts):
    connection, _ = listener.accept()
    with connection:
        connection.recv(len(go_peer.INFO), socket.MSG_WAITALL)
        for part in parts:
            connection.sendall(part)


def info(role, place):
    return ["$50\r\n# Repli", f"cation\r\nrole:{role}\r\nleader:127.0.0.1:{{{place}}}\r\n", "\r\n"]


class GoPeers(unittest.TestCase):
    def test_the_leader_is_the_one_that_all_name(self):
        with replicas(info("follower", 1), info("leader", 1), info("follower", 1)) as ports:
            self.assertEqual(go_peer.leader_of(ports), ports[1])

    def test_nobody_leads_before_all_agree(self):
        for answers in (
            (info("follower", 0), info("leader", 1)),
            (info("leader", 0), info("leader", 1)),
            (info("follower", 0), info("follower", 0)),
            (["$3\r\nrole:follower\r\nleader:\r\n\r\n"], info("leader", 1)),
            (["-ERR\r\n"], info("leader", 1)),
            (["x" * 2 * go_peer.ANSWER_BYTES_MAX], info("leader", 1)),
        ):
            with replicas(*answers) as ports:
                self.assertIsNone(go_peer.leader_of(ports), answers)

    def test_who_does_not_listen_does_not_lead_but_may_be_dead(self):
        with replicas(info("follower", 1), info("leader", 1)) as ports, socket.create_server(("127.0.0.1", 0)) as listener:
            dead = listener.getsockname()[1]
            listener.close()
            self.assertEqual(go_peer.leader_of([*ports, dead], some_may_be_dead=True), ports[1])
        self.assertIsNone(go_peer.leader_of([dead], some_may_be_dead=True))
        with replicas(info("follower", 1), info("leader", 1)) as ports:
            self.assertIsNone(go_peer.leader_of([*ports, dead]))

    def test_who_leads_now_is_asked_again(self):
        for answers, leading in ((info("leader", 0), info("follower", 0)), 11), ((info("follower", 1), info("leader", 1)), 12), ((["x"], ["x"]), None):
            with replicas(*answers) as ports:
                servers = [Server(11, True), Server(12, False)]
                made = Dragonboat(go_peer.Path("out"), go_peer.Path("quorumwire")).cluster(servers, ports, ports[0])
                self.assertEqual(made.leader_pid(), leading)

    def test_loads_go_to_the_leader_and_those_that_outlive_it_to_all(self):
        for kind in (Dragonboat, HashicorpRaft):
            peer = kind(go_peer.Path("out"), go_peer.Path("quorumwire"))
            made = peer.cluster([Server(1, False), Server(2, True)], [1, 2], 2)
            for command in (made.load_with(5, 7, 3, ["--cdf"]), made.load_command(LATENCY, 3)):
                self.assertEqual(command[command.index("--addr") + 1], "127.0.0.1:2")
                self.assertEqual(command[command.index("--protocol") + 1], "redis")
            command = made.survive_command(3, ["--interval-ms", "100"])
            self.assertEqual(command[command.index("--addr") + 1], "127.0.0.1:1,127.0.0.1:2")
            self.assertIn("--survive", command)

    def test_versions_are_those_that_are_built(self):
        for kind in (Dragonboat, HashicorpRaft):
            self.assertRegex(kind(go_peer.Path("out"), None).version(), r"^github\.com/\S+ v\d\S+ \(go")


if __name__ == "__main__":
    unittest.main()
