#include "plugin/text_code.h"

#include <algorithm>

#include "lang/eval/derivatives.h"
#include "lang/eval/distributions.h"
#include "lang/eval/evaluator.h"
#include "lang/eval/place_marks.h"
#include "ops/core/call.h"
#include "tensor/random.h"

namespace paddle::plugin {
namespace {

/// Bodies have operands for what a layer would make.
class NoParameters final : public lang::ParameterProvider {
 public:
  Tensor parameter(const std::string&, const Dims&, DType, const lang::Initializer&) override {
    fail(ErrorCode::kUsage, "code of a plug-in cannot make parameters");
  }
  Tensor state(const std::string&, const Dims&, DType, const lang::Initializer&,
               lang::StateScope) override {
    fail(ErrorCode::kUsage, "code of a plug-in cannot make states");
  }
  void update(const std::string&, const Tensor&) override {
    fail(ErrorCode::kUsage, "code of a plug-in cannot make states");
  }
};

}  // namespace

TextCode read_text_code(const config::Node& node, std::string owner, std::string file) {
  config::Diagnostics diagnostics;
  TextCode out{std::move(owner), std::move(file), lang::read_code(node, diagnostics)};
  diagnostics.raise();
  for (const lang::CallSite& site : out.code.sites)
    if (const Op* const op = find_op(site.callee); op && op->has(kRandom))
      throw Error(ErrorCode::kConfig,
                  str("'", site.callee, "' is random, and a body must give the same each time"),
                  site.where.location());
  return out;
}

void check_code_names(const std::vector<StatedCode>& codes,
                      const std::vector<std::string>& own_operations) {
  const lang::KnownNames known{
      [&](const std::string& name) {
        return find_op(name) || std::ranges::find(own_operations, name) != own_operations.end() ||
               lang::is_distribution_word(name) || lang::is_derivative_word(name);
      },
      [&] {
        std::vector<std::string> names = op_names();
        names.insert(names.end(), own_operations.begin(), own_operations.end());
        return names;
      }};
  config::Diagnostics diagnostics;
  for (const StatedCode& each : codes) {
    lang::Program program;  // of one block, whose arguments are the names
    lang::Block& block = *program.blocks.emplace_back(std::make_unique<lang::Block>());
    block.code = lang::read_code(each.node, diagnostics);
    for (const std::string& name : each.names)
      block.signature.parameters.push_back({.name = name, .where = {}, .fallback = nullptr});
    lang::check_names(program, known, diagnostics);
  }
  diagnostics.raise();
}

lang::Value run_text(std::string_view owner, const std::string& file, const lang::Code& code,
                     const lang::NamedValues& names, std::map<std::string, lang::Value>* assigned) {
  lang::EvaluationOptions options;
  NoParameters store;
  options.store = &store;
  const lang::KeepMarksScope marks;
  const RandomScope no_random{Tensor()};  // code is evaluated more than once
  try {
    return lang::run_code(code, names, options, assigned);
  } catch (const Error& e) {
    if (e.location().file != file) throw;
    const ErrorCode code_of_call = e.code() == ErrorCode::kConfig ? ErrorCode::kUsage : e.code();
    Error error(code_of_call, str(owner, ": ", e.message()));
    error.note("  in its schema at " + e.location().text());
    throw error;
  }
}

lang::Value run_text(const TextCode& code, const lang::NamedValues& names,
                     std::map<std::string, lang::Value>* assigned) {
  return run_text(code.owner, code.file, code.code, names, assigned);
}

Tensor tensor_result(std::string_view owner, const lang::Value& value) {
  if (value.is_tensor()) return value.tensor();
  fail(ErrorCode::kUsage, owner, ": its text gives ", value.describe(), ", not a tensor");
}

Tensor tensor_or_number(std::string_view owner, const lang::Value& value) {
  if (value.is_number()) return Tensor(Array::from<double>({value.number()}, {}));
  return tensor_result(owner, value);
}

lang::NamedValues values_of_keys(const std::vector<KindKey>& keys, const config::Section& s) {
  using Type = KindKey::Type;
  lang::NamedValues out;
  for (const KindKey& key : keys) {
    lang::Value value;
    if (s.has(key.name))
      value = key.type == Type::kInteger   ? lang::Value(s.integer(key.name))
              : key.type == Type::kReal    ? lang::Value(s.real(key.name))
              : key.type == Type::kBoolean ? lang::Value(s.boolean(key.name))
                                           : lang::Value(s.text(key.name));
    out.emplace_back(key.name, std::move(value));
  }
  return out;
}

}  // namespace paddle::plugin
