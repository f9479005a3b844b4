// The check of names: every callee and every value that a body reads must exist somewhere.
#include <algorithm>
#include <set>

#include "lang/syntax/lexer.h"
#include "lang/syntax/program.h"

namespace paddle::lang {
namespace {

/// Words that mean initializers in `init=` and `*_init=`.
bool takes_initializer(std::string_view argument) {
  return argument == "init" || argument.ends_with("_init");
}

class NameCheck {
 public:
  NameCheck(const Program& program, const KnownNames& known, Diagnostics& diagnostics)
      : program_(program), known_(known), diagnostics_(diagnostics) {}

  void check(const Code& code, const std::string& file, const Signature* signature,
             const EntryPoint* entry) {
    file_ = file;
    locals_.clear();
    if (signature) {
      for (const Parameter& parameter : signature->parameters) locals_.insert(parameter.name);
    }
    if (entry) {
      for (const Input& input : entry->inputs) locals_.insert(input.name.text);
    }
    visit_bound_names(code.statements, [&](const std::string& name, const SourcePosition&) {
      locals_.insert(name);
    });
    for (const ChainItem& item : code.chain) {
      for (const Name& name : item.as) locals_.insert(name.text);
    }
    statements(code.statements);
    chain(code.chain);
    if (signature) {
      locals_.clear();
      for (const Parameter& parameter : signature->parameters) {
        if (parameter.fallback) expression(*parameter.fallback, false);
      }
    }
  }

 private:
  bool is_value(const std::string& name) const {
    return locals_.count(name) || program_.find_param(name) || program_.is_dim(name) ||
           name == "training";
  }
  bool is_callable(const std::string& name) const {
    return program_.find_block(name, file_) || is_builtin(name) || known_.is_operation(name);
  }

  std::vector<std::string> value_names() const {
    std::vector<std::string> names(locals_.begin(), locals_.end());
    for (const Param& param : program_.params) names.push_back(param.name.text);
    names.insert(names.end(), program_.dims.begin(), program_.dims.end());
    for (const auto& block : program_.blocks) names.push_back(block->signature.name);
    return names;
  }
  std::vector<std::string> callable_names() const {
    std::vector<std::string> names = known_.operations();
    for (const auto& block : program_.blocks) names.push_back(block->signature.name);
    for (const std::string_view builtin : builtin_names()) names.emplace_back(builtin);
    return names;
  }

  void add(const SourcePosition& where, std::string message) {
    diagnostics_.add(ErrorCode::kConfig, std::move(message), where.location());
  }

  void callee(const std::string& name, const SourcePosition& where) {
    if (is_callable(name) || is_value(name)) return;
    add(where,
        str("unknown operation or block '", name, "'", did_you_mean(name, callable_names())));
  }

  void chain(const std::vector<ChainItem>& items) {
    for (const ChainItem& item : items) {
      if (!item.callee.text.empty()) callee(item.callee.text, item.callee.where);
      for (const Name& name : item.from) {
        if (name.text == "_" || is_value(name.text)) continue;
        add(name.where,
            str("unknown value '", name.text, "'", did_you_mean(name.text, value_names())));
      }
    }
  }

  void statements(const std::vector<Stmt>& body) {
    for (const Stmt& statement : body) {
      for (const ExprPtr& target : statement.targets) target_reads(*target);
      if (statement.value) expression(*statement.value, false);
      for (const Branch& branch : statement.branches) {
        if (branch.condition) expression(*branch.condition, false);
        statements(branch.body);
      }
    }
  }

  /// An indexed target reads its base and its index.
  void target_reads(const Expr& target) {
    if (target.kind == ExprKind::kIndex) return expression(target, false);
    if (target.kind == ExprKind::kName) return;
    for (const ExprPtr& child : target.children) target_reads(*child);
  }

  void expression(const Expr& expr, bool argument) {
    if (expr.kind == ExprKind::kName) return name(expr, argument);
    if (expr.kind == ExprKind::kCall) return call(expr);
    for (const ExprPtr& child : expr.children) {
      if (child) expression(*child, expr.kind == ExprKind::kList && argument);
    }
  }

  void call(const Expr& expr) {
    const Expr& target = *expr.children[0];
    if (target.kind == ExprKind::kName) {
      callee(target.text, target.where);
    } else if (is_dotted(target)) {
      const std::string& plugin = target.children[0]->text;
      const std::string name = plugin + "." + target.text;
      if (!known_.is_operation(name))
        add(target.children[0]->where,
            str("unknown operation '", name, "' (is the plug-in ", plugin, " loaded?)",
                did_you_mean(name, known_.operations())));
    } else {
      expression(target, false);
    }
    for (const Argument& argument : expr.arguments) {
      if (!takes_initializer(argument.name)) expression(*argument.value, true);
    }
  }

  /// `plugin.operation`, whose first word is not a value.
  bool is_dotted(const Expr& expr) const {
    return expr.kind == ExprKind::kAttribute && expr.children[0]->kind == ExprKind::kName &&
           !is_value(expr.children[0]->text) && !is_callable(expr.children[0]->text);
  }

  void name(const Expr& expr, bool argument) {
    const std::string& word = expr.text;
    if (is_value(word) || is_callable(word)) return;
    if (!argument) {
      return add(expr.where, str("unknown name '", word, "'", did_you_mean(word, value_names())));
    }
    std::string near = nearest(word, value_names());
    if (near.empty() && word.size() > 2) near = nearest(word, callable_names());
    add(expr.where,
        str("unknown name '", word, "' (", near.empty() ? "" : "did you mean '" + near + "'? ",
            "text needs quotes: \"", word, "\")"));
  }

  const Program& program_;
  const KnownNames& known_;
  Diagnostics& diagnostics_;
  std::string file_;
  std::set<std::string> locals_;
};

}  // namespace

void check_names(const Program& program, const KnownNames& known, Diagnostics& diagnostics) {
  NameCheck check(program, known, diagnostics);
  for (const auto& block : program.blocks) {
    check.check(block->code, block->file, &block->signature, nullptr);
  }
  check.check(program.model.code, program.file, nullptr, &program.model);
  for (const EntryPoint& entry : program.functions) {
    check.check(entry.code, program.file, nullptr, &entry);
  }
}

}  // namespace paddle::lang
