"""What operators write about traffic: categories, queues, roles of hosts; read, checked, made into rules. Pure."""
