#include "compiler/passes/schedule/recompute.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/source_location.h"
#include "base/text.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/schedule/dropped_values.h"
#include "ir/clone.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

bool is_number(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The layer that the operation is computed again with; "" for none.
std::string layer_of(const Operation& operation, const std::vector<std::string>& patterns) {
  const Origin origin = parse_origin(operation.location);
  std::string path;
  for (const std::string& word : split(origin.layer, '.')) {
    path += (path.empty() ? "" : ".") + word;
    const bool found = patterns.empty() ? is_number(word)
                                        : std::any_of(patterns.begin(), patterns.end(),
                                                      [&](const std::string& pattern) {
                                                        return matches_pattern(pattern, path);
                                                      });
    if (found) return path;
  }
  return "";
}

/// The forward pass: what the loss depends on, in the order of the program.
std::vector<const Operation*> forward_pass(const ir::Function& function) {
  std::unordered_set<const Operation*> needed;
  std::vector<const Value*> open = {function.body.results[0]};
  while (!open.empty()) {
    const Value* const v = open.back();
    open.pop_back();
    if (!v->producer || !needed.insert(v->producer).second) continue;
    ir::for_each_read(*v->producer, [&](const Value* read) {
      if (!read->constant) open.push_back(read);
    });
  }
  std::vector<const Operation*> out;
  for (const auto& operation : function.body.operations)
    if (needed.contains(operation.get())) out.push_back(operation.get());
  return out;
}

class Recompute {
 public:
  Recompute(ir::Function& function, const RecomputeOptions& options)
      : function_(function), forward_(forward_pass(function)) {
    find_layers(options);
  }

  Recomputed run() {
    find_dropped();
    auto& operations = function_.body.operations;
    auto at = operations.begin();
    // The backward pass begins after the last operation of the forward pass.
    if (!forward_.empty())
      while (at != operations.end() && at->get() != forward_.back()) ++at;
    if (at != operations.end()) ++at;
    for (; at != operations.end(); ++at) read_again(**at, at);
    return found_;
  }

  DroppedValues dropped() {
    find_dropped();
    return {std::move(dropped_), found_.layers};
  }

 private:
  using Position = std::list<std::unique_ptr<Operation>>::iterator;

  void find_layers(const RecomputeOptions& options) {
    std::map<std::string, int> numbers;
    for (const Operation* o : forward_) {
      const std::string layer = layer_of(*o, options.layers);
      if (layer.empty()) continue;
      const int number = numbers.emplace(layer, static_cast<int>(numbers.size())).first->second;
      if (options.most < 0 || number < options.most) layers_[o] = number;
    }
    found_.layers = static_cast<int>(numbers.size());
    if (!numbers.empty() || !options.layers.empty()) return;
    const auto parts = static_cast<size_t>(std::sqrt(static_cast<double>(forward_.size())));
    if (parts < 2) return;
    found_.layers = static_cast<int>(parts);
    for (size_t i = 0; i < forward_.size(); ++i) {
      const int number = static_cast<int>(i * parts / forward_.size());
      if (options.most < 0 || number < options.most) layers_[forward_[i]] = number;
    }
  }

  int layer(const Operation* operation) const {
    const auto it = layers_.find(operation);
    return it == layers_.end() ? -1 : it->second;
  }

  /// Values within a layer: those that the forward pass reads elsewhere are kept.
  void find_dropped() {
    for (const auto& [operation, number] : layers_)
      if (!has_effect(*operation))
        for (const Value* v : operation->results) dropped_.insert(v);
    for (const Operation* reader : forward_)
      ir::for_each_read(*reader, [&](const Value* v) {
        if (v->producer && layer(v->producer) != layer(reader)) dropped_.erase(v);
      });
    for (const Value* v : function_.body.results) dropped_.erase(v);
  }

  /// Copies what the operation reads of dropped values to before it.
  void read_again(Operation& reader, Position before) {
    const auto replace = [&](Value*& v) {
      if (v && dropped_.contains(v)) v = again(v, before);
    };
    for (Value*& v : reader.operands) replace(v);
    for (const auto& region : reader.regions) replace_in(*region, replace);
  }

  template <class Replace>
  void replace_in(ir::Region& region, const Replace& replace) {
    for (const auto& operation : region.operations) {
      for (Value*& v : operation->operands) replace(v);
      for (const auto& nested : operation->regions) replace_in(*nested, replace);
    }
    for (Value*& v : region.results) replace(v);
  }

  Value* again(const Value* value, Position before) {
    if (const auto it = copies_.find(value); it != copies_.end()) return it->second;
    const Operation& producer = *value->producer;
    ir::for_each_read(producer, [&](const Value* v) {
      if (dropped_.contains(v)) again(v, before);
      if (v->constant) copies_[v] = const_cast<Value*>(v);  // the function has it
    });
    ir::Region& body = function_.body;
    ir::clone_operation(function_, body, producer, copies_);
    body.operations.splice(before, body.operations, std::prev(body.operations.end()));
    ++found_.operations;
    return copies_.at(value);
  }

  ir::Function& function_;
  std::vector<const Operation*> forward_;
  std::unordered_map<const Operation*, int> layers_;
  std::unordered_set<const Value*> dropped_;
  ir::Copies copies_;
  Recomputed found_;
};

}  // namespace

DroppedValues dropped_values(ir::Function& function, const RecomputeOptions& options) {
  return Recompute(function, options).dropped();
}

Recomputed recompute(ir::Function& function, const RecomputeOptions& options) {
  return Recompute(function, options).run();
}

}  // namespace paddle::passes
