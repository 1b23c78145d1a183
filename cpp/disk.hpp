// Where a matrix on disk lies: its files, and the buffers that parts of them are read into.
//
// Going through the page cache costs a processor two or three times what a product with one vector costs, once the files
// are larger than the memory there is: pages are found, filled, mapped and taken back one by one. Reads that go past it
// (O_DIRECT) cost next to nothing, provided that the buffer consists of huge pages: the disk is then asked for megabytes
// at a time and not for pages. Files that fit in memory are better left to the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace rankwise {

constexpr std::size_t huge_page = std::size_t{1} << 21;
// Direct reads begin and end at multiples of this, in the file as in memory.
constexpr std::int64_t direct_block = 4096;

struct FreeRoom {
    void operator()(char* data) const { ::operator delete(data, std::align_val_t{huge_page}); }
};

// A room of whole huge pages.
using Room = std::unique_ptr<char[], FreeRoom>;

inline Room allocate_room(std::size_t size) {
    size = (size + huge_page - 1) / huge_page * huge_page;
    Room room(static_cast<char*>(::operator new(size, std::align_val_t{huge_page})));
#if defined(MADV_HUGEPAGE)
    madvise(room.get(), size, MADV_HUGEPAGE);  // may be refused, and then costs time only
#endif
    return room;
}

// The files of values and column numbers, open for direct reads; rooms that are not in use are kept for the next product.
class DirectFiles {
public:
    // Takes the descriptors over.
    DirectFiles(int values, int ids) : values_(values), ids_(ids) {}
    DirectFiles(const DirectFiles&) = delete;
    DirectFiles& operator=(const DirectFiles&) = delete;

    ~DirectFiles() {
#if defined(__unix__) || defined(__APPLE__)
        close(values_);
        close(ids_);
#endif
    }

    int values() const { return values_; }
    int ids() const { return ids_; }

    Room take(std::size_t size) {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (size != room_size_) rooms_.clear();
        room_size_ = size;
        if (rooms_.empty()) return allocate_room(size);
        Room room = std::move(rooms_.back());
        rooms_.pop_back();
        return room;
    }

    void give_back(Room room, std::size_t size) {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (size == room_size_) rooms_.push_back(std::move(room));
    }

private:
    int values_, ids_;
    std::mutex mutex_;
    std::size_t room_size_ = 0;
    std::vector<Room> rooms_;
};

struct Disk {
    std::shared_ptr<DirectFiles> files;  // null where the mapping is to be used
    std::int64_t first;                  // the entry of the files that the matrix begins with
    std::int64_t window;                 // entries that are read at a time
};

// Bytes [from, to) of a file, in a room of `capacity` bytes that direct reads can fill; null if they cannot be read so.
inline const char* read_directly([[maybe_unused]] int file, [[maybe_unused]] std::int64_t from,
                                 [[maybe_unused]] std::int64_t to, [[maybe_unused]] char* room,
                                 [[maybe_unused]] std::int64_t capacity) {
#if defined(__unix__) || defined(__APPLE__)
    const std::int64_t begin = from / direct_block * direct_block;
    const std::int64_t wanted = to - begin, whole = (wanted + direct_block - 1) / direct_block * direct_block;
    if (whole > capacity) return nullptr;
    for (std::int64_t done = 0; done < wanted;) {
        const auto got = pread(file, room + done, static_cast<std::size_t>(whole - done), begin + done);
        if (got <= 0) return nullptr;
        done += got;
        if (done < wanted) done = done / direct_block * direct_block;
        if (done == 0) return nullptr;
    }
    return room + (from - begin);
#else
    return nullptr;
#endif
}

}  // namespace rankwise
