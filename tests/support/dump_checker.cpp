#include "support/dump_checker.hpp"

#include <cstddef>
#include <cstring>
#include <set>
#include <sstream>
#include <vector>

namespace brontes::test {
namespace {

class Json {
 public:
  explicit Json(const std::string& text) : text_(text) {}

  bool valid() { return value() && at_ == text_.size(); }

 private:
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    space();
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' || text_[at_] < ' ') return false;
      ++at_;
    }
    return take('"');
  }
  bool skip(const char* any_of) {
    if (at_ == text_.size() || std::strchr(any_of, text_[at_]) == nullptr) return false;
    ++at_;
    return true;
  }
  std::size_t digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - begin;
  }
  bool number() {
    skip("-");
    const std::size_t begin = at_;
    const std::size_t whole = digits();
    if (whole == 0 || (whole > 1 && text_[begin] == '0')) return false;
    if (skip(".") && digits() == 0) return false;
    if (skip("eE") && (skip("+-"), digits() == 0)) return false;
    space();
    return true;
  }
  bool word() {
    for (const std::string w : {"true", "false"}) {
      if (text_.compare(at_, w.size(), w) != 0) continue;
      at_ += w.size();
      space();
      return true;
    }
    return false;
  }
  template <class Item>
  bool list(char close, Item item) {
    if (take(close)) return true;
    do {
      if (!item()) return false;
    } while (take(','));
    return take(close);
  }
  bool value() {
    if (take('{')) return list('}', [&] { return string() && take(':') && value(); });
    if (take('[')) return list(']', [&] { return value(); });
    space();
    return at_ < text_.size() && text_[at_] == '"' ? string() : word() || number();
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_json(const std::string& text) { return Json(text).valid(); }

std::string dangling_edge(const std::string& dot) {
  std::set<std::string> declared;
  std::vector<std::string> ends;
  std::istringstream lines(dot);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow, other;
    words >> name >> arrow >> other;
    if (arrow == "->") {
      ends.push_back(name);
      ends.push_back(other.substr(0, other.find(';')));
    } else if (arrow.rfind("[", 0) == 0 && name != "node" && name != "edge") {
      declared.insert(name);
    }
  }
  for (const std::string& end : ends) {
    if (declared.count(end) == 0) return end;
  }
  return "";
}

}  // namespace brontes::test
