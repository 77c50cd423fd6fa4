#!/usr/bin/env python3
"""Accounts in a database on each of several machines, all of which carry out the same payments in the same order,
whichever machine dies meanwhile.

    accounts.py CONFIGURATION pay FROM TO AMOUNT [TIMES]   submits payments, and prints their instances
    accounts.py CONFIGURATION keep LEARNER DATABASE        carries them out, without an end
    accounts.py DATABASE                                   prints what everybody has

`quorumwire` is the wheel that `make wheel` builds.
"""
from __future__ import annotations

import asyncio
import json
import pathlib
import sqlite3
import sys

import quorumwire

# Nobody owes more than this. All databases decide alike, because they see the same payments before.
CREDIT = 1000
# Payments between two checkpoints. After as many seconds without one, there is a checkpoint, too.
PAYMENTS = 100
SECONDS = 1


async def pay(configuration: str, payer: str, payee: str, amount: int, times: int) -> None:
    """Submits all payments at once. They may be carried out in any order."""
    value = json.dumps([payer, payee, amount]).encode()
    async with await quorumwire.open_async(configuration) as client:
        for payment in asyncio.as_completed([client.submit(value) for _ in range(times)]):
            print("instance", await payment)


def keep(configuration: str, learner: int, path: str) -> None:
    """Carries out payments in their order, each once: the database keeps how far it is together with what it has."""
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER)")
        database.execute("CREATE TABLE IF NOT EXISTS progress (instance INTEGER)")
        if not database.execute("SELECT 1 FROM progress").fetchone():
            database.execute("INSERT INTO progress VALUES (0)")
    (done,) = database.execute("SELECT instance FROM progress").fetchone()
    with quorumwire.open(configuration) as client:
        deliveries = client.deliver(learner, done + 1 if done else 0)
        unsaid = 0
        while True:
            delivery = deliveries.next_within(SECONDS)
            if delivery is not None:
                payment = payment_in(delivery.value)
                with database:
                    if payment is None:
                        print("instance", delivery.instance, "is no payment", file=sys.stderr)
                    else:
                        carry_out(database, *payment)
                    database.execute("UPDATE progress SET instance = ?", (delivery.instance,))
                done, unsaid = delivery.instance, unsaid + 1
            if unsaid >= PAYMENTS or (unsaid and delivery is None):
                try:
                    deliveries.checkpoint(done)  # nobody needs to keep them for this database any more
                    unsaid = 0
                except (quorumwire.NotCarriedOutError, quorumwire.OutcomeUnknownError) as error:
                    print("the next checkpoint may work:", error, file=sys.stderr)


def payment_in(value: bytes) -> tuple[str, str, int] | None:
    """Payer, payee and amount; None if others have submitted something else."""
    try:
        payer, payee, amount = json.loads(value)
    except (ValueError, TypeError):
        return None
    is_one = isinstance(payer, str) and isinstance(payee, str) and type(amount) is int
    return (payer, payee, amount) if is_one and 0 <= amount < 2**31 else None


def carry_out(database: sqlite3.Connection, payer: str, payee: str, amount: int) -> None:
    """One payment, unless the payer owes too much."""
    for name in payer, payee:
        database.execute("INSERT OR IGNORE INTO accounts VALUES (?, 0)", (name,))
    paid = database.execute(
        "UPDATE accounts SET balance = balance - ? WHERE name = ? AND balance - ? >= ?",
        (amount, payer, amount, -CREDIT),
    )
    if paid.rowcount:
        database.execute("UPDATE accounts SET balance = balance + ? WHERE name = ?", (amount, payee))


def show(path: str) -> None:
    """What everybody has."""
    try:
        database = sqlite3.connect(f"{pathlib.Path(path).resolve().as_uri()}?mode=ro", uri=True)
        rows = database.execute("SELECT * FROM accounts ORDER BY name").fetchall()
    except sqlite3.OperationalError as error:
        sys.exit(f"{path}: {error}")
    for name, balance in rows:
        print(name, balance)


def main(words: list[str]) -> None:
    """As the words say."""
    if len(words) in (5, 6) and words[1] == "pay":
        asyncio.run(pay(words[0], words[2], words[3], int(words[4]), int(words[5]) if words[5:] else 1))
    elif len(words) == 4 and words[1] == "keep":
        keep(words[0], int(words[2]), words[3])
    elif len(words) == 1:
        show(words[0])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
