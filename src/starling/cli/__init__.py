"""The command line: one file per group of commands, each a thin layer over the library.

    main         the entry point, which loads the rest
    app          the commands under one roof; the one place that turns errors into messages and exit codes
    local        control planes on this machine
    install      the hub's CRDs, namespace and roles
    cluster      clusters that the hub connects to, and letting go of clusters
    clusters     … at a glance, and what may be done there
    enrol        clusters that dial in
    get, status  the fleet in a table; where one thing stands, and why
    rollout      how a change spreads: see it, wait for it, stop it, let it go on, take it back
    apply        manifests to a cluster, as one unit
    diff         … what that would change
    delete       a unit's objects away again
    tree         a unit's objects, and what was made for them
    health       how ready objects in files are
    render       the manifests that a folder or a repository comes to
    source       which version of a repository is meant

    fleet        the hub, and what those commands read and write there
    standings    what a Module is on a cluster, in a version and a word
    rollouts     a rollout as it is read: policy, history, states, whether it has ended
    orders       what may be ordered of one, and giving the order
    courses      how one goes, for people and as JSON
    kubeconfigs  a kubeconfig that can be used elsewhere
    materials    what render, apply and diff make manifests of, and the options that say it
    units        the engine as apply, diff and delete use it: one cluster, files, a record in a ConfigMap
    files        files as commands name them, where - is stdin
    progress     what is shown while a command works
    reports      what is said of a unit in the end, as text and as JSON
    options      options that several commands share, and how a command takes many of them as one value
    console      what goes to stdout (data) and to stderr (everything else)

Data goes to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the answer is no (a difference, a
failed rollout), 2 a wrong call or input (no such kubeconfig or context, too; 3 of a diff), 3 an error, 4 out of time,
130 interrupted, 141 nobody reads the output, 143 ended by SIGTERM.
"""

from starling.cli.main import main

__all__ = ["main"]
