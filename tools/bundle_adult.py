"""Make the Adult file that ships with limis from the raw files of the UCI repository.

Usage: python tools/bundle_adult.py FOLDER, where FOLDER holds adult.data and adult.test,
plain or with .gz.

Blanks around the cells, the comment at the head of adult.test and the full stop behind its labels
are dropped, and a line of column names is added. Nothing else changes: rows keep their order,
adult.data first, and an unknown value stays "?".
"""

import argparse
import gzip
import hashlib
import sys
from pathlib import Path

BUNDLED = Path(__file__).parents[1] / "src/limis/datasets/adult.csv.gz"

SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

# From adult.names, which leaves the label without a name.
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)


def read_raw(folder: Path, name: str) -> str:
    """Return a raw file's text after checking that it is the known one."""
    plain, packed = folder / name, folder / f"{name}.gz"
    if plain.exists():
        content = plain.read_bytes()
    elif packed.exists():
        content = gzip.decompress(packed.read_bytes())
    else:
        sys.exit(f"neither {plain} nor {packed} is there")
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        sys.exit(f"{name} is not the known file: its SHA-256 is {found}, not {SHA256[name]}")
    return content.decode("ascii")


def clean(text: str) -> list[str]:
    """Return one CSV line a person."""
    lines = []
    for line in text.splitlines():
        if not line or line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(COLUMNS):
            sys.exit(f"expected {len(COLUMNS)} cells: {line!r}")
        cells[-1] = cells[-1].removesuffix(".")
        lines.append(",".join(cells))
    return lines


def main() -> None:
    """Read, check, clean, write."""
    parser = argparse.ArgumentParser(description="Make the bundled Adult file.")
    parser.add_argument("folder", type=Path, help="holds adult.data and adult.test")
    folder = parser.parse_args().folder
    lines = [",".join(COLUMNS)]
    for name in SHA256:
        lines += clean(read_raw(folder, name))
    # Without a time stamp, equal content gives equal bytes.
    BUNDLED.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    print(f"{len(lines) - 1} rows, {BUNDLED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
