"""What holds for all tests: property tests judge by results, never by how busy the machine is."""

import os
import signal

from hypothesis import HealthCheck, settings

from tests.rounds import ROUNDS

# One round tries the same examples each time, so that a red run is about the change at hand; more rounds go looking.
settings.register_profile(
    "starling", deadline=None, derandomize=ROUNDS == 1, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("starling")

# Control planes that live for a minute or two: memory is there, time isn't.
os.environ.setdefault("GOGC", "400")

# A shell's background jobs have it ignored, and so would the commands that tests start to interrupt them.
signal.signal(signal.SIGINT, signal.default_int_handler)
