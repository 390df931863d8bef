// SPDX-License-Identifier: MIT
#pragma once

/// Everything but vulkan.hpp, which needs the Vulkan headers.
#include <brontes/batch.hpp>
#include <brontes/buffer.hpp>
#include <brontes/catalogue.hpp>
#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/kernel.hpp>
#include <brontes/matmul.hpp>
#include <brontes/matmul_cache.hpp>
#include <brontes/ops.hpp>
#include <brontes/pipeline_cache.hpp>
#include <brontes/prepare.hpp>
#include <brontes/profile.hpp>
#include <brontes/program.hpp>
#include <brontes/shadow.hpp>
#include <brontes/stats.hpp>
#include <brontes/tensor.hpp>
#include <brontes/tuning.hpp>
#include <brontes/tuning_file.hpp>
#include <brontes/version.hpp>
#include <brontes/weight.hpp>
