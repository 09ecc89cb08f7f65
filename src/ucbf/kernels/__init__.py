"""Every compiled function: arrays in, arrays out; no classes, no randomness, no files. One room for each family.

::

    jit       how functions are compiled, and kept on disk until any file of this package changes
    types     the system as arrays
    seen      what a transition says of the disturbance
    backward  exact values
    learners  the functions of a learner, chosen by its type
    loop      act, then learn
    watch     whether the residuals bear the model out
    averaged  UCB-f
    counted   UCBVI-f
    offsets   a model of f
    repaired  a learner with a model of f
    tabular   learners that are not told f

Letters: h step, s state index, a action, x after-state index, z raw next state index, j index of a disturbance
among those told apart (z = x + j). Arrays with a step axis have H rows, or one row that serves every step:
``table[h % len(table)]`` reads both.
"""
