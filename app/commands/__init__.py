"""The ``wakeful`` command, and what its subcommands run."""
