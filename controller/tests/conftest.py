"""What all tests share."""

import hypothesis

# Machines differ, so no example has a deadline; runs don't, so that a failure is everybody's.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("suite")
