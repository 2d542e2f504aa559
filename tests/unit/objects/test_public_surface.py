"""What the package offers."""

import starling.objects


def test_the_public_surface_is_what_all_says() -> None:
    """Every exported name exists, is sorted, and says what it is."""
    names = starling.objects.__all__
    assert names == sorted(names)
    for name in names:
        assert getattr(starling.objects, name).__doc__
