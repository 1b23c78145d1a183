// Rows as svmlight/LETOR text; numbers are the shortest decimals that read back to the same bits.
#pragma once

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "csr.hpp"
#include "growing.hpp"
#include "parallel.hpp"

namespace rankwise::text {

// Row i belongs to the run r with run_start[r] <= i < run_start[r + 1]; without runs no qid is written.
struct Ids {
    int64_t runs;
    const int64_t* run_start;
    const int64_t* text_end;
    const char* text;
};

namespace detail {

constexpr int64_t longest_number = 32;
constexpr int64_t longest_entry = 2 * longest_number;

// Decimals of up to so many millionths, 15 digits or for a float 6, are told apart by the type: none is shorter than another
// that reads back to the same number.
template <typename Value>
constexpr double most_millionths = 1e15;
template <>
constexpr double most_millionths<float> = 1e6;

// Every number of three digits, and how many of them are left without the zeros at its end.
struct Triples {
    struct Triple {
        char digits[3];
        char kept;
    } of[1000];
    constexpr Triples() : of() {
        for (int i = 0; i < 1000; ++i) {
            of[i].digits[0] = static_cast<char>('0' + i / 100);
            of[i].digits[1] = static_cast<char>('0' + i / 10 % 10);
            of[i].digits[2] = static_cast<char>('0' + i % 10);
            of[i].kept = static_cast<char>(i % 10 ? 3 : i % 100 ? 2 : 1);
        }
    }
};
inline constexpr Triples triples{};

inline char* write_integer(char* p, uint64_t value) {
    if (value >= 1000) return std::to_chars(p, p + longest_number, value).ptr;
    const char* const digits = triples.of[value].digits;
    if (value < 10) {
        *p = digits[2];
        return p + 1;
    }
    if (value < 100) return static_cast<char*>(std::memcpy(p, digits + 1, 2)) + 2;
    return static_cast<char*>(std::memcpy(p, digits, 3)) + 3;
}

// Most files hold numbers of up to six decimals, and those are found by one product and one quotient; the search for the
// shortest decimal takes several times as long.
template <typename Value>
char* write_number(char* p, Value value) {
    const double millionths = std::fabs(static_cast<double>(value)) * 1e6;
    if (millionths >= 0.5 && millionths < most_millionths<Value>) {
        const auto k = static_cast<uint64_t>(millionths + 0.5);
        if (static_cast<Value>(static_cast<double>(k) / 1e6) == std::fabs(value)) {
            if (value < 0) *p++ = '-';
            p = write_integer(p, k / 1000000);
            const uint64_t rest = k % 1000000;
            if (rest == 0) return p;
            *p++ = '.';
            const auto& high = triples.of[rest / 1000];
            const auto& low = triples.of[rest % 1000];
            std::memcpy(p, high.digits, 3);
            if (rest % 1000 == 0) return p + high.kept;
            std::memcpy(p + 3, low.digits, 3);
            return p + 3 + low.kept;
        }
    }
    if (value == 0 && !std::signbit(value)) {
        *p = '0';
        return p + 1;
    }
    if (std::isnan(value)) return static_cast<char*>(std::memcpy(p, "NaN", 3)) + 3;
    return std::to_chars(p, p + longest_number, value).ptr;
}

template <typename Matrix>
void write_rows(const Matrix& X, const double* labels, const Ids& ids, int64_t base, int64_t from, int64_t to,
                Growing<char>& out) {
    int64_t run = ids.runs == 0 ? 0 : std::upper_bound(ids.run_start, ids.run_start + ids.runs, from) - ids.run_start - 1;
    int64_t used = 0;
    WorkCounter work;
    for (int64_t i = from; i < to; ++i) {
        if (run + 1 < ids.runs && ids.run_start[run + 1] <= i) ++run;
        const int64_t text_from = ids.runs == 0 || run == 0 ? 0 : ids.text_end[run - 1];
        const int64_t id_length = ids.runs == 0 ? 0 : ids.text_end[run] - text_from;
        out.resize(used + longest_entry + id_length + static_cast<int64_t>(X.start[i + 1] - X.start[i]) * longest_entry);
        char* p = write_number(out.data() + used, labels[i]);
        if (ids.runs > 0) {
            std::memcpy(p, " qid:", 5);
            std::memcpy(p + 5, ids.text + text_from, static_cast<std::size_t>(id_length));
            p += 5 + id_length;
        }
        for (auto e = X.start[i]; e < X.start[i + 1]; ++e) {
            *p++ = ' ';
            p = write_integer(p, static_cast<uint64_t>(static_cast<int64_t>(X.ids[e]) + base));
            *p++ = ':';
            p = write_number(p, X.values[e]);
        }
        *p++ = '\n';
        work.add(p - out.data() - used);
        used = p - out.data();
    }
    out.resize(used);
}

}  // namespace detail

// The text of all rows, in one piece per thread.
template <typename Matrix>
std::vector<Growing<char>> write_rows(const Matrix& X, const double* labels, const Ids& ids, int64_t base, int n_threads) {
    const auto cuts = split_lines(X.start, X.rows, n_threads);
    std::vector<Growing<char>> pieces(static_cast<std::size_t>(n_threads));
    run_threads(n_threads, [&](int t) {
        const auto i = static_cast<std::size_t>(t);
        detail::write_rows(X, labels, ids, base, cuts[i], cuts[i + 1], pieces[i]);
    });
    return pieces;
}

}  // namespace rankwise::text
