#include "lang/eval/evaluation.h"

#include <algorithm>

#include "lang/eval/assigned_values.h"
#include "lang/syntax/lexer.h"

namespace paddle::lang {

const Value* Arguments::find(std::string_view name) const {
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<Value> Arguments::take(std::string_view name) {
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i].first != name) continue;
    Value value = std::move(named[i].second);
    named.erase(named.begin() + static_cast<std::ptrdiff_t>(i));
    return value;
  }
  return std::nullopt;
}

std::vector<std::optional<Value>> Arguments::bind(std::string_view callee,
                                                  const std::vector<std::string>& names) const {
  std::vector<std::optional<Value>> out(names.size());
  if (positional.size() > names.size()) {
    fail(ErrorCode::kConfig, callee, ": at most ", names.size(), " arguments, found ",
         positional.size());
  }
  for (size_t i = 0; i < positional.size(); ++i) out[i] = positional[i];
  for (const auto& [key, value] : named) {
    const auto at = std::find(names.begin(), names.end(), key);
    if (at == names.end()) {
      fail(ErrorCode::kConfig, callee, ": unknown argument '", key, "'", did_you_mean(key, names));
    }
    auto& slot = out[static_cast<size_t>(at - names.begin())];
    if (slot) fail(ErrorCode::kConfig, callee, ": '", key, "' is given twice");
    slot = value;
  }
  return out;
}

Evaluation::Evaluation(const Program* program, const EvaluationOptions& options)
    : TraceContext(options), program_(program) {}

std::optional<Dim> Evaluation::bound_dim(const std::string& name) const {
  const auto found = dims_.find(name);
  if (found == dims_.end()) return std::nullopt;
  return found->second;
}

void Evaluation::record(CallRecord record) {
  if (!options().observer || is_abstract()) return;
  record.depth = static_cast<int>(open_blocks_.size());
  options().observer(record);
}

Frame Evaluation::make_frame(const Code& code, const std::string& file) {
  Frame frame;
  frame.code = &code;
  frame.file = file;
  const auto [entry, fresh] = bound_names_.try_emplace(&code);
  if (fresh) {
    auto& names = entry->second;
    visit_bound_names(code.statements,
                      [&](const std::string& name, const SourcePosition&) { names.insert(name); });
    for (const ChainItem& item : code.chain) {
      for (const Name& name : item.as) names.insert(name.text);
    }
  }
  frame.bound = &entry->second;
  return frame;
}

Value Evaluation::evaluate_name(const Expr& name, Frame& frame) {
  const auto local = frame.locals.find(name.text);
  if (local != frame.locals.end()) return local->second;
  if (frame.bound && frame.bound->count(name.text)) {
    const auto reason = frame.unavailable.find(name.text);
    reject(name.where, reason != frame.unavailable.end()
                           ? reason->second
                           : str("'", name.text, "' is read before it is assigned"));
  }
  if (program_ && frame.sees_program) {
    if (const Param* found = program_->find_param(name.text)) return param(*found, name.where);
    const auto dim = dims_.find(name.text);
    if (dim != dims_.end()) return Value(dim->second);
    if (program_->is_dim(name.text)) {
      reject(name.where, str("the dim '", name.text, "' does not occur in this function's inputs"));
    }
  }
  if (name.text == "training") return Value(options().training);
  if (const auto callable = find_callable(name.text, frame)) return Value(*callable);
  unknown_name(name, frame);
}

void Evaluation::unknown_name(const Expr& name, const Frame& frame) const {
  std::vector<std::string> names;
  for (const auto& [key, value] : frame.locals) names.push_back(key);
  if (program_) {
    for (const Param& p : program_->params) names.push_back(p.name.text);
    names.insert(names.end(), program_->dims.begin(), program_->dims.end());
    for (const auto& block : program_->blocks) names.push_back(block->signature.name);
  }
  std::sort(names.begin(), names.end());
  std::string near = nearest(name.text, names);
  if (near.empty() && name.text.size() > 2) near = nearest(name.text, op_names());
  reject(name.where, str("unknown name '", name.text, "' (",
                         near.empty() ? "" : "did you mean '" + near + "'? ",
                         "text needs quotes: \"", name.text, "\")"));
}

Value Evaluation::param(const Param& wanted, const SourcePosition& where) {
  const std::string& name = wanted.name.text;
  const auto known = params_.find(name);
  if (known != params_.end()) return known->second;
  if (!open_params_.insert(name).second) {
    reject(where, str("the param '", name, "' is defined by itself"));
  }
  static const Code kNoCode;
  Frame frame = make_frame(kNoCode, program_->file);
  Value value = evaluate_yaml(wanted.value, frame, true);
  open_params_.erase(name);
  params_[name] = value;
  return value;
}

}  // namespace paddle::lang
