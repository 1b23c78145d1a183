// Decimal numbers, correctly rounded.
//
// Up to 19 digits are gathered in an integer w. Where w < 2^53 and the power of ten is at most 10^22, both are doubles
// exactly, so that one product or quotient rounds once (Clinger, 1990); everything else goes to std::from_chars, which
// is exact as well. A float is rounded from the double unless that lies exactly between two floats, where the second
// rounding could go the wrong way: then from_chars reads the text again.
//
// The text must be followed by at least eight bytes that may be read, the first of which is not part of a number.
#pragma once

#include <stdint.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>
#include <type_traits>

namespace rankwise::text {

constexpr bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

namespace detail {

constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t integer_powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// The digits at p, up to eight of them, appended to w; returns how many there were.
inline int append_digits(const char* p, uint64_t& w) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t bytes;
    std::memcpy(&bytes, p, 8);
    bytes ^= 0x3030303030303030;  // a digit becomes its value, everything else more than 9
    const uint64_t others = ((bytes + 0x7676767676767676) | bytes) & 0x8080808080808080;
    const int n = others == 0 ? 8 : __builtin_ctzll(others) / 8;
    if (n == 0) return 0;
    bytes <<= 8 * (8 - n);  // zeros come in front
    bytes = bytes * 10 + (bytes >> 8);
    bytes = ((bytes & 0x000000FF000000FF) * 0x000F424000000064 +
             ((bytes >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >> 32;
    w = w * integer_powers[n] + static_cast<uint32_t>(bytes);
#else
    int n = 0;
    for (; n < 8 && is_digit(p[n]); ++n) w = w * 10 + static_cast<uint64_t>(p[n] - '0');
#endif
    return n;
}

template <typename Value>
Value read_again(const char* first, const char* last, bool below_one) {
    Value value = 0;
    const auto result = std::from_chars(first, last, value);
    if (result.ec == std::errc::result_out_of_range) return below_one ? Value(0) : Value(INFINITY);
    return value;
}

// Whether rounding this double to float may differ from rounding the decimal number itself.
inline bool is_between_floats(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    constexpr double smallest_normal = 1.1754943508222875e-38, largest = 3.4028234663852886e38;
    return (bits & 0x1FFFFFFF) == 0x10000000 || (value != 0 && value < smallest_normal) || value > largest;
}

}  // namespace detail

// Reads the number at p and moves p behind it; false, with p anywhere, where there is none. Too large is infinity.
template <typename Value>
inline bool parse_number(const char*& p, Value& out) {
    const bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    const char* const first = p;
    uint64_t w = 0;
    while (is_digit(*p)) w = w * 10 + static_cast<uint64_t>(*p++ - '0');
    int64_t n_digits = p - first;
    int64_t exponent = 0;
    if (*p == '.') {
        const char* const fraction = ++p;
        int n;
        do p += n = detail::append_digits(p, w);
        while (n == 8);
        exponent = fraction - p;
        n_digits += p - fraction;
    }
    if (n_digits == 0) return false;
    if (*p == 'e' || *p == 'E') {
        ++p;
        const bool is_small = *p == '-';
        if (is_small || *p == '+') ++p;
        if (!is_digit(*p)) return false;
        int64_t given = 0;
        while (is_digit(*p)) {
            if (given < 100000000) given = given * 10 + (*p - '0');
            ++p;
        }
        exponent += is_small ? -given : given;
    }
    Value value;
    if (n_digits <= 19 && w <= (uint64_t{1} << 53) && exponent >= -22 && exponent <= 22) {
        const double whole = static_cast<double>(w);
        const double exact = exponent < 0 ? whole / detail::powers_of_ten[-exponent] : whole * detail::powers_of_ten[exponent];
        if constexpr (std::is_same_v<Value, float>)
            value = detail::is_between_floats(exact) ? detail::read_again<float>(first, p, exact < 1) : static_cast<float>(exact);
        else
            value = exact;
    } else {
        // Out of range is either 0 or infinity; a number whose point, moved by its exponent, stands left of its first
        // digit other than 0 is below one.
        const char* digit = first;
        int64_t leading = 0;
        for (; *digit == '0' || *digit == '.'; ++digit) leading += *digit == '0';
        value = detail::read_again<Value>(first, p, n_digits - leading + exponent <= 0);
    }
    out = negative ? -value : value;
    return true;
}

}  // namespace rankwise::text
