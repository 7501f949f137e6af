"""The one page. For Django 1.1 to 5.2, so for Python 2 too."""

import django
from django.http import HttpResponse

try:
    from django.urls import path
except ImportError:
    path = None
    try:
        from django.conf.urls import url
    except ImportError:
        from django.conf.urls.defaults import url


def hello(request):
    response = HttpResponse("Hello, world")
    if django.VERSION < (1, 11):
        # Later on, CommonMiddleware sets it.
        response["Content-Length"] = "12"
    return response


urlpatterns = [path("", hello) if path else url("^$", hello)]
