"""Every compiled function: arrays in, arrays out; no classes, no randomness, no files. One room for each family.

::

    jit       how functions are compiled, and kept on disk until any file of this package changes
    parts     how functions that compiled functions call are compiled
    gamma     log Γ, the same bits compiled and interpreted
    types     the system as arrays
    seen      what a transition says of the disturbance
    backward  exact values
    wide      the same of large systems, in parts that threads share
    coupled   how far the best policy can be ahead of another, under the same disturbances; bounds: of one step
    endless   values where there is no end; when landing rewards are paid
    laws      ways of knowing the distribution of W
    models    ways of knowing f; offsets: one offset a pair; fitting: their posterior; exploring: which pairs are tried;
              settling: which offsets are certain
    watch     whether the residuals bear the model out
    learners  the functions of a learner, chosen by its type
    averaged  UCB-f; sharper: with bonuses that follow variances
    planned   UCBVI-f
    tabular   learners that are not told f
    levels    a demand whose level drifts
    shelves   a store, step by step; rolling: the order to place now, over sampled paths
    loop      act, then learn
    boxes     a learner in one place, for those who call it step by step

Letters: h step, s state index, a action, x after-state index, z raw next state index, j index of a disturbance
among those told apart (z = x + offsets[j]). Arrays with a step axis have H rows, or one row that serves every step:
``table[min(h, len(table) - 1)]`` reads both.
"""
