"""The claims on one screen: one row each, with the goal or the published figure and the command."""

from __future__ import annotations

from cases.published import markdown
from harness import Results

TEXT, DENSE = "sparse text, 400,000 × 47,152", "dense, 500,000 × 46 in 5,000 queries"
FAST, PAPERS = "{value:.2f} times as fast", "papers of 2007 and 2009"
GRID, RLSCORE = "RankRLSCV, its own grid", "largest difference from RLScore's 20"
# Claim: its form, the goal or the published figure, and case, contender, metric and threads.
ROWS = {
    "sparse text: `RankRLS` beside `Ridge`, one thread": (
        FAST, "goal 1.5", "speed", TEXT, "RankRLS", "times as fast as Ridge"),
    "the same on two threads (Ridge has one)": (
        FAST, "goal 2.5", "speed", TEXT, "RankRLS, two threads", "times as fast as Ridge", 2),
    "dense queries: `RankRLS` beside centering and `Ridge`": (
        FAST, "goal 1", "speed", DENSE, "RankRLS", "times as fast as Ridge after centering"),
    "products to choose among 21 alphas": (
        "{value:.0f}", "21 early-stopped fits: below",
        "choosing", "21 alphas, 100,000 documents", "RankRLSCV", "products"),
    "reading LETOR text beside XGBoost, one thread": (
        FAST, "goal 2", "speed", "reading LETOR text, 500,000 × 46", "load_svmlight", "times as fast as XGBoost"),
    "memory of `RankRLS` on sparse text": (
        "{value:.0f} MiB beyond 216", "Ridge: below", "memory", TEXT, "RankRLS", "MiB beyond the data"),
    "MAP on OHSUMED, 2007 paper": ("{value:.3f}", "published .447", PAPERS, "OHSUMED", GRID, "MAP"),
    "NDCG@10 on OHSUMED, 2007 paper": ("{value:.3f}", "published .443", PAPERS, "OHSUMED", GRID, "NDCG@10"),
    f"{RLSCORE} leave-pair-out figures": (
        "{value:.0e}", "printed to 1e-8", PAPERS, "RLScore's tutorial", "RankRLSCV", f"{RLSCORE} figures"),
    "`RankSVM`, 512,000 real-valued rows of text, one thread": (
        "{value:.2g} s", "published 18 min (2006)",
        "TreeRSVM paper", "generated text", "RankSVM", "seconds at 512000"),
}  # fmt: skip
CASES: list = []


def table(results: Results) -> str:
    rows = [
        [claim, results.show(form, *key), beside, f'`--only "{key[0]}"`']
        for claim, (form, beside, *key) in ROWS.items()
    ]
    return markdown(["claim", "measured", "beside", "evidence.py run"], rows)


TABLES = {"summary": table}
