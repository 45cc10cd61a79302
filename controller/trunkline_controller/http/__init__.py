"""The controller by HTTP: its REST interface, metrics for Prometheus, and a page that shows the network.

`create_app` makes the application on a `control.Control`; `HttpServer` runs it in a thread of its own.
"""

from .app import create_app
from .server import HttpServer
from .settings import HttpSettings

__all__ = ["HttpServer", "HttpSettings", "create_app"]
