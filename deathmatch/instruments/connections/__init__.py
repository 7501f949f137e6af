"""What a TCP connection costs the kernel, by its state: the ends that hold, and what is read.

In: two hosts and a number of connections. Out: for each state what the kernel's caches hold more.
"""
