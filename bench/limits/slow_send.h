/* Included before the null server's code, which then answers fewer requests. */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "spin.h"

static inline ssize_t
slow_send (int sd, const void *buffer, size_t size, int flags)
{
  spin ();
  return send (sd, buffer, size, flags);
}

#define send slow_send
