"""Serve the built book on this machine, on a free port, until Ctrl-C."""

import contextlib
import functools
import http.server
import sys
import threading
from pathlib import Path

HTML = Path(__file__).resolve().parent.parent / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing about single requests."""

    def log_message(self, *_):
        """Say nothing."""


@contextlib.contextmanager
def serving(folder):
    """Serve the folder from a thread; give its address."""
    with server(folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


def server(folder):
    handler = functools.partial(Handler, directory=folder)
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


def main():
    if not (HTML / "index.html").exists():
        sys.exit("There is no built book yet: make book")
    with server(HTML) as running:
        print(
            f"The book is at http://127.0.0.1:{running.server_port}/  (Ctrl-C ends it)", flush=True
        )
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
