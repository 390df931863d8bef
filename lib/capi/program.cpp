#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

#include <chrono>
#include <cstdint>

using namespace brontes;
using namespace brontes::capi;

brontes::Error brontes_program::find(const char* call, brontes_tensor number, brontes::Tensor& to) const {
  const Tensor* const found = tensors->find(number, tensor_count);
  if (found != nullptr) {
    to = *found;
    return {};
  }
  if (TensorTable::tag_of(number) == 0) {
    return Error(Errc::invalid_tensor, std::string(call) + ": no tensor, as an op returns it that failed");
  }
  if (TensorTable::tag_of(number) == tensors->tag()) {
    return Error(Errc::invalid_tensor, std::string(call) + ": the tensor was recorded after the program was compiled");
  }
  return Error(Errc::foreign_tensor, std::string(call) +
                                         ": the tensor belongs to another batch, or was recorded before or after a "
                                         "reset");
}

namespace {

/// A call on a program and one of its tensors.
template <class Program, class Body>
brontes_status with_tensor(const char* call, Program* program, brontes_tensor number, brontes_error* error, Body body) {
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    Tensor x;
    if (Error e = program->find(call, number, x)) return e;
    return body(program->program, x);
  });
}

}  // namespace

void brontes_program_destroy(brontes_program* program) { destroy(program); }

brontes_status brontes_program_write(brontes_program* program, brontes_tensor x, const float* data, size_t count,
                                     brontes_error* error) {
  return with_tensor(__func__, program, x, error,
                     [&](Program& to, Tensor t) { return to.write(t, Span<const float>(data, count)); });
}

brontes_status brontes_program_write_i32(brontes_program* program, brontes_tensor x, const int32_t* data, size_t count,
                                         brontes_error* error) {
  return with_tensor(__func__, program, x, error,
                     [&](Program& to, Tensor t) { return to.write(t, Span<const std::int32_t>(data, count)); });
}

brontes_status brontes_program_write_f16_bits(brontes_program* program, brontes_tensor x, const uint16_t* data,
                                              size_t count, brontes_error* error) {
  return with_tensor(__func__, program, x, error,
                     [&](Program& to, Tensor t) { return to.write(t, Span<const std::uint16_t>(data, count)); });
}

brontes_status brontes_program_rebind(brontes_program* program, brontes_tensor x, const brontes_buffer* buffer,
                                      brontes_error* error) {
  const char* const call = __func__;
  return with_tensor(call, program, x, error, [&](Program& of, Tensor t) -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    return of.rebind(t, buffer->buffer);
  });
}

brontes_status brontes_program_submit(brontes_program* program, const brontes_submission* after,
                                      brontes_submission** submission, brontes_error* error) {
  if (submission != nullptr) *submission = nullptr;
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    if (after != nullptr) {
      if (Error e = check(call, after, "submission")) return e;
    }
    return submit_to(submission, [&] {
      return after == nullptr ? program->program.submit() : program->program.submit(after->submission);
    });
  });
}

brontes_status brontes_program_run(brontes_program* program, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    return program->program.run();
  });
}

brontes_status brontes_program_read(const brontes_program* program, brontes_tensor x, float* out, size_t count,
                                    brontes_error* error) {
  return with_tensor(__func__, program, x, error,
                     [&](const Program& of, Tensor t) { return of.read(t, Span<float>(out, count)); });
}

brontes_status brontes_program_read_i32(const brontes_program* program, brontes_tensor x, int32_t* out, size_t count,
                                        brontes_error* error) {
  return with_tensor(__func__, program, x, error,
                     [&](const Program& of, Tensor t) { return of.read(t, Span<std::int32_t>(out, count)); });
}

brontes_status brontes_program_read_f16_bits(const brontes_program* program, brontes_tensor x, uint16_t* out,
                                             size_t count, brontes_error* error) {
  return with_tensor(__func__, program, x, error,
                     [&](const Program& of, Tensor t) { return of.read(t, Span<std::uint16_t>(out, count)); });
}

brontes_status brontes_program_get_stats(const brontes_program* program, brontes_batch_stats* stats,
                                         brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    return BRONTES_RESULT(call, brontes_batch_stats, to_c(program->program.stats()), stats);
  });
}

brontes_status brontes_program_get_memory(const brontes_program* program, brontes_memory_needs* needs,
                                          brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    return BRONTES_RESULT(call, brontes_memory_needs, to_c(program->program.memory()), needs);
  });
}

brontes_status brontes_program_dump(const brontes_program* program, brontes_dump_format format, char** text,
                                    brontes_error* error) {
  const char* const call = __func__;
  return make(call, text, error, [&](char*& out) -> Error {
    if (Error e = check(call, program, "program")) return e;
    DumpFormat as{};
    if (Error e = set(as, format, call, "brontes_dump_format")) return e;
    const std::string dumped = program->program.dump(as);
    if (dumped.empty()) return no_host_memory(call);
    out = copy_text(dumped);
    return {};
  });
}

namespace {

// Profiles and the like have no graph to draw.
Error text_or_json(const char* call, brontes_dump_format format, DumpFormat& to) {
  if (Error e = set(to, format, call, "brontes_dump_format")) return e;
  return to == DumpFormat::dot ? invalid(call, "BRONTES_DUMP_DOT; expected text or JSON") : Error();
}

}  // namespace

brontes_status brontes_program_profile(brontes_program* program, const brontes_profile_options* options,
                                       brontes_dump_format format, char** text, brontes_error* error) {
  const char* const call = __func__;
  return make(call, text, error, [&](char*& out) -> Error {
    if (Error e = check(call, program, "program")) return e;
    brontes_profile_options given;
    if (Error e = BRONTES_STRUCT(call, brontes_profile_options, options, given)) return e;
    DumpFormat as{};
    if (Error e = text_or_json(call, format, as)) return e;
    ProfileOptions wanted;
    if (given.runs != 0) wanted.runs = given.runs;
    wanted.limits = {given.max_flops, given.max_bytes};
    auto profile = program->program.profile(wanted);
    if (!profile) return profile.error();
    const Profile shown = given.merged != 0 ? profile->merged() : std::move(*profile);
    const std::string printed = as == DumpFormat::json ? shown.json() : shown.text();
    if (printed.empty()) return no_host_memory(call);
    out = copy_text(printed);
    return {};
  });
}

brontes_status brontes_program_shadow_check(brontes_program* program, uint32_t every, brontes_dump_format format,
                                            int* ok, char** text, brontes_error* error) {
  if (text != nullptr) *text = nullptr;
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    DumpFormat as{};
    if (Error e = text_or_json(call, format, as)) return e;
    ShadowOptions options;
    options.every = every;
    const auto report = program->program.shadow_check(options);
    if (!report) return report.error();
    if (text != nullptr) *text = copy_text(as == DumpFormat::json ? report->json() : report->text());
    if (ok != nullptr) *ok = report->ok ? 1 : 0;
    return {};
  });
}

void brontes_submission_destroy(brontes_submission* submission) { destroy(submission); }

int brontes_submission_ready(const brontes_submission* submission) {
  return !is(submission) || submission->submission.ready() ? 1 : 0;
}

brontes_status brontes_submission_wait(const brontes_submission* submission, uint64_t timeout_ns,
                                       brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, submission, "submission")) return e;
    constexpr auto longest = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
    return submission->submission.wait(
        std::chrono::nanoseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(timeout_ns, longest))));
  });
}
