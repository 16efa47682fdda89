"""Ask a running `limis serve` at a steady rate, and tell how long the answers took.

    limis serve income.limis rows.csv --port 8000
    python tools/load.py rows.csv --path explain --rate 50 --seconds 60

Requests are sent when they are due, whether or not earlier ones are answered (an open loop): a server that falls
behind shows it in the times. A time counts from when a request was due, not from when it could be sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd

WAIT = 30.0  # seconds for one answer


def main() -> int:
    """Run the command; 1 comes back where a request failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="a CSV file with rows to ask about")
    parser.add_argument("--address", default="http://127.0.0.1:8000")
    parser.add_argument("--path", choices=("explain", "what-if", "page"), default="explain", help="what to ask")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--token", help="where the server demands one")
    args = parser.parse_args()
    taken, failed, wall = asyncio.run(_ask_all(args))
    p50, p95, p99 = (f"{1000 * value:.0f} ms" for value in np.quantile(taken, [0.5, 0.95, 0.99]))
    print(f"{args.path}: {len(taken):,} requests at {args.rate:g}/s, {len(taken) / wall:.1f} answered a second")
    print(f"p50 {p50}, p95 {p95}, p99 {p99}, longest {1000 * max(taken):.0f} ms")
    print(f"errors: {sum(failed.values())}" + "".join(f"; {n} times {why}" for why, n in failed.most_common()))
    return int(bool(failed))


async def _ask_all(args: argparse.Namespace) -> tuple[list[float], Counter[str], float]:
    headers = {"Authorization": f"Bearer {args.token}"} if args.token else {}
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=args.address, headers=headers, timeout=WAIT, limits=limits) as client:
        metadata = (await client.get("/api/metadata")).raise_for_status().json()
        rows = _rows(args.rows, metadata)
        taken: list[float] = []
        failed: Counter[str] = Counter()

        async def ask(number: int, due: float) -> None:
            try:
                method, address = _method_and_address(args.path, number, rows)
                answer = await client.request(method, address, **_body(args.path, number, rows))
                if answer.status_code != 200:
                    failed[f"status {answer.status_code}"] += 1
            except httpx.HTTPError as error:
                failed[type(error).__name__] += 1
            taken.append(time.perf_counter() - due)

        start = time.perf_counter()
        waiting = []
        for number in range(round(args.rate * args.seconds)):
            due = start + number / args.rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            waiting.append(asyncio.create_task(ask(number, due)))
        await asyncio.gather(*waiting)
        return taken, failed, time.perf_counter() - start


def _rows(path: Path, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows as JSON, with the columns that the server knows."""
    sources = [source for column in metadata["columns"] for source in column["sources"]]
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])[sources]
    return json.loads(frame.to_json(orient="records"))


def _method_and_address(path: str, number: int, rows: list[dict[str, Any]]) -> tuple[str, str]:
    if path == "page":  # what the page itself asks when a value is changed there; the server has the same rows
        return "GET", f"/tables/rows/rows/{number % len(rows)}/what-if"
    return "POST", f"/api/{path}"


def _body(path: str, number: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A row, and for a what-if one value of the row after it: another column each time."""
    row, other = rows[number % len(rows)], rows[(number + 1) % len(rows)]
    if path == "explain":
        return {"json": {"rows": [row]}}
    column = list(row)[number % len(row)]
    if path == "what-if":
        return {"json": {"row": row, "changes": {column: other[column]}}}
    numbers = [place for place, value in enumerate(row.values()) if isinstance(value, (int, float))]
    place = numbers[number % len(numbers)]
    return {"params": {f"c{place}": str(list(row.values())[place] + 1)}}


if __name__ == "__main__":
    sys.exit(main())
