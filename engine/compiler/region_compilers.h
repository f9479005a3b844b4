#pragma once
// Compilers that take whole regions of a function, such as those of plug-ins: a pass wraps the
// operations of a region in one operation `plugin.region`, and the runtime asks the compiler for a
// kernel when it plans the function. Without one the operations run one by one.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "ir/module.h"
#include "ops/core/kernel.h"

namespace paddle::compiler {

/// A region whose sizes are known.
struct RegionRequest {
  const ir::Operation& operation;    ///< `plugin.region`
  std::span<const Layout> operands;  ///< contiguous
  std::span<const Layout> results;   ///< contiguous
  const SymbolLookup& symbols;       ///< the sizes by the names that types have
  Device device;                     ///< that the kernel runs on
};

struct RegionCompiler {
  std::string name;           ///< "acme.loops"
  int16_t device_kind = 0;    ///< of the devices that its kernels run on
  bool keeps_bits = false;    ///< results are those of the engine's kernels bit for bit
  bool for_training = false;  ///< also for functions that update parameters
  size_t least_operations = 1;
  /// Whether it computes such an operation.
  std::function<bool(const ir::Operation& operation)> supports = {};
  /// Estimated seconds of such an operation in a region; may be empty.
  std::function<double(const ir::Operation& operation)> cost = {};
  /// Null if it declines. From several threads at once.
  std::function<std::unique_ptr<Kernel>(const RegionRequest& request)> compile = {};
};

/// Those that programs have added.
Registry<RegionCompiler>& region_compilers();

/// Whether the operation is a region that a compiler has claimed.
bool is_claimed(const ir::Operation& operation);
/// The kernel of a claimed region: that which it was compiled to when it was claimed, if there is
/// one. Null if its compiler is not there, declines it, or fails, of
/// which a warning is logged.
std::unique_ptr<Kernel> compile_region(const RegionRequest& request);

using RegionCompilers = std::vector<Registry<RegionCompiler>::Handle>;

/// Wraps regions of operations that the compiler supports in `plugin.region`, except operations for
/// which one of `others` states a lower cost. Regions whose sizes are all known are compiled at
/// once: those that it declines stay as they are.
void claim_regions(ir::Function& function, const RegionCompiler& compiler,
                   const RegionCompilers& others = {});

}  // namespace paddle::compiler
