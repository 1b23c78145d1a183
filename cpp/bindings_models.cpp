// The bindings of model files: their checksum, and their header as Python's values.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "bindings.hpp"
#include "json_text.hpp"
#include "xxh3.hpp"

using namespace bindings;

namespace {

constexpr std::size_t n_checksum = 8;
constexpr std::size_t soon = 1 << 20;  // bytes that are summed up before anybody would miss the lock of the interpreter

// The bytes of an object, where it has them in one piece. Half a microsecond less than an array of nanobind's, which a small
// model would notice.
class Bytes {
public:
    explicit Bytes(nb::handle object, int flags = PyBUF_ND) {
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
            PyErr_Clear();  // as any other argument of a wrong kind
            throw nb::type_error("content is no row of bytes, or cannot be written to");
        }
        if (view_.itemsize != 1 || view_.ndim != 1) {
            PyBuffer_Release(&view_);
            throw nb::type_error("content is no row of bytes");
        }
    }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    ~Bytes() { PyBuffer_Release(&view_); }

    unsigned char* data() const { return static_cast<unsigned char*>(view_.buf); }
    std::size_t size() const { return static_cast<std::size_t>(view_.len); }

private:
    Py_buffer view_;
};

// Whether bytes end in the checksum of those before it; a `copy` gets all of them.
bool is_whole(const Bytes& content, unsigned char* copy = nullptr) {
    require(content.size() > n_checksum, "content has no room for its checksum");
    const std::size_t size = content.size() - n_checksum;
    const unsigned char* const end = content.data() + size;
    const auto agrees = [&] {
        rankwise::Xxh3 sum;
        sum.update(content.data(), size, copy);
        if (copy != nullptr) std::memcpy(copy + size, end, n_checksum);
        return sum.digest() == rankwise::xxh3::word(end);
    };
    return size < soon ? agrees() : without_gil(agrees);
}

// Python's texts for names that come again and again, in one file and in the next: making and hashing them was most of what
// reading a header took. A name takes the place of another with the same slot, so that no file can fill the memory. Python's
// lock protects it.
class Names {
public:
    static constexpr std::size_t longest = 30;

    nb::object operator()(std::string_view name) {
        Slot& slot = slots_[hash(name)];
        if (slot.size != name.size() || std::memcmp(slot.text, name.data(), name.size()) != 0 || !slot.value) {
            slot.value = nb::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
            if (!slot.value) throw nb::python_error();
            slot.size = static_cast<unsigned char>(name.size());
            std::memcpy(slot.text, name.data(), name.size());
        }
        return slot.value;
    }

private:
    static constexpr std::size_t n_slots = 1024;  // what ten bits of a hash tell apart

    struct Slot {
        nb::object value;
        unsigned char size = 0;
        char text[longest];
    };

    // Of the ends and the length: names that differ in the middle alone take turns in their slot.
    static uint64_t hash(std::string_view name) {
        uint64_t front = 0, back = 0;
        const std::size_t n = std::min<std::size_t>(name.size(), 8);
        std::memcpy(&front, name.data(), n);
        std::memcpy(&back, name.data() + name.size() - n, n);
        const uint64_t mixed = (front ^ (back << 23 | back >> 41)) * 0x9E3779B97F4A7C15 + name.size();
        return (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 >> 54;
    }

    Slot slots_[n_slots];
};

// Makes Python's values, as the module json does; {"$array": name} becomes the array of that name, where there is one.
struct PythonValues {
    nb::dict arrays;

    using Value = nb::object;
    using List = nb::list;
    using Object = nb::dict;

    static Value made(PyObject* value) {
        if (value == nullptr) throw nb::python_error();
        return nb::steal(value);
    }

    Value null() { return nb::none(); }
    Value boolean(bool value) { return nb::bool_(value); }
    Value text(std::string_view text) {
        // Never destroyed: Python may have ended by then.
        static Names& names = *new Names;
        if (text.size() <= Names::longest) return names(text);
        return made(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
    }
    Value escaped(const std::u32string& text) {
        const uint16_t one = 1;
        int order = *reinterpret_cast<const uint8_t*>(&one) == 1 ? -1 : 1;
        return made(PyUnicode_DecodeUTF32(reinterpret_cast<const char*>(text.data()),
                                          static_cast<Py_ssize_t>(4 * text.size()), "surrogatepass", &order));
    }
    Value integer(std::string_view digits) {
        if (digits.size() <= 18) {
            long long value = 0;
            for (const char c : digits)
                if (c != '-') value = value * 10 + (c - '0');
            return made(PyLong_FromLongLong(digits[0] == '-' ? -value : value));
        }
        return made(PyLong_FromString(std::string(digits).c_str(), nullptr, 10));
    }
    Value number(std::string_view digits) {
        const double value = PyOS_string_to_double(std::string(digits).c_str(), nullptr, nullptr);
        if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
        if (!std::isfinite(value)) throw std::invalid_argument("a number is not finite");
        return made(PyFloat_FromDouble(value));
    }
    List new_list() { return {}; }
    void append(List& items, Value&& item) {
        if (PyList_Append(items.ptr(), item.ptr()) != 0) throw nb::python_error();
    }
    Value list(List&& items) { return std::move(items); }
    Object new_object() { return {}; }
    void add(Object& members, Value&& key, Value&& value) {
        if (PyDict_SetItem(members.ptr(), key.ptr(), value.ptr()) != 0) throw nb::python_error();
    }
    std::size_t size(const Object& members) { return nb::len(members); }
    Value object(Object&& members) {
        static PyObject* const array_key = PyUnicode_InternFromString("$array");
        if (arrays.size() > 0 && members.size() == 1)
            if (PyObject* name = PyDict_GetItemWithError(members.ptr(), array_key))
                if (PyObject* array = PyDict_GetItemWithError(arrays.ptr(), name)) return nb::borrow(array);
        if (PyErr_Occurred()) PyErr_Clear();  // a name that cannot be one
        return std::move(members);
    }
};

}  // namespace

void bind_models(nb::module_& m) {
    m.def(
        "read_json",
        [](nb::handle object, std::size_t begin, std::size_t end, int deepest, nb::dict arrays) {
            const Bytes content(object);
            require(begin <= end && end <= content.size(), "begin and end are no part of content");
            require(deepest >= 0, "deepest is negative");
            PythonValues make{arrays};
            const std::string_view text(reinterpret_cast<const char*>(content.data()) + begin, end - begin);
            return rankwise::JsonText<PythonValues>(text, make, deepest).read();
        },
        "content"_a, "begin"_a, "end"_a, "deepest"_a, "arrays"_a);

    using rankwise::Xxh3;
    nb::class_<Xxh3>(m, "Xxh3")
        .def(nb::init<>())
        .def(
            "update",
            [](Xxh3& self, Vector<const uint8_t> content) {
                without_gil([&] { self.update(content.data(), content.size()); });
            },
            "content"_a.noconvert())
        .def_prop_ro("digest", &Xxh3::digest);

    // How far into some bytes a multiple of 64 is: a checksum is computed and a copy made there in four fifths of the time.
    m.def(
        "aligned",
        [](nb::handle content) {
            const Bytes bytes(content);
            return static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(bytes.data())) % rankwise::xxh3::stripe;
        },
        "content"_a);
    m.def("is_whole", [](nb::handle content) { return is_whole(Bytes(content)); }, "content"_a);
    m.def(
        "copy_whole",
        [](nb::handle content, nb::handle out) {
            const Bytes source(content), copy(out, PyBUF_ND | PyBUF_WRITABLE);
            require(copy.size() == source.size(), "out has another length than content");
            return is_whole(source, copy.data());
        },
        "content"_a, "out"_a);
}
