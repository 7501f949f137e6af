"""The one page."""

from django.http import HttpRequest, HttpResponse
from django.urls import path


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Hello, world")


urlpatterns = [path("", hello)]
