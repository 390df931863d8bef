// Whether a sanitizer stands under this program.
#pragma once

#if defined(__has_feature)
#  define BRONTES_HAS_FEATURE(name) __has_feature(name)
#else
#  define BRONTES_HAS_FEATURE(name) 0
#endif

namespace brontes::test {

#if defined(__SANITIZE_ADDRESS__) || BRONTES_HAS_FEATURE(address_sanitizer)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__) || BRONTES_HAS_FEATURE(thread_sanitizer)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

}  // namespace brontes::test

#undef BRONTES_HAS_FEATURE
