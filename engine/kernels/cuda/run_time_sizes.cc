#include "kernels/cuda/run_time_sizes.h"

#include <vector>

#include "kernels/cuda/prepare.h"
#include "kernels/cuda/waiting.h"
#include "kernels/indexing/run_time_sizes.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_run_time_sizes(const KernelRequest& request) {
  if (!are_plain(request)) return nullptr;
  const int64_t count = request.operands[0].size();
  return waiting_kernel(
      [=, device = request.target.device](const RunContext& context, void* const* operands,
                                          void* const*) {
        std::vector<int64_t> values(static_cast<size_t>(count));
        if (count > 0)
          read_back(context, device, values.data(), operands[0], values.size() * sizeof(int64_t));
        context.allocator->allocate(0, checked_sizes(values.data(), count));
      },
      0, "cuda:sizes");
}

}  // namespace paddle::cuda
