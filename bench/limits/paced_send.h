/* Included before the null server's code, which then sends PACED_RPS answers a second at the most,
   whatever CPU it gets: each has its turn by the clock, and up to CREDIT_NS of lost turns are made
   up for. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <time.h>

#define CREDIT_NS 20000000LL

static inline ssize_t
paced_send (int sd, const void *buffer, size_t size, int flags)
{
  static long long turn_ns;
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  long long now_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
  if (turn_ns < now_ns - CREDIT_NS)
    turn_ns = now_ns - CREDIT_NS;
  turn_ns += 1000000000LL / PACED_RPS;
  struct timespec turn = { turn_ns / 1000000000LL, turn_ns % 1000000000LL };
  clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &turn, NULL);
  return send (sd, buffer, size, flags);
}

#define send paced_send
