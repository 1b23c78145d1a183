"""C99 that needs the standard library only."""

from __future__ import annotations

import math

from rankwise.exporters.code import CodeLanguage, kernel_parts
from rankwise.exporters.program import Program, Value
from rankwise.formula.formula import Formula

__all__ = ["CSource"]

_SCALERS = {
    "minmax": """\
static void scale_minmax(double *v, size_t n) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) { if (v[i] < low) low = v[i]; if (v[i] > high) high = v[i]; }
    for (size_t i = 0; i < n; i++) v[i] = high > low ? (v[i] - low) / (high - low) : v[i] - v[i];
}
""",
    "standard": """\
static void scale_standard(double *v, size_t n) {
    double low = INFINITY, high = -INFINITY, mean = 0.0, squares = 0.0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(v[i])) continue;
        if (v[i] < low) low = v[i];
        if (v[i] > high) high = v[i];
        known++;
    }
    if (!(high > low)) {
        for (size_t i = 0; i < n; i++) v[i] -= v[i];
        return;
    }
    for (size_t i = 0; i < n; i++) { /* shares of the range, whose squares neither overflow nor vanish */
        v[i] = (v[i] - low) / (high - low);
        if (!isnan(v[i])) mean += v[i];
    }
    mean /= (double)known;
    for (size_t i = 0; i < n; i++) if (!isnan(v[i])) squares += (v[i] - mean) * (v[i] - mean);
    const double deviation = sqrt(squares / (double)known);
    for (size_t i = 0; i < n; i++) v[i] = (v[i] - mean) / deviation;
}
""",
    "rank": """\
static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* `room` has n places */
static void scale_rank(double *v, size_t n, double *room) {
    size_t known = 0;
    for (size_t i = 0; i < n; i++) if (!isnan(v[i])) room[known++] = v[i];
    qsort(room, known, sizeof *room, compare_doubles);
    const int varies = known > 0 && room[0] < room[known - 1];
    for (size_t i = 0; i < n; i++) {
        if (isnan(v[i])) continue;
        size_t first = 0, end = known; /* bisection for the first place that is not smaller */
        while (first < end) {
            const size_t at = first + (end - first) / 2;
            if (room[at] < v[i]) first = at + 1; else end = at;
        }
        size_t last = first, beyond = known; /* and for the first one that is larger */
        while (last < beyond) {
            const size_t at = last + (beyond - last) / 2;
            if (room[at] <= v[i]) last = at + 1; else beyond = at;
        }
        v[i] = varies ? ((double)first + (double)(last - 1)) / 2.0 / (double)(known - 1) : 0.0;
    }
}
""",
}
_KERNELS = {
    "linear": "sum += row[j] * one[j];\n    return sum;",
    "rbf": "sum += (row[j] - one[j]) * (row[j] - one[j]);\n    return exp(-gamma_ * sum);",
    "laplacian": "sum += fabs(row[j] - one[j]);\n    return exp(-gamma_ * sum);",
    "poly": "sum += row[j] * one[j];\n    return pow(gamma_ * sum + offset_, degree_);",
    "sigmoid": "sum += row[j] * one[j];\n    return tanh(gamma_ * sum + offset_);",
}


class CSource(CodeLanguage):
    """Rows are arrays of doubles in the order of the columns; texts, where there are any, stand in a second array."""

    missing_word = "NaN, and null pointers where a column holds texts"
    # Of the standard library what is called here, and main; what else it has is for the compiler to tell.
    taken = (
        "auto break case char const continue default do double else enum extern float for goto if inline int long "
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
        "INFINITY NAN NULL exp fabs free isnan log main malloc pow qsort size_t sqrt strcmp tanh "
        "basis_ compare_doubles degree_ dual_ gamma_ is_missing_text kernel_ linear_ offset_ scale_minmax scale_rank "
        "scale_standard"
    )

    def number(self, value: float) -> str:
        if not math.isfinite(value):
            return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return repr(float(value)) if value >= 0 else f"({float(value)!r})"

    def text(self, value: str) -> str:
        # Octal escapes have three digits at most, so that no letter after them is taken for a part.
        letters = [
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
            for byte in value.encode()
        ]
        return f'"{"".join(letters)}"'

    def missing(self, x: str) -> str:
        return f"is_missing_text({x})" if x.startswith(("text[", "t_")) else f"isnan({x})"

    def equal(self, x: str, level: float | str) -> str:
        if isinstance(level, str):
            return f"strcmp({x}, {self.text(level)}) == 0"
        return f"{x} == {self.number(level)}"

    def raw(self, number: int, is_text: bool) -> str:
        return f"text[{number}]" if is_text else f"row[{number}]"

    def named(self, name: str, is_text: bool) -> str:
        return f"t_{name}" if is_text else name

    def declare(self, value: Value, expression: str) -> str:
        if value.is_text:
            return f"const char *t_{value.name} = {expression};"
        return f"const double {value.name} = {expression};"

    def head(self, formula: Formula, name: str) -> str:
        about = "\n".join(f" * {line.replace('*/', '* /')}" for line in self.about(formula))
        names = self.array([self.text(one) for one in formula.names])
        texts = (
            "\nstatic int is_missing_text(const char *x) { return x == NULL; }\n"
            if any(formula.is_text)
            else ""
        )
        return (
            f"/*\n{about}\n */\n#include <math.h>\n#include <stddef.h>\n#include <stdlib.h>\n#include <string.h>\n\n"
            f"enum {{ {name.upper()}_COLUMNS = {len(formula.names)} }};\n"
            f"const char *const {name}_columns[] = {{\n{names}\n}};\n{texts}"
        )

    def tables(self, program: Program) -> str:
        number, out = self.number, []
        if program.linear:
            entries = [
                f"{{{at}, {number(weight)}, {number(center)}}}" for at, weight, center in program.linear
            ]
            out.append(
                "static const struct { size_t column; double weight, center; } linear_[] = {\n"
                f"{self.array(entries)}\n}};\n"
            )
        if program.kernel is not None:
            kernel, (kind, gamma, offset, degree) = program.kernel, kernel_parts(program.kernel)
            n_basis, n_columns = kernel.basis.shape
            dual = self.array([number(value) for value in kernel.dual.tolist()])
            basis = self.array([f"{{{', '.join(map(number, row))}}}" for row in kernel.basis.tolist()])
            constants = f"gamma_ = {number(gamma)}, offset_ = {number(offset)}, degree_ = {number(degree)}"
            out.append(
                f"static const double {constants};\n"
                f"static const double dual_[{n_basis}] = {{\n{dual}\n}};\n"
                f"static const double basis_[{n_basis}][{n_columns}] = {{\n{basis}\n}};\n\n"
                "static double kernel_(const double *row, const double *one) {\n    double sum = 0.0;\n"
                "    (void)gamma_; (void)offset_; (void)degree_;\n"
                f"    for (size_t j = 0; j < {n_columns}; j++) {_KERNELS[kind]}\n}}\n"
            )
        return "\n".join(out)

    def scalers(self, methods: set[str]) -> str:
        return "\n".join(_SCALERS[method] for method in sorted(methods))

    def one_row(self, program: Program, name: str) -> str:
        texts = ", const char *const *text" if any(program.formula.is_text) else ""
        body = [*self.lines(program.values), *self._sum(program), "return total;"]
        return (
            f"double {name}(const double *row{texts}) {{\n    (void)row;\n    " + "\n    ".join(body) + "\n}"
        )

    def whole_query(self, program: Program, name: str) -> str:
        scaled = self.scaled(program)
        texts = "const char *const *texts, " if any(program.formula.is_text) else ""
        room = f"n_rows * {len(scaled) + 1} * sizeof(double)"
        out = [
            "/* rows, one after the other, of one query; returns 0, or -1 where there is no memory */",
            f"int {name}(const double *rows, {texts}size_t n_rows, double *scores) {{",
            f"    double *const room = malloc(n_rows ? {room} : 1);",
            "    if (room == NULL) return -1;",
        ]
        for place, (value, chain) in enumerate(scaled):
            method = value.method
            spare = f", room + {len(scaled)} * n_rows" if method == "rank" else ""
            out += [
                f"    double *const {value.name}_of = room + {place} * n_rows;",
                *self._loop(program, chain),
                f"        {value.name}_of[number] = {self.sources_of(value)[0]};",
                "    }",
                f"    scale_{method}({value.name}_of, n_rows{spare});",
            ]
        out += [*self._loop(program, self.used(program)), *(f"        {line}" for line in self._sum(program))]
        return "\n".join(
            [*out, "        scores[number] = total;", "    }", "    free(room);", "    return 0;", "}"]
        )

    def _loop(self, program: Program, values: list[Value]) -> list[str]:
        n_columns = len(program.formula.names)
        out = ["    for (size_t number = 0; number < n_rows; number++) {"]
        out.append(f"        const double *const row = rows + number * {n_columns};")
        out.append("        (void)row;")
        if any(program.formula.is_text):
            out += [
                f"        const char *const *const text = texts + number * {n_columns};",
                "        (void)text;",
            ]
        for value in values:
            if value.is_query_scale:
                out.append(f"        const double {value.name} = {value.name}_of[number];")
            else:
                out.append(f"        {self.lines([value])[0]}")
        return out

    def _sum(self, program: Program) -> list[str]:
        out = [f"double total = {self.number(program.constant)};"]
        if program.linear:
            out += [
                f"for (size_t j = 0; j < {len(program.linear)}; j++)",
                "    total += linear_[j].weight * (row[linear_[j].column] - linear_[j].center);",
            ]
        out += [f"total += {term};" for term in self.terms(program)]
        if program.kernel is not None:
            n_basis = program.kernel.basis.shape[0]
            out += [
                f"const double seen[] = {{{', '.join(self.kernel_row(program))}}};",
                f"for (size_t b = 0; b < {n_basis}; b++) total += dual_[b] * kernel_(seen, basis_[b]);",
            ]
        return out
