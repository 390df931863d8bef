#include "output_file.hpp"

#include <filesystem>
#include <iostream>
#include <random>
#include <system_error>

namespace tool {

namespace fs = std::filesystem;

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (!aside_.empty()) fs::remove(aside_, ignored);
}

bool OutputFile::open(const std::string& path) {
  path_ = path;
  if (path == "-") {
    stream_ = &std::cout;
    return true;
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const bool special = fs::exists(status) && !fs::is_regular_file(status);
  if (special) {
    file_.open(path);
  } else {
    // A link stays one: what it points to is replaced.
    if (fs::exists(status)) path_ = fs::canonical(path, ignored).string();
    aside_ = path_ + "." + std::to_string(std::random_device()()) + ".part";
    file_.open(aside_);
    if (!file_) aside_.clear();
  }
  if (!file_) return false;
  stream_ = &file_;
  return true;
}

bool OutputFile::commit() {
  if (stream_ == &std::cout) return static_cast<bool>(std::cout.flush());
  file_.close();
  if (!file_) return false;
  if (aside_.empty()) return true;
  std::error_code problem;
  fs::rename(aside_, path_, problem);
  if (problem) return false;
  aside_.clear();
  return true;
}

}  // namespace tool
