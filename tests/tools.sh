#!/usr/bin/env bash
# What tests need besides Python and Go: installed where we are root on Debian, named where we are not.
set -euo pipefail

declare -A package_of=([sshd]=openssh-server [gpg]=gnupg [ip]=iproute2)
missing=()
for command in "${!package_of[@]}"; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "$command" >/dev/null || missing+=("${package_of[$command]}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}" >&2
    # RUNLEVEL=1: the packages' services are not to be started, tests start their own.
    export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install --yes --no-install-recommends "${missing[@]}"; } >/dev/null
else
    echo "missing, and some tests will fail without: ${missing[*]} (install with your package manager)" >&2
fi
