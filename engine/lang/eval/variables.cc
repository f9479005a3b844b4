// Paths of layers, parameters and states. A path is the caller's path and the callee's name with
// the number of its occurrence in the text, then the iterations of the enclosing loops.
#include "lang/eval/variables.h"

#include <algorithm>

#include "lang/eval/shape_interpreter.h"
#include "lang/layers/initializer_words.h"
#include "lang/layers/patterns.h"

namespace paddle::lang {
namespace {

std::string joined(const std::string& path, const std::string& part) {
  return path.empty() ? part : path + "." + part;
}

std::string with_iterations(std::string path, const std::vector<int64_t>& iterations) {
  for (const int64_t i : iterations) path += "." + std::to_string(i);
  return path;
}

std::string literal_path(const std::string& name, const Frame& frame) {
  return with_iterations(joined(frame.path, name), frame.iterations);
}

void check_part(const std::string& part, std::string_view what) {
  const bool ok =
      !part.empty() && part.size() <= 200 && std::all_of(part.begin(), part.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      });
  if (!ok) {
    fail(ErrorCode::kConfig, what, ": '", part, "' is not a name (letters, digits and '_')");
  }
}

const std::string& text_of(const Value& value, std::string_view what) {
  const auto* text = value.get<std::string>();
  if (!text) fail(ErrorCode::kConfig, what, ": expected text, found ", value.describe());
  return *text;
}

Dims shape_of(const Value& value, std::string_view what) {
  Dims out;
  const auto add = [&](const Value& item) {
    if (item.is_dim()) {
      fail(ErrorCode::kConfig, what, ": a size is the dim '", *item.get<Dim>(),
           "', but a parameter's size must be a number");
    }
    if (!item.is_integer()) {
      fail(ErrorCode::kConfig, what, ": a size must be an integer, found ", item.describe());
    }
    if (item.integer() < 0) fail(ErrorCode::kConfig, what, ": a size is ", item.integer());
    out.push_back(item.integer());
  };
  if (const ValueList* items = value.items()) {
    if (items->size() > 64) fail(ErrorCode::kConfig, what, ": more than 64 axes");
    for (const Value& item : *items) add(item);
  } else {
    add(value);
  }
  element_count(std::span<const int64_t>(out));
  return out;
}

DType dtype_of_argument(const std::optional<Value>& value, std::string_view what) {
  if (!value || value->is_none()) return DType::kF32;
  const std::string& name = text_of(*value, what);
  const auto dtype = parse_dtype(name);
  if (!dtype)
    fail(ErrorCode::kConfig, what, ": '", name, "' is not a dtype",
         did_you_mean(name, dtype_names()));
  return *dtype;
}

}  // namespace

int Variables::occurrence(const std::string& callee, const Site& site, const Frame& frame) {
  const auto& sites = frame.code->sites;
  const auto index = static_cast<size_t>(site.index);
  if (site.index < 0 || index >= sites.size()) return 1;
  // Calls through references count under their targets' names.
  auto& called = called_.try_emplace(frame.code, sites.size()).first->second;
  if (sites[index].callee != callee) called[index].insert(callee);
  const auto means = [&](size_t i) {
    const auto reference = frame.references.find(sites[i].callee);
    if (reference != frame.references.end()) return reference->second.count(callee) > 0;
    return sites[i].callee == callee || called[i].count(callee) > 0;
  };
  int count = 1;
  for (size_t i = 0; i < index; ++i) count += means(i);
  return count;
}

void Variables::claim(const std::string& path, const std::string& callee, bool shared,
                      const Site& site) {
  const auto [entry, fresh] =
      claims_.try_emplace(path, Claim{site.key, callee, shared, site.where});
  if (fresh && context_.is_abstract()) abstract_claims_.push_back(path);
  if (fresh) return;
  const Claim& first = entry->second;
  if (first.shared && shared) {
    if (first.callee != callee) {
      context_.reject(site.where, str("share: '", path, "' is a '", first.callee, "' at ",
                                      first.where.location().text(), " and a '", callee, "' here"));
    }
    return;
  }
  if (first.site == site.key) return;  // the same text, run again
  context_.reject(site.where, str("two different layers are called '", path, "': the first is at ",
                                  first.where.location().text(), " (name= gives another name)"));
}

std::string Variables::layer_path(const std::string& callee, Arguments& arguments, const Site& site,
                                  Frame& frame) {
  const auto name = arguments.take("name");
  const auto share = arguments.take("share");
  const bool named = name && !name->is_none(), shared = share && !share->is_none();
  return context_.with_location_scope(site.where, [&] {
    if (named && shared)
      fail(ErrorCode::kConfig, callee, ": 'name' and 'share' are mutually exclusive");
    std::string path;
    if (shared) {
      const std::string& tag = text_of(*share, callee + ": share");
      check_part(tag, callee + ": share");
      path = joined(frame.path, tag);
    } else {
      std::string part;
      if (named) {
        part = text_of(*name, callee + ": name");
        check_part(part, callee + ": name");
      } else {
        const int count = occurrence(callee, site, frame);
        part = count > 1 ? str(callee, "_", count) : callee;
      }
      path = with_iterations(joined(frame.path, part), frame.iterations);
    }
    claim(path, callee, shared, site);
    return path;
  });
}

Tensor Variables::parameter(const std::string& path, const Dims& shape, DType dtype,
                            const Initializer& init, const SourcePosition& where) {
  return context_.with_location_scope(where, [&] {
    const int64_t elements = element_count(std::span<const int64_t>(shape));
    if (init.kind == Initializer::Kind::kAssign &&
        static_cast<int64_t>(init.values.size()) != elements) {
      fail(ErrorCode::kConfig, "assign: ", init.values.size(), " values for the ", elements,
           " elements of '", path, "'");
    }
    check_pattern(init, path, shape);
    const TensorType type{context_.options().store->stored_dtype(path, dtype), to_shape(shape)};
    const auto known = parameters_.find(path);
    if (known != parameters_.end() && !same_type(known->second.type(), type)) {
      fail(ErrorCode::kConfig, "the parameter '", path, "' is ", known->second.type(),
           " elsewhere, here it is ", type);
    }
    if (context_.is_abstract()) {
      if (known != parameters_.end()) return known->second.fresh_cell();
      abstract_parameters_.push_back(path);
      return parameters_[path] = abstract_tensor(type);
    }
    Tensor tensor;
    try {
      tensor = context_.options().store->parameter(path, shape, dtype, init);
    } catch (const Error& error) {
      // A path that exists in another size is the text's fault, wherever it is detected.
      if (error.code() != ErrorCode::kModel || !parameters_.count(path)) throw;
      fail(ErrorCode::kConfig, error.message());
    }
    parameters_[path] = tensor;
    used_.emplace_back(path, tensor.type());
    return tensor;
  });
}

Value Variables::state(const std::string& path, const Dims& shape, DType dtype,
                       const Initializer& init, StateScope scope, const SourcePosition& where) {
  return context_.with_location_scope(where, [&] {
    auto slot = states_.find(path);
    if (slot == states_.end()) {
      const Tensor first =
          context_.is_abstract()
              ? abstract_tensor({context_.options().store->stored_dtype(dtype), to_shape(shape)})
              : context_.options().store->state(path, shape, dtype, init, scope);
      slot = states_.emplace(path, StateSlot{first, scope, init, dtype}).first;
    } else {
      if (slot->second.scope != scope) {
        fail(ErrorCode::kConfig, "the state '", path, "' has another scope elsewhere");
      }
      const TensorType& type = slot->second.current.type();
      if (slot->second.declared != dtype || !same_shape(type.shape, to_shape(shape))) {
        fail(ErrorCode::kConfig, "the state '", path, "' is ", type, " elsewhere, here it is ",
             TensorType{dtype, to_shape(shape)});
      }
    }
    return Value::of_state(slot->second.current.fresh_cell(), path);
  });
}

void Variables::update_state(const std::string& path, const Tensor& value,
                             const SourcePosition& where) {
  StateSlot& slot = states_.at(path);
  const TensorType& type = slot.current.type();
  Tensor next = value;
  if (next.dtype() != type.dtype || next.type().weak) {
    next = operations_.op("cast", {next, Value(text(type.dtype))}, where).tensor();
  }
  if (!same_shape(next.shape(), type.shape)) {
    context_.reject(
        where, str("update: the state '", path, "' is ", type, ", the new value ", value.type()));
  }
  slot.current = next;
  ++slot.writes;
  publish({path});
}

void Variables::publish(const std::set<std::string>& paths) {
  if (context_.is_abstract() || context_.in_region()) return;
  for (const std::string& path : paths)
    context_.options().store->update(path, states_.at(path).current);
}

void Variables::open_states(const std::set<std::string>& paths, const States& met,
                            const SourcePosition& where) {
  for (const std::string& path : paths) {
    const StateSlot& slot = met.at(path);
    state(path, concrete(slot.current.shape()), slot.declared, slot.init, slot.scope, where);
  }
}

Value Variables::call_param(Arguments& arguments, const SourcePosition& where, Frame& frame) {
  return context_.with_location_scope(where, [&] {
    const auto bound = arguments.bind("param", {"name", "shape", "init", "dtype"});
    if (!bound[0] || !bound[1]) fail(ErrorCode::kConfig, "param needs a name and a shape");
    const std::string& name = text_of(*bound[0], "param: name");
    check_part(name, "param: name");
    const std::string path = literal_path(name, frame);
    const Dims shape = shape_of(*bound[1], "param '" + name + "'");
    const DType dtype = dtype_of_argument(bound[3], "param: dtype");
    const Initializer init = bound[2] && !bound[2]->is_none()
                                 ? to_initializer(*bound[2])
                                 : Initializer{Initializer::Kind::kXavierUniform, 0, 0, {}};
    return Value(parameter(path, shape, dtype, init, where));
  });
}

Value Variables::call_state(Arguments& arguments, const SourcePosition& where, Frame& frame) {
  return context_.with_location_scope(where, [&] {
    const auto bound = arguments.bind("state", {"name", "shape", "init", "scope", "dtype"});
    if (!bound[0] || !bound[1]) fail(ErrorCode::kConfig, "state needs a name and a shape");
    const std::string& name = text_of(*bound[0], "state: name");
    check_part(name, "state: name");
    StateScope scope = StateScope::kModel;
    if (bound[3] && !bound[3]->is_none()) {
      const std::vector<std::string> words = {"model", "sequence"};
      const std::string& word = text_of(*bound[3], "state: scope");
      if (word != "model" && word != "sequence") {
        fail(ErrorCode::kConfig, "state: scope is \"model\" or \"sequence\", found '", word, "'",
             did_you_mean(word, words));
      }
      if (word == "sequence") scope = StateScope::kSequence;
    }
    const Initializer init =
        bound[2] && !bound[2]->is_none() ? to_initializer(*bound[2]) : Initializer::constant(0);
    return state(literal_path(name, frame), shape_of(*bound[1], "state '" + name + "'"),
                 dtype_of_argument(bound[4], "state: dtype"), init, scope, where);
  });
}

Value Variables::call_update(Arguments& arguments, const SourcePosition& where) {
  return context_.with_location_scope(where, [&]() -> Value {
    const auto bound = arguments.bind("update", {"state", "value"});
    if (!bound[0] || !bound[1]) fail(ErrorCode::kConfig, "update needs a state and a value");
    const std::string* path = bound[0]->state_path();
    if (!path) fail(ErrorCode::kConfig, "update: the first argument must be what state(…) gave");
    if (states_.at(*path).scope == StateScope::kModel && !context_.options().training) {
      fail(ErrorCode::kConfig, "update: the state '", *path,
           "' of the model cannot change in evaluation (write 'if training:' around it)");
    }
    const Tensor value = operations_.to_tensor(*bound[1], where, "update");
    const std::string target = *path;
    update_state(target, value, where);
    return Value(states_.at(target).current);
  });
}

Value Variables::call_get(Arguments& arguments, const SourcePosition& where) {
  return context_.with_location_scope(where, [&]() -> Value {
    const auto bound = arguments.bind("get", {"path"});
    if (!bound[0]) fail(ErrorCode::kConfig, "get needs a path");
    const std::string& path = text_of(*bound[0], "get");
    const auto found = parameters_.find(path);
    if (found != parameters_.end()) return Value(found->second);
    const auto slot = states_.find(path);
    if (slot != states_.end()) return Value(slot->second.current);
    std::vector<std::string> paths;
    for (const auto& [key, value] : parameters_) paths.push_back(key);
    for (const auto& [key, value] : states_) paths.push_back(key);
    std::sort(paths.begin(), paths.end());
    fail(ErrorCode::kConfig, "get: no parameter '", path, "' was made before this",
         did_you_mean(path, paths));
  });
}

Variables::Rollback::Rollback(Variables& variables)
    : variables_(variables),
      states_(variables.states_),
      parameters_(variables.abstract_parameters_.size()),
      claims_(variables.abstract_claims_.size()),
      used_(variables.used_.size()) {}

Variables::Rollback::~Rollback() {
  variables_.states_ = std::move(states_);
  auto& parameters = variables_.abstract_parameters_;
  for (; parameters.size() > parameters_; parameters.pop_back())
    variables_.parameters_.erase(parameters.back());
  auto& claims = variables_.abstract_claims_;
  for (; claims.size() > claims_; claims.pop_back()) variables_.claims_.erase(claims.back());
  if (variables_.used_.size() > used_) variables_.used_.resize(used_);
}

}  // namespace paddle::lang
