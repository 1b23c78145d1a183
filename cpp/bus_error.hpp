// Files that are mapped, and what happens when somebody makes one shorter: the system ends whoever reads beyond its new end
// by SIGBUS, without a word. The handler says which file it was, and then leaves the signal to whoever had it before.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <signal.h>
#include <unistd.h>
#define RANKWISE_HAS_SIGBUS 1
#endif

namespace rankwise {

class MappedFiles {
public:
    static MappedFiles& all() {
        static MappedFiles files;
        return files;
    }

    // Returns a number for `forget`, or -1 where there are too many.
    int watch(const void* begin, std::size_t size, const char* name) {
        install();
        for (int slot = 0; slot < capacity; ++slot) {
            bool is_free = false;
            if (!files_[slot].is_taken.compare_exchange_strong(is_free, true)) continue;
            std::strncpy(files_[slot].name, name, sizeof files_[slot].name - 1);
            files_[slot].size = size;
            files_[slot].begin.store(static_cast<const char*>(begin), std::memory_order_release);
            return slot;
        }
        return -1;
    }

    void forget(int slot) {
        if (slot < 0 || slot >= capacity) return;
        files_[slot].begin.store(nullptr, std::memory_order_release);
        files_[slot].is_taken.store(false, std::memory_order_release);
    }

private:
    static constexpr int capacity = 4096;

    struct File {
        std::atomic<bool> is_taken{false};
        std::atomic<const char*> begin{nullptr};
        std::size_t size = 0;
        char name[512] = {};
    };

    File files_[capacity];
    std::atomic<bool> is_installed_{false};

#ifdef RANKWISE_HAS_SIGBUS
    struct sigaction before_ = {};

    void install() {
        if (is_installed_.exchange(true)) return;
        struct sigaction action = {};
        action.sa_sigaction = [](int, siginfo_t* info, void*) { all().tell(static_cast<const char*>(info->si_addr)); };
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &before_);
    }

    // Only what may be called inside a signal handler.
    void tell(const char* address) {
        for (const File& file : files_) {
            const char* begin = file.begin.load(std::memory_order_acquire);
            if (begin == nullptr || address < begin || address >= begin + file.size) continue;
            say("rankwise: error: ");
            say(file.name);
            say(" became shorter, or could not be read, while it was in use; the process ends.\n"
                "Hint: replace stores by save_store or `rankwise convert`, which leave the old one to those who use it.\n");
            break;
        }
        sigaction(SIGBUS, &before_, nullptr);  // the same read fails again
    }

    static void say(const char* text) {
        if (write(2, text, std::strlen(text)) < 0) return;
    }
#else
    void install() {}
#endif
};

}  // namespace rankwise
