"""CherryPy's hello-world program. For Python 2, with CherryPy 3.2 to 8.9, and for Python 3.

serve.py ADDRESS PORT BACKLOG SETTINGS, where SETTINGS is production or defaults.
"""

import sys

import cherrypy

SETTINGS = {
    "production": {"environment": "production", "log.screen": False},
    "defaults": {},
}


class Hello:
    @cherrypy.expose
    def index(self):
        return "Hello, world"


if __name__ == "__main__":
    address, port, backlog, settings = sys.argv[1:]
    cherrypy.config.update(
        {
            "server.socket_host": address,
            "server.socket_port": int(port),
            "server.socket_queue_size": int(backlog),
        }
    )
    cherrypy.config.update(SETTINGS[settings])
    if settings == "production":
        # With no log to write to, CherryPy still formats a line for each request.
        cherrypy.log.access = lambda: None
    cherrypy.quickstart(Hello())
