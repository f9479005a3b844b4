#include "infer/layer_values.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/source_location.h"
#include "ir/module.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::infer {
namespace {

std::string operation_name(const ir::Operation& operation) {
  const std::string layer = parse_origin(operation.location).layer;
  return str(layer, layer.empty() ? "" : ".", operation.op->name());
}

}  // namespace

LayerValues::LayerValues(program::TracedModel model, const std::vector<std::string>& patterns)
    : model_(std::move(model)) {
  ir::Function& f = *model_.function;
  std::map<std::string, int> uses;
  std::vector<std::string> all;
  std::set<std::string> unmatched(patterns.begin(), patterns.end());
  std::vector<std::pair<std::string, ir::Value*>> found;
  for (const auto& operation : f.body.operations)
    for (ir::Value* value : operation->results) {
      const std::string of_operation = operation_name(*operation);
      std::string name = value->name.empty() ? of_operation : value->name;
      if (const int use = ++uses[name]; use > 1) name += str("_", use);
      all.push_back(name);
      bool matches = false;
      for (const std::string& pattern : patterns)
        if (matches_pattern(pattern, name) || matches_pattern(pattern, of_operation)) {
          matches = true;
          unmatched.erase(pattern);
        }
      if (matches) found.emplace_back(name, value);
    }
  if (!unmatched.empty())
    fail(ErrorCode::kUsage, "--dump: no value of the model matches '", *unmatched.begin(), "'",
         did_you_mean(*unmatched.begin(), all), "; --dump '*' writes all ", all.size());
  // New versions of states are not kept: each batch begins with those of the file.
  for (size_t i = f.outputs.size(); i-- > 0;) {
    if (f.outputs[i].kind == ir::PortKind::kValue) continue;
    f.outputs.erase(f.outputs.begin() + static_cast<ptrdiff_t>(i));
    f.body.results.erase(f.body.results.begin() + static_cast<ptrdiff_t>(i));
  }
  for (size_t i = 0; i < f.outputs.size(); ++i) {
    const ir::Operation* const producer = f.body.results[i]->producer;
    names_.push_back(f.outputs[i].name);
    operations_.push_back(producer ? operation_name(*producer) : "");
  }
  for (const auto& [name, value] : found) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) continue;
    names_.push_back(name);
    operations_.push_back(operation_name(*value->producer));
    f.add_output({ir::PortKind::kValue, name}, value);
  }
  for (const ir::Port& port : f.inputs)
    arguments_.push_back(port.kind == ir::PortKind::kValue    ? Array()
                         : port.kind == ir::PortKind::kRandom ? Array::zeros(DType::kU64, {2})
                                                              : model_.weight(port.name));
  executable_ = runtime::compile(model_.function, {});
}

std::vector<Array> LayerValues::run(const std::vector<Array>& inputs) {
  std::vector<Array> arguments = arguments_;
  size_t next = 0;
  for (size_t i = 0; i < arguments.size(); ++i)
    arguments[i] = model_.function->inputs[i].kind == ir::PortKind::kValue
                       ? inputs.at(next++).contiguous()
                       : arguments[i].contiguous();
  return executable_->run(arguments);
}

}  // namespace paddle::infer
