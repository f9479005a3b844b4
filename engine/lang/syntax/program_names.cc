#include "lang/syntax/program_names.h"

#include <algorithm>
#include <set>

#include "lang/syntax/lexer.h"
#include "lang/syntax/parser.h"

namespace paddle::lang {
namespace {

template <class Visit>
void visit_names(const Expr& expr, const Visit& visit) {
  if (expr.kind == ExprKind::kName) visit(expr);
  for (size_t i = expr.kind == ExprKind::kCall ? 1 : 0; i < expr.children.size(); ++i) {
    if (expr.children[i]) visit_names(*expr.children[i], visit);
  }
  for (const Argument& argument : expr.arguments) visit_names(*argument.value, visit);
}

void collect_dim(Program& program, Diagnostics& diagnostics, const EntryPoint& entry,
                 const std::set<std::string>& alone, const Expr& name) {
  if (program.find_param(name.text)) return;
  const auto reject = [&](std::string message) {
    diagnostics.add(ErrorCode::kConfig, std::move(message), name.where.location());
  };
  if (is_reserved_word(name.text)) return reject(str("'", name.text, "' is a keyword"));
  for (const Input& input : entry.inputs) {
    if (input.name.text == name.text) {
      return reject(str("'", name.text, "' is an input, it cannot be a dim as well"));
    }
  }
  if (!alone.count(name.text)) {
    std::vector<std::string> params;
    for (const Param& param : program.params) params.push_back(param.name.text);
    reject(str("the dim '", name.text,
               "' is not a plain dim of any input's shape, so no call gives its "
               "value",
               did_you_mean(name.text, params)));
  }
  if (!program.is_dim(name.text)) program.dims.push_back(name.text);
}

void collect_dims(Program& program, Diagnostics& diagnostics, const EntryPoint& entry) {
  std::set<std::string> alone;
  for (const Input& input : entry.inputs) {
    for (const ExprPtr& dim : input.shape) {
      if (dim->kind == ExprKind::kName) alone.insert(dim->text);
    }
  }
  for (const Input& input : entry.inputs) {
    for (const ExprPtr& dim : input.shape) {
      visit_names(*dim,
                  [&](const Expr& name) { collect_dim(program, diagnostics, entry, alone, name); });
    }
  }
}

void check_bound(const Program& program, Diagnostics& diagnostics, const Code& code,
                 const Signature* signature) {
  const auto check = [&](const std::string& name, const SourcePosition& where) {
    if (signature) {
      const auto& own = signature->parameters;
      if (std::any_of(own.begin(), own.end(), [&](const Parameter& p) { return p.name == name; })) {
        return;
      }
    }
    const char* what = program.find_param(name) ? "a param"
                       : program.is_dim(name)   ? "a dim"
                                                : nullptr;
    if (what) {
      diagnostics.add(
          ErrorCode::kConfig,
          str("'", name, "' is ", what, " and cannot be assigned (choose another name)"),
          where.location());
    }
  };
  visit_bound_names(code.statements, check);
  for (const ChainItem& item : code.chain) {
    for (const Name& name : item.as) check(name.text, name.where);
  }
}

}  // namespace

void collect_dims(Program& program, Diagnostics& diagnostics) {
  collect_dims(program, diagnostics, program.model);
  for (const EntryPoint& entry : program.functions) collect_dims(program, diagnostics, entry);
}

void check_assignments(const Program& program, Diagnostics& diagnostics) {
  for (const auto& block : program.blocks)
    check_bound(program, diagnostics, block->code, &block->signature);
  check_bound(program, diagnostics, program.model.code, nullptr);
  for (const EntryPoint& entry : program.functions)
    check_bound(program, diagnostics, entry.code, nullptr);
}

}  // namespace paddle::lang
