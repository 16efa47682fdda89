"""A web page and a REST interface for one fitted explainer.

Needs the extra ``serve``. `make_app` returns an ASGI app, `run` serves it with uvicorn.
"""

from limis.serve.app import make_app
from limis.serve.running import run
from limis.serve.settings import Settings, is_loopback

__all__ = ["Settings", "is_loopback", "make_app", "run"]
