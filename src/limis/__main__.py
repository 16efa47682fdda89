"""``python -m limis`` is the `limis` command."""

import sys

from limis.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
