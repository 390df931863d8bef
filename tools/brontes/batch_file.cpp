#include "batch_file.hpp"

#include "input_error.hpp"
#include "json_reader.hpp"
#include "npy.hpp"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>

namespace tool {
namespace {

using brontes::Axes;
using brontes::Batch;
using brontes::DType;
using brontes::Range;
using brontes::Shape;
using brontes::Span;
using brontes::Tensor;
using Kind = JsonValue::Kind;
namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path, ignored)) throw InputError(path.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

[[noreturn]] void fail(const JsonValue& at, const std::string& what) {
  throw InputError("line " + std::to_string(at.line) + ": " + what);
}

// An object whose members are asked for by name; those that nobody asked for are an error.
class Members {
 public:
  Members(const JsonValue& object, std::string what) : object_(object), what_(std::move(what)) {
    if (object.kind != Kind::object) fail(object, what_ + " is " + describe(object.kind) + "; expected an object");
  }

  const JsonValue& at() const { return object_; }
  const std::string& what() const { return what_; }

  const JsonValue* find(const std::string& name, Kind kind) {
    const JsonValue* member = object_.find(name);
    asked_.insert(name);
    if (member != nullptr && member->kind != kind) {
      fail(*member, "\"" + name + "\" of " + what_ + " is " + describe(member->kind) + "; expected " + describe(kind));
    }
    return member;
  }
  const JsonValue& need(const std::string& name, Kind kind) {
    const JsonValue* member = find(name, kind);
    if (member == nullptr) fail(object_, what_ + " has no \"" + name + "\"");
    return *member;
  }
  void done() const {
    for (const auto& [name, value] : object_.members) {
      if (asked_.count(name) == 0) fail(value, what_ + " takes no \"" + name + "\"");
    }
  }

  double number(const std::string& name, double otherwise) {
    const JsonValue* member = find(name, Kind::number);
    return member == nullptr ? otherwise : member->number;
  }
  float need_float(const std::string& name) { return static_cast<float>(need(name, Kind::number).number); }
  bool flag(const std::string& name) {
    const JsonValue* member = find(name, Kind::boolean);
    return member != nullptr && member->boolean;
  }
  std::string text(const std::string& name, const std::string& otherwise) {
    const JsonValue* member = find(name, Kind::string);
    return member == nullptr ? otherwise : member->string;
  }
  std::int64_t integer(const std::string& name, std::int64_t otherwise) {
    const JsonValue* member = find(name, Kind::number);
    return member == nullptr ? otherwise : whole(*member);
  }
  std::vector<std::int64_t> integers(const std::string& name) {
    std::vector<std::int64_t> all;
    const JsonValue* list = find(name, Kind::array);
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) all.push_back(whole(list->items[i]));
    return all;
  }
  Shape shape() {
    std::vector<std::uint64_t> extents;
    for (const JsonValue& item : need("shape", Kind::array).items) {
      const std::int64_t extent = whole(item);
      if (extent < 0) fail(item, "an extent below 0");
      extents.push_back(static_cast<std::uint64_t>(extent));
    }
    return Shape::of({extents.data(), extents.size()});
  }
  DType type(const std::string& otherwise) {
    const std::string name = text("type", otherwise);
    for (const DType type : {DType::f32, DType::i32, DType::mask}) {
      if (name == brontes::to_string(type)) return type;
    }
    fail(object_, "\"type\" is \"" + name + "\"; expected f32, i32 or mask");
  }
  std::vector<Range> ranges() {
    std::vector<Range> all;
    for (const JsonValue& item : need("ranges", Kind::array).items) {
      if (item.kind != Kind::array || item.items.empty() || item.items.size() > 3) {
        fail(item, "a range is [begin], [begin, end] or [begin, end, step]");
      }
      Range range;
      range.begin = whole(item.items[0]);
      if (item.items.size() > 1 && item.items[1].kind != Kind::null) range.end = whole(item.items[1]);
      if (item.items.size() > 2) range.step = whole(item.items[2]);
      all.push_back(range);
    }
    return all;
  }

  static std::int64_t whole(const JsonValue& value) {
    constexpr double most = 0x1p53;
    if (value.kind != Kind::number || std::floor(value.number) != value.number || std::fabs(value.number) > most) {
      fail(value, "expected a whole number");
    }
    return static_cast<std::int64_t>(value.number);
  }

 private:
  const JsonValue& object_;
  std::string what_;
  std::set<std::string> asked_;
};

// An op of the file.
struct Call {
  Batch& batch;
  Members& members;
  const std::vector<Tensor>& in;

  void operands(std::size_t least, std::size_t most) const {
    if (in.size() >= least && in.size() <= most) return;
    const std::string wanted =
        least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
    fail(members.at(), members.what() + " has " + std::to_string(in.size()) + " operands; expected " + wanted);
  }
  std::int64_t axis(std::int64_t otherwise) const { return members.integer("axis", otherwise); }
  Axes axes(const std::vector<std::int64_t>& list) const { return Axes(Span<const std::int64_t>(list)); }
};

using Record = std::function<Tensor(const Call&)>;

template <class Method>
Record unary(Method method) {
  return [method](const Call& c) {
    c.operands(1, 1);
    return (c.batch.*method)(c.in[0]);
  };
}

template <class Method>
Record binary(Method method) {
  return [method](const Call& c) {
    c.operands(2, 2);
    return (c.batch.*method)(c.in[0], c.in[1]);
  };
}

Record with_scalar(Tensor (Batch::*method)(Tensor, float), const char* name) {
  return [=](const Call& c) {
    c.operands(1, 1);
    return (c.batch.*method)(c.in[0], c.members.need_float(name));
  };
}

Record along(Tensor (Batch::*method)(Tensor, std::int64_t)) {
  return [=](const Call& c) {
    c.operands(1, 1);
    return (c.batch.*method)(c.in[0], c.axis(-1));
  };
}

Record reduction(Tensor (Batch::*method)(Tensor, Axes, bool)) {
  return [=](const Call& c) {
    c.operands(1, 1);
    const std::vector<std::int64_t> axes = c.members.integers("axes");
    return (c.batch.*method)(c.in[0], c.axes(axes), c.members.flag("keep_dims"));
  };
}

// max and min have one operand, or two.
Record extreme(Tensor (Batch::*over_axes)(Tensor, Axes, bool), Tensor (Batch::*of_two)(Tensor, Tensor)) {
  return
      [=](const Call& c) { return c.in.size() == 2 ? (c.batch.*of_two)(c.in[0], c.in[1]) : reduction(over_axes)(c); };
}

Record place_of(Tensor (Batch::*method)(Tensor, std::int64_t, bool)) {
  return [=](const Call& c) {
    c.operands(1, 1);
    return (c.batch.*method)(c.in[0], c.axis(-1), c.members.flag("keep_dim"));
  };
}

Tensor matmul(const Call& c) {
  c.operands(2, 2);
  brontes::MatmulOptions options;
  const std::string layout = c.members.text("layout", "kn");
  if (layout != "kn" && layout != "nk") fail(c.members.at(), "\"layout\" is \"" + layout + "\"; expected kn or nk");
  options.layout = layout == "nk" ? brontes::Layout::nk : brontes::Layout::kn;
  options.alpha = static_cast<float>(c.members.number("alpha", 1));
  return c.batch.matmul(c.in[0], c.in[1], options);
}

Tensor linear(const Call& c) {
  c.operands(2, 3);
  return c.in.size() == 2 ? c.batch.linear(c.in[0], c.in[1]) : c.batch.linear(c.in[0], c.in[1], c.in[2]);
}

Tensor layer_norm(const Call& c) {
  if (c.in.size() == 2) fail(c.members.at(), "layer_norm has 1 operand, or 3");
  c.operands(1, 3);
  const auto epsilon = static_cast<float>(c.members.number("epsilon", 1e-5));
  return c.in.size() == 1 ? c.batch.layer_norm(c.in[0], epsilon)
                          : c.batch.layer_norm(c.in[0], c.in[1], c.in[2], epsilon);
}

Tensor rms_norm(const Call& c) {
  c.operands(1, 2);
  const auto epsilon = static_cast<float>(c.members.number("epsilon", 1e-5));
  return c.in.size() == 1 ? c.batch.rms_norm(c.in[0], epsilon) : c.batch.rms_norm(c.in[0], c.in[1], epsilon);
}

using Unary = Tensor (Batch::*)(Tensor);
using Binary = Tensor (Batch::*)(Tensor, Tensor);
using Reduction = Tensor (Batch::*)(Tensor, Axes, bool);

const std::map<std::string, Record>& ops() {
#define UNARY(name) \
  { #name, unary(static_cast <Unary>(&Batch::name)) }
#define BINARY(name) \
  { #name, binary(static_cast <Binary>(&Batch::name)) }
#define REDUCTION(name) \
  { #name, reduction(static_cast <Reduction>(&Batch::name)) }
  static const std::map<std::string, Record> table = {
      UNARY(relu),
      UNARY(neg),
      UNARY(abs),
      UNARY(exp),
      UNARY(log),
      UNARY(sqrt),
      UNARY(sigmoid),
      UNARY(tanh),
      UNARY(swish),
      UNARY(gelu),
      UNARY(gelu_tanh),
      UNARY(copy),
      UNARY(square),
      UNARY(reciprocal),
      UNARY(rsqrt),
      UNARY(sign),
      UNARY(floor),
      UNARY(ceil),
      UNARY(round),
      UNARY(sin),
      UNARY(cos),
      UNARY(tan),
      UNARY(erf),
      UNARY(softplus),
      UNARY(hard_sigmoid),
      UNARY(hard_swish),
      UNARY(logical_not),
      UNARY(flatten),
      UNARY(squeeze),
      UNARY(transpose),
      BINARY(add),
      BINARY(sub),
      BINARY(mul),
      BINARY(div),
      BINARY(mod),
      BINARY(pow),
      BINARY(eq),
      BINARY(ne),
      BINARY(lt),
      BINARY(le),
      BINARY(gt),
      BINARY(ge),
      BINARY(logical_and),
      BINARY(logical_or),
      BINARY(logical_xor),
      BINARY(dot),
      BINARY(gather),
      REDUCTION(sum),
      REDUCTION(mean),
      REDUCTION(prod),
      REDUCTION(sum_of_squares),
      REDUCTION(l1_norm),
      REDUCTION(l2_norm),
      REDUCTION(logsumexp),
      REDUCTION(any),
      REDUCTION(all),
      {"max", extreme(static_cast<Reduction>(&Batch::max), static_cast<Binary>(&Batch::max))},
      {"min", extreme(static_cast<Reduction>(&Batch::min), static_cast<Binary>(&Batch::min))},
      {"argmax", place_of(&Batch::argmax)},
      {"argmin", place_of(&Batch::argmin)},
      {"softmax", along(&Batch::softmax)},
      {"log_softmax", along(&Batch::log_softmax)},
      {"cumsum", along(&Batch::cumsum)},
      {"unsqueeze", along(&Batch::unsqueeze)},
      {"scale", with_scalar(&Batch::scale, "factor")},
      {"offset", with_scalar(&Batch::offset, "amount")},
      {"leaky_relu", with_scalar(&Batch::leaky_relu, "slope")},
      {"elu", with_scalar(&Batch::elu, "scale")},
      {"clamp",
       [](const Call& c) {
         c.operands(1, 1);
         return c.batch.clamp(c.in[0], c.members.need_float("low"), c.members.need_float("high"));
       }},
      {"fill",
       [](const Call& c) {
         c.operands(0, 0);
         return c.batch.fill(c.members.need_float("value"), c.members.shape());
       }},
      {"reshape",
       [](const Call& c) {
         c.operands(1, 1);
         return c.batch.reshape(c.in[0], c.members.shape());
       }},
      {"expand",
       [](const Call& c) {
         c.operands(1, 1);
         return c.batch.expand(c.in[0], c.members.shape());
       }},
      {"permute",
       [](const Call& c) {
         c.operands(1, 1);
         const std::vector<std::int64_t> axes = c.members.integers("axes");
         return c.batch.permute(c.in[0], c.axes(axes));
       }},
      {"slice",
       [](const Call& c) {
         c.operands(1, 1);
         return c.batch.slice(c.in[0], Span<const Range>(c.members.ranges()));
       }},
      {"concat", [](const Call& c) { return c.batch.concat(Span<const Tensor>(c.in), c.axis(0)); }},
      {"cast",
       [](const Call& c) {
         c.operands(1, 1);
         return c.batch.cast(c.in[0], c.members.type("f32"));
       }},
      {"where",
       [](const Call& c) {
         c.operands(3, 3);
         return c.batch.where(c.in[0], c.in[1], c.in[2]);
       }},
      {"update_rows",
       [](const Call& c) {
         c.operands(3, 3);
         return c.batch.update_rows(c.in[0], c.in[1], c.in[2]);
       }},
      {"layer_norm", layer_norm},
      {"rms_norm", rms_norm},
      {"matmul", matmul},
      {"linear", linear},
  };
#undef UNARY
#undef BINARY
#undef REDUCTION
  return table;
}

// The same numbers on every machine: splitmix64, between -1 and 1.
std::vector<float> random_floats(std::uint64_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (float& x : values) {
    std::uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    x = static_cast<float>(static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1);
  }
  return values;
}

class Reader {
 public:
  Reader(const brontes::Device& device, const brontes::BatchOptions& options, fs::path folder)
      : file_{Batch(device, options), {}}, folder_(std::move(folder)) {}

  BatchFile read(const JsonValue& document) {
    Members members(document, "the file");
    for (const auto& [name, value] : members.need("inputs", Kind::object).members) input(name, value);
    std::size_t index = 0;
    for (const JsonValue& value : members.need("ops", Kind::array).items) op(value, index++);
    outputs(document, members);
    members.done();
    return std::move(file_);
  }

 private:
  void define(const JsonValue& at, const std::string& name, Tensor tensor) {
    if (const brontes::Error& e = file_.batch.error()) fail(at, "\"" + name + "\": " + e.message);
    if (!tensors_.emplace(name, tensor).second) fail(at, "there are two tensors called \"" + name + "\"");
  }

  void input(const std::string& name, const JsonValue& value) {
    Members members(value, "input \"" + name + "\"");
    Tensor tensor;
    if (members.find("npy", Kind::string) != nullptr) {
      tensor = npy_input(value, members.text("npy", ""));
    } else {
      tensor = made_input(value, members);
    }
    members.done();
    define(value, name, tensor);
  }

  Tensor npy_input(const JsonValue& at, const std::string& file) {
    const fs::path path = folder_ / file;
    Npy array;
    try {
      array = read_npy(read_file(path));
    } catch (const InputError& e) {
      fail(at, path.string() + ": " + e.what());
    }
    // A scalar has one element.
    if (array.shape.empty()) array.shape = {1};
    const Shape shape = Shape::of({array.shape.data(), array.shape.size()});
    if (array.type == Npy::Type::f32) return file_.batch.upload(Span<const float>(array.floats), shape);
    const Tensor whole = file_.batch.upload(Span<const std::int32_t>(array.integers), shape);
    return array.type == Npy::Type::boolean ? file_.batch.cast(whole, DType::mask) : whole;
  }

  Tensor made_input(const JsonValue& at, Members& members) {
    const Shape shape = members.shape();
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    if (shape.count() > most) fail(at, "an input of more than 2^32 elements");
    const DType type = members.type("f32");
    std::vector<float> data;
    if (const JsonValue* values = members.find("values", Kind::array)) {
      for (const JsonValue& item : values->items) {
        if (item.kind != Kind::number) fail(item, std::string("a value is ") + describe(item.kind));
        data.push_back(static_cast<float>(item.number));
      }
    } else if (const JsonValue* seed = members.find("random", Kind::number)) {
      data = random_floats(shape.count(), static_cast<std::uint64_t>(Members::whole(*seed)));
    } else {
      data.assign(shape.count(), members.need_float("fill"));
    }
    if (type == DType::f32) return file_.batch.upload(Span<const float>(data), shape);
    std::vector<std::int32_t> whole;
    constexpr float limit = 2147483648.0f;
    for (float x : data) {
      if (!(std::fabs(x) < limit)) fail(at, "a number that no i32 holds");
      whole.push_back(static_cast<std::int32_t>(x));
    }
    return file_.batch.cast(file_.batch.upload(Span<const std::int32_t>(whole), shape), type);
  }

  void op(const JsonValue& value, std::size_t index) {
    Members members(value, "op " + std::to_string(index));
    const std::string name = members.need("op", Kind::string).string;
    const std::string out = members.need("out", Kind::string).string;
    const auto known = ops().find(name);
    if (known == ops().end()) fail(value, "there is no op \"" + name + "\"");
    std::vector<Tensor> in;
    if (const JsonValue* list = members.find("in", Kind::array)) {
      for (const JsonValue& item : list->items) in.push_back(tensor(item));
    }
    const Tensor made = known->second({file_.batch, members, in});
    members.done();
    define(value, out, made);
  }

  Tensor tensor(const JsonValue& name) const {
    if (name.kind != Kind::string) fail(name, std::string("a tensor's name is ") + describe(name.kind));
    const auto found = tensors_.find(name.string);
    if (found == tensors_.end()) fail(name, "there is no tensor \"" + name.string + "\" before this");
    return found->second;
  }

  // {"y": "y.npy"}, or names alone.
  void outputs(const JsonValue& document, Members& members) {
    const JsonValue* list = document.find("outputs");
    const bool names = list != nullptr && list->kind == Kind::array;
    const JsonValue& given = members.need("outputs", names ? Kind::array : Kind::object);
    for (const JsonValue& name : given.items) file_.outputs.push_back({name.string, tensor(name), ""});
    for (const auto& [name, path] : given.members) {
      JsonValue key;
      key.kind = Kind::string;
      key.line = path.line;
      key.string = name;
      if (path.kind != Kind::string) fail(path, "the file of \"" + name + "\" is " + describe(path.kind));
      file_.outputs.push_back({name, tensor(key), (folder_ / path.string).string()});
    }
    for (const NamedTensor& output : file_.outputs) (void)file_.batch.keep(output.tensor);
    if (const brontes::Error& e = file_.batch.error()) fail(given, e.message);
  }

  BatchFile file_;
  fs::path folder_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace

BatchFile read_batch(const std::string& path, const brontes::Device& device, const brontes::BatchOptions& options) {
  const std::string text = read_file(path);
  try {
    return Reader(device, options, fs::path(path).parent_path()).read(read_json(text));
  } catch (const InputError& e) {
    throw InputError(path + ": " + e.what());
  }
}

std::vector<std::string> batch_file_ops() {
  std::vector<std::string> names;
  for (const auto& [name, record] : ops()) names.push_back(name);
  return names;
}

}  // namespace tool
