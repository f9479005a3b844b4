// Layers: operations called without their weights. The schema declares a layer's signature and its
// parameters with sizes and initializers (layer_weights.h).
#include <algorithm>
#include <map>
#include <mutex>

#include "lang/eval/evaluation.h"
#include "lang/layers/initializer_words.h"
#include "lang/layers/layer_call.h"
#include "lang/syntax/parser.h"

namespace paddle::lang {

namespace {

/// A constant of a layer's signature.
Value constant(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kInteger:
      return Value(expr.integer);
    case ExprKind::kReal:
      return Value(expr.real);
    case ExprKind::kString:
      return Value(expr.text);
    case ExprKind::kBool:
      return Value(expr.integer != 0);
    case ExprKind::kList: {
      ValueList items;
      for (const ExprPtr& child : expr.children) items.push_back(constant(*child));
      return Value::list(std::move(items));
    }
    case ExprKind::kUnary: {
      const Value value = constant(*expr.children[0]);
      return value.is<double>() ? Value(-value.number()) : Value(-value.integer());
    }
    default:
      return {};
  }
}

bool op_has(const Op& op, std::string_view name) {
  return op.operand_index(name) >= 0 || op.attr_index(name) >= 0;
}

}  // namespace

const LayerForm* layer_form(const Op& op) {
  static std::mutex mutex;  // ranks of a simulated run trace at the same time
  const std::lock_guard lock(mutex);
  static std::map<const Op*, LayerForm> forms;
  const auto known = forms.find(&op);
  if (known != forms.end()) return &known->second;
  const std::string_view declared = op.def->layer_signature ? op.def->layer_signature : "";
  if (declared.empty()) return nullptr;
  Node header = config::make_scalar("layer" + std::string(declared), nullptr);
  const Signature signature = parse_signature(header, true);
  LayerForm form;
  for (const Parameter& p : signature.parameters) {
    LayerForm::Item item{p.name, p.fallback != nullptr, {}};
    if (p.fallback) item.fallback = constant(*p.fallback);
    form.items.push_back(std::move(item));
  }
  return &forms.emplace(&op, std::move(form)).first->second;
}

// --- LayerCall ---

const Value* LayerCall::find(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() || found->second.is_none() ? nullptr : &found->second;
}

Tensor LayerCall::tensor(const std::string& key) {
  const Value* value = find(key);
  if (!value) fail(ErrorCode::kConfig, op.name(), ": '", key, "' is missing");
  return evaluation.operations().to_tensor(*value, site.where, op.name());
}

int64_t LayerCall::size(const std::string& key) const {
  const Value* value = find(key);
  if (!value) fail(ErrorCode::kConfig, op.name(), ": '", key, "' is missing");
  if (value->is_dim()) {
    fail(ErrorCode::kConfig, op.name(), ": ", key, " is the dim '", *value->get<Dim>(),
         "', but a parameter's size must be a number");
  }
  if (!value->is_integer() || value->is<bool>()) {
    fail(ErrorCode::kConfig, op.name(), ": ", key, " must be an integer, found ",
         value->describe());
  }
  if (value->integer() < 1)
    fail(ErrorCode::kConfig, op.name(), ": ", key, " must be at least 1, found ", value->integer());
  return value->integer();
}

int64_t LayerCall::known(const Dim& dim, std::string_view what) const {
  if (const auto number = dim.constant()) return *number;
  fail(ErrorCode::kConfig, op.name(), ": ", what, " is the dim '", dim,
       "', but a parameter's size must be a number");
}

Dims LayerCall::window(const std::string& key, size_t axes) const {
  const Value* value = find(key);
  if (!value) fail(ErrorCode::kConfig, op.name(), ": '", key, "' is missing");
  Dims out;
  const auto add = [&](const Value& item) {
    if (!item.is_integer() || item.integer() < 1) {
      fail(ErrorCode::kConfig, op.name(), ": ", key, " must be at least 1, found ",
           item.describe());
    }
    out.push_back(item.integer());
  };
  if (const ValueList* items = value->items()) {
    if (items->size() != axes) {
      fail(ErrorCode::kConfig, op.name(), ": ", key, " needs ", axes, " numbers, found ",
           items->size());
    }
    for (const Value& item : *items) add(item);
  } else {
    for (size_t i = 0; i < axes; ++i) add(*value);
  }
  return out;
}

Dims LayerCall::sizes(const std::string& key) const {
  const Value* value = find(key);
  if (!value) fail(ErrorCode::kConfig, op.name(), ": '", key, "' is missing");
  const ValueList single{*value};
  Dims out;
  for (const Value& item : value->items() ? *value->items() : single) {
    if (item.is_dim()) known(*item.get<Dim>(), key);
    if (!item.is_integer() || item.integer() < 1) {
      fail(ErrorCode::kConfig, op.name(), ": ", key, ": expected sizes, found ", item.describe());
    }
    out.push_back(item.integer());
  }
  return out;
}

void LayerCall::check_required() const {
  for (const LayerForm::Item& item : form.items) {
    if (!item.has_fallback && op_has(op, item.name) && !values.count(item.name)) {
      fail(ErrorCode::kConfig, op.name(), ": '", item.name, "' is missing");
    }
  }
}

const std::string& LayerCall::path() {
  if (path_.empty())
    path_ = evaluation.variables().layer_path(std::string(op.name()), naming, site, frame);
  return path_;
}

bool LayerCall::wants(const std::string& key, bool by_default) const {
  const auto found = values.find(key);
  if (found == values.end()) return by_default;
  const Value& value = found->second;
  if (value.is_tensor()) return false;
  if (value.is_none()) return false;
  if (value.is<bool>()) return value.integer() != 0;
  fail(ErrorCode::kConfig, op.name(), ": ", key, " is true, false or a tensor, found ",
       value.describe());
}

void LayerCall::make(const std::string& key, const Dims& shape, const Initializer& fallback,
                     const std::string& init_key) {
  Initializer init = fallback;
  if (const Value* given = find(init_key)) init = to_initializer(*given);
  values[key] =
      evaluation.variables().parameter(path() + "." + key, shape, DType::kF32, init, site.where);
}

std::string LayerCall::make_state(const std::string& key, const Dims& shape, double start) {
  const std::string full = path() + "." + key;
  values[key] = evaluation.variables().state(full, shape, DType::kF32, Initializer::constant(start),
                                             StateScope::kModel, site.where);
  return full;
}

// --- binding ---

std::optional<Value> Evaluation::call_layer(const Op& op, Arguments& arguments, const Site& site,
                                            Frame& frame) {
  const LayerForm* form = layer_form(op);
  if (!form) return std::nullopt;
  const bool has_weights = !op.weights().empty();
  LayerCall call{*this, op, site, frame, *form, {}, arguments.places, {}, {}};
  return with_location_scope(site.where, [&]() -> Value {
    return with_argument_location(arguments.places, [&]() -> Value {
      if (arguments.positional.size() > form->items.size()) {
        fail(ErrorCode::kConfig, op.name(), ": at most ", form->items.size(), " arguments, found ",
             arguments.positional.size(), " (weights are given by name)");
      }
      for (size_t i = 0; i < arguments.positional.size(); ++i) {
        call.values[form->items[i].name] = arguments.positional[i];
      }
      for (const char* word : {"name", "share"}) {
        if (form->has(word) || op_has(op, word)) continue;
        auto value = arguments.take(word);
        if (!value) continue;
        if (!has_weights) {
          fail(ErrorCode::kConfig, op.name(), ": '", word,
               "' names parameters, and this operation has none");
        }
        call.naming.named.emplace_back(word, *value);
      }
      for (auto& [name, value] : arguments.named) {
        const bool init =
            has_weights && name.ends_with("_init") && op_has(op, name.substr(0, name.size() - 5));
        if (!form->has(name) && !op_has(op, name) && !init) {
          std::vector<std::string> names = form->names();
          for (const OperandDef& operand : op.operands()) names.emplace_back(operand.name);
          for (const AttrDef& attr : op.attrs()) {
            if (!attr.hidden) names.emplace_back(attr.name);
          }
          fail(ErrorCode::kConfig, op.name(), ": unknown argument '", name, "'",
               did_you_mean(name, names));
        }
        if (!call.values.emplace(name, std::move(value)).second) {
          fail(ErrorCode::kConfig, op.name(), ": '", name, "' is given twice");
        }
      }
      const bool mode = op_has(op, "training") && !call.values.count("training");
      if (mode) call.values["training"] = Value(options().training);
      call.weight_given = call.find("weight") && call.find("weight")->is_tensor();
      if (has_weights && !call.find("x") && form->has("x")) {
        fail(ErrorCode::kConfig, op.name(), ": 'x' is missing");
      }
      for (const LayerForm::Item& item : form->items) {
        // A flag that makes a weight stays open: with a given weight its default is another.
        const bool flag = has_weights && op.operand_index(item.name) >= 0;
        if (item.has_fallback && !flag) call.values.emplace(item.name, item.fallback);
      }
      if (has_weights) return call_with_weights(call);
      call.check_required();
      return call.run();
    });
  });
}

Value LayerCall::run(Tensors* all) {
  Arguments bound;
  bound.places = places;
  for (auto& [name, value] : values) {
    if (!op_has(op, name)) continue;
    // A flag that asked for no weight.
    if (op.operand_index(name) >= 0 && value.is<bool>() && !op.weights().empty()) continue;
    bound.named.emplace_back(name, value);
  }
  if (path_.empty()) return evaluation.operations().invoke(op, bound, site.where, all);
  const TraceContext::LayerScope layer(evaluation, path_);
  return evaluation.operations().invoke(op, bound, site.where, all);
}

}  // namespace paddle::lang
