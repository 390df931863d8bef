// SPDX-License-Identifier: MIT
// Random damage to files, with and without checksums that were made to fit it.
#include "keyed_file.hpp"

#include "ops/matmul.hpp"
#include "ops/matmul_tuning.hpp"

#include <algorithm>
#include <random>

#include <fcntl.h>

using namespace brontes;
using namespace brontes::test;

namespace {

constexpr std::size_t payload_checksum_offset = 92;

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }

  Data mutated(Data bytes) {
    for (std::size_t i = 1 + below(4); i > 0; --i) once(bytes);
    return bytes;
  }

 private:
  void once(Data& bytes) {
    const std::size_t kind = below(8);
    if (bytes.empty() || kind == 0) {
      bytes.insert(bytes.end(), 1 + below(40), byte());
      return;
    }
    const std::size_t at = below(bytes.size());
    const std::size_t count = 1 + below(std::min<std::size_t>(bytes.size() - at, 40));
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = from + static_cast<std::ptrdiff_t>(count);
    switch (kind) {
      case 1: bytes.resize(at); break;
      case 2: bytes.erase(from, to); break;
      case 3: std::fill(from, to, below(2) == 0 ? std::uint8_t{0} : std::uint8_t{0xff}); break;
      case 4: std::rotate(from, from + static_cast<std::ptrdiff_t>(below(count)), to); break;
      case 5: *from = byte(); break;
      case 6: std::generate(from, to, [&] { return byte(); }); break;
      default: *from = static_cast<std::uint8_t>(*from ^ (1u << below(8))); break;
    }
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }

  std::mt19937 random_;
};

std::span<const std::uint8_t> payload_of(const Data& file) {
  return std::span<const std::uint8_t>(file).subspan(file_header_size);
}

/// A header that agrees with the payload again.
void repair(Data& file) {
  if (file.size() < file_header_size) return;
  put_little_endian(file, payload_size_offset, file.size() - file_header_size, 8);
  put_little_endian(file, payload_checksum_offset, file_checksum(payload_of(file)), 8);
  fix_header_checksum(file);
}

/// One file, written again and again; without the cost of creating it every time.
class Rewritten {
 public:
  explicit Rewritten(const std::string& path)
      : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    REQUIRE(descriptor_ >= 0);
  }
  Rewritten(const Rewritten&) = delete;
  Rewritten& operator=(const Rewritten&) = delete;
  ~Rewritten() { ::close(descriptor_); }

  void write(const Data& bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes.size())) != 0 ||
        ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      FAIL("cannot write");
    }
  }

 private:
  int descriptor_;
};

/// Whether a file with checksums that fit is as `good` where it matters.
bool acceptable(const Data& file, const Data& good) {
  return file.size() >= file_header_size && std::equal(good.begin(), good.begin() + payload_size_offset, file.begin());
}

int rounds() { return soak() ? 1000000 : 20000; }

/// What load_file() makes of one mutation after another of a file with this payload.
template <class Check>
void load_mutations(const files::FileKind& kind, std::span<const std::uint8_t> payload, std::uint32_t seed,
                    bool repaired, Check check) {
  TempFolder folder;
  const std::string path = folder.file("file");
  REQUIRE_FALSE(files::save_file(kind, path, some_identity(), payload));
  const Data good = slurp(path);
  Rewritten file(path);
  Mutator mutator(seed);
  for (int round = 0; round < rounds(); ++round) {
    Data bad = mutator.mutated(good);
    if (repaired) repair(bad);
    file.write(bad);
    const FileLoad load = files::load_file(kind, path, some_identity());
    if (!check(load, bad, good)) FAIL("round " << round << ": " << load.note);
  }
}

bool refused_unless_good(const FileLoad& load, const Data& bad, const Data& good) {
  return (load.state == FileState::loaded) == (bad == good) && load.note.empty() == (bad == good);
}

}  // namespace

TEST_CASE("a mutated cache is never accepted", "[keyed_file]") {
  load_mutations(files::pipeline_cache_file, some_payload(150), 1, false, refused_unless_good);
}

TEST_CASE("a mutated cache with the right checksums is accepted only for this device, with the bytes it has",
          "[keyed_file]") {
  int accepted = 0;
  load_mutations(files::pipeline_cache_file, some_payload(150), 2, true,
                 [&](const FileLoad& load, const Data& bad, const Data& good) {
                   const bool loaded = load.state == FileState::loaded;
                   if (loaded) ++accepted;
                   return loaded == acceptable(bad, good) &&
                          (!loaded || std::ranges::equal(load.payload, payload_of(bad)));
                 });
  CHECK(accepted > 0);
}

TEST_CASE("a mutated tuning file is never accepted", "[keyed_file][tuning]") {
  plan::Tuning tuning;
  tuning.matmuls.push_back({8, 512, 512, Layout::nk, DType::f32, {MatmulKernel::naive, 1}, 2.0f});
  tuning.matmuls.push_back({1, 512, 512, Layout::kn, DType::q8_0, {}, 1.0f});
  load_mutations(files::tuning_file, plan::serialize(tuning), 3, false, refused_unless_good);
}

TEST_CASE("a mutated table of measurements is refused, or is one that this library would write", "[tuning]") {
  plan::Tuning tuning;
  for (std::uint64_t m : {1u, 8u, 64u}) {
    tuning.matmuls.push_back({m, 512, 512, Layout::nk, DType::f32, {MatmulKernel::naive, 1}, 2.0f});
    tuning.matmuls.push_back({m, 256, 1024, Layout::kn, DType::q8_0, {}, 1.0f});
  }
  const Data good = plan::serialize(tuning);
  plan::Traits traits;
  Mutator mutator(4);
  int accepted = 0;
  for (int round = 0; round < rounds(); ++round) {
    Data bad = mutator.mutated(good);
    // Mostly a count and fingerprint that let the parser go on.
    if (round % 4 != 0 && bad.size() >= 20) {
      std::copy(good.begin(), good.begin() + 4, bad.begin());
      put_little_endian(bad, 4, (bad.size() - 20) / 32, 4);
      std::copy(good.begin() + 8, good.begin() + 16, bad.begin() + 8);
    }
    const auto parsed = plan::parse_tuning(bad);
    if (!parsed) {
      if (parsed.error().code != Errc::io || parsed.error().message.empty()) FAIL("round " << round);
      continue;
    }
    ++accepted;
    if (plan::serialize(*parsed) != bad) FAIL("round " << round << ": not what would be written");
    traits.tuning = &*parsed;
    for (const plan::TunedMatmul& t : parsed->matmuls) {
      if (!plan::select_matmul({t.m % 4096 + 1, t.k % 4096 + 1, t.n % 4096 + 1, t.layout}, traits)) {
        FAIL("round " << round << ": no kernel");
      }
    }
  }
  CHECK(accepted > 0);
}
