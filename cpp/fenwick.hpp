// A Fenwick (binary indexed) tree: sums over a prefix of an array that changes one entry at a time.
#pragma once

#include <cstddef>
#include <vector>

namespace rankwise {

// T needs a zero default value and operator+=. Adding and summing take O(log size).
template <typename T>
class Fenwick {
public:
    Fenwick() = default;
    explicit Fenwick(std::size_t size) { reset(size); }

    // All entries become zero; the memory is kept.
    void reset(std::size_t size) { node_.assign(size + 1, T{}); }

    void add(std::size_t i, const T& value) {
        for (++i; i < node_.size(); i += i & (~i + 1)) node_[i] += value;
    }

    // The sum of the entries before i.
    T prefix(std::size_t i) const {
        T sum{};
        for (; i > 0; i &= i - 1) sum += node_[i];
        return sum;
    }

private:
    std::vector<T> node_;
};

}  // namespace rankwise
