// Which vector instructions there are, found out when the program runs, and how a function says that it uses them.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define RANKWISE_WIDE 1
// GCC 12 warns of its own headers, which leave vectors unset on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#define RANKWISE_AVX2 __attribute__((target("avx2,fma,bmi2")))
#define RANKWISE_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma,bmi2")))
#define RANKWISE_INLINE inline __attribute__((always_inline))
#else
#define RANKWISE_INLINE inline
#endif

namespace rankwise {

enum class Instructions { plain, avx2, avx512 };

inline Instructions widest_instructions() {
#if defined(RANKWISE_WIDE)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return Instructions::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return Instructions::avx2;
#endif
    return Instructions::plain;
}

}  // namespace rankwise
