#include <brontes/shadow.hpp>

#include "record/words.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <new>

namespace brontes {
namespace {

using record::join;
using record::json_string;

std::string digits(double x) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", x);
  return text.data();
}

std::string json_number(double x) { return std::isfinite(x) ? digits(x) : json_string(digits(x)); }

std::string text_of(const ShadowMismatch& m) {
  std::string text = "WRONG: #" + std::to_string(m.dispatch) + " " + m.op + " -> " + m.result + ", kernel " + m.kernel +
                     "\n  " + std::to_string(m.wrong) + " of " + std::to_string(m.elements) +
                     " elements; the worst is element " + std::to_string(m.element) + ": " + digits(m.got) +
                     " instead of " + digits(m.expected) + " within " + digits(m.allowed) + "\n";
  for (const ShadowInput& in : m.inputs) {
    text += "  operand " + in.value + " " + to_string(in.shape) + " from " + digits(in.smallest) + " to " +
            digits(in.largest);
    if (in.nans != 0) text += ", " + std::to_string(in.nans) + " NaN";
    if (in.has_element) text += "; that element is " + digits(in.element);
    text += "\n";
  }
  return text;
}

std::string text_of(const ShadowReport& r) {
  std::string text = std::to_string(r.checked) + " dispatches checked, " +
                     (r.ok ? "all of them right" : "and one of them is wrong") + "\n";
  if (!r.ok) text += text_of(r.first);
  for (const std::string& op : r.not_checked) text += "not checked: " + op + "\n";
  return text;
}

std::string json_of(const ShadowInput& in) {
  return "{\"value\": " + json_string(in.value) + ", \"shape\": " + to_string(in.shape) +
         ", \"smallest\": " + json_number(in.smallest) + ", \"largest\": " + json_number(in.largest) +
         ", \"nans\": " + std::to_string(in.nans) +
         (in.has_element ? ", \"element\": " + json_number(in.element) : std::string()) + "}";
}

std::string json_of(const ShadowReport& r) {
  std::string text = "{\n  \"checked\": " + std::to_string(r.checked) + ",\n  \"not_checked\": [" +
                     join(r.not_checked, ", ", [](const std::string& op) { return json_string(op); }) +
                     "],\n  \"ok\": " + (r.ok ? "true" : "false");
  if (!r.ok) {
    const ShadowMismatch& m = r.first;
    text += ",\n  \"first\": {\"op\": " + json_string(m.op) + ", \"kernel\": " + json_string(m.kernel) +
            ", \"dispatch\": " + std::to_string(m.dispatch) + ", \"result\": " + json_string(m.result) +
            ",\n    \"wrong\": " + std::to_string(m.wrong) + ", \"elements\": " + std::to_string(m.elements) +
            ", \"element\": " + std::to_string(m.element) + ", \"got\": " + json_number(m.got) +
            ", \"expected\": " + json_number(m.expected) + ", \"allowed\": " + json_number(m.allowed) +
            ",\n    \"inputs\": [" + join(m.inputs, ", ", [](const ShadowInput& in) { return json_of(in); }) + "]}";
  }
  return text + "\n}\n";
}

template <class Make>
std::string or_empty(Make make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

std::string ShadowReport::text() const {
  return or_empty([&] { return text_of(*this); });
}

std::string ShadowReport::json() const {
  return or_empty([&] { return json_of(*this); });
}

}  // namespace brontes
