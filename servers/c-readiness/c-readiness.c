/* One event loop, four ways to wait: what a readiness mechanism costs when
   nothing else differs.

   c-readiness ADDRESS PORT BACKLOG MECHANISM

   MECHANISM is select, poll, epoll or io_uring.  Each reports which descriptors
   can be read; accepting, reading, answering and closing are the same system
   calls with all of them.  io_uring is used as a readiness mechanism too, as
   libev does: it could also read and write by itself. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS = 1 << 16, REQUEST_SIZE = 1024, BATCH = 256 };

/* A mechanism: watch a descriptor until it is forgotten, forget one that is
   about to be closed, wait and fill READY with up to BATCH readable ones. */
struct mechanism
{
  const char *name;
  void (*begin) (void);
  bool (*watch) (int sd);
  void (*forget) (int sd);
  int (*wait) (int *ready);
};

static _Noreturn void
fail (const char *what)
{
  perror (what);
  exit (1);
}

/* ---- select: a bit for each descriptor, all copied in and out at each wait. */

static fd_set selected;
static int highest = -1;

static void
select_begin (void)
{
  FD_ZERO (&selected);
}

/* A larger descriptor would be written past the end of the set. */
static bool
select_watch (int sd)
{
  if (sd >= FD_SETSIZE)
    return false;
  FD_SET (sd, &selected);
  if (sd > highest)
    highest = sd;
  return true;
}

static void
select_forget (int sd)
{
  FD_CLR (sd, &selected);
  while (highest >= 0 && !FD_ISSET (highest, &selected))
    highest--;
}

static int
select_wait (int *ready)
{
  fd_set readable = selected;
  int n = 0, left = select (highest + 1, &readable, NULL, NULL, NULL);
  for (int sd = 0; n < left && n < BATCH && sd <= highest; sd++)
    if (FD_ISSET (sd, &readable))
      ready[n++] = sd;
  return n;
}

/* ---- poll: an array of descriptors, all looked at at each wait. */

static struct pollfd polled[DESCRIPTORS];
static int place[DESCRIPTORS], polled_count;

static void
poll_begin (void)
{
}

static bool
poll_watch (int sd)
{
  place[sd] = polled_count;
  polled[polled_count++] = (struct pollfd) { .fd = sd, .events = POLLIN };
  return true;
}

static void
poll_forget (int sd)
{
  polled[place[sd]] = polled[--polled_count];
  place[polled[place[sd]].fd] = place[sd];
}

static int
poll_wait (int *ready)
{
  int n = 0, left = poll (polled, polled_count, -1);
  for (int i = 0; n < left && n < BATCH && i < polled_count; i++)
    if (polled[i].revents)
      ready[n++] = polled[i].fd;
  return n;
}

/* ---- epoll: the kernel keeps the set and a list of what is ready in it. */

static int epoll;

static void
epoll_begin (void)
{
  if ((epoll = epoll_create1 (0)) < 0)
    fail ("epoll_create1");
}

static bool
epoll_watch (int sd)
{
  struct epoll_event event = { .events = EPOLLIN, .data.fd = sd };
  return epoll_ctl (epoll, EPOLL_CTL_ADD, sd, &event) == 0;
}

/* Closing does it. */
static void
epoll_forget (int sd)
{
  (void) sd;
}

static int
epoll_wait_ready (int *ready)
{
  struct epoll_event events[BATCH];
  int n = epoll_wait (epoll, events, BATCH, -1);
  for (int i = 0; i < n; i++)
    ready[i] = events[i].data.fd;
  return n;
}

/* ---- io_uring: one poll request for each descriptor, made again after each
   event; they reach the kernel with the next wait, in the same system call. */

enum { RING_SIZE = 4096 };
static int ring, fired[BATCH], fired_count;
static struct io_uring_sqe *requests;
static struct io_uring_cqe *completions;
static unsigned *request_tail, *completion_head, *completion_tail, completion_mask, unsent;

static void *
map (size_t size, off_t what)
{
  void *at = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
  if (at == MAP_FAILED)
    fail ("mmap");
  return at;
}

static void
uring_begin (void)
{
  struct io_uring_params given = { 0 };
  if ((ring = syscall (SYS_io_uring_setup, RING_SIZE, &given)) < 0)
    fail ("io_uring_setup");
  /* Since Linux 5.4 one mapping holds both rings. */
  size_t requests_end = given.sq_off.array + given.sq_entries * sizeof (unsigned),
         completions_end = given.cq_off.cqes + given.cq_entries * sizeof (*completions);
  char *rings = map (requests_end > completions_end ? requests_end : completions_end,
                     IORING_OFF_SQ_RING);
  requests = map (given.sq_entries * sizeof (*requests), IORING_OFF_SQES);
  unsigned *order = (unsigned *) (rings + given.sq_off.array);
  for (unsigned i = 0; i < given.sq_entries; i++)
    order[i] = i;
  request_tail = (unsigned *) (rings + given.sq_off.tail);
  completion_head = (unsigned *) (rings + given.cq_off.head);
  completion_tail = (unsigned *) (rings + given.cq_off.tail);
  completion_mask = given.cq_entries - 1;
  completions = (struct io_uring_cqe *) (rings + given.cq_off.cqes);
}

/* Hands over the requests made; waits until LEAST have fired. */
static void
uring_enter (unsigned least)
{
  int sent = syscall (SYS_io_uring_enter, ring, unsent, least, IORING_ENTER_GETEVENTS, NULL, 0);
  if (sent >= 0)
    unsent -= sent;
  else if (errno != EINTR)
    fail ("io_uring_enter");
}

static bool
uring_watch (int sd)
{
  if (unsent == RING_SIZE)
    uring_enter (0);
  requests[*request_tail % RING_SIZE] = (struct io_uring_sqe) {
    .opcode = IORING_OP_POLL_ADD, .fd = sd, .poll32_events = POLLIN, .user_data = sd
  };
  __atomic_store_n (request_tail, *request_tail + 1, __ATOMIC_RELEASE);
  unsent++;
  return true;
}

/* Its request has just fired, and is not made again. */
static void
uring_forget (int sd)
{
  for (int i = 0; i < fired_count; i++)
    if (fired[i] == sd)
      fired[i] = -1;
}

static int
uring_wait (int *ready)
{
  for (int i = 0; i < fired_count; i++)
    if (fired[i] >= 0)
      uring_watch (fired[i]);
  uring_enter (1);
  unsigned head = *completion_head, tail = __atomic_load_n (completion_tail, __ATOMIC_ACQUIRE);
  for (fired_count = 0; head != tail && fired_count < BATCH; head++, fired_count++)
    ready[fired_count] = fired[fired_count] = completions[head & completion_mask].user_data;
  __atomic_store_n (completion_head, head, __ATOMIC_RELEASE);
  return fired_count;
}

static const struct mechanism mechanisms[] = {
  { "select", select_begin, select_watch, select_forget, select_wait },
  { "poll", poll_begin, poll_watch, poll_forget, poll_wait },
  { "epoll", epoll_begin, epoll_watch, epoll_forget, epoll_wait_ready },
  { "io_uring", uring_begin, uring_watch, uring_forget, uring_wait },
};
static const struct mechanism *mechanism;

/* ---- the server */

/* What came of a request that is not whole yet. */
static struct part
{
  size_t size;
  char bytes[REQUEST_SIZE];
} parts[DESCRIPTORS];

static void
end (int sd)
{
  mechanism->forget (sd);
  close (sd);
}

static void
accept_all (int listener)
{
  int sd, on = 1;
  while ((sd = accept4 (listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
    {
      setsockopt (sd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
      if (sd < DESCRIPTORS && mechanism->watch (sd))
        {
          parts[sd].size = 0;
          continue;
        }
      fprintf (stderr, "descriptor %d is out of %s's range: closed\n", sd, mechanism->name);
      close (sd);
    }
  if (errno != EAGAIN && errno != ECONNABORTED && errno != EMFILE)
    fail ("accept");
}

static void
readable (int sd)
{
  struct part *part = &parts[sd];
  ssize_t n = recv (sd, part->bytes + part->size, REQUEST_SIZE - part->size, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0)
    {
      end (sd);
      return;
    }
  part->size += n;
  bool closes = false;
  char *at = part->bytes, *stop = at + part->size, *blank;
  while (!closes && (blank = memmem (at, stop - at, "\r\n\r\n", 4)))
    {
      static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                                 "Content-Length: 12\r\n",
                        body[] = "\r\nHello, world", last[] = "Connection: close\r\n";
      closes = memmem (at, blank + 2 - at, last, sizeof (last) - 1);
      char answer[sizeof (head) + sizeof (last) + sizeof (body)];
      int size = snprintf (answer, sizeof (answer), "%s%s%s", head, closes ? last : "", body);
      /* A client that does not read what it asked for is dropped. */
      if (send (sd, answer, size, MSG_NOSIGNAL) != size)
        closes = true;
      at = blank + 4;
    }
  part->size = stop - at;
  if (closes || part->size == REQUEST_SIZE)
    end (sd);
  else
    memmove (part->bytes, at, part->size);
}

int
main (int argc, char **argv)
{
  for (size_t i = 0; argc == 5 && i < sizeof (mechanisms) / sizeof (*mechanisms); i++)
    if (strcmp (argv[4], mechanisms[i].name) == 0)
      mechanism = &mechanisms[i];
  if (!mechanism)
    {
      fputs ("usage: c-readiness ADDRESS PORT BACKLOG select|poll|epoll|io_uring\n", stderr);
      return 2;
    }
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons (atoi (argv[2])) };
  if (inet_pton (AF_INET, argv[1], &address.sin_addr) != 1)
    fail (argv[1]);
  int on = 1, listener = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt (listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof (on));
  if (bind (listener, (struct sockaddr *) &address, sizeof (address)) < 0)
    fail ("bind");
  if (listen (listener, atoi (argv[3])) < 0)
    fail ("listen");
  mechanism->begin ();
  mechanism->watch (listener);
  for (;;)
    {
      int ready[BATCH], n = mechanism->wait (ready);
      for (int i = 0; i < n; i++)
        if (ready[i] == listener)
          accept_all (listener);
        else
          readable (ready[i]);
    }
}
