/* Preloaded into a load generator, which is stopped once: after AFTER_US, for PAUSE_US at an even
   last digit of its rate, for LONG_PAUSE_US at an odd one. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static useconds_t
pause_us (void)
{
  char words[65536];
  FILE *file = fopen ("/proc/self/cmdline", "r");
  size_t size = file ? fread (words, 1, sizeof (words) - 1, file) : 0;
  if (file)
    fclose (file);
  words[size] = 0;
  for (char *word = words; word < words + size; word += strlen (word) + 1)
    if (strncmp (word, "--rate=", 7) == 0)
      return atol (word + 7) % 2 ? LONG_PAUSE_US : PAUSE_US;
  return 0;
}

__attribute__ ((constructor)) static void
pause_once (void)
{
  useconds_t us = pause_us ();
  pid_t client = getpid ();
  if (!us || fork () != 0)
    return;
  usleep (AFTER_US);
  if (getppid () == client)
    {
      kill (client, SIGSTOP);
      usleep (us);
      kill (client, SIGCONT);
    }
  _exit (0);
}
