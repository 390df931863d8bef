// What is behind a public Program.
#pragma once

#include "api/access.hpp"
#include "submit/program.hpp"

#include <brontes/program.hpp>

#include <memory>

namespace brontes {

struct Program::State {
  std::shared_ptr<vk::Context> context;
  TensorOwner owner;
  /// The graph the plan was made from. Its upload data has gone into the program.
  record::Graph graph;
  std::unique_ptr<submit::Program> program;
  bool ran = false;

  /// Why `x` means nothing to this program, if so.
  Error check(const char* op, const Tensor& x) const;
  template <class T>
  Error write(const Tensor& x, Span<const T> data);
  Error rebind(const Tensor& x, const Buffer& buffer);
  /// `of`: whose timeline the dependencies are on; null where they are on none.
  Result<Submission> submit(const vk::Dependencies& dependencies, const vk::Context* of);
  Result<Profile> profile(const ProfileOptions& options);
  Result<ShadowReport> shadow_check(const ShadowOptions& options);
  template <class T>
  Error read(const Tensor& x, Span<T> out) const;
};

}  // namespace brontes
