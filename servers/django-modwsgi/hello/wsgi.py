"""What mod_wsgi calls; $DJANGO_SETTINGS_MODULE names the settings. For Django 1.1 to 5.2."""

import collections

try:
    import collections.abc

    # Django 1.11 looks for them where Python 3.10 no longer has them.
    collections.Iterator = collections.abc.Iterator
    collections.Mapping = collections.abc.Mapping
    collections.Sequence = collections.abc.Sequence
except ImportError:
    pass  # Python 2.

try:
    from django.core.wsgi import get_wsgi_application
except ImportError:
    # Before Django 1.4.
    from django.core.handlers.wsgi import WSGIHandler as get_wsgi_application

application = get_wsgi_application()
