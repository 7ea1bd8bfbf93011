"""Measured results of attacks: rates of membership tests with their errors, lower bounds on epsilon, public text
collections.

All figures of this package are measured from trials. The certified upper bounds for comparison come from `accounting`,
which does not depend on trials.
"""
