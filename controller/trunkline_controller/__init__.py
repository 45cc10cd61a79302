"""An OpenFlow controller that knows Hadoop's traffic: who sends what, into which queue, and what links carry.

`net`, `flows`, `policy` and the decisions of `queues` and `jobs` are pure: no sockets, no clock, no os-ken. `openflow`
speaks to switches, `http` to people and programs, `controller` joins them.
"""

__version__ = "0.1.0"
