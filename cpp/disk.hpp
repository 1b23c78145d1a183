// Where a matrix on disk lies: its files, and the buffers that parts of them are read into.
//
// Going through the page cache costs a processor two or three times what a product with one vector costs, once the files
// are larger than the memory there is: pages are found, filled, mapped and taken back one by one. Reads that go past it
// (O_DIRECT) cost next to nothing, provided that the buffer consists of huge pages: the disk is then asked for megabytes
// at a time and not for pages. Files that fit in memory are better left to the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "buffer.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace rankwise {

// Direct reads begin and end at multiples of this, in the file as in memory.
constexpr int64_t direct_block = 4096;

// Memory of whole huge pages, which goes back to the system at once.
class Room {
public:
    Room() = default;
    explicit Room(std::size_t size) : size_(whole_pages(size)) {
#if defined(__unix__) || defined(__APPLE__)
        // A page more than is needed, for it may begin anywhere; what is never touched takes no memory.
        mapped_ = mmap(nullptr, size_ + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped_ == MAP_FAILED) throw std::bad_alloc();
        const auto address = reinterpret_cast<std::uintptr_t>(mapped_);
        data_ = reinterpret_cast<char*>((address + huge_page - 1) / huge_page * huge_page);
        ask_for_huge_pages(data_, size_);
#else
        throw std::bad_alloc();
#endif
    }
    Room(const Room&) = delete;
    Room& operator=(Room&& other) noexcept {
        std::swap(mapped_, other.mapped_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Room() {
#if defined(__unix__) || defined(__APPLE__)
        if (data_) munmap(mapped_, size_ + huge_page);
#endif
    }

    char* data() const { return data_; }

    static std::size_t whole_pages(std::size_t size) { return (size + huge_page - 1) / huge_page * huge_page; }

private:
    void* mapped_ = nullptr;
    char* data_ = nullptr;
    std::size_t size_ = 0;
};

// The files of values and column numbers, open for direct reads, and where their arrays begin.
class DirectFiles {
public:
    // Takes the descriptors over.
    DirectFiles(int values, int ids, int64_t values_begin, int64_t ids_begin)
        : values_begin(values_begin), ids_begin(ids_begin), values_(values), ids_(ids) {}
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
    const int64_t values_begin, ids_begin;

private:
    int values_, ids_;
};

struct Disk {
    std::shared_ptr<DirectFiles> files;  // null where the mapping is to be used
    int64_t first;                  // the entry of the files that the matrix begins with
    int64_t window;                 // entries that are read at a time
};

// Bytes [from, to) of a file, in a room of `capacity` bytes that direct reads can fill; null if they cannot be read so.
inline const char* read_directly([[maybe_unused]] int file, [[maybe_unused]] int64_t from,
                                 [[maybe_unused]] int64_t to, [[maybe_unused]] char* room,
                                 [[maybe_unused]] int64_t capacity) {
#if defined(__unix__) || defined(__APPLE__)
    const int64_t begin = from / direct_block * direct_block;
    const int64_t wanted = to - begin, whole = (wanted + direct_block - 1) / direct_block * direct_block;
    if (whole > capacity) return nullptr;
    for (int64_t done = 0; done < wanted;) {
        const auto got = pread(file, room + done, static_cast<std::size_t>(whole - done), begin + done);
        if (got <= 0) return nullptr;
        if (done + got >= wanted) break;
        // A read that was cut short goes on where a block begins; one without a whole block has met the file's end.
        if (got < direct_block) return nullptr;
        done += got / direct_block * direct_block;
    }
    return room + (from - begin);
#else
    return nullptr;
#endif
}

}  // namespace rankwise
