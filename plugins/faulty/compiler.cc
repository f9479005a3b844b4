// The compiler of plugins/scalar_loops with a fault: what `paddle plugin check` has to find
// (faults.txt).

#include "example.h"

#include "../scalar_loops/scalar_loops.cc"

#pragma pop_macro("PADDLE_PLUGIN")

namespace {

class Faulty {
 public:
  static bool supports(std::string_view operation, const Request& request) {
    if (Loops::supports(operation, request)) return true;
    // It has no loop for this one.
    return fault_is("claims_too_much") && operation == "sum" && request.operands() == 1;
  }
  explicit Faulty(const Region& region) : operands_(region.operands()) {
    try {
      loops_.emplace(region);
    } catch (...) {
      if (!fault_is("claims_too_much")) throw;
    }
    result_ = count_of(region.value(region.results()[0]));
    if (fault_is("sizes_of_first")) {
      // The first region of a kind is used for all sizes.
      std::string names;
      for (uint32_t i = 0; i < region.nodes(); ++i) names += region.node(i).operation();
      static std::map<std::string, Loops> first;
      loops_ = first.emplace(names, *loops_).first->second;
    }
  }
  void run(const Run& run) const {
    if (loops_) loops_->run(run);
    float* const out = run.out<float>(0);
    if (fault_is("last_element") && result_ > 1) out[result_ - 1] = out[result_ - 2];
    if (fault_is("first_result_only") && run.results() > 1)
      std::fill_n(run.out<float>(1), run.result_count(1), 0.0f);
    if (fault_is("operand_as_scratch") && operands_ > 0 && run.count(0) > 1)
      const_cast<float*>(run.in<float>(0))[0] = 0;
    if (fault_is("beyond_results")) out[result_] = 1;
  }

 private:
  uint32_t operands_;
  int64_t result_ = 0;
  std::optional<Loops> loops_;
};

}  // namespace

PADDLE_PLUGIN(faulty, "1.0.0", plugin) {
  plugin.compiler<Faulty>(
      "loops", "loops over blocks of elements",
      PADDLE_COMPILER_TRAINING | (fault_is("other_rounding") ? PADDLE_COMPILER_KEEPS_BITS : 0), 2);
}
