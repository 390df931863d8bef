// Ops along rows of resident matrices, as Programs compiled before.
//
//   rows/OP/RxC/op       the op
//   rows/OP/RxC/unfused  the same out of elementwise ops and products with ones, a dispatch each. Its softmax saves
//                        itself the maximum.
//   rows/OP/RxC/copy     a copy of the matrix: as fast as memory is moved
//
//   prologue/OP/RxC/loaded   elementwise ops that run as the op loads its operand
//   prologue/OP/RxC/written  the same in a dispatch before it, which writes the operand
//
//   broadcast/add/RxC/row, column, full   the matrix plus a row, a column or another matrix
#include "suites.hpp"
#include "support.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Shape;
using brontes::Tensor;

struct Data {
  const brontes::Device& device;
  std::size_t rows, columns;
  Buffer x, mask, weight, bias, ones;
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

Tensor sum_rows(Batch& batch, const Data&, Tensor x) { return batch.sum(x, {1}); }

Tensor sum_columns(Batch& batch, const Data&, Tensor x) { return batch.sum(x, {0}); }

Tensor sum_columns_unfused(Batch& batch, const Data& data, Tensor x) {
  return batch.matmul(batch.import_buffer(data.ones), x, 1, data.rows, data.columns);
}

Tensor copy(Batch& batch, const Data&, Tensor x) { return batch.copy(x); }

// The operand of an op, by elementwise ops.
Tensor square(Batch& batch, const Data&, Tensor x) { return batch.square(x); }
Tensor masked(Batch& batch, const Data& data, Tensor x) {
  return batch.add(batch.scale(x, 0.125f), batch.import_buffer(data.mask));
}

Tensor sum(Batch& batch, const Data&, Tensor x) { return batch.sum(x); }

Tensor add_row(Batch& batch, const Data& data, Tensor x) { return batch.add(x, batch.import_buffer(data.bias)); }
Tensor add_column(Batch& batch, const Data& data, Tensor x) {
  const Tensor column = batch.slice(batch.import_buffer(data.ones), 0, {0, static_cast<std::int64_t>(data.rows)});
  return batch.add(x, batch.reshape(column, Shape(data.rows, 1)));
}
Tensor add_full(Batch& batch, const Data& data, Tensor x) { return batch.add(x, batch.import_buffer(data.mask)); }

struct Run {
  Case timed;
  std::function<std::vector<float>()> result;
};

Run program(const std::shared_ptr<Data>& data, bool fuse, const std::function<Tensor(Batch&, Tensor)>& record) {
  brontes::BatchOptions options;
  options.fuse = fuse;
  options.keep_marked_only = true;
  Batch batch(data->device, options);
  const Tensor result = record(batch, batch.import_buffer(data->x));
  auto out = std::make_shared<Buffer>(must(Buffer::create(data->device, result.shape())));
  batch.store(result, *out);
  auto compiled = std::make_shared<brontes::Program>(must(batch.compile()));
  Run made;
  made.timed.run = [data, out, compiled] { must(compiled->run()); };
  made.timed.bytes = sizeof(float) * static_cast<double>(data->x.size() + out->size());
  made.timed.dump = [compiled] { return compiled->dump(); };
  made.result = [out, run = made.timed.run] {
    run();
    std::vector<float> got(out->size());
    must(out->read(got));
    return got;
  };
  return made;
}

std::shared_ptr<Data> make_data(const Environment& environment, std::size_t rows, std::size_t columns) {
  const auto buffer = [&](std::size_t count, std::uint32_t seed) {
    return resident(environment.device, noise(count, seed));
  };
  const auto matrix = [&](std::uint32_t seed) {
    Buffer made = must(Buffer::create(environment.device, Shape(rows, columns)));
    must(made.write(noise(rows * columns, seed)));
    return made;
  };
  return std::make_shared<Data>(Data{environment.device, rows, columns, matrix(1), matrix(4), buffer(columns, 2),
                                     buffer(columns, 3),
                                     resident(environment.device, std::vector<float>(std::max(rows, columns), 1))});
}

// The first two against each other.
std::vector<Case> checked(std::vector<Run> runs) {
  const auto check = [a = runs[0].result, b = runs[1].result] {
    const std::vector<float> got = a();
    // A sum of thousands of elements may be off by what a product may.
    return compare(got, b(), got.size() < 10'000 ? 4e-3 : 1e-4);
  };
  std::vector<Case> all;
  for (Run& run : runs) {
    all.push_back(std::move(run.timed));
    all.back().check = [] { return std::string(); };
  }
  all[0].check = all[1].check = check;
  return all;
}

}  // namespace

Suite rows_suite() {
  Suite suite{"rows", {}};
  const auto size = [](std::size_t rows, std::size_t columns) {
    return std::to_string(rows) + "x" + std::to_string(columns);
  };
  const auto add = [&](const std::string& name, Record op, Record unfused, std::size_t rows, std::size_t columns,
                       double of_copy = 0.6) {
    suite.groups.push_back({"rows/" + name + "/" + size(rows, columns),
                            {"op", "unfused", "copy"},
                            {{"op", "copy", of_copy}, {"op", "unfused", 3}},
                            rows * columns <= 100'000,
                            [=](const Environment& e) {
                              const auto data = make_data(e, rows, columns);
                              const auto with = [&](Record record) {
                                return [=](Batch& batch, Tensor x) { return record(batch, *data, x); };
                              };
                              return checked({program(data, true, with(op)), program(data, false, with(unfused)),
                                              program(data, true, with(copy))});
                            }});
  };
  add("softmax", softmax, softmax_unfused, 64, 1024);
  add("softmax", softmax, softmax_unfused, 1024, 1024);
  add("softmax", softmax, softmax_unfused, 32, 32000);
  add("layer_norm", layer_norm, layer_norm_unfused, 1024, 1024);
  // 0.6 of the bytes per second: a sum moves half the bytes of a copy.
  add("sum-axis-1", sum_rows, row_sums, 4096, 4096, 1.2);
  add("sum-axis-0", sum_columns, sum_columns_unfused, 4096, 4096, 1.2);

  const auto add_prologue = [&](const std::string& name, Record before, Record op, std::size_t rows,
                                std::size_t columns) {
    suite.groups.push_back({"prologue/" + name + "/" + size(rows, columns),
                            {"loaded", "written"},
                            {{"loaded", "written", 1}},
                            rows * columns <= 100'000,
                            [=](const Environment& e) {
                              const auto data = make_data(e, rows, columns);
                              const auto with = [&](bool written) {
                                return [=](Batch& batch, Tensor x) {
                                  const Tensor operand = before(batch, *data, x);
                                  return op(batch, *data, written ? batch.keep(operand) : operand);
                                };
                              };
                              return checked({program(data, true, with(false)), program(data, true, with(true))});
                            }});
  };
  const auto add_broadcast = [&](std::size_t rows, std::size_t columns) {
    suite.groups.push_back(
        {"broadcast/add/" + size(rows, columns),
         {"row", "column", "full"},
         {{"row", "full"}, {"column", "full"}},
         rows * columns <= 100'000,
         [=](const Environment& e) {
           const auto data = make_data(e, rows, columns);
           std::vector<Case> all;
           for (const Record record : {add_row, add_column, add_full}) {
             all.push_back(program(data, true, [=](Batch& batch, Tensor x) { return record(batch, *data, x); }).timed);
             all.back().check = [] { return std::string(); };
           }
           return all;
         }});
  };
  add_broadcast(64, 1024);
  add_broadcast(1024, 1024);

  add_prologue("square-sum", square, sum, 64, 1024);
  add_prologue("square-sum", square, sum, 1024, 1024);
  add_prologue("square-sum-axis-0", square, sum_columns, 1024, 1024);
  add_prologue("scale-mask-softmax", masked, softmax, 1024, 1024);
  add_prologue("scale-mask-softmax", masked, softmax, 32, 32000);
  add_prologue("scale-mask-layer_norm", masked, layer_norm, 1024, 1024);
  return suite;
}

}  // namespace brontes::bench
