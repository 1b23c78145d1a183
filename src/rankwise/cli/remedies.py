"""What the library tells to change, in words of options."""

from __future__ import annotations

from rankwise.exceptions import Change, RankwiseError

__all__ = ["hint_of"]

_HINTS = {
    Change(
        "missing"
    ): "fill them in, or drop those rows; --missing zero reads features as 0, and --missing nan keeps them, to "
    "inspect and convert.",
    Change(
        "regroup", True
    ): "sort the rows by query, or add --regroup to have them sorted together on disk (rankwise convert).",
    Change("zero_based", True): "add --zero-based yes.",
    Change("longest_line"): "check that the file is text, a row per line; if it is, raise --longest-line.",
    Change("bounds"): "add --bounds COLUMN=LOW:HIGH of every column.",
    Change("error"): "allow a larger one with --error.",
    Change(
        "filled", True
    ): "give the features defaults there and add --filled, or export to ONNX, SQL, C, JavaScript or Python.",
    Change("whole_query", True): "add --whole-query, and run the model on the rows of one query at a time.",
    Change("memory"): "convert it to a store, which is read in parts, and use that: rankwise convert --help.",
    Change("n_features"): "raise --columns, or leave it out to take as many columns as there are.",
    Change("model"): "name a file that `rankwise fit` wrote; if it is damaged, fit the model again.",
    Change("eval_set"): "use --valid FILE.",
    Change("alphas"): "use --alpha above 0.",
    Change("y_true"): "check the labels, and that ids name queries and not rows (tables: --label, --qid).",
    Change("store"): "name a store that rankwise convert wrote, or a folder of tables.",
    Change("embedding"): "name a column of lists with --embedding, or encode the columns as numbers.",
    Change(
        "features", "more"
    ): "name it with --features if it holds one number per row; an embedding is a column of lists.",
    Change(
        "feature_names"
    ): "name the columns by their features: --feature-names 'bm25(title),attribute(price)'.",
    Change("name", "function"): "call the function otherwise with --name.",
    Change("name", "scores"): "call the scores otherwise with --name.",
    Change("features", "fewer"): "leave the column out of --features, or encode it as numbers first.",
}


def hint_of(error: RankwiseError) -> str:
    """Say what to do about an error on the command line."""
    for change in error.changes:
        if change.parameter == "cv" and isinstance(change.value, int) and change.value > 1:
            return f"use --folds {change.value} or fewer, or --valid FILE."
        if change in _HINTS:
            return _HINTS[change]
    return error.hint
