#include "plugin/pass_adapter.h"

#include <algorithm>
#include <map>

#include "compiler/passes/passes.h"
#include "ir/constants.h"
#include "ops/core/access.h"
#include "plugin/frame.h"
#include "plugin/host.h"

namespace paddle::plugin {
namespace {

/// Constants of a text that is read back in the same call.
class Constants final : public ir::ConstantStore {
 public:
  /// As in the texts of `--dump-ir`.
  static constexpr int64_t kMaxLength = 1 << 10;

  std::string put(const Array& array) override {
    const std::string name = str("constant", arrays_.size());
    arrays_.emplace(name, array);
    return name;
  }
  Array get(const std::string& name) const override {
    const auto found = arrays_.find(name);
    if (found == arrays_.end())
      fail(ErrorCode::kModel, "there is no constant '", name, "' in the text that the pass got");
    return found->second;
  }

 private:
  std::map<std::string, Array> arrays_;
};

/// The accesses that operations of the function have: the result may have the same.
uint32_t accesses_of(const ir::Function& function) {
  uint32_t out = 0;
  ir::for_each_operation(function.body,
                         [&](const ir::Operation& o) { out |= o.op->def->traits & kAllAccesses; });
  return out;
}

/// The operations with effects, and those in regions, in order.
std::vector<std::string> effects_of(const ir::Function& function) {
  std::vector<std::string> out;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    if (o.op->has(kEffect)) out.emplace_back(o.op->name());
  });
  return out;
}

std::string text(const ir::Port& port, const TensorType& type) {
  constexpr const char* kKinds[] = {"value", "parameter", "state", "random"};
  return str(kKinds[static_cast<size_t>(port.kind)], " '", port.name, "' : ", type);
}

std::vector<std::string> inputs_of(const ir::Function& f) {
  std::vector<std::string> out;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    out.push_back(text(f.inputs[i], f.body.arguments[i]->type));
  return out;
}
std::vector<std::string> results_of(const ir::Function& f) {
  std::vector<std::string> out;
  for (size_t i = 0; i < f.outputs.size(); ++i)
    out.push_back(text(f.outputs[i], f.body.results[i]->type));
  return out;
}

/// kModel with the first difference of two lists of inputs, results or effects.
void expect_same(const char* what, const std::vector<std::string>& before,
                 const std::vector<std::string>& after) {
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const std::string was = i < before.size() ? before[i] : "nothing",
                      is = i < after.size() ? after[i] : "nothing";
    if (was != is) fail(ErrorCode::kModel, what, " ", i, " was ", was, " and is ", is);
  }
}

/// The place of an operation in a text: they are there in the order of for_each_operation.
SourceLocation place_of(const std::string& text, const ir::Function& function, size_t index,
                        const std::string& file) {
  size_t at = text.find('{', text.find("func ")), number = 0;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    if (number++ > index || at == std::string::npos) return;
    at = text.find(std::string(o.op->name()) + "(", at + 1);
  });
  if (at == std::string::npos) return {file};
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
  return {file, static_cast<int>(line), static_cast<int>(at - text.rfind('\n', at))};
}

/// The function of a text that a pass has written, checked; kModel with the place in the text.
std::shared_ptr<ir::Function> read_result(const std::string& text, const std::string& pass,
                                          const ir::Function& before, const Constants& constants) {
  const ir::Module module = ir::parse(text, pass, constants, accesses_of(before));
  if (module.functions.size() != 1)
    fail(ErrorCode::kModel, "the module has ", module.functions.size(), " functions, expected one");
  std::shared_ptr<ir::Function> out = module.functions[0];
  try {
    ir::verify(module);
  } catch (const ir::InvalidOperation& e) {
    throw Error(ErrorCode::kModel, e.message(), place_of(text, *out, e.index, pass));
  }
  expect_same("input", inputs_of(before), inputs_of(*out));
  expect_same("result", results_of(before), results_of(*out));
  expect_same("effect", effects_of(before), effects_of(*out));
  return out;
}

}  // namespace

void run_plugin_pass(const PassContext& context, ir::Function& function) {
  Constants constants;
  const std::string before = ir::print_module(function, "module", constants, Constants::kMaxLength);
  paddle_call call;
  paddle_status status = PADDLE_INTERNAL;
  {
    const Frame frame(context.plugin.c_str(), "run", context.name.c_str(), function.name.c_str());
    status = call_plugin(frame, context.plugin.c_str(), context.name.c_str(),
                         [&] { return context.pass->run(&call, before.c_str()); });
  }
  try {
    if (status != PADDLE_OK) throw_status(call, status, "the pass " + context.name);
    if (call.too_long)
      fail(ErrorCode::kModel, "the pass ", context.name, ": wrote too long a text");
  } catch (const Error& e) {
    throw compiler::PassError(e);
  }
  if (call.text.empty()) return;
  try {
    const std::shared_ptr<ir::Function> result =
        read_result(call.text, context.name, function, constants);
    result->name = function.name;
    result->target = function.target;
    result->constraints = function.constraints;
    function.swap(*result);
  } catch (const Error& e) {
    SourceLocation place = e.location();
    if (place.file.empty()) place.file = context.name;
    Error error(ErrorCode::kModel,
                str("the pass ", context.name, " of ", context.plugin,
                    " gave no valid module: ", e.message()),
                place);
    for (const std::string& line : e.notes()) error.note(line);
    throw compiler::PassError(error, call.text);
  }
}

compiler::AddedPass added_pass(const PassContext& context) {
  const paddle_pass& pass = *context.pass;
  return {.name = context.name,
          .stage = static_cast<compiler::Stage>(pass.stage),
          .after = pass.after ? pass.after : "",
          .keeps_bits = (pass.flags & PADDLE_PASS_KEEPS_BITS) != 0,
          .for_training = (pass.flags & PADDLE_PASS_TRAINING) != 0,
          .run = [&context](ir::Function& f, const compiler::CompileOptions&) {
            run_plugin_pass(context, f);
          }};
}

}  // namespace paddle::plugin
