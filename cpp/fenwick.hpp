// Sums over the first positions of an array that changes: add and sum in O(log n).
#pragma once

#include <stdint.h>

#include <vector>

namespace rankwise {

template <typename Value>
class Fenwick {
public:
    // Empties the tree and gives it `n` positions; memory is kept from one use to the next.
    void reset(int64_t n) { tree_.assign(static_cast<std::size_t>(n) + 1, Value{}); }

    void add(int64_t position, const Value& value) {
        for (auto i = static_cast<std::size_t>(position) + 1; i < tree_.size(); i += i & (~i + 1)) tree_[i] += value;
    }

    // The sum over positions 0 .. position - 1.
    Value below(int64_t position) const {
        Value sum{};
        for (auto i = static_cast<std::size_t>(position); i > 0; i &= i - 1) sum += tree_[i];
        return sum;
    }

private:
    std::vector<Value> tree_;
};

}  // namespace rankwise
