// Steps of recurrent layers with oneDNN's matmul, for batches whose rows pay for packing the weight
// in each step; smaller ones pack it once (packed_scan.h). oneDNN's own recurrent primitives also
// take the input weights, whose product is one large GEMM over all steps here.

#include "kernels/common/rounding.h"
#include "kernels/onednn/program.h"
#include "kernels/recurrent/scan.h"
#include "ops/generated/sequence.h"

namespace paddle::onednn {
namespace {

using cpu::ScanShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

constexpr auto kF32 = dnnl::memory::data_type::f32;

Desc rows(int64_t count, int64_t width, int64_t stride) {
  return Desc({count, width}, kF32, dnnl::memory::dims{stride, 1});
}

/// Appends to = from · weight on operands 0 and 1 and result 0. False if oneDNN is slow for it.
bool add_matmul(Program& program, const Desc& from, const Desc& weight, const Desc& to) {
  const dnnl::matmul::primitive_desc description({from, weight, to}, user_scratchpad(),
                                                 cpu_engine(), true);
  if (!description || is_reference(description.impl_info_str())) return false;
  program.add(dnnl::matmul(description), description.scratchpad_desc(),
              {{DNNL_ARG_SRC, from, {MemoryRef::kOperand, 0}},
               {DNNL_ARG_WEIGHTS, weight, {MemoryRef::kOperand, 1}},
               {DNNL_ARG_DST, to, {MemoryRef::kResult, 0}}});
  program.set_name(description.impl_info_str());
  return true;
}

/// Runs a program of one or two operands and one result.
void run(const Program& program, const RunContext& context, const float* a, const float* b,
         float* out) {
  void* const operands[] = {const_cast<float*>(a), const_cast<float*>(b)};
  void* const results[] = {out};
  program.run(context, operands, results);
}

class OnednnScanGemm final : public cpu::ScanGemm<float> {
 public:
  /// Null if oneDNN has no fast matmul for the shape.
  static std::unique_ptr<OnednnScanGemm> of(const ScanShape& s, bool backward) {
    auto p = std::make_unique<OnednnScanGemm>();
    const int64_t n = s.hidden, width = s.width();
    if (backward) {
      if (!add_matmul(p->backward_, rows(s.batch, width, s.steps * width), rows(width, n, n),
                      rows(s.batch, n, n)))
        return nullptr;
      p->name_ = p->backward_.implementation();
      return p;
    }
    const Desc transposed_weight({n, width}, kF32, Tag::ba), plain({n, width}, kF32, Tag::ab);
    if (!add_matmul(p->first_, rows(s.batch, n, n), plain, rows(s.batch, width, width)) ||
        !add_matmul(p->later_, rows(s.batch, n, s.steps * n), plain, rows(s.batch, width, width)))
      return nullptr;
    p->transpose_.reorder({MemoryRef::kOperand, 0}, transposed_weight, {MemoryRef::kResult, 0},
                          plain);
    p->weight_bytes_ = cpu::round_up_to_cache_line(plain.get_size());
    p->name_ = p->later_.implementation();
    return p;
  }

  size_t scratch_bytes() const override {
    return weight_bytes_ + std::max({transpose_.scratch_bytes(), first_.scratch_bytes(),
                                     later_.scratch_bytes(), backward_.scratch_bytes()});
  }
  std::string name() const override { return name_; }
  void begin(const RunContext& context, const float* weight) const override {
    if (weight_bytes_ > 0)
      run(transpose_, inner_context(context), weight, nullptr, transposed_weight(context));
  }
  void forward(const RunContext& context, const float*, const float* h, bool first,
               float* hidden_gates) const override {
    run(first ? first_ : later_, inner_context(context), h, transposed_weight(context),
        hidden_gates);
  }
  void backward(const RunContext& context, const float* weight, const float* g,
                float* out) const override {
    run(backward_, inner_context(context), g, weight, out);
  }

 private:
  static float* transposed_weight(const RunContext& context) {
    return reinterpret_cast<float*>(context.scratch);
  }
  RunContext inner_context(const RunContext& context) const {
    return {context.scratch + weight_bytes_, nullptr};
  }

  Program transpose_, first_, later_, backward_;
  size_t weight_bytes_ = 0;  ///< of the transposed weight, at the start of scratch
  std::string name_;
};

bool is_supported(const KernelRequest& request, const ScanShape& s) {
  return request.operands[0].dtype == DType::kF32 && s.batch > 0 && s.steps > 0 && s.hidden > 0;
}

bool is_worthwhile(const ScanShape& s) { return s.batch >= 32 && s.hidden >= 64; }

}  // namespace

std::unique_ptr<Kernel> prepare_recurrent_scan(const KernelRequest& request) {
  const RecurrentScanAttrs attrs(request.attrs);
  const auto shape = ScanShape::of(attrs.cell, attrs.reverse, request.results[0].shape);
  if (!is_supported(request, shape)) return nullptr;
  if (!is_worthwhile(shape) && !request.prepare.backend_pinned) return nullptr;
  auto gemm = OnednnScanGemm::of(shape, false);
  return gemm ? cpu::scan_kernel<float>(shape, std::move(gemm)) : nullptr;
}

std::unique_ptr<Kernel> prepare_recurrent_scan_grad(const KernelRequest& request) {
  const RecurrentScanGradAttrs attrs(request.attrs);
  const auto shape = ScanShape::of(attrs.cell, attrs.reverse, request.operands[8].shape);
  if (!is_supported(request, shape)) return nullptr;
  if (!is_worthwhile(shape) && !request.prepare.backend_pinned) return nullptr;
  auto gemm = OnednnScanGemm::of(shape, true);
  return gemm ? cpu::scan_grad_kernel<float>(shape, std::move(gemm)) : nullptr;
}

}  // namespace paddle::onednn
