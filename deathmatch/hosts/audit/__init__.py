"""What a testbed's hosts and links are like before something is measured on them, and what is bad.

`read` runs `probe` on the hosts, `facts` defines what is read of what that prints, and the rules
make findings of the facts.
"""
