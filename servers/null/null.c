/* The cheapest correct responder: one thread, epoll, one canned answer a
   connection.  It shows the harness's own floor: what a client sees of a
   server that does next to nothing.  null-server ADDRESS PORT BACKLOG */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] =
  "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nContent-Type: text/html\r\n"
  "Connection: close\r\n\r\nHello, world";
static const char refusal[] =
  "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

static void
fail (const char *what)
{
  perror (what);
  exit (1);
}

/* A request fits in one segment here; what does not end in a blank line or
   does not begin with GET is refused. */
static void
reply (int sd)
{
  char request[8192];
  ssize_t n = recv (sd, request, sizeof (request), 0);
  if (n >= 8 && memcmp (request, "GET ", 4) == 0
      && memcmp (request + n - 4, "\r\n\r\n", 4) == 0)
    send (sd, answer, sizeof (answer) - 1, MSG_NOSIGNAL);
  else if (n > 0)
    send (sd, refusal, sizeof (refusal) - 1, MSG_NOSIGNAL);
  close (sd);
}

int
main (int argc, char **argv)
{
  if (argc != 4)
    {
      fprintf (stderr, "usage: null-server ADDRESS PORT BACKLOG\n");
      return 2;
    }
  struct sockaddr_in address = { .sin_family = AF_INET,
                                 .sin_port = htons (atoi (argv[2])) };
  if (inet_pton (AF_INET, argv[1], &address.sin_addr) != 1)
    fail (argv[1]);
  int on = 1;
  int listener = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt (listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof (on));
  if (bind (listener, (struct sockaddr *) &address, sizeof (address)) < 0)
    fail ("bind");
  if (listen (listener, atoi (argv[3])) < 0)
    fail ("listen");

  int epoll = epoll_create1 (0);
  struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };
  epoll_ctl (epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;)
    {
      struct epoll_event ready[256];
      int n = epoll_wait (epoll, ready, 256, -1);
      for (int i = 0; i < n; i++)
        {
          if (ready[i].data.fd != listener)
            {
              reply (ready[i].data.fd);
              continue;
            }
          int sd;
          while ((sd = accept4 (listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
            {
              event.data.fd = sd;
              epoll_ctl (epoll, EPOLL_CTL_ADD, sd, &event);
            }
          if (errno != EAGAIN && errno != ECONNABORTED && errno != EMFILE)
            fail ("accept");
        }
    }
}
