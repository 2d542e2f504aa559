"""What keeps the kinds true: one file per kind, thin. Each reads the world, asks a pure decision, writes the result.

On the hub:

    source        a repository and a version policy → the exact version        Source.status
    cluster       who is there, and which labels they may choose               Cluster.status, labels
    module        which clusters may move to which target now                  Module.status, a ControllerRevision
    assembler     all that one cluster runs, from all Modules, in one write    ProxyAssemblage.spec
    push          to clusters that the hub can reach                           a Delivery for each

On the cluster:

    upstream      to a hub that the cluster can reach: a Delivery, heartbeats, the token's renewal
    assemblage    entries → Syncs, and how they stand
    sync          the engine's adapter: Syncs as its units, sources and rendering as its generator; on a hub, for
                  clusters that Syncs name, too

`delivery` is the same in both directions: ProxyAssemblage → Assemblage, and back how it stands. `repositories` and
`secrets` are what several need. Controllers never call one another: they write specs and learn outcomes by watching.
"""

__all__: list[str] = []
"""Nothing here is a library: `starling.operator` puts it together."""
