"""The edge toward switches: os-ken, LLDP, and flow entries on the wire."""
