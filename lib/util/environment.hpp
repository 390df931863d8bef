// SPDX-License-Identifier: MIT
#pragma once

/// The environment, as far as it may be trusted. Nothing else in the library calls getenv().
namespace brontes::util {

/// Whether the process has rights that whoever started it lacks: set-uid, set-gid or file capabilities, also
/// after it has dropped them. Its environment is then somebody else's.
bool secure_execution() noexcept;

/// The variable's value; null if it is unset, and always in secure execution.
///
/// Thread-safety: any thread, as long as none changes the environment.
const char* environment(const char* name) noexcept;

}  // namespace brontes::util
