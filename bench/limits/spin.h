/* Included before a server's or preloaded into a client's code: each send, or each read, costs
   SPIN_US of CPU time more. */
#include <time.h>

#ifndef SPIN_US
#error "SPIN_US is how many microseconds each call costs more"
#endif

static inline void
spin (void)
{
  struct timespec began, now;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &began);
  do
    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  while ((now.tv_sec - began.tv_sec) * 1000000L + (now.tv_nsec - began.tv_nsec) / 1000 < SPIN_US);
}
