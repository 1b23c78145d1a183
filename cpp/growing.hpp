// An array that grows at its end. realloc moves pages instead of copying them once an array is large, and what was not
// written yet takes no memory: std::vector has neither.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace rankwise {

template <typename T>
class Growing {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Growing() = default;
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    Growing(Growing&& other) noexcept { swap(other); }
    Growing& operator=(Growing&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Growing() { std::free(data_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    int64_t size() const { return size_; }
    T& operator[](int64_t i) { return data_[i]; }
    const T& operator[](int64_t i) const { return data_[i]; }
    T& back() { return data_[size_ - 1]; }
    const T& back() const { return data_[size_ - 1]; }

    // The contents of what is new are not set.
    void resize(int64_t size) {
        if (size > capacity_) reallocate(std::max(size, capacity_ + capacity_ / 2));
        size_ = size;
    }

    void push(T value) {
        resize(size_ + 1);
        back() = value;
    }

    void append(const T* values, int64_t n) {
        if (n == 0) return;
        resize(size_ + n);
        std::memcpy(data_ + size_ - n, values, static_cast<std::size_t>(n) * sizeof(T));
    }

    // The caller frees it; null is never returned.
    T* release() {
        reallocate(std::max<int64_t>(size_, 1));
        size_ = capacity_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    void swap(Growing& other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    void reallocate(int64_t capacity) {
        void* moved = std::realloc(data_, static_cast<std::size_t>(capacity) * sizeof(T));
        if (!moved) throw std::bad_alloc();
        data_ = static_cast<T*>(moved);
        capacity_ = capacity;
    }

    T* data_ = nullptr;
    int64_t size_ = 0, capacity_ = 0;
};

}  // namespace rankwise
