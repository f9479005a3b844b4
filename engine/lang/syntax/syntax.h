#pragma once
// The syntax tree of the body language. A tree is data: the parser makes it, the evaluator walks
// it, and every node knows its place in the file.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lang/config_types.h"

namespace paddle::lang {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind : uint8_t {
  kName,         ///< text
  kInteger,      ///< integer
  kReal,         ///< real
  kImaginary,    ///< real, times the imaginary unit
  kString,       ///< text
  kBool,         ///< integer is 0 or 1
  kNone,         //
  kEllipsis,     ///< `...` inside an index
  kList,         ///< children
  kTuple,        ///< children
  kUnary,        ///< operators[0] is + - not; children[0]
  kBinary,       ///< children[0] operators[0] children[1] operators[1] …, left to right
  kLogical,      ///< the same with only `and` or only `or`
  kCompare,      ///< a chain: `a < b <= c`; operators may be `in`, `not in`, `is`, `is not`
  kConditional,  ///< children: value, condition, other value
  kCall,         ///< children[0] is the callee; arguments
  kAttribute,    ///< children[0].text
  kIndex,        ///< children[0][children[1…]]
  kSlice,        ///< children: start, stop, step, each possibly null
};

/// One argument of a call.
struct Argument {
  std::string name;  ///< empty for a positional one
  SourcePosition where;
  ExprPtr value;
};

struct Expr {
  ExprKind kind = ExprKind::kNone;
  SourcePosition where;
  std::string text;
  int64_t integer = 0;
  double real = 0;
  std::vector<ExprPtr> children;
  std::vector<std::string> operators;
  std::vector<SourcePosition> operator_places;
  std::vector<Argument> arguments;
  bool trailing_tuple = false;  ///< of an index: `x[1,]`
  int site = -1;                ///< of a call: its index in Body::sites
  int depth = 1;                ///< levels of the tree below, this one included
};

enum class StmtKind : uint8_t {
  kExpression,  ///< value
  kAssign,      ///< targets (several in `a = b = v`), value
  kAugment,     ///< targets[0] text= value
  kIf,          ///< branches
  kFor,         ///< targets[0], value, branches[0].body
  kWhile,       ///< value (the condition), branches[0].body
  kScope,       ///< `with scope("text"):`, branches[0].body
  kBreak,
  kContinue,
  kReturn,  ///< value, or null
  kPass,
};

struct Stmt;

struct Branch {
  ExprPtr condition;  ///< null for `else`
  SourcePosition where;
  std::vector<Stmt> body;
};

struct Stmt {
  StmtKind kind = StmtKind::kPass;
  SourcePosition where;
  std::string text;  ///< of an augmented assignment: the operator without `=`; of a range: its name
  std::vector<ExprPtr> targets;
  ExprPtr value;
  std::vector<Branch> branches;
};

/// A call as it stands in the text. Layers are numbered by the order of these.
struct CallSite {
  std::string callee;  ///< the word before `(`; empty if it is not a word
  SourcePosition where;
};

/// A sequence of statements with the calls in them, in the order of the text.
struct Body {
  std::vector<Stmt> statements;
  std::vector<CallSite> sites;
};

/// A block's argument or `name(x, stride=1)` header.
struct Parameter {
  std::string name;
  SourcePosition where;
  ExprPtr fallback;  ///< the default, or null
};

struct Signature {
  std::string name;
  SourcePosition where;
  std::vector<Parameter> parameters;
};

/// `float32[batch, 3]`.
struct InputType {
  std::string dtype;
  SourcePosition where;
  std::vector<ExprPtr> shape;
};

/// Names that the statements assign, in order of first appearance: targets of assignments and of
/// `for`, at every depth.
std::vector<std::string> assigned_names(const std::vector<Stmt>& statements);
/// Calls `visit(name, where)` for each name that an assignment or `for` binds.
template <class Visit>
void visit_bound_names(const std::vector<Stmt>& statements, const Visit& visit);
template <class Visit>
void visit_target_names(const Expr& target, const Visit& visit) {
  if (target.kind == ExprKind::kName) visit(target.text, target.where);
  if (target.kind != ExprKind::kTuple && target.kind != ExprKind::kList) return;
  for (const ExprPtr& child : target.children) visit_target_names(*child, visit);
}
template <class Visit>
void visit_bound_names(const std::vector<Stmt>& statements, const Visit& visit) {
  for (const Stmt& statement : statements) {
    for (const ExprPtr& target : statement.targets) visit_target_names(*target, visit);
    for (const Branch& branch : statement.branches) visit_bound_names(branch.body, visit);
  }
}

}  // namespace paddle::lang
