#include "plugin/kernel_adapter.h"

#include <algorithm>

#include "base/parallel.h"
#include "plugin/frame.h"
#include "plugin/process_state.h"

namespace paddle::plugin {
namespace {

void* allocate_result(paddle_call* call, uint32_t result, const int64_t* shape, int32_t rank) {
  void* memory = nullptr;
  guarded(call, [&] {
    if (rank < 0 || std::any_of(shape, shape + rank, [](int64_t size) { return size < 0; }))
      fail(ErrorCode::kInternal, "the shape of result ", result, " has a negative size");
    if (result >= call->results_allocated.size())
      fail(ErrorCode::kInternal, "there is no result ", result);
    if (call->results_allocated[result])
      fail(ErrorCode::kInternal, "memory of result ", result, " is asked for twice");
    memory = call->allocator->allocate(result, Dims(shape, shape + rank));
    call->results_allocated[result] = true;
    // A result without elements has an address, too.
    static std::byte none;
    if (!memory) memory = &none;
  });
  return memory;
}

class PluginKernel final : public Kernel {
 public:
  PluginKernel(const std::string& plugin, const std::string& subject,
               const paddle_instance& instance, size_t operands, size_t results)
      : plugin_(plugin),
        subject_(subject),
        instance_(instance),
        operands_(static_cast<uint32_t>(operands)),
        results_(static_cast<uint32_t>(results)),
        name_(instance.implementation ? instance.implementation : plugin) {}
  ~PluginKernel() override {
    if (!instance_.destroy) return;
    const Frame frame(plugin_.c_str(), "destroy", subject_.c_str());
    instance_.destroy(instance_.state);
  }

  void run(const RunContext& c, void* const* operands, void* const* results) const override {
    paddle_call call;
    call.collectives = c.collectives;
    paddle_run arguments{};
    arguments.struct_size = sizeof arguments;
    arguments.operand_count = operands_;
    arguments.result_count = results_;
    arguments.call = &call;
    arguments.stream = c.stream;
    arguments.scratch = c.scratch;
    arguments.operands = operands;
    arguments.results = results;
    arguments.location = c.location ? c.location->c_str() : "";
    if (c.allocator) {
      call.allocator = c.allocator;
      call.results_allocated.resize(results_);
      arguments.allocate_result = allocate_result;
    }
    paddle_status status = PADDLE_INTERNAL;
    const unsigned control = float_control();
    {
      const Frame frame(plugin_.c_str(), "run", subject_.c_str(), arguments.location);
      status = call_plugin(frame, plugin_.c_str(), subject_.c_str(),
                           [&] { return instance_.run(instance_.state, &arguments); });
    }
    if (float_control() != control) {
      set_float_control(control);
      fail(ErrorCode::kInternal, subject_, ": the kernel of ", plugin_,
           " changes how the floating-point unit rounds");
    }
    // An error that was set counts although the kernel says that all is well.
    if (status != PADDLE_OK || !call.message.empty()) throw_status(call, status, subject_);
    if (c.allocator &&
        std::ranges::find(call.results_allocated, false) != call.results_allocated.end())
      fail(ErrorCode::kInternal, subject_, ": the kernel of ", plugin_,
           " gives no memory for a result");
  }
  size_t scratch_bytes() const override { return instance_.scratch_bytes; }
  bool reads(size_t i) const override { return i >= 64 || ((instance_.unread >> i) & 1) == 0; }
  bool capturable() const override {
    return (instance_.flags & PADDLE_INSTANCE_NOT_CAPTURABLE) == 0;
  }
  std::string implementation() const override { return name_; }

 private:
  const std::string &plugin_, &subject_;
  paddle_instance instance_;
  uint32_t operands_, results_;
  std::string name_;
};

}  // namespace

LayoutViews::LayoutViews(std::span<const Layout> layouts)
    : layouts_(layouts.begin(), layouts.end()) {
  for (const Layout& layout : layouts_) {
    paddle_view& view = views_.emplace_back();
    view = {};
    view.struct_size = sizeof view;
    view.dtype = c_dtype(layout.dtype);
    view.rank = static_cast<int32_t>(layout.shape.size());
    view.flags = PADDLE_VIEW_READ_ONLY;
    if (!layout.present) view.flags |= PADDLE_VIEW_ABSENT;
    if (layout.constant) view.flags |= PADDLE_VIEW_CONSTANT;
    view.data = const_cast<void*>(layout.constant);
    view.shape = layout.shape.data();
    view.strides = layout.strides.data();
    pointers_.push_back(&view);
  }
}

OperationRequest::OperationRequest(const Op& op, Attrs attrs, std::span<const Layout> operands,
                                   std::span<const Layout> results)
    : attrs_(std::move(attrs)), operands_(operands), results_(results), data_{op, attrs_} {
  request_.struct_size = sizeof request_;
  request_.operand_count = static_cast<uint32_t>(operands.size());
  request_.result_count = static_cast<uint32_t>(results.size());
  request_.thread_count = static_cast<uint32_t>(thread_count());
  request_.operands = operands_.data();
  request_.results = results_.data();
  request_.operation = &data_;
}

Layout layout_of_type(const TensorType& type) {
  Layout out;
  out.dtype = type.dtype;
  for (const Dim& d : type.shape) out.shape.push_back(d.constant().value_or(-1));
  out.strides.resize(out.shape.size());
  int64_t stride = 1;
  for (size_t i = out.shape.size(); i-- > 0;) {
    out.strides[i] = stride;
    stride = stride < 0 || out.shape[i] < 0 ? -1 : stride * out.shape[i];
  }
  return out;
}

std::unique_ptr<Kernel> kernel_of_instance(const std::string& plugin, const std::string& subject,
                                           const paddle_instance& instance, size_t operands,
                                           size_t results) {
  return std::make_unique<PluginKernel>(plugin, subject, instance, operands, results);
}

std::unique_ptr<Kernel> prepare_plugin_kernel(const KernelRequest& request, const void* context) {
  const auto& c = *static_cast<const KernelContext*>(context);
  if (!request.operands.empty() && request.operands[0].present &&
      !(c.dtypes & dtype_sets::of(request.operands[0].dtype)))
    return nullptr;
  const OperationRequest r(request.op, request.attrs, request.operands, request.results);
  paddle_instance instance{};
  instance.struct_size = sizeof instance;
  paddle_call call;
  paddle_status status = PADDLE_INTERNAL;
  {
    const Frame frame(c.plugin.c_str(), "prepare", c.operation.c_str());
    status = call_plugin(frame, c.plugin.c_str(), c.operation.c_str(),
                         [&] { return c.kernel->prepare(&call, r.get(), &instance); });
  }
  if (status == PADDLE_DECLINED) return nullptr;
  if (status != PADDLE_OK) throw_status(call, status, c.operation);
  if (!instance.run)
    fail(ErrorCode::kInternal, c.operation, ": 'prepare' of ", c.plugin, " gave no 'run'");
  return kernel_of_instance(c.plugin, c.operation, instance, request.operands.size(),
                            request.results.size());
}

}  // namespace paddle::plugin
