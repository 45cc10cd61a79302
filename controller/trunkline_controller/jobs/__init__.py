"""Running jobs: how far their reducers are, and which of them deserve a better queue."""
