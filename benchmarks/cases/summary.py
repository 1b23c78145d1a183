"""The claims on one screen: one row each, with the goal or the published figure and the command."""

from __future__ import annotations

from cases.published import markdown
from harness import Results

# What is claimed, (claim, case, contender, metric, threads), the format, the goal or the published figure.
ROWS = (
    (
        "sparse text: `RankRLS` beside `Ridge`, one thread",
        ("speed", "sparse text, 400,000 × 47,152", "RankRLS", "times as fast as Ridge", 1),
        "{:.2f} times as fast",
        "goal 1.5",
    ),
    (
        "the same on two threads (Ridge has one)",
        ("speed", "sparse text, 400,000 × 47,152", "RankRLS, two threads", "times as fast as Ridge", 2),
        "{:.2f} times as fast",
        "goal 2.5",
    ),
    (
        "dense queries: `RankRLS` beside centering and `Ridge`",
        (
            "speed",
            "dense, 500,000 × 46 in 5,000 queries",
            "RankRLS",
            "times as fast as Ridge after centering",
            1,
        ),
        "{:.2f} times as fast",
        "goal 1",
    ),
    (
        "products to choose among 21 alphas",
        ("choosing", "21 alphas, 100,000 documents", "RankRLSCV", "products", 1),
        "{:.0f}",
        "21 early-stopped fits: below",
    ),
    (
        "reading LETOR text beside XGBoost, one thread",
        ("speed", "reading LETOR text, 500,000 × 46", "load_svmlight", "times as fast as XGBoost", 1),
        "{:.2f} times as fast",
        "goal 2",
    ),
    (
        "memory of `RankRLS` on sparse text",
        ("memory", "sparse text, 400,000 × 47,152", "RankRLS", "MiB beyond the data", 1),
        "{:.0f} MiB beyond 216",
        "Ridge: below",
    ),
    (
        "MAP on OHSUMED, 2007 paper",
        ("papers of 2007 and 2009", "OHSUMED", "RankRLSCV, its own grid", "MAP", 1),
        "{:.3f}",
        "published .447",
    ),
    (
        "NDCG@10 on OHSUMED, 2007 paper",
        ("papers of 2007 and 2009", "OHSUMED", "RankRLSCV, its own grid", "NDCG@10", 1),
        "{:.3f}",
        "published .443",
    ),
    (
        "largest difference from RLScore's 20 leave-pair-out figures",
        (
            "papers of 2007 and 2009",
            "RLScore's tutorial",
            "RankRLSCV",
            "largest difference from RLScore's 20 figures",
            1,
        ),
        "{:.0e}",
        "printed to 1e-8",
    ),
    (
        "`RankSVM`, 512,000 real-valued rows of text, one thread",
        ("TreeRSVM paper", "generated text", "RankSVM", "seconds at 512000", 1),
        "{:.2g} s",
        "published 18 min (2006)",
    ),
)
CASES: list = []


def table(results: Results) -> str:
    rows = []
    for text, key, form, beside in ROWS:
        line = results.find(*key)
        rows.append([text, form.format(line["value"]) if line else "not run", beside, f'`--only "{key[0]}"`'])
    return markdown(["claim", "measured", "beside", "evidence.py run"], rows)


TABLES = {"summary": table}
