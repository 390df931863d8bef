// SPDX-License-Identifier: MIT
// The format, what of it is rejected, and where the default files are.
#include "keyed_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/stat.h>

using namespace brontes;
using namespace brontes::test;

TEST_CASE("a saved cache loads with the same payload", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  for (std::size_t size : {0u, 1u, 7u, 8u, 9u, 4096u, 3000001u}) {
    const Data payload = some_payload(size);
    const Error error = save_cache(path, some_identity(), payload);
    INFO(error.message);
    REQUIRE_FALSE(error);
    CHECK(fs::file_size(path) == file_header_size + size);
    const FileLoad load = load_cache(path, some_identity());
    CHECK(load.state == FileState::loaded);
    CHECK(load.note.empty());
    CHECK(load.payload == payload);
  }
  CHECK(folder.names() == std::vector<std::string>{"cache.bin"});
}

TEST_CASE("the file format is little-endian and stays as it is", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  FileIdentity identity = some_identity();
  identity.pointer_bits = 64;
  REQUIRE_FALSE(save_cache(path, identity, Data{1, 2, 3}));
  Data expected = {'B',  'R',  'O',  'N',  'T', 'P', 'C', '\n', 1, 0, 0,    0,    108,  0,    0,  0, 0x05, 0x00,
                   0x01, 0x00, 0x34, 0x12, 0,   0,   13,  0,    0, 0, 0x03, 0x20, 0x00, 0x01, 64, 0, 0,    0};
  for (std::uint8_t base : {std::uint8_t{0x10}, std::uint8_t{0x40}, std::uint8_t{0x80}}) {
    for (std::uint8_t i = 0; i < 16; ++i) expected.push_back(static_cast<std::uint8_t>(base + i));
  }
  expected.insert(expected.end(), {3, 0, 0, 0, 0, 0, 0, 0});
  // Computed apart, from the description in the header.
  CHECK(file_checksum(Data{}) == 0x9ca066f1a4ab2eeau);
  CHECK(file_checksum(Data{1, 2, 3}) == 0xde90ea5a36f70d3du);
  CHECK(file_checksum(Data{1, 2, 3, 4, 5, 6, 7, 8, 9}) == 0x057169846c3a5e9du);
  expected.resize(file_header_size);
  put_little_endian(expected, 92, 0xde90ea5a36f70d3du, 8);
  fix_header_checksum(expected);
  expected.insert(expected.end(), {1, 2, 3});
  CHECK(slurp(path) == expected);
}

TEST_CASE("a missing file is a cold start without a note", "[keyed_file]") {
  TempFolder folder;
  for (const char* name : {"missing.bin", "missing/folder/cache.bin"}) {
    const FileLoad load = load_cache(folder.file(name), some_identity());
    CHECK(load.state == FileState::missing);
    CHECK(load.payload.empty());
    CHECK(load.note.empty());
  }
  CHECK(load_cache("", some_identity()).state == FileState::missing);
}

TEST_CASE("a file cut at any length is rejected as truncated", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const Data whole = slurp(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO("cut to " << length);
    spit(path, Data(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    check_rejected(load_cache(path, some_identity()), path, "truncated");
  }
}

TEST_CASE("a file with bytes after its payload is rejected", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  Data longer = slurp(path);
  longer.push_back(0);
  spit(path, longer);
  check_rejected(load_cache(path, some_identity()), path, "damaged");
}

TEST_CASE("every flipped bit of header and payload is noticed", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(61)));
  const Data whole = slurp(path);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    INFO("bit " << bit % 8 << " of byte " << bit / 8);
    Data flipped = whole;
    flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1u << (bit % 8)));
    spit(path, flipped);
    check_rejected(load_cache(path, some_identity()), path, "");
  }
}

TEST_CASE("a cache of another device or driver is rejected, naming what differs", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  const std::pair<const char*, void (*)(FileIdentity&)> changes[] = {
      {"vendor 0x00010005, this is 0x00010006", [](FileIdentity& i) { i.vendor_id += 1; }},
      {"device 0x00001234, this is 0x00001235", [](FileIdentity& i) { i.device_id += 1; }},
      {"driver id", [](FileIdentity& i) { i.driver_id += 1; }},
      {"driver version", [](FileIdentity& i) { i.driver_version += 1; }},
      {"pointer bits", [](FileIdentity& i) { i.pointer_bits ^= 96; }},
      {"pipeline cache UUID 1011", [](FileIdentity& i) { i.pipeline_cache_uuid[15] ^= 1; }},
      {"device UUID 4041", [](FileIdentity& i) { i.device_uuid[15] ^= 1; }},
      {"driver UUID 8081", [](FileIdentity& i) { i.driver_uuid[15] ^= 1; }},
  };
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  for (auto [what, change] : changes) {
    INFO(what);
    FileIdentity other = some_identity();
    change(other);
    check_rejected(load_cache(path, other), path, what);
  }
}

TEST_CASE("a file of another kind is rejected, and the kinds have default files of their own", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const FileLoad load = files::load_file(files::tuning_file, path, some_identity());
  check_rejected(load, path, "not a Brontes tuning file");
  REQUIRE_FALSE(files::save_file(files::tuning_file, path, some_identity(), some_payload(10)));
  check_rejected(load_cache(path, some_identity()), path, "not a Brontes pipeline cache");

  ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
  std::string note;
  const fs::path pipelines = default_cache_path(some_identity(), note);
  const fs::path tuning = files::default_path(files::tuning_file, some_identity(), note);
  CHECK(tuning.parent_path() == pipelines.parent_path());
  CHECK(tuning.extension() == ".tuning");
  CHECK(tuning != pipelines);
}

TEST_CASE("an older or newer format version is rejected by its number", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const Data whole = slurp(path);
  for (std::uint32_t version : {pipeline_cache_file.version - 1, pipeline_cache_file.version + 1}) {
    Data other = whole;
    put_little_endian(other, version_offset, version, 4);
    fix_header_checksum(other);
    spit(path, other);
    check_rejected(load_cache(path, some_identity()), path, "format version " + std::to_string(version));
  }
}

TEST_CASE("sizes in a header with a valid checksum are still not believed", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const Data whole = slurp(path);
  for (std::uint64_t size : {std::uint64_t{0}, std::uint64_t{99}, std::uint64_t{101}, pipeline_cache_file.max_payload,
                             ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    INFO("payload size " << size);
    Data other = whole;
    put_little_endian(other, payload_size_offset, size, 8);
    fix_header_checksum(other);
    spit(path, other);
    check_rejected(load_cache(path, some_identity()), path, size > 100 ? "truncated" : "damaged");
  }
  for (std::uint32_t size : {0u, 107u, 109u, 0xffffffffu}) {
    INFO("header size " << size);
    Data other = whole;
    put_little_endian(other, header_size_offset, size, 4);
    fix_header_checksum(other);
    spit(path, other);
    check_rejected(load_cache(path, some_identity()), path, "header size");
  }
}

TEST_CASE("an implausibly large file is rejected unread", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  std::error_code error;
  fs::resize_file(path, pipeline_cache_file.max_payload + file_header_size + 1, error);  // sparse
  if (error) SKIP("no room for a sparse file: " << error.message());
  check_rejected(load_cache(path, some_identity()), path, "implausibly large");
}

TEST_CASE("what is no cache file at all is rejected", "[keyed_file]") {
  TempFolder folder;
  SECTION("another program's file") {
    spit(folder.file("cache.bin"), some_payload(5000));
    check_rejected(load_cache(folder.file("cache.bin"), some_identity()), "cache.bin", "not a Brontes pipeline cache");
  }
  SECTION("a path without a file name") {
    for (const char* name : {"", ".", ".."}) {
      check_rejected(load_cache(folder.file(name), some_identity()), folder.path(), "ends in no file name");
    }
  }
  SECTION("a path through a regular file") {
    spit(folder.file("plain"), {});
    check_rejected(load_cache(folder.file("plain/cache.bin"), some_identity()), "plain/cache.bin",
                   std::strerror(ENOTDIR));
  }
}

TEST_CASE("an unreadable file is rejected with the system's reason", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(path.c_str(), 0) == 0);
  const int code = in_child([&] {
    if (!drop_root()) return cannot_drop_root;
    const FileLoad load = load_cache(path, some_identity());
    return load.state == FileState::rejected && contains(load.note, std::strerror(EACCES)) ? 0 : 1;
  });
  if (code == cannot_drop_root) SKIP("root here cannot become another user");
  CHECK(code == 0);
}

TEST_CASE("a rejected file is replaced by the next save", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  spit(path, some_payload(300));
  CHECK(load_cache(path, some_identity()).state == FileState::rejected);
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(20)));
  CHECK(load_cache(path, some_identity()).payload == some_payload(20));
}

TEST_CASE("the default path follows the XDG rules", "[keyed_file]") {
  TempFolder home;
  std::string note = "left over";
  auto directory = [&] { return fs::path(default_cache_path(some_identity(), note)).parent_path().string(); };
  SECTION("XDG_CACHE_HOME comes first, and need not exist yet") {
    ScopedVariable h("HOME", home.path());
    ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
    CHECK(directory() == "/some/cache/brontes");
    CHECK(note.empty());
  }
  SECTION("unset, empty or relative, it gives way to HOME") {
    ScopedVariable h("HOME", home.path());
    for (std::optional<std::string> value :
         {std::optional<std::string>(), std::optional<std::string>(""), std::optional<std::string>("relative/cache"),
          std::optional<std::string>("./cache")}) {
      ScopedVariable xdg("XDG_CACHE_HOME", value);
      CHECK(directory() == home.path() + "/.cache/brontes");
      CHECK(note.empty());
    }
  }
  SECTION("with no usable HOME either there is no path, and a note") {
    ScopedVariable xdg("XDG_CACHE_HOME", "relative");
    for (std::optional<std::string> value :
         {std::optional<std::string>(), std::optional<std::string>(""), std::optional<std::string>("relative"),
          std::optional<std::string>(home.file("missing"))}) {
      ScopedVariable h("HOME", value);
      CHECK(default_cache_path(some_identity(), note).empty());
      CHECK(contains(note, "HOME"));
    }
  }
  SECTION("a set-uid process has none") {
    ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
    const int code = in_child([&] {
      if (::geteuid() != 0 || ::seteuid(65534) != 0) return cannot_drop_root;
      return default_cache_path(some_identity(), note).empty() && !note.empty() ? 0 : 1;
    });
    if (code == cannot_drop_root) SKIP("needs root");
    CHECK(code == 0);
  }
  CHECK(home.names().empty());
}

TEST_CASE("each device has its own default file, which outlives driver updates", "[keyed_file]") {
  ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
  auto path_with = [](void (*change)(FileIdentity&)) {
    FileIdentity identity = some_identity();
    change(identity);
    std::string note;
    return default_cache_path(identity, note);
  };
  const std::string path = path_with([](FileIdentity&) {});
  CHECK(path != path_with([](FileIdentity& i) { i.vendor_id += 1; }));
  CHECK(path != path_with([](FileIdentity& i) { i.device_id += 1; }));
  CHECK(path != path_with([](FileIdentity& i) { i.driver_id += 1; }));
  CHECK(path != path_with([](FileIdentity& i) { i.pointer_bits ^= 96; }));
  CHECK(path != path_with([](FileIdentity& i) { i.device_uuid[3] ^= 1; }));
  CHECK(path == path_with([](FileIdentity& i) { i.driver_version += 1; }));
  CHECK(path == path_with([](FileIdentity& i) { i.driver_uuid[3] ^= 1; }));
  CHECK(path == path_with([](FileIdentity& i) { i.pipeline_cache_uuid[3] ^= 1; }));
}
