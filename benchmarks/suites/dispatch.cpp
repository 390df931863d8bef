// What an op costs when it computes next to nothing.
//
//   dispatch/tiny-ops/N     N independent ops on 64 elements
//   dispatch/tiny-chain/N   N ops, each on the result of the one before: a barrier between any two
//
//   one-batch        recorded, planned, encoded and run with one submit
//   one-submit-each  a submit and a wait per op
//   replay           one run of a Program that was compiled before
//   compile          recorded, planned and encoded, and dropped: all of the host's work but the submit
//   record           recorded and dropped
#include "suites.hpp"
#include "support.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Program;
using brontes::Tensor;

constexpr std::size_t tiny = 64;

struct Data {
  const brontes::Device& device;
  std::vector<float> host;
  Buffer x;
  std::size_t ops;
};

std::shared_ptr<Data> make_data(const Environment& environment, std::size_t ops) {
  std::vector<float> host = noise(tiny, 3);
  Buffer x = resident(environment.device, host);
  return std::make_shared<Data>(Data{environment.device, std::move(host), std::move(x), ops});
}

std::vector<float> plus(std::vector<float> values, float amount) {
  for (float& v : values) v += amount;
  return values;
}

std::string one_submit(const Batch& batch) {
  return batch.stats().submits == 1 ? "" : std::to_string(batch.stats().submits) + " submits instead of 1";
}

Case per_op(const std::shared_ptr<Data>& data, std::function<void()> run, std::function<std::string()> check) {
  Case c;
  c.run = std::move(run);
  c.check = std::move(check);
  c.items = static_cast<double>(data->ops);
  c.item = "op";
  return c;
}

// Op i of the independent ones; no two are the same, so that none can stand in for another.
Tensor independent(Batch& batch, Tensor x, std::size_t i) { return batch.offset(x, static_cast<float>(i)); }

std::vector<Tensor> record_independent(const Data& data, Batch& batch) {
  const Tensor x = batch.import_buffer(data.x);
  std::vector<Tensor> results;
  results.reserve(data.ops);
  for (std::size_t i = 0; i < data.ops; ++i) results.push_back(independent(batch, x, i));
  return results;
}

Tensor record_chain(const Data& data, Batch& batch) {
  Tensor y = batch.import_buffer(data.x);
  for (std::size_t i = 0; i < data.ops; ++i) y = batch.offset(y, 1.0f);
  return y;
}

std::string check_recorded(const Data& data, const Batch& batch) {
  must(batch.error());
  if (batch.num_operations() == data.ops) return {};
  return std::to_string(batch.num_operations()) + " ops recorded instead of " + std::to_string(data.ops);
}

// `steps` records the ops. The program is made by the check, which comes first.
Case replay(const std::shared_ptr<Data>& data, std::function<Tensor(Batch&)> steps, float amount, double tolerance) {
  auto program = std::make_shared<std::optional<Program>>();
  Case c = per_op(
      data, [program] { must((*program)->run()); },
      [data, program, steps, amount, tolerance] {
        Batch batch(data->device);
        const Tensor y = steps(batch);
        *program = must(batch.compile());
        must((*program)->run());
        return compare(must((*program)->read(y)), plus(data->host, amount), tolerance);
      });
  c.dump = [program] { return (*program)->dump(); };
  return c;
}

Case dumped(const std::shared_ptr<Data>& data, std::function<void(Batch&)> steps, Case c) {
  c.dump = [data, steps = std::move(steps)] { return dump_of(data->device, steps); };
  return c;
}

Case compile(const std::shared_ptr<Data>& data, std::function<void(Batch&)> steps) {
  auto run = [data, steps] {
    Batch batch(data->device);
    steps(batch);
    must(batch.compile());
  };
  return per_op(data, run, [data, steps] {
    Batch batch(data->device);
    steps(batch);
    const Program program = must(batch.compile());
    return check_recorded(*data, batch);
  });
}

Case record(const std::shared_ptr<Data>& data, std::function<void(Batch&)> steps) {
  auto run = [data, steps] {
    Batch batch(data->device);
    steps(batch);
  };
  return per_op(data, run, [data, steps] {
    Batch batch(data->device);
    steps(batch);
    return check_recorded(*data, batch);
  });
}

std::vector<Case> independent_ops(const Environment& environment, std::size_t ops) {
  auto data = make_data(environment, ops);

  auto check_batch = [data] {
    Batch batch(data->device);
    const std::vector<Tensor> results = record_independent(*data, batch);
    must(batch.execute());
    for (const std::size_t i : {std::size_t{0}, data->ops / 2, data->ops - 1}) {
      const std::vector<float> want = plus(data->host, static_cast<float>(i));
      std::string wrong = compare(must(batch.read(results[i])), want, 1e-3);
      if (!wrong.empty()) return "op " + std::to_string(i) + ": " + wrong;
    }
    return one_submit(batch);
  };
  auto check_each = [data] {
    Batch batch(data->device);
    const Tensor y = independent(batch, batch.import_buffer(data->x), 7);
    must(batch.execute());
    return compare(must(batch.read(y)), plus(data->host, 7.0f), 1e-6);
  };

  auto steps = [data](Batch& batch) { record_independent(*data, batch); };
  return {dumped(data, steps,
                 per_op(
                     data,
                     [data, steps] {
                       Batch batch(data->device);
                       steps(batch);
                       must(batch.execute());
                     },
                     check_batch)),
          per_op(
              data,
              [data] {
                for (std::size_t i = 0; i < data->ops; ++i) {
                  Batch batch(data->device);
                  independent(batch, batch.import_buffer(data->x), i);
                  must(batch.execute());
                }
              },
              check_each),
          replay(
              data, [data](Batch& batch) { return record_independent(*data, batch).back(); },
              static_cast<float>(ops - 1), 1e-3),
          dumped(data, steps, compile(data, steps)), record(data, steps)};
}

std::vector<Case> chained_ops(const Environment& environment, std::size_t ops) {
  auto data = make_data(environment, ops);

  // Every step may round: half an ulp of a number below 2048, at most once per op.
  const double tolerance = static_cast<double>(ops) * 6.2e-5;
  const auto total = static_cast<float>(ops);
  // Leaves the result in `y`.
  auto one_batch = [data](Batch& batch, Tensor& y) {
    y = record_chain(*data, batch);
    must(batch.execute());
  };
  auto one_each = [data](Batch& batch, Tensor& y) {
    y = batch.import_buffer(data->x);
    for (std::size_t i = 0; i < data->ops; ++i) {
      y = batch.offset(y, 1.0f);
      must(batch.execute());
    }
  };
  auto make = [&](auto steps, bool single) {
    return per_op(
        data,
        [data, steps] {
          Batch batch(data->device);
          Tensor y;
          steps(batch, y);
        },
        [data, steps, single, tolerance, total] {
          Batch batch(data->device);
          Tensor y;
          steps(batch, y);
          std::string wrong = compare(must(batch.read(y)), plus(data->host, total), tolerance);
          return wrong.empty() && single ? one_submit(batch) : wrong;
        });
  };

  auto chain = [data](Batch& batch) { return record_chain(*data, batch); };
  return {dumped(data, chain, make(one_batch, true)), make(one_each, false), replay(data, chain, total, tolerance),
          dumped(data, chain, compile(data, chain)), record(data, chain)};
}

}  // namespace

Suite dispatch_suite() {
  const std::vector<std::string> variants{"one-batch", "one-submit-each", "replay", "compile", "record"};
  const std::vector<Comparison> comparisons{{"one-batch", "one-submit-each"}, {"replay", "one-batch"}};
  Suite suite{"dispatch", {}};
  for (const std::size_t ops : {100u, 1'000u, 10'000u}) {
    suite.groups.push_back({"dispatch/tiny-ops/" + std::to_string(ops), variants, comparisons, ops <= 1'000,
                            [ops](const Environment& e) { return independent_ops(e, ops); }});
  }
  for (const std::size_t ops : {100u, 1'000u}) {
    suite.groups.push_back({"dispatch/tiny-chain/" + std::to_string(ops), variants, comparisons, ops <= 100,
                            [ops](const Environment& e) { return chained_ops(e, ops); }});
  }
  return suite;
}

}  // namespace brontes::bench
