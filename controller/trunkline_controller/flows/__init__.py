"""What switches should do: flow entries and groups, and the difference between what they have and what they should."""
