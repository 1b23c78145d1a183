// Any bytes as text: libFuzzer calls this.
#include "tests/svmlight_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    checks::check_input(data, size);
    return 0;
}
