// The arrays of pairs inside queries, of folds and of a fused product's plan, as the parts of the module share them.
#pragma once

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
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
        : order_(order), query_start_(query_start), segment_start_(segment_start), query_segment_(query_segment),
          degree_(degree), scale_(scale), row_weight_(row_weight), level_value_(level_value),
          coupling_(by_name(coupling_names, coupling)) {
        require_starts(query_start, queries(), rows(), "query_start must end with the rows");
        require_starts(segment_start, segments(), rows(), "segment_start must end with the rows");
        require_starts(query_segment, queries(), segments(), "query_segment must end with the segments");
        require_length(row_weight, rows(), "row_weight and order disagree");
        require_length(level_value, segments(), "level_value and degree disagree");
        require(level_value || coupling_ != Coupling::relative, "the relative coupling needs a level_value for each segment");
        const int64_t* const row = order.data();
        int64_t least = 0, most = -1;
        for (int64_t p = 0; p < rows(); ++p) {
            least = std::min(least, row[p]);
            most = std::max(most, row[p]);
        }
        require(least == 0, "order has a negative row");
        rows_needed_ = most + 1;
    }

    int64_t rows() const { return length(order_); }
    int64_t queries() const { return length(scale_); }
    int64_t segments() const { return length(degree_); }

    // A matrix may have rows that no block names, and not the other way round.
    void require_rows(int64_t available) const { require(rows_needed_ <= available, "the blocks name rows that are not there"); }
    void require_queries(int64_t first, int64_t last) const {
        require(0 <= first && first <= last && last <= queries(), "queries outside the blocks");
    }

    Blocks view() const {
        Blocks blocks;
        blocks.rows = rows();
        blocks.queries = queries();
        blocks.segments = segments();
        blocks.order = order_.data();
        blocks.query_start = query_start_.data();
        blocks.segment_start = segment_start_.data();
        blocks.query_segment = query_segment_.data();
        blocks.degree = degree_.data();
        blocks.scale = scale_.data();
        blocks.row_weight = pointer(row_weight_);
        blocks.level_value = pointer(level_value_);
        blocks.coupling = coupling_;
        return blocks;
    }

private:
    Ids order_, query_start_, segment_start_, query_segment_;
    Reals degree_, scale_;
    OptionalReals row_weight_, level_value_;
    Coupling coupling_;
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
        Folds folds;
        folds.fold = fold_.data();
        folds.degree = degree_.data();
        folds.scale = scale_.data();
        folds.k = k;
        folds.held_out = held_out_.data();
        return folds;
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
        : chunk_start_(chunk_start), chunk_query_(chunk_query), chunk_large_(chunk_large), chunk_work_(chunk_work),
          large_query_(large_query), large_start_(large_start), colsum_(colsum) {
        const int64_t chunks = length(chunk_query);
        require_length(chunk_start, chunks + 1, "chunk_start and chunk_query disagree");
        require_length(chunk_large, chunks, "chunk_large and chunk_query disagree");
        require_length(chunk_work, chunks + 1, "chunk_work and chunk_query disagree");
        require_length(large_start, length(large_query) + 1, "large_start and large_query disagree");
    }

    Plan view(const BlockArrays& blocks, int64_t columns, int64_t k) const {
        require_starts(chunk_start_, length(chunk_query_), blocks.rows(), "the chunks and the blocks disagree");
        require_length(colsum_, large_start_.data()[length(large_query_)] * columns * k, "colsum disagrees with the plan");
        Plan plan;
        plan.chunks = length(chunk_query_);
        plan.chunk_start = chunk_start_.data();
        plan.chunk_query = chunk_query_.data();
        plan.chunk_large = chunk_large_.data();
        plan.chunk_work = chunk_work_.data();
        plan.large_queries = length(large_query_);
        plan.large_query = large_query_.data();
        plan.large_start = large_start_.data();
        plan.colsum = colsum_.data();
        return plan;
    }

private:
    Ids chunk_start_, chunk_query_, chunk_large_, chunk_work_, large_query_, large_start_;
    Reals colsum_;
};

}  // namespace bindings
