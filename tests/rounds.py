"""How many rounds the fault and fuzz tests make: few in `make test`, many in `make soak`."""

import os

ROUNDS = int(os.environ.get("STARLING_ROUNDS", "1"))
