"""Explain a million rows on Ray, kill a worker and then the driver midway, go on, and count what comes out.

    python tools/million.py                  # a million rows, two workers
    python tools/million.py --rows 20000     # to see it work

The rows are those of the Adult data, drawn with replacement and with noise on the numbers. The explainer, with the
default settings, is that of `limis fit` on the 32,561 training rows of Adult; what runs is `limis explain --cluster
auto`. Memory is that of the command and all its descendants (Ray's own processes, the workers), and of what a killed
driver left behind, looked at every second. It is given as PSS, which counts a page that several processes share once,
and as the sum of RSS, which counts it in each. Needs Linux, whose /proc tells both.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from limis.datasets import load_adult

TRAINING_ROWS = 32_561
ROWS_A_FILE = 100_000
LIMIT = 4.0  # GiB


def main() -> int:
    """Run the command; 1 comes back where rows are missing or double, or memory was above the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows-a-part", type=int, default=5000)
    parser.add_argument("--folder", type=Path, default=Path("outputs/million"), help="for all files; made anew")
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    (args.folder / "rows").mkdir(parents=True)
    seconds = _timed(lambda: _fit(args.folder))
    print(f"explainer fitted in {seconds:.0f} s")
    _make_rows(args.folder / "rows", args.rows)
    memory = Memory()
    seconds = _timed(lambda: _explain_and_kill(args, memory))
    counted = _count(args.folder / "explained")
    print(f"rows explained: {counted['rows']:,}; distinct row numbers: {counted['numbers']:,}; distinct ids: ", end="")
    print(f"{counted['ids']:,}; trusted: {counted['trusted']:,}")
    print(f"largest memory of all processes together: {memory.pss:.2f} GiB (PSS), {memory.rss:.2f} GiB (sum of RSS)")
    print(f"at that time: {memory.at_most}")
    print(f"seconds, both runs and the deaths included: {seconds:.0f} ({args.rows / seconds:.0f} rows a second)")
    exact = counted["rows"] == counted["numbers"] == counted["ids"] == args.rows
    if not exact:
        print("NOT every row is there exactly once")
    if memory.pss > LIMIT:
        print(f"more than {LIMIT:g} GiB")
    return int(not exact or memory.pss > LIMIT)


# --- what is explained ------------------------------------------------------------------------------------


def _fit(folder: Path) -> None:
    adult = load_adult()
    train = adult.frame.iloc[:TRAINING_ROWS].assign(income=adult.target.iloc[:TRAINING_ROWS])
    train.to_csv(folder / "train.csv", index=False)
    words = ["fit", folder / "train.csv", "--target", "income", "-o", folder / "income.limis", "--quiet"]
    subprocess.run(_limis(*words), check=True)  # noqa: S603


def _make_rows(folder: Path, n: int) -> None:
    frame = load_adult().frame
    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, n, ROWS_A_FILE)):
        size = min(ROWS_A_FILE, n - start)
        rows = frame.iloc[rng.integers(len(frame), size=size)].reset_index(drop=True)
        for name in rows.select_dtypes("number").columns:
            # A tenth of the numbers move a little; they stay whole, and zero stays zero.
            moved = np.where(rng.random(size) < 0.1, rng.normal(1, 0.05, size), 1.0)
            rows[name] = (rows[name] * moved).round().astype(rows[name].dtype)
        rows.insert(0, "id", np.arange(start, start + size))
        rows.to_parquet(folder / f"rows-{number:03d}.parquet", index=False)


# --- the run, with its deaths --------------------------------------------------------------------------------


def _explain_and_kill(args: argparse.Namespace, memory: Memory) -> None:
    """Kill a worker at a quarter and the driver at half of the parts, then let it finish."""
    out = args.folder / "explained"
    parts = sum(
        -(-pq.read_metadata(path).num_rows // args.rows_a_part) for path in (args.folder / "rows").glob("*.parquet")
    )
    driver = _start(args, memory)
    _wait(lambda: _finished(out) >= parts // 4, driver)
    worker = next(pid for pid in _tree(driver.pid) if "MapWorker" in _command(pid))
    os.kill(worker, signal.SIGKILL)
    print(f"killed worker {worker} with {_finished(out)} of {parts} parts finished")
    _wait(lambda: _finished(out) >= parts // 2, driver)
    memory.orphans = _tree(driver.pid)
    driver.kill()
    driver.wait()
    print(f"killed the driver {driver.pid} with {_finished(out)} of {parts} parts finished")
    while any("MapWorker" in _command(pid) for pid in memory.orphans if _is_alive(pid)):
        time.sleep(0.1)  # a moment: workers end with their driver
    before = {path.name: path.stat().st_ino for path in out.glob("part-*.parquet")}
    driver = _start(args, memory)
    if driver.wait() != 0:
        raise SystemExit("the second run failed")
    after = {path.name: path.stat().st_ino for path in out.glob("part-*.parquet")}
    again = sum(after.get(name) != inode for name, inode in before.items())
    print(f"{len(before)} parts were finished before the second run, and it made {again} of them again")


def _start(args: argparse.Namespace, memory: Memory) -> subprocess.Popen[bytes]:
    words = ["explain", args.folder / "income.limis", args.folder / "rows", "-o", args.folder / "explained"]
    words += ["--cluster", "auto", "--workers", args.workers, "--rows-a-part", args.rows_a_part]
    driver = subprocess.Popen(_limis(*words))  # noqa: S603
    threading.Thread(target=memory.watch, args=(driver,), daemon=True).start()
    return driver


def _limis(*words: object) -> list[str]:
    return [sys.executable, "-m", "limis", *map(str, words)]


def _finished(out: Path) -> int:
    return len(list(out.glob("part-*.parquet")))


def _wait(condition: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    while not condition():
        if driver.poll() is not None:
            raise SystemExit("the run ended before it could be killed")
        time.sleep(0.1)


def _count(out: Path) -> dict[str, int]:
    told = pd.read_parquet(out, columns=["id", "row_number", "trusted"])
    return {
        "rows": len(told),
        "numbers": told["row_number"].nunique(),
        "ids": told["id"].nunique(),
        "trusted": int(told["trusted"].sum()),
    }


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# --- processes and their memory -------------------------------------------------------------------------------


class Memory:
    """The most memory that a process and its descendants had together, in GiB."""

    def __init__(self) -> None:
        self.pss = self.rss = 0.0
        self.at_most = ""
        self.orphans: list[int] = []  # two small agents of Ray outlive a killed driver by a minute, and count too

    def watch(self, driver: subprocess.Popen[bytes]) -> None:
        """Look every second, until the process is gone."""
        while driver.poll() is None:
            each = {pid: _memory(pid) for pid in {*_tree(driver.pid), *self.orphans}}
            pss, rss = (sum(kinds) for kinds in zip(*each.values(), strict=True)) if each else (0.0, 0.0)
            self.rss = max(self.rss, rss)
            if pss > self.pss:
                largest = sorted((pid for pid in each if each[pid][0]), key=lambda pid: -each[pid][0])
                self.pss = pss
                self.at_most = ", ".join(f"{_command(pid)[:24]} {1024 * each[pid][0]:.0f} MiB" for pid in largest)
            time.sleep(1)


def _memory(pid: int) -> tuple[float, float]:
    """PSS and RSS; nothing for a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    kib = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    return kib.get("Pss:", 0) / 2**20, kib.get("Rss:", 0) / 2**20


def _tree(root: int) -> list[int]:
    """A process and all that it started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            status = _status(int(entry.name))
            if status is not None:
                children.setdefault(int(status[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def _status(pid: int) -> list[str] | None:
    """State, parent and more, as /proc has them after the name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _is_alive(pid: int) -> bool:
    status = _status(pid)
    return status is not None and status[0] != "Z"


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    shown = [Path(word).name for word in words[0].decode(errors="replace").split()] or ["?"]
    script = next((Path(os.fsdecode(word)).name for word in words[1:] if word.endswith(b".py")), "")
    return f"{shown[0]} {script}".strip()


if __name__ == "__main__":
    sys.exit(main())
