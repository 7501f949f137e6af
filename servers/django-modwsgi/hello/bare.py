"""Only what the answer needs. For Django 1.1 to 5.2."""

# An experiment's Host header is an address of the testbed.
ALLOWED_HOSTS = ["*"]
# It signs nothing here.
SECRET_KEY = "benchmark"
ROOT_URLCONF = "hello.urls"
# Sets Content-Length.
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
# Its name before Django 1.10.
MIDDLEWARE_CLASSES = MIDDLEWARE
