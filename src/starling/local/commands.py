"""The components' command lines: how a control plane is put together, and nothing else.

Every component runs in its cluster's folder, so paths are relative to that. etcd listens on Unix sockets in
that folder, which only its owner can enter: no ports, no certificates, and no limit on the folder's path, since
the sockets' own is short. The API server's port is the only one that is open, on the loopback address; the
others serve nothing.
"""

from collections.abc import Sequence

__all__ = ["AUDIT_POLICY", "CLIENTS", "CONTROL_PLANE", "WORKLOADS", "flags"]

CONTROL_PLANE = ("etcd", "kube-apiserver")
WORKLOADS = ("kube-controller-manager", "kube-scheduler", "kwok")

CLIENTS: dict[str, tuple[str, Sequence[str]]] = {
    "admin": ("admin", ["system:masters"]),
    "kube-controller-manager": ("system:kube-controller-manager", []),
    "kube-scheduler": ("system:kube-scheduler", []),
    "kwok": ("kwok", ["system:masters"]),
}


def flags(component: str, port: int, *, audit: bool = False) -> list[str]:
    """Give the flags of a component of the cluster whose API server has that port, and an audit log or not."""
    match component:
        case "etcd":
            return ETCD
        case "kube-apiserver":
            return [*API_SERVER, *(AUDIT if audit else ()), f"--secure-port={port}"]
        case _:
            return [f"--kubeconfig=pki/{component}.kubeconfig", *WORKLOAD_FLAGS[component]]


ETCD = [
    "--name=etcd",
    "--data-dir=etcd",
    "--listen-client-urls=unix://etcd.sock",
    "--listen-peer-urls=unix://peer.sock",
    # What is advertised has to look like host:port; nobody ever dials it.
    "--advertise-client-urls=unix://etcd:0",
    "--initial-advertise-peer-urls=unix://peer:0",
    "--initial-cluster=etcd=unix://peer:0",
    # A single member that elects itself: the shorter the election, the sooner it serves.
    "--heartbeat-interval=50",
    "--election-timeout=250",
    # A killed process loses nothing by this; a machine that loses power may.
    "--unsafe-no-fsync",
]

API_SERVER = [
    "--etcd-servers=unix://etcd.sock",
    "--bind-address=127.0.0.1",
    # Nobody dials it. Not said, it is looked for, and a machine without a network has none.
    "--advertise-address=192.0.2.1",
    "--tls-cert-file=pki/kube-apiserver.crt",
    "--tls-private-key-file=pki/kube-apiserver.key",
    "--client-ca-file=pki/ca.crt",
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-account-key-file=pki/service-accounts.pub",
    "--service-account-signing-key-file=pki/service-accounts.key",
    "--service-cluster-ip-range=127.64.0.0/16",
    "--authorization-mode=RBAC",
    "--allow-privileged=true",
    # An Endpoints object can't hold a loopback address, and no pod runs that would use it.
    "--endpoint-reconciler-type=none",
    "--profiling=false",
]

AUDIT = ["--audit-policy-file=audit.yaml", "--audit-log-path=logs/audit.log", "--audit-log-mode=blocking-strict"]

# Who asked for what, with what was sent and answered; Secrets and tokens without.
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    resources:
      - group: ""
        resources: [secrets, serviceaccounts/token]
  - level: RequestResponse
    verbs: [create, update, patch, delete, deletecollection]
  - level: Metadata
"""

WORKLOAD_FLAGS = {
    "kube-controller-manager": [
        "--service-account-private-key-file=pki/service-accounts.key",
        "--root-ca-file=pki/ca.crt",
        "--cluster-signing-cert-file=pki/ca.crt",
        "--cluster-signing-key-file=pki/ca.key",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ],
    "kube-scheduler": [
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ],
    "kwok": [
        "--config=kwok.yaml",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        "--node-ip=10.1.0.1",
        "--cidr=10.2.0.0/16",
    ],
}
