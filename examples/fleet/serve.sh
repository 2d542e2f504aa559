#!/usr/bin/env bash
# Make FOLDER/fleet a git repository of what the fleet runs, version v1.0.0, unless it is there; serve it on PORT.
set -euo pipefail

root=${1:?usage: serve.sh FOLDER [PORT]}
if [ ! -d "$root/fleet/.git" ]; then
    mkdir -p "$root"
    cp -r "$(dirname "$0")/repository" "$root/fleet"
    git init --quiet --initial-branch=main "$root/fleet"
    git -C "$root/fleet" config user.name "the fleet's keeper"
    git -C "$root/fleet" config user.email fleet@example.com
    git -C "$root/fleet" config commit.gpgsign false
    git -C "$root/fleet" config tag.gpgsign false
    git -C "$root/fleet" add --all
    git -C "$root/fleet" commit --quiet --message "the first version"
    git -C "$root/fleet" tag v1.0.0
fi
exec starling local git-server "$root" --port "${2:-0}"
