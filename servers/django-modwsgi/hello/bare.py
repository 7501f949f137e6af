"""Only what the answer needs."""

# An experiment's Host header is an address of the testbed.
ALLOWED_HOSTS = ["*"]
# It signs nothing here.
SECRET_KEY = "benchmark"
ROOT_URLCONF = "hello.urls"
# Sets Content-Length.
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
