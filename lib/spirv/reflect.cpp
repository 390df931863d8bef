#include "spirv/reflect.hpp"

#include "spirv/specialize.hpp"
#include "spirv/specialize_ops.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace brontes::spirv {
namespace {

// Numbers of the specification that specialize_ops.hpp has no names for.
enum : std::uint32_t {
  type_matrix = 24,
  type_image = 25,
  type_sampler = 26,
  type_sampled_image = 27,
  type_array = 28,
  type_runtime_array = 29,
  type_struct = 30,
  type_acceleration_structure = 5341,
  copy_memory = 63,
  ptr_access_chain = 67,
  array_length = 68,
  in_bounds_ptr_access_chain = 70,
  atomic_load = 227,
  atomic_store = 228,
  terminate_invocation = 4416,
};
enum Decoration : std::uint32_t {
  decorated_block = 2,
  decorated_buffer_block = 3,
  decorated_row_major = 4,
  decorated_array_stride = 6,
  decorated_matrix_stride = 7,
  decorated_non_writable = 24,
  decorated_non_readable = 25,
  decorated_binding = 33,
  decorated_set = 34,
  decorated_offset = 35,
};
enum Storage : std::uint32_t {
  uniform_constant = 0,
  uniform = 2,
  workgroup = 4,
  push_constant = 9,
  storage_buffer = 12
};
constexpr std::uint32_t built_in_workgroup_size = 25;
constexpr std::uint32_t mode_local_size = 17;
constexpr std::uint32_t mode_local_size_id = 38;
constexpr std::uint32_t model_compute = 5;

Error malformed(const std::string& what) { return Error(Errc::invalid_argument, "the SPIR-V is malformed: " + what); }

std::string text(std::uint64_t number) { return std::to_string(number); }

// For messages and dumps.
std::string printable(std::string name) {
  for (char& c : name) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '?';
  }
  return name;
}

// Far above any limit, far below an overflow.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
std::uint64_t plus(std::uint64_t a, std::uint64_t b) { return std::min(a + b, most_bytes); }
std::uint64_t times(std::uint64_t a, std::uint64_t b) { return a != 0 && b > most_bytes / a ? most_bytes : a * b; }
std::uint64_t round_up(std::uint64_t n, std::uint64_t step) { return (n + step - 1) / step * step; }

const char* stage_name(std::uint32_t model) {
  switch (model) {
    case 0: return "vertex";
    case 1: return "tessellation control";
    case 2: return "tessellation evaluation";
    case 3: return "geometry";
    case 4: return "fragment";
    case 6: return "OpenCL";
    case 5267:
    case 5364: return "task";
    case 5268:
    case 5365: return "mesh";
    default: return "ray tracing or unknown";
  }
}

// What decorations say of an id or a member, as far as anybody asks.
struct Decorations {
  bool block = false, buffer_block = false, non_writable = false, non_readable = false, row_major = false;
  std::optional<std::uint32_t> array_stride, matrix_stride, binding, set, offset, spec_id, built_in;

  void add(std::uint32_t which, const std::uint32_t* operand) {
    switch (which) {
      case decorated_block: block = true; return;
      case decorated_buffer_block: buffer_block = true; return;
      case decorated_non_writable: non_writable = true; return;
      case decorated_non_readable: non_readable = true; return;
      case decorated_row_major: row_major = true; return;
      default: break;
    }
    if (operand == nullptr) return;
    switch (which) {
      case decoration_spec_id: spec_id = *operand; return;
      case decoration_built_in: built_in = *operand; return;
      case decorated_array_stride: array_stride = *operand; return;
      case decorated_matrix_stride: matrix_stride = *operand; return;
      case decorated_binding: binding = *operand; return;
      case decorated_set: set = *operand; return;
      case decorated_offset: offset = *operand; return;
      default: return;
    }
  }

  void add(const Decorations& group) {
    block |= group.block;
    buffer_block |= group.buffer_block;
    non_writable |= group.non_writable;
    non_readable |= group.non_readable;
    row_major |= group.row_major;
    for (auto field : {&Decorations::array_stride, &Decorations::matrix_stride, &Decorations::binding,
                       &Decorations::set, &Decorations::offset, &Decorations::spec_id, &Decorations::built_in}) {
      if (group.*field) this->*field = group.*field;
    }
  }
};

// Bytes of a type. Types are made of types before them, so these are known as soon as the type is.
struct Size {
  std::uint64_t natural = 0;  // as the shader's own memory lays it out
  std::uint64_t alignment = 1;
  std::uint64_t laid_out = 0;  // by the offsets and strides given
  bool known = true;           // false if it depends on a constant that cannot be computed here
};

struct EntryPoint {
  std::uint32_t model;
  std::uint32_t function;
  std::string name;
};

struct Variable {
  std::uint32_t id;
  std::uint32_t pointer_type;
  std::uint32_t storage;
  bool reads = false;  // by what the functions do with it
  bool writes = false;
};

// One walk over a module, which keeps what reflection asks for.
class Module {
 public:
  explicit Module(Span<const std::uint32_t> words) : words_(words) {}

  Error read() {
    if (Error e = header()) return e;
    defined_.assign(words_[3], false);
    used_.assign(words_[3], 0);
    for (std::size_t at = header_words; at < words_.size(); at += length(&words_[at])) {
      const std::uint32_t* word = &words_[at];
      if (length(word) == 0 || length(word) > words_.size() - at) {
        return malformed("the instruction at word " + text(at) + " of " + text(words_.size()) + " is cut short");
      }
      at_ = at;
      if (Error e = ids(word)) return e;
      if (Error e = place(word)) return e;
      if (Error e = in_function_ ? body(word) : declaration(word)) return e;
    }
    if (in_function_) return malformed("the last function has no end");
    for (std::uint32_t id = 0; !unknown_instructions_ && id < used_.size(); ++id) {
      if (used_[id] != 0 && !defined_[id]) {
        return malformed("id " + text(id) + ", used at word " + text(used_[id]) + ", is defined nowhere");
      }
    }
    return {};
  }

  Result<EntryPoint> entry_point(const std::string& name) const {
    std::string all;
    std::vector<const EntryPoint*> compute;
    for (const EntryPoint& e : entry_points_) {
      all += (all.empty() ? "\"" : ", \"") + printable(e.name) + "\"";
      if (e.model != model_compute) all += std::string(" (") + stage_name(e.model) + ")";
      if (e.model == model_compute) compute.push_back(&e);
    }
    if (entry_points_.empty()) return malformed("it has no entry point");
    if (compute.empty()) {
      return Error(Errc::invalid_argument, "the module is no compute shader: its entry points are " + all);
    }
    if (name.empty()) {
      if (compute.size() == 1) return check_function(*compute[0]);
      return Error(Errc::invalid_argument, "the module has " + text(compute.size()) + " compute entry points, " + all +
                                               "; name one of them in KernelOptions::entry_point");
    }
    for (const EntryPoint* e : compute) {
      if (e->name == name) return check_function(*e);
    }
    return Error(Errc::invalid_argument,
                 "the module has no compute entry point \"" + printable(name) + "\"; its entry points are " + all);
  }

  // The specialization constants that can be given values, ascending.
  Result<std::vector<Constant>> constants() const {
    std::map<std::uint32_t, Constant> found;
    for (const auto& [id, at] : spec_constants_) {
      const auto decorated = decorations_.find(id);
      if (decorated == decorations_.end() || !decorated->second.spec_id) continue;
      const std::uint32_t* word = &words_[at];
      Constant c{
          *decorated->second.spec_id, ConstantKind::boolean, 1, opcode(word) == op_spec_constant_true, 0, name_of(id)};
      if (opcode(word) == op_spec_constant) {
        const std::uint32_t* type = declared(word[1]);
        if (type == nullptr || (opcode(type) != op_type_int && opcode(type) != op_type_float)) {
          return malformed("specialization constant " + text(c.id) + " is neither a boolean nor a number");
        }
        c.kind = opcode(type) == op_type_int ? ConstantKind::integer : ConstantKind::floating;
        c.width = type[2];
        if (length(word) != (c.width > 32 ? 5u : 4u)) {
          return malformed("specialization constant " + text(c.id) + " is not as long as its type");
        }
        c.default_bits = length(word) == 5 ? std::uint64_t{word[4]} << 32 | word[3] : word[3];
      }
      c.bits = c.default_bits;
      // A workgroup size and the constant naming it share an id and are two constants.
      const auto [known, fresh] = found.try_emplace(c.id, c);
      if (!fresh && known->second.name.empty()) known->second.name = c.name;
    }
    std::vector<Constant> all;
    all.reserve(found.size());
    for (auto& [id, c] : found) all.push_back(std::move(c));
    return all;
  }

  // The rest is asked of a module without specialization constants.

  Result<std::vector<Binding>> bindings() const {
    std::map<std::uint32_t, Binding> found;
    for (const Variable& v : variables_) {
      if (v.storage != uniform_constant && v.storage != uniform && v.storage != storage_buffer) continue;
      const Decorations own = decorations_of(v.id);
      const std::string name = name_of(v.id);
      if (!own.binding || !own.set) {
        return malformed("the variable " + (name.empty() ? "with id " + text(v.id) : "'" + name + "'") +
                         " has no descriptor set and binding");
      }
      const std::string which = "binding " + text(*own.binding) + (name.empty() ? "" : " ('" + name + "')");
      if (*own.set != 0) {
        return Error(Errc::unsupported,
                     which + " is in descriptor set " + text(*own.set) + "; kernels have set 0 only");
      }
      const std::uint32_t* pointer = declared(v.pointer_type);
      if (pointer == nullptr || opcode(pointer) != op_type_pointer || length(pointer) != 4) {
        return malformed(which + " is no pointer");
      }
      const std::uint32_t block = pointer[3];
      if (const std::string kind = kind_of(v.storage, block); kind != "a storage buffer") {
        std::string message = which;
        message.append(" is ").append(kind).append("; kernels take storage buffers only");
        return Error(Errc::unsupported, std::move(message));
      }
      const auto [readable, writable] = declared_access(own, block);
      const bool reads = readable && (v.reads || !writable);
      const bool writes = writable && (v.writes || !readable);
      Binding b{*own.binding, access_of(reads, writes), name.empty() ? name_of(block) : name};
      // Several views of one buffer.
      const auto [known, fresh] = found.try_emplace(b.number, b);
      if (!fresh) {
        const bool was_read = known->second.access != kernels::Access::write;
        const bool was_written = known->second.access != kernels::Access::read;
        known->second.access = access_of(reads || was_read, writes || was_written);
      }
    }
    std::vector<Binding> all;
    all.reserve(found.size());
    for (auto& [number, b] : found) all.push_back(std::move(b));
    return all;
  }

  Result<std::uint32_t> push_bytes() const {
    std::uint64_t most = 0;
    for (const Variable& v : variables_) {
      if (v.storage != push_constant) continue;
      const std::uint32_t* pointer = declared(v.pointer_type);
      const std::uint32_t* block = pointer != nullptr && length(pointer) == 4 ? declared(pointer[3]) : nullptr;
      if (block == nullptr || opcode(block) != type_struct) return malformed("the push constants are no block");
      const Size& size = sizes_.at(block[1]);
      if (!size.known) return open_size("the push constants' size");
      most = std::max(most, size.laid_out);
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(round_up(most, 4), ~std::uint32_t{3}));
  }

  Result<std::uint64_t> shared_bytes() const {
    std::uint64_t total = 0;
    for (const Variable& v : variables_) {
      if (v.storage != workgroup) continue;
      const std::uint32_t* pointer = declared(v.pointer_type);
      const auto size = pointer != nullptr && length(pointer) == 4 ? sizes_.find(pointer[3]) : sizes_.end();
      if (size == sizes_.end()) return malformed("a shared variable has no type");
      if (!size->second.known) return open_size("the size of shared memory");
      total = plus(round_up(total, size->second.alignment), size->second.natural);
    }
    return total;
  }

  Result<std::array<std::uint32_t, 3>> local_size(const EntryPoint& entry) const {
    std::array<std::uint32_t, 3> size{};
    if (workgroup_size_ != 0) {
      const std::uint32_t* word = declared(workgroup_size_);
      if (word == nullptr || length(word) != 6 ||
          (opcode(word) != op_constant_composite && opcode(word) != op_spec_constant_composite)) {
        return malformed("WorkgroupSize is not a vector of three constants");
      }
      for (std::size_t i = 0; i < 3; ++i) {
        const auto extent = integer(word[3 + i]);
        if (!extent) return open_size("the workgroup size");
        size[i] = *extent;
      }
    } else if (const auto mode = local_sizes_.find(entry.function); mode != local_sizes_.end()) {
      const std::uint32_t* word = &words_[mode->second];
      for (std::size_t i = 0; i < 3; ++i) {
        const auto extent = opcode(word) == op_execution_mode ? std::optional(word[3 + i]) : integer(word[3 + i]);
        if (!extent) return open_size("the workgroup size");
        size[i] = *extent;
      }
    } else {
      return malformed("entry point \"" + printable(entry.name) + "\" has no workgroup size");
    }
    if (std::find(size.begin(), size.end(), 0u) != size.end()) {
      return malformed("the workgroup size is " + text(size[0]) + " x " + text(size[1]) + " x " + text(size[2]));
    }
    return size;
  }

  // LocalSizeId needs a device feature, and the numbers are known now.
  void write_local_size(const EntryPoint& entry, const std::array<std::uint32_t, 3>& size,
                        std::vector<std::uint32_t>& words) const {
    const auto mode = local_sizes_.find(entry.function);
    if (mode == local_sizes_.end() || opcode(&words_[mode->second]) != op_execution_mode_id) return;
    words[mode->second] = 6u << 16 | op_execution_mode;
    words[mode->second + 2] = mode_local_size;
    std::copy(size.begin(), size.end(), words.begin() + static_cast<std::ptrdiff_t>(mode->second) + 3);
  }

  const std::vector<std::uint32_t>& capabilities() const { return capabilities_; }
  const std::vector<std::string>& extensions() const { return extensions_; }

 private:
  Error header() const {
    if (words_.size() < header_words) {
      return Error(Errc::invalid_argument, text(words_.size()) + " words are no SPIR-V module, whose header takes 5");
    }
    if (words_[0] == 0x03022307) {
      return Error(Errc::invalid_argument, "the SPIR-V is in the byte order of another machine");
    }
    if (words_[0] != magic) {
      char first[16];
      std::snprintf(first, sizeof first, "0x%08x", words_[0]);
      return Error(Errc::invalid_argument,
                   std::string("this is no SPIR-V: it begins with ") + first + " and not with 0x07230203");
    }
    if ((words_[1] & 0xff0000ff) != 0 || words_[1] >> 16 != 1) return malformed("its version is none");
    if (words_[3] == 0 || words_[3] > max_bound) return malformed("its bound of ids is " + text(words_[3]));
    if (words_[4] != 0) return malformed("its schema is not 0");
    return {};
  }

  Error check_id(std::uint32_t id) const {
    if (id != 0 && id < words_[3]) return {};
    return malformed("id " + text(id) + " at word " + text(at_) + " is not below the bound " + text(words_[3]));
  }
  Error use(std::uint32_t id) {
    if (Error e = check_id(id)) return e;
    if (used_[id] == 0) used_[id] = static_cast<std::uint32_t>(at_);
    return {};
  }
  Error define(std::uint32_t id) {
    if (Error e = check_id(id)) return e;
    if (defined_[id]) return malformed("id " + text(id) + " at word " + text(at_) + " is defined a second time");
    defined_[id] = true;
    return {};
  }
  Error too_short(const std::uint32_t* word) const {
    return malformed("instruction " + text(opcode(word)) + " at word " + text(at_) + " lacks operands");
  }

  // Every id is below the bound, and defined once.
  Error ids(const std::uint32_t* word) {
    const std::uint32_t count = length(word);
    switch (opcode(word)) {
      case op_ext_inst_import:
      case op_string:
      case op_decoration_group: return count < 2 ? too_short(word) : define(word[1]);
      case op_name:
      case op_member_name:
      case op_decorate:
      case op_member_decorate: return count < 3 ? too_short(word) : check_id(word[1]);  // of what may be gone
      case op_source_continued:
      case 3:  // Source
      case op_source_extension:
      case op_extension:
      case op_memory_model:
      case op_capability:
      case op_module_processed: return {};
      case op_entry_point: return count < 4 ? too_short(word) : use(word[2]);
      case op_execution_mode:
      case op_execution_mode_id: return count < 3 ? too_short(word) : use(word[1]);
      default: break;
    }
    const Layout layout = layout_of(opcode(word));
    if (!layout.known) {
      unknown_instructions_ = true;
      return {};
    }
    if (count < layout.first_operand()) return too_short(word);
    if (layout.type) {
      if (Error e = use(word[1])) return e;
    }
    if (layout.result) {
      if (Error e = define(word[layout.type ? 2 : 1])) return e;
    }
    Error wrong;
    const bool read = each_operand(word, [&](std::uint32_t i) {
      if (!wrong) wrong = i < count ? use(word[i]) : too_short(word);
    });
    if (wrong) return wrong;
    // A constant may be computed by an instruction that has no layout here.
    if (!read && layout.tail != Layout::Tail::operation) return too_short(word);
    return {};
  }

  // Functions have ends, and instructions of functions lie in blocks.
  Error place(const std::uint32_t* word) {
    const std::uint32_t op = opcode(word);
    auto wrong = [&](const char* what) {
      return malformed("instruction " + text(op) + " at word " + text(at_) + " " + what);
    };
    if (op == op_line || op == op_no_line) return {};
    if (op == op_function) {
      if (in_function_) return wrong("begins a function inside another");
      in_function_ = true;
      functions_.push_back(word[2]);
      return {};
    }
    if (!in_function_) {
      if (op == op_function_end || op == op_label || (op >= op_phi && op <= op_unreachable)) {
        return wrong("stands outside of any function");
      }
      if (!functions_.empty()) return wrong("stands between functions");
      return {};
    }
    if (op == op_function_end) {
      if (in_block_) return wrong("ends a function inside a block");
      in_function_ = false;
      return {};
    }
    if (op == op_label) {
      if (in_block_) return wrong("begins a block inside another");
      in_block_ = true;
      return {};
    }
    if (op == op_function_parameter) return in_block_ ? wrong("is a parameter inside a block") : Error();
    if (!in_block_) return wrong("stands outside of any block");
    if ((op >= op_branch && op <= op_unreachable) || op == terminate_invocation) in_block_ = false;
    return {};
  }

  Error literal(const std::uint32_t* word, std::uint32_t from, std::string& out) const {
    for (std::uint32_t i = from; i < length(word); ++i) {
      for (int byte = 0; byte < 4; ++byte) {
        const char c = static_cast<char>(word[i] >> 8 * byte & 0xff);
        if (c == '\0') return {};
        out.push_back(c);
      }
    }
    return malformed("the text at word " + text(at_) + " has no end");
  }

  Error declaration(const std::uint32_t* word) {
    const std::uint32_t count = length(word);
    const std::uint32_t op = opcode(word);
    switch (op) {
      case op_capability:
        if (count != 2) return too_short(word);
        if (std::find(capabilities_.begin(), capabilities_.end(), word[1]) == capabilities_.end()) {
          if (capabilities_.size() == most_capabilities) return malformed("it has too many capabilities");
          capabilities_.push_back(word[1]);
        }
        return {};
      case op_extension: return literal(word, 1, extensions_.emplace_back());
      case op_ext_inst_import: {
        std::string set;
        if (Error e = literal(word, 2, set)) return e;
        if (set == "GLSL.std.450") return {};
        return Error(Errc::unsupported,
                     "the module uses the instruction set \"" + printable(set) +
                         "\"; kernels can use GLSL.std.450 only" +
                         (set.rfind("NonSemantic.", 0) == 0 ? " (compile it without debug information)" : ""));
      }
      case op_memory_model:
        if (count != 3) return too_short(word);
        if (word[1] != 0 || word[2] != 1) {
          return Error(Errc::unsupported, "the module's addressing and memory model are " + text(word[1]) + " and " +
                                              text(word[2]) + "; expected Logical (0) and GLSL450 (1)");
        }
        has_memory_model_ = true;
        return {};
      case op_entry_point: {
        EntryPoint entry{word[1], word[2], {}};
        if (Error e = literal(word, 3, entry.name)) return e;
        entry_points_.push_back(std::move(entry));
        return {};
      }
      case op_execution_mode:
      case op_execution_mode_id:
        if (word[2] != (op == op_execution_mode ? mode_local_size : mode_local_size_id)) return {};
        if (count != 6) return too_short(word);
        for (std::uint32_t i = 3; op == op_execution_mode_id && i < 6; ++i) {
          if (Error e = use(word[i])) return e;
        }
        local_sizes_[word[1]] = at_;
        return {};
      case op_name: {
        std::string& name = names_[word[1]];
        name.clear();
        return literal(word, 2, name);
      }
      case op_decorate:
        decorations_[word[1]].add(word[2], count > 3 ? &word[3] : nullptr);
        if (word[2] == decoration_built_in && count > 3 && word[3] == built_in_workgroup_size)
          workgroup_size_ = word[1];
        return {};
      case op_member_decorate:
        if (count < 4) return too_short(word);
        members_[{word[1], word[2]}].add(word[3], count > 4 ? &word[4] : nullptr);
        return {};
      case op_group_decorate: {
        if (count < 2) return too_short(word);
        const Decorations group = decorations_of(word[1]);
        for (std::uint32_t i = 2; i < count; ++i) decorations_[word[i]].add(group);
        return {};
      }
      case op_group_member_decorate:
        return Error(Errc::unsupported, "the module has groups of member decorations (OpGroupMemberDecorate)");
      default: return type_or_constant(word);
    }
  }

  Error type_or_constant(const std::uint32_t* word) {
    const std::uint32_t count = length(word);
    const std::uint32_t op = opcode(word);
    auto needs = [&](std::uint32_t words) { return count < words ? too_short(word) : Error(); };
    switch (op) {
      case op_type_bool: return declare(word, 1, {4, 4, 4});
      case op_type_int:
      case op_type_float: {
        if (Error e = needs(op == op_type_int ? 4 : 3)) return e;
        if (word[2] != 8 && word[2] != 16 && word[2] != 32 && word[2] != 64) {
          return malformed("a number of " + text(word[2]) + " bits at word " + text(at_));
        }
        const std::uint64_t bytes = word[2] / 8;
        return declare(word, 1, {bytes, bytes, bytes});
      }
      case op_type_vector:
      case type_matrix: {
        if (Error e = needs(4)) return e;
        const auto part = sizes_.find(word[2]);
        if (part == sizes_.end() || word[3] < 2 || word[3] > 16)
          return malformed("a vector or matrix of nothing known at word " + text(at_));
        const Size& p = part->second;
        if (op == type_matrix) {
          const std::uint64_t bytes = times(round_up(p.natural, p.alignment), word[3]);
          return declare(word, 1, {bytes, p.alignment, bytes, p.known});
        }
        const std::uint64_t bytes = times(p.natural, word[3]);
        return declare(word, 1, {bytes, times(p.natural, word[3] == 3 ? 4 : word[3]), bytes, p.known});
      }
      case type_array: {
        if (Error e = needs(4)) return e;
        const auto part = sizes_.find(word[2]);
        if (part == sizes_.end()) return malformed("an array of nothing known at word " + text(at_));
        const std::optional<std::uint32_t> extent = integer(word[3]);
        const Size& p = part->second;
        const std::uint64_t stride = decorations_of(word[1]).array_stride.value_or(0);
        const std::uint64_t n = extent.value_or(0);
        return declare(word, 1,
                       {times(round_up(p.natural, p.alignment), n), p.alignment,
                        times(std::max<std::uint64_t>(stride, p.laid_out), n), p.known && extent.has_value()});
      }
      case type_runtime_array: return needs(3) ? needs(3) : declare(word, 1, {0, 4, 0});
      case type_struct: return declare(word, 1, size_of_struct(word));
      case op_type_pointer: return needs(4) ? needs(4) : declare(word, 1, {8, 8, 8});
      case type_image: return needs(9) ? needs(9) : declare(word, 1, {});
      case type_sampler:
      case type_sampled_image:
      case type_acceleration_structure: return count < 2 ? too_short(word) : declare(word, 1, {});
      case op_constant: {
        if (Error e = needs(4)) return e;
        const std::uint32_t* type = declared(word[1]);
        if (type != nullptr && opcode(type) == op_type_int && (count == 4 || (count == 5 && word[4] == 0))) {
          integers_[word[2]] = word[3];
        }
        return {};
      }
      case op_constant_composite:
      case op_spec_constant_composite: declared_[word[2]] = at_; return {};
      case op_spec_constant: {
        if (Error e = needs(4)) return e;
        spec_constants_.emplace_back(word[2], at_);
        return {};
      }
      case op_spec_constant_true:
      case op_spec_constant_false: spec_constants_.emplace_back(word[2], at_); return {};
      case op_variable:
        variables_.push_back({word[2], word[1], word[3]});
        roots_.emplace(word[2], variables_.size() - 1);
        return {};
      default: return {};
    }
  }

  Error declare(const std::uint32_t* word, std::uint32_t result, Size size) {
    size.alignment = std::clamp<std::uint64_t>(size.alignment, 1, 64);
    declared_[word[result]] = at_;
    sizes_[word[result]] = size;
    return {};
  }

  Size size_of_struct(const std::uint32_t* word) const {
    Size size{0, 1, 0};
    for (std::uint32_t i = 2; i < length(word); ++i) {
      const auto member = sizes_.find(word[i]);
      if (member == sizes_.end()) {
        size.known = false;
        continue;
      }
      const Size& m = member->second;
      size.known = size.known && m.known;
      size.natural = plus(round_up(size.natural, m.alignment), m.natural);
      size.alignment = std::max(size.alignment, m.alignment);
      const auto given = members_.find({word[1], i - 2});
      if (given == members_.end() || !given->second.offset) continue;
      size.laid_out = std::max(size.laid_out,
                               plus(*given->second.offset, std::max(m.laid_out, matrix_bytes(word[i], given->second))));
    }
    size.natural = round_up(size.natural, std::clamp<std::uint64_t>(size.alignment, 1, 64));
    return size;
  }

  // Of a matrix, or an array of them, by its stride; 0 for anything else.
  std::uint64_t matrix_bytes(std::uint32_t type, const Decorations& member) const {
    if (!member.matrix_stride) return 0;
    const std::uint32_t* word = declared(type);
    if (word == nullptr || opcode(word) != type_matrix) return 0;
    const std::uint32_t* column = declared(word[2]);
    if (column == nullptr || opcode(column) != op_type_vector) return 0;
    return times(*member.matrix_stride, member.row_major ? column[3] : word[3]);
  }

  // Follows pointers from variables to loads and stores.
  Error body(const std::uint32_t* word) {
    const std::uint32_t count = length(word);
    auto touch = [&](std::uint32_t pointer, bool reads, bool writes) {
      const auto root = roots_.find(pointer);
      if (root == roots_.end()) return;
      variables_[root->second].reads |= reads;
      variables_[root->second].writes |= writes;
    };
    switch (opcode(word)) {
      case op_access_chain:
      case op_in_bounds_access_chain:
      case ptr_access_chain:
      case in_bounds_ptr_access_chain:
      case op_copy_object:
        if (const auto root = roots_.find(word[3]); root != roots_.end()) {
          const std::size_t variable = root->second;
          roots_.emplace(word[2], variable);
        }
        return {};
      case op_load:
      case atomic_load: touch(word[3], true, false); return {};
      case op_store:
        touch(word[1], false, true);
        touch(word[2], true, true);
        return {};
      case atomic_store: touch(word[1], false, true); return {};
      case copy_memory:
        touch(word[1], false, true);
        touch(word[2], true, false);
        return {};
      case array_length: return {};
      default: break;
    }
    // Whatever else has a pointer may do anything with it.
    if (layout_of(opcode(word)).known) {
      each_operand(word, [&](std::uint32_t i) {
        if (i < count) touch(word[i], true, true);
      });
    } else {
      for (std::uint32_t i = 1; i < count; ++i) touch(word[i], true, true);
    }
    return {};
  }

  static kernels::Access access_of(bool reads, bool writes) {
    if (reads && writes) return kernels::Access::read_write;
    return writes ? kernels::Access::write : kernels::Access::read;
  }

  // Whether it may be read, and written.
  std::pair<bool, bool> declared_access(const Decorations& variable, std::uint32_t block) const {
    const std::uint32_t* word = declared(block);
    bool readable = !variable.non_readable;
    bool writable = !variable.non_writable;
    if (length(word) == 2) return {readable, writable};
    bool no_reads = true;
    bool no_writes = true;
    for (std::uint32_t i = 0; i + 2 < length(word); ++i) {
      const auto member = members_.find({block, i});
      no_reads = no_reads && member != members_.end() && member->second.non_readable;
      no_writes = no_writes && member != members_.end() && member->second.non_writable;
    }
    return {readable && !no_reads, writable && !no_writes};
  }

  // In the words of Vulkan's descriptor types.
  std::string kind_of(std::uint32_t storage, std::uint32_t type) const {
    const std::uint32_t* word = declared(type);
    if (word == nullptr) return "of an unknown type";
    if (opcode(word) == type_array || opcode(word) == type_runtime_array) {
      const std::uint32_t* element = declared(word[2]);
      const bool nested =
          element != nullptr && (opcode(element) == type_array || opcode(element) == type_runtime_array);
      return nested ? "an array of arrays" : "an array of descriptors, each " + kind_of(storage, word[2]);
    }
    switch (opcode(word)) {
      case type_struct: {
        if (storage == storage_buffer) return "a storage buffer";
        if (storage != uniform) return "a block of no known kind";
        return decorations_of(type).buffer_block ? "a storage buffer" : "a uniform buffer";
      }
      case type_image: {
        const bool storage_kind = word[7] == 2;
        if (word[3] == 5) return storage_kind ? "a storage texel buffer" : "a uniform texel buffer";
        return storage_kind ? "a storage image" : "a sampled image";
      }
      case type_sampler: return "a sampler";
      case type_sampled_image: {
        const std::uint32_t* image = declared(length(word) > 2 ? word[2] : 0);
        const bool buffer = image != nullptr && opcode(image) == type_image && image[3] == 5;
        return buffer ? "a uniform texel buffer" : "a combined image sampler";
      }
      case type_acceleration_structure: return "an acceleration structure";
      default: return "of no descriptor type";
    }
  }

  Result<EntryPoint> check_function(const EntryPoint& entry) const {
    if (!has_memory_model_) return malformed("it has no memory model");
    if (std::find(functions_.begin(), functions_.end(), entry.function) == functions_.end()) {
      return malformed("entry point \"" + printable(entry.name) + "\" is no function");
    }
    return entry;
  }

  Error open_size(const std::string& what) const {
    return Error(
        Errc::unsupported,
        what + " depends on specialization constants by an expression that cannot be computed ahead of the driver");
  }

  // The declaration of a type or a composite constant; null if there is none.
  const std::uint32_t* declared(std::uint32_t id) const {
    const auto found = declared_.find(id);
    return found == declared_.end() ? nullptr : &words_[found->second];
  }
  std::optional<std::uint32_t> integer(std::uint32_t id) const {
    const auto found = integers_.find(id);
    return found == integers_.end() ? std::nullopt : std::optional(found->second);
  }
  Decorations decorations_of(std::uint32_t id) const {
    const auto found = decorations_.find(id);
    return found == decorations_.end() ? Decorations() : found->second;
  }
  std::string name_of(std::uint32_t id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? "" : printable(found->second);
  }

  static constexpr std::size_t most_capabilities = 256;

  Span<const std::uint32_t> words_;
  std::size_t at_ = 0;
  bool in_function_ = false;
  bool in_block_ = false;
  bool has_memory_model_ = false;
  bool unknown_instructions_ = false;
  std::vector<bool> defined_;        // by id
  std::vector<std::uint32_t> used_;  // by id: the word of the first use
  std::vector<std::uint32_t> functions_;
  std::vector<std::uint32_t> capabilities_;
  std::vector<std::string> extensions_;
  std::vector<EntryPoint> entry_points_;
  std::unordered_map<std::uint32_t, std::size_t> local_sizes_;  // by function: the word of its execution mode
  std::uint32_t workgroup_size_ = 0;
  std::unordered_map<std::uint32_t, std::string> names_;
  std::unordered_map<std::uint32_t, Decorations> decorations_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Decorations> members_;
  std::unordered_map<std::uint32_t, std::size_t> declared_;  // by id: the word where its declaration begins
  std::unordered_map<std::uint32_t, Size> sizes_;
  std::unordered_map<std::uint32_t, std::uint32_t> integers_;
  std::vector<std::pair<std::uint32_t, std::size_t>> spec_constants_;  // id and word
  std::vector<Variable> variables_;
  std::unordered_map<std::uint32_t, std::size_t> roots_;  // by variable or pointer into it
};

const char* kind_name(ConstantKind kind) {
  switch (kind) {
    case ConstantKind::boolean: return "a boolean";
    case ConstantKind::integer: return "an integer";
    case ConstantKind::floating: break;
  }
  return "a float";
}

Error set_constants(std::vector<Constant>& constants, Span<const GivenConstant> given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const GivenConstant& g = given[i];
    const auto c =
        std::find_if(constants.begin(), constants.end(), [&](const Constant& known) { return known.id == g.id; });
    if (c == constants.end()) {
      std::string all;
      for (const Constant& known : constants) all += (all.empty() ? "" : ", ") + text(known.id);
      return Error(Errc::invalid_argument, "the module has no specialization constant " + text(g.id) +
                                               (all.empty() ? "; it has none" : "; it has " + all));
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (given[k].id == g.id) {
        return Error(Errc::invalid_argument, "specialization constant " + text(g.id) + " is given twice");
      }
    }
    if (c->kind != g.kind) {
      return Error(Errc::invalid_argument, "specialization constant " + text(g.id) + " is " + kind_name(c->kind) +
                                               ", and what is given for it is " + kind_name(g.kind));
    }
    if (c->kind == ConstantKind::floating && c->width != 32) {
      return Error(Errc::unsupported,
                   "specialization constant " + text(g.id) + " is a float of " + text(c->width) + " bits");
    }
    c->bits = c->width < 64 ? g.bits & ((std::uint64_t{1} << c->width) - 1) : g.bits;
  }
  return {};
}

}  // namespace

Result<Reflection> reflect(Span<const std::uint32_t> words, const std::string& entry_point,
                           Span<const GivenConstant> constants) {
  Reflection out;
  {
    Module module(words);
    if (Error e = module.read()) return e;
    auto found = module.constants();
    if (!found) return found.error();
    out.constants = std::move(*found);
  }
  if (Error e = set_constants(out.constants, constants)) return e;
  std::vector<spirv::ConstantValue> values;
  for (const GivenConstant& c : constants) values.push_back({c.id, c.bits});
  out.module = spirv::freeze({words.data(), words.size()}, {values.data(), values.size()});

  Module module(out.module);
  if (Error e = module.read()) return e;
  auto entry = module.entry_point(entry_point);
  if (!entry) return entry.error();
  auto bindings = module.bindings();
  if (!bindings) return bindings.error();
  auto push = module.push_bytes();
  if (!push) return push.error();
  auto shared = module.shared_bytes();
  if (!shared) return shared.error();
  auto size = module.local_size(*entry);
  if (!size) return size.error();
  out.entry_point = entry->name;
  out.version = words[1];
  out.capabilities = module.capabilities();
  out.extensions = module.extensions();
  out.bindings = std::move(*bindings);
  out.push_bytes = *push;
  out.shared_bytes = *shared;
  out.local_size = *size;
  // GroupNonUniform and its family.
  out.subgroups =
      std::any_of(out.capabilities.begin(), out.capabilities.end(), [](std::uint32_t c) { return c >= 61 && c <= 68; });
  module.write_local_size(*entry, *size, out.module);
  return out;
}

Error check(const Reflection& module, const Limits& limits) {
  auto version = [](std::uint32_t v) { return text(v >> 16) + "." + text(v >> 8 & 0xff); };
  if (module.version > limits.version) {
    return Error(Errc::unsupported, "the module is SPIR-V " + version(module.version) +
                                        ", and the library takes up to " + version(limits.version) +
                                        " (compile for Vulkan 1.2 or 1.1)");
  }
  for (std::uint32_t c : module.capabilities) {
    if (std::find(limits.capabilities.begin(), limits.capabilities.end(), c) == limits.capabilities.end()) {
      return Error(Errc::unsupported,
                   "the module needs the capability " + capability_name(c) + ", which this device has not enabled");
    }
  }
  for (const std::string& e : module.extensions) {
    if (std::find(limits.extensions.begin(), limits.extensions.end(), e) == limits.extensions.end()) {
      return Error(Errc::unsupported,
                   "the module needs the SPIR-V extension " + printable(e) + ", which this device has not enabled");
    }
  }
  auto beyond = [](const std::string& what, std::uint64_t is, const char* unit, std::uint64_t most) {
    return Error(Errc::limit_exceeded, what + " " + text(is) + unit + ", and this device takes at most " + text(most));
  };
  if (module.bindings.size() > limits.bindings) {
    return Error(Errc::limit_exceeded, "the kernel has " + text(module.bindings.size()) +
                                           " bindings, and a dispatch takes at most " + text(limits.bindings));
  }
  if (!module.bindings.empty() && module.bindings.back().number > limits.binding_number) {
    return Error(Errc::limit_exceeded, "binding numbers go up to " + text(limits.binding_number) +
                                           ", and the kernel has a binding " + text(module.bindings.back().number));
  }
  if (module.push_bytes > limits.push_bytes) {
    return beyond("the push constants take", module.push_bytes, " bytes", limits.push_bytes);
  }
  std::uint64_t invocations = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    constexpr const char* axes[] = {"x", "y", "z"};
    invocations = times(invocations, module.local_size[i]);
    if (module.local_size[i] > limits.local_size[i]) {
      return beyond("the workgroup has along " + std::string(axes[i]), module.local_size[i], " invocations",
                    limits.local_size[i]);
    }
  }
  if (invocations > limits.invocations) {
    return beyond("the workgroup of " + text(module.local_size[0]) + " x " + text(module.local_size[1]) + " x " +
                      text(module.local_size[2]) + " has",
                  invocations, " invocations", limits.invocations);
  }
  if (module.shared_bytes > limits.shared_bytes) {
    return beyond("shared variables take", module.shared_bytes, " bytes", limits.shared_bytes);
  }
  return {};
}

std::string capability_name(std::uint32_t capability) {
  static const std::map<std::uint32_t, const char*> names = {
      {0, "Matrix"},
      {1, "Shader"},
      {2, "Geometry"},
      {3, "Tessellation"},
      {4, "Addresses"},
      {5, "Linkage"},
      {6, "Kernel"},
      {9, "Float16"},
      {10, "Float64"},
      {11, "Int64"},
      {12, "Int64Atomics"},
      {22, "Int16"},
      {27, "ImageGatherExtended"},
      {28, "StorageImageMultisample"},
      {31, "StorageBufferArrayDynamicIndexing"},
      {39, "Int8"},
      {43, "Sampled1D"},
      {44, "Image1D"},
      {46, "SampledBuffer"},
      {47, "ImageBuffer"},
      {49, "StorageImageExtendedFormats"},
      {50, "ImageQuery"},
      {51, "DerivativeControl"},
      {55, "StorageImageReadWithoutFormat"},
      {56, "StorageImageWriteWithoutFormat"},
      {61, "GroupNonUniform"},
      {62, "GroupNonUniformVote"},
      {63, "GroupNonUniformArithmetic"},
      {64, "GroupNonUniformBallot"},
      {65, "GroupNonUniformShuffle"},
      {66, "GroupNonUniformShuffleRelative"},
      {67, "GroupNonUniformClustered"},
      {68, "GroupNonUniformQuad"},
      {4423, "SubgroupBallotKHR"},
      {4427, "DrawParameters"},
      {4431, "SubgroupVoteKHR"},
      {4433, "StorageBuffer16BitAccess"},
      {4434, "UniformAndStorageBuffer16BitAccess"},
      {4435, "StoragePushConstant16"},
      {4437, "DeviceGroup"},
      {4441, "VariablePointersStorageBuffer"},
      {4442, "VariablePointers"},
      {4448, "StorageBuffer8BitAccess"},
      {4449, "UniformAndStorageBuffer8BitAccess"},
      {4450, "StoragePushConstant8"},
      {4464, "DenormPreserve"},
      {4465, "DenormFlushToZero"},
      {4466, "SignedZeroInfNanPreserve"},
      {4467, "RoundingModeRTE"},
      {4468, "RoundingModeRTZ"},
      {5055, "ShaderClockKHR"},
      {5297, "GroupNonUniformPartitionedNV"},
      {5301, "ShaderNonUniform"},
      {5302, "RuntimeDescriptorArray"},
      {5345, "VulkanMemoryModel"},
      {5346, "VulkanMemoryModelDeviceScope"},
      {5347, "PhysicalStorageBufferAddresses"},
      {6016, "DotProductInputAll"},
      {6017, "DotProductInput4x8Bit"},
      {6018, "DotProductInput4x8BitPacked"},
      {6019, "DotProduct"},
      {6022, "CooperativeMatrixKHR"},
      {6033, "AtomicFloat32AddEXT"},
  };
  const auto known = names.find(capability);
  return known == names.end() ? "number " + text(capability) : known->second;
}

}  // namespace brontes::spirv
