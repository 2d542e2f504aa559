#!/usr/bin/env bash
# The demo: a hub and four clusters, real Kubernetes on this machine. Two are pushed to, two dial in; a version is rolled
# out, drift undone, the hub stopped while a cluster heals itself, and back again. Nothing of it is left behind.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
export STARLING_LOCAL_DIR=$work/clusters STARLING_CACHE_DIR=$work/cache
services=()

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
quietly() { show "$@"; "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; return 1; }; }
start() { # start LOG COMMAND…: have a process run, which the demo ends
    local log=$1
    shift
    show "$@" '&'
    "$@" >"$log.log" 2>&1 &
    services+=($!)
}
kubectl() { starling local kubectl "$@"; }
wait_for() { kubectl "$1" wait --timeout=5m "${@:2}" >/dev/null; } # wait_for CLUSTER …, as kubectl wait takes it
at_version() { # at_version MODULE VERSION: once all its clusters have it
    wait_for hub -n starling-system "module/$1" --for=jsonpath='{.status.revision}'="$2@sha1:$(git -C fleet rev-parse "$2")"
    wait_for hub -n starling-system "module/$1" --for=condition=Ready
}
commit() { # commit VERSION MESSAGE
    quietly git -C fleet commit --all --message "$2"
    quietly git -C fleet tag "$1"
}

finish() {
    local code=$? service
    trap - EXIT
    if [ "$code" -ne 0 ]; then
        printf '\n%sthe demo failed; what its processes said last:%s\n' "$bold" "$plain" >&2
        tail -n 15 ./*.log >&2 || true
    fi
    printf '\n%sstopping everything%s\n' "$faint" "$plain"
    for service in "${services[@]}"; do kill "$service" 2>/dev/null || true; done
    wait
    starling local down
    cd / && rm -rf "$work"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"

say "Five clusters: a hub, and four to be managed. On two of them pods become ready (but serve nothing: they are simulated)"
quietly starling local up hub us-1 edge-2
quietly starling local up eu-1 edge-1 --workloads
for each in hub eu-1 us-1 edge-1 edge-2; do ln -s "$(starling local kubeconfig "$each")" "$each.yaml"; done
run starling local list

say "A hub: Starling's kinds and roles, and the controller, here as a process"
run export KUBECONFIG="$work/hub.yaml"
quietly starling install
start controller starling controller

say "Two clusters that the hub connects to"
quietly starling cluster add eu-1 --kubeconfig eu-1.yaml --labels region=eu
quietly starling cluster add us-1 --kubeconfig us-1.yaml --labels region=us

say "Two that dial in: nobody need be able to connect to them"
quietly starling enrol edge-1 --labels region=eu --into edge-1.yaml
quietly starling enrol edge-2 --labels region=us --into edge-2.yaml

say "Their agents; nodes are simulated here, so these are processes too"
for each in eu-1 us-1 edge-1 edge-2; do start "agent-$each" starling agent --kubeconfig "$each.yaml" --heartbeat 5s; done
wait_for hub -n starling-system scl --all --for=condition=Ready
run starling get clusters

say "A git repository, a Source that follows its versions, and two Modules: one for all clusters, one for those in eu"
start git bash "$here/fleet/serve.sh" .
until url=$(grep -m1 '^http' git.log); do kill -0 "${services[-1]}" && sleep 0.1; done
sed -n '/^kind: Module/,/^---/p' "$here/fleet/fleet.yaml" | sed '/^---/,$d'
sed "s|http://127.0.0.1:8089|$url|" "$here/fleet/fleet.yaml" >fleet.yaml
run starling local kubectl hub apply -f fleet.yaml
at_version base v1.0.0
at_version web v1.0.0
run starling get

say "Each cluster has values of its own, and pods that are ready where there are any"
run starling local kubectl edge-2 get configmap cluster-info -o 'jsonpath={.data}{"\n"}'
run starling local kubectl edge-1 -n web get deployments

say "A new version of base: it goes to one cluster after the other, as the Module's maxConcurrent says"
sed -i 's/edition: "1"/edition: "2"/' fleet/base/cluster-info.yaml
commit v1.1.0 "base: a second edition"
at_version base v1.1.0
run starling status module base
say "web is in that version too, but nothing of it changed: so it stays where it is"
run starling get

say "Someone scales by hand on a cluster: it is put right there, within moments"
run starling local kubectl eu-1 -n web scale deployment/web --replicas=5
wait_for eu-1 -n web deployment/web --for=jsonpath='{.spec.replicas}'=2
wait_for eu-1 -n starling-system events --field-selector reason=DriftCorrected --for=create
run starling local kubectl eu-1 -n starling-system get events --field-selector reason=DriftCorrected -o custom-columns=MESSAGE:.message

say "The hub is gone: its API server is killed"
pid=$(starling local list -o json | python3 -c '
import json, sys
print(next(each for each in json.load(sys.stdin) if each["name"] == "hub")["pids"]["kube-apiserver"])')
run kill -KILL "$pid"
if starling get >/dev/null 2>&1; then
    echo "error: the hub still answers" >&2
    exit 1
fi
say "Meanwhile someone deletes what runs on a cluster: it heals itself, as it knows by itself what it should be"
run starling local kubectl edge-1 -n web delete deployment web
wait_for edge-1 -n web deployment/web --for=create
wait_for edge-1 -n web deployment/web --for=condition=Available
run starling local kubectl edge-1 -n web get deployments

say "The hub is back, takes nobody for dead, and goes on where it was: the next version is rolled out"
quietly starling local up hub
sed -i 's/replicas: 2/replicas: 3/' fleet/web/web.yaml
commit v1.2.0 "web: three replicas"
at_version web v1.2.0
run starling get

say "That's all for now"
if [ -t 0 ]; then
    echo "The clusters stay until you press Enter. In another terminal:"
    echo "  export STARLING_LOCAL_DIR=$STARLING_LOCAL_DIR KUBECONFIG=$work/hub.yaml"
    read -r _ || true
fi
