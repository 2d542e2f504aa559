"""`python -m starling` is the command line."""

from starling.cli import main

main()
