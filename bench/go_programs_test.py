"""How peers are asked who leads, and what their load program is told. None of them is started here."""
import socket
import threading
import unittest
from pathlib import Path
from unittest import mock

from load import READS
from peers import nats, zookeeper
from peers.etcd import SERVER_PACKAGE, SERVER_SOURCE, Etcd
from peers.go_programs import LOAD_SOURCE, LoadProgram, pinned, why_not_built
from processes import Failed


class Load(unittest.TestCase):
    def commands(self, system="etcd"):
        load = LoadProgram(Path("/built"), system, "go.etcd.io/etcd/client/v3")
        return load.commands("127.0.0.1:2", ["127.0.0.1:1", "127.0.0.1:2"])

    def option(self, command, name):
        # The last one counts, so that `more` can change what is said before.
        return command[len(command) - command[::-1].index(name)]

    def test_load_is_on_the_leader(self):
        command = self.commands()["load_command"](READS, 3)
        self.assertEqual(self.option(command, "--addr"), "127.0.0.1:2")
        self.assertEqual((self.option(command, "--seconds"), self.option(command, "--write-percent")), ("3", "0"))
        command = self.commands()["load_with"](4, 5, 6, ["--value-bytes", "8", "--rate", "100"])
        self.assertEqual(self.option(command, "--value-bytes"), "8")
        self.assertEqual((self.option(command, "--connections"), self.option(command, "--in-flight")), ("4", "5"))

    def test_what_survives_knows_all_replicas(self):
        command = self.commands()["survive_command"](9, ["--interval-ms", "10"])
        self.assertEqual(self.option(command, "--addr"), "127.0.0.1:1,127.0.0.1:2")
        self.assertIn("--survive", command)
        self.assertEqual((self.option(command, "--connections"), self.option(command, "--in-flight")), ("3", "1"))

    def test_versions_are_those_that_are_pinned(self):
        self.assertRegex(pinned(SERVER_SOURCE, SERVER_PACKAGE), r"^v3\.6\.")
        self.assertRegex(pinned(LOAD_SOURCE, "github.com/go-zookeeper/zk"), r"^v1\.")
        self.assertRaises(Failed, pinned, LOAD_SOURCE, "example.org/nothing")

    def test_what_cannot_be_built_is_named_with_the_reason(self):
        with mock.patch("shutil.which", return_value=None):
            self.assertIn("needs Go", why_not_built("it", LOAD_SOURCE, ".", "/built/load"))
            self.assertIn("not installed", Etcd(Path("/built"), debian=True).missing())
            self.assertIn("needs Go", Etcd(Path("/built")).missing())


class Zookeeper(unittest.TestCase):
    def answered(self, text):
        """What `mode` makes of a server that answers this."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            heard = []

            def serve():
                connection, _ = listener.accept()
                with connection:
                    heard.append(connection.recv(16))
                    connection.sendall(text)

            thread = threading.Thread(target=serve)
            thread.start()
            found = zookeeper.mode(listener.getsockname()[1])
            thread.join()
        self.assertEqual(heard, [b"srvr"])
        return found

    def test_a_server_says_what_it_is(self):
        self.assertEqual(self.answered(b"Zookeeper version: 3.8.0\nConnections: 1\nMode: leader\nNode count: 5\n"), "leader")
        self.assertEqual(self.answered(b"Mode: follower\n"), "follower")
        self.assertEqual(self.answered(b"This ZooKeeper instance is not currently serving requests\n"), "")

    def test_a_server_that_is_not_there_is_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.assertEqual(zookeeper.mode(port), "")


class Nats(unittest.TestCase):
    def answer(self, leader, current=(True, True)):
        replicas = [{"name": f"other{n}", "current": each} for n, each in enumerate(current)]
        stream = {"name": nats.STREAM, "cluster": {"leader": leader, "replicas": replicas}}
        return {"account_details": [{"name": "$G", "stream_detail": [{"name": "another"}, stream]}]}

    def leader(self, *answers):
        with mock.patch.object(nats, "ask", side_effect=answers):
            return nats.Nats(Path("/built")).leader([1, 2, 3])

    def test_the_leader_is_who_says_so_of_itself(self):
        self.assertEqual(self.leader(self.answer("server1"), self.answer("server1"), None), 1)
        # One that has heard nothing yet, and one that names another.
        self.assertIsNone(self.leader({}, None, self.answer("server1")))

    def test_all_replicas_must_be_up_to_date(self):
        self.assertIsNone(self.leader(*[self.answer("server0", (True, False))] * 3))
        self.assertIsNone(self.leader(*[self.answer("server0", (True,))] * 3))

    def test_every_load_knows_how_many_replicas_the_bucket_has(self):
        load = nats.Nats(Path("/built"), replicas=5).load
        commands = load.commands("127.0.0.1:1", ["127.0.0.1:1"])
        for command in (commands["load_command"](READS, 1), commands["load_with"](1, 1, 1, []), commands["survive_command"](1)):
            self.assertEqual(command[command.index("--replicas") + 1], "5")

    def test_each_server_has_its_own_ports_and_knows_all_routes(self):
        made = nats.configuration(1, Path("/data"), 10, [20, 21, 22], 30)
        self.assertEqual((made["listen"], made["http"], made["cluster"]["listen"]), ("127.0.0.1:10", "127.0.0.1:30", "127.0.0.1:21"))
        self.assertEqual(len(made["cluster"]["routes"]), 3)


if __name__ == "__main__":
    unittest.main()
