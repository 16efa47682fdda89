"""Which part holds which rows: decided before the work, written beside the results, and checked when it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from limis import __version__
from limis.bulk.source import SourceFile
from limis.errors import InputError

PLAN = "_plan.json"  # readers of Parquet folders leave out what starts with _ or .
FORMAT, VERSION = "limis plan", 1


@dataclass(frozen=True)
class Part:
    """Some rows of one file, explained at one go and written to one file."""

    number: int
    file: SourceFile
    start: int  # in the file
    stop: int
    first_row: int  # in the whole input

    def __str__(self) -> str:
        return f"part {self.number} ({self.file.name}, rows {self.start} to {self.stop - 1})"

    @property
    def output_name(self) -> str:
        """The file of its results."""
        return f"part-{self.number:06d}.parquet"


@dataclass(frozen=True)
class Plan:
    """All that decides what the results are."""

    files: list[SourceFile]
    rows_a_part: int
    explainer: str  # the SHA-256 of the explainer's file
    options: dict[str, Any]
    limis: str = __version__

    def parts(self) -> list[Part]:
        """The parts, in the order of the rows; the same for the same files, whoever asks."""
        return list(self._parts())

    def _parts(self) -> Iterator[Part]:
        number = first_row = 0
        for file in self.files:
            for start in range(0, file.rows, self.rows_a_part):
                stop = min(start + self.rows_a_part, file.rows)
                yield Part(number, file, start, stop, first_row + start)
                number += 1
            first_row += file.rows

    def to_json(self) -> str:
        """As text, in the same words for the same plan."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Plan | None:
        """The plan of a folder; None where there is none."""
        path = folder / PLAN
        if not path.exists():
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.pop("format") != FORMAT or data.pop("version") != VERSION:
                raise ValueError("another format")
            files = [SourceFile(**file) for file in data.pop("files")]
            return cls(files=files, **data)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"{path} is not a plan that this limis wrote; name another folder for the output"
            ) from None

    def check_goes_on(self, before: Plan, finished: set[int], folder: Path) -> None:
        """Refuse to go on with other work: what is finished must be what would be made now.

        A file that was mended or added after what is finished is no reason to begin again.
        """
        differing = self._differing(before, finished)
        if differing is not None:
            raise InputError(
                f"{folder} holds results of other work: {differing}; name another folder, or remove this one to "
                "begin again"
            )

    def _differing(self, before: Plan, finished: set[int]) -> str | None:
        if before.explainer != self.explainer:
            return "they are of another explainer"
        if before.limis != self.limis:
            return f"they were made by limis {before.limis}, and this is {self.limis}"
        for name in sorted(set(before.options) | set(self.options)):
            was, asked = before.options.get(name), self.options.get(name)
            if was != asked:
                return f"{name} was {was!r} and is now {asked!r}"
        if before.rows_a_part != self.rows_a_part:
            return f"rows_a_part was {before.rows_a_part} and is now {self.rows_a_part}"
        now = dict(enumerate(self.parts()))
        for part in before.parts():
            if part.number in finished and now.get(part.number) != part:
                return f"{part} of the input was changed or moved since"
        return None
