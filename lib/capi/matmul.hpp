// Options of products.
#pragma once

#include <brontes/brontes.h>
#include <brontes/matmul.hpp>

namespace brontes::capi {

Error matmul_options(const char* call, const brontes_matmul_options* given, MatmulOptions& to);

/// An alpha that would be lost is an error.
Error set_alpha(const char* call, std::int32_t has_alpha, float alpha, float& to);

}  // namespace brontes::capi
