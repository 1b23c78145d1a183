// What must hold for any text whatever: shared by the test and the fuzzer.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "svmlight.hpp"
#include "svmlight_writer.hpp"

namespace checks {

using rankwise::text::Error;
using rankwise::text::Format;
using rankwise::text::Problem;
using rankwise::text::Rows;

inline void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "svmlight: %s\n", what);
    std::abort();
}

// A copy on the heap with just the padding it needs, so that the sanitizer sees every byte that is read too far.
template <typename Value>
Error append(Rows<Value>& rows, const std::string& text, const Format& format, int n_threads) {
    std::vector<char> block(text.begin(), text.end());
    block.resize(text.size() + static_cast<std::size_t>(rankwise::text::padding));
    return rows.append(block.data(), static_cast<int64_t>(text.size()), format, n_threads);
}

template <typename T>
bool same(const rankwise::Growing<T>& a, const rankwise::Growing<T>& b) {
    return a.size() == b.size() &&
           (a.size() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0);
}

template <typename Value>
bool same(const Rows<Value>& a, const Rows<Value>& b) {
    return same(a.values, b.values) && same(a.columns, b.columns) && same(a.start, b.start) && same(a.labels, b.labels) &&
           same(a.run_start, b.run_start) && same(a.run_text, b.run_text) && same(a.run_text_end, b.run_text_end);
}

template <typename Value>
void check_arrays(const Rows<Value>& rows) {
    expect(rows.start.size() == rows.rows() + 1 && rows.start[0] == 0, "row pointers");
    expect(rows.start.back() == rows.values.size() && rows.values.size() == rows.columns.size(), "entries");
    for (int64_t i = 0; i < rows.rows(); ++i) {
        expect(rows.start[i] <= rows.start[i + 1], "row pointers descend");
        for (auto e = rows.start[i]; e < rows.start[i + 1]; ++e) {
            expect(rows.columns[e] >= rows.smallest && rows.columns[e] <= rows.largest, "a column outside");
            expect(e == rows.start[i] || rows.columns[e - 1] < rows.columns[e], "columns not ascending");
        }
    }
    expect(rows.run_start.size() == rows.run_text_end.size(), "runs");
    expect(rows.has_qid() == (rows.run_start.size() > 0) || rows.rows() == 0, "runs without ids");
    for (int64_t r = 0; r < rows.run_start.size(); ++r)
        expect(r == 0 ? rows.run_start[0] == 0 : rows.run_start[r - 1] < rows.run_start[r], "runs not ascending");
}

template <typename Value>
std::string written(const Rows<Value>& rows, int64_t base, int n_threads) {
    const rankwise::Csr<Value, int32_t, int64_t> X{rows.rows(), 0, rows.values.data(), rows.columns.data(),
                                                             rows.start.data()};
    const rankwise::text::Ids ids{rows.run_start.size(), rows.run_start.data(), rows.run_text_end.data(),
                                  rows.run_text.data()};
    std::string text;
    for (const auto& piece : rankwise::text::write_rows(X, rows.labels.data(), ids, base, n_threads))
        text.append(piece.data(), static_cast<std::size_t>(piece.size()));
    return text;
}

// Parses text in one piece and in two; writes what came out and reads it again. Returns the problem found.
template <typename Value>
Problem check(const std::string& text, const Format& format, std::size_t cut, int n_threads) {
    Rows<Value> whole;
    const Error error = append(whole, text, format, n_threads);
    expect(error.at >= 0 && error.at + error.length <= static_cast<int64_t>(text.size()), "an error outside the text");

    // Cut behind a newline, the two parts make the same rows, or one of them has the same problem.
    std::size_t newline = text.find('\n', std::min(cut, text.size()));
    newline = newline == std::string::npos ? text.size() : newline + 1;
    Rows<Value> parts;
    Error other = append(parts, text.substr(0, newline), format, 1);
    if (other.problem == Problem::none) other = append(parts, text.substr(newline), format, 1);
    expect(other.problem == error.problem, "parts and whole disagree about what is wrong");
    if (error.problem != Problem::none) return error.problem;
    check_arrays(whole);
    expect(same(whole, parts), "parts and whole disagree");

    if (whole.smallest < 0) whole.shift_columns(1);  // there is a column 0, so it was the first
    const Format sure{1, true, INT32_MAX, rankwise::text::Missing::nan};
    Rows<Value> again;
    expect(append(again, written(whole, 1, n_threads), sure, n_threads).problem == Problem::none, "own text is refused");
    expect(same(whole, again), "own text reads otherwise");

    // Rows are split before the last run and stay what they are.
    if (whole.rows() > 0) {
        const int64_t row = whole.run_start.size() > 0 ? whole.run_start.back() : whole.rows() / 2;
        Rows<Value> rest = whole.split(row);
        check_arrays(rest);
        expect(whole.rows() + rest.rows() == again.rows() && whole.values.size() + rest.values.size() == again.values.size(),
               "splitting loses rows");
        expect(written(whole, 1, 1) + written(rest, 1, 1) == written(again, 1, 1), "splitting changes rows");
    }
    return Problem::none;
}

// The first four bytes are options, the rest is the text.
inline void check_input(const unsigned char* data, std::size_t size) {
    if (size < 4) return;
    const std::string text(reinterpret_cast<const char*>(data) + 4, size - 4);
    const Format format{data[0] & 1, (data[0] & 2) != 0, data[0] & 4 ? 100 : INT32_MAX - 1,
                        static_cast<rankwise::text::Missing>(data[1] % 3)};
    const std::size_t cut = data[2] * size / 256;
    if (data[3] & 1) check<float>(text, format, cut, 1);
    else check<double>(text, format, cut, 1);
}

}  // namespace checks
