#include "lang/syntax/syntax_text.h"

#include "base/text.h"

namespace paddle::lang {
namespace {

std::string list(const std::vector<ExprPtr>& items, size_t from = 0) {
  std::string out;
  for (size_t i = from; i < items.size(); ++i) {
    if (i > from) out += ", ";
    out += items[i] ? text(*items[i]) : "";
  }
  return out;
}

std::string slice(const Expr& expr) {
  const auto part = [&](size_t i) { return expr.children[i] ? text(*expr.children[i]) : ""; };
  return part(0) + ":" + part(1) + (expr.children[2] ? ":" + part(2) : "");
}

std::string call(const Expr& expr) {
  std::string out = text(*expr.children[0]) + "(";
  for (size_t i = 0; i < expr.arguments.size(); ++i) {
    const Argument& argument = expr.arguments[i];
    if (i) out += ", ";
    if (!argument.name.empty()) out += argument.name + "=";
    out += text(*argument.value);
  }
  return out + ")";
}

std::string operators(const Expr& expr) {
  std::string out = "(" + text(*expr.children[0]);
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    out += " " + expr.operators[i] + " " + text(*expr.children[i + 1]);
  }
  return out + ")";
}

}  // namespace

std::string text(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kName:
      return expr.text;
    case ExprKind::kInteger:
      return std::to_string(expr.integer);
    case ExprKind::kReal:
      return format_double(expr.real);
    case ExprKind::kImaginary:
      return format_double(expr.real) + "j";
    case ExprKind::kString:
      return "'" + expr.text + "'";
    case ExprKind::kBool:
      return expr.integer ? "true" : "false";
    case ExprKind::kNone:
      return "none";
    case ExprKind::kEllipsis:
      return "...";
    case ExprKind::kList:
      return "[" + list(expr.children) + "]";
    case ExprKind::kTuple:
      return "(" + list(expr.children) + (expr.children.size() == 1 ? ",)" : ")");
    case ExprKind::kUnary:
      return "(" + expr.operators[0] + " " + text(*expr.children[0]) + ")";
    case ExprKind::kBinary:
    case ExprKind::kLogical:
    case ExprKind::kCompare:
      return operators(expr);
    case ExprKind::kConditional:
      return "(" + text(*expr.children[0]) + " if " + text(*expr.children[1]) + " else " +
             text(*expr.children[2]) + ")";
    case ExprKind::kCall:
      return call(expr);
    case ExprKind::kAttribute:
      return text(*expr.children[0]) + "." + expr.text;
    case ExprKind::kIndex:
      return text(*expr.children[0]) + "[" + list(expr.children, 1) + "]";
    case ExprKind::kSlice:
      return slice(expr);
  }
  return "";
}

std::string text(const std::vector<Stmt>& statements, int indent) {
  const std::string pad(static_cast<size_t>(indent), ' ');
  std::string out;
  for (const Stmt& s : statements) {
    const std::string value = s.value ? text(*s.value) : "";
    switch (s.kind) {
      case StmtKind::kExpression:
        out += pad + value + "\n";
        break;
      case StmtKind::kAssign:
        out += pad;
        for (const ExprPtr& target : s.targets) out += text(*target) + " = ";
        out += value + "\n";
        break;
      case StmtKind::kAugment:
        out += pad + text(*s.targets[0]) + " " + s.text + "= " + value + "\n";
        break;
      case StmtKind::kIf:
        for (size_t i = 0; i < s.branches.size(); ++i) {
          const Branch& branch = s.branches[i];
          out += pad + (!branch.condition ? "else" : i ? "elif " : "if ");
          if (branch.condition) out += text(*branch.condition);
          out += ":\n" + text(branch.body, indent + 2);
        }
        break;
      case StmtKind::kFor:
        out += pad + "for " + text(*s.targets[0]) + " in " + value + ":\n" +
               text(s.branches[0].body, indent + 2);
        break;
      case StmtKind::kWhile:
        out += pad + "while " + value + ":\n" + text(s.branches[0].body, indent + 2);
        break;
      case StmtKind::kScope:
        out += pad + "with scope(\"" + s.text + "\"):\n" + text(s.branches[0].body, indent + 2);
        break;
      case StmtKind::kBreak:
        out += pad + "break\n";
        break;
      case StmtKind::kContinue:
        out += pad + "continue\n";
        break;
      case StmtKind::kReturn:
        out += pad + "return" + (value.empty() ? "" : " ") + value + "\n";
        break;
      case StmtKind::kPass:
        out += pad + "pass\n";
        break;
    }
  }
  return out;
}

}  // namespace paddle::lang
