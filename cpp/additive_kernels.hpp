// What a column of codes reads from its table of cells, and adds to it: the inner loops of additive.hpp.
//
// In ns for each code on one thread, at nine cells and with the codes in the second cache or beyond it:
//
//                      plain   AVX2   AVX-512
//     reading           0.76   0.39      0.22
//     adding            1.06   0.60      0.46
//
// of which bringing the codes takes 0.14. Reading is two loads of a pair (AVX2), or two shuffles of a table that is kept
// in registers (AVX-512). Adding to a cell waits for the last addition to it, and a store can do one cell at a time; with
// AVX-512 a small table is added up without stores: the sums of u max(code, knot), whose second differences are the
// sums of u times the hats. Which instructions there are is found out when the program runs.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <cmath>

#include "instructions.hpp"

namespace rankwise {

// Runs of rows begin at a multiple of so many in their chunk, and have a multiple of it: no kernel has anything left over,
// and vectors never lie across two cache lines.
constexpr int64_t run_unit = 16;

// Codes of one column, one after the other.
struct CodeRun {
    const uint32_t* codes;
    int64_t size;
    int shift;
    int64_t cells;

    uint32_t mask() const { return (uint32_t{1} << shift) - 1; }
    int64_t cell(int64_t i) const { return codes[i] >> shift; }
    double position(int64_t i) const { return static_cast<int32_t>(codes[i] & mask()); }
};

// Two sides of a surface, decoded.
struct PairRun {
    const int32_t *a, *b;
    const double *s, *t;
    int64_t size;
    int64_t width;  // cells of the second side
    int64_t cells;  // of both

    int64_t cell(int64_t i) const { return a[i] * width + b[i]; }
};

// A side of a surface on the cells of its column.
struct SideMap {
    const int32_t* cell;
    const double* origin;
    const double* slope;
};

namespace detail {

// Many rows in the same cell make a chain of additions, each waiting for the last one's store: a few copies of a small
// table, which rows take in turn, are as many chains.
constexpr int table_copies = 4;
constexpr int64_t copied_entries = 256;

// Copies of a table of so many entries; the table itself where copies would cost more than they save.
class TableCopies {
public:
    RANKWISE_INLINE TableCopies(int64_t entries, int64_t rows, double* table)
        : entries_(entries > copied_entries || rows < entries ? 0 : entries), table_(table) {
        for (int c = 0; c < table_copies; ++c) {
            std::fill(sums_[c], sums_[c] + entries_, 0.0);
            at_[c] = entries_ ? sums_[c] : table;
        }
    }

    double* operator[](int64_t i) const { return at_[i]; }

    RANKWISE_INLINE void add_up() const {
        for (int64_t e = 0; e < entries_; ++e) table_[e] += (sums_[0][e] + sums_[1][e]) + (sums_[2][e] + sums_[3][e]);
    }

private:
    // Not a multiple of 4 KiB apart, for loads would then wait for stores to another copy.
    alignas(64) double sums_[table_copies][copied_entries + 8];
    double* at_[table_copies];
    int64_t entries_;
    double* table_;
};

// The entries of a cell are copied first: a compiler cannot know that what is written is not part of the table.
template <int K>
RANKWISE_INLINE void read_cells(CodeRun run, const double* table, double* f) {
    for (int64_t i = 0; i < run.size; ++i, f += K) {
        const double* cell = table + run.cell(i) * 2 * K;
        const double p = run.position(i);
        double read[K];
        for (int c = 0; c < K; ++c) read[c] = f[c] + (cell[c] + p * cell[K + c]);
        for (int c = 0; c < K; ++c) f[c] = read[c];
    }
}

template <int K>
RANKWISE_INLINE void add_cell(CodeRun run, int64_t i, const double* u, double* table) {
    double* cell = table + run.cell(i) * 2 * K;
    const double p = run.position(i);
    double level[K], slope[K];
    for (int c = 0; c < K; ++c) level[c] = cell[c] + u[c];
    for (int c = 0; c < K; ++c) slope[c] = cell[K + c] + p * u[c];
    for (int c = 0; c < K; ++c) cell[c] = level[c];
    for (int c = 0; c < K; ++c) cell[K + c] = slope[c];
}

template <int K>
RANKWISE_INLINE void add_cells(CodeRun run, const double* u, double* table) {
    const TableCopies copies(run.cells * 2 * K, run.size, table);
    for (int64_t i = 0; i < run.size; ++i) add_cell<K>(run, i, u + i * K, copies[i % table_copies]);
    copies.add_up();
}

inline void decode_cells(CodeRun run, const SideMap& side, int32_t* cell, double* position) {
    for (int64_t i = 0; i < run.size; ++i) {
        const int64_t c = run.cell(i);
        cell[i] = side.cell[c];
        position[i] = side.origin[c] + side.slope[c] * run.position(i);
    }
}

template <int K>
RANKWISE_INLINE void read_pairs(PairRun run, const double* table, double* f) {
    for (int64_t i = 0; i < run.size; ++i, f += K) {
        const double* cell = table + run.cell(i) * 4 * K;
        const double s = run.s[i], t = run.t[i];
        double read[K];
        for (int c = 0; c < K; ++c) read[c] = f[c] + ((cell[c] + s * cell[K + c]) + t * (cell[2 * K + c] + s * cell[3 * K + c]));
        for (int c = 0; c < K; ++c) f[c] = read[c];
    }
}

template <int K>
RANKWISE_INLINE void add_pair(double s, double t, const double* u, double* cell) {
    const double weight[4] = {1.0, s, t, s * t};
    double sum[4][K];
    for (int e = 0; e < 4; ++e)
        for (int c = 0; c < K; ++c) sum[e][c] = cell[e * K + c] + weight[e] * u[c];
    for (int e = 0; e < 4; ++e)
        for (int c = 0; c < K; ++c) cell[e * K + c] = sum[e][c];
}

template <int K>
RANKWISE_INLINE void add_pairs(PairRun run, const double* u, double* table) {
    const TableCopies copies(run.cells * 4 * K, run.size, table);
    for (int64_t i = 0; i < run.size; ++i)
        add_pair<K>(run.s[i], run.t[i], u + i * K, copies[i % table_copies] + run.cell(i) * 4 * K);
    copies.add_up();
}

#if defined(RANKWISE_WIDE)

// One vector: four codes at a time.
RANKWISE_AVX2 inline void read_cells_avx2(CodeRun run, const double* table, double* f) {
    const __m128i mask = _mm_set1_epi32(static_cast<int>(run.mask()));
    for (int64_t i = 0; i < run.size; i += 4) {
        const __m128i codes = _mm_load_si128(reinterpret_cast<const __m128i*>(run.codes + i));
        const __m256d p = _mm256_cvtepi32_pd(_mm_and_si128(codes, mask));
        const __m256d even = _mm256_set_m128d(_mm_loadu_pd(table + 2 * run.cell(i + 2)), _mm_loadu_pd(table + 2 * run.cell(i)));
        const __m256d odd = _mm256_set_m128d(_mm_loadu_pd(table + 2 * run.cell(i + 3)), _mm_loadu_pd(table + 2 * run.cell(i + 1)));
        const __m256d read = _mm256_fmadd_pd(p, _mm256_unpackhi_pd(even, odd), _mm256_unpacklo_pd(even, odd));
        _mm256_store_pd(f + i, _mm256_add_pd(_mm256_load_pd(f + i), read));
    }
}

RANKWISE_AVX2 inline void add_at(double* at, __m128d what) { _mm_storeu_pd(at, _mm_add_pd(_mm_loadu_pd(at), what)); }
RANKWISE_AVX2 inline void add_at(double* at, __m256d what) { _mm256_storeu_pd(at, _mm256_add_pd(_mm256_loadu_pd(at), what)); }

RANKWISE_AVX2 inline void add_cells_avx2(CodeRun run, const double* u, double* table) {
    const TableCopies copies(run.cells * 2, run.size, table);
    double *const a = copies[0], *const b = copies[1], *const c = copies[2], *const d = copies[3];
    const __m128i mask = _mm_set1_epi32(static_cast<int>(run.mask()));
    for (int64_t i = 0; i < run.size; i += 4) {
        const __m128i codes = _mm_load_si128(reinterpret_cast<const __m128i*>(run.codes + i));
        const __m256d level = _mm256_load_pd(u + i);
        const __m256d moved = _mm256_mul_pd(level, _mm256_cvtepi32_pd(_mm_and_si128(codes, mask)));
        const __m256d even = _mm256_unpacklo_pd(level, moved), odd = _mm256_unpackhi_pd(level, moved);
        add_at(a + 2 * run.cell(i), _mm256_castpd256_pd128(even));
        add_at(b + 2 * run.cell(i + 1), _mm256_castpd256_pd128(odd));
        add_at(c + 2 * run.cell(i + 2), _mm256_extractf128_pd(even, 1));
        add_at(d + 2 * run.cell(i + 3), _mm256_extractf128_pd(odd, 1));
    }
    copies.add_up();
}

// Rows become columns.
RANKWISE_AVX2 inline void transpose(__m256d& a, __m256d& b, __m256d& c, __m256d& d) {
    const __m256d ab = _mm256_unpacklo_pd(a, b), ba = _mm256_unpackhi_pd(a, b);
    const __m256d cd = _mm256_unpacklo_pd(c, d), dc = _mm256_unpackhi_pd(c, d);
    a = _mm256_permute2f128_pd(ab, cd, 0x20);
    b = _mm256_permute2f128_pd(ba, dc, 0x20);
    c = _mm256_permute2f128_pd(ab, cd, 0x31);
    d = _mm256_permute2f128_pd(ba, dc, 0x31);
}

RANKWISE_AVX2 inline void read_pairs_avx2(PairRun run, const double* table, double* f) {
    for (int64_t i = 0; i < run.size; i += 4) {
        __m256d a = _mm256_loadu_pd(table + 4 * run.cell(i)), b = _mm256_loadu_pd(table + 4 * run.cell(i + 1));
        __m256d c = _mm256_loadu_pd(table + 4 * run.cell(i + 2)), d = _mm256_loadu_pd(table + 4 * run.cell(i + 3));
        transpose(a, b, c, d);
        const __m256d s = _mm256_load_pd(run.s + i), t = _mm256_load_pd(run.t + i);
        const __m256d read = _mm256_fmadd_pd(t, _mm256_fmadd_pd(s, d, c), _mm256_fmadd_pd(s, b, a));
        _mm256_store_pd(f + i, _mm256_add_pd(_mm256_load_pd(f + i), read));
    }
}

RANKWISE_AVX2 inline void add_pairs_avx2(PairRun run, const double* u, double* table) {
    const TableCopies copies(run.cells * 4, run.size, table);
    double* const own[table_copies] = {copies[0], copies[1], copies[2], copies[3]};
    for (int64_t i = 0; i < run.size; i += 4) {
        const __m256d s = _mm256_load_pd(run.s + i), t = _mm256_load_pd(run.t + i);
        __m256d a = _mm256_load_pd(u + i), b = _mm256_mul_pd(a, s), c = _mm256_mul_pd(a, t), d = _mm256_mul_pd(b, t);
        transpose(a, b, c, d);
        add_at(own[0] + 4 * run.cell(i), a);
        add_at(own[1] + 4 * run.cell(i + 1), b);
        add_at(own[2] + 4 * run.cell(i + 2), c);
        add_at(own[3] + 4 * run.cell(i + 3), d);
    }
    copies.add_up();
}

template <int K>
RANKWISE_AVX2 void read_column_avx2(CodeRun run, const double* table, double* f) {
    if constexpr (K == 1) read_cells_avx2(run, table, f);
    else read_cells<K>(run, table, f);
}

template <int K>
RANKWISE_AVX2 void add_column_avx2(CodeRun run, const double* u, double* table) {
    if constexpr (K == 1) add_cells_avx2(run, u, table);
    else add_cells<K>(run, u, table);
}

template <int K>
RANKWISE_AVX2 void read_surface_avx2(PairRun run, const double* table, double* f) {
    if constexpr (K == 1) read_pairs_avx2(run, table, f);
    else read_pairs<K>(run, table, f);
}

template <int K>
RANKWISE_AVX2 void add_surface_avx2(PairRun run, const double* u, double* table) {
    if constexpr (K == 1) add_pairs_avx2(run, u, table);
    else add_pairs<K>(run, u, table);
}

constexpr int64_t register_cells = 16;

// A table of up to sixteen cells, kept in four registers.
RANKWISE_AVX512 inline void read_cells_avx512(CodeRun run, const double* table, double* f) {
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), odd = _mm512_add_epi64(even, _mm512_set1_epi64(1));
    __m512d part[4];
    for (int e = 0; e < 4; ++e) {
        const int64_t entries = std::clamp<int64_t>(2 * run.cells - 8 * e, 0, 8);
        part[e] = _mm512_maskz_loadu_pd(static_cast<__mmask8>((1 << entries) - 1), table + (entries ? 8 * e : 0));
    }
    const __m512d low = _mm512_permutex2var_pd(part[0], even, part[1]), high = _mm512_permutex2var_pd(part[2], even, part[3]);
    const __m512d low_slope = _mm512_permutex2var_pd(part[0], odd, part[1]);
    const __m512d high_slope = _mm512_permutex2var_pd(part[2], odd, part[3]);
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(run.mask()));
    const __m128i shift = _mm_cvtsi32_si128(run.shift);
    for (int64_t i = 0; i < run.size; i += 8) {
        const __m256i codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(run.codes + i));
        const __m512i cell = _mm512_cvtepu32_epi64(_mm256_srl_epi32(codes, shift));
        const __m512d p = _mm512_cvtepi32_pd(_mm256_and_si256(codes, mask));
        const __m512d read = _mm512_fmadd_pd(p, _mm512_permutex2var_pd(low_slope, cell, high_slope),
                                             _mm512_permutex2var_pd(low, cell, high));
        _mm512_store_pd(f + i, _mm512_add_pd(_mm512_load_pd(f + i), read));
    }
}

RANKWISE_AVX512 inline void decode_cells_avx512(CodeRun run, const SideMap& side, int32_t* cell, double* position) {
    const auto all = static_cast<__mmask16>((1 << run.cells) - 1);
    const auto low = static_cast<__mmask8>(all), high = static_cast<__mmask8>(all >> 8);
    const double *late_origin = high ? side.origin + 8 : side.origin, *late_slope = high ? side.slope + 8 : side.slope;
    const __m512i cells = _mm512_maskz_loadu_epi32(all, side.cell);
    const __m512d origin = _mm512_maskz_loadu_pd(low, side.origin), high_origin = _mm512_maskz_loadu_pd(high, late_origin);
    const __m512d slope = _mm512_maskz_loadu_pd(low, side.slope), high_slope = _mm512_maskz_loadu_pd(high, late_slope);
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(run.mask()));
    const __m128i shift = _mm_cvtsi32_si128(run.shift);
    for (int64_t i = 0; i < run.size; i += 8) {
        const __m256i codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(run.codes + i));
        const __m256i number = _mm256_srl_epi32(codes, shift);
        const __m512i wide = _mm512_cvtepu32_epi64(number);
        const __m512d p = _mm512_cvtepi32_pd(_mm256_and_si256(codes, mask));
        const __m512i read = _mm512_permutexvar_epi32(_mm512_castsi256_si512(number), cells);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(cell + i), _mm512_castsi512_si256(read));
        _mm512_store_pd(position + i, _mm512_fmadd_pd(p, _mm512_permutex2var_pd(slope, wide, high_slope),
                                                      _mm512_permutex2var_pd(origin, wide, high_origin)));
    }
}

// With code = cell 2^shift + position and knots at multiples of 2^shift, A_k = sum of u max(code - knot_k, 0) is known for
// all k, and the sum of u times the hat at knot k is A_{k-1} - 2 A_k + A_{k+1}, in units of 2^shift. That is what the sums
// of a cell are for; those of u times the position stay as they are. Codes of what is missing lie beyond all knots.
template <int Knots>
RANKWISE_AVX512 void add_hats(CodeRun run, const double* u, double* table) {
    static_assert(Knots >= 2);
    __m512d sum[Knots - 1];
    for (auto& own : sum) own = _mm512_setzero_pd();
    __m512d total = _mm512_setzero_pd(), missing = _mm512_setzero_pd();
    const double unit = std::ldexp(1.0, run.shift);
    const __m256i end = _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(Knots) << run.shift));
    for (int64_t i = 0; i < run.size; i += 8) {
        const __m256i codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(run.codes + i));
        const __m512d all = _mm512_load_pd(u + i);
        const __mmask8 seen = _mm256_cmplt_epu32_mask(codes, end);
        const __m512d own = _mm512_maskz_mov_pd(seen, all);
        missing = _mm512_mask_add_pd(missing, static_cast<__mmask8>(~seen), missing, all);
        total = _mm512_add_pd(total, own);
        const __m512d code = _mm512_cvtepu32_pd(codes);
        sum[0] = _mm512_fmadd_pd(own, code, sum[0]);
        for (int k = 1; k < Knots - 1; ++k)
            sum[k] = _mm512_fmadd_pd(own, _mm512_max_pd(code, _mm512_set1_pd(k * unit)), sum[k]);
    }
    const double mass = _mm512_reduce_add_pd(total);
    double A[Knots + 1] = {};
    for (int k = 0; k < Knots - 1; ++k) A[k] = _mm512_reduce_add_pd(sum[k]) / unit - k * mass;
    table[0] += mass - (A[0] - A[1]);
    for (int k = 1; k < Knots; ++k) table[2 * k] += A[k - 1] - 2 * A[k] + A[k + 1];
    table[2 * Knots] += _mm512_reduce_add_pd(missing);
}

// Beyond so many knots, two operations for each of them cost more than adding to cells.
constexpr int most_hats = 12;

template <int Knots = most_hats>
RANKWISE_AVX512 void add_hats_of(CodeRun run, const double* u, double* table) {
    if constexpr (Knots > 2) {
        if (run.cells - 1 < Knots) return add_hats_of<Knots - 1>(run, u, table);
    }
    add_hats<Knots>(run, u, table);
}

RANKWISE_AVX512 inline void read_column_avx512(CodeRun run, const double* table, double* f) {
    if (run.cells <= register_cells) read_cells_avx512(run, table, f);
    else read_cells_avx2(run, table, f);
}

RANKWISE_AVX512 inline void add_column_avx512(CodeRun run, const double* u, double* table) {
    if (run.shift > 0 && run.cells > 2 && run.cells - 1 <= most_hats) add_hats_of(run, u, table);
    else add_cells_avx2(run, u, table);
}

#endif

}  // namespace detail

// f += what the column reads, for K packed vectors.
template <int K>
void read_column(Instructions instructions, const CodeRun& run, const double* table, double* f) {
#if defined(RANKWISE_WIDE)
    if (K == 1 && instructions == Instructions::avx512) return detail::read_column_avx512(run, table, f);
    if (instructions != Instructions::plain) return detail::read_column_avx2<K>(run, table, f);
#endif
    (void)instructions;
    detail::read_cells<K>(run, table, f);
}

// table += u by cells and positions. Of a column with curves these are sums that belong together: only what the table of a
// continuous curve makes of them is meant (see add_hats).
template <int K>
void add_column(Instructions instructions, const CodeRun& run, const double* u, double* table) {
#if defined(RANKWISE_WIDE)
    if (K == 1 && instructions == Instructions::avx512) return detail::add_column_avx512(run, u, table);
    if (instructions != Instructions::plain) return detail::add_column_avx2<K>(run, u, table);
#endif
    (void)instructions;
    detail::add_cells<K>(run, u, table);
}

// Where the codes of a column stand on a side.
inline void decode_side(Instructions instructions, const CodeRun& run, const SideMap& side, int32_t* cell, double* position) {
#if defined(RANKWISE_WIDE)
    if (instructions == Instructions::avx512 && run.cells < detail::register_cells)
        return detail::decode_cells_avx512(run, side, cell, position);
#endif
    (void)instructions;
    detail::decode_cells(run, side, cell, position);
}

template <int K>
void read_surface(Instructions instructions, const PairRun& run, const double* table, double* f) {
#if defined(RANKWISE_WIDE)
    if (instructions != Instructions::plain) return detail::read_surface_avx2<K>(run, table, f);
#endif
    (void)instructions;
    detail::read_pairs<K>(run, table, f);
}

template <int K>
void add_surface(Instructions instructions, const PairRun& run, const double* u, double* table) {
#if defined(RANKWISE_WIDE)
    if (instructions != Instructions::plain) return detail::add_surface_avx2<K>(run, u, table);
#endif
    (void)instructions;
    detail::add_pairs<K>(run, u, table);
}

}  // namespace rankwise
