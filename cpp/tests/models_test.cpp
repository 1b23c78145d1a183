// What reads model files: any bytes as JSON end in a value or an error, and every way to sum up bytes gives the same sum.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "json_text.hpp"
#include "xxh3.hpp"

namespace {

using namespace rankwise;

void require(bool is_true, const char* what) {
    if (is_true) return;
    std::puts(what);
    std::exit(1);
}

// Counts what it is told; a text and a number count their characters, so that every one of them is read.
struct Counting {
    using Value = std::size_t;
    using List = std::size_t;
    using Object = std::pair<std::size_t, std::size_t>;

    Value null() { return 1; }
    Value boolean(bool) { return 1; }
    Value integer(std::string_view digits) { return count(digits); }
    Value number(std::string_view digits) { return count(digits); }
    Value text(std::string_view text) { return count(text); }
    Value escaped(const std::u32string& text) { return 1 + text.size(); }
    List new_list() { return 1; }
    void append(List& items, Value&& item) { items += item; }
    Value list(List&& items) { return items; }
    Object new_object() { return {0, 1}; }
    void add(Object& members, Value&& key, Value&& value) { members.first += 1, members.second += key + value; }
    std::size_t size(const Object& members) { return members.first; }
    Value object(Object&& members) { return members.second; }

    static Value count(std::string_view text) {
        std::size_t n = 1;
        for (const char c : text) n += c != '\0';
        return n;
    }
};

bool is_json(const std::string& text) {
    const std::vector<char> exactly(text.begin(), text.end());  // so that a read beyond the end is seen
    Counting make;
    try {
        return JsonText<Counting>(std::string_view(exactly.data(), exactly.size()), make, 50).read() > 0;
    } catch (const std::invalid_argument&) {
        return false;
    }
}

void test_json() {
    const std::string good = R"({"a": [1, -2.5e-3, "b\u00e9\ud83d\ude00\n", {}, [], null, true, false], "c": {"d": ""}})";
    require(is_json(good), "good JSON was refused");
    for (std::size_t n = 0; n < good.size(); ++n) require(!is_json(good.substr(0, n)), "half a text was read");
    std::mt19937 random(0);
    const std::string characters = "{}[]\",:\\u019.-+eE tfn\x01\x7f\xe9";
    int read = 0;
    for (int i = 0; i < 100'000; ++i) {
        std::string text = good;
        for (int k = random() % 4; k >= 0; --k) {
            const std::size_t at = random() % text.size();
            if (random() % 3 == 0) text.erase(at, random() % 4);
            else text.insert(at, 1, characters[random() % characters.size()]);
        }
        read += is_json(text);
    }
    require(read > 1000 && read < 90'000, "nothing was read, or everything");
    require(is_json(std::string(50, '[') + std::string(50, ']')), "fifty levels were refused");
    require(!is_json(std::string(51, '[') + std::string(51, ']')), "one level too many was read");
    require(!is_json(std::string(1'000'000, '[')), "a million levels were read");
}

void test_checksum() {
    std::mt19937 random(0);
    for (int i = 0; i < 400; ++i) {
        std::vector<unsigned char> content(241 + random() % 6000);
        for (auto& byte : content) byte = static_cast<unsigned char>(random());
        Xxh3 plain(Instructions::plain), wide, pieces;
        plain.update(content.data(), content.size());
        wide.update(content.data(), content.size());
        for (std::size_t at = 0; at < content.size();) {
            const std::size_t n = std::min<std::size_t>(content.size() - at, random() % 2500);
            pieces.update(content.data() + at, n);
            at += n;
        }
        require(plain.digest() == wide.digest(), "instructions change the sum");
        require(plain.digest() == pieces.digest(), "pieces change the sum");
        content[random() % content.size()] ^= 1 << random() % 8;
        Xxh3 other;
        other.update(content.data(), content.size());
        require(plain.digest() != other.digest(), "a changed bit does not change the sum");
    }
}

}  // namespace

int main() {
    test_json();
    test_checksum();
    std::puts("models: ok");
}
