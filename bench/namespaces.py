"""Replicas and a client, each in a network namespace of its own, with a Linux bridge between them.

Takes root and iproute2. Addresses of neighbours and the bridge's table are fixed, so nothing else is sent.
"""
import os
import subprocess

from processes import Failed

FOLDER = "/run/netns"
PREFIX = "qwbench"
COMMAND_SECONDS_MAX = 20
BRIDGE_FILTERS = ("iptables", "ip6tables", "arptables")
FIRST_REPLICA_HOST = 10
CLIENT_HOST = 100
INTERFACE = "eth0"


class Network:
    """Exists until its stack ends."""

    def __init__(self, stack, replicas):
        remove_leftovers()
        self.name = f"{PREFIX}-{os.getpid()}"
        self.hosts = [FIRST_REPLICA_HOST + slot for slot in range(replicas)] + [CLIENT_HOST]
        stack.callback(remove, self.name)
        self.build()

    def namespace(self, host):
        return f"{self.name}-{host}"

    def command_in(self, host, command):
        """The words that run a command in a host's namespace, without another process."""
        return ["nsenter", f"--net={FOLDER}/{self.namespace(host)}", "--", *command]

    def build(self):
        switch = self.namespace("sw")
        ip(f"netns add {switch}\n")
        quiet(self.command_in("sw", ["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"]))
        # Where the kernel has them: frames do not pass the packet filter of IP.
        quiet(self.command_in("sw", ["sysctl", "-eqw", *(f"net.bridge.bridge-nf-call-{of}=0" for of in BRIDGE_FILTERS)]))
        ip("link add br0 type bridge stp_state 0 mcast_snooping 0\nlink set br0 up\n", switch)
        for host in self.hosts:
            self.plug_in(host, switch)
        for host in self.hosts:
            quiet(["bridge", "-n", switch, "fdb", "replace", mac(host), "dev", port(host), "master", "static"])

    def plug_in(self, host, switch):
        own = self.namespace(host)
        ip(f"netns add {own}\n")
        quiet(self.command_in(host, ["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"]))
        ip(f"link add {INTERFACE} netns {own} address {mac(host)} type veth peer name {port(host)} netns {switch}\n")
        ip(f"link set {port(host)} master br0\nlink set {port(host)} up\n", switch)
        neighbours = "".join(
            f"neigh replace {address(other)} lladdr {mac(other)} dev {INTERFACE} nud permanent\n"
            for other in self.hosts if other != host
        )
        ip(f"addr add {address(host)}/24 dev {INTERFACE}\nlink set lo up\nlink set {INTERFACE} up\n{neighbours}", own)


def address(host):
    return f"10.77.0.{host}"


def mac(host):
    return f"02:77:00:00:00:{host:02x}"


def port(host):
    """The bridge's end of a host's cable."""
    return f"p{host}"


def remove(name):
    """Removes a network, or what there is of it."""
    if os.path.isdir(FOLDER):
        for namespace in os.listdir(FOLDER):
            if namespace.startswith(name + "-"):
                subprocess.run(["ip", "netns", "del", namespace], capture_output=True, timeout=COMMAND_SECONDS_MAX)


def remove_leftovers():
    """Networks of runs that were killed."""
    if os.path.isdir(FOLDER):
        for namespace in os.listdir(FOLDER):
            parts = namespace.split("-")
            if parts[0] == PREFIX and len(parts) == 3 and not os.path.exists(f"/proc/{parts[1]}"):
                remove(f"{PREFIX}-{parts[1]}")


def ip(script, namespace=None):
    inside = ["-n", namespace] if namespace else []
    quiet(["ip", *inside, "-batch", "-"], script)


def quiet(command, text=None):
    """Runs a command that has nothing to say; fails with what it says."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
