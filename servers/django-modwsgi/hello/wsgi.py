"""What mod_wsgi calls; $DJANGO_SETTINGS_MODULE names the settings."""

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
