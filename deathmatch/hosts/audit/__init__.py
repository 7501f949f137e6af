"""What a testbed's hosts and links are like before something is measured on them, and what is bad.

`read` asks the hosts, `parse` makes `facts` of their answers, the rules make findings of those.
"""
