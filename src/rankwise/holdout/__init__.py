"""Exact hold-out predictions for every alpha from one decomposition.

See docs/mathematics.md, section 4. In the coordinates of a factor ``L = F'F`` RankRLS is ridge regression of ``t``
(``F't = r``) on ``Z = FX``, or with the kernel ``FKF'``. Its residual is ``e = M t`` with

    M = I - Z (Z'Z + αI)^-1 Z'  =  α (FKF' + αI)^-1

and for a model fitted without the rows U, where no pair joins U to the other rows, ``e_U`` becomes
``M_UU^-1 e_U``. So one decomposition answers for every alpha and every group of whole queries: leave-query-out, and
k-fold over queries.

In one global ranking pairs join everything. There ``L`` is a centering, RankRLS is ridge regression with a free
intercept, and the same holds with ``M - uu'`` in the place of ``M``, where ``u`` is the unit vector that the centering
removes: leave-pair-out, and k-fold over rows. This is the "size" convention: the model without U weighs its pairs by
one over the rows it has. Weights of 1 per pair ("pairs") without U are the same model at ``alpha / (m - |U|)``.

Rows that weigh nothing are left out before anything else. Where every two rows are compared, leaving two out changes no
more than alpha and, under unit cost, the labels by two steps (`compared_pairs`): any row weights, any query weight, any
number of levels. Where ties are left out, or pairs weigh by their labels, leave-pair-out has no such form.

Nothing here validates or prints. The problem reports a kernel whose decomposition shows that it is indefinite.
"""
