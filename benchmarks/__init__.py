"""Figures, as ratios against the raw API server in the same run.

    python -m benchmarks            all of them (`make bench`)
    python -m benchmarks apply_rate one

Each benchmark is a module with `async def measure(cluster) -> list[Row]`. Absolute times say more about the machine
than about us: read the ratios. `held` compares one with the number that was promised.
"""
