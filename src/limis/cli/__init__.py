"""The `limis` command: a module a subcommand, each with ``add_parser`` and ``run``."""
