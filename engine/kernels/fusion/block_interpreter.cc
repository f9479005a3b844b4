#include "kernels/fusion/block_interpreter.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/fusion/program.h"
#include "kernels/fusion/reductions.h"

namespace paddle::cpu {
namespace {

constexpr size_t kBufferBytes = 32 * 1024;  // all blocks of a group, in the L1 cache
constexpr int kMaxBuffers = 48;
constexpr int kMaxInputs = 4;

/// An action on one block. Steps refer to values by index.
struct BlockStep {
  enum class Kind : uint8_t {
    kRead,     ///< a block of an operand, in place or copied to the value's buffer
    kConvert,  ///< to another element type
    kLoop,
    kStore,  ///< a value's block to a result
  };
  Kind kind = Kind::kRead;
  int target = -1;  ///< index of the value; for kStore of the result
  int result = -1;  ///< kLoop: the result that is written directly, or -1
  int inputs[kMaxInputs] = {};
  int input_count = 0;
  int reader = -1;              ///< for kRead
  ConvertFn convert = nullptr;  ///< for kConvert, and for kStore where types differ
  ElementwiseStep apply;        ///< for kLoop
};

struct BlockValue {
  DType type = DType::kF32;
  int operand = -1;       ///< the operand that is read, or -1
  bool direct = false;    ///< points into the operand
  bool constant = false;  ///< the same in every block
  int64_t period = 0;     ///< of an operand that repeats, see StridedReader
  int last_use = -1;      ///< index of a step
  int buffer = -1;
};

class BlockInterpreter final : public Kernel {
 public:
  /// False if the group cannot be interpreted.
  bool build(const FusedRequest& request);
  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    if (reductions_) return run_reductions(context, operands, results);
    // Ranges start at block boundaries, so that periodic operands look the same in every block.
    parallel_for((size_ + block_ - 1) / block_, grain_, [&](int64_t begin, int64_t end) {
      run_range(operands, results, begin * block_, std::min(size_, end * block_));
    });
  }
  size_t scratch_bytes() const override { return reductions_ ? reductions_->scratch_bytes() : 0; }
  std::string implementation() const override { return "cpu:fused"; }

 private:
  void add_nodes(const FusedRequest& request, const std::vector<FusionNode>& nodes);
  void add_reduction_inputs(const std::vector<FusionReduction>& reductions);
  void add_stores(const FusedRequest& request, const std::vector<FusionStore>& from);
  bool choose_blocks();
  bool assign_buffers();
  void run_range(void* const* operands, void* const* results, int64_t begin, int64_t end) const;
  void run_reductions(const RunContext& context, void* const* operands, void* const* results) const;
  void execute_step(const BlockStep& step, void* const* operands, void* const* results, int64_t at,
                    int64_t n, const void** blocks, std::byte* buffers) const;

  std::vector<BlockStep> constant_steps_;  ///< reads of values that are the same in every block
  std::vector<BlockStep> steps_;
  std::vector<BlockValue> values_;
  std::vector<StridedReader> readers_;
  std::vector<int> reader_operands_;
  std::vector<int64_t> result_items_;
  std::vector<int> reduced_;  ///< values that reductions read at the end of a block
  std::optional<FusionReductions> reductions_;
  int64_t size_ = 0, block_ = 64, grain_ = 1024, buffer_bytes_ = 0;
  int cost_ = 0;
};

/// Adds one value and one step per node.
void BlockInterpreter::add_nodes(const FusedRequest& request,
                                 const std::vector<FusionNode>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const FusionNode& node = nodes[i];
    values_.push_back({});
    BlockValue& s = values_.back();
    s.type = node.type;
    BlockStep step;
    step.target = static_cast<int>(i);
    for (const int input : node.inputs) step.inputs[step.input_count++] = input;
    switch (node.kind) {
      case FusionNode::Kind::kRead:
        readers_.emplace_back(request.operands[static_cast<size_t>(node.operand)], request.shape,
                              node.type);
        reader_operands_.push_back(node.operand);
        step.kind = BlockStep::Kind::kRead;
        step.reader = static_cast<int>(readers_.size()) - 1;
        s.operand = node.operand;
        s.direct = readers_.back().is_direct();
        s.constant = readers_.back().is_constant();
        s.period = readers_.back().period();
        break;
      case FusionNode::Kind::kConvert:
        step.kind = BlockStep::Kind::kConvert;
        step.convert = convert_fn(values_[static_cast<size_t>(node.inputs[0])].type, node.type);
        break;
      case FusionNode::Kind::kApply:
        step.kind = BlockStep::Kind::kLoop;
        step.apply = node.step;
        break;
    }
    (s.constant ? constant_steps_ : steps_).push_back(std::move(step));
  }
}

/// Values that are reduced after the block are copied out of operands, which a result may
/// overwrite.
void BlockInterpreter::add_reduction_inputs(const std::vector<FusionReduction>& reductions) {
  for (const FusionReduction& r : reductions) {
    int value = r.node;
    if (values_[static_cast<size_t>(value)].operand >= 0) {
      BlockStep copy;
      copy.kind = BlockStep::Kind::kConvert;
      copy.target = static_cast<int>(values_.size());
      copy.inputs[copy.input_count++] = value;
      copy.convert = convert_fn(r.operand, r.operand);
      value = copy.target;
      values_.push_back({.type = r.operand});
      steps_.push_back(std::move(copy));
    }
    reduced_.push_back(value);
  }
}

/// A loop writes its result directly unless a later step reads an operand that may share memory
/// with the result; then the result is stored at the end of the block.
void BlockInterpreter::add_stores(const FusedRequest& request,
                                  const std::vector<FusionStore>& from) {
  std::vector<BlockStep> stores;
  for (const auto& [value, r] : from) {
    const Layout& result = request.results[static_cast<size_t>(r)];
    const DType value_type = values_[static_cast<size_t>(value)].type;
    size_t producer = 0;
    while (producer < steps_.size() &&
           !(steps_[producer].kind == BlockStep::Kind::kLoop && steps_[producer].target == value))
      ++producer;
    bool in_place =
        producer < steps_.size() && value_type == result.dtype && steps_[producer].result < 0;
    for (size_t i = producer + 1; in_place && i < steps_.size(); ++i)
      for (int k = 0; k < std::max(1, steps_[i].input_count); ++k) {
        const bool reads = steps_[i].kind == BlockStep::Kind::kRead;
        const int used = reads ? steps_[i].target : steps_[i].inputs[k];
        const BlockValue& s = values_[static_cast<size_t>(used)];
        if (s.operand < 0 || (!reads && !s.direct)) continue;
        const Layout& layout = request.operands[static_cast<size_t>(s.operand)];
        if (layout.dtype == result.dtype && layout.shape == result.shape) in_place = false;
      }
    if (in_place) {
      steps_[producer].result = r;
      continue;
    }
    BlockStep store;
    store.kind = BlockStep::Kind::kStore;
    store.target = r;
    store.inputs[0] = value;
    store.input_count = 1;
    if (value_type != result.dtype) store.convert = convert_fn(value_type, result.dtype);
    stores.push_back(std::move(store));
  }
  for (BlockStep& store : stores) steps_.push_back(std::move(store));
}

/// Values that are not live at the same time share a buffer.
bool BlockInterpreter::assign_buffers() {
  for (BlockValue& s : values_) {
    s.buffer = -1;
    s.last_use = -1;
  }
  for (size_t i = 0; i < steps_.size(); ++i)
    for (int k = 0; k < steps_[i].input_count; ++k)
      values_[static_cast<size_t>(steps_[i].inputs[k])].last_use = static_cast<int>(i);
  for (const int value : reduced_)
    values_[static_cast<size_t>(value)].last_use = static_cast<int>(steps_.size());
  std::vector<int> free;
  int count = 0;
  const auto take = [&] {
    if (free.empty()) return count++;
    const int buffer = free.back();
    free.pop_back();
    return buffer;
  };
  for (const BlockStep& a : constant_steps_)
    values_[static_cast<size_t>(a.target)].buffer = count++;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const BlockStep& a = steps_[i];
    if (a.kind != BlockStep::Kind::kStore) {
      BlockValue& target = values_[static_cast<size_t>(a.target)];
      if (!target.direct && a.result < 0) target.buffer = take();
    }
    // A loop may overwrite a block that it reads; a freed buffer is available to the next step
    // only.
    for (int k = 0; k < a.input_count; ++k) {
      BlockValue& s = values_[static_cast<size_t>(a.inputs[k])];
      if (s.last_use == static_cast<int>(i) && s.buffer >= 0 && !s.constant) {
        if (std::find(free.begin(), free.end(), s.buffer) == free.end()) free.push_back(s.buffer);
        s.last_use = -1;
      }
    }
  }
  if (count > kMaxBuffers || values_.size() > 2 * kMaxBuffers) return false;
  int64_t widest = 1;
  for (const BlockValue& s : values_) widest = std::max(widest, item_size(s.type));
  const int64_t fits = static_cast<int64_t>(kBufferBytes) / (std::max(1, count) * widest);
  block_ = std::clamp<int64_t>(fits / 64 * 64, 64, 2048);
  buffer_bytes_ = block_ * widest;
  return count * buffer_bytes_ <= static_cast<int64_t>(kBufferBytes);
}

/// A periodic operand is the same in every block if blocks hold whole periods, and is read in place
/// if periods hold whole blocks. Chooses the block size so that one of both is true for operands of
/// the first period found.
bool BlockInterpreter::choose_blocks() {
  int64_t period = 0;
  for (const BlockValue& s : values_)
    if (s.period > 0 && period == 0) period = s.period;
  // Reductions split blocks by rows.
  if (period == 0 || !reduced_.empty()) return assign_buffers();
  const auto is_periodic_read = [&](const BlockStep& a) {
    return a.kind == BlockStep::Kind::kRead &&
           values_[static_cast<size_t>(a.target)].period == period;
  };
  const std::vector<BlockStep> saved_steps = steps_, saved_constants = constant_steps_;
  for (const BlockStep& a : saved_steps)
    if (is_periodic_read(a)) {
      values_[static_cast<size_t>(a.target)].constant = true;
      constant_steps_.push_back(a);
    }
  steps_.erase(std::remove_if(steps_.begin(), steps_.end(), is_periodic_read), steps_.end());
  if (assign_buffers() && period <= block_) {
    block_ = block_ / period * period;
    return true;
  }
  steps_ = saved_steps;
  constant_steps_ = saved_constants;
  for (const BlockStep& a : saved_steps)
    if (is_periodic_read(a)) {
      values_[static_cast<size_t>(a.target)].constant = false;
      values_[static_cast<size_t>(a.target)].direct = true;
    }
  if (!assign_buffers()) return false;
  int64_t chunks = (period + block_ - 1) / block_;
  while (chunks < period && period % chunks != 0) ++chunks;
  if (period / chunks >= 64) {
    block_ = period / chunks;
    return true;
  }
  for (const BlockStep& a : saved_steps)
    if (is_periodic_read(a)) values_[static_cast<size_t>(a.target)].direct = false;
  return assign_buffers();
}

bool BlockInterpreter::build(const FusedRequest& request) {
  auto program = build_fusion_program(request);
  if (!program) return false;
  size_ = element_count(std::span<const int64_t>(request.shape));
  cost_ = program->cost;
  add_nodes(request, program->nodes);
  add_reduction_inputs(program->reductions);
  add_stores(request, program->stores);
  for (const Layout& result : request.results) result_items_.push_back(item_size(result.dtype));
  if (!choose_blocks()) return false;
  grain_ = std::max<int64_t>(1, 65536 / std::max(1, cost_) / block_);
  if (program->reductions.empty()) return true;
  reductions_.emplace(request.shape, *program, block_);
  // Interpreting a block costs more than reading its stored result again, unless the result would
  // not be stored otherwise.
  const bool is_small = size_ <= FusionReductions::kSmallGroup;
  return is_small || (reductions_->is_profitable() && program->stores.empty() &&
                      !reductions_->schedule().inner_kept);
}

void BlockInterpreter::run_reductions(const RunContext& context, void* const* operands,
                                      void* const* results) const {
  struct BlockWorker {
    const BlockInterpreter& kernel;
    void* const* operands;
    void* const* results;
    bool initialized = false;
    const void* blocks[2 * kMaxBuffers];
    alignas(64) std::byte buffers[kBufferBytes];

    BlockWorker(const BlockInterpreter& k, void* const* from,
                void* const* to)  // the arrays stay uninitialized
        : kernel(k), operands(from), results(to) {}
    void operator()(const FusionReductions::Tile& tile) {
      const auto execute_step = [&](const BlockStep& a, int64_t count) {
        kernel.execute_step(a, operands, results, tile.at, count, blocks, buffers);
      };
      if (!initialized)
        for (const BlockStep& a : kernel.constant_steps_) execute_step(a, kernel.block_);
      initialized = true;
      for (const BlockStep& a : kernel.steps_) execute_step(a, tile.size());
      const void* values[kMaxFusionReductions];
      for (size_t k = 0; k < kernel.reduced_.size(); ++k) values[k] = blocks[kernel.reduced_[k]];
      kernel.reductions_->fold(tile, values);
    }
  };
  reductions_->run(context, results, [&] { return BlockWorker(*this, operands, results); });
}

void BlockInterpreter::run_range(void* const* operands, void* const* results, int64_t begin,
                                 int64_t end) const {
  alignas(64) std::byte buffers[kBufferBytes];
  const void* blocks[2 * kMaxBuffers];
  for (const BlockStep& a : constant_steps_)
    execute_step(a, operands, results, begin, std::min(block_, end - begin), blocks, buffers);
  for (int64_t at = begin; at < end; at += block_) {
    const int64_t n = std::min(block_, end - at);
    for (const BlockStep& a : steps_) execute_step(a, operands, results, at, n, blocks, buffers);
  }
}

void BlockInterpreter::execute_step(const BlockStep& a, void* const* operands, void* const* results,
                                    int64_t at, int64_t n, const void** blocks,
                                    std::byte* buffers) const {
  const auto buffer = [&](int value) {
    return buffers + values_[static_cast<size_t>(value)].buffer * buffer_bytes_;
  };
  const auto result = [&](int r) {
    return static_cast<std::byte*>(results[r]) + at * result_items_[static_cast<size_t>(r)];
  };
  switch (a.kind) {
    case BlockStep::Kind::kRead: {
      const size_t reader = static_cast<size_t>(a.reader);
      const BlockValue& value = values_[static_cast<size_t>(a.target)];
      const void* const operand = operands[reader_operands_[reader]];
      if (value.direct && value.period > 0)
        blocks[a.target] =
            static_cast<const std::byte*>(operand) + at % value.period * item_size(value.type);
      else
        blocks[a.target] =
            readers_[reader].read(operand, at, n, value.direct ? nullptr : buffer(a.target));
      break;
    }
    case BlockStep::Kind::kConvert:
      a.convert(blocks[a.inputs[0]], 1, buffer(a.target), n);
      blocks[a.target] = buffer(a.target);
      break;
    case BlockStep::Kind::kLoop: {
      const void* in[kMaxInputs];
      for (int k = 0; k < a.input_count; ++k) in[k] = blocks[a.inputs[k]];
      std::byte* const out = a.result >= 0 ? result(a.result) : buffer(a.target);
      a.apply.loop(in, out, n, a.apply.params.data());
      blocks[a.target] = out;
      break;
    }
    case BlockStep::Kind::kStore: {
      const void* const from = blocks[a.inputs[0]];
      if (a.convert)
        a.convert(from, 1, result(a.target), n);
      else
        std::memmove(result(a.target), from,
                     static_cast<size_t>(n * result_items_[static_cast<size_t>(a.target)]));
      break;
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> prepare_fused_group(const FusedRequest& request) {
  auto kernel = std::make_unique<BlockInterpreter>();
  if (!kernel->build(request)) return nullptr;
  return kernel;
}

}  // namespace paddle::cpu
