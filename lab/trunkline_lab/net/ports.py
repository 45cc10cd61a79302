"""The ports of the lab's daemons. Each host is a namespace of its own, so that all have the usual ones."""

from __future__ import annotations

FACE = 6363  # of routers
DATA = 9866

SERVICES = {
    "namenode": 8020,
    "namenode-http": 9870,
    "datanode": DATA,
    "datanode-ipc": 9867,
    "datanode-http": 9864,
    "datanode-named": 9868,  # the plug-in's, for control connections of named writes
    "nodemanager": 8041,
    "nodemanager-localizer": 8040,
    "nodemanager-web": 8042,
    "historyserver": 10020,
}

RPC = frozenset({8020, 9867, *range(8030, 8034), 8040, 8041, 10020, 10033})
SHUFFLE = frozenset({13562})
FACES = frozenset({FACE})
CONTROL = frozenset({SERVICES["datanode-named"]})
WEB = frozenset({9864, 9870, 8088, 8042, 19888})
