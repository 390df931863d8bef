// A file that is there as a whole or not at all.
#pragma once

#include <fstream>
#include <ostream>
#include <string>

namespace tool {

/// Writes beside the file and renames it into place, so that an interrupted program leaves what was there before.
class OutputFile {
 public:
  OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Without commit() nothing is left behind.
  ~OutputFile();

  /// False when it cannot be written. "-" is stdout; devices and pipes are written as they are.
  bool open(const std::string& path);
  bool is_open() const noexcept { return stream_ != nullptr; }

  std::ostream& stream() { return *stream_; }

  /// False when not all of it could be written; the file is then as it was.
  bool commit();

 private:
  std::string path_;
  std::string aside_;  // empty when the file itself is written
  std::ofstream file_;
  std::ostream* stream_ = nullptr;
};

}  // namespace tool
