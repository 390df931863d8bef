// SPDX-License-Identifier: MIT
#pragma once

/// BRONTES_API marks what the shared library exports. Everything else is hidden.
/// The pkg-config file and the Meson dependency define BRONTES_STATIC where only the static library
/// is linked (it matters on Windows alone).
#if defined(_WIN32) && !defined(BRONTES_STATIC)
#  if defined(BRONTES_BUILDING)
#    define BRONTES_API __declspec(dllexport)
#  else
#    define BRONTES_API __declspec(dllimport)
#  endif
#elif defined(__GNUC__)
#  define BRONTES_API __attribute__((visibility("default")))
#else
#  define BRONTES_API
#endif
