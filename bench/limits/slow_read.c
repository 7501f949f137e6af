/* Preloaded into a load generator, which then reads late and opens its connections on time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>

#include "spin.h"

ssize_t
read (int fd, void *buffer, size_t size)
{
  static ssize_t (*real) (int, void *, size_t);
  if (!real)
    *(void **) &real = dlsym (RTLD_NEXT, "read");
  spin ();
  return real (fd, buffer, size);
}
