#!/usr/bin/env python3
"""A shop's stock and its visitors, kept in quorumwire through ordinary Redis and memcached clients.

    stock.py --redis HOST:PORT,... --memcached HOST:PORT,...

Name all replicas: any of them serves, and when one is gone the next is asked. Debian has both clients in
python3-redis and python3-pymemcache.
"""
import argparse
import itertools
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from pymemcache.client.base import Client as Memcached

# Longer than a cluster takes to elect a new leader.
TRY_FOR_SECONDS = 10


class Replicas:
    """One connection at a time, to whichever replica answers."""

    def __init__(self, addresses):
        self.addresses = itertools.cycle(addresses)
        self.connect()

    def connect(self):
        """To the next replica that is there."""
        end = time.monotonic() + TRY_FOR_SECONDS
        for address in self.addresses:
            host, port = address.rsplit(":", 1)
            self.redis = redis.Redis(
                host=host,
                port=int(port),
                socket_timeout=6,
                decode_responses=True,
                # Newer clients send a command again when the connection ends; a write could then be carried out twice.
                retry=Retry(NoBackoff(), 0),
            )
            try:
                self.redis.ping()
                return
            except (redis.ConnectionError, redis.TimeoutError):
                if time.monotonic() > end:
                    raise

    def read(self, ask):
        """Reads change nothing, so they can be asked again at the next replica."""
        end = time.monotonic() + TRY_FOR_SECONDS
        while True:
            try:
                return ask(self.redis)
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError):
                if time.monotonic() > end:
                    raise
                self.connect()


def sell(connection, article, count):
    """Takes articles out of stock if there are enough. If the stock changes meanwhile, the transaction is made anew.

    If this raises, it is not known whether they were sold: look before selling again.
    """
    key = f"stock:{article}"
    with connection.pipeline() as transaction:
        while True:
            try:
                transaction.watch(key)
                left = int(transaction.get(key) or 0)
                if left < count:
                    transaction.unwatch()
                    return False
                transaction.multi()
                transaction.decrby(key, count)
                transaction.incrby("sold", count)
                transaction.execute()
                return True
            except redis.WatchError as error:
                # The client raises this for a lost connection, too. Then the transaction may have been carried out.
                if isinstance(error.__context__, (redis.ConnectionError, redis.TimeoutError)):
                    raise


def visitors(address):
    """Counts visits of today, which are forgotten after a day, through memcached's protocol."""
    host, port = address.rsplit(":", 1)
    memcached = Memcached((host, int(port)), timeout=6, default_noreply=False)
    memcached.add("visits", "0", expire=24 * 60 * 60)
    return memcached.incr("visits", 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis", required=True, metavar="HOST:PORT,...")
    parser.add_argument("--memcached", required=True, metavar="HOST:PORT,...")
    asked = parser.parse_args()
    replicas = Replicas(asked.redis.split(","))

    replicas.redis.set("stock:lamp", 3)
    sold = [sell(replicas.redis, "lamp", 2) for _ in range(2)]
    print("sold two lamps, twice:", sold)
    replicas.redis.set("offer", "lamps", ex=60)
    print("the offer ends in", replicas.read(lambda it: it.ttl("offer")), "s")
    print("left:", replicas.read(lambda it: it.get("stock:lamp")))
    for address in asked.memcached.split(","):
        print("visitor", visitors(address))
    # What memcached clients wrote is there for Redis clients, and the other way round.
    print("visits:", replicas.read(lambda it: it.get("visits")))


if __name__ == "__main__":
    main()
