// Measures which matmul kernels are fastest on a device, and how it reaches memory best.
#pragma once

#include "engine/engine.hpp"

#include <brontes/error.hpp>
#include <brontes/tuning.hpp>

#include <memory>
#include <vector>

namespace brontes::tune {

/// The products that are measured when none are named; `quick` gives a few.
std::vector<MatmulShape> usual_shapes(bool quick);

/// What tune_matmul() does on a device that is there.
///
/// Thread-safety: any thread; calls for one device take turns.
Result<TuneReport> tune(const std::shared_ptr<engine::Engine>& engine, const TuneOptions& options);

}  // namespace brontes::tune
