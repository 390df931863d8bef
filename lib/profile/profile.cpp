#include <brontes/profile.hpp>

#include "record/words.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <new>

namespace brontes {
namespace {

#if defined(__GNUC__)
[[gnu::format(printf, 1, 2)]]
#endif
std::string
format(const char* pattern, ...) {
  std::array<char, 64> text{};
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  return text.data();
}

std::string time_text(double seconds) {
  if (seconds >= 1) return format("%.3f s", seconds);
  if (seconds >= 1e-3) return format("%.3f ms", seconds * 1e3);
  return format("%.3f us", seconds * 1e6);
}

std::string rate_text(const ProfileEntry& e) {
  if (e.flops > 0) return format("%.4g GFLOP/s", e.flops_per_second() / 1e9);
  return format("%.4g GB/s", e.bytes_per_second() / 1e9);
}

// JSON has no infinity and no NaN.
std::string json_number(double x) { return x - x == 0 ? format("%.9g", x) : "null"; }

using Row = std::vector<std::string>;

// Columns are as wide as they have to be; numbers end at the right.
std::string table(const std::vector<Row>& rows, std::size_t first_number) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      if (c != 0) text += "  ";
      if (c >= first_number) {
        text += space + row[c];
      } else {
        text += c + 1 == row.size() ? row[c] : row[c] + space;
      }
    }
    text += '\n';
  }
  return text;
}

std::string table_of(const Profile& p) {
  const bool limited = p.limits.flops_per_second > 0 || p.limits.bytes_per_second > 0;
  std::vector<Row> rows{{"op", "kernel", "count", "time", "share", "rate"}};
  if (limited) rows[0].push_back("of limit");
  for (const ProfileEntry& e : p.entries) {
    rows.push_back({e.op + (e.result.empty() ? "" : " -> " + e.result), e.kernel.empty() ? "-" : e.kernel,
                    std::to_string(e.count), time_text(e.seconds), format("%.1f%%", e.share * 100), rate_text(e)});
    if (limited) rows.back().push_back(e.share_of_limit > 0 ? format("%.0f%%", e.share_of_limit * 100) : "-");
  }
  std::uint64_t count = 0;
  for (const ProfileEntry& e : p.entries) count += e.count;
  std::string text = format("%s on the device", time_text(p.seconds).c_str()) + ", median of " +
                     std::to_string(p.runs) + " runs, " + std::to_string(count) + " dispatches and copies\n";
  if (limited) {
    text += format("limit %.4g GFLOP/s", p.limits.flops_per_second / 1e9) +
            format(", %.4g GB/s\n", p.limits.bytes_per_second / 1e9);
  }
  return text + table(rows, 2);
}

std::string json_of(const ProfileEntry& e) {
  using record::json_string;
  return "{\"op\": " + json_string(e.op) + ", \"result\": " + json_string(e.result) +
         ", \"kernel\": " + json_string(e.kernel) + ", \"dispatch\": " + std::to_string(e.dispatch) +
         ", \"count\": " + std::to_string(e.count) + ",\n     \"seconds\": " + json_number(e.seconds) +
         ", \"share\": " + json_number(e.share) + ", \"flops\": " + json_number(e.flops) +
         ", \"bytes\": " + json_number(e.bytes) + ",\n     \"flops_per_second\": " + json_number(e.flops_per_second()) +
         ", \"bytes_per_second\": " + json_number(e.bytes_per_second()) +
         ", \"share_of_limit\": " + json_number(e.share_of_limit) + "}";
}

std::string json_of(const Profile& p) {
  return "{\n  \"runs\": " + std::to_string(p.runs) + ",\n  \"seconds\": " + json_number(p.seconds) +
         ",\n  \"limits\": {\"flops_per_second\": " + json_number(p.limits.flops_per_second) +
         ", \"bytes_per_second\": " + json_number(p.limits.bytes_per_second) + "},\n  \"entries\": [" +
         record::join(p.entries, ",", [](const ProfileEntry& e) { return "\n    " + json_of(e); }) + "\n  ]\n}\n";
}

template <class Make>
auto or_empty(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Profile merge(const Profile& p) {
  Profile merged = p;
  std::vector<ProfileEntry>& rows = merged.entries;
  rows.clear();
  for (const ProfileEntry& e : p.entries) {
    const auto same = std::find_if(rows.begin(), rows.end(),
                                   [&](const ProfileEntry& row) { return row.op == e.op && row.kernel == e.kernel; });
    if (same == rows.end()) {
      rows.push_back(e);
      continue;
    }
    // The least time of all is the sum of the least times.
    const double least = same->share_of_limit * same->seconds + e.share_of_limit * e.seconds;
    same->result.clear();
    same->count += e.count;
    same->seconds += e.seconds;
    same->share += e.share;
    same->flops += e.flops;
    same->bytes += e.bytes;
    same->share_of_limit = same->seconds > 0 ? least / same->seconds : 0;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileEntry& a, const ProfileEntry& b) { return a.seconds > b.seconds; });
  return merged;
}

}  // namespace

Profile Profile::merged() const {
  return or_empty([&] { return merge(*this); });
}

std::string Profile::text() const {
  return or_empty([&] { return table_of(*this); });
}

std::string Profile::json() const {
  return or_empty([&] { return json_of(*this); });
}

}  // namespace brontes
