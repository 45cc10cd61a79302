"""What the network is: switches, ports, links and hosts, the paths between them. Pure."""
