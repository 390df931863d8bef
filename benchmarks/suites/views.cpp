// Views of resident matrices, as Programs compiled before.
//
//   views/transpose/RxC/op      the transposed matrix, in memory of its own
//   views/transpose/RxC/copy    a copy of the matrix: as fast as memory is moved
//   views/slice-relu/RxC/fused  relu of all columns but the first and last four, read where they lie
//   views/slice-relu/RxC/apart  the same as two dispatches, with a copy of these columns in between
//   views/concat/RxC/in-place   relu and negative of the matrix on top of each other, each written where it goes
//   views/concat/RxC/copied     the same with two temporaries that are then copied
#include "suites.hpp"
#include "support.hpp"

#include <memory>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Range;
using brontes::Shape;
using brontes::Tensor;

using Record = Tensor (*)(Batch& batch, Tensor x);

Tensor transpose(Batch& batch, Tensor x) { return batch.transpose(x); }
Tensor copy(Batch& batch, Tensor x) { return batch.copy(x); }
Tensor slice_relu(Batch& batch, Tensor x) { return batch.relu(batch.slice(x, 1, Range{4, -4})); }

Tensor concat(Batch& batch, Tensor x) { return batch.concat({batch.relu(x), batch.neg(x)}); }

struct Matrix {
  std::size_t rows, columns;
  Buffer x;
};

struct Compiled {
  Buffer out;
  brontes::Program program;
};

std::shared_ptr<Compiled> compile(const Environment& environment, const Matrix& matrix, Record record, bool fuse) {
  brontes::BatchOptions options;
  options.fuse = fuse;
  options.keep_marked_only = true;
  Batch batch(environment.device, options);
  const Tensor y = record(batch, batch.import_buffer(matrix.x));
  Buffer out = must(Buffer::create(environment.device, y.shape()));
  batch.store(y, out);
  return std::make_shared<Compiled>(Compiled{std::move(out), must(batch.compile())});
}

// What `reference` makes of the matrix is what the program must give.
template <class Reference>
Case program(const Environment& environment, const std::shared_ptr<Matrix>& matrix, Record record, bool fuse,
             Reference reference) {
  const std::shared_ptr<Compiled> compiled = compile(environment, *matrix, record, fuse);
  Case c;
  c.run = [matrix, compiled] { must(compiled->program.run()); };
  c.dump = [compiled] { return compiled->program.dump(); };
  c.bytes = 2.0 * sizeof(float) * static_cast<double>(compiled->out.size());
  c.check = [matrix, compiled, reference, run = c.run] {
    run();
    std::vector<float> x(matrix->x.size()), got(compiled->out.size());
    must(matrix->x.read(x));
    must(compiled->out.read(got));
    return compare(got, reference(x, matrix->rows, matrix->columns), 0);
  };
  return c;
}

std::vector<float> transposed(const std::vector<float>& x, std::size_t rows, std::size_t columns) {
  std::vector<float> y;
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < rows; ++i) y.push_back(x[i * columns + j]);
  }
  return y;
}

std::vector<float> copied(const std::vector<float>& x, std::size_t, std::size_t) { return x; }

std::vector<float> sliced(const std::vector<float>& x, std::size_t rows, std::size_t columns) {
  std::vector<float> y;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 4; j + 4 < columns; ++j) y.push_back(x[i * columns + j] < 0 ? 0 : x[i * columns + j]);
  }
  return y;
}

std::vector<float> joined(const std::vector<float>& x, std::size_t, std::size_t) {
  std::vector<float> y;
  for (float v : x) y.push_back(v < 0 ? 0 : v);
  for (float v : x) y.push_back(-v);
  return y;
}

std::shared_ptr<Matrix> matrix(const Environment& environment, std::size_t rows, std::size_t columns) {
  Buffer x = must(Buffer::create(environment.device, Shape(rows, columns)));
  must(x.write(noise(rows * columns, 1)));
  return std::make_shared<Matrix>(Matrix{rows, columns, std::move(x)});
}

std::string name(const char* what, std::size_t rows, std::size_t columns) {
  return std::string("views/") + what + "/" + std::to_string(rows) + "x" + std::to_string(columns);
}

}  // namespace

Suite views_suite() {
  Suite suite{"views", {}};
  for (const std::size_t n : {256u, 1024u, 4096u}) {
    suite.groups.push_back({name("transpose", n, n),
                            {"op", "copy"},
                            {{"op", "copy", n == 4096 ? 0.4 : 0}},
                            n == 256,
                            [=](const Environment& e) -> std::vector<Case> {
                              const auto x = matrix(e, n, n);
                              return {program(e, x, transpose, true, transposed), program(e, x, copy, true, copied)};
                            }});
  }
  for (const std::size_t n : {256u, 2048u}) {
    suite.groups.push_back(
        {name("slice-relu", n, n),
         {"fused", "apart"},
         {{"fused", "apart", 0}},
         n == 256,
         [=](const Environment& e) -> std::vector<Case> {
           const auto x = matrix(e, n, n);
           return {program(e, x, slice_relu, true, sliced), program(e, x, slice_relu, false, sliced)};
         }});
  }
  for (const std::size_t n : {256u, 2048u}) {
    suite.groups.push_back({name("concat", n, n),
                            {"in-place", "copied"},
                            {{"in-place", "copied", 0}},
                            n == 256,
                            [=](const Environment& e) -> std::vector<Case> {
                              const auto x = matrix(e, n, n);
                              return {program(e, x, concat, true, joined), program(e, x, concat, false, joined)};
                            }});
  }
  return suite;
}

}  // namespace brontes::bench
