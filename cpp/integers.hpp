// One spelling of the integer types in the whole core: int64_t and its kind, without `std::`.
#pragma once

#include <cstdint>

namespace rankwise {

using std::int32_t;
using std::int64_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

}  // namespace rankwise
