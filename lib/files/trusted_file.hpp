// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

/// Files whose content a program believes. A path is used, to read or to replace, only if
///
///   - there is a regular file or none. A symbolic link is refused, wherever it leads; so are devices, FIFOs,
///     sockets and directories. None of them is opened, so none of them can block.
///   - the file and its directory belong to the process's effective user or to root.
///   - not everybody may write to the file; nor to the directory, unless it is sticky as /tmp is. Groups may:
///     whoever set up such a group trusts its members.
///
/// The directory itself may be reached through symbolic links. Directories above it do not matter: whatever
/// was put in its place would have to pass the same checks. Only the kind of file is checked on Windows.
///
/// Thread-safety: all functions may be called from any thread and any number of processes at once, for the same
/// path too. They throw std::bad_alloc and nothing else, and leave nothing behind then.
namespace brontes::files {

/// False for a path that ends in a slash, "." or "..", or is empty.
bool names_a_file(const std::string& path);

/// One file, open for reading.
class InputFile {
 public:
  enum class State : std::uint8_t { open, missing, refused };

  InputFile() = default;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  /// Once only. `reason` is set where the file is refused.
  State open(const std::string& path, std::string& reason);
  /// When it was opened.
  std::uint64_t size() const { return size_; }
  /// 0 or an errno. `got` is smaller than the span only at the end of the file.
  int read(std::span<std::uint8_t> out, std::size_t& got);

 private:
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// Replaces the file by one with these bytes, atomically: a reader sees the old file or the new one, and of
/// several writers one wins. Creates missing directories, with mode 0700; the file has mode 0600. Removes
/// temporary files of this path that killed writers left behind more than an hour ago.
///
/// Empty, or what failed and why. The old file is then as it was, and no temporary file is left.
std::string replace_file(const std::string& path, std::initializer_list<std::span<const std::uint8_t>> parts);

/// The system's text for an errno.
std::string system_text(int error);

}  // namespace brontes::files
