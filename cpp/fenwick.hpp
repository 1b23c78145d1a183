// Sums over the first positions of an array that changes: add and sum in O(log n).
#pragma once

#include <cstddef>
#include <vector>

namespace rankwise {

template <typename Value>
class Fenwick {
public:
    // Empties the tree and gives it `n` positions; memory is kept from one use to the next.
    void reset(std::size_t n) { tree_.assign(n + 1, Value{}); }

    void add(std::size_t position, Value value) {
        for (std::size_t i = position + 1; i < tree_.size(); i += i & (~i + 1)) tree_[i] += value;
    }

    // The sum over positions 0 .. position - 1.
    Value sum_before(std::size_t position) const {
        Value sum{};
        for (std::size_t i = position; i > 0; i &= i - 1) sum += tree_[i];
        return sum;
    }

private:
    std::vector<Value> tree_;
};

}  // namespace rankwise
