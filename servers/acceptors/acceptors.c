/* One server, four ways to accept, so that nothing else differs.

   acceptors ADDRESS PORT BACKLOG STRATEGY WORK_US

   one        one thread; of what waits, one connection a wake-up
   many       one thread; all that wait, until accept says that none does
   several    four threads at one listening socket, each as "one"
   reuseport  four threads, each as "one" at a listening socket of its own

   Every request is answered alike after WORK_US microseconds of the thread's CPU time, and its
   connection is closed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, DESCRIPTORS = 1 << 20, EVENTS = 256, NOTHING_CAME = 255 };

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n"
                             "Content-Type: text/html\r\nConnection: close\r\n\r\nHello, world";

/* By descriptor: how much of the blank line that ends a request has come. */
static unsigned char matched[DESCRIPTORS];
static long work_ns;
static bool drains;

static _Noreturn void
fail (const char *what)
{
  perror (what);
  exit (1);
}

static long
cpu_ns (void)
{
  struct timespec now;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static bool
ends (int sd, const char *bytes, ssize_t size)
{
  static const char blank[] = "\r\n\r\n";
  unsigned char *at = &matched[sd];
  for (ssize_t i = 0; i < size && *at < 4; i++)
    *at = bytes[i] == blank[*at] ? *at + 1 : bytes[i] == '\r';
  return *at == 4;
}

static void
readable (int sd)
{
  char buffer[4096];
  ssize_t n = recv (sd, buffer, sizeof (buffer), 0);
  bool sound = n > 0;
  if (sound && matched[sd] == NOTHING_CAME)
    {
      sound = n > 4 && !memcmp (buffer, "GET ", 4);
      matched[sd] = 0;
    }
  if (sound && !ends (sd, buffer, n))
    return;
  if (sound)
    {
      for (long began = cpu_ns (); cpu_ns () - began < work_ns;)
        ;
      /* Where the client has gone, the work is lost, as it is elsewhere. */
      (void) !send (sd, answer, sizeof (answer) - 1, MSG_NOSIGNAL);
    }
  close (sd);
}

static void
accept_from (int listener, int epoll)
{
  do
    {
      int sd = accept4 (listener, NULL, NULL, SOCK_NONBLOCK);
      if (sd < 0)
        {
          /* Another thread was quicker, the client has gone, or all descriptors are in use. */
          if (errno != EAGAIN && errno != ECONNABORTED && errno != EMFILE)
            fail ("accept");
          return;
        }
      matched[sd] = NOTHING_CAME;
      struct epoll_event event = { .events = EPOLLIN, .data.fd = sd };
      if (epoll_ctl (epoll, EPOLL_CTL_ADD, sd, &event) < 0)
        fail ("epoll_ctl");
    }
  while (drains);
}

static _Noreturn void *
work (void *listening)
{
  int listener = *(int *) listening, epoll = epoll_create1 (0);
  struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = listener };
  if (epoll_ctl (epoll, EPOLL_CTL_ADD, listener, &event) < 0)
    fail ("epoll_ctl");
  for (;;)
    {
      struct epoll_event ready[EVENTS];
      int n = epoll_wait (epoll, ready, EVENTS, -1);
      for (int i = 0; i < n; i++)
        if (ready[i].data.fd == listener)
          accept_from (listener, epoll);
        else
          readable (ready[i].data.fd);
    }
}

static int
listen_on (const struct sockaddr_in *address, int backlog, bool shared)
{
  int on = 1, listener = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt (listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof (on));
  if (shared)
    setsockopt (listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof (on));
  if (bind (listener, (const struct sockaddr *) address, sizeof (*address)) < 0)
    fail ("bind");
  if (listen (listener, backlog) < 0)
    fail ("listen");
  return listener;
}

int
main (int argc, char **argv)
{
  if (argc != 6)
    {
      fprintf (stderr, "usage: acceptors ADDRESS PORT BACKLOG STRATEGY WORK_US\n");
      return 2;
    }
  const char *strategy = argv[4];
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons (atoi (argv[2])) };
  if (inet_pton (AF_INET, argv[1], &address.sin_addr) != 1)
    fail (argv[1]);
  bool own = strcmp (strategy, "reuseport") == 0;
  int threads = own || strcmp (strategy, "several") == 0 ? THREADS : 1;
  drains = strcmp (strategy, "many") == 0;
  work_ns = 1000 * atol (argv[5]);
  int listeners[THREADS];
  for (int i = 0; i < threads; i++)
    listeners[i] = i == 0 || own ? listen_on (&address, atoi (argv[3]), own) : listeners[0];
  for (int i = 1; i < threads; i++)
    {
      pthread_t thread;
      if ((errno = pthread_create (&thread, NULL, work, &listeners[i])))
        fail ("pthread_create");
    }
  work (&listeners[0]);
}
