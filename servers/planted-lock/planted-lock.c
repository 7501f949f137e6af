/* planted-lock HOST PORT BACKLOG WORKERS PERCENT WORK_US

   A server whose speed-up over CPUs is known exactly. WORKERS threads take requests from one epoll.
   A request costs WORK_US of CPU time on average, of which PERCENT per cent under one lock that all
   threads share. Both parts are drawn from an exponential distribution, so that the threads are a
   closed queueing network of one delay and one queue, whose throughput mean value analysis gives
   (deathmatch/analysis/speed_up.py).

   CPU time is that of the thread: time in which the kernel keeps it from running is no work. */

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The distribution is drawn as that many quantiles in random order: means over one round of them
   have no error of sampling. */
enum { QUANTILES = 64, REQUEST_BYTES = 4096 };

static const char ANSWER[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello, world";
static const char LAST_ANSWER[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nConnection: close\r\n"
    "\r\nHello, world";

typedef struct {
  int descriptor;
  size_t length;
  char text[REQUEST_BYTES];
} Connection;

typedef struct {
  double values[QUANTILES];
  unsigned place, state;
} Drawn;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int poll_descriptor, listener;
static double locked_ns, free_ns;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void work(double ns) {
  int64_t end = cpu_ns() + (int64_t)ns;
  while (cpu_ns() < end)
    ;
}

static void prepare(Drawn *drawn, unsigned seed) {
  double sum = 0;
  for (int i = 0; i < QUANTILES; i++)
    sum += drawn->values[i] = -log(1 - (i + 0.5) / QUANTILES);
  for (int i = 0; i < QUANTILES; i++)
    drawn->values[i] *= QUANTILES / sum;
  drawn->place = 0;
  drawn->state = seed;
}

static double next(Drawn *drawn) {
  if (drawn->place == 0)
    for (int i = QUANTILES - 1; i > 0; i--) {
      int other = rand_r(&drawn->state) % (i + 1);
      double value = drawn->values[i];
      drawn->values[i] = drawn->values[other];
      drawn->values[other] = value;
    }
  double value = drawn->values[drawn->place];
  drawn->place = (drawn->place + 1) % QUANTILES;
  return value;
}

static void watch(int operation, int descriptor, void *data, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = data};
  if (epoll_ctl(poll_descriptor, operation, descriptor, &event) != 0)
    fail("epoll_ctl");
}

static void accept_one(void) {
  int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  if (descriptor >= 0) {
    Connection *made = calloc(1, sizeof *made);
    if (made == NULL)
      fail("calloc");
    int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    made->descriptor = descriptor;
    watch(EPOLL_CTL_ADD, descriptor, made, EPOLLIN | EPOLLONESHOT);
  }
  watch(EPOLL_CTL_MOD, listener, NULL, EPOLLIN | EPOLLONESHOT);
}

/* Returns whether the connection stays. */
static int answer(Connection *connection, size_t request, Drawn *within, Drawn *outside) {
  work(free_ns * next(outside));
  if (locked_ns > 0) {
    double ns = locked_ns * next(within);
    pthread_mutex_lock(&lock);
    work(ns);
    pthread_mutex_unlock(&lock);
  }
  connection->text[request - 1] = 0;
  int last = strstr(connection->text, "Connection: close") != NULL;
  const char *text = last ? LAST_ANSWER : ANSWER;
  size_t length = last ? sizeof LAST_ANSWER - 1 : sizeof ANSWER - 1;
  return send(connection->descriptor, text, length, MSG_NOSIGNAL) == (ssize_t)length && !last;
}

/* Returns whether the connection stays. */
static int serve(Connection *connection, Drawn *within, Drawn *outside) {
  size_t room = REQUEST_BYTES - 1 - connection->length;
  ssize_t got = recv(connection->descriptor, connection->text + connection->length, room, 0);
  if (got <= 0)
    return got < 0 && errno == EAGAIN;
  connection->length += got;
  connection->text[connection->length] = 0;
  char *end;
  while ((end = memmem(connection->text, connection->length, "\r\n\r\n", 4)) != NULL) {
    size_t request = end + 4 - connection->text;
    if (memcmp(connection->text, "GET ", 4) != 0 || !answer(connection, request, within, outside))
      return 0;
    connection->length -= request;
    memmove(connection->text, connection->text + request, connection->length);
  }
  return connection->length < REQUEST_BYTES - 1;
}

static void *worker(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  Drawn within, outside;
  prepare(&within, 2 * seed);
  prepare(&outside, 2 * seed + 1);
  for (;;) {
    struct epoll_event event;
    if (epoll_wait(poll_descriptor, &event, 1, -1) != 1)
      continue;
    Connection *connection = event.data.ptr;
    if (connection == NULL) {
      accept_one();
    } else if (serve(connection, &within, &outside)) {
      watch(EPOLL_CTL_MOD, connection->descriptor, connection, EPOLLIN | EPOLLONESHOT);
    } else {
      close(connection->descriptor);
      free(connection);
    }
  }
  return NULL;
}

int main(int count, char **words) {
  if (count != 7) {
    fprintf(stderr, "usage: planted-lock HOST PORT BACKLOG WORKERS PERCENT WORK_US\n");
    return 2;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
  int workers = atoi(words[4]), on = 1;
  double work_ns = 1000 * atof(words[6]), share = atof(words[5]) / 100;
  locked_ns = share * work_ns;
  free_ns = work_ns - locked_ns;
  if (inet_pton(AF_INET, words[1], &address.sin_addr) != 1 || workers < 1)
    fail("arguments");
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0)
    fail("bind");
  if (listen(listener, atoi(words[3])) != 0)
    fail("listen");
  poll_descriptor = epoll_create1(0);
  watch(EPOLL_CTL_ADD, listener, NULL, EPOLLIN | EPOLLONESHOT);
  for (int i = 1; i < workers; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, (void *)(uintptr_t)(i + 1)) != 0)
      fail("pthread_create");
  }
  worker((void *)(uintptr_t)1);
}
