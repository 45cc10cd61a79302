"""Mirrored replication: switches copy the segments of a block's write to all replicas of its pipeline (TCP-MR)."""
