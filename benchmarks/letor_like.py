"""Generated web search: queries, documents and 46 columns as a LETOR set has them, with interactions.

Every document has hidden qualities (topicality, authority, length). Columns are what a search engine measures of
them: for each of five streams (body, anchor, title, URL, all) its term frequency, idf, tf-idf, length, BM25 and three
language models, and six columns of the link graph and the URL. As LETOR ships them, columns are scaled to [0, 1] inside
each query; idf, which is constant there, becomes 0.

The grade depends on the hidden qualities as relevance does, not through any kernel or tree:

- matches saturate (a tenth occurrence of a word adds little), and streams substitute for each other;
- authority counts only for documents that are about the topic: a product;
- a home page (short URL whose title matches) jumps up: a conjunction of thresholds;
- many links from elsewhere to a long page that hardly mentions the words are spam: another one;
- very short and very long bodies are worse than those between;
- judges err: noise, and each judge (query) draws the grades at other levels.
"""

from __future__ import annotations

import numpy as np

COLUMNS = 46
_LEVELS = (0.55, 0.80, 0.93, 0.98)  # shares of documents below grades 1, 2, 3, 4
_STREAMS = 5


def make(rows, rows_a_query=100, seed=0):
    """Return ``X`` (float64), grades 0 to 4 and query numbers; about `rows_a_query` rows each, `rows` together."""
    rng = np.random.default_rng(seed)
    qid = _queries(rows, rows_a_query, rng)
    n_queries = int(qid[-1]) + 1
    topicality = rng.normal(size=rows) + rng.normal(0, 0.5, size=n_queries)[qid]
    authority = rng.normal(size=rows)
    length = np.exp(rng.normal(0, 0.8, size=rows))
    match = _matches(topicality, rng)
    pages = _page_columns(authority, rng)
    columns = np.column_stack([_text_columns(match, length, qid, n_queries, rng), pages])
    utility = _utility(topicality, authority, length, match, pages)
    utility += rng.normal(0, 0.5, size=rows)
    utility += rng.normal(0, 0.3, size=n_queries)[qid]
    grade = np.searchsorted(np.quantile(utility, _LEVELS), utility).astype(np.float64)
    return scale_inside_queries(columns, qid), grade, qid


def scale_inside_queries(X, qid):
    """Bring every column to [0, 1] inside each query; constant ones to 0."""
    start = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
    low, high = np.minimum.reduceat(X, start), np.maximum.reduceat(X, start)
    width = np.where(high > low, high - low, 1.0)
    query = np.cumsum(np.r_[False, qid[1:] != qid[:-1]])
    return (X - low[query]) / width[query]


def _queries(rows, rows_a_query, rng):
    sizes = np.maximum(
        5, (rows_a_query * rng.lognormal(-0.125, 0.5, size=4 * rows // rows_a_query + 4))
    ).astype(int)
    return np.repeat(np.arange(sizes.size), sizes)[:rows]


def _matches(topicality, rng):
    """Occurrences of the query's words in each stream; the short streams often have none."""
    scale = np.array([3.0, 1.5, 0.8, 0.4, 4.0])
    share = np.array([0.8, 0.6, 0.9, 0.5, 0.8])
    rate = scale * np.exp(share * topicality[:, None] + rng.normal(0, 0.6, size=(topicality.size, _STREAMS)))
    return rng.poisson(rate).astype(np.float64)


def _text_columns(tf, length, qid, n_queries, rng):
    stream_length = np.array([300, 40, 8, 6, 350]) * length[:, None] ** np.array([1, 0.3, 0.2, 0.2, 1])
    stream_length *= np.exp(rng.normal(0, 0.3, size=tf.shape))
    idf = rng.uniform(1, 6, size=(n_queries, _STREAMS))[qid]
    relative = stream_length / stream_length.mean(axis=0)
    bm25 = idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * relative))
    background = np.exp(-idf)
    models = [
        np.log((tf + mu * background) / (stream_length + mu))
        for mu in np.array([[0.5], [1.0], [4.0]]) * stream_length.mean(axis=0)
    ]
    return np.column_stack([tf, idf, tf * idf, stream_length, bm25, *models])


def _page_columns(authority, rng):
    """PageRank, links in, links out, slashes and length of the URL, child pages."""
    rows = authority.size
    pagerank = np.exp(authority + rng.normal(0, 0.3, size=rows))
    links_in = rng.poisson(5 * np.exp(0.8 * authority + rng.normal(0, 0.8, size=rows)))
    links_out = rng.poisson(np.exp(rng.normal(2, 0.7, size=rows)))
    slashes = rng.poisson(2.0, size=rows)
    url_length = 15 + 12 * slashes + rng.poisson(10, size=rows)
    children = rng.poisson(np.exp(rng.normal(0.5, 1.0, size=rows)))
    return np.column_stack([pagerank, links_in, links_out, slashes, url_length, children]).astype(np.float64)


def _utility(topicality, authority, length, match, pages):
    saturated = match / (match + np.array([3.0, 2.0, 1.0, 0.5, 4.0]))
    text = saturated[:, :4] @ np.array([1.0, 0.8, 0.8, 0.4])
    about = 1 / (1 + np.exp(-2 * topicality))
    home = (pages[:, 3] <= 1) & (match[:, 2] >= 1)
    spam = (pages[:, 1] > 8) & (match[:, 0] <= 2) & (length > 1)
    between = -0.3 * np.log(length) ** 2
    return text + 0.8 * about * np.tanh(authority) + 0.6 * home - 0.8 * spam + between
