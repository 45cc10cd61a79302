"""Queues of switch ports: what a policy asks of them, the agent that makes them, the probe that finds their effect."""
