"""What a package makes public is what it says it makes public."""

import importlib
import pkgutil
import types

import pytest

import starling

PACKAGES = [module.name for module in pkgutil.walk_packages(starling.__path__, "starling.") if module.ispkg]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_tells_what_it_is_for(name: str) -> None:
    """A package's docstring is its tour: what it is for, its nouns, how data goes through it."""
    tour = importlib.import_module(name).__doc__ or ""
    assert 8 <= len(tour.strip().splitlines()) <= 40


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_the_surface(name: str) -> None:
    """What can be imported from a package without an underscore is in `__all__`, and the other way round."""
    package = importlib.import_module(name)
    there = {
        each
        for each, value in vars(package).items()
        if not each.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert there == set(package.__all__)
