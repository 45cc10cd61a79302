"""The lab: real Hadoop clusters on loopback addresses, every host's bytes, and the figures the README quotes.

It runs the built commands and stock Hadoop; it imports nothing of either.
"""
