// The arrays of pairs inside queries, of folds and of a fused product's plan, as the parts of the module share them.
#pragma once

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <any>
#include <optional>
#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "fused.hpp"
#include "laplacian.hpp"

namespace bindings {

using rankwise::Blocks;
using rankwise::Coupling;
using rankwise::Folds;
using rankwise::Plan;
using OptionalReals = std::optional<Reals>;

constexpr std::pair<const char*, rankwise::Coupling> coupling_names[] = {
    {"all", Coupling::all},
    {"others", Coupling::others},
    {"relative", Coupling::relative},
};

// The arrays of rankwise::Blocks; holding them keeps the memory alive.
class BlockArrays {
public:
    BlockArrays(Ids order, Ids query_start, Ids segment_start, Ids query_segment, Reals degree, Reals scale,
                const char* coupling, OptionalReals row_weight, OptionalReals level_value)
        : kept_(std::tuple(order, query_start, segment_start, query_segment, degree, scale, row_weight, level_value)) {
        view_.rows = length(order);
        view_.queries = length(scale);
        view_.segments = length(degree);
        view_.order = order.data();
        view_.query_start = query_start.data();
        view_.segment_start = segment_start.data();
        view_.query_segment = query_segment.data();
        view_.degree = degree.data();
        view_.scale = scale.data();
        view_.row_weight = pointer(row_weight);
        view_.level_value = pointer(level_value);
        view_.coupling = by_name(coupling_names, coupling);
        require_starts(query_start, queries(), rows(), "query_start must end with the rows");
        require_starts(segment_start, segments(), rows(), "segment_start must end with the rows");
        require_starts(query_segment, queries(), segments(), "query_segment must end with the segments");
        require_length(row_weight, rows(), "row_weight and order disagree");
        require_length(level_value, segments(), "level_value and degree disagree");
        require(level_value || view_.coupling != Coupling::relative, "the relative coupling needs a level_value for each segment");
        const int64_t* const row = order.data();
        int64_t least = 0, most = -1;
        for (int64_t p = 0; p < rows(); ++p) {
            least = std::min(least, row[p]);
            most = std::max(most, row[p]);
        }
        require(least == 0, "order has a negative row");
        rows_needed_ = most + 1;
    }

    int64_t rows() const { return view_.rows; }
    int64_t queries() const { return view_.queries; }
    int64_t segments() const { return view_.segments; }
    const Blocks& view() const { return view_; }

    // A matrix may have rows that no block names, and not the other way round.
    void require_rows(int64_t available) const { require(rows_needed_ <= available, "the blocks name rows that are not there"); }
    void require_queries(int64_t first, int64_t last) const {
        require(0 <= first && first <= last && last <= queries(), "queries outside the blocks");
    }

private:
    std::any kept_;
    Blocks view_;
    int64_t rows_needed_ = 0;
};

class FoldArrays {
public:
    FoldArrays(Vector<const int32_t> fold, Table<const double> degree, Table<const double> scale, Vector<double> held_out)
        : fold_(fold), degree_(degree), scale_(scale), held_out_(held_out) {
        require_length(held_out, length(fold), "held_out and fold disagree");
        require(length(degree, 1) == length(scale, 1), "degree and scale disagree");
    }

    Folds view(const BlockArrays& blocks, int64_t k) const {
        require_shape(degree_, blocks.segments(), k, "the folds' degree disagrees with the blocks, or with the vectors");
        require_shape(scale_, blocks.queries(), k, "the folds' scale disagrees with the blocks, or with the vectors");
        blocks.require_rows(length(fold_));
        return {fold_.data(), degree_.data(), scale_.data(), k, held_out_.data()};
    }

private:
    Vector<const int32_t> fold_;
    Table<const double> degree_, scale_;
    Vector<double> held_out_;
};

class PlanArrays {
public:
    PlanArrays(Ids chunk_start, Ids chunk_query, Ids chunk_large, Ids chunk_work, Ids large_query, Ids large_start,
               Reals colsum)
        : kept_(std::tuple(chunk_start, chunk_query, chunk_large, chunk_work, large_query, large_start)), colsum_(colsum) {
        view_.chunks = length(chunk_query);
        view_.chunk_start = chunk_start.data();
        view_.chunk_query = chunk_query.data();
        view_.chunk_large = chunk_large.data();
        view_.chunk_work = chunk_work.data();
        view_.large_queries = length(large_query);
        view_.large_query = large_query.data();
        view_.large_start = large_start.data();
        view_.colsum = colsum.data();
        require(length(chunk_start) > 0, "no chunks");
        require_starts(chunk_start, view_.chunks, chunk_start.data()[length(chunk_start) - 1], "chunk_start and chunk_query disagree");
        require_length(chunk_large, view_.chunks, "chunk_large and chunk_query disagree");
        require_length(chunk_work, view_.chunks + 1, "chunk_work and chunk_query disagree");
        require_length(large_start, view_.large_queries + 1, "large_start and large_query disagree");
    }

    const Plan& view(const BlockArrays& blocks, int64_t columns, int64_t k) const {
        require(view_.chunk_start[view_.chunks] == blocks.rows(), "the chunks and the blocks disagree");
        require_length(colsum_, view_.large_start[view_.large_queries] * columns * k, "colsum disagrees with the plan");
        return view_;
    }

private:
    std::any kept_;
    Reals colsum_;
    Plan view_;
};

}  // namespace bindings
