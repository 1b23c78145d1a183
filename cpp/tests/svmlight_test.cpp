// Reading and writing text against strtod and itself, on valid and on damaged lines; meant to run under the sanitizers.
#include <cmath>
#include <fstream>
#include <random>

#include "svmlight_checks.hpp"

using namespace rankwise::text;

namespace {

std::string random_number(std::mt19937& random) {
    std::uniform_int_distribution<int> digit('0', '9'), length(1, 22), exponent(-40, 30), kind(0, 5);
    std::string text = kind(random) == 0 ? "-" : "";
    for (int n = length(random) % (kind(random) ? 3 : 22) + 1; n > 0; --n) text += static_cast<char>(digit(random));
    if (kind(random)) {
        text += '.';
        for (int n = length(random); n > 0; --n) text += static_cast<char>(digit(random));
    }
    if (kind(random) == 0) text += "e" + std::to_string(exponent(random));
    return text;
}

void numbers_are_those_of_the_library(std::mt19937& random) {
    for (int i = 0; i < 20000; ++i) {
        const std::string text = random_number(random) + std::string(16, '\n');
        const char* p = text.data();
        double parsed;
        checks::expect(parse_number(p, parsed) && *p == '\n', "a number is refused");
        checks::expect(parsed == std::strtod(text.c_str(), nullptr), "a double is rounded otherwise");
        p = text.data();
        float rounded;
        checks::expect(parse_number(p, rounded) && rounded == std::strtof(text.c_str(), nullptr), "a float is rounded otherwise");
    }
}

std::string random_text(std::mt19937& random, bool with_ids, int rows) {
    std::uniform_int_distribution<int> few(0, 4), column(1, 5);
    std::string text;
    for (int i = 0; i < rows; ++i) {
        if (few(random) == 0) text += "# a comment 1:2\n\n";
        text += random_number(random);
        if (with_ids) text += " qid:" + std::to_string(i / 5);
        for (int j = few(random), at = 0; j > 0; --j) text += " " + std::to_string(at += column(random)) + ":" + random_number(random);
        text += few(random) ? "\n" : " # doc\r\n";
    }
    return text;
}

void whole_files_survive(std::mt19937& random) {
    for (int round = 0; round < 20; ++round) {
        const std::string text = random_text(random, round % 2 == 0, round < 16 ? 50 : 30000);
        for (const int n_threads : {1, 3}) {
            const Format format{1, false, INT32_MAX, Missing::error};
            checks::expect(checks::check<double>(text, format, text.size() / 2, n_threads) == Problem::none, "good text is refused");
            checks::check<float>(text, format, text.size() / 3, n_threads);
        }
    }
}

void damaged_files_are_survived(std::mt19937& random) {
    const std::string alphabet = " \t\n\r:#.-+eEqidnaNUL0123456789\xff";
    std::uniform_int_distribution<std::size_t> letter(0, alphabet.size() - 1);
    for (int round = 0; round < 3000; ++round) {
        std::string text = random_text(random, round % 2 == 0, 6);
        std::uniform_int_distribution<std::size_t> place(0, text.size() - 1);
        for (int n = round % 4; n >= 0; --n) text[place(random)] = alphabet[letter(random)];
        const Format format{round % 3 == 0 ? 0 : 1, round % 5 == 0, INT32_MAX - 1, static_cast<Missing>(round % 3)};
        checks::check<double>(text, format, place(random), 1 + round % 3);
        checks::check<float>(text, format, place(random), 1);
    }
}

// What the fuzzer found worth keeping, where the tests run from the root of the project.
void found_inputs_are_survived() {
    std::ifstream lines("tests/data/svmlight_corpus.txt");
    for (std::string line; std::getline(lines, line);) {
        std::string input;
        for (std::size_t i = 0; i + 1 < line.size(); i += 2) input += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
        checks::check_input(reinterpret_cast<const unsigned char*>(input.data()), input.size());
    }
}

}  // namespace

int main() {
    std::mt19937 random(1);
    numbers_are_those_of_the_library(random);
    whole_files_survive(random);
    damaged_files_are_survived(random);
    found_inputs_are_survived();
    std::puts("svmlight text: fine");
}
