// Any bytes as text: libFuzzer calls this. The first four bytes are options, the rest is the file.
#include "svmlight_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size < 4) return 0;
    const std::string text(reinterpret_cast<const char*>(data) + 4, size - 4);
    const rankwise::text::Format format{data[0] & 1, (data[0] & 2) != 0, data[0] & 4 ? 100 : INT32_MAX - 1,
                                        static_cast<rankwise::text::Missing>(data[1] % 3)};
    const std::size_t cut = data[2] * size / 256;
    if (data[3] & 1) checks::check<float>(text, format, cut, 1);
    else checks::check<double>(text, format, cut, 1);
    return 0;
}
