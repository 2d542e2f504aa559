"""The command lines: nothing that they start is open to others."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.errors import InputError
from starling.local.clusters import check_name
from starling.local.commands import CONTROL_PLANE, WORKLOADS, flags
from starling.local.start import PORTS


@pytest.mark.parametrize("component", CONTROL_PLANE + WORKLOADS)
def test_nothing_skips_verification_or_listens_to_strangers(component: str) -> None:
    """No component listens anywhere but on the loopback address or a socket in the cluster's folder."""
    line = " ".join(flags(component, 23456))
    assert "insecure" not in line
    assert "http://" not in line
    assert not re.search(r"(?<!\d)0\.0\.0\.0|\[::\]", line)
    if component == "kube-apiserver":
        assert "--bind-address=127.0.0.1" in line
        assert "--secure-port=23456" in line
    elif component not in ("etcd", "kwok"):
        assert "--secure-port=0" in line


def test_ports_are_not_those_of_outgoing_connections() -> None:
    """Remembered ports lie outside the range that Linux hands out by default."""
    assert PORTS.stop <= 32768


@given(st.text(alphabet="abcXYZ019-_./ \n", max_size=70))
def test_names_are_dns_labels(name: str) -> None:
    """Exactly the DNS labels are accepted as names."""
    characters = name.replace("-", "")
    label = (
        0 < len(name) < 64
        and name[0] != "-" != name[-1]
        and (not characters or (characters.isalnum() and characters == characters.lower()))
    )
    if label:
        check_name(name)
    else:
        with pytest.raises(InputError):
            check_name(name)
