/* Preloaded into programs, sets their wall clock back by an hour once the file
   that STEP_BACK names is there.  Their monotonic clock goes on.  */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t
back (void)
{
  /* Who asks for the time does not expect it to fail.  */
  int before = errno;
  const char *name = getenv ("STEP_BACK");
  time_t by = name && syscall (SYS_access, name, F_OK) == 0 ? 3600 : 0;
  errno = before;
  return by;
}

int
clock_gettime (clockid_t clock, struct timespec *now)
{
  int status = syscall (SYS_clock_gettime, clock, now);
  if (status == 0 && clock == CLOCK_REALTIME)
    now->tv_sec -= back ();
  return status;
}

int
gettimeofday (struct timeval *restrict now, void *restrict zone)
{
  struct timespec real;
  (void) zone;
  if (clock_gettime (CLOCK_REALTIME, &real) != 0)
    return -1;
  now->tv_sec = real.tv_sec;
  now->tv_usec = real.tv_nsec / 1000;
  return 0;
}
