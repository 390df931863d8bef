// Ops along rows of resident matrices, as Programs compiled before.
//
//   rows/OP/RxC/op       the op
//   rows/OP/RxC/unfused  the same out of elementwise ops and products with ones, a dispatch each. Its softmax saves
//   itself
//                        the maximum.
//   rows/OP/RxC/copy     a copy of the matrix: as fast as memory is moved
#include "suite.hpp"
#include "support.hpp"

#include <memory>
#include <utility>

namespace bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Shape;
using brontes::Tensor;

struct Data {
  const brontes::Device& device;
  std::size_t rows, columns;
  Buffer x, weight, bias, ones, out;
};
using Record = Tensor (*)(Batch& batch, const Data& data, Tensor x);

// Of every row, as a column.
Tensor row_sums(Batch& batch, const Data& data, Tensor x) {
  return batch.matmul(x, batch.import_buffer(data.ones), data.rows, data.columns, 1);
}

Tensor softmax(Batch& batch, const Data&, Tensor x) { return batch.softmax(x); }

Tensor softmax_unfused(Batch& batch, const Data& data, Tensor x) {
  const Tensor e = batch.exp(batch.offset(x, -1.0f));
  return batch.div(e, row_sums(batch, data, e));
}

Tensor layer_norm(Batch& batch, const Data& data, Tensor x) {
  return batch.layer_norm(x, batch.import_buffer(data.weight), batch.import_buffer(data.bias));
}

Tensor layer_norm_unfused(Batch& batch, const Data& data, Tensor x) {
  const float share = 1.0f / static_cast<float>(data.columns);
  const Tensor d = batch.sub(x, batch.scale(row_sums(batch, data, x), share));
  const Tensor variance = batch.scale(row_sums(batch, data, batch.mul(d, d)), share);
  const Tensor y = batch.div(d, batch.sqrt(batch.offset(variance, 1e-5f)));
  return batch.add(batch.mul(y, batch.import_buffer(data.weight)), batch.import_buffer(data.bias));
}

Tensor copy(Batch& batch, const Data&, Tensor x) { return batch.copy(x); }

Case program(const std::shared_ptr<Data>& data, Record record, bool fuse) {
  brontes::BatchOptions options;
  options.fuse = fuse;
  options.keep_marked_only = true;
  Batch batch(data->device, options);
  batch.store(record(batch, *data, batch.import_buffer(data->x)), data->out);
  auto compiled = std::make_shared<brontes::Program>(must(batch.compile()));
  Case c;
  c.run = [data, compiled] { must(compiled->run()); };
  c.bytes = 2.0 * sizeof(float) * static_cast<double>(data->rows * data->columns);
  return c;
}

std::vector<Case> cases(const Environment& environment, Record op, Record unfused, std::size_t rows,
                        std::size_t columns) {
  const auto buffer = [&](std::size_t count, std::uint32_t seed) {
    return resident(environment.device, noise(count, seed));
  };
  const Shape shape(rows, columns);
  Buffer x = must(Buffer::create(environment.device, shape));
  must(x.write(noise(rows * columns, 1)));
  Buffer out = must(Buffer::create(environment.device, shape));
  auto data = std::make_shared<Data>(
      Data{environment.device, rows, columns, std::move(x), buffer(columns, 2), buffer(columns, 3),
           resident(environment.device, std::vector<float>(columns, 1)), std::move(out)});
  std::vector<Case> all{program(data, op, true), program(data, unfused, false), program(data, copy, true)};
  auto result = [data](const std::function<void()>& run) {
    run();
    std::vector<float> got(data->rows * data->columns);
    must(data->out.read(got));
    return got;
  };
  // Each against the other.
  all[0].check = [result, run = all[0].run, other = all[1].run] { return compare(result(run), result(other), 1e-4); };
  all[1].check = all[0].check;
  all[2].check = [] { return std::string(); };
  return all;
}

}  // namespace

Suite rows_suite() {
  Suite suite{"rows", {}};
  const auto add = [&](const std::string& name, Record op, Record unfused, std::size_t rows, std::size_t columns) {
    suite.groups.push_back({"rows/" + name + "/" + std::to_string(rows) + "x" + std::to_string(columns),
                            {"op", "unfused", "copy"},
                            {{"op", "copy", 0.6}, {"op", "unfused", 3}},
                            rows * columns <= 100'000,
                            [=](const Environment& e) { return cases(e, op, unfused, rows, columns); }});
  };
  add("softmax", softmax, softmax_unfused, 64, 1024);
  add("softmax", softmax, softmax_unfused, 1024, 1024);
  add("softmax", softmax, softmax_unfused, 32, 32000);
  add("layer_norm", layer_norm, layer_norm_unfused, 1024, 1024);
  return suite;
}

}  // namespace bench
