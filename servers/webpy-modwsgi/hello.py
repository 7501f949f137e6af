"""web.py's hello-world program, as mod_wsgi calls it. For web.py 0.33 to 0.76."""

import web

# No reloading of changed modules.
web.config.debug = False


class Hello:
    def GET(self):
        # web.py hands its answer on piece by piece, without a length.
        web.header("Content-Length", "12")
        return "Hello, world"


application = web.application(("/", Hello)).wsgifunc()
