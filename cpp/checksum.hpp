// XXH64, the checksum of a store: as fast as memory, and known to other tools.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "interruption.hpp"

namespace rankwise {

namespace detail {

constexpr uint64_t prime_1 = 0x9E3779B185EBCA87, prime_2 = 0xC2B2AE3D27D4EB4F, prime_3 = 0x165667B19E3779F9,
                        prime_4 = 0x85EBCA77C2B2AE63, prime_5 = 0x27D4EB2F165667C5;

constexpr std::ptrdiff_t bytes_at_once = 1 << 24;  // a multiple of 32

inline uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

template <typename Word>
uint64_t little_endian(const unsigned char* p) {
    uint64_t word = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i) word |= uint64_t{p[i]} << (8 * i);
    return word;
}

inline uint64_t add_lane(uint64_t lane, uint64_t word) { return rotate(lane + word * prime_2, 31) * prime_1; }

inline uint64_t merge_lane(uint64_t hash, uint64_t lane) {
    return (hash ^ add_lane(0, lane)) * prime_1 + prime_4;
}

}  // namespace detail

inline uint64_t checksum(const unsigned char* p, std::size_t size) {
    using namespace detail;
    const unsigned char* const end = p + size;
    uint64_t hash = prime_5;
    if (size >= 32) {
        uint64_t lane[4] = {prime_1 + prime_2, prime_2, 0, 0 - prime_1};
        while (end - p >= 32) {
            const unsigned char* const stop = p + std::min<std::ptrdiff_t>((end - p) / 32 * 32, bytes_at_once);
            for (; p < stop; p += 32)
                for (int i = 0; i < 4; ++i) lane[i] = add_lane(lane[i], little_endian<uint64_t>(p + 8 * i));
            check_interrupted();
        }
        hash = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
        for (const uint64_t value : lane) hash = merge_lane(hash, value);
    }
    hash += size;
    for (; end - p >= 8; p += 8) hash = rotate(hash ^ add_lane(0, little_endian<uint64_t>(p)), 27) * prime_1 + prime_4;
    for (; end - p >= 4; p += 4) hash = rotate(hash ^ little_endian<uint32_t>(p) * prime_1, 23) * prime_2 + prime_3;
    for (; p < end; ++p) hash = rotate(hash ^ *p * prime_5, 11) * prime_1;
    hash = (hash ^ hash >> 33) * prime_2;
    hash = (hash ^ hash >> 29) * prime_3;
    return hash ^ hash >> 32;
}

}  // namespace rankwise
