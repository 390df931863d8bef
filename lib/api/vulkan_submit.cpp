#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include "api/access.hpp"

namespace brontes::vulkan {
namespace {

template <class Work>
Result<Submission> submit_to(Work& work, const SubmitInfo& info) {
  return guarded("submit", [&]() -> Result<Submission> {
    if ((info.waits.data() == nullptr && !info.waits.empty()) ||
        (info.signals.data() == nullptr && !info.signals.empty())) {
      return Error(Errc::null_data, "submit: a null pointer for semaphores");
    }
    const vk::Dependencies dependencies{SubmissionAccess::value(info.after), info.waits, info.signals};
    return RunAccess::submit(work, dependencies, SubmissionAccess::context(info.after).get());
  });
}

}  // namespace

Result<Submission> submit(Batch& batch, const SubmitInfo& info) { return submit_to(batch, info); }
Result<Submission> submit(Program& program, const SubmitInfo& info) { return submit_to(program, info); }

TimelinePoint timeline(const Submission& submission) noexcept {
  const auto& context = SubmissionAccess::context(submission);
  if (!context || context->abandoned()) return {};
  return {context->queue().timeline(), SubmissionAccess::value(submission)};
}

}  // namespace brontes::vulkan
