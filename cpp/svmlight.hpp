// svmlight/LETOR text: `label qid:id column:value ... # comment`, a row per line.
//
// A block of whole lines is cut into one part per thread. Each part is parsed into arrays of its own, large enough for
// whatever so many bytes can hold, and what came out is copied behind the rows that are there already; nothing larger
// than a block is held twice. The block must be followed by `padding` bytes that may be overwritten.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "growing.hpp"
#include "parallel.hpp"
#include "svmlight_number.hpp"

namespace rankwise::text {


constexpr int64_t padding = 16;
// Less text than this is parsed by one thread.
constexpr int64_t much_text = 1 << 18;

// What can be wrong with a line; Python has a sentence for each, in this order.
enum class Problem : int {
    none,
    label,           // not a number
    label_missing,   // NULL or NaN
    qid_empty,       // or with a NUL in it, which numpy would cut off
    qid_missing,     // earlier rows have one
    qid_unexpected,  // earlier rows have none
    entry,           // not column:value
    column_zero,     // columns were said to count from 1
    column_too_large,
    value,           // not a number
    value_missing,   // NULL or NaN, and nobody said what to do
    infinite,
    duplicate,       // a column comes twice in a row
};

struct Error {
    Problem problem = Problem::none;
    int64_t at = 0;      // first byte, counted from the start of the block
    int64_t length = 0;  // of the offending text; 0 where the whole row is at fault
};

enum class Missing : int { error, nan, zero };

struct Format {
    int64_t base;          // what the first column is called, 0 or 1
    bool base_is_sure;     // else column 0 is let through, as column -1 where the base is 1
    int64_t last_column;   // the largest column number, as written, that may occur
    Missing missing;
};

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
inline bool ends_token(char c) { return is_space(c) || c == '\n' || c == '#'; }

template <typename T>
using Scratch = std::unique_ptr<T[]>;

// What a thread made of its part of a block.
template <typename Value>
class Part {
public:
    int64_t rows = 0, entries = 0, lines = 0;
    int64_t smallest = INT32_MAX, largest = -1;  // columns, from 0
    bool has_qid = false;
    int64_t first_row_at = -1;
    Error error;
    Scratch<Value> values;
    Scratch<int32_t> columns;
    Scratch<int64_t> row_end;
    Scratch<double> labels;
    std::vector<int64_t> run_start;  // the first row of each run of rows with one qid
    std::vector<int64_t> run_text_end;
    std::string run_text;

    // Parses [from, to) of a block: whole lines; the last may lack its newline only at the end of the block, where one
    // is put behind it.
    void parse(const char* block, int64_t from, int64_t to, const Format& format) {
        reset(to - from);
        block_ = block;
        const char* p = block + from;
        end_ = block + to;
        WorkCounter work;
        for (const char* line = p; p < end_ && parse_line(p, format); line = p) {
            ++lines;
            work.add(p - line);
        }
    }

private:
    void reset(int64_t bytes) {
        rows = entries = lines = 0;
        smallest = INT32_MAX;
        largest = -1;
        has_qid = false;
        first_row_at = -1;
        error = Error{};
        run_start.clear();
        run_text_end.clear();
        run_text.clear();
        if (bytes <= capacity_) return;
        capacity_ = bytes;
        const auto most_entries = static_cast<std::size_t>(bytes / 4 + 2);  // "1:0 "
        const auto most_rows = static_cast<std::size_t>(bytes / 2 + 2);     // "0\n"
        values.reset(new Value[most_entries]);
        columns.reset(new int32_t[most_entries]);
        row_end.reset(new int64_t[most_rows]);
        labels.reset(new double[most_rows]);
    }

    bool fail(Problem problem, const char* at) {
        const char* end = at;
        while (!ends_token(*end)) ++end;
        error = {problem, at - block_, end - at};
        return false;
    }

    // Moves p behind the line; false where something is wrong with it.
    bool parse_line(const char*& p, const Format& format) {
        while (is_space(*p)) ++p;
        if (*p != '\n' && *p != '#') {
            const char* const line = p;
            if (!parse_label(p) || !parse_qid(p, line) || !parse_entries(p, line, format)) return false;
        }
        if (*p == '#') p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end_ + 1 - p)));
        ++p;
        return true;
    }

    bool parse_label(const char*& p) {
        const char* const token = p;
        double label;
        if (is_missing(p) && ends_token(*p)) return fail(Problem::label_missing, token);
        p = token;
        if (!parse_number(p, label) || !ends_token(*p)) return fail(Problem::label, token);
        if (std::isinf(label)) return fail(Problem::infinite, token);
        labels[rows] = label;
        return true;
    }

    bool parse_qid(const char*& p, const char* line) {
        while (is_space(*p)) ++p;
        const bool is_qid = p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':';
        if (rows == 0) {
            has_qid = is_qid;
            first_row_at = line - block_;
        } else if (is_qid != has_qid) {
            error = {is_qid ? Problem::qid_unexpected : Problem::qid_missing, line - block_, 0};
            return false;
        }
        if (!is_qid) return true;
        const char* const id = p + 4;
        p = id;
        while (!ends_token(*p)) ++p;
        const auto length = static_cast<std::size_t>(p - id);
        if (length == 0 || std::memchr(id, '\0', length)) return fail(Problem::qid_empty, id - 4);
        const std::size_t from = run_text_end.size() < 2 ? 0 : static_cast<std::size_t>(run_text_end.end()[-2]);
        if (run_start.empty() || run_text.size() - from != length || std::memcmp(run_text.data() + from, id, length) != 0) {
            run_start.push_back(rows);
            run_text.append(id, length);
            run_text_end.push_back(static_cast<int64_t>(run_text.size()));
        }
        return true;
    }

    bool parse_entries(const char*& p, const char* line, const Format& format) {
        const int64_t first = entries;
        int64_t previous = -2, least = INT32_MAX, n = first;
        bool sorted = true;
        for (;;) {
            while (is_space(*p)) ++p;
            if (*p == '\n' || *p == '#') break;
            const char* const token = p;
            int64_t column = 0;
            while (is_digit(*p) && column <= format.last_column) column = column * 10 + (*p++ - '0');
            if (p == token || (*p != ':' && !is_digit(*p))) return fail(Problem::entry, token);
            if (column > format.last_column) return fail(Problem::column_too_large, token);
            column -= format.base;
            if (column < 0 && format.base_is_sure) return fail(Problem::column_zero, token);
            const char* const value = ++p;
            if (!parse_number(p, values[n]) || !ends_token(*p)) {
                p = value;
                if (!is_missing(p) || !ends_token(*p)) return fail(Problem::value, token);
                if (format.missing == Missing::error) return fail(Problem::value_missing, token);
                if (format.missing == Missing::zero) {
                    largest = std::max(largest, column);
                    least = std::min(least, column);
                    continue;
                }
                values[n] = static_cast<Value>(NAN);
            } else if (std::isinf(values[n])) {
                return fail(Problem::infinite, token);
            }
            columns[n++] = static_cast<int32_t>(column);
            sorted &= column > previous;
            previous = column;
        }
        entries = n;
        if (!sorted && !sort_row(first, line, format.base)) return false;
        if (n > first) {
            smallest = std::min<int64_t>(smallest, columns[first]);
            largest = std::max<int64_t>(largest, columns[n - 1]);
        }
        smallest = std::min(smallest, least);
        row_end[rows++] = n;
        return true;
    }

    // NULL and NaN in any case, and the "-nan" that C prints.
    static bool is_missing(const char*& p) {
        const char* q = p + (*p == '-' || *p == '+');
        const auto is = [&](const char* word, int n) {
            for (int i = 0; i < n; ++i)
                if ((q[i] | 0x20) != word[i]) return false;
            p = q + n;
            return true;
        };
        return is("nan", 3) || (q == p && is("null", 4));
    }

    bool sort_row(int64_t first, const char* line, int64_t base) {
        const int64_t n = entries - first;
        std::vector<std::pair<int32_t, int64_t>> order(static_cast<std::size_t>(n));
        for (int64_t e = 0; e < n; ++e) order[static_cast<std::size_t>(e)] = {columns[first + e], e};
        std::sort(order.begin(), order.end());
        std::vector<Value> moved(static_cast<std::size_t>(n));
        for (std::size_t e = 0; e < order.size(); ++e) {
            if (e > 0 && order[e].first == order[e - 1].first) return fail_duplicate(order[e].first, line, base);
            columns[first + static_cast<int64_t>(e)] = order[e].first;
            moved[e] = values[first + order[e].second];
        }
        std::copy(moved.begin(), moved.end(), values.get() + first);
        return true;
    }

    // Finds the second entry of a column, for the message.
    bool fail_duplicate(int64_t column, const char* p, int64_t base) {
        bool seen = false;
        for (;;) {
            while (is_space(*p)) ++p;
            const char* const token = p;
            int64_t number = 0;
            while (is_digit(*p) && number <= INT32_MAX) number = number * 10 + (*p++ - '0');
            if (*p == ':' && number - base == column) {
                if (seen) return fail(Problem::duplicate, token);
                seen = true;
            }
            while (!ends_token(*p)) ++p;
        }
    }

    const char* block_ = nullptr;
    const char* end_ = nullptr;
    int64_t capacity_ = 0;
};

// Rows that were read so far.
template <typename Value>
class Rows {
public:
    Growing<Value> values;
    Growing<int32_t> columns;
    Growing<int64_t> start;
    Growing<double> labels;
    Growing<int64_t> run_start;     // the first row of each run of rows with one qid; empty without qids
    Growing<int64_t> run_text_end;
    Growing<char> run_text;
    int64_t smallest = INT32_MAX, largest = -1;  // columns that ever occurred
    int64_t lines = 0;

    Rows() { start.push(0); }

    int64_t rows() const { return labels.size(); }
    bool has_qid() const { return has_qid_; }

    // Parses a block of whole lines; where something is wrong, nothing more may be appended.
    Error append(char* block, int64_t size, const Format& format, int n_threads) {
        std::memset(block + size, '\n', padding);
        const int n_parts = size < much_text ? 1 : std::max(n_threads, 1);
        if (static_cast<int>(parts_.size()) < n_parts) parts_.resize(static_cast<std::size_t>(n_parts));
        std::vector<int64_t> cuts(static_cast<std::size_t>(n_parts) + 1, size);
        cuts[0] = 0;
        for (int t = 1; t < n_parts; ++t) {
            const int64_t from = std::max(cuts[static_cast<std::size_t>(t) - 1], size / n_parts * t);
            const auto* newline = static_cast<const char*>(std::memchr(block + from, '\n', static_cast<std::size_t>(size - from)));
            cuts[static_cast<std::size_t>(t)] = newline ? newline + 1 - block : size;
        }
        run_threads(n_parts, [&](int t) {
            const auto part = static_cast<std::size_t>(t);
            parts_[part].parse(block, cuts[part], cuts[part + 1], format);
        });
        return take_over(n_parts);
    }

    // Splits off the rows from `row` on, the first of a run.
    Rows split(int64_t row) {
        Rows rest;
        rest.has_qid_ = has_qid_;
        rest.has_rows_ = has_rows_;
        rest.smallest = smallest;
        rest.largest = largest;
        rest.lines = lines;
        rest.parts_ = std::move(parts_);
        const int64_t from = start[row];
        rest.values.append(values.data() + from, values.size() - from);
        rest.columns.append(columns.data() + from, columns.size() - from);
        rest.labels.append(labels.data() + row, labels.size() - row);
        rest.start.append(start.data() + row + 1, labels.size() - row);
        for (int64_t i = 1; i < rest.start.size(); ++i) rest.start[i] -= from;
        int64_t run = run_start.size();
        while (run > 0 && run_start[run - 1] >= row) --run;
        const int64_t text_from = run == 0 ? 0 : run_text_end[run - 1];
        rest.run_start.append(run_start.data() + run, run_start.size() - run);
        rest.run_text_end.append(run_text_end.data() + run, run_start.size() - run);
        if (run_start.size() > run) rest.run_text.append(run_text.data() + text_from, run_text.size() - text_from);
        for (int64_t i = 0; i < rest.run_start.size(); ++i) {
            rest.run_start[i] -= row;
            rest.run_text_end[i] -= text_from;
        }
        values.resize(from);
        columns.resize(from);
        labels.resize(row);
        start.resize(row + 1);
        run_start.resize(run);
        run_text_end.resize(run);
        run_text.resize(text_from);
        return rest;
    }

    // Renames columns by adding to them.
    void shift_columns(int32_t by) {
        for (int64_t e = 0; e < columns.size(); ++e) columns[e] += by;  // a fraction of a second for the largest text
        smallest += by;
        largest += by;
    }

private:
    Error take_over(int n_parts) {
        std::vector<int64_t> row_at, entry_at;
        int64_t n_rows = rows(), n_entries = values.size();
        for (int t = 0; t < n_parts; ++t) {
            const Part<Value>& part = parts_[static_cast<std::size_t>(t)];
            if (part.first_row_at >= 0) {
                if (has_rows_ && part.has_qid != has_qid_)
                    return {has_qid_ ? Problem::qid_missing : Problem::qid_unexpected, part.first_row_at, 0};
                has_rows_ = true;
                has_qid_ = part.has_qid;
                append_runs(part, n_rows);
            }
            if (part.error.problem != Problem::none) return part.error;
            row_at.push_back(n_rows);
            entry_at.push_back(n_entries);
            n_rows += part.rows;
            n_entries += part.entries;
            lines += part.lines;
            smallest = std::min(smallest, part.smallest);
            largest = std::max(largest, part.largest);
        }
        labels.resize(n_rows);
        start.resize(n_rows + 1);
        values.resize(n_entries);
        columns.resize(n_entries);
        run_threads(n_parts, [&](int t) {
            const auto i = static_cast<std::size_t>(t);
            const Part<Value>& part = parts_[i];
            std::copy_n(part.values.get(), part.entries, values.data() + entry_at[i]);
            std::copy_n(part.columns.get(), part.entries, columns.data() + entry_at[i]);
            std::copy_n(part.labels.get(), part.rows, labels.data() + row_at[i]);
            for (int64_t r = 0; r < part.rows; ++r) start[row_at[i] + r + 1] = entry_at[i] + part.row_end[r];
        });
        return {};
    }

    void append_runs(const Part<Value>& part, int64_t first_row) {
        int64_t from = 0;
        for (std::size_t run = 0; run < part.run_start.size(); ++run) {
            const int64_t to = part.run_text_end[run];
            if (run > 0 || !continues(part.run_text.data(), to)) {
                run_start.push(first_row + part.run_start[run]);
                run_text.append(part.run_text.data() + from, to - from);
                run_text_end.push(run_text.size());
            }
            from = to;
        }
    }

    bool continues(const char* id, int64_t length) const {
        const int64_t runs = run_start.size();
        if (runs == 0) return false;
        const int64_t from = runs == 1 ? 0 : run_text_end[runs - 2];
        return run_text_end[runs - 1] - from == length && std::memcmp(run_text.data() + from, id, static_cast<std::size_t>(length)) == 0;
    }

    bool has_rows_ = false, has_qid_ = false;
    std::vector<Part<Value>> parts_;
};

}  // namespace rankwise::text
