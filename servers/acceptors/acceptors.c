/* One server, five ways to accept, so that nothing else differs.

   acceptors ADDRESS PORT BACKLOG STRATEGY WORK_US [THREADS]

   one        one thread; of what waits, one connection a wake-up
   many       one thread; all that wait, until accept says that none does
   several    four threads at one listening socket, each as "one"; the kernel wakes few of them
   herd       as "several", but the kernel may wake all
   reuseport  four threads, each as "one" at a listening socket of its own

   Every request is answered alike after WORK_US microseconds of the thread's CPU time, and its
   connection is closed.

   With THREADS there are so many instead of four, and on SIGTERM the server gives its own account:
   one line of JSON with the connections accepted, the waits that returned, the accepts that found
   nothing, the thread switches that it asked for itself and the others, its CPU time, and how long
   each request was there before it was read, as pairs of a time's upper bound and how many. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, MOST_THREADS = 64, DESCRIPTORS = 1 << 20, EVENTS = 256, NOTHING_CAME = 255 };
/* Times are told apart by 1 % from 1 us to half a minute. */
enum { PER_OCTAVE = 64, OCTAVES = 25, BINS = PER_OCTAVE * OCTAVES };

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n"
                             "Content-Type: text/html\r\nConnection: close\r\n\r\nHello, world";

/* By descriptor: how much of the blank line that ends a request has come. */
static unsigned char matched[DESCRIPTORS];
static long work_ns;
static bool drains, herd, accounts;

/* A thread's own, so that no two write to the same cache line. */
struct account
{
  long accepted, waits, empty;
  long bins[BINS];
} __attribute__ ((aligned (128)));

static struct account account[MOST_THREADS];
static int listeners[MOST_THREADS];
static int threads = 1;
static __thread struct account *mine;

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

/* How long the kernel had what was read last, by its time stamp; socket(7), SO_TIMESTAMPNS. */
static void
had_for (struct msghdr *message)
{
  struct timespec came, now;
  struct cmsghdr *head = CMSG_FIRSTHDR (message);
  if (!head || head->cmsg_type != SCM_TIMESTAMPNS)
    return;
  memcpy (&came, CMSG_DATA (head), sizeof (came));
  clock_gettime (CLOCK_REALTIME, &now);
  double us = (now.tv_sec - came.tv_sec) * 1e6 + (now.tv_nsec - came.tv_nsec) / 1e3;
  int bin = us <= 1 ? 0 : (int) (PER_OCTAVE * log2 (us));
  mine->bins[bin < BINS ? bin : BINS - 1]++;
}

static ssize_t
receive (int sd, char *buffer, size_t size)
{
  if (!accounts)
    return recv (sd, buffer, size, 0);
  char control[CMSG_SPACE (sizeof (struct timespec))];
  struct iovec into = { .iov_base = buffer, .iov_len = size };
  struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control,
                            .msg_controllen = sizeof (control) };
  ssize_t n = recvmsg (sd, &message, 0);
  if (n > 0)
    had_for (&message);
  return n;
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
  ssize_t n = receive (sd, buffer, sizeof (buffer));
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
          mine->empty++;
          return;
        }
      mine->accepted++;
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
  mine = &account[(int *) listening - listeners];
  unsigned exclusive = herd ? 0 : EPOLLEXCLUSIVE;
  struct epoll_event event = { .events = EPOLLIN | exclusive, .data.fd = listener };
  if (epoll_ctl (epoll, EPOLL_CTL_ADD, listener, &event) < 0)
    fail ("epoll_ctl");
  for (;;)
    {
      struct epoll_event ready[EVENTS];
      int n = epoll_wait (epoll, ready, EVENTS, -1);
      mine->waits++;
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
  /* Accepted connections have it from their listener. */
  if (accounts)
    setsockopt (listener, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof (on));
  if (bind (listener, (const struct sockaddr *) address, sizeof (*address)) < 0)
    fail ("bind");
  if (listen (listener, backlog) < 0)
    fail ("listen");
  return listener;
}

static _Noreturn void *
give_account (void *signals)
{
  int ended;
  struct account sum = { 0 };
  struct rusage used;
  sigwait (signals, &ended);
  getrusage (RUSAGE_SELF, &used);
  for (int i = 0; i < threads; i++)
    {
      sum.accepted += account[i].accepted;
      sum.waits += account[i].waits;
      sum.empty += account[i].empty;
      for (int bin = 0; bin < BINS; bin++)
        sum.bins[bin] += account[i].bins[bin];
    }
  printf ("{\"accepted\": %ld, \"waits\": %ld, \"empty_accepts\": %ld, "
          "\"voluntary_switches\": %ld, \"other_switches\": %ld, \"cpu_us\": %ld, \"had_us\": [",
          sum.accepted, sum.waits, sum.empty, used.ru_nvcsw, used.ru_nivcsw,
          (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec
              + used.ru_stime.tv_usec);
  const char *comma = "";
  for (int bin = 0; bin < BINS; bin++)
    if (sum.bins[bin])
      {
        printf ("%s[%.0f, %ld]", comma, ceil (exp2 ((bin + 1.0) / PER_OCTAVE)), sum.bins[bin]);
        comma = ", ";
      }
  printf ("]}\n");
  exit (0);
}

int
main (int argc, char **argv)
{
  if (argc != 6 && argc != 7)
    {
      fprintf (stderr, "usage: acceptors ADDRESS PORT BACKLOG STRATEGY WORK_US [THREADS]\n");
      return 2;
    }
  const char *strategy = argv[4];
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons (atoi (argv[2])) };
  if (inet_pton (AF_INET, argv[1], &address.sin_addr) != 1)
    fail (argv[1]);
  bool own = strcmp (strategy, "reuseport") == 0;
  herd = strcmp (strategy, "herd") == 0;
  accounts = argc == 7;
  if (own || herd || strcmp (strategy, "several") == 0)
    threads = accounts ? atoi (argv[6]) : THREADS;
  if (threads < 1 || threads > MOST_THREADS)
    {
      fprintf (stderr, "acceptors: THREADS must be from 1 to %d\n", MOST_THREADS);
      return 2;
    }
  drains = strcmp (strategy, "many") == 0;
  work_ns = 1000 * atol (argv[5]);
  for (int i = 0; i < threads; i++)
    listeners[i] = i == 0 || own ? listen_on (&address, atoi (argv[3]), own) : listeners[0];
  pthread_t thread;
  static sigset_t signals;
  if (accounts)
    {
      sigaddset (&signals, SIGTERM);
      pthread_sigmask (SIG_BLOCK, &signals, NULL);
      if ((errno = pthread_create (&thread, NULL, give_account, &signals)))
        fail ("pthread_create");
    }
  for (int i = 1; i < threads; i++)
    {
      if ((errno = pthread_create (&thread, NULL, work, &listeners[i])))
        fail ("pthread_create");
    }
  work (&listeners[0]);
}
