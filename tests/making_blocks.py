"""Query blocks for tests, made from labels by plain loops."""

import numpy as np

from rankwise.pairs.blocks import Folds, QueryBlocks
from rankwise.pairs.labelled import LabelPairs


def make_blocks(qid, y, coupling, *, weight=None, scale=None):
    """Blocks of labels `y` in queries `qid`; `scale` is one number per query, by default 1 / size."""
    qid, y = np.asarray(qid), np.asarray(y, dtype=float)
    order = np.lexsort((y, qid)) if coupling != "all" else np.argsort(qid, kind="stable")
    query_start, segment_start, query_segment, value = [0], [0], [0], []
    for q in np.unique(qid):
        members = order[qid[order] == q]
        levels = np.unique(y[members]) if coupling != "all" else [0.0]
        for level in levels:
            size = members.size if coupling == "all" else np.sum(y[members] == level)
            segment_start.append(segment_start[-1] + size)
            value.append(level)
        query_start.append(query_start[-1] + members.size)
        query_segment.append(query_segment[-1] + len(levels))
    starts = [np.array(s, dtype=np.int64) for s in (query_start, segment_start, query_segment)]
    queries = starts[0].size - 1
    scale = 1.0 / np.diff(starts[0]) if scale is None else np.asarray(scale, dtype=float)
    row_weight = None if weight is None else np.asarray(weight, dtype=float)[order]
    blocks = QueryBlocks(
        order=order.astype(np.int64),
        query_start=starts[0],
        segment_start=starts[1],
        query_segment=starts[2],
        degree=np.zeros(len(value)),
        scale=scale.reshape(queries),
        coupling=coupling,
        row_weight=row_weight,
        level_value=np.array(value) if coupling == "relative" else None,
    )
    weights = np.ones(order.size) if row_weight is None else row_weight
    return QueryBlocks(**{**vars(blocks), "degree": degrees(blocks, weights, scale)})


def degrees(blocks, grouped_weight, scale):
    """The total weight of a row's pairs, segment by segment."""
    mass = np.array(
        [
            grouped_weight[a:b].sum()
            for a, b in zip(blocks.segment_start, blocks.segment_start[1:], strict=False)
        ]
    )
    degree = np.zeros(mass.size)
    for q in range(scale.size):
        own = range(blocks.query_segment[q], blocks.query_segment[q + 1])
        for k in own:
            for other in own:
                if blocks.coupling == "all":
                    degree[k] += scale[q] * mass[other]
                elif k != other:
                    gap = 1.0
                    if blocks.coupling == "relative":
                        gap = (blocks.level_value[k] - blocks.level_value[other]) ** 2
                    degree[k] += scale[q] * mass[other] / gap
    return degree


def make_folds(blocks, fold, k):
    """Folds whose scale stays the blocks' own, so that the oracle only has to hide rows."""
    fold = np.asarray(fold, dtype=np.int32)
    weight = np.ones(fold.size) if blocks.row_weight is None else blocks.row_weight
    columns = [
        degrees(blocks, np.where(fold[blocks.order] == c, 0.0, weight), blocks.scale) for c in range(k)
    ]
    scale = np.repeat(blocks.scale[:, None], k, axis=1)
    return Folds(fold=fold, degree=np.ascontiguousarray(np.transpose(columns)), scale=scale)


def graph_of_outputs(Y, queries, weight=None):
    """Return the graph that the columns of Y share."""
    settings = "include", "magnitude", "size"
    (graph,) = LabelPairs(Y, queries, weight, None, *settings, may_be_empty=True).graphs()
    return graph
