// Calls: what a callee's name means, arguments, blocks and methods.
#include <algorithm>

#include "lang/eval/derivatives.h"
#include "lang/eval/distributions.h"
#include "lang/eval/evaluation.h"
#include "lang/layers/initializer_words.h"

namespace paddle::lang {
namespace {

/// `text.lower()`, `text.upper()` and `text.split(separator)`. The letters are those of ASCII; the
/// bytes of others stay.
Value text_method(const std::string& text, const std::string& name, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (!arguments.named.empty())
    fail(ErrorCode::kConfig, name, " has no argument '", arguments.named[0].first, "'");
  if (name == "lower" || name == "upper") {
    if (!args.empty()) fail(ErrorCode::kConfig, name, " takes no arguments, found ", args.size());
    std::string out = text;
    const char first = name == "lower" ? 'A' : 'a';
    for (char& ch : out)
      if (ch >= first && ch < first + 26) ch = static_cast<char>(ch ^ 0x20);
    return out;
  }
  if (name == "split") {
    const std::string* separator = args.size() == 1 ? args[0].get<std::string>() : nullptr;
    if (!args.empty() && (!separator || separator->empty()))
      fail(ErrorCode::kConfig, "split takes a separator that is a text, or nothing");
    ValueList out;
    const auto add = [&](std::string part) {
      if (out.size() >= kMaxListItems) fail(ErrorCode::kConfig, "a list of over a million");
      out.emplace_back(std::move(part));
    };
    constexpr std::string_view kSpace = " \t\n\r";
    if (separator) {
      size_t begin = 0;
      for (size_t end; (end = text.find(*separator, begin)) != std::string::npos;
           begin = end + separator->size())
        add(text.substr(begin, end - begin));
      add(text.substr(begin));
    } else {
      for (size_t begin = text.find_first_not_of(kSpace); begin != std::string::npos;) {
        const size_t end = text.find_first_of(kSpace, begin);
        add(text.substr(begin, end - begin));
        begin = end == std::string::npos ? end : text.find_first_not_of(kSpace, end);
      }
    }
    return Value::list(std::move(out));
  }
  const std::vector<std::string> known = {"lower", "split", "upper"};
  fail(ErrorCode::kConfig, "a text has no '", name, "'", did_you_mean(name, known));
}

}  // namespace

std::optional<Callable> Evaluation::find_callable(const std::string& name,
                                                  const Frame& frame) const {
  const auto host = options().functions.find(name);
  if (host != options().functions.end()) return Callable{name, nullptr, nullptr, &host->second};
  const Op* op = find_op(name);
  if (program_ && frame.sees_program) {
    const Block* block = program_->find_block(name, frame.file);
    // A block named like an operation wins in only its own file.
    if (block && (!op || block->file == frame.file)) return Callable{name, nullptr, block, nullptr};
  }
  if (is_builtin(name)) return Callable{name, nullptr, nullptr, nullptr};
  if (op) return Callable{std::string(op->name()), op, nullptr, nullptr};
  if (is_distribution_word(name) || is_derivative_word(name))
    return Callable{name, nullptr, nullptr, nullptr};
  return std::nullopt;
}

Callable Evaluation::resolve_callee(const std::string& name, const SourcePosition& where,
                                    const Frame& frame) const {
  const auto local = frame.locals.find(name);
  const Value* value = local != frame.locals.end() ? &local->second : nullptr;
  if (value) {
    if (const auto* reference = value->get<Callable>()) return *reference;
  }
  Value from_params;
  if (!value && program_ && frame.sees_program) {
    if (const Param* found = program_->find_param(name)) {
      from_params = const_cast<Evaluation*>(this)->param(*found, where);
      if (const auto* reference = from_params.get<Callable>()) return *reference;
    }
  }
  if (const auto callable = find_callable(name, frame)) return *callable;
  if (!value && !from_params.is_none()) value = &from_params;
  if (value) reject(where, str("'", name, "' is ", value->describe(), ", which cannot be called"));
  std::vector<std::string> names = op_names();
  for (const std::string_view builtin : builtin_names()) names.emplace_back(builtin);
  for (std::string& word : distribution_words()) names.push_back(std::move(word));
  for (std::string& word : derivative_words()) names.push_back(std::move(word));
  if (program_) {
    for (const auto& block : program_->blocks) names.push_back(block->signature.name);
  }
  reject(where, str("unknown operation or block '", name, "'", did_you_mean(name, names)));
}

std::optional<Callable> Evaluation::plugin_operation(const Expr& callee, const Frame& frame) const {
  const Expr& head = *callee.children[0];
  if (head.kind != ExprKind::kName || frame.locals.count(head.text) ||
      (frame.bound && frame.bound->count(head.text)) ||
      (program_ && frame.sees_program &&
       (program_->find_param(head.text) || dims_.count(head.text))))
    return std::nullopt;
  const std::string name = head.text + "." + callee.text;
  const Op* const op = find_op(name);
  if (!op && find_provider(head.text))
    reject(callee.where, str("unknown operation '", name, "'", did_you_mean(name, op_names())));
  if (!op) return std::nullopt;
  return Callable{std::string(op->name()), op, nullptr, nullptr};
}

Arguments Evaluation::evaluate_arguments(const Expr& call, Frame& frame, size_t initializer_at) {
  Arguments out;
  for (const Argument& argument : call.arguments) {
    if (!argument.name.empty()) out.places[argument.name] = argument.where;
    if (argument.name.empty() && out.positional.size() == initializer_at) {
      out.positional.push_back(evaluate_initializer(*argument.value, frame));
    } else if (argument.name.empty()) {
      out.positional.push_back(evaluate(*argument.value, frame));
    } else if (argument.name == "init" || argument.name.ends_with("_init")) {
      out.named.emplace_back(argument.name, evaluate_initializer(*argument.value, frame));
    } else {
      out.named.emplace_back(argument.name, evaluate(*argument.value, frame));
    }
  }
  return out;
}

Value Evaluation::evaluate_initializer(const Expr& expr, Frame& frame) {
  const bool called = expr.kind == ExprKind::kCall && expr.children[0]->kind == ExprKind::kName;
  const std::string word = called ? expr.children[0]->text : expr.text;
  const bool named = called || expr.kind == ExprKind::kName;
  if (!named || !is_initializer_word(word) || frame.locals.count(word)) {
    const bool unknown = named && !frame.locals.count(word) && !frame.bound->count(word) &&
                         !find_callable(word, frame) &&
                         !(program_ && (program_->find_param(word) || program_->is_dim(word)));
    if (unknown) {
      reject(expr.where,
             str("unknown initializer '", word, "'", did_you_mean(word, initializer_words())));
    }
    return evaluate(expr, frame);
  }
  Arguments arguments;
  if (called) arguments = evaluate_arguments(expr, frame);
  return with_location_scope(expr.where, [&] {
    return Value(make_initializer(word, arguments.positional, arguments.named));
  });
}

Value Evaluation::call(const Expr& expr, Frame& frame) {
  const Expr& callee = *expr.children[0];
  const Site site{&expr, expr.site, callee.where};
  if (callee.kind == ExprKind::kName) {
    const Callable target = resolve_callee(callee.text, callee.where, frame);
    const bool makes = !target.op && !target.block && !target.host &&
                       (target.name == "param" || target.name == "state");
    return call_target(target, evaluate_arguments(expr, frame, makes ? 2 : SIZE_MAX), site, frame);
  }
  if (callee.kind == ExprKind::kAttribute) {
    if (const auto target = plugin_operation(callee, frame))
      return call_target(*target, evaluate_arguments(expr, frame), site, frame);
    const Value base = evaluate(*callee.children[0], frame);
    if (!base.is<Value::Map>()) {
      return method(base, callee.text, evaluate_arguments(expr, frame), site, frame);
    }
  }
  const Value target = evaluate(callee, frame);
  const auto* reference = target.get<Callable>();
  if (!reference) reject(callee.where, str(target.describe(), " cannot be called"));
  return call_target(*reference, evaluate_arguments(expr, frame), site, frame);
}

Value Evaluation::call_target(const Callable& target, Arguments arguments, const Site& site,
                              Frame& frame) {
  if (target.host) {
    return with_location_scope(site.where, [&] {
      return (*target.host)(std::move(arguments.positional), std::move(arguments.named),
                            site.where);
    });
  }
  if (target.block) return call_block(*target.block, std::move(arguments), site, frame);
  if (is_distribution_word(target.name)) {
    if (auto value = call_distribution(*this, target, arguments, site, frame)) return *value;
  }
  if (target.op) return call_op(*target.op, std::move(arguments), site, frame);
  if (is_derivative_word(target.name))
    return with_location_scope(site.where, [&] {
      return call_derivative(target.name, arguments.positional, arguments.named);
    });
  return call_builtin(target.name, std::move(arguments), site, frame);
}

Value Evaluation::method(const Value& base, const std::string& name, Arguments arguments,
                         const Site& site, Frame& frame) {
  if (ValueList* items = base.mutable_items()) {
    if (name == "append") {
      if (arguments.positional.size() != 1 || !arguments.named.empty()) {
        reject(site.where, "append takes one value");
      }
      if (items->size() >= kMaxListItems) reject(site.where, "a list of over a million");
      if (list_holds(arguments.positional[0], items))
        reject(site.where, "a list cannot hold itself");
      items->push_back(std::move(arguments.positional[0]));
      return {};
    }
    if (name == "pop") {
      int64_t at = -1;
      if (arguments.positional.size() > 1 || !arguments.named.empty()) {
        reject(site.where, "pop takes one index at most");
      }
      if (!arguments.positional.empty()) {
        if (!arguments.positional[0].is_integer()) reject(site.where, "pop takes an index");
        at = arguments.positional[0].integer();
      }
      const auto size = static_cast<int64_t>(items->size());
      if (at < 0) at += size;
      if (at < 0 || at >= size) reject(site.where, str("pop from a list of ", size));
      Value out = (*items)[static_cast<size_t>(at)];
      items->erase(items->begin() + at);
      return out;
    }
    const std::vector<std::string> known = {"append", "pop"};
    reject(site.where, str("a list has no '", name, "'", did_you_mean(name, known)));
  }
  if (const auto* text = base.get<std::string>())
    return with_location_scope(site.where, [&] { return text_method(*text, name, arguments); });
  if (auto value = call_distribution_method(*this, base, name, arguments, site, frame))
    return *value;
  if (!base.is_tensor()) reject(site.where, str(base.describe(), " has no '", name, "'"));
  const Op* op = find_op(name);
  if (!op) {
    reject(site.where, str("a tensor has no '", name, "'", did_you_mean(name, op_names())));
  }
  arguments.positional.insert(arguments.positional.begin(), base);
  return call_op(*op, std::move(arguments), site, frame);
}

Value Evaluation::call_block(const Block& block, Arguments arguments, const Site& site,
                             Frame& frame) {
  const Signature& signature = block.signature;
  step(site.where);
  if (std::find(open_blocks_.begin(), open_blocks_.end(), &block) != open_blocks_.end()) {
    std::string trail;
    for (const Block* open : open_blocks_) trail += open->signature.name + " → ";
    reject(site.where,
           str("the block '", signature.name, "' calls itself (", trail, signature.name, ")"));
  }
  if (open_blocks_.size() >= static_cast<size_t>(kMaxNesting)) {
    reject(site.where, "more than 200 levels of nesting");
  }
  const auto has_parameter = [&](std::string_view name) {
    return std::any_of(signature.parameters.begin(), signature.parameters.end(),
                       [&](const Parameter& p) { return p.name == name; });
  };
  // `name` and `share` name the call, unless the block has arguments of that name.
  Arguments naming;
  for (const char* word : {"name", "share"}) {
    if (has_parameter(word)) continue;
    if (auto value = arguments.take(word)) naming.named.emplace_back(word, *value);
  }
  Frame inner = make_frame(block.code, block.file);
  inner.path = variables_.layer_path(signature.name, naming, site, frame);
  const auto& parameters = signature.parameters;
  if (arguments.positional.size() > parameters.size()) {
    reject(site.where, str("the block '", signature.name, "' takes at most ", parameters.size(),
                           " arguments, found ", arguments.positional.size()));
  }
  std::vector<std::string> names;
  for (const Parameter& p : parameters) names.push_back(p.name);
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    inner.locals[names[i]] = arguments.positional[i];
  }
  for (auto& [name, value] : arguments.named) {
    if (!has_parameter(name)) {
      const auto place = arguments.places.find(name);
      reject(place == arguments.places.end() ? site.where : place->second,
             str("the block '", signature.name, "' has no argument '", name, "'",
                 did_you_mean(name, names)));
    }
    if (!inner.locals.emplace(name, std::move(value)).second) {
      reject(site.where, str("the block '", signature.name, "': '", name, "' is given twice"));
    }
  }
  const LayerScope layer(*this, inner.path);
  CallRecord record{inner.path, signature.name, true, 0, site.where, {}, {}, {}};
  try {
    static const Code kNoCode;
    Frame defaults = make_frame(kNoCode, block.file);
    for (const Parameter& p : parameters) {
      if (inner.locals.count(p.name)) continue;
      if (!p.fallback) {
        reject(site.where,
               str("the block '", signature.name, "' needs the argument '", p.name, "'"));
      }
      const bool init = p.name == "init" || p.name.ends_with("_init");
      inner.locals[p.name] =
          init ? evaluate_initializer(*p.fallback, defaults) : evaluate(*p.fallback, defaults);
    }
    for (const auto& [name, value] : inner.locals) {
      if (const auto* reference = value.get<Callable>())
        inner.references[name].insert(reference->name);
      if (value.is_tensor()) record.inputs.push_back(value.tensor().type());
    }
    open_blocks_.push_back(&block);
    Value result;
    if (block.code.is_chain) {
      const Value first = parameters.empty() ? Value() : inner.locals[parameters[0].name];
      result = run_chain(block.code, first, inner);
    } else {
      result = statements_.run_body(block.code.statements, inner);
    }
    open_blocks_.pop_back();
    if (result.is_tensor()) record.outputs.push_back(result.tensor().type());
    this->record(std::move(record));
    return result;
  } catch (Error& error) {
    if (!open_blocks_.empty() && open_blocks_.back() == &block) open_blocks_.pop_back();
    if (error.location().line == site.where.line && error.location().column == site.where.column)
      throw;
    throw Error(error).note("  called from " + site.where.location().text());
  }
}

}  // namespace paddle::lang
