"""The command line: one file per group of commands, each a thin layer over the library.

    main         the entry point; the one place that turns errors into messages and exit codes
    local        control planes on this machine
    install      the hub's CRDs, namespace and roles
    console      what goes to stdout (data) and to stderr (everything else)

Data goes to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the answer is no (a difference, a
failed rollout), 2 a wrong call or input, 3 an error, 4 out of time, 130 interrupted, 141 nobody reads the output.
"""

from starling.cli.main import app, main

__all__ = ["app", "main"]
