// The kernels of the CPU and of oneDNN through the C struct of plug-ins (paddle/plugin/kernel.h):
// every case of tests/op/cases has the same bits, in results and gradients, as without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>

#include "inspect/case_table.h"
#include "inspect/run_op.h"
#include "ops/core/backend.h"
#include "plugin/host.h"
#include "plugin/kernel_adapter.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

/// The request of the engine that a struct is made of, while a kernel is prepared for it.
thread_local const KernelRequest* current_request = nullptr;

/// The operations whose kernels have run.
class Names {
 public:
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
  }
  size_t size() const { return names_.size(); }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};
Names& names_run() {
  static Names names;
  return names;
}

Layout layout_of(const paddle_view& view, DType dtype) {
  Layout out;
  out.dtype = dtype;
  out.shape.assign(view.shape, view.shape + view.rank);
  out.strides.assign(view.strides, view.strides + view.rank);
  out.present = (view.flags & PADDLE_VIEW_ABSENT) == 0;
  if (view.flags & PADDLE_VIEW_CONSTANT) out.constant = view.data;
  return out;
}

/// A kernel of the engine as a plug-in would have it.
struct State {
  std::unique_ptr<Kernel> kernel;
  std::string op, implementation;
};

struct Allocator final : ResultAllocator {
  explicit Allocator(const paddle_run& given) : run(given) {}
  void* allocate(size_t index, const Dims& shape) override {
    void* const memory = run.allocate_result(run.call, static_cast<uint32_t>(index), shape.data(),
                                             static_cast<int32_t>(shape.size()));
    if (!memory) fail(ErrorCode::kDevice, "no memory for a result");
    return memory;
  }
  const paddle_run& run;
};

paddle_status run(const void* state, const paddle_run* run) {
  const auto& own = *static_cast<const State*>(state);
  names_run().add(own.op);
  return guarded(run->call, [&] {
    Allocator allocator(*run);
    RunContext context;
    context.scratch = static_cast<std::byte*>(run->scratch);
    context.stream = static_cast<paddle_stream>(run->stream);
    if (run->allocate_result) context.allocator = &allocator;
    // Kernels do not write operands, except those that their operation declares as in place.
    own.kernel->run(context, const_cast<void* const*>(run->operands), run->results);
  });
}

paddle_status prepare(paddle_call* call, const paddle_request* request, paddle_instance* instance) {
  const KernelRequest& given = *current_request;
  bool declined = false;
  const paddle_status status = guarded(call, [&] {
    std::vector<Layout> operands, results;
    for (uint32_t i = 0; i < request->operand_count; ++i) {
      const paddle_view& view = *request->operands[i];
      EXPECT_EQ(view.dtype, c_dtype(given.operands[i].dtype));
      operands.push_back(layout_of(view, given.operands[i].dtype));
    }
    for (uint32_t i = 0; i < request->result_count; ++i)
      results.push_back(layout_of(*request->results[i], given.results[i].dtype));
    auto kernel =
        prepare_kernel({given.op, given.attrs, operands, results, given.target, given.prepare});
    declined = !kernel;
    if (declined) return;
    auto* const state = new State{std::move(kernel), std::string(given.op.name()), std::string()};
    state->implementation = state->kernel->implementation();
    instance->state = state;
    instance->run = run;
    instance->destroy = [](void* made) { delete static_cast<State*>(made); };
    instance->scratch_bytes = state->kernel->scratch_bytes();
    instance->implementation = state->implementation.c_str();
    for (uint32_t i = 0; i < request->operand_count && i < 64; ++i)
      if (!state->kernel->reads(i)) instance->unread |= uint64_t{1} << i;
  });
  return declined ? paddle_status{PADDLE_DECLINED} : status;
}

/// Asks the engine through the struct, for kernels that a struct can hold.
std::unique_ptr<Kernel> prepare_through_struct(const KernelRequest& request, const void* context) {
  if (current_request) return nullptr;  // it is asked for its own kernel
  struct Scope {
    explicit Scope(const KernelRequest& request) { current_request = &request; }
    ~Scope() { current_request = nullptr; }
  } scope(request);
  return prepare_plugin_kernel(request, context);
}

using Results = std::vector<std::pair<std::string, std::vector<std::byte>>>;

/// All results and gradients of a case; the message of an error.
Results results_of(const inspect::NamedCall& call, inspect::Mode mode) {
  Results out;
  const auto add = [&](const std::string& name, const void* data, size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(data);
    out.emplace_back(name, std::vector<std::byte>(bytes, bytes + size));
  };
  try {
    for (const auto& [name, array] : inspect::run_named(call, mode, true)) {
      if (array.dtype == DType::kString) continue;
      const Array packed = array.contiguous();
      add(name + text(packed.dtype) + str(packed.shape), packed.raw(),
          static_cast<size_t>(packed.size() * info(packed.dtype).bits / 8));
    }
  } catch (const Error& e) {
    add("error", e.what(), std::strlen(e.what()));
  }
  return out;
}

TEST(KernelStruct, HoldsAllKernelsOfTheCpuWithTheSameBits) {
  runtime::register_backends();
  std::vector<std::pair<std::string, inspect::NamedCall>> calls;
  for (const auto& file : std::filesystem::directory_iterator("tests/op/cases")) {
    if (file.path().extension() != ".jsonl") continue;
    const inspect::CaseTable table = inspect::read_case_table(file.path().string());
    for (const inspect::Case& c : table.cases) {
      const Op* const op = find_op(c.op);
      if (!op || op->has(kControlFlow) || op->has(kAccessesFiles) || op->has(kAccessesRanks))
        continue;
      if (auto call = inspect::read_case_call(c, table.arrays.get()))
        calls.emplace_back(c.name, std::move(*call));
    }
  }
  ASSERT_GT(calls.size(), 4000u);
  // Every eighth case in compiled functions, whose kernels see constants and unused results; but
  // not those of 16 bits, since a group of the engine's own kernels keeps more bits between them.
  constexpr size_t kCompiledEvery = 8;
  const auto is_compiled = [&](size_t i) {
    return i % kCompiledEvery == 0 &&
           std::ranges::none_of(calls[i].second.inputs(), [](const Array& input) {
             return is_float(input.dtype) && info(input.dtype).bits < 32;
           });
  };
  const auto all_results = [&] {
    std::vector<Results> out;
    for (size_t i = 0; i < calls.size(); ++i) {
      out.push_back(results_of(calls[i].second, inspect::Mode::kEager));
      if (is_compiled(i)) out.push_back(results_of(calls[i].second, inspect::Mode::kCompiled));
    }
    return out;
  };
  const std::vector<Results> expected = all_results();

  static const paddle_kernel descriptor = {sizeof(paddle_kernel), "", "cpu", nullptr, prepare};
  static std::deque<KernelContext> contexts;
  std::vector<AddedKernel> added;
  for (const Op* op : all_ops()) {
    const std::vector<std::string> backends = kernel_backends(*op);
    if (std::ranges::find(backends, "cpu") == backends.end() &&
        std::ranges::find(backends, "onednn") == backends.end())
      continue;
    if (op->has(kAccessesRanks)) continue;  // their kernels need the collectives of the engine
    contexts.push_back({"engine 1.0.0", std::string(op->name()), "cpu", ~DTypeSet{0}, &descriptor});
    added.push_back({contexts.back().operation, "cpu", prepare_through_struct, &contexts.back()});
  }
  add_kernels(added);
  const std::vector<Results> found = all_results();
  ASSERT_EQ(found.size(), expected.size());
  size_t at = 0;
  for (size_t i = 0; i < calls.size(); ++i)
    for (size_t mode = 0; mode < (is_compiled(i) ? 2u : 1u); ++mode, ++at)
      EXPECT_EQ(found[at], expected[at]) << calls[i].first << (mode ? " compiled" : "");
  EXPECT_GT(names_run().size(), 250u) << "operations whose kernels ran through the struct";
}

}  // namespace
}  // namespace paddle::plugin
