#include "runtime/known_calls.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/parallel.h"
#include "ops/core/op.h"
#include "tensor/random.h"

namespace paddle::runtime {
namespace {

/// Preparing takes little of the time of calls with more results than this, and their kernels may
/// hold tables of that size.
constexpr int64_t kMaxElements = int64_t{1} << 18;
constexpr size_t kMaxOperands = 32;

uint64_t mixed(uint64_t hash, uint64_t value) {
  return (std::rotl(hash, 5) ^ value) * 0x9E3779B97F4A7C15u;
}

/// Equal values have equal hashes; lists count with their numbers, other values with their kind.
uint64_t mixed(uint64_t hash, const AttrValue& value) {
  if (value.is_bool()) return mixed(hash, value.as_bool() ? 3 : 2);
  if (value.is_int()) {
    const auto constant = value.as_dim().constant();
    return mixed(hash, constant ? static_cast<uint64_t>(*constant) : 5);
  }
  if (value.is_float()) return mixed(hash, std::bit_cast<uint64_t>(value.as_double()));
  if (value.is_string()) return mixed(hash, stream_of(value.as_string()));
  if (value.is_dtype()) return mixed(hash, static_cast<uint64_t>(value.as_dtype()) + 64);
  if (value.is_list()) {
    hash = mixed(hash, value.as_list().size());
    for (const AttrValue& item : value.as_list()) hash = mixed(hash, item);
  }
  return hash;
}

bool operand_must_be_packed(const Op& op, const Array& array) {
  return !op.has(kStrided) && !array.is_contiguous();
}

}  // namespace

struct KnownCalls::Known {
  uint64_t hash = 0;
  uint64_t used = 0;  ///< the clock when it last ran
  int threads = 0;
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Layout> operands, results;
  std::vector<std::shared_ptr<const TensorType>> types;
  std::vector<size_t> bytes;
  std::unique_ptr<Kernel> kernel;
  size_t scratch = 0;

  bool fits(const Op& its_op, const Tensors& its_operands, const Attrs& its_attrs) const {
    if (op != &its_op || operands.size() != its_operands.size()) return false;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].present != its_operands[i].defined()) return false;
      if (!operands[i].present) continue;
      const Array& array = *its_operands[i].concrete();
      if (array.dtype != operands[i].dtype || array.shape != operands[i].shape ||
          array.strides != operands[i].strides)
        return false;
    }
    return attrs == its_attrs;
  }
};

void KnownCalls::Destroy::operator()(Known* known) const { delete known; }

KnownCalls& KnownCalls::of_this_thread() {
  thread_local KnownCalls calls;
  return calls;
}

namespace {

/// False if an operand is not an array of the host, or a number that is still to be cast.
bool hash_of(const Op& op, const Tensors& operands, const Attrs& attrs, int threads,
             uint64_t& hash) {
  if (operands.size() > kMaxOperands) return false;
  // Kernels that are registered later are chosen, too.
  hash =
      mixed(mixed(static_cast<uint64_t>(op.id), static_cast<uint64_t>(threads)), registry_epoch());
  for (const Tensor& t : operands) {
    if (!t.defined()) {
      hash = mixed(hash, 1);
      continue;
    }
    const Array* const array = t.concrete();
    if (!array || t.type().weak || !array->device().is_cpu()) return false;
    hash = mixed(hash, static_cast<uint64_t>(array->dtype) + 16);
    for (size_t i = 0; i < array->shape.size(); ++i)
      hash = mixed(mixed(hash, static_cast<uint64_t>(array->shape[i])),
                   static_cast<uint64_t>(array->strides[i]));
  }
  for (const AttrValue& value : attrs.values) hash = mixed(hash, value);
  hash ^= hash >> 29;
  return true;
}

}  // namespace

bool KnownCalls::add(const OpCall& call) {
  if (running_ > 0) return false;  // it might replace a kernel that runs
  int64_t elements = 0;
  for (const TensorType& type : call.results) {
    if (!type.ranked || !is_constant(type.shape)) return false;
    elements += element_count(std::span<const int64_t>(concrete(type.shape)));
  }
  if (elements > kMaxElements || call.results.empty()) return false;
  auto known = std::unique_ptr<Known, Destroy>(new Known());
  known->threads = thread_count();
  if (!hash_of(call.op, call.operands, call.attrs, known->threads, known->hash)) return false;
  known->op = &call.op;
  known->attrs = call.attrs;
  for (const Tensor& t : call.operands) {
    Layout& layout = known->operands.emplace_back();
    layout.present = t.defined();
    if (!t.defined()) continue;
    const Array& array = *t.concrete();
    if (operand_must_be_packed(call.op, array)) return false;
    layout = Layout::of(array);
    layout.offset = 0;
  }
  for (const TensorType& type : call.results) {
    known->results.push_back(Layout::contiguous(type.dtype, concrete(type.shape)));
    known->bytes.push_back(
        static_cast<size_t>(storage_bytes(type.dtype, known->results.back().size())));
    known->types.push_back(
        std::make_shared<const TensorType>(TensorType{type.dtype, type.shape, true, false}));
  }
  known->kernel = prepare_kernel({.op = call.op,
                                  .attrs = known->attrs,
                                  .operands = known->operands,
                                  .results = known->results});
  if (!known->kernel) return false;
  known->scratch = known->kernel->scratch_bytes();
  known->used = ++clock_;
  // In place of the one that was used longest ago.
  auto* slot = &slots_[known->hash % kSlots];
  for (size_t way = 0; way < kWays; ++way) {
    auto& candidate = slots_[(known->hash + way) % kSlots];
    if (!candidate) {
      slot = &candidate;
      break;
    }
    if (candidate->used < (*slot)->used) slot = &candidate;
  }
  *slot = std::move(known);
  return true;
}

bool KnownCalls::run(const Op& op, const Tensors& operands, const Attrs& attrs, Tensors& results) {
  uint64_t hash = 0;
  const int threads = thread_count();
  if (!hash_of(op, operands, attrs, threads, hash)) return false;
  Known* known = nullptr;
  for (size_t way = 0; way < kWays && !known; ++way) {
    Known* const candidate = slots_[(hash + way) % kSlots].get();
    if (candidate && candidate->hash == hash && candidate->threads == threads &&
        candidate->fits(op, operands, attrs))
      known = candidate;
  }
  if (!known) return false;
  known->used = ++clock_;
  std::array<void*, kMaxOperands> operand_data{};
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].defined()) operand_data[i] = operands[i].concrete()->address();
  std::array<void*, kMaxOperands> result_data{};
  const size_t count = known->results.size();
  if (count > kMaxOperands) return false;
  results.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    auto array = std::make_shared<Array>();
    array->dtype = known->results[i].dtype;
    array->shape = known->results[i].shape;
    array->strides = known->results[i].strides;
    array->storage = Storage::allocate(known->bytes[i]);
    result_data[i] = array->storage->address();
    results.emplace_back(known->types[i], std::move(array));
  }
  std::shared_ptr<Storage> scratch;
  RunContext context;
  if (known->scratch) {
    scratch = Storage::allocate(known->scratch);
    context.scratch = scratch->address();
  }
  struct Running {
    int& count;
    explicit Running(int& its_count) : count(its_count) { ++count; }
    ~Running() { --count; }
  } const running(running_);
  known->kernel->run(context, operand_data.data(), result_data.data());
  return true;
}

}  // namespace paddle::runtime
