"""A Paxos deployment of which no switch runs: a client opens, and whatever it asks for waits."""

import itertools
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import List, Optional, Type

KEYS = """
use = 1

[[key]]
epoch = 1
hex = "4958dc8ed627d4856a0266dcc9c5787d"
"""


PORT = 7510
_numbers = itertools.count()


def own_addresses(count: int) -> List[str]:
    """A host each, on loopback, that no other deployment of this process or of one beside it has."""
    net, number = 20 + os.getpid() % 200, next(_numbers) % 256
    return [f"127.{net}.{number}.{host}:{PORT}" for host in range(1, count + 1)]


class Nobody:
    """Its files, for as long as it is entered."""

    def __enter__(self) -> "Nobody":
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name)
        keys = self.path / "keys"
        keys.touch(0o600)
        keys.write_text(KEYS)
        addresses = own_addresses(5)
        (self.path / "deployment.toml").write_text(
            'name = "test"\nkey-file = "keys"\n'
            f"coordinators = {addresses[:1]}\nacceptors = {addresses[1:4]}\nlearners = {addresses[4:]}\n"
        )
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._folder.cleanup()

    def configuration(self, deadline_ms: int = 60000) -> Path:
        """Of its only learner."""
        path = self.path / "client.toml"
        path.write_text(
            f'deployment = "paxos"\ndeployment_file = "{self.path}/deployment.toml"\nlearner = 0\n'
            f'dir = "{self.path}/learner"\ndeadline_ms = {deadline_ms}\n'
        )
        return path
