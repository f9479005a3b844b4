#include "kernels/onednn/program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/parallel.h"
#include "base/thread_scope.h"
#include "kernels/common/prepack_cache.h"
#include "kernels/common/rounding.h"

namespace paddle::onednn {
namespace {

dnnl::stream& stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

/// The layouts of a packed constant: a square matrix may be read in both orders of its axes.
struct Reorder {
  dnnl::memory::desc from, to;
  bool operator==(const Reorder& other) const { return from == other.from && to == other.to; }
};

/// Constants in oneDNN layouts.
std::shared_ptr<Storage> prepacked_constant(const void* data, const dnnl::memory::desc& from_desc,
                                            const dnnl::memory::desc& to_desc) {
  static cpu::PrepackCache<Reorder> constants;
  const auto pack = [&](std::byte* out) {
    dnnl::memory from(from_desc, cpu_engine(), const_cast<void*>(data));
    dnnl::memory to(to_desc, cpu_engine(), out);
    dnnl::reorder(from, to).execute(stream(), from, to);
  };
  return constants.get(data, from_desc.get_size(), {from_desc, to_desc}, to_desc.get_size(), pack);
}

}  // namespace

dnnl::engine& cpu_engine() {
  static dnnl::engine engine = [] {
    // By default oneDNN looks for VTune's library in every folder of the loader, for about half a
    // millisecond. Its own variables still turn profiling on.
    if (!std::getenv("ONEDNN_JIT_PROFILE") && !std::getenv("DNNL_JIT_PROFILE"))
      dnnl::set_jit_profiling_flags(DNNL_JIT_PROFILE_NONE);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

namespace {

/// True if the machine has this instruction set and it is not disabled.
bool has_isa(dnnl::cpu_isa isa) {
  const int mask = static_cast<int>(isa);
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & mask) == mask;
}

}  // namespace

bool has_vnni() {
  static const bool kHas =
      has_isa(dnnl::cpu_isa::avx512_core_vnni) || has_isa(dnnl::cpu_isa::avx2_vnni);
  return kHas;
}

bool has_int8_simd() {
  static const bool kHas = has_isa(dnnl::cpu_isa::avx2);
  return kHas;
}

bool supports(DType dtype) {
  static const bool has_avx512 = has_isa(dnnl::cpu_isa::avx512_core);
  return dtype == DType::kF32 || (dtype == DType::kBF16 && has_avx512);
}

dnnl::memory::data_type data_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::kBF16:
      return Type::bf16;
    case DType::kU8:
      return Type::u8;
    case DType::kI8:
      return Type::s8;
    case DType::kI32:
      return Type::s32;
    default:
      return Type::f32;
  }
}

bool is_small(int64_t multiplications) { return multiplications < 400'000; }

bool is_reference(const std::string& implementation) { return implementation.rfind("ref", 0) == 0; }

bool is_jit(const std::string& implementation) {
  return implementation.find("jit") != std::string::npos;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

MemoryRef Program::scratch(const dnnl::memory::desc& desc) {
  const MemoryRef ref{MemoryRef::kScratch, scratch_};
  scratch_ += cpu::round_up_to_cache_line(desc.get_size());
  return ref;
}

MemoryRef Program::convert(MemoryRef from, const dnnl::memory::desc& from_desc,
                           const dnnl::memory::desc& to_desc) {
  if (from_desc == to_desc) return from;
  const MemoryRef to = scratch(to_desc);
  reorder(from, from_desc, to, to_desc);
  return to;
}

MemoryRef Program::prepack_operand(const KernelRequest& request, size_t operand, size_t index,
                                   const dnnl::memory::desc& from_desc,
                                   const dnnl::memory::desc& to_desc) {
  const Layout& layout = request.operands[operand];
  if (layout.constant && request.prepare.skip_prepack) {
    owned_.push_back(
        Storage::borrow(const_cast<void*>(layout.constant), from_desc.get_size(), nullptr));
    return convert({MemoryRef::kOwned, owned_.size() - 1}, from_desc, to_desc);
  }
  if (!layout.constant || from_desc == to_desc)
    return convert({MemoryRef::kOperand, index}, from_desc, to_desc);
  owned_.push_back(prepacked_constant(layout.constant, from_desc, to_desc));
  return {MemoryRef::kOwned, owned_.size() - 1};
}

MemoryRef Program::add_constant(const dnnl::memory::desc& desc, const void* data) {
  owned_.push_back(Storage::allocate(desc.get_size()));
  std::memcpy(owned_.back()->data(), data, desc.get_size());
  return {MemoryRef::kOwned, owned_.size() - 1};
}

void Program::reorder(MemoryRef from, const dnnl::memory::desc& from_desc, MemoryRef to,
                      const dnnl::memory::desc& to_desc) {
  const dnnl::reorder::primitive_desc description(cpu_engine(), from_desc, cpu_engine(), to_desc,
                                                  user_scratchpad());
  add(dnnl::reorder(description), description.scratchpad_desc(),
      {{DNNL_ARG_FROM, from_desc, from}, {DNNL_ARG_TO, to_desc, to}});
}

void Program::add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                  const std::vector<Argument>& arguments) {
  add(primitive, scratchpad, scratchpad.get_size() > 0 ? scratch(scratchpad) : MemoryRef{},
      arguments);
}

void Program::add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                  MemoryRef scratch, const std::vector<Argument>& arguments) {
  Step step;
  step.primitive = primitive;
  const auto put = [&](int id, const dnnl::memory::desc& desc, MemoryRef ref) {
    step.memories.emplace_back(desc, cpu_engine(), nullptr);  // data handles are set in each run
    step.memory.push_back(ref);
    step.arguments.push_back({id, step.memories.back().get()});
  };
  for (const Argument& argument : arguments) put(argument.id, argument.desc, argument.ref);
  if (scratchpad.get_size() > 0) put(DNNL_ARG_SCRATCHPAD, scratchpad, scratch);
  steps_.push_back(std::move(step));
}

void Program::add(const std::vector<size_t>& operands, Function function) {
  Step step;
  for (const size_t i : operands) step.memory.push_back({MemoryRef::kOperand, i});
  step.function = std::move(function);
  steps_.push_back(std::move(step));
}

void* Program::address(MemoryRef ref, const RunContext& context, void* const* operands,
                       void* const* results) {
  switch (ref.kind) {
    case MemoryRef::kOperand:
      return static_cast<std::byte*>(operands[ref.index]) + ref.offset;
    case MemoryRef::kResult:
      return static_cast<std::byte*>(results[ref.index]) + ref.offset;
    case MemoryRef::kScratch:
    case MemoryRef::kOwned:
      break;
  }
  return context.scratch + ref.index + ref.offset;
}

bool Program::reads(size_t i) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return std::any_of(step.memory.begin(), step.memory.end(), [&](const MemoryRef& s) {
      return s.kind == MemoryRef::kOperand && s.index == i;
    });
  });
}

void Program::run(const RunContext& context, void* const* operands, void* const* results) const {
  const std::lock_guard lock(running_);
  std::optional<ThreadScope> threads;
  if (threads_ != thread_count()) threads.emplace(threads_);
  for (const Step& step : steps_) {
    if (step.function) {
      step.function(context, operands, results);
      continue;
    }
    for (size_t i = 0; i < step.memory.size(); ++i) {
      const MemoryRef ref = step.memory[i];
      void* const data = ref.kind == MemoryRef::kOwned ? owned_[ref.index]->data() + ref.offset
                                                       : address(ref, context, operands, results);
      dnnl_memory_set_data_handle(step.arguments[i].memory, data);
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(step.primitive.get(), stream().get(),
                               static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success)
      fail(ErrorCode::kDevice, name_, ": oneDNN failed with status ", static_cast<int>(status));
  }
}

}  // namespace paddle::onednn
