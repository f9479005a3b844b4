#include "partition/overlap.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/collectives.h"
#include "partition/communication.h"
#include "partition/rules.h"

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;

/// Operations before a gather that compute what it gathers; more are not moved with it.
constexpr size_t kMaxChainLength = 3;

int64_t rows_before(const Value& value, int64_t axis) {
  const Dims shape = concrete(value.type.shape);
  const auto rank = static_cast<int64_t>(shape.size());
  return element_count(
      std::span(shape).subspan(0, static_cast<size_t>(axis < 0 ? axis + rank : axis)));
}

class Overlap {
 public:
  explicit Overlap(ir::Function& function) : function_(function) {}

  void run() {
    auto& operations = function_.body.operations;
    for (auto& each : operations) old_.push_back(std::move(each));
    operations.clear();
    for (size_t i = 0; i < old_.size(); ++i) {
      place_[old_[i].get()] = i;
      if (name(*old_[i]) == "comm.all_gather" && find_chain(*old_[i])) gathers_.push_back(i);
    }
    begin_next();
    for (size_t i = 0; i < old_.size(); ++i) {
      if (begun_ && begun_->place == i) {
        if (pending_) end(*pending_);
        end(*begun_);
        begin_next();
        continue;
      }
      if (!old_[i]) continue;  // moved before
      const Operation& o = *old_[i];
      const std::string_view kind = name(o);
      if (pending_ && (kind.starts_with("comm.") || reads(o, pending_->result))) end(*pending_);
      if (kind == "comm.all_gather" || is_sum(o)) {
        pending_ = begin(i);
      } else {
        operations.push_back(std::move(old_[i]));
      }
    }
    if (pending_) end(*pending_);
  }

 private:
  struct Begun {
    size_t place = 0;  ///< of the exchange in the old order
    std::unique_ptr<Operation> exchange;
    Operation* start = nullptr;
    Value* result = nullptr;
  };

  static std::string_view name(const Operation& o) { return o.op->name(); }
  static bool is_sum(const Operation& o) {
    return name(o) == "comm.reduce_scatter" && attribute(o, "reduction").as_string() == "sum";
  }
  static bool reads(const Operation& o, const Value* value) {
    bool found = false;
    ir::for_each_read(o, [&](const Value* v) { found = found || v == value; });
    return found;
  }

  /// The operations that compute the operand of a gather from inputs of the function, in order;
  /// false if others do.
  bool find_chain(const Operation& gather) {
    std::vector<Operation*> chain;
    std::vector<const Value*> open = {gather.operands[0]};
    while (!open.empty()) {
      const Value* const v = open.back();
      open.pop_back();
      Operation* const producer = v ? v->producer : nullptr;
      if (!producer || std::find(chain.begin(), chain.end(), producer) != chain.end()) continue;
      if (producer->op->has(kEffect) || !producer->regions.empty() ||
          chain.size() == kMaxChainLength)
        return false;
      chain.push_back(producer);
      open.insert(open.end(), producer->operands.begin(), producer->operands.end());
    }
    std::sort(chain.begin(), chain.end(),
              [&](const Operation* a, const Operation* b) { return place_.at(a) < place_.at(b); });
    chains_[&gather] = std::move(chain);
    return true;
  }

  void begin_next() {
    begun_.reset();
    if (next_ == gathers_.size()) return;
    const size_t i = gathers_[next_++];
    for (const Operation* each : chains_.at(old_[i].get()))
      if (auto& moved = old_[place_.at(each)])
        function_.body.operations.push_back(std::move(moved));
    begun_ = begin(i);
  }

  Begun begin(size_t i) {
    Begun out{i, std::move(old_[i]), nullptr, nullptr};
    const Operation& o = *out.exchange;
    out.result = o.results[0];
    const bool gathers = name(o) == "comm.all_gather";
    const auto group = attribute(o, "ranks").as_ints().size();
    const Value& whole = gathers ? *out.result : *o.operands[0];
    // Parts along another axis than the first are put together, or taken apart.
    const bool packs = group > 1 && rows_before(whole, attribute(o, "axis").as_int()) > 1;
    int64_t scratch = packs ? bytes_of(whole) : 0;
    if (!gathers)
      scratch += static_cast<int64_t>(
          comm::reduce_scatter_scratch(static_cast<size_t>(bytes_of(*out.result)), group));
    const Op& op = get_op(gathers ? "comm.start_all_gather" : "comm.start_reduce_scatter");
    Attrs attrs = o.attrs;
    if (!gathers) attrs.values.pop_back();  // the reduction
    attrs.values.emplace_back(scratch);
    out.start = function_.append(function_.body, op, {o.operands[0]}, std::move(attrs),
                                 {out.result->type, {DType::kU8, {Dim(scratch)}}});
    out.start->location = o.location;
    return out;
  }

  /// Ends an exchange, whose result keeps its identity.
  void end(Begun& begun) {
    Attrs attrs;
    attrs.list_sizes = {2};  // what stays in memory until then
    Operation* const wait = function_.append(
        function_.body, get_op("comm.wait"),
        {begun.start->results[0], begun.start->operands[0], begun.start->results[1]},
        std::move(attrs), {begun.result->type});
    wait->location = begun.exchange->location;
    wait->results[0] = begun.result;
    begun.result->producer = wait;
    begun.result->index = 0;
    if (pending_ && &begun == &*pending_) pending_.reset();
  }

  ir::Function& function_;
  std::vector<std::unique_ptr<Operation>> old_;
  std::unordered_map<const Operation*, size_t> place_;
  std::unordered_map<const Operation*, std::vector<Operation*>> chains_;
  std::vector<size_t> gathers_;  ///< of parameters, in order
  size_t next_ = 0;
  std::optional<Begun> begun_;    ///< the gather of a parameter that is on its way
  std::optional<Begun> pending_;  ///< another exchange that is
};

}  // namespace

void overlap_exchanges(ir::Function& function) { Overlap(function).run(); }

}  // namespace paddle::partition
