// A step computed operation by operation, to find where two runs part.

#include "ir/replay.h"
#include "runtime/execute.h"
#include "train/session/compiled_part.h"

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

void Session::replay(const std::vector<Array>& batch, const StepScalars& numbers,
                     const std::function<void(const ReplayedValue&)>& visit) {
  step_number_ = numbers.step;
  bind_sizes(batch);
  const std::unique_ptr<Compiled> c = traced(Part::kTrain, true);
  connect(*c, Part::kTrain);
  c->missing = MissingRow::kInitial;
  for (auto& [name, part] : parts_here_)
    part = partition::shard(store_.array(name), placements_.at(name), options_.mesh,
                            options_.communicator->rank());
  fill_inputs(*c, batch, numbers, 1, random_counter(numbers, 0));
  const bool is_root = !options_.communicator || options_.communicator->is_root();
  for (size_t i = 0; is_root && i < fields_.size(); ++i)
    visit({"field " + fields_[i].name, "", {batch[i].dtype, to_shape(batch[i].shape)}, batch[i]});
  runtime::EagerExecutor executor(options_.compile.target);
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
      whole = gather_array(mine, part.logical->type.dtype, concrete(part.logical->type.shape),
                           part.placement, 0);
    if (is_root) visit(described(*part.logical, std::move(whole)));
  }
}

}  // namespace paddle::train
