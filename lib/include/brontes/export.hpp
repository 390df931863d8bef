// SPDX-License-Identifier: MIT
#pragma once

/// BRONTES_API marks what the shared library exports; everything else is hidden. BRONTES_LOCAL marks the private parts
/// of classes that are exported.
///
/// BRONTES_STATIC is defined where the static library is linked: by brontes-static of pkg-config and of Meson, and by
/// brontes::static of CMake. Windows needs it; elsewhere it keeps a shared library that has Brontes inside from
/// exporting the inline parts of it.
#if defined(BRONTES_STATIC)
#  define BRONTES_API
#elif defined(_WIN32)
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

#if defined(__GNUC__) && !defined(_WIN32) && !defined(BRONTES_STATIC)
#  define BRONTES_LOCAL __attribute__((visibility("hidden")))
#else
#  define BRONTES_LOCAL
#endif
