#include <brontes/matmul_cache.hpp>

#include "api/access.hpp"
#include "plan/plan.hpp"
#include "record/graph.hpp"
#include "record/shape.hpp"
#include "submit/program.hpp"
#include "tune/verifier.hpp"
#include "util/hash.hpp"

#include <brontes/buffer.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace brontes {
namespace {

using record::ElementwiseOp;
using record::ValueId;

std::optional<ElementwiseOp> op_of(Activation activation) {
  switch (activation) {
    case Activation::none: break;
    case Activation::relu: return ElementwiseOp::relu;
    case Activation::sigmoid: return ElementwiseOp::sigmoid;
    case Activation::tanh: return ElementwiseOp::tanh;
    case Activation::swish: return ElementwiseOp::swish;
    case Activation::gelu: return ElementwiseOp::gelu;
    case Activation::gelu_tanh: return ElementwiseOp::gelu_tanh;
  }
  return std::nullopt;
}

struct Entry {
  std::uint64_t id = 0;  // never used again, unlike a name
  std::shared_ptr<const Weight> weight;
  std::optional<Buffer> bias;

  std::uint64_t bytes() const { return weight->bytes() + (bias ? bias->bytes() : 0); }
};

// What a program is for.
struct Key {
  std::uint64_t entry = 0;
  std::uint64_t m = 0;
  std::uint32_t alpha_bits = 0;
  Activation activation = Activation::none;
  bool bias = false;

  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::uint64_t hash = 0;
    for (std::uint64_t word :
         {key.entry, key.m,
          std::uint64_t{key.alpha_bits} << 16 | static_cast<std::uint64_t>(key.activation) << 1 | key.bias}) {
      hash = util::mix(hash, word);
    }
    return static_cast<std::size_t>(hash);
  }
};

struct Kept {
  Key key;
  std::unique_ptr<submit::Program> program;
  std::uint64_t operations = 0;
};

std::string quoted(const char* call, std::string_view name) {
  return std::string(call) + " '" + std::string(name) + "': ";
}

Error with_name(const char* call, std::string_view name, Error e) {
  e.message = quoted(call, name) + e.message;
  return e;
}

}  // namespace

const char* to_string(Activation activation) noexcept {
  if (activation == Activation::none) return "none";
  const auto op = op_of(activation);
  return op ? record::info(*op).name : "unknown";
}

struct MatmulCache::State final : vk::Reclaimer {
  State(std::shared_ptr<engine::Engine> device_engine, const MatmulCacheOptions& cache_options)
      : engine(std::move(device_engine)), context(engine ? engine->context() : nullptr), options(cache_options) {
    options.max_programs = std::max<std::size_t>(1, options.max_programs);
    if (context) context->memory().add(*context, *this);
  }
  ~State() {
    if (context) context->memory().remove(*context, *this);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// The mutex. Not held in a forked process, where its owner may be a thread that does not exist.
  class Lock {
   public:
    explicit Lock(const State& state) : state_(state) {
      if (state.context && state.context->abandoned()) return;
      lock_ = std::unique_lock(state.mutex);
      state.in_use = true;
    }
    ~Lock() {
      if (lock_) state_.in_use = false;
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    explicit operator bool() const { return lock_.owns_lock(); }

   private:
    const State& state_;
    std::unique_lock<std::mutex> lock_;
  };

  // Not while the cache is in use, by this very thread perhaps.
  void reclaim() noexcept override {
    if (in_use) return;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (lock) trim();
  }

  const std::shared_ptr<engine::Engine> engine;  // null when the Device had been moved from
  const std::shared_ptr<vk::Context> context;    // its own, or null
  MatmulCacheOptions options;

  mutable std::mutex mutex;  // for all that follows
  mutable std::atomic<bool> in_use{false};
  std::map<std::string, Entry, std::less<>> entries;
  std::uint64_t last_id = 0;
  std::list<Kept> programs;  // the last used first
  std::unordered_map<Key, std::list<Kept>::iterator, KeyHash> by_key;
  submit::SharedMemory io;
  BatchStats past;  // of programs that are gone, and of `io`

  // Takes the mutex.
  Error matmul(std::string_view name, Span<const float> input, Span<float> output, std::uint64_t m,
               const MatmulEpilogue& epilogue);

  // The mutex must be held by whoever calls these.
  Error not_found(const char* call, std::string_view name) const;
  void drop(std::list<Kept>::iterator kept) noexcept;
  void drop_programs() noexcept;
  void drop_programs_of(std::uint64_t entry) noexcept;
  void trim() noexcept;
  Result<Kept*> program_for(const Entry& entry, std::uint64_t m, const MatmulEpilogue& epilogue);
  Result<Kept> build(const Key& key, const Entry& entry, float alpha);
  Error make_room(const plan::Plan& plan);

  enum class Put : std::uint8_t { fresh, replacing };
  template <class Make>
  Error put(const char* call, std::string_view name, Put how, Span<const float> bias, std::uint64_t rows, Make make);
  Error check_put(const char* call, std::string_view name, Put how) const;
};

Error MatmulCache::State::not_found(const char* call, std::string_view name) const {
  std::string message = std::string(call) + ": there is no weight '" + std::string(name) + "'; ";
  if (entries.empty()) {
    message += "the cache is empty: upload it with upload_weight() first";
  } else {
    constexpr std::size_t some = 8;
    message += "upload it with upload_weight() first, or use one of these " + std::to_string(entries.size()) + ": ";
    std::size_t listed = 0;
    for (const auto& [known, entry] : entries) {
      if (listed == some) {
        message += ", ...";
        break;
      }
      message += (listed++ == 0 ? "" : ", ") + known;
    }
  }
  return Error(Errc::not_found, std::move(message));
}

void MatmulCache::State::drop(std::list<Kept>::iterator kept) noexcept {
  submit::add(past, kept->program->stats());
  past.operations += kept->operations;
  by_key.erase(kept->key);
  programs.erase(kept);
}

void MatmulCache::State::drop_programs() noexcept {
  while (!programs.empty()) drop(programs.begin());
}

void MatmulCache::State::drop_programs_of(std::uint64_t entry) noexcept {
  for (auto it = programs.begin(); it != programs.end();) {
    const auto kept = it++;
    if (kept->key.entry == entry) drop(kept);
  }
}

void MatmulCache::State::trim() noexcept {
  drop_programs();
  io = {};
}

Error MatmulCache::State::make_room(const plan::Plan& plan) {
  vk::Memory& memory = context->memory();
  auto short_of = [](const std::shared_ptr<vk::Allocation>& have, std::uint64_t bytes) {
    return bytes != 0 && (!have || have->bytes() < bytes);
  };
  auto grow = [&](std::shared_ptr<vk::Allocation>& into, std::uint64_t bytes, vk::MemoryUse use,
                  const char* name) -> Error {
    if (!short_of(into, bytes)) return {};
    // Programs are encoded for the memory that goes.
    drop_programs();
    into.reset();
    const std::uint64_t rounded = bytes > memory.max_bytes() / 2 ? bytes : std::bit_ceil(bytes);
    auto made = memory.allocate(context, rounded, use, name);
    if (!made) return made.error();
    into = std::move(*made);
    ++past.allocations;
    return {};
  };
  if (Error e = grow(io.arena, plan.arena_bytes, vk::MemoryUse::device, "brontes cache arena")) return e;
  const MemoryNeeds needs = submit::needs_of(plan, *context);
  if (Error e = grow(io.staging, needs.upload_bytes, vk::MemoryUse::upload, "brontes cache staging")) return e;
  return grow(io.readback, needs.readback_bytes, vk::MemoryUse::readback, "brontes cache readback");
}

Result<Kept> MatmulCache::State::build(const Key& key, const Entry& entry, float alpha) {
  record::Graph graph(engine->traits().max_storage_range);
  const Weight& weight = *entry.weight;
  submit::Program::Resources resources = WeightAccess::parts(weight);

  const ValueId w = graph.import_weight(weight.shape(), weight.dtype(), 0, WeightAccess::part_rows(weight));
  auto x = graph.input(Shape(key.m, weight.columns()));
  if (!x) return x.error();
  MatmulOptions matmul;
  matmul.alpha = alpha;
  matmul.layout = Layout::nk;
  matmul.kernel = options.kernel;
  matmul.precision = options.precision;
  auto y = plan::matmul(graph, *x, w, matmul);
  if (!y) return y.error();
  if (key.bias) {
    const auto resource = static_cast<record::ResourceId>(resources.size());
    resources.push_back(BufferAccess::memory(*entry.bias));
    const ValueId operands[] = {*y, graph.import(entry.bias->shape(), resource)};
    y = record::elementwise(graph, ElementwiseOp::add, operands);
    if (!y) return y.error();
  }
  if (const auto op = op_of(key.activation)) {
    const ValueId operands[] = {*y};
    y = record::elementwise(graph, *op, operands);
    if (!y) return y.error();
  }

  plan::PlanOptions planning;
  planning.programs = &engine->programs();
  planning.seconds_per_submit = engine->seconds_per_submit(0);
  auto plan = tune::make_checked_plan(engine, graph, planning);
  if (!plan) return plan.error();
  if (Error e = make_room(*plan)) return e;
  auto program = submit::Program::create(context, std::move(*plan), std::move(resources), encode::Use::often, io, {},
                                         engine->gauge());
  if (!program) return program.error();
  return Kept{key, std::move(*program), graph.nodes().size()};
}

Result<Kept*> MatmulCache::State::program_for(const Entry& entry, std::uint64_t m, const MatmulEpilogue& epilogue) {
  const Key key{entry.id, m, std::bit_cast<std::uint32_t>(epilogue.alpha), epilogue.activation,
                epilogue.bias && entry.bias.has_value()};
  if (const auto found = by_key.find(key); found != by_key.end()) {
    programs.splice(programs.begin(), programs, found->second);
    return &programs.front();
  }
  // Before the new one is made, so that it can have the pools of those that go.
  while (programs.size() >= options.max_programs) drop(std::prev(programs.end()));
  auto kept = build(key, entry, epilogue.alpha);
  if (!kept) return kept.error();
  programs.push_front(std::move(*kept));
  try {
    by_key.emplace(key, programs.begin());
  } catch (const std::bad_alloc&) {
    programs.pop_front();
    throw;
  }
  return &programs.front();
}

Error MatmulCache::State::check_put(const char* call, std::string_view name, Put how) const {
  const auto found = entries.find(name);
  if (how == Put::replacing) return found == entries.end() ? not_found(call, name) : Error();
  if (found == entries.end()) return {};
  const Weight& weight = *found->second.weight;
  return Error(Errc::already_exists, quoted(call, name) + "there is such a weight, " + to_string(weight.shape()) +
                                         " in " + to_string(weight.dtype()) +
                                         "; replace_weight() puts another in its place");
}

template <class Make>
Error MatmulCache::State::put(const char* call, std::string_view name, Put how, Span<const float> bias,
                              std::uint64_t rows, Make make) {
  if (!context) return Error(Errc::invalid_argument, quoted(call, name) + "the cache's Device had been moved from");
  if (name.empty()) return Error(Errc::invalid_argument, std::string(call) + ": a weight needs a name");
  if (Error e = context->usable()) return with_name(call, name, std::move(e));
  {
    const Lock lock(*this);
    if (Error e = check_put(call, name, how)) return e;
  }
  if (bias.size() != 0 && bias.size() != rows) {
    return Error(Errc::shape_mismatch, quoted(call, name) + "a bias of " + std::to_string(bias.size()) +
                                           " elements for a weight of " + std::to_string(rows) +
                                           " rows; expected one per row, or none");
  }
  if (bias.data() == nullptr && bias.size() != 0) {
    return Error(Errc::null_data,
                 quoted(call, name) + "a null pointer for a bias of " + std::to_string(bias.size()) + " elements");
  }

  const Device device = DeviceAccess::make(engine);
  Result<Weight> weight = make(device);
  if (!weight) return with_name(call, name, weight.error());
  Entry entry;
  entry.weight = std::make_shared<const Weight>(std::move(*weight));
  if (!bias.empty()) {
    auto buffer = Buffer::from(device, bias);
    if (!buffer) return with_name(call, name, buffer.error());
    entry.bias.emplace(std::move(*buffer));
  }

  const Lock lock(*this);
  // Another thread may have been faster.
  if (Error e = check_put(call, name, how)) return e;
  entry.id = ++last_id;
  const auto [place, inserted] = entries.try_emplace(std::string(name));
  if (!inserted) drop_programs_of(place->second.id);
  place->second = std::move(entry);
  return {};
}

MatmulCache::MatmulCache(const Device& device, const MatmulCacheOptions& options)
    : state_(value_or_empty([&] { return std::make_unique<State>(DeviceAccess::engine(device), options); })) {}
MatmulCache::MatmulCache(MatmulCache&&) noexcept = default;
MatmulCache& MatmulCache::operator=(MatmulCache&&) noexcept = default;
MatmulCache::~MatmulCache() = default;

namespace {

Error no_state(const char* call) {
  return Error(Errc::invalid_argument,
               std::string(call) + ": the MatmulCache has been moved from, or there was no memory to make it");
}

}  // namespace

Error MatmulCache::upload_weight(std::string_view name, Span<const float> data, std::uint64_t rows,
                                 std::uint64_t columns, DType type, Span<const float> bias) {
  return guarded("upload_weight", [&]() -> Error {
    if (!state_) return no_state("upload_weight");
    return state_->put("upload_weight", name, State::Put::fresh, bias, rows,
                       [&](const Device& device) { return Weight::from(device, data, rows, columns, type); });
  });
}

Error MatmulCache::upload_stored(std::string_view name, Span<const std::byte> data, std::uint64_t rows,
                                 std::uint64_t columns, DType type, Span<const float> bias) {
  return guarded("upload_stored", [&]() -> Error {
    if (!state_) return no_state("upload_stored");
    return state_->put("upload_stored", name, State::Put::fresh, bias, rows,
                       [&](const Device& device) { return Weight::from_stored(device, data, rows, columns, type); });
  });
}

Error MatmulCache::replace_weight(std::string_view name, Span<const float> data, std::uint64_t rows,
                                  std::uint64_t columns, DType type, Span<const float> bias) {
  return guarded("replace_weight", [&]() -> Error {
    if (!state_) return no_state("replace_weight");
    return state_->put("replace_weight", name, State::Put::replacing, bias, rows,
                       [&](const Device& device) { return Weight::from(device, data, rows, columns, type); });
  });
}

Error MatmulCache::replace_stored(std::string_view name, Span<const std::byte> data, std::uint64_t rows,
                                  std::uint64_t columns, DType type, Span<const float> bias) {
  return guarded("replace_stored", [&]() -> Error {
    if (!state_) return no_state("replace_stored");
    return state_->put("replace_stored", name, State::Put::replacing, bias, rows,
                       [&](const Device& device) { return Weight::from_stored(device, data, rows, columns, type); });
  });
}

bool MatmulCache::evict(std::string_view name) {
  if (!state_) return false;
  const State::Lock lock(*state_);
  if (!lock) return false;
  const auto found = state_->entries.find(name);
  if (found == state_->entries.end()) return false;
  state_->drop_programs_of(found->second.id);
  state_->entries.erase(found);
  return true;
}

void MatmulCache::clear() {
  if (!state_) return;
  const State::Lock lock(*state_);
  if (!lock) return;
  state_->drop_programs();
  state_->entries.clear();
}

bool MatmulCache::contains(std::string_view name) const {
  if (!state_) return false;
  const State::Lock lock(*state_);
  return lock && state_->entries.find(name) != state_->entries.end();
}

std::size_t MatmulCache::weight_count() const {
  if (!state_) return 0;
  const State::Lock lock(*state_);
  return lock ? state_->entries.size() : 0;
}

std::uint64_t MatmulCache::weight_bytes() const {
  if (!state_) return 0;
  const State::Lock lock(*state_);
  std::uint64_t total = 0;
  if (!lock) return total;
  for (const auto& [name, entry] : state_->entries) total += entry.bytes();
  return total;
}

std::vector<std::string> MatmulCache::names() const {
  if (!state_) return {};
  return value_or_empty([&]() -> std::vector<std::string> {
    const State::Lock lock(*state_);
    std::vector<std::string> result;
    if (!lock) return result;
    result.reserve(state_->entries.size());
    for (const auto& [name, entry] : state_->entries) result.push_back(name);
    return result;
  });
}

Result<CachedWeightInfo> MatmulCache::info(std::string_view name) const {
  return guarded("info", [&]() -> Result<CachedWeightInfo> {
    if (!state_) return no_state("info");
    const State::Lock lock(*state_);
    if (!lock) return state_->context->usable();
    const auto found = state_->entries.find(name);
    if (found == state_->entries.end()) return state_->not_found("info", name);
    const Entry& entry = found->second;
    CachedWeightInfo info;
    info.shape = entry.weight->shape();
    info.dtype = entry.weight->dtype();
    info.bytes = entry.bytes();
    info.parts = entry.weight->parts();
    info.bias = entry.bias.has_value();
    return info;
  });
}

Result<std::shared_ptr<const Weight>> MatmulCache::weight(std::string_view name) const {
  return guarded("weight", [&]() -> Result<std::shared_ptr<const Weight>> {
    if (!state_) return no_state("weight");
    const State::Lock lock(*state_);
    if (!lock) return state_->context->usable();
    const auto found = state_->entries.find(name);
    if (found == state_->entries.end()) return state_->not_found("weight", name);
    return found->second.weight;
  });
}

namespace {

Error check_matrix(std::string_view name, const char* which, const void* data, std::uint64_t given, std::uint64_t m,
                   const char* width_name, std::uint64_t width) {
  const auto expected = record::product(m, width);
  if (!expected) {
    return Error(Errc::size_overflow, quoted("matmul", name) + "m = " + std::to_string(m) + " rows of " + width_name +
                                          " = " + std::to_string(width) + " do not fit in 64 bits");
  }
  if (given != *expected) {
    return Error(Errc::shape_mismatch, quoted("matmul", name) + std::to_string(given) + " elements of " + which +
                                           " for m = " + std::to_string(m) + " rows of " + width_name + " = " +
                                           std::to_string(width) + "; expected " + std::to_string(*expected));
  }
  if (data == nullptr && given != 0) {
    return Error(Errc::null_data,
                 quoted("matmul", name) + "a null pointer for " + std::to_string(given) + " elements of " + which);
  }
  return {};
}

}  // namespace

Error MatmulCache::State::matmul(std::string_view name, Span<const float> input, Span<float> output, std::uint64_t m,
                                 const MatmulEpilogue& epilogue) {
  if (!context) {
    return Error(Errc::invalid_argument, quoted("matmul", name) + "the cache's Device had been moved from");
  }
  if (epilogue.activation != Activation::none && !op_of(epilogue.activation)) {
    return Error(Errc::invalid_argument, quoted("matmul", name) + "there is no activation " +
                                             std::to_string(static_cast<unsigned>(epilogue.activation)));
  }
  if (Error e = context->usable()) return with_name("matmul", name, std::move(e));
  const Lock lock(*this);
  const auto found = entries.find(name);
  if (found == entries.end()) return not_found("matmul", name);
  const Entry& entry = found->second;
  const Weight& weight = *entry.weight;
  if (Error e = check_matrix(name, "input", input.data(), input.size(), m, "K", weight.columns())) return e;
  if (Error e = check_matrix(name, "output", output.data(), output.size(), m, "N", weight.rows())) return e;
  if (output.empty()) return {};

  auto kept = program_for(entry, m, epilogue);
  if (!kept) return with_name("matmul", name, kept.error());
  submit::Program& program = *(*kept)->program;
  const plan::Placement& x = program.plan().uploads[0];
  const plan::Placement& y = program.plan().readable[0];
  // A call whose wait failed may have left the shared memory in use.
  Error e = context->queue().wait(io.arena->last_use);
  if (!e) e = program.write(x.offset, input.data(), x.bytes);
  if (!e) e = program.submit().error();
  if (!e) e = program.read(y.offset, output.data(), y.bytes);
  return e ? with_name("matmul", name, std::move(e)) : Error();
}

Error MatmulCache::matmul(std::string_view name, Span<const float> input, Span<float> output, std::uint64_t m,
                          const MatmulEpilogue& epilogue) {
  return guarded("matmul", [&]() -> Error {
    return state_ ? state_->matmul(name, input, output, m, epilogue) : no_state("matmul");
  });
}

std::uint64_t MatmulCache::io_bytes() const {
  if (!state_) return 0;
  const State::Lock lock(*state_);
  std::uint64_t total = 0;
  if (!lock) return total;
  for (const auto* memory : {&state_->io.arena, &state_->io.staging, &state_->io.readback}) {
    if (*memory) total += (*memory)->bytes();
  }
  return total;
}

std::size_t MatmulCache::program_count() const {
  if (!state_) return 0;
  const State::Lock lock(*state_);
  return lock ? state_->programs.size() : 0;
}

void MatmulCache::trim() {
  if (!state_) return;
  const State::Lock lock(*state_);
  if (lock) state_->trim();
}

BatchStats MatmulCache::stats() const {
  if (!state_) return {};
  const State::Lock lock(*state_);
  if (!lock) return {};
  BatchStats stats = state_->past;
  for (const Kept& kept : state_->programs) {
    submit::add(stats, kept.program->stats());
    stats.operations += kept.operations;
  }
  stats.arena_bytes = stats.arena_bytes_without_reuse = state_->io.arena ? state_->io.arena->bytes() : 0;
  return stats;
}

}  // namespace brontes
