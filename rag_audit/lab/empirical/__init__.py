"""What attacks show: rates of membership tests with their errors, lower bounds on epsilon, public text collections.

Figures of this room are measured from trials. The certified upper bounds that they are held against come from
`accounting`, which knows nothing of trials.
"""
