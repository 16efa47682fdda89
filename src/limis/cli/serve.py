"""``limis serve``: a web page and a REST interface for an explainer."""

from __future__ import annotations

import argparse
import os
import secrets
from argparse import ArgumentTypeError
from contextlib import suppress
from pathlib import Path

from limis import store
from limis.cli.models import MODEL_HELP, TRUST_HELP, load_model
from limis.errors import require
from limis.table_files import check_input, read_table

DESCRIPTION = """\
Serve a page on which rows are browsed, explained and changed, and a REST interface for programs.

The server hears this machine alone, unless --host says otherwise; then whoever asks must know a
token: --token, or LIMIS_TOKEN in the environment, else one is made and printed. Connections are not
encrypted: on a network that others share, put a server with TLS before it. Uploaded tables are kept
in memory, for an hour after they were last used.

  /               the rows, and a page for each
  /docs           the REST interface: /api/explain, what-if, suggest, neighbours, metadata, health
  /openapi.json   the same for programs
"""
EXAMPLES = """\
examples:
  limis serve income.limis
  limis serve income.limis rows.csv --port 9000
  limis serve risk.limis rows.csv --model my_model:predict
  LIMIS_TOKEN="$(cat token.txt)" limis serve income.limis --host 0.0.0.0
"""
PORT = 8000


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="serve a web page and a REST interface",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("explainer", type=Path, metavar="EXPLAINER", help="a file that `limis fit` wrote")
    parser.add_argument(
        "rows", type=Path, nargs="?", metavar="ROWS", help="rows to browse: .csv or .parquet (else some training rows)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=_port, default=PORT, help=f"where to listen ({PORT}); 0 takes a free one")
    parser.add_argument("--token", help="what whoever asks must know; at least 16 characters")
    parser.add_argument("--model", metavar="MODEL", help=f"{MODEL_HELP}. Not needed for a model inside EXPLAINER")
    parser.add_argument("--trust-model", action="store_true", help=TRUST_HELP)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    for module in ("fastapi", "uvicorn", "python_multipart"):
        require(module, "serve")
    from limis import serve
    from limis.serve.settings import LOOPBACK_NAMES

    check_input(args.explainer)
    token = args.token or os.environ.get("LIMIS_TOKEN") or None
    alone = serve.is_loopback(args.host)
    made = token is None and not alone
    if made:
        token = secrets.token_urlsafe(24)
    settings = serve.Settings(token=token, hosts=(*LOOPBACK_NAMES, args.host.lower()) if alone else None)
    explainer = store.load(
        args.explainer, model=None if args.model is None else load_model(args.model, args.trust_model)
    )
    rows = None if args.rows is None else read_table(args.rows, like=explainer.training_.frame)
    name, most = "" if args.rows is None else args.rows.name, settings.upload_rows
    note = ""
    if rows is not None and len(rows) > most:
        note = f"{name} has {len(rows):,} rows, of which the first {most:,} are served"
        rows, name = rows.head(most), f"{name}, the first {most:,} of {len(rows):,} rows"
    app = serve.make_app(explainer, rows, name, settings)

    def ready(address: str) -> None:
        print(f"limis serves {args.explainer} at {address}/ (Ctrl+C stops it)", flush=True)
        if note:
            print(note, flush=True)
        if made:
            print(f"token: {token}\nopen {address}/?token={token}", flush=True)

    with suppress(KeyboardInterrupt):  # the usual end of a server
        serve.run(app, args.host, args.port, ready)
    return 0


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)
