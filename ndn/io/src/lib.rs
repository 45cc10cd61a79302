//! Real faces (Unix, TCP, UDP) and the loop that drives the named-data cores.
