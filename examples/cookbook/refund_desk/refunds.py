"""Orders and refunds of a small shop, in a SQLite file of the folder in which the worker was started."""

import sqlite3
from contextlib import closing

from longhaul import tool

FILE = "refunds.db"
ORDERS = {"17": 30, "18": 240}
"""What each order cost, in euros; it stands for the shop's own system."""
MOST_ALONE = 100


def paid(order: str, euros: int) -> str:
    """Pay an order back. A second payment for the same order is no payment, so a call may be repeated."""
    if not 0 < euros <= ORDERS[order]:
        raise ValueError(f"order {order} cost {ORDERS[order]} euros")
    with closing(sqlite3.connect(FILE)) as database, database:
        database.execute("create table if not exists refunds (shop_order text primary key, euros integer)")
        added = database.execute("insert or ignore into refunds values (?, ?)", (order, euros)).rowcount
    return f"paid back {euros} euros for order {order}" if added else f"order {order} was paid back before"


@tool(effect="read", read_only=True)
def price_of(order: str) -> str:
    """Look up what an order cost."""
    return f"order {order} cost {ORDERS[order]} euros"


@tool(effect="idempotent")
def refund(order: str, euros: int) -> str:
    """Pay back up to 100 euros for an order."""
    if euros > MOST_ALONE:
        raise ValueError(f"more than {MOST_ALONE} euros need large_refund")
    return paid(order, euros)


@tool(effect="idempotent")
def large_refund(order: str, euros: int) -> str:
    """Pay back more than 100 euros for an order. Two people have to approve it."""
    return paid(order, euros)
