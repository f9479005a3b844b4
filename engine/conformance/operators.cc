#include "conformance/operators.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "autograd/autograd.h"
#include "base/parallel.h"
#include "inspect/compare.h"
#include "ops/core/call.h"
#include "ops/core/engine_kernels.h"
#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "runtime/execute.h"

namespace paddle::conformance {
namespace {

using inspect::Mode;
using inspect::NamedCall;

/// Keeps the operands and attributes of the first call of an operation, as its kernel gets them.
class FirstCall final : public ForwardingInterpreter {
 public:
  explicit FirstCall(const Op& op) : op_(op) {}
  Tensors apply(const OpCall& call) override {
    if (&call.op == &op_ && !found) {
      found = true;
      attrs = call.attrs;
      types = call.results;
      for (const Tensor& t : call.operands)
        operands.push_back(t.defined() ? std::optional(t.array()) : std::nullopt);
    }
    return next().apply(call);
  }
  bool found = false;
  Attrs attrs;
  std::vector<TensorType> types;
  std::vector<std::optional<Array>> operands;

 private:
  const Op& op_;
};

std::vector<Array> inputs_of(const NamedCall& named, const Call& call) {
  std::vector<Array> out;
  for (const Array& input : named.inputs()) {
    const Array a = with_values(input, call.values);
    out.push_back(call.strided ? inspect::strided_copy(a) : inspect::own_copy(a));
  }
  return out;
}

std::string at(const Call& call, const std::string& what) {
  return str(what, "  [", call.text, call.strided ? ", transposed in memory" : "",
             call.values == Values::kWhole ? ", whole numbers" : "",
             call.values == Values::kNan ? ", with NaN" : "", "]");
}

/// Calls `check` with each call that the operation accepts, until one fails. An operation that
/// accepts none of its samples fails.
std::string for_each_call(
    const Op& op, const Extent& extent,
    const std::function<std::string(const NamedCall&, const Call&, const Results&)>& check) {
  int accepted = 0;
  std::string why = "it has no samples";
  for (const Call& call : calls_of(op, extent)) {
    std::optional<NamedCall> named;
    Results expected;
    try {
      named.emplace(parse(op, call));
      expected = reference_results(op, *named, inputs_of(*named, call));
    } catch (const Error& e) {
      // Sizes that were made up may not fit the operation, or leave no class for a label.
      if (e.code() != ErrorCode::kUsage && e.code() != ErrorCode::kConfig &&
          e.code() != ErrorCode::kData)
        throw;
      why = at(call, e.message());
      continue;
    }
    ++accepted;
    std::string bad;
    try {
      bad = check(*named, call, expected);
    } catch (const Error& e) {
      bad = e.what();
    }
    if (!bad.empty()) return at(call, bad);
  }
  return accepted > 0 ? "" : "no call is accepted: " + why;
}

bool same_bits(const Array& a, const Array& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(storage_bytes(a.dtype, a.size()))) == 0;
}

/// Memory with a margin on both sides that must stay as it is.
class Guarded {
 public:
  Guarded(size_t bytes, std::byte fill)
      : bytes_(bytes), memory_(Storage::allocate(bytes + 2 * kMargin)) {
    std::memset(memory_->data(), static_cast<int>(kMark), bytes + 2 * kMargin);
    if (bytes) std::memset(data(), static_cast<int>(fill), bytes);
  }
  std::byte* data() const { return memory_->data() + kMargin; }
  size_t bytes() const { return bytes_; }
  /// "" or where bytes outside have changed.
  std::string damage() const {
    for (size_t i = 0; i < kMargin; ++i) {
      if (memory_->data()[kMargin - 1 - i] != kMark)
        return str("writes ", i + 1, " bytes before the start of");
      if (data()[bytes_ + i] != kMark) return str("writes ", i + 1, " bytes beyond the end of");
    }
    return "";
  }

 private:
  static constexpr size_t kMargin = 256;
  static constexpr std::byte kMark{0xA5};
  size_t bytes_;
  std::shared_ptr<Storage> memory_;
};

/// One run of the kernel with memory that is filled with a byte.
struct KernelRun {
  std::vector<Guarded> results;
  std::string problem;
};

KernelRun run_once(const Kernel& kernel, const std::vector<void*>& operands,
                   const std::vector<Layout>& results, std::byte fill) {
  KernelRun out;
  std::vector<void*> pointers;
  for (const Layout& r : results) {
    out.results.emplace_back(static_cast<size_t>(storage_bytes(r.dtype, r.size())), fill);
    pointers.push_back(out.results.back().data());
  }
  const Guarded scratch(kernel.scratch_bytes(), fill);
  RunContext context;
  if (scratch.bytes()) context.scratch = scratch.data();
  kernel.run(context, operands.data(), pointers.data());
  for (size_t i = 0; i < out.results.size() && out.problem.empty(); ++i)
    if (const std::string bad = out.results[i].damage(); !bad.empty())
      out.problem = str("the kernel ", bad, " result ", i);
  if (const std::string bad = scratch.damage(); !bad.empty() && out.problem.empty())
    out.problem = "the kernel " + bad + " its scratch memory";
  return out;
}

/// Operands that the kernel says it does not read may be anything.
std::string check_unread(const Kernel& kernel, std::vector<void*> operands,
                         const std::vector<Array>& dense, const std::vector<Layout>& results,
                         const KernelRun& expected) {
  std::vector<Guarded> others;
  size_t next = 0;
  bool any = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    const Array& a = dense[next++];
    if (kernel.reads(i)) continue;
    any = true;
    operands[i] =
        others.emplace_back(static_cast<size_t>(storage_bytes(a.dtype, a.size())), std::byte{0x3C})
            .data();
  }
  if (!any) return "";
  const KernelRun found = run_once(kernel, operands, results, std::byte{0});
  for (size_t i = 0; i < results.size(); ++i)
    if (std::memcmp(found.results[i].data(), expected.results[i].data(),
                    expected.results[i].bytes()) != 0)
      return str("result ", i, " depends on an operand that 'unread' says it does not read");
  return "";
}

/// The operands with their elements moved on by `distance`.
std::vector<Array> turned(const std::vector<Array>& dense, int64_t distance) {
  std::vector<Array> out;
  for (const Array& a : dense) {
    out.push_back(a);
    if (!a.is_contiguous() || a.size() < 2) continue;
    const size_t bytes = static_cast<size_t>(storage_bytes(a.dtype, a.size()));
    out.back() = inspect::own_copy(a);
    auto* const begin = static_cast<std::byte*>(out.back().raw());
    std::rotate(begin, begin + (distance % a.size()) * item_size(a.dtype), begin + bytes);
  }
  return out;
}

/// Runs on several threads at a time, each with other operands, do not disturb each other.
std::string check_at_once(const Kernel& kernel, const std::vector<void*>& operands,
                          const std::vector<Array>& dense, const std::vector<Layout>& results) {
  constexpr size_t kThreads = 4;
  constexpr auto kDuration = std::chrono::milliseconds(5);
  struct Thread {
    std::vector<Array> arrays;
    std::vector<void*> operands;
    std::vector<Guarded> expected;
    std::string bad;
  };
  std::vector<Thread> all(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    Thread& t = all[i];
    t.arrays = turned(dense, static_cast<int64_t>(i));
    t.operands = operands;
    size_t next = 0;
    for (void*& operand : t.operands)
      if (operand) operand = t.arrays[next++].address();
    try {
      t.expected = run_once(kernel, t.operands, results, std::byte{0}).results;
    } catch (const Error&) {  // it depends on the order of its elements
      t.operands = operands;
      t.expected = run_once(kernel, operands, results, std::byte{0}).results;
    }
  }
  std::atomic<size_t> ready = 0;
  std::vector<std::thread> threads;
  for (Thread& t : all)
    threads.emplace_back([&] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      const auto end = std::chrono::steady_clock::now() + kDuration;
      try {
        do {
          const KernelRun found = run_once(kernel, t.operands, results, std::byte{0});
          for (size_t i = 0; i < results.size(); ++i)
            if (std::memcmp(found.results[i].data(), t.expected[i].data(), t.expected[i].bytes()) !=
                0)
              t.bad = str("result ", i, " has other bits when several threads run the kernel");
        } while (t.bad.empty() && std::chrono::steady_clock::now() < end);
      } catch (const std::exception& e) {
        t.bad = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Thread& t : all)
    if (!t.bad.empty()) return t.bad;
  return "";
}

/// Many runs take no memory that they do not give back.
std::string check_memory_of_runs(const Kernel& kernel, const std::vector<void*>& operands,
                                 const std::vector<Layout>& results) {
  constexpr size_t kRuns = 300;
  const auto taken = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  for (int run = 0; run < 20; ++run) run_once(kernel, operands, results, std::byte{0});
  const size_t before = taken();
  for (size_t run = 0; run < kRuns; ++run) run_once(kernel, operands, results, std::byte{0});
  const size_t after = taken();
  if (after <= before + kRuns * 8) return "";
  return str("a run takes ", (after - before) / kRuns, " bytes that it does not give back");
}

std::string check_one_kernel(const Op& op, const NamedCall& named, const Call& call) {
  FirstCall first(op);
  inspect::run(
      Mode::kEager,
      [&](const Tensors& x) {
        const InterpreterScope scope(first);
        return named(x);
      },
      inputs_of(named, call));
  if (!first.found || op.has(kRunTimeShape)) return "";
  std::vector<Layout> layouts, results;
  std::vector<Array> dense;
  std::vector<void*> pointers;
  for (const auto& operand : first.operands) {
    if (!operand) {
      layouts.emplace_back().present = false;
      pointers.push_back(nullptr);
      continue;
    }
    dense.push_back(op.has(kStrided) ? *operand : operand->contiguous());
    layouts.push_back(Layout::of(dense.back()));
    layouts.back().offset = 0;
    pointers.push_back(dense.back().address());
  }
  for (const TensorType& type : first.types)
    results.push_back(Layout::contiguous(type.dtype, concrete(type.shape)));
  std::vector<Array> before;
  for (const Array& a : dense) before.push_back(inspect::own_copy(a));
  const auto kernel =
      prepare_kernel({.op = op, .attrs = first.attrs, .operands = layouts, .results = results});
  if (!kernel) return "";
  const KernelRun one = run_once(*kernel, pointers, results, std::byte{0xFF});
  const KernelRun two = run_once(*kernel, pointers, results, std::byte{0});
  if (!one.problem.empty()) return one.problem;
  for (size_t i = 0; i < results.size(); ++i)
    if (std::memcmp(one.results[i].data(), two.results[i].data(), one.results[i].bytes()) != 0)
      return str("the kernel leaves parts of result ", i,
                 " unwritten, or reads memory that is not set");
  for (size_t i = 0; i < dense.size(); ++i)
    if (!same_bits(inspect::own_copy(dense[i]), before[i]))
      return str("the kernel writes into operand ", i);
  for (const std::string& bad : {check_unread(*kernel, pointers, dense, results, two),
                                 check_at_once(*kernel, pointers, dense, results),
                                 check_memory_of_runs(*kernel, pointers, results)})
    if (!bad.empty()) return bad;
  if (op.def->in_place < 0 || results.empty()) return "";
  // The first result in the memory of the operand that the schema names.
  const auto place = static_cast<size_t>(op.def->in_place);
  if (place >= pointers.size() || !pointers[place] || layouts[place].shape != results[0].shape ||
      layouts[place].dtype != results[0].dtype)
    return "";
  std::vector<void*> outputs = {pointers[place]};
  std::vector<Guarded> others;
  for (size_t i = 1; i < results.size(); ++i)
    outputs.push_back(others.emplace_back(one.results[i].bytes(), std::byte{0}).data());
  const Guarded scratch(kernel->scratch_bytes(), std::byte{0});
  RunContext context;
  context.scratch = scratch.data();
  kernel->run(context, pointers.data(), outputs.data());
  if (std::memcmp(pointers[place], one.results[0].data(), one.results[0].bytes()) != 0)
    return str("in_place: other values if the result takes the memory of '",
               op.operands()[place].name, "'");
  return "";
}

Results eager(const NamedCall& named, const std::vector<Array>& inputs) {
  return call_results(named, inputs, Mode::kEager);
}

/// Changes one element of an input; only that of the results may change.
std::string check_elementwise(const NamedCall& named, const Call& call) {
  std::vector<Array> inputs = inputs_of(named, call);
  for (const Array& a : inputs)
    if (a.shape != inputs[0].shape || !is_float(a.dtype)) return "";
  if (inputs.empty() || inputs[0].size() < 2) return "";
  const Results before = eager(named, inputs);
  const int64_t at = inputs[0].size() / 2;
  for (Array& a : inputs) {
    Array changed = inspect::own_copy(a).cast(DType::kF64);
    changed.data<double>()[at] = changed.data<double>()[at] * 1.5 + 0.25;
    a = changed.cast(a.dtype);
  }
  const Results after = eager(named, inputs);
  for (size_t r = 0; r < before.size(); ++r) {
    if (!before[r]) continue;
    if (before[r]->shape != inputs[0].shape)
      return str("elementwise: result ", r, " has another shape than the operands");
    const Array old = before[r]->cast(DType::kF64), now = after[r]->cast(DType::kF64);
    for (int64_t i = 0; i < old.size(); ++i) {
      const double a = old.data<double>()[i], b = now.data<double>()[i];
      if (i != at && a != b && !(a != a && b != b))
        return str("elementwise: element ", i, " of result ", r, " depends on element ", at);
    }
  }
  return "";
}

std::string check_commutative(const NamedCall& named, const Call& call) {
  std::vector<Array> inputs = inputs_of(named, call);
  if (inputs.size() < 2) return "";
  const Results one = eager(named, inputs);
  std::swap(inputs[0], inputs[1]);
  return compare_with_reference(eager(named, inputs), one).empty()
             ? ""
             : "commutative: other results with the operands swapped";
}

/// f(2 x) = 2 f(x) and f(x + s) = f(x) + f(s), where x are all operands together.
std::string check_linear(const NamedCall& named, const Call& call) {
  const std::vector<Array> inputs = inputs_of(named, call);
  std::vector<Array> doubled = inputs, shifts = inputs, moved = inputs;
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype != DType::kF64) continue;
    any = true;
    const Array x = inspect::own_copy(inputs[i]);
    for (std::vector<Array>* each : {&doubled, &shifts, &moved})
      (*each)[i] = inspect::own_copy(inputs[i]);
    for (int64_t k = 0; k < x.size(); ++k) {
      const double shift = 0.5 - 0.25 * static_cast<double>((k + 3 * static_cast<int64_t>(i)) % 7);
      doubled[i].data<double>()[k] *= 2;
      shifts[i].data<double>()[k] = shift;
      moved[i].data<double>()[k] += shift;
    }
  }
  if (!any) return "";
  const Results f = eager(named, inputs), twice = eager(named, doubled), s = eager(named, shifts),
                sum = eager(named, moved);
  for (size_t r = 0; r < f.size(); ++r) {
    if (!f[r] || f[r]->dtype != DType::kF64) continue;
    for (int64_t k = 0; k < f[r]->size(); ++k) {
      const double a = f[r]->data<double>()[k], b = s[r]->data<double>()[k];
      const double tolerance = 1e-9 * (1 + std::abs(a) + std::abs(b));
      if (std::abs(twice[r]->data<double>()[k] - 2 * a) > tolerance ||
          std::abs(sum[r]->data<double>()[k] - a - b) > tolerance)
        return "linear: it is not, in its operands together";
    }
  }
  return "";
}

}  // namespace

namespace {

/// The largest of the finite elements, without signs.
double largest(const Array& a) {
  double out = 0;
  if (!is_float(a.dtype)) return out;
  for (int64_t i = 0; i < a.size(); ++i)
    if (const double x = std::abs(a.number(i)); std::isfinite(x)) out = std::max(out, x);
  return out;
}

}  // namespace

std::string compare_with_reference(const Results& found, const Results& reference, double scale) {
  if (found.size() != reference.size())
    return str(found.size(), " results, the body gives ", reference.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].has_value() != reference[i].has_value())
      return str("result ", i, " is only there in one of operation and body");
    if (!found[i]) continue;
    Array wanted = *reference[i];
    if (wanted.dtype != found[i]->dtype && is_float(wanted.dtype) && is_float(found[i]->dtype))
      wanted = wanted.cast(found[i]->dtype);
    inspect::Tolerance tolerance = tolerance_of(found[i]->dtype);
    tolerance.relative *= scale;
    // Sums of large terms are rounded as the terms are.
    tolerance.absolute *= scale * std::clamp(largest(wanted), 1.0, 1000.0);
    const std::string bad = inspect::difference(*found[i], wanted, tolerance);
    if (!bad.empty()) return str("result ", i, " differs from the body: ", bad);
  }
  return "";
}

Results narrow_reference(const Op& op, const NamedCall& call, const std::vector<Array>& inputs) {
  std::optional<EngineKernelScope> engine;
  if (!op.def->provider || op.def->decompose) engine.emplace();
  return results_of_body(op, call, inputs);
}

Results reference_results(const Op& op, const NamedCall& call, const std::vector<Array>& inputs) {
  bool widens = !op.def->provider || op.def->decompose;  // else its kernel is its own reference
  for (size_t d = 0; d < op.operands().size(); ++d)
    widens = widens &&
             (op.operands()[d].hidden || (operand_types(op, d) & dtype_sets::of(DType::kF64)) != 0);
  std::vector<Array> wide = inputs;
  if (widens)
    for (Array& a : wide)
      if (is_float(a.dtype)) a = a.cast(DType::kF64);
  return narrow_reference(op, call, wide);
}

// Without gradients: a tape runs the body of an operation that has no rule for its gradient.
Results call_results(const NamedCall& call, const std::vector<Array>& inputs, Mode mode,
                     Device device) {
  return inspect::run(
      mode,
      [&](const Tensors& x) {
        const autograd::NoGradScope none;
        return call(x);
      },
      inputs, device);
}

Tensors BodyOf::apply(const OpCall& call) {
  return &call.op == &op_ && op_.def->decompose ? decompose(call) : next().apply(call);
}

Results results_of_body(const Op& op, const NamedCall& call, const std::vector<Array>& inputs) {
  return inspect::run(
      Mode::kEager,
      [&](const Tensors& x) {
        BodyOf body(op);
        const InterpreterScope scope(body);
        return call(x);
      },
      inputs);
}

std::string check_results(const Op& op, Mode mode, const Extent& extent) {
  return for_each_call(
      op, extent, [&](const NamedCall& named, const Call& call, const Results& expected) {
        return compare_with_reference(call_results(named, inputs_of(named, call), mode), expected);
      });
}

std::string check_on_device(const Op& op, const std::string& device, Mode mode,
                            const Extent& extent) {
  runtime::register_backends();
  const Device there = parse_device(device);
  return for_each_call(op, extent,
                       [&](const NamedCall& named, const Call& call, const Results& expected) {
                         return compare_with_reference(
                             call_results(named, inputs_of(named, call), mode, there), expected);
                       });
}

std::string check_kernel(const Op& op, const Extent& extent) {
  return for_each_call(op, extent, [&](const NamedCall& named, const Call& call, const Results&) {
    return check_one_kernel(op, named, call);
  });
}

std::string check_repeatable(const Op& op, const Extent& extent) {
  const int threads = thread_count();
  return for_each_call(op, extent, [&](const NamedCall& named, const Call& call, const Results&) {
    const std::vector<Array> inputs = inputs_of(named, call);
    const Results first = eager(named, inputs);
    std::string bad;
    for (const int count : {threads, 1, 2, 3}) {
      set_thread_count(count);
      const Results again = eager(named, inputs);
      for (size_t r = 0; r < first.size() && bad.empty(); ++r)
        if (first[r] && !same_bits(*first[r], *again[r]))
          bad = count == threads ? str("result ", r, " has other bits the second time")
                                 : str("result ", r, " has other bits with ", count, " threads");
    }
    set_thread_count(threads);
    return bad;
  });
}

std::vector<std::string> tested_traits(const Op& op) {
  std::vector<std::string> out;
  if (op.has(kElementwise)) out.emplace_back("elementwise");
  if (op.has(kCommutative)) out.emplace_back("commutative");
  if (op.has(kLinear)) out.emplace_back("linear");
  return out;
}

std::string check_trait(const Op& op, const std::string& trait, const Extent& extent) {
  return for_each_call(
      op, extent, [&](const NamedCall& named, const Call& call, const Results&) -> std::string {
        if (trait == "elementwise") return check_elementwise(named, call);
        if (trait == "commutative") return check_commutative(named, call);
        return check_linear(named, call);
      });
}

}  // namespace paddle::conformance
