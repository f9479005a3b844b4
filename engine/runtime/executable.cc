#include "runtime/executable.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/thread_scope.h"
#include "runtime/execute.h"

namespace paddle::runtime {

Executable::Executable(std::shared_ptr<const ir::Function> function, ExecutableOptions options)
    : function_(std::move(function)), options_(options), pointers_(function_->inputs.size()) {}

Executable::Entry& Executable::make_entry(std::vector<Dims> shapes,
                                          const std::vector<Layout>& layouts) {
  Entry made;
  made.shapes = std::move(shapes);
  made.plan = std::make_unique<Plan>(*function_, layouts, options_.plan);
  ++plans_made_;
  planned_bytes_ = std::max(planned_bytes_, made.plan->memory().total());
  return plans_.add(std::move(made), options_.max_plans);
}

Executable::Entry& Executable::entry(const std::vector<Array>& inputs) {
  const auto fits = [&](const Entry& e) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (e.shapes[i] != inputs[i].shape) return false;
    return true;
  };
  if (Entry* const found = plans_.find(fits)) return *found;
  std::vector<Layout> layouts;
  std::vector<Dims> shapes;
  for (const Array& a : inputs) {
    layouts.push_back(Layout::of(a));
    shapes.push_back(a.shape);
  }
  return make_entry(std::move(shapes), layouts);
}

Plan& Executable::plan(const std::vector<Layout>& inputs) {
  std::vector<Dims> shapes;
  for (const Layout& l : inputs) shapes.push_back(l.shape);
  for (Entry& e : plans_)
    if (e.shapes == shapes) return *e.plan;
  return *make_entry(std::move(shapes), inputs).plan;
}

void* Executable::address_of(size_t input, const Array& array) {
  const Device device = options_.plan.target.device;
  const ir::PortKind kind = function_->inputs[input].kind;
  if (kind == ir::PortKind::kParameter || kind == ir::PortKind::kState) {
    ensure(array.device() == device, "run: '", function_->inputs[input].name, "' is on ",
           array.device().text(), ", the plan on ", device.text());
    return array.address();
  }
  if (array.device().is_cpu()) return array.raw();
  if (array.device() == device) {
    on_device_[input] = 1;
    return array.address();
  }
  from_elsewhere_.resize(function_->inputs.size());
  from_elsewhere_[input] = array.on_host();
  return from_elsewhere_[input].raw();
}

bool Executable::adapts_threads() const {
  return options_.adapt_threads && options_.plan.target.device.is_cpu() && !options_.plan.profile &&
         thread_count() > 1;
}

Plan& Executable::chosen_plan(Entry& entry, const std::vector<Array>& inputs) {
  if (!adapts_threads() || !entry.threads.single()) return *entry.plan;
  if (!entry.single) {
    // Of the bindings that are used most; others are found to need one again.
    constexpr int64_t kMaxSingle = 4;
    const auto has_single = [](const Entry& each) { return each.single != nullptr; };
    if (std::count_if(plans_.begin(), plans_.end(), has_single) >= kMaxSingle) {
      Entry& oldest = *std::find_if(plans_.rbegin(), plans_.rend(), has_single);
      oldest.outputs.clear();
      oldest.ran = nullptr;
      oldest.single = nullptr;
      oldest.threads = {};
    }
    PlanOptions options = options_.plan;
    options.summing_threads = thread_count();
    const ThreadScope one(1);  // kernels are prepared for a number of threads
    std::vector<Layout> layouts;
    for (const Array& input : inputs) layouts.push_back(Layout::of(input));
    entry.single = std::make_unique<Plan>(*function_, layouts, std::move(options));
  }
  return *entry.single;
}

void Executable::allocate_arena(size_t bytes) {
  const Device device = options_.plan.target.device;
  arena_ = nullptr;  // free the old one first
  if (const size_t available = available_memory(device); bytes > available)
    fail(ErrorCode::kDevice, function_->name, " needs ", human_bytes(bytes),
         " for its values, more than the memory of ", human_bytes(available));
  arena_ = Storage::allocate(bytes, device);
  // Pages are in memory once they are written.
  if (device.is_cpu()) std::memset(arena_->address(), 0, std::min(bytes, reserved_));
}

void Executable::reserve_arena(size_t bytes) {
  if (bytes > available_memory(options_.plan.target.device)) return;
  reserved_ = bytes;
  allocate_arena(bytes);
}

void Executable::move_to_arena(Plan& plan) {
  const size_t needed = std::max(plan.arena_bytes(), reserved_);
  // Runs that need more come in groups, and the pages of a new arena cost time.
  constexpr int64_t kRunsInReserve = 64;
  runs_in_reserve_ = needed > reserved_ ? 0 : runs_in_reserve_ + 1;
  const bool reduces = reserved_ > 0 && runs_in_reserve_ == kRunsInReserve;
  if (!arena_ || arena_->bytes() < needed || (reduces && arena_->bytes() > needed))
    allocate_arena(needed);
  if (plan.arena() != arena_->address()) plan.set_arena(arena_->address());
}

namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Executable::Entry& Executable::launch(const std::vector<Array>& inputs) {
  ensure(inputs.size() == function_->inputs.size(), "run: ", function_->name, " expects ",
         function_->inputs.size(), " inputs, got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype != function_->body.arguments[i]->type.dtype)
      fail(ErrorCode::kData, "input '", function_->inputs[i].name, "' is ", text(inputs[i].dtype),
           str(inputs[i].shape), ", expected ", function_->body.arguments[i]->type);
  Entry& e = entry(inputs);
  Plan& plan = chosen_plan(e, inputs);
  const std::byte* const arena = plan.arena();
  move_to_arena(plan);
  if (e.ran != &plan || plan.arena() != arena) e.outputs.clear();
  e.ran = &plan;
  on_device_.assign(options_.plan.target.device.is_cpu() ? 0 : inputs.size(), 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_contiguous())
      fail(ErrorCode::kInternal, "run: input '", function_->inputs[i].name, "' is not contiguous");
    pointers_[i] = address_of(i, inputs[i]);
  }
  std::optional<ThreadScope> one;
  if (&plan == e.single.get()) one.emplace(1);
  if (adapts_threads() && e.threads.measures()) {
    const double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    plan.run(pointers_, on_device_);
    e.threads.record(seconds_of(CLOCK_MONOTONIC) - wall, seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu);
  } else {
    plan.run(pointers_, on_device_);
  }
  return e;
}

const std::vector<Array>& Executable::run(const std::vector<Array>& inputs) {
  if (const Device device = options_.plan.target.device; !device.is_cpu()) {
    const auto copies = start(inputs);
    const std::vector<Array>& values = copies->wait();
    synchronize(device);  // reports errors of kernels
    Entry& e = plans_.front();
    e.outputs.resize(function_->outputs.size());
    size_t value = 0;
    for (size_t i = 0; i < e.outputs.size(); ++i)
      if (function_->outputs[i].kind == ir::PortKind::kValue) e.outputs[i] = values[value++];
    return e.outputs;
  }
  Entry& e = launch(inputs);
  const Plan& plan = *e.ran;
  const bool first = e.outputs.empty();
  e.outputs.resize(function_->outputs.size());
  for (size_t i = 0; i < e.outputs.size(); ++i)
    if (function_->outputs[i].kind == ir::PortKind::kValue && (first || plan.output_moves(i)))
      e.outputs[i] = plan.output(i);
  return e.outputs;
}

Array Executable::kept_like(const Array& output) {
  constexpr size_t kMaxKept = 64;
  for (Array& each : kept_)
    if (each.storage.use_count() == 1 && each.dtype == output.dtype && each.shape == output.shape)
      return each;
  Array made = Array::empty(output.dtype, output.shape, output.device());
  if (kept_.size() == kMaxKept) kept_.erase(kept_.begin());
  kept_.push_back(made);
  return made;
}

std::vector<Array> Executable::run_on_device(const std::vector<Array>& inputs) {
  const Entry& e = launch(inputs);
  std::vector<Array> outputs(function_->outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (function_->outputs[i].kind != ir::PortKind::kValue) continue;
    const Array from = packed(e.ran->output(i));
    outputs[i] = kept_like(from);
    copy_into(outputs[i], from);
  }
  return outputs;
}

std::shared_ptr<OutputCopies> Executable::start(const std::vector<Array>& inputs) {
  const Entry& e = launch(inputs);
  std::vector<Array> outputs;
  for (size_t i = 0; i < function_->outputs.size(); ++i)
    if (function_->outputs[i].kind == ir::PortKind::kValue)
      outputs.push_back(packed(e.ran->output(i)));
  auto unused = std::find_if(copies_.begin(), copies_.end(),
                             [](const auto& each) { return each.use_count() == 1; });
  if (unused == copies_.end())
    unused =
        copies_.insert(copies_.end(), std::make_shared<OutputCopies>(options_.plan.target.device));
  (*unused)->queue(outputs);
  return *unused;
}

}  // namespace paddle::runtime
