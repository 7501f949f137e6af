/* Preloaded into a program, makes its clock run 100 times as fast: what takes
   it 100 s by its own gettimeofday(2) takes one.  */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int
gettimeofday (struct timeval *restrict now, void *restrict zone)
{
  static long long start_ns;
  struct timespec real;
  syscall (SYS_clock_gettime, CLOCK_REALTIME, &real);
  long long ns = real.tv_sec * 1000000000LL + real.tv_nsec;
  if (!start_ns)
    start_ns = ns;
  long long us = start_ns / 1000 + (ns - start_ns) / 10;
  now->tv_sec = us / 1000000;
  now->tv_usec = us % 1000000;
  (void) zone;
  return 0;
}
