"""Serve the built book on this machine, on a free port, until Ctrl-C."""

import functools
import http.server
import sys
from pathlib import Path

HTML = Path(__file__).resolve().parent.parent / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing about single requests."""

    def log_message(self, *_):
        """Say nothing."""


def main():
    if not (HTML / "index.html").exists():
        sys.exit("There is no built book yet: make book")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=HTML)
    )
    print(f"The book is at http://127.0.0.1:{server.server_port}/  (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
