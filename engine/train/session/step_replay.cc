#include "train/session/step_replay.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ir/replay.h"
#include "runtime/execute.h"

namespace paddle::train {
namespace {

/// The operations of a function, computed one after the other; values that are not read any more
/// are given up.
class Replay {
 public:
  Replay(const ir::Function& function, const std::vector<Array>& inputs)
      : next_(function.body.operations.begin()),
        end_(function.body.operations.end()),
        uses_(ir::count_uses(function)) {
    for (size_t i = 0; i < inputs.size(); ++i)
      values_[function.body.arguments[i]] = Tensor(inputs[i]);
  }
  void keep(const ir::Value* value) { ++uses_[value]; }
  void give_up(const ir::Value* value) {
    if (--uses_[value] == 0) values_.erase(value);
  }
  /// The value, once all operations up to its own have been computed.
  Array at(const ir::Value* value) {
    while (!values_.contains(value)) {
      ensure(next_ != end_, "replay: value %", value->id, " is not computed");
      const ir::Operation& operation = **next_++;
      ir::replay(operation, values_);
      ir::for_each_read(operation, [&](const ir::Value* v) { give_up(v); });
    }
    return values_.at(value).array().on_host();
  }

 private:
  std::list<std::unique_ptr<ir::Operation>>::const_iterator next_, end_;
  std::unordered_map<const ir::Value*, int> uses_;
  ir::ValueMap values_;
};

ReplayedValue described(const ir::Value& value, Array whole) {
  return {std::string(value.producer->op->name()), value.producer->location, value.type,
          std::move(whole)};
}

}  // namespace

namespace {

/// Finds the operation that the first NaN comes from.
class NonFiniteFinder {
 public:
  explicit NonFiniteFinder(const ir::Function& function) : function_(function) {}

  /// Notes the result of an operation; whether it has a NaN that its operands do not have.
  bool add(const ir::Value& value, const Array& array) {
    const NonFiniteCount count = count_nonfinite(array);
    if (!count.any()) return false;
    counts_[&value] = count;
    if (count.nan == 0) return false;
    end_ = &value;
    return true;
  }
  /// An operand of the function: a parameter or a field may hold NaN from the start.
  void add_input(const ir::Value& value, const Array& array) {
    if (const NonFiniteCount count = count_nonfinite(array); count.any()) counts_[&value] = count;
  }

  /// With no NaN: infinities that reach a result of the step.
  std::optional<NonFiniteOrigin> origin() const {
    const ir::Value* end = end_;
    for (size_t i = 0; !end && i < function_.body.results.size(); ++i)
      if (counts_.contains(function_.body.results[i])) end = function_.body.results[i];
    if (!end) return std::nullopt;
    const ir::Value* first = end;
    while (const ir::Value* before = nonfinite_operand(*first)) first = before;
    // A value that is made infinite on purpose, as in a mask, is not the mistake.
    const ir::Value* blamed = is_literal(*first) ? end : first;
    NonFiniteOrigin out;
    describe(*blamed, out.operation, out.location);
    if (const auto at = counts_.find(blamed); at != counts_.end()) out.count = at->second;
    if (blamed != end) describe(*end, out.seen_in, out.seen_at);
    return out;
  }

 private:
  const ir::Value* nonfinite_operand(const ir::Value& value) const {
    if (!value.producer) return nullptr;
    for (const ir::Value* operand : value.producer->operands)
      if (operand && (counts_.contains(operand) || is_infinite_constant(*operand))) return operand;
    return nullptr;
  }
  static bool is_infinite_constant(const ir::Value& value) {
    return value.constant && count_nonfinite(*value.constant).any();
  }
  /// Whether a value that is not finite was written down as such: -inf in a mask.
  static bool is_literal(const ir::Value& value) {
    if (value.constant) return true;
    if (!value.producer) return false;
    const auto infinite = [](const AttrValue& v) {
      return v.is_float() && !std::isfinite(v.as_double());
    };
    const auto& [operands, attrs] = std::tie(value.producer->operands, value.producer->attrs);
    return std::any_of(attrs.values.begin(), attrs.values.end(), infinite) ||
           std::none_of(operands.begin(), operands.end(),
                        [](const ir::Value* v) { return v && is_float(v->type.dtype); });
  }
  void describe(const ir::Value& value, std::string& name, std::string& place) const {
    if (value.producer) {
      name = value.producer->op->name();
      place = value.producer->location;
      return;
    }
    const auto& arguments = function_.body.arguments;
    const auto at = std::find(arguments.begin(), arguments.end(), &value);
    name = at == arguments.end()
               ? "constant"
               : function_.inputs[static_cast<size_t>(at - arguments.begin())].name;
  }

  const ir::Function& function_;
  std::unordered_map<const ir::Value*, NonFiniteCount> counts_;
  const ir::Value* end_ = nullptr;
};

}  // namespace

std::unique_ptr<CompiledFunction> StepReplay::traced_with_inputs(const std::vector<Array>& batch,
                                                                 const StepScalars& numbers) {
  compiler_.set_step(numbers.step);
  compiler_.bind_sizes(batch);
  std::unique_ptr<CompiledFunction> c = compiler_.traced(StepFunction::kTrain, true);
  compiler_.connect(*c);
  if (!c->lookups.empty() && context_.has_ranks())
    fail(ErrorCode::kConfig, "a step with tables is replayed on one rank");
  shards_.update_parts();
  tables_.read(*c, batch);
  executor_.fill_inputs(*c, batch, numbers, 1, context_.random_counter(numbers, 0));
  return c;
}

std::optional<NonFiniteOrigin> StepReplay::find_nonfinite(const std::vector<Array>& batch,
                                                          const StepScalars& numbers) {
  const std::unique_ptr<CompiledFunction> c = traced_with_inputs(batch, numbers);
  ensure(!c->logical, "find_nonfinite: the step is one of several ranks");
  runtime::EagerExecutor executor(context_.options.compile.target,
                                  context_.options.compile.prepare);
  const InterpreterScope scope(executor);
  const ir::Function& f = *c->function;
  NonFiniteFinder finder(f);
  for (size_t i = 0; i < c->inputs.size(); ++i)
    finder.add_input(*f.body.arguments[i], c->inputs[i]);
  Replay values(f, c->inputs);
  for (const auto& operation : f.body.operations)
    for (const ir::Value* v : operation->results) values.keep(v);
  bool found = false;
  for (const auto& operation : f.body.operations) {
    for (const ir::Value* v : operation->results) {
      found = finder.add(*v, values.at(v)) || found;
      values.give_up(v);
    }
    if (found) break;
  }
  return finder.origin();
}

void StepReplay::run(const std::vector<Array>& batch, const StepScalars& numbers,
                     const std::function<void(const ReplayedValue&)>& visit) {
  const std::unique_ptr<CompiledFunction> c = traced_with_inputs(batch, numbers);
  const bool is_root = context_.is_root();
  for (size_t i = 0; is_root && i < context_.fields.size(); ++i)
    visit({"field " + context_.fields[i].name,
           "",
           {batch[i].dtype, to_shape(batch[i].shape)},
           batch[i]});
  runtime::EagerExecutor executor(context_.options.compile.target, context_.options.compile.prepare,
                                  context_.options.collectives());
  const InterpreterScope scope(executor);
  const ir::Function& f = *c->function;
  Replay values(f, c->inputs);
  if (!c->logical) {
    for (const auto& operation : f.body.operations)
      for (const ir::Value* v : operation->results) values.keep(v);
    for (const auto& operation : f.body.operations)
      for (const ir::Value* v : operation->results) {
        visit(described(*v, values.at(v)));
        values.give_up(v);
      }
    return;
  }
  for (const partition::LocalPart& part : c->parts)
    if (part.local) values.keep(part.local);
  for (const partition::LocalPart& part : c->parts) {
    if (!part.local) continue;  // a constant
    const bool is_known =
        std::all_of(part.logical->type.shape.begin(), part.logical->type.shape.end(),
                    [](const Dim& d) { return d.is_constant(); });
    const Array mine = values.at(part.local);
    values.give_up(part.local);
    // A value with a size of its own at run time is whole on each rank.
    Array whole = mine;
    if (is_known)
      whole = shards_.gather_array(mine, part.logical->type.dtype,
                                   concrete(part.logical->type.shape), part.placement, 0);
    if (is_root) visit(described(*part.logical, std::move(whole)));
  }
}

}  // namespace paddle::train
