"""The lab: real Hadoop clusters on loopback addresses, the bytes on every host's link, and the figures the README quotes.

It runs the built commands and stock Hadoop; it imports nothing of either.
"""
