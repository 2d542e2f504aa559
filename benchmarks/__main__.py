"""`python -m benchmarks [NAME…]`: run them on a cluster of their own and print a table."""

import asyncio
import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks.rows import Row
from starling.local import LocalClusters

NOT_BENCHMARKS = {"__main__", "fleet_hub", "rows", "simulated_agents", "syncgroup_hub"}


def main() -> None:
    """Run the benchmarks named, or all."""
    there = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in NOT_BENCHMARKS]
    chosen = sys.argv[1:] or there
    if unknown := set(chosen) - set(there):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(there)}")
    table = Table("benchmark", "measured", "figure", "asked for", "held")
    for name in chosen:
        print(f"{name} …", file=sys.stderr)
        for row in asyncio.run(run(name)):
            held = "" if row.held is None else "yes" if row.held else "NO"
            table.add_row(name, row.what, row.figure, row.target, held)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


async def run(name: str) -> list[Row]:
    """One benchmark on a fresh API server."""
    module = importlib.import_module(f"benchmarks.{name}")
    with tempfile.TemporaryDirectory() as folder:
        clusters = LocalClusters(Path(folder))
        try:
            (cluster,) = await clusters.up("bench")
            rows: list[Row] = await module.measure(cluster)
            return rows
        finally:
            await clusters.down()


main()
