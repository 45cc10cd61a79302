"""The edge toward people and programs: REST, metrics and a page."""
