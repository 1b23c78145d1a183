// A matrix is walked in windows: in memory all of it is one, on disk each window is fetched while the last is worked on.
//
// What is walked are units (rows, chunks, queries), each of which needs some rows of the matrix. A window is a run of
// units together with a view of the matrix that holds their rows: in buffers that a thread fills with direct reads, or
// in the mapping itself, which the system is asked to fill ahead of time.
#pragma once

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "disk.hpp"

namespace rankwise {

struct RowRange {
    int64_t first, last;
};

// The rows that the places [from, to) of an order touch, and all between them.
inline RowRange rows_among(const int64_t* order, int64_t from, int64_t to) {
    if (from == to) return {0, 0};
    const auto [least, most] = std::minmax_element(order + from, order + to);
    return {*least, *most + 1};
}

namespace detail {

// Advice on the whole pages of [from, to): outwards when asking, inwards when letting go.
inline void advise([[maybe_unused]] const void* from, [[maybe_unused]] const void* to, [[maybe_unused]] bool wanted) {
#if defined(__unix__) || defined(__APPLE__)
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto first = reinterpret_cast<std::uintptr_t>(from), last = reinterpret_cast<std::uintptr_t>(to);
    first = (wanted ? first : first + page - 1) / page * page;
    if (!wanted) last = last / page * page;
    // Advice may be refused, and then costs time only.
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, wanted ? MADV_WILLNEED : MADV_DONTNEED);
#endif
}

// Units [first, last), whose entries of the matrix lie in [from, to).
struct Window {
    int64_t first, last, from, to;
    RowRange rows;
};

// Entries that the system is asked for at once: more than that would drive out what was asked for before.
constexpr int64_t most_asked_for = 1 << 24;

// Asks for the entries of a window, or lets them go.
template <typename Matrix>
void advise_on(const Matrix& X, const Window& window, bool wanted) {
    const int64_t to = wanted ? std::min(window.to, window.from + most_asked_for) : window.to;
    advise(X.values + window.from, X.values + to, wanted);
    advise(X.ids + window.from, X.ids + to, wanted);
}

// Cuts units into windows, one after the other.
template <typename Matrix, typename RowsOf>
class WindowCutter {
public:
    WindowCutter(const Matrix& X, int64_t first, int64_t last, const RowsOf& rows_of)
        : X_(X), next_(first), last_(last), rows_of_(rows_of) {}

    // As many units as fit, and at least one.
    std::optional<Window> next() {
        if (next_ == last_) return std::nullopt;
        Window window{next_, next_, 0, 0, {0, 0}};
        for (; next_ < last_; window.last = ++next_) {
            const RowRange own = rows_of_(next_);
            if (own.first == own.last) continue;
            RowRange rows = window.rows;
            rows = rows.first == rows.last ? own : RowRange{std::min(rows.first, own.first), std::max(rows.last, own.last)};
            const auto from = static_cast<int64_t>(X_.start[rows.first]), to = static_cast<int64_t>(X_.start[rows.last]);
            if (window.last > window.first && to - from > X_.disk->window) break;
            window.from = from, window.to = to, window.rows = rows;
        }
        return window;
    }

private:
    const Matrix& X_;
    int64_t next_, last_;
    const RowsOf& rows_of_;
};

// A thread that reads windows into rooms, a few ahead of whoever works on them.
template <typename Matrix, typename Cutter>
class DirectReader {
public:
    using Value = typename Matrix::value_type;
    using Column = typename Matrix::column_type;

    DirectReader(const Matrix& X, Cutter& cutter)
        : X_(X), cutter_(cutter), values_size_(room_for(sizeof(Value))), ids_size_(room_for(sizeof(Column))) {
        for (auto& slot : slots_) slot.room = Room(values_size_ + ids_size_);
        thread_ = std::thread([this] { read_all(); });
    }

    DirectReader(const DirectReader&) = delete;
    DirectReader& operator=(const DirectReader&) = delete;

    ~DirectReader() {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            stopped_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    // Calls work(view, first unit, last unit) for each window.
    template <typename Work>
    void for_each_window(Work&& work) {
        for (int64_t number = 0;; ++number) {
            std::unique_lock<std::mutex> guard(mutex_);
            changed_.wait(guard, [&] { return read_ > number || ended_; });
            if (read_ <= number) return;
            guard.unlock();
            const Slot& slot = slots_[static_cast<std::size_t>(number % ahead)];
            work(slot.view, slot.window.first, slot.window.last);
            if (slot.is_mapped) advise_on(X_, slot.window, false);
            guard.lock();
            used_ = number + 1;
            guard.unlock();
            changed_.notify_all();
        }
    }

private:
    // One is worked on while another is read and a third waits, so that neither side often waits for the other.
    static constexpr int64_t ahead = 3;

    struct Slot {
        Room room;
        Window window;
        Matrix view;
        bool is_mapped;
    };

    DirectFiles& files() const { return *X_.disk->files; }

    // Room for a window that begins and ends anywhere in a block; whole huge pages, for the next array begins there.
    std::size_t room_for(std::size_t item) const {
        return Room::whole_pages(static_cast<std::size_t>(X_.disk->window) * item + 2 * direct_block);
    }

    void read_all() {
        for (int64_t number = 0;; ++number) {
            {
                std::unique_lock<std::mutex> guard(mutex_);
                changed_.wait(guard, [&] { return stopped_ || number < used_ + ahead; });
                if (stopped_) return;
            }
            const auto window = cutter_.next();
            if (window) read(*window, slots_[static_cast<std::size_t>(number % ahead)]);
            {
                const std::lock_guard<std::mutex> guard(mutex_);
                ended_ = !window;
                if (window) read_ = number + 1;
            }
            changed_.notify_all();
            if (!window) return;
        }
    }

    // What is too large for a room, or cannot be read past the cache, is left to the mapping.
    void read(const Window& window, Slot& slot) const {
        slot.window = window;
        slot.view = X_;
        const char* values = read_array(files().values(), files().values_begin, sizeof(Value), window, slot.room.data(), values_size_);
        const char* ids = nullptr;
        if (values)
            ids = read_array(files().ids(), files().ids_begin, sizeof(Column), window, slot.room.data() + values_size_,
                             ids_size_);
        slot.is_mapped = !ids;
        if (slot.is_mapped) {
            advise_on(X_, window, true);
            return;
        }
        slot.view.values = reinterpret_cast<const Value*>(values);
        slot.view.ids = reinterpret_cast<const Column*>(ids);
        slot.view.base = window.from;
        slot.view.rows = window.rows.last;
    }

    const char* read_array(int file, int64_t begin, std::size_t item, const Window& window, char* room,
                           std::size_t capacity) const {
        const auto size = static_cast<int64_t>(item);
        return read_directly(file, begin + (X_.disk->first + window.from) * size,
                             begin + (X_.disk->first + window.to) * size, room, static_cast<int64_t>(capacity));
    }

    const Matrix& X_;
    Cutter& cutter_;
    std::size_t values_size_, ids_size_;
    std::array<Slot, ahead> slots_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int64_t read_ = 0, used_ = 0;  // windows
    bool ended_ = false, stopped_ = false;
    std::thread thread_;
};

// Faulting pages in one by one leaves the disk idle most of the time: the system reads ahead 128 KiB by itself, and two
// arrays walked by several threads are too many streams for that to suffice. What lies behind is let go of, so that the
// pages that the system takes back first are those that are needed last.
template <typename Matrix, typename Cutter, typename Work>
void walk_mapping(const Matrix& X, Cutter& cutter, Work&& work) {
    std::optional<Window> window = cutter.next();
    if (window) advise_on(X, *window, true);
    while (window) {
        const std::optional<Window> next = cutter.next();
        if (next) advise_on(X, *next, true);
        work(X, window->first, window->last);
        advise_on(X, *window, false);
        window = next;
    }
}

}  // namespace detail

// Calls work(view, a, b) for runs [a, b) of the units [first, last), in order; rows_of(unit) tells the rows it needs.
template <typename Matrix, typename RowsOf, typename Work>
void walk_units(const Matrix& X, int64_t first, int64_t last, const RowsOf& rows_of, Work&& work) {
    if (!X.disk) {
        work(X, first, last);
        return;
    }
    using Cutter = detail::WindowCutter<Matrix, RowsOf>;
    Cutter cutter(X, first, last, rows_of);
    if (X.disk->files) {
        std::optional<detail::DirectReader<Matrix, Cutter>> reader;
        try {
            reader.emplace(X, cutter);
        } catch (const std::bad_alloc&) {
        } catch (const std::system_error&) {
        }  // without room or a thread for it there is still the mapping
        if (reader) {
            reader->for_each_window(work);
            return;
        }
    }
    detail::walk_mapping(X, cutter, work);
}

}  // namespace rankwise
