#include "npy.hpp"

#include "input_error.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

namespace tool {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::uint64_t most_elements = std::uint64_t{1} << 40;

[[noreturn]] void fail(const std::string& what) { throw InputError("not a .npy file that can be used: " + what); }

// What follows 'key': in the header, a Python dict.
std::string_view entry(std::string_view header, const std::string& key) {
  const std::size_t at = header.find("'" + key + "'");
  if (at == std::string_view::npos) fail("its header has no '" + key + "'");
  std::string_view rest = header.substr(at + key.size() + 2);
  const std::size_t colon = rest.find_first_not_of(' ');
  if (colon == std::string_view::npos || rest[colon] != ':') fail("its header has no value for '" + key + "'");
  rest.remove_prefix(colon + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<std::uint64_t> read_shape(std::string_view text) {
  const std::size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos) fail("its shape is no tuple");
  text = text.substr(1, end - 1);
  std::vector<std::uint64_t> shape;
  while (!text.empty()) {
    const std::size_t skip = text.find_first_not_of(" ,");
    if (skip == std::string_view::npos) break;
    text.remove_prefix(skip);
    std::uint64_t extent = 0;
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (problem != std::errc()) fail("its shape has something that is no extent");
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  }
  return shape;
}

std::uint64_t count_of(const std::vector<std::uint64_t>& shape) {
  std::uint64_t count = 1;
  for (std::uint64_t extent : shape) {
    if (extent != 0 && count > most_elements / extent) fail("it has more than 2^40 elements");
    count *= extent;
  }
  return count;
}

// Elements as the file has them.
template <class T>
std::vector<T> elements(std::string_view data, std::uint64_t count) {
  if (data.size() / sizeof(T) != count || data.size() % sizeof(T) != 0) {
    fail("it has " + std::to_string(data.size()) + " bytes of data where " + std::to_string(count * sizeof(T)) +
         " belong");
  }
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), data.data(), data.size());
  return values;
}

template <class To, class From>
std::vector<To> narrowed(const std::vector<From>& values) {
  std::vector<To> out;
  out.reserve(values.size());
  for (From x : values) {
    const auto low = static_cast<double>(std::numeric_limits<To>::lowest());
    const auto high = static_cast<double>(std::numeric_limits<To>::max());
    const auto wide = static_cast<double>(x);
    if (std::isfinite(wide) && (wide < low || wide > high)) fail("a number in it is out of range");
    out.push_back(static_cast<To>(x));
  }
  return out;
}

}  // namespace

Npy read_npy(std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic || bytes.size() < 12) fail("it does not begin like one");
  const int version = bytes[6];
  if (version < 1 || version > 3) fail("it has version " + std::to_string(version) + " of the format");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  }
  const std::size_t begin = 8 + length_bytes;
  if (length > bytes.size() - begin) fail("its header is cut off");
  const std::string_view header = bytes.substr(begin, length);
  const std::string_view data = bytes.substr(begin + length);
  if (entry(header, "fortran_order").substr(0, 5) != "False") fail("its elements are in Fortran order");
  Npy array;
  array.shape = read_shape(entry(header, "shape"));
  const std::uint64_t count = count_of(array.shape);
  const std::string_view type = entry(header, "descr");
  auto is = [&](std::string_view name) { return type.substr(0, name.size()) == name; };
  if (is("'<f4'")) {
    array.floats = elements<float>(data, count);
  } else if (is("'<f8'")) {
    array.floats = narrowed<float>(elements<double>(data, count));
  } else if (is("'<i4'")) {
    array.type = Npy::Type::i32;
    array.integers = elements<std::int32_t>(data, count);
  } else if (is("'<i8'")) {
    array.type = Npy::Type::i32;
    array.integers = narrowed<std::int32_t>(elements<std::int64_t>(data, count));
  } else if (is("'|b1'")) {
    array.type = Npy::Type::boolean;
    for (char c : elements<char>(data, count)) array.integers.push_back(c != 0 ? 1 : 0);
  } else {
    fail("its elements are " + std::string(type.substr(0, type.find(','))) +
         "; expected '<f4', '<f8', '<i4', '<i8' or '|b1'");
  }
  return array;
}

std::string write_npy(const Npy& array) {
  std::string shape;
  for (std::uint64_t extent : array.shape) shape += std::to_string(extent) + ",";
  const char* type = array.type == Npy::Type::f32 ? "<f4" : array.type == Npy::Type::i32 ? "<i4" : "|b1";
  std::string header = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Data begins at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(magic);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (array.type == Npy::Type::f32) {
    bytes.append(reinterpret_cast<const char*>(array.floats.data()), array.floats.size() * sizeof(float));
  } else if (array.type == Npy::Type::i32) {
    bytes.append(reinterpret_cast<const char*>(array.integers.data()), array.integers.size() * sizeof(std::int32_t));
  } else {
    for (std::int32_t x : array.integers) bytes += static_cast<char>(x != 0);
  }
  return bytes;
}

}  // namespace tool
