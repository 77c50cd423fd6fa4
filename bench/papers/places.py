"""Where replicas and clients run: on loopback, or in network namespaces, where the plane `xdp` can run.

Both have the same ports at each address.
"""
import os
import random

import namespaces
import plane_load
from namespaces import CLIENT_HOST, FIRST_REPLICA_HOST
from processes import Failed

# Of the largest deployment: two coordinators, seven acceptors, a learner.
HOSTS_MAX = 10


class Loopback:
    """Addresses of our own in 127.0.0.0/8, so that others' ports do not matter."""

    name = "loopback"

    def __init__(self):
        self.net = f"127.{random.randrange(1, 255)}.{random.randrange(1, 255)}"

    def address(self, slot):
        return f"{self.net}.{FIRST_REPLICA_HOST + slot}"

    def at_replica(self, _slot, command):
        return command

    def at_client(self, command):
        return command

    def cut_off(self, _slot):
        """What cuts a replica's cable; None: there is none."""
        return None


class Namespaced:
    """One network namespace for each replica, or host of a Paxos role, and one for the client, a bridge between them."""

    name = "network namespaces"

    def __init__(self, stack, tools):
        self.network = plane_load.make_network(stack, tools, HOSTS_MAX)

    def address(self, slot):
        return namespaces.address(FIRST_REPLICA_HOST + slot)

    def at_replica(self, slot, command):
        return self.network.command_in(FIRST_REPLICA_HOST + slot, command)

    def at_client(self, command):
        return self.network.command_in(CLIENT_HOST, command)

    def cut_off(self, slot):
        return plane_load.cut_cable(self.network, namespaces.port(FIRST_REPLICA_HOST + slot))


def find_place(stack, tools):
    """Namespaces where they can be, else loopback; with why not."""
    if os.geteuid() != 0:
        return Loopback(), "network namespaces take root"
    try:
        return Namespaced(stack, tools), None
    except (Failed, OSError) as failed:
        return Loopback(), f"network namespaces cannot be made: {failed}"
