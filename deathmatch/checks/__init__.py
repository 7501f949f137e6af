"""The rule engine: what a rule is, what it may see, the verdict, and the report for a terminal.

The audit of a testbed (`hosts.audit`), the strict check of a dataset (`data.strict`) and the laws
(`data.laws`) are sets of rules that are registered here.
"""
