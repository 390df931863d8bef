// The ops with kernels of their own, views and types, with everything failing in turn.
#include "worlds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace brontes::test {
namespace {

/// Records op after op and holds the library to its word: one that fails leaves nothing behind.
class Recording : public OnDevice {
 public:
  explicit Recording(const DeviceOptions& options) : OnDevice(options) {}

 protected:
  template <class Op>
  Tensor record(Batch& batch, Op op) {
    const std::size_t operations = batch.num_operations();
    const std::size_t values = batch.num_buffers();
    const Tensor made = op();
    if (made.valid()) return made;
    if (!batch.error()) wrong("an op failed and said nothing");
    if (batch.num_operations() != operations || batch.num_buffers() != values) wrong("half of an op is recorded");
    return made;
  }

  /// Reads a value and compares it; `what` is said if it is another one.
  Error compare(const Batch& batch, Tensor x, const std::vector<double>& want, const char* what) {
    std::array<float, 256> got{};
    if (Error e = batch.read(x, Span<float>(got.data(), want.size()))) return e;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!(std::abs(static_cast<double>(got[i]) - want[i]) <= 1e-4 * std::max(1.0, std::abs(want[i])))) wrong(what);
    }
    return {};
  }
  Error compare(const Batch& batch, Tensor x, const std::vector<std::int32_t>& want, const char* what) {
    std::array<std::int32_t, 256> got{};
    if (Error e = batch.read(x, Span<std::int32_t>(got.data(), want.size()))) return e;
    if (!std::equal(want.begin(), want.end(), got.begin())) wrong(what);
    return {};
  }
};

constexpr std::size_t rows = 5;
constexpr std::size_t columns = 12;

/// Neither sorted nor symmetric, and never twice the same.
double element(std::size_t row, std::size_t column) {
  return static_cast<double>((row * columns + column) * 7 % (rows * columns)) / 16.0 - 1.0;
}

std::vector<float> elements() {
  std::vector<float> all;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) all.push_back(static_cast<float>(element(r, c)));
  }
  return all;
}

/// Softmax and its kin, norms and running sums, each with a prologue.
class RowOps final : public Recording {
 public:
  explicit RowOps(const DeviceOptions& options) : Recording(options), data_(elements()), ones_(columns, 1.0f) {
    for (std::size_t r = 0; r < rows; ++r) {
      double total = 0, squares = 0, exponentials = 0, so_far = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const double x = 2 * element(r, c);
        total += x;
        squares += x * x;
        exponentials += std::exp(x);
      }
      const double mean = total / columns;
      const double deviation = std::sqrt(squares / columns - mean * mean + 1e-5);
      for (std::size_t c = 0; c < columns; ++c) {
        const double x = 2 * element(r, c);
        softmax_.push_back(std::exp(x) / exponentials);
        log_softmax_.push_back(x - std::log(exponentials));
        layer_norm_.push_back((x - mean) / deviation + 1);
        rms_norm_.push_back(x / std::sqrt(squares / columns + 1e-5));
        cumsum_.push_back(so_far += x);
      }
    }
  }
  Error run() override {
    Batch batch(device_);
    const Tensor x = batch.upload(Span<const float>(data_), Shape(rows, columns));
    const Tensor ones = batch.upload(Span<const float>(ones_));
    // One for each, as a prologue is for one reader only.
    std::array<Tensor, 5> twice;
    for (Tensor& t : twice) t = record(batch, [&] { return batch.scale(x, 2.0f); });
    const Tensor probabilities = record(batch, [&] { return batch.softmax(twice[0]); });
    const Tensor logarithms = record(batch, [&] { return batch.log_softmax(twice[1]); });
    const Tensor norm = record(batch, [&] { return batch.layer_norm(twice[2], ones, ones); });
    const Tensor rms = record(batch, [&] { return batch.rms_norm(twice[3], ones); });
    const Tensor sums = record(batch, [&] { return batch.cumsum(twice[4]); });
    if (Error e = batch.execute()) return e;
    if (Error e = compare(batch, probabilities, softmax_, "softmax")) return e;
    if (Error e = compare(batch, logarithms, log_softmax_, "log_softmax")) return e;
    if (Error e = compare(batch, norm, layer_norm_, "layer_norm")) return e;
    if (Error e = compare(batch, rms, rms_norm_, "rms_norm")) return e;
    return compare(batch, sums, cumsum_, "cumsum");
  }

 private:
  std::vector<float> data_;
  std::vector<float> ones_;
  std::vector<double> softmax_, log_softmax_, layer_norm_, rms_norm_, cumsum_;
};

/// Reductions over one block of axes and over two, with prologues and epilogues, and indices of the largest.
class AxisReductions final : public Recording {
 public:
  explicit AxisReductions(const DeviceOptions& options) : Recording(options), data_(elements()) {
    sums_.assign(columns, 0.0);
    blocks_.assign(4, 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      double most = -100;
      double exponentials = 0;
      std::int32_t where = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const double x = element(r, c);
        if (x > most) where = static_cast<std::int32_t>(c);
        most = std::max(most, x);
        exponentials += std::exp(x);
        sums_[c] -= x * x;
        blocks_[c / 3] += x;
      }
      most_.push_back(most);
      where_.push_back(where);
      logsumexp_.push_back(std::log(exponentials));
    }
    for (double& x : blocks_) x /= rows * 3;
  }
  Error run() override {
    Batch batch(device_);
    const Tensor x = batch.upload(Span<const float>(data_), Shape(rows, columns));
    const Tensor square = record(batch, [&] { return batch.square(x); });
    const Tensor positive = record(batch, [&] { return batch.sum(square, {0}); });
    const Tensor sums = record(batch, [&] { return batch.neg(positive); });
    const Tensor most = record(batch, [&] { return batch.max(x, {1}); });
    const Tensor all = record(batch, [&] { return batch.logsumexp(x, {-1}); });
    const Tensor cube = record(batch, [&] { return batch.reshape(x, Shape(rows, 4, 3)); });
    const Tensor blocks = record(batch, [&] { return batch.mean(cube, {0, 2}); });
    const Tensor where = record(batch, [&] { return batch.argmax(x); });
    const Tensor hundred = record(batch, [&] { return batch.fill(100.0f, Shape(1)); });
    const Tensor mask = record(batch, [&] { return batch.gt(x, hundred); });
    const Tensor large = record(batch, [&] { return batch.any(mask, {1}); });
    const Tensor any = record(batch, [&] { return batch.cast(large, DType::i32); });
    if (Error e = batch.execute()) return e;
    if (Error e = compare(batch, sums, sums_, "a sum over rows")) return e;
    if (Error e = compare(batch, most, most_, "the largest of a row")) return e;
    if (Error e = compare(batch, all, logsumexp_, "logsumexp")) return e;
    if (Error e = compare(batch, blocks, blocks_, "a mean over two blocks of axes")) return e;
    if (Error e = compare(batch, where, where_, "argmax")) return e;
    return compare(batch, any, none_, "any");
  }

 private:
  std::vector<float> data_;
  std::vector<double> sums_, most_, blocks_, logsumexp_;
  std::vector<std::int32_t> where_, none_ = std::vector<std::int32_t>(rows);
};

/// Rows by index, parts side by side, views that are read in place and views that are copied, masks and integers.
class Arrangements final : public Recording {
 public:
  explicit Arrangements(const DeviceOptions& options)
      : Recording(options), data_(elements()), index_{4, -4}, numbers_{7, -3, 5, 2} {
    // table: the elements, with row 4 and row 1 replaced by rows 1 and 4; then both rows once more below it.
    auto joined = [](std::size_t r, std::size_t c) {
      constexpr std::array<std::size_t, 7> source{0, 4, 2, 3, 1, 4, 1};
      return element(source[r], c);
    };
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < 7; ++r) turned_.push_back(joined(r, c));
    }
    for (const std::size_t r : {5u, 3u, 1u}) {
      for (std::size_t c = 0; c < columns; c += 3) {
        const double x = joined(r, c);
        chosen_.push_back(x < 0 ? -x : x + 10 * element(0, c));
      }
    }
  }
  Error run() override {
    Batch batch(device_);
    const Tensor table = batch.upload(Span<const float>(data_), Shape(rows, columns));
    const Tensor index = batch.upload(Span<const std::int32_t>(index_));
    const Tensor some = record(batch, [&] { return batch.gather(table, index); });  // rows 4 and 1
    const Tensor back = record(batch, [&] { return batch.slice(some, {Range::reversed()}); });
    const Tensor updated = record(batch, [&] { return batch.update_rows(table, index, back); });
    const Tensor joined = record(batch, [&] { return batch.concat({updated, some}); });
    const Tensor turned = record(batch, [&] { return batch.transpose(joined); });

    const Tensor part = record(batch, [&] { return batch.slice(joined, {{5, 0, -2}, {0, Range::past_last, 3}}); });
    const Tensor first = record(batch, [&] { return batch.slice(table, {{0, 1}, {0, Range::past_last, 3}}); });
    const Tensor wide = record(batch, [&] { return batch.expand(first, Shape(3, 4)); });
    const Tensor zero = record(batch, [&] { return batch.fill(0.0f, Shape(1)); });
    const Tensor below = record(batch, [&] { return batch.lt(part, zero); });
    const Tensor minus = record(batch, [&] { return batch.neg(part); });
    const Tensor tenfold = record(batch, [&] { return batch.scale(wide, 10.0f); });
    const Tensor more = record(batch, [&] { return batch.add(part, tenfold); });
    const Tensor chosen = record(batch, [&] { return batch.where(below, minus, more); });

    const Tensor numbers = batch.upload(Span<const std::int32_t>(numbers_), Shape(2, 2));
    const Tensor square = record(batch, [&] { return batch.permute(numbers, {1, 0}); });
    const Tensor products = record(batch, [&] { return batch.mul(square, numbers); });
    if (Error e = batch.execute()) return e;
    if (Error e = compare(batch, turned, turned_, "rows by index, joined and transposed")) return e;
    if (Error e = compare(batch, chosen, chosen_, "elements chosen by a mask")) return e;
    return compare(batch, products, products_, "integers");
  }

 private:
  std::vector<float> data_;
  std::vector<std::int32_t> index_, numbers_, products_{49, -15, -15, 4};
  std::vector<double> turned_, chosen_;
};

/// A product per leading dim: one matrix for all, and a matrix each, transposed.
class BatchedProducts final : public Recording {
 public:
  explicit BatchedProducts(const DeviceOptions& options) : Recording(options), data_(elements()) {
    constexpr std::size_t m = 2, k = 6;  // five times 2x6
    auto at = [](std::size_t b, std::size_t i, std::size_t j) { return element(b, i * k + j); };
    for (std::size_t b = 0; b < rows; ++b) {
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < m; ++j) {
          double own = 0, shared = 0;
          for (std::size_t l = 0; l < k; ++l) {
            own += at(b, i, l) * at(b, j, l);
            shared += at(b, i, l) * at(0, j, l);
          }
          own_.push_back(std::max(own - 1, 0.0));
          shared_.push_back(shared);
        }
      }
    }
  }
  Error run() override {
    Batch batch(device_);
    const Tensor x = batch.upload(Span<const float>(data_), Shape(rows, 2, 6));
    const Tensor turned = record(batch, [&] { return batch.transpose(x); });
    const Tensor product = record(batch, [&] { return batch.matmul(x, turned); });
    const Tensor less = record(batch, [&] { return batch.offset(product, -1.0f); });
    const Tensor own = record(batch, [&] { return batch.relu(less); });
    const Tensor first = record(batch, [&] { return batch.slice(x, {{0, 1}}); });
    const Tensor matrix = record(batch, [&] { return batch.reshape(first, Shape(2, 6)); });
    const Tensor other = record(batch, [&] { return batch.transpose(matrix); });
    const Tensor shared = record(batch, [&] { return batch.matmul(x, other); });
    if (Error e = batch.execute()) return e;
    if (Error e = compare(batch, own, own_, "a product per matrix")) return e;
    return compare(batch, shared, shared_, "a product with one matrix for all");
  }

 private:
  std::vector<float> data_;
  std::vector<double> own_, shared_;
};

}  // namespace

TEST_CASE("whatever fails in ops along rows", "[faults]") { inject_variants<RowOps>("row ops"); }
TEST_CASE("whatever fails in reductions over axes", "[faults]") { inject_variants<AxisReductions>("axes"); }
TEST_CASE("whatever fails in gathers, joins, views, masks and integers", "[faults]") {
  inject_variants<Arrangements>("arrangements");
}
TEST_CASE("whatever fails in batched products", "[faults]") { inject_variants<BatchedProducts>("batched products"); }

}  // namespace brontes::test
