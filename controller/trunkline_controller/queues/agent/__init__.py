"""The agent at a switch's host: makes the queues that the controller wants in Open vSwitch, and the filters that put
marked packets into them.
"""

import warnings

# Open vSwitch's library looks for eventlet, which is not used here, and eventlet says at length that it is deprecated.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
