"""The external system: it loads what agents ask for into its own database, and hands in the results.

Run it as often as you like. A table is replaced as a whole, so a load that is done twice does no harm.
"""

import asyncio
import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from longhaul import Longhaul

FILE = "warehouse.db"


def loaded(file: str, table: str) -> dict[str, int]:
    if not table.isidentifier():
        raise ValueError(f"{table!r} is no name of a table")
    with Path(file).open(newline="") as text:
        rows = [(row["day"], row["euros"]) for row in csv.DictReader(text)]
    with closing(sqlite3.connect(FILE)) as database, database:
        database.execute(f"drop table if exists {table}")
        database.execute(f"create table {table} (day text, euros integer)")
        database.executemany(f"insert into {table} values (?, ?)", rows)  # noqa: S608  an identifier
    return {"loaded": len(rows)}


async def main() -> None:
    async with Longhaul.connect() as app:
        for card, call in (await app.inbox(tool="load")).calls:
            if call.waits_for != "outside":
                continue  # a person has to approve it first
            try:
                output, failed = json.dumps(loaded(**json.loads(call.input))), False
            except (OSError, ValueError, KeyError) as error:
                output, failed = str(error), True
            await app.attach(card).external_result(call, output, failed=failed, by="warehouse")
            print(f"{card.session_id}: {output}")


if __name__ == "__main__":
    asyncio.run(main())
