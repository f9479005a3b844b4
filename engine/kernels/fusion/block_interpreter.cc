#include "kernels/fusion/block_interpreter.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/fusion/program.h"
#include "kernels/fusion/reductions.h"

namespace paddle::cpu {
namespace {

constexpr size_t kBufferBytes = 32 * 1024;  // all blocks of a group, in the first-level cache
constexpr int kMaxSlots = 48;
constexpr int kMaxInputs = 4;

/// One thing done to a block. Slots hold pointers to blocks of values.
struct Action {
  enum class Kind : uint8_t {
    kRead,     ///< an operand's block: in place, or brought into the slot's buffer
    kConvert,  ///< to another element type
    kLoop,
    kStore,  ///< a slot's block to a result
  };
  Kind kind = Kind::kRead;
  int target = -1;  ///< slot; for kStore the result
  int result = -1;  ///< kLoop: the result that is written at once, or -1
  int inputs[kMaxInputs] = {};
  int input_count = 0;
  int reader = -1;              ///< kRead
  ConvertFn convert = nullptr;  ///< kConvert; kStore where types differ
  MapStep step;                 ///< kLoop
};

struct Slot {
  DType type = DType::kF32;
  int operand = -1;       ///< the operand that it is a block of, if it is read
  bool direct = false;    ///< points into the operand
  bool constant = false;  ///< the same in every block
  int64_t period = 0;     ///< of an operand that repeats, see StridedReader
  int last_use = -1;      ///< action
  int buffer = -1;
};

class FusedKernel final : public Kernel {
 public:
  /// False if the group can't be computed here.
  bool build(const FusedRequest& request);
  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    if (reductions_) return run_reductions(context, operands, results);
    // Ranges begin at whole blocks, so that repeating operands look the same in all of them.
    parallel_for((size_ + block_ - 1) / block_, grain_, [&](int64_t begin, int64_t end) {
      run_range(operands, results, begin * block_, std::min(size_, end * block_));
    });
  }
  size_t scratch_bytes() const override { return reductions_ ? reductions_->scratch_bytes() : 0; }
  std::string implementation() const override { return "cpu:fused"; }

 private:
  void add_nodes(const FusedRequest& request, const std::vector<GroupNode>& nodes);
  void add_reduced(const std::vector<GroupReduction>& reductions);
  void add_stores(const FusedRequest& request, const std::vector<GroupStore>& from);
  bool choose_blocks();
  bool assign_buffers();
  void run_range(void* const* operands, void* const* results, int64_t begin, int64_t end) const;
  void run_reductions(const RunContext& context, void* const* operands, void* const* results) const;
  void perform(const Action& action, void* const* operands, void* const* results, int64_t at,
               int64_t n, const void** blocks, std::byte* buffers) const;

  std::vector<Action> constants_;  ///< reads of values that are the same everywhere
  std::vector<Action> actions_;
  std::vector<Slot> slots_;
  std::vector<StridedReader> readers_;
  std::vector<int> reader_operands_;
  std::vector<int64_t> result_items_;
  std::vector<int> reduced_;  ///< slots that reductions read when a block is done
  std::optional<GroupReductions> reductions_;
  int64_t size_ = 0, block_ = 64, grain_ = 1024, slot_bytes_ = 0;
  int cost_ = 0;
};

/// One slot and one action per node.
void FusedKernel::add_nodes(const FusedRequest& request, const std::vector<GroupNode>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GroupNode& node = nodes[i];
    slots_.push_back({});
    Slot& s = slots_.back();
    s.type = node.type;
    Action action;
    action.target = static_cast<int>(i);
    for (const int input : node.inputs) action.inputs[action.input_count++] = input;
    switch (node.kind) {
      case GroupNode::Kind::kRead:
        readers_.emplace_back(request.operands[static_cast<size_t>(node.operand)], request.shape,
                              node.type);
        reader_operands_.push_back(node.operand);
        action.kind = Action::Kind::kRead;
        action.reader = static_cast<int>(readers_.size()) - 1;
        s.operand = node.operand;
        s.direct = readers_.back().is_direct();
        s.constant = readers_.back().is_constant();
        s.period = readers_.back().period();
        break;
      case GroupNode::Kind::kConvert:
        action.kind = Action::Kind::kConvert;
        action.convert = convert_fn(slots_[static_cast<size_t>(node.inputs[0])].type, node.type);
        break;
      case GroupNode::Kind::kApply:
        action.kind = Action::Kind::kLoop;
        action.step = node.step;
        break;
    }
    (s.constant ? constants_ : actions_).push_back(std::move(action));
  }
}

/// What is folded after the block must not lie in an operand, over which a result may be written.
void FusedKernel::add_reduced(const std::vector<GroupReduction>& reductions) {
  for (const GroupReduction& r : reductions) {
    int slot = r.node;
    if (slots_[static_cast<size_t>(slot)].operand >= 0) {
      Action copy;
      copy.kind = Action::Kind::kConvert;
      copy.target = static_cast<int>(slots_.size());
      copy.inputs[copy.input_count++] = slot;
      copy.convert = convert_fn(r.operand, r.operand);
      slot = copy.target;
      slots_.push_back({.type = r.operand});
      actions_.push_back(std::move(copy));
    }
    reduced_.push_back(slot);
  }
}

/// Results are written by the loop that computes them where no operand that they may share memory
/// with is read later, else at the end of the block.
void FusedKernel::add_stores(const FusedRequest& request, const std::vector<GroupStore>& from) {
  std::vector<Action> stores;
  for (const auto& [slot, r] : from) {
    const Layout& result = request.results[static_cast<size_t>(r)];
    const DType held = slots_[static_cast<size_t>(slot)].type;
    size_t made = 0;
    while (made < actions_.size() &&
           !(actions_[made].kind == Action::Kind::kLoop && actions_[made].target == slot))
      ++made;
    bool at_once = made < actions_.size() && held == result.dtype && actions_[made].result < 0;
    for (size_t i = made + 1; at_once && i < actions_.size(); ++i)
      for (int k = 0; k < std::max(1, actions_[i].input_count); ++k) {
        const bool reads = actions_[i].kind == Action::Kind::kRead;
        const int used = reads ? actions_[i].target : actions_[i].inputs[k];
        const Slot& s = slots_[static_cast<size_t>(used)];
        if (s.operand < 0 || (!reads && !s.direct)) continue;
        const Layout& layout = request.operands[static_cast<size_t>(s.operand)];
        if (layout.dtype == result.dtype && layout.shape == result.shape) at_once = false;
      }
    if (at_once) {
      actions_[made].result = r;
      continue;
    }
    Action store;
    store.kind = Action::Kind::kStore;
    store.target = r;
    store.inputs[0] = slot;
    store.input_count = 1;
    if (held != result.dtype) store.convert = convert_fn(held, result.dtype);
    stores.push_back(std::move(store));
  }
  for (Action& store : stores) actions_.push_back(std::move(store));
}

/// Slots that are not alive at the same time share a buffer.
bool FusedKernel::assign_buffers() {
  for (Slot& s : slots_) {
    s.buffer = -1;
    s.last_use = -1;
  }
  for (size_t i = 0; i < actions_.size(); ++i)
    for (int k = 0; k < actions_[i].input_count; ++k)
      slots_[static_cast<size_t>(actions_[i].inputs[k])].last_use = static_cast<int>(i);
  for (const int slot : reduced_)
    slots_[static_cast<size_t>(slot)].last_use = static_cast<int>(actions_.size());
  std::vector<int> free;
  int count = 0;
  const auto take = [&] {
    if (free.empty()) return count++;
    const int buffer = free.back();
    free.pop_back();
    return buffer;
  };
  for (const Action& a : constants_) slots_[static_cast<size_t>(a.target)].buffer = count++;
  for (size_t i = 0; i < actions_.size(); ++i) {
    const Action& a = actions_[i];
    if (a.kind != Action::Kind::kStore) {
      Slot& target = slots_[static_cast<size_t>(a.target)];
      if (!target.direct && a.result < 0) target.buffer = take();
    }
    // A loop may write over a block that it reads; a buffer is free for the next action only.
    for (int k = 0; k < a.input_count; ++k) {
      Slot& s = slots_[static_cast<size_t>(a.inputs[k])];
      if (s.last_use == static_cast<int>(i) && s.buffer >= 0 && !s.constant) {
        if (std::find(free.begin(), free.end(), s.buffer) == free.end()) free.push_back(s.buffer);
        s.last_use = -1;
      }
    }
  }
  if (count > kMaxSlots || slots_.size() > 2 * kMaxSlots) return false;
  int64_t widest = 1;
  for (const Slot& s : slots_) widest = std::max(widest, item_size(s.type));
  const int64_t fits = static_cast<int64_t>(kBufferBytes) / (std::max(1, count) * widest);
  block_ = std::clamp<int64_t>(fits / 64 * 64, 64, 2048);
  slot_bytes_ = block_ * widest;
  return count * slot_bytes_ <= static_cast<int64_t>(kBufferBytes);
}

/// Where blocks hold whole periods, a repeating operand is the same in all of them; where a period
/// holds whole blocks, its blocks are read in place. Blocks are cut so that one of both holds for
/// operands of the first period that there is.
bool FusedKernel::choose_blocks() {
  int64_t period = 0;
  for (const Slot& s : slots_)
    if (s.period > 0 && period == 0) period = s.period;
  // Reductions cut blocks by rows.
  if (period == 0 || !reduced_.empty()) return assign_buffers();
  const auto repeats = [&](const Action& a) {
    return a.kind == Action::Kind::kRead && slots_[static_cast<size_t>(a.target)].period == period;
  };
  const std::vector<Action> all = actions_, constants = constants_;
  for (const Action& a : all)
    if (repeats(a)) {
      slots_[static_cast<size_t>(a.target)].constant = true;
      constants_.push_back(a);
    }
  actions_.erase(std::remove_if(actions_.begin(), actions_.end(), repeats), actions_.end());
  if (assign_buffers() && period <= block_) {
    block_ = block_ / period * period;
    return true;
  }
  actions_ = all;
  constants_ = constants;
  for (const Action& a : all)
    if (repeats(a)) {
      slots_[static_cast<size_t>(a.target)].constant = false;
      slots_[static_cast<size_t>(a.target)].direct = true;
    }
  if (!assign_buffers()) return false;
  int64_t parts = (period + block_ - 1) / block_;
  while (parts < period && period % parts != 0) ++parts;
  if (period / parts >= 64) {
    block_ = period / parts;
    return true;
  }
  for (const Action& a : all)
    if (repeats(a)) slots_[static_cast<size_t>(a.target)].direct = false;
  return assign_buffers();
}

bool FusedKernel::build(const FusedRequest& request) {
  auto program = group_program(request);
  if (!program) return false;
  size_ = element_count(std::span<const int64_t>(request.shape));
  cost_ = program->cost;
  add_nodes(request, program->nodes);
  add_reduced(program->reductions);
  add_stores(request, program->stores);
  for (const Layout& result : request.results) result_items_.push_back(item_size(result.dtype));
  if (!choose_blocks()) return false;
  grain_ = std::max<int64_t>(1, 65536 / std::max(1, cost_) / block_);
  if (program->reductions.empty()) return true;
  reductions_.emplace(request.shape, *program, block_);
  // The loops of a block take longer than to read its results again, unless those are not written
  // otherwise.
  const bool few = size_ <= GroupReductions::kFewInAll;
  return few ||
         (reductions_->pays() && program->stores.empty() && !reductions_->frame().inner_kept);
}

void FusedKernel::run_reductions(const RunContext& context, void* const* operands,
                                 void* const* results) const {
  struct Worker {
    const FusedKernel& kernel;
    void* const* operands;
    void* const* results;
    bool began = false;
    const void* blocks[2 * kMaxSlots];
    alignas(64) std::byte buffers[kBufferBytes];

    Worker(const FusedKernel& k, void* const* from, void* const* to)  // the arrays stay as they are
        : kernel(k), operands(from), results(to) {}
    void operator()(const GroupReductions::Piece& piece) {
      const auto perform = [&](const Action& a, int64_t count) {
        kernel.perform(a, operands, results, piece.at, count, blocks, buffers);
      };
      if (!began)
        for (const Action& a : kernel.constants_) perform(a, kernel.block_);
      began = true;
      for (const Action& a : kernel.actions_) perform(a, piece.size());
      const void* values[kMaxGroupReductions];
      for (size_t k = 0; k < kernel.reduced_.size(); ++k) values[k] = blocks[kernel.reduced_[k]];
      kernel.reductions_->fold(piece, values);
    }
  };
  reductions_->run(context, results, [&] { return Worker(*this, operands, results); });
}

void FusedKernel::run_range(void* const* operands, void* const* results, int64_t begin,
                            int64_t end) const {
  alignas(64) std::byte buffers[kBufferBytes];
  const void* blocks[2 * kMaxSlots];
  for (const Action& a : constants_)
    perform(a, operands, results, begin, std::min(block_, end - begin), blocks, buffers);
  for (int64_t at = begin; at < end; at += block_) {
    const int64_t n = std::min(block_, end - at);
    for (const Action& a : actions_) perform(a, operands, results, at, n, blocks, buffers);
  }
}

void FusedKernel::perform(const Action& a, void* const* operands, void* const* results, int64_t at,
                          int64_t n, const void** blocks, std::byte* buffers) const {
  const auto buffer = [&](int slot) {
    return buffers + slots_[static_cast<size_t>(slot)].buffer * slot_bytes_;
  };
  const auto result = [&](int r) {
    return static_cast<std::byte*>(results[r]) + at * result_items_[static_cast<size_t>(r)];
  };
  switch (a.kind) {
    case Action::Kind::kRead: {
      const size_t reader = static_cast<size_t>(a.reader);
      const Slot& slot = slots_[static_cast<size_t>(a.target)];
      const void* const operand = operands[reader_operands_[reader]];
      if (slot.direct && slot.period > 0)
        blocks[a.target] =
            static_cast<const std::byte*>(operand) + at % slot.period * item_size(slot.type);
      else
        blocks[a.target] =
            readers_[reader].read(operand, at, n, slot.direct ? nullptr : buffer(a.target));
      break;
    }
    case Action::Kind::kConvert:
      a.convert(blocks[a.inputs[0]], 1, buffer(a.target), n);
      blocks[a.target] = buffer(a.target);
      break;
    case Action::Kind::kLoop: {
      const void* in[kMaxInputs];
      for (int k = 0; k < a.input_count; ++k) in[k] = blocks[a.inputs[k]];
      std::byte* const out = a.result >= 0 ? result(a.result) : buffer(a.target);
      a.step.loop(in, out, n, a.step.params.data());
      blocks[a.target] = out;
      break;
    }
    case Action::Kind::kStore: {
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
  auto kernel = std::make_unique<FusedKernel>();
  if (!kernel->build(request)) return nullptr;
  return kernel;
}

}  // namespace paddle::cpu
