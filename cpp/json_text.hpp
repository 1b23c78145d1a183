// JSON, read strictly: ASCII, no key twice in an object, nothing nested deeper than a limit, no NaN and no Infinity.
//
// What values are made of is told by a `Make`, which has the types `Value`, `List` and `Object` and
//
//     Value null(), boolean(bool), integer(std::string_view), number(std::string_view), text(std::string_view),
//           escaped(const std::u32string&), list(List&&), object(Object&&);
//     List new_list();      void append(List&, Value&&);
//     Object new_object();  void add(Object&, Value&& key, Value&&);  std::size_t size(const Object&);
//
// A number is handed over as its digits once they are known to be one.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace rankwise {

template <typename Make>
class JsonText {
public:
    using Value = typename Make::Value;

    JsonText(std::string_view text, Make& make, int deepest)
        : at_(text.data()), begin_(text.data()), end_(text.data() + text.size()), make_(make), left_(deepest) {}

    Value read() {
        Value found = value();
        skip_spaces();
        if (at_ != end_) fail("something follows the value");
        return found;
    }

private:
    [[noreturn]] void fail(const char* what) const {
        throw std::invalid_argument(std::string(what) + " at byte " + std::to_string(at_ - begin_));
    }

    // Neither a control character nor outside of ASCII.
    static bool is_plain(char c) { return static_cast<unsigned char>(c - 0x20) < 0x60; }

    char peek() const { return at_ < end_ ? *at_ : '\0'; }

    void skip_spaces() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }

    bool take(char wanted) {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }

    void expect(std::string_view word) {
        if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, word.size()) != word)
            fail("no value begins");
        at_ += word.size();
    }

    Value value() {
        skip_spaces();
        switch (peek()) {
            case '{': return object();
            case '[': return list();
            case '"': return string();
            case 't': expect("true"); return make_.boolean(true);
            case 'f': expect("false"); return make_.boolean(false);
            case 'n': expect("null"); return make_.null();
            default: return number();
        }
    }

    void enter() {
        if (left_-- == 0) fail("values are nested too deep");
        ++at_;
        skip_spaces();
    }

    Value list() {
        enter();
        auto items = make_.new_list();
        if (!take(']')) {
            do make_.append(items, value());
            while (goes_on(']'));
        }
        ++left_;
        return make_.list(std::move(items));
    }

    Value object() {
        enter();
        auto members = make_.new_object();
        std::size_t n = 0;
        if (!take('}')) {
            do {
                skip_spaces();
                if (peek() != '"') fail("a key is missing");
                Value key = string();
                skip_spaces();
                if (!take(':')) fail("a colon is missing");
                make_.add(members, std::move(key), value());
                ++n;
            } while (goes_on('}'));
        }
        if (make_.size(members) != n) fail("a key comes twice");
        ++left_;
        return make_.object(std::move(members));
    }

    bool goes_on(char close) {
        skip_spaces();
        if (take(',')) return true;
        if (!take(close)) fail("a comma is missing");
        return false;
    }

    Value string() {
        const char* const start = ++at_;
        while (at_ < end_ && *at_ != '"' && *at_ != '\\') {
            if (!is_plain(*at_)) fail("a text holds what it must not");
            ++at_;
        }
        const std::string_view plain(start, static_cast<std::size_t>(at_ - start));
        if (take('"')) return make_.text(plain);
        std::u32string text(plain.begin(), plain.end());
        while (!take('"')) {
            if (at_ == end_) fail("a text does not end");
            if (!is_plain(*at_)) fail("a text holds what it must not");
            text.push_back(take('\\') ? escape() : static_cast<unsigned char>(*at_++));
        }
        return make_.escaped(text);
    }

    char32_t escape() {
        const char kind = peek();
        if (at_ < end_) ++at_;
        switch (kind) {
            case '"': case '\\': case '/': return static_cast<unsigned char>(kind);
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            case 'u': break;
            default: fail("a backslash stands before what it must not");
        }
        const char32_t first = code_unit();
        if (first < 0xD800 || first > 0xDBFF || end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return first;
        const char* const here = at_;
        at_ += 2;
        const char32_t second = code_unit();
        if (second >= 0xDC00 && second <= 0xDFFF) return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        at_ = here;  // half a pair, which stands for itself
        return first;
    }

    char32_t code_unit() {
        if (end_ - at_ < 4) fail("four digits are missing");
        char32_t unit = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            const char c = *at_, lower = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9') unit = unit * 16 + static_cast<char32_t>(c - '0');
            else if (lower >= 'a' && lower <= 'f') unit = unit * 16 + static_cast<char32_t>(lower - 'a' + 10);
            else fail("four digits are missing");
        }
        return unit;
    }

    bool take_digits() {
        const char* const start = at_;
        while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
        return at_ != start;
    }

    Value number() {
        const char* const start = at_;
        bool is_whole = true;
        take('-');
        if (!take('0') && !take_digits()) fail("no value begins");
        if (take('.')) {
            is_whole = false;
            if (!take_digits()) fail("digits are missing");
        }
        if (take('e') || take('E')) {
            is_whole = false;
            if (!take('+')) take('-');
            if (!take_digits()) fail("digits are missing");
        }
        const std::string_view digits(start, static_cast<std::size_t>(at_ - start));
        return is_whole ? make_.integer(digits) : make_.number(digits);
    }

    const char* at_;
    const char* const begin_;
    const char* const end_;
    Make& make_;
    int left_;
};

}  // namespace rankwise
