#!/usr/bin/env bash
# The demo: a hub and two clusters, real Kubernetes on this machine; manifests applied, kept, and taken away again.
set -euo pipefail

STARLING_LOCAL_DIR=$(mktemp -d)
export STARLING_LOCAL_DIR
finish() {
    printf '\n%sstopping the clusters%s\n' "$faint" "$plain"
    starling local down
    rm -rf "$STARLING_LOCAL_DIR"
}
trap finish EXIT

bold='' command='' faint='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\033[1m' command=$'\033[36m' faint=$'\033[2m' plain=$'\033[0m'
fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() {
    local argument line=''
    for argument in "$@"; do
        [[ $argument == *[[:space:]\{\"]* ]] && argument="'$argument'"
        line+=" $argument"
    done
    printf '%s$%s%s\n' "$command" "$line" "$plain"
}
run() { show "$@"; "$@"; }

here=$(dirname "$0")

say "Three clusters: a hub, and two to be managed, where pods become ready (but serve nothing: they are simulated)"
run starling local up hub
run starling local up eu-1 us-1 --workloads
run starling local list

say "Starling's kinds, on the hub"
hub=$(starling local kubeconfig hub)
run starling install --kubeconfig "$hub"
run starling local kubectl hub get crds

say "A rollout policy and a source, as anyone would write them"
run starling local kubectl hub apply -f "$here/fleet"
run starling local kubectl hub get starling -A

say "What they mean is in the API itself"
run starling local kubectl hub explain rolloutpolicy.spec.stages.bake

say "And a policy that makes no sense is refused, with the reason"
if run starling local kubectl hub patch rolloutpolicy safe -n starling-system --type=merge \
    -p '{"spec": {"maxConcurrent": -1}}'; then
    echo "error: it was accepted" >&2
    exit 1
fi

say "The engine, on one cluster at a time: a folder of manifests, applied as one unit"
eu=$(starling local kubeconfig eu-1)
run starling apply -f "$here/web" --name web --kubeconfig "$eu" --wait
run starling tree --name web --kubeconfig "$eu"

say "Someone changes a field of ours: the diff tells, and the next apply puts it right"
run starling local kubectl eu-1 -n web scale deployment/web --replicas=5
if run starling diff -f "$here/web" --name web --kubeconfig "$eu"; then
    echo "error: no difference was found" >&2
    exit 1
fi
run starling apply -f "$here/web" --name web --kubeconfig "$eu" --wait

say "And what isn't wanted any more goes, all of it"
run starling delete --name web --kubeconfig "$eu"

say "That's all for now"
if [ -t 0 ]; then
    echo "The clusters stay until you press Enter. In another terminal:"
    echo "  export KUBECONFIG=$hub"
    read -r _ || true
fi
