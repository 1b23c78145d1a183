// Algorithm 1 of Airola, Pahikkala and Salakoski (2011) as printed, with a red-black order-statistic tree (GNU pb_ds).
// Compiled on demand by order_statistics.py, for comparison only.
#include <algorithm>
#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace {

using Key = std::pair<std::int64_t, std::int64_t>;  // label, row: the tree keeps one of each key, labels repeat
using Tree = __gnu_pbds::tree<Key, __gnu_pbds::null_type, std::less<Key>, __gnu_pbds::rb_tree_tag,
                              __gnu_pbds::tree_order_statistics_node_update>;

}  // namespace

extern "C" void red_black_counts(const double* p, const std::int64_t* y, std::int64_t m, double* c, double* d) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(m));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return p[a] < p[b]; });
    Tree tree;
    std::int64_t j = 0;
    for (std::int64_t i = 0; i < m; ++i) {
        const std::int64_t k = order[i];
        for (; j < m && p[order[j]] - p[k] < 1.0; ++j) tree.insert({y[order[j]], order[j]});
        c[k] = static_cast<double>(tree.size() - tree.order_of_key({y[k], std::numeric_limits<std::int64_t>::max()}));
    }
    tree.clear();
    j = m - 1;
    for (std::int64_t i = m - 1; i >= 0; --i) {
        const std::int64_t k = order[i];
        for (; j >= 0 && p[k] - p[order[j]] < 1.0; --j) tree.insert({y[order[j]], order[j]});
        d[k] = static_cast<double>(tree.order_of_key({y[k], -1}));
    }
}
