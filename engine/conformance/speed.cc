#include "conformance/speed.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "autograd/autograd.h"
#include "base/elapsed.h"
#include "conformance/device_objects.h"
#include "conformance/every_operation.h"
#include "conformance/operators.h"
#include "conformance/passes.h"
#include "inspect/numeric.h"
#include "runtime/execute.h"
#include "tensor/device_functions.h"

namespace paddle::conformance {
namespace {

/// Seconds of one call: the least of some rounds.
double time_of(const std::function<void()>& f, const std::function<void()>& wait, bool quick) {
  const double wanted = quick ? 0.01 : 0.1;
  f();
  wait();
  double best = 1e9;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t calls = 1; seconds_since(begin) < 3 * wanted;) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) f();
    wait();
    const double took = seconds_since(start);
    best = std::min(best, took / static_cast<double>(calls));
    if (took < wanted / 3) calls = std::min<int64_t>(calls * 2, 1 << 20);
  }
  return best;
}

std::string seconds_text(double seconds) {
  return seconds < 1e-6   ? fmt::format("{:.0f} ns", seconds * 1e9)
         : seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6)
         : seconds < 1    ? fmt::format("{:.2f} ms", seconds * 1e3)
                          : fmt::format("{:.2f} s", seconds);
}

/// Calls an operation eagerly on a device, with the inputs there.
class EagerCall {
 public:
  /// `body`: an operation that is decomposed.
  EagerCall(const inspect::NamedCall& call, Device device, const Op* body = nullptr)
      : call_(call), executor_({.device = device}) {
    if (body) body_.emplace(*body);
    for (const Array& x : call.inputs()) inputs_.emplace_back(inspect::own_copy(x).to(device));
  }
  void run() {
    const InterpreterScope scope(executor_);
    std::optional<InterpreterScope> above;
    if (body_) above.emplace(*body_);
    const autograd::NoGradScope none;
    (void)call_(inputs_);
  }

 private:
  const inspect::NamedCall& call_;
  runtime::EagerExecutor executor_;
  std::optional<BodyOf> body_;
  Tensors inputs_;
};

inspect::NamedCall call_of(const char* op, const char* text) {
  return parse(get_op(op), {text, false});
}

std::string measure_calls(Device device, bool quick) {
  const inspect::NamedCall call = call_of("add", "x=f32[8] y=f32[8]");
  EagerCall there(call, device), here(call, Device::cpu());
  const double on_device = time_of([&] { there.run(); }, [&] { synchronize(device); }, quick);
  const double on_cpu = time_of([&] { here.run(); }, [] {}, quick);
  return str("an eager call of 8 elements takes ", seconds_text(on_device), ", on the CPU ",
             seconds_text(on_cpu));
}

std::string measure_copies(Device device, bool quick) {
  const paddle_device_api& api = device_api(device);
  const size_t bytes = size_t{quick ? 4u : 32u} << 20;
  const DeviceStream stream(api, device.index);
  const DeviceMemory a(api, device.index, bytes), b(api, device.index, bytes);
  void *from = nullptr, *to = nullptr;
  must(api, api.allocate_host(bytes, &from), "allocate_host");
  must(api, api.allocate_host(bytes, &to), "allocate_host");
  std::memset(from, 1, bytes);
  const auto rate = [&](const std::function<void()>& copy) {
    const double seconds = time_of(
        copy, [&] { stream.synchronize(); }, quick);
    return fmt::format("{:.1f} GB/s", static_cast<double>(bytes) / seconds / 1e9);
  };
  std::string out = str("to the device ", rate([&] { stream.to_device(a.at(), from, bytes); }),
                        ", on it ", rate([&] { stream.on_device(b.at(), a.at(), bytes); }),
                        ", to the host ", rate([&] { stream.to_host(to, b.at(), bytes); }),
                        ", for copies of ", bytes >> 20, " MiB");
  must(api, api.release_host(from), "release_host");
  must(api, api.release_host(to), "release_host");
  return out;
}

struct Timed {
  const char* op;
  const char* small;  ///< for quick checks
  const char* large;
};
constexpr Timed kTimed[] = {
    {"add", "x=f32[100000] y=f32[100000]", "x=f32[4000000] y=f32[4000000]"},
    {"exp", "x=f32[100000]", "x=f32[4000000]"},
    {"sum", "x=f32[300,300] axis=1", "x=f32[2000,2000] axis=1"},
    {"softmax", "x=f32[64,1000]", "x=f32[1024,4000]"},
    {"matmul", "x=f32[128,128] y=f32[128,128]", "x=f32[512,512] y=f32[512,512]"},
    {"conv2d", "x=f32[1,8,28,28] weight=f32[8,8,3,3]", "x=f32[4,32,56,56] weight=f32[32,32,3,3]"},
    {"embedding", "x=i64[1000]{0,99} weight=f32[100,32]",
     "x=i64[50000]{0,999} weight=f32[1000,64]"},
    {"transpose", "x=f32[200,200] perm=[1,0]", "x=f32[2000,2000] perm=[1,0]"},
};

std::string measure_operations(Device device, bool quick) {
  std::string out;
  for (const Timed& each : kTimed) {
    const inspect::NamedCall call = call_of(each.op, quick ? each.small : each.large);
    EagerCall there(call, device), here(call, Device::cpu());
    const double on_device = time_of([&] { there.run(); }, [&] { synchronize(device); }, quick);
    const double on_cpu = time_of([&] { here.run(); }, [] {}, quick);
    out += str(out.empty() ? "" : ", ", each.op, " ", seconds_text(on_device), " (",
               fmt::format("{:.2f}", on_device / on_cpu), " of the CPU)");
  }
  return out;
}

}  // namespace

const std::vector<std::string>& speed_checks() {
  static const std::vector<std::string> all = {"calls", "copies", "operations"};
  return all;
}

std::string measure_device(const std::string& name, const std::string& check,
                           const Extent& extent) {
  runtime::register_backends();
  const Device device = parse_device(name);
  return kNote + (check == "calls"    ? measure_calls(device, extent.quick)
                  : check == "copies" ? measure_copies(device, extent.quick)
                                      : measure_operations(device, extent.quick));
}

std::string measure_operation(const Op& op, const Extent& extent) {
  runtime::register_backends();
  for (const std::string& sample : inspect::samples_of(op)) {
    const int64_t factor = extent.quick ? 8 : 32;
    for (const std::string& text :
         {resized(sample, [&](int64_t old, size_t) { return old * factor; }), sample})
      try {
        const inspect::NamedCall call = parse(op, {text, false});
        EagerCall eager(call, Device::cpu());
        const double with_kernel = time_of([&] { eager.run(); }, [] {}, extent.quick);
        if (!op.def->decompose) return str(kNote, seconds_text(with_kernel), "  [", text, "]");
        EagerCall body(call, Device::cpu(), &op);
        const double with_body = time_of([&] { body.run(); }, [] {}, extent.quick);
        return str(kNote, seconds_text(with_kernel), ", the body ", seconds_text(with_body), "  [",
                   text, "]");
      } catch (const Error& e) {
        if (e.code() != ErrorCode::kUsage) throw;
      }
  }
  return str(kSkip, "it has no sample that can be timed");
}

}  // namespace paddle::conformance
