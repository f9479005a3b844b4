#pragma once
// The checks of one operation of a plug-in. Each returns "" or one line: what failed, with the
// arguments of the call in brackets.

#include <string>
#include <vector>

#include "conformance/calls.h"
#include "conformance/results.h"
#include "inspect/both_modes.h"
#include "ops/core/op.h"
#include "tensor/interpreter.h"

namespace paddle::conformance {

/// The results in a mode against the body in float64.
std::string check_results(const Op& op, inspect::Mode mode, const Extent& extent);
/// The results on a device against those on the CPU.
std::string check_on_device(const Op& op, const std::string& device, inspect::Mode mode,
                            const Extent& extent);
/// Decomposes one operation, whatever kernels it has.
class BodyOf final : public ForwardingInterpreter {
 public:
  explicit BodyOf(const Op& op) : op_(op) {}
  Tensors apply(const OpCall& call) override;

 private:
  const Op& op_;
};
/// The results of a call whose operation is decomposed so.
Results results_of_body(const Op& op, const inspect::NamedCall& call,
                        const std::vector<Array>& inputs);
/// The reference of a call: the body, or for an operation of the engine its own kernel, in float64
/// where the operation takes it, else in the dtypes of the inputs.
Results reference_results(const Op& op, const inspect::NamedCall& call,
                          const std::vector<Array>& inputs);
/// The same in the dtypes of the inputs.
Results narrow_reference(const Op& op, const inspect::NamedCall& call,
                         const std::vector<Array>& inputs);
/// The results of a call in a mode.
Results call_results(const inspect::NamedCall& call, const std::vector<Array>& inputs,
                     inspect::Mode mode, Device device = {});
/// "" if results agree with the reference, which may be in a wider dtype.
std::string compare_with_reference(const Results& found, const Results& reference,
                                   double scale = 1);
/// The kernel by itself: it writes every element of its results and nothing else, leaves operands
/// as they are, and gives the same bits each time.
std::string check_kernel(const Op& op, const Extent& extent);
/// Whether results have the same bits again, and with other numbers of threads.
std::string check_repeatable(const Op& op, const Extent& extent);

/// The traits of an operation that are promises which can be tested.
std::vector<std::string> tested_traits(const Op& op);
std::string check_trait(const Op& op, const std::string& trait, const Extent& extent);

}  // namespace paddle::conformance
