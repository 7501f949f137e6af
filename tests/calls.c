/* Preloaded: tells on standard error what an event loop does, "w" for each wake-up, "a" for each
   connection that it accepts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void
tell (char what)
{
  (void) !write (STDERR_FILENO, &what, 1);
}

int
epoll_wait (int epoll, struct epoll_event *events, int size, int timeout)
{
  int (*real) (int, struct epoll_event *, int, int) = dlsym (RTLD_NEXT, "epoll_wait");
  int n = real (epoll, events, size, timeout);
  tell ('w');
  return n;
}

int
accept4 (int listener, struct sockaddr *address, socklen_t *size, int flags)
{
  int (*real) (int, struct sockaddr *, socklen_t *, int) = dlsym (RTLD_NEXT, "accept4");
  int sd = real (listener, address, size, flags);
  if (sd >= 0)
    tell ('a');
  return sd;
}
