"""The agent at a switch's host: makes the queues that the controller wants in Open vSwitch, and the filters that put
marked packets into them.
"""
