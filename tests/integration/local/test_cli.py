"""The commands of `starling local`: what they print, where, and how they exit."""

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from starling.local import LocalCluster, build

Done = subprocess.CompletedProcess[str]


def starling(*arguments: str, **environment: str) -> Done:
    """Run the command with these changes to the environment."""
    command = [sys.executable, "-m", "starling", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def on(cluster: LocalCluster, *arguments: str) -> Done:
    """Run a command of `starling local` where the cluster is."""
    return starling("local", *arguments, STARLING_LOCAL_DIR=str(cluster.folder.parent))


def test_up_prints_kubeconfigs_alone(cluster: LocalCluster) -> None:
    """`up` gives paths on stdout and its story on stderr."""
    done = on(cluster, "up", cluster.name)
    assert (done.returncode, done.stdout) == (0, f"{cluster.kubeconfig}\n")
    assert f"{cluster.name}: runs already" in done.stderr


def test_list_as_text_and_as_json(cluster: LocalCluster) -> None:
    """`list` shows what runs, to people and to programs."""
    assert on(cluster, "list").stdout.splitlines()[1].split()[:2] == [cluster.name, "running"]
    [listed] = msgspec.json.decode(on(cluster, "list", "-o", "json").stdout)
    assert listed["pids"] == cluster.pids()
    assert listed["kubeconfig"] == str(cluster.kubeconfig)


def test_kubeconfig_prints_a_path(cluster: LocalCluster) -> None:
    """`kubeconfig` prints one path; for an unknown cluster it says which there are."""
    assert on(cluster, "kubeconfig", cluster.name).stdout == f"{cluster.kubeconfig}\n"
    unknown = on(cluster, "kubeconfig", "nowhere")
    assert (unknown.returncode, unknown.stdout) == (3, "")
    assert f"hint: there are: {cluster.name}" in unknown.stderr


def test_kubectl_gets_all_options_and_gives_its_exit_code(cluster: LocalCluster) -> None:
    """Whatever comes after the cluster's name is kubectl's business, --help included."""
    done = on(cluster, "kubectl", cluster.name, "get", "--output=name", "namespace", "default")
    assert (done.returncode, done.stdout) == (0, "namespace/default\n")
    assert on(cluster, "kubectl", cluster.name, "get", "namespace", "nowhere").returncode == 1
    assert "Display one or many resources" in on(cluster, "kubectl", cluster.name, "get", "--help").stdout
    assert "starling local kubectl" in on(cluster, "kubectl", "--help").stdout


def test_logs_of_one_and_of_all(cluster: LocalCluster) -> None:
    """`logs` prints a component's log as it is, or all of them, each line with its component."""
    one = on(cluster, "logs", cluster.name, "etcd").stdout
    assert one
    assert cluster.log("etcd").read_text().startswith(one)
    prefixes = {line.split(": ")[0] for line in on(cluster, "logs", cluster.name).stdout.splitlines()}
    assert prefixes == {"etcd", "kube-apiserver"}
    assert "it has: etcd, kube-apiserver" in on(cluster, "logs", cluster.name, "kubelet").stderr


def test_a_git_server_until_told_to_stop(tmp_path: Path) -> None:
    """`git-server` prints its URL, serves with the password from the file, and ends well on SIGTERM."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "app.git")], check=True)
    options = ["--username", "flock", "--password-file", str(password)]
    command = [sys.executable, "-m", "starling", "local", "git-server", str(tmp_path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = server.stdout.readline().strip().removeprefix("http://")
        listing = ["git", "ls-remote", f"http://flock:secret@{address}/app.git"]
        assert subprocess.run(listing, check=False).returncode == 0
        server.terminate()
    assert server.returncode == 0


@pytest.mark.parametrize("command", [["up", "hub"], ["build"]], ids=" ".join)
def test_without_go_every_way_out_is_named(tmp_path: Path, command: list[str]) -> None:
    """On a machine without Go, and nothing built, the error says all that one can do."""
    nothing = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "STARLING_LOCAL_DIR": str(tmp_path / "root")}
    done = starling("local", *command, **nothing, KUBEBUILDER_ASSETS="")
    assert done.returncode == 3
    assert "there is no Go on this machine" in done.stderr
    for way_out in ("install Go 1.", "KUBEBUILDER_ASSETS", "--kubeconfig"):
        assert way_out in done.stderr


@pytest.mark.parametrize("where", ["KUBEBUILDER_ASSETS", "PATH"])
def test_ready_made_programs_need_no_build(tmp_path: Path, where: str) -> None:
    """With etcd, kube-apiserver and kubectl at hand there is nothing to build, and clusters run without Go."""
    programs = tmp_path / "programs"
    programs.mkdir()
    ours = asyncio.run(build(print))
    for component in ("etcd", "kube-apiserver", "kubectl"):
        program = programs / component
        program.write_text(f'#!/bin/sh\nexec {shlex.join(ours.command(component))} "$@"\n')
        program.chmod(0o755)
    bare = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "KUBEBUILDER_ASSETS": ""}
    environment = {**bare, "STARLING_LOCAL_DIR": str(tmp_path / "root"), where: str(programs)}

    built = starling("local", "build", **environment)
    assert (built.returncode, built.stdout) == (0, f"{programs}/kube-apiserver\n")
    assert f"nothing to build, these are used: {programs}/etcd, " in built.stderr
    try:
        up = starling("local", "up", "hub", **environment)
        assert up.returncode == 0, up.stderr
        done = starling("local", "kubectl", "hub", "get", "namespace", "default", "--output=name", **environment)
        assert (done.returncode, done.stdout) == (0, "namespace/default\n")
    finally:
        assert starling("local", "down", **environment).returncode == 0
    assert not (tmp_path / "cache").exists()


def test_assets_that_are_not_there(tmp_path: Path) -> None:
    """A KUBEBUILDER_ASSETS that points nowhere is an error, not ignored."""
    done = starling("local", "up", "hub", KUBEBUILDER_ASSETS=str(tmp_path), STARLING_LOCAL_DIR=str(tmp_path / "root"))
    assert done.returncode == 3
    assert f"KUBEBUILDER_ASSETS is {tmp_path}" in done.stderr
