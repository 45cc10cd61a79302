"""Data centres on one machine: network namespaces joined by shaped links, with real daemons in them.

`topology` says what there is, `fabric` makes and removes it, `links` and `flows` count its bytes, `bed` puts a cluster
on it. Only this package speaks to the kernel's network; it needs root and pyroute2.
"""
