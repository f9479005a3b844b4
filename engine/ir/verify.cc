// The verifier: checks a module that was parsed or transformed.

#include <unordered_set>

#include "ir/module.h"
#include "ir/tracer.h"
#include "ops/core/call.h"

namespace paddle::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Function& function) : function_(function) {}

  void run() {
    if (function_.inputs.size() != function_.body.arguments.size() ||
        function_.outputs.size() != function_.body.results.size())
      reject("ports and values differ in number");
    for (const Value& v : function_.values())
      if (v.constant) known_.insert(&v);
    region(function_.body);
    for (size_t i = 0; i < function_.outputs.size(); ++i) {
      const Port& out = function_.outputs[i];
      if (out.kind != PortKind::kParameter && out.kind != PortKind::kState) continue;
      bool found = false;
      for (size_t in = 0; in < function_.inputs.size(); ++in)
        if (function_.inputs[in].kind == out.kind && function_.inputs[in].name == out.name) {
          found = true;
          if (!same_type(function_.body.arguments[in]->type, function_.body.results[i]->type))
            reject("the updated value of '", out.name, "' has another type");
        }
      if (!found) reject("'", out.name, "' is updated but is not an input");
    }
  }

 private:
  template <class... Parts>
  [[noreturn, gnu::always_inline]] void reject(const Parts&... parts) const {
    fail(ErrorCode::kModel, "function '", function_.name, "': ", parts...);
  }

  void region(const Region& r) {
    for (const Value* v : r.arguments) known_.insert(v);
    for (const auto& o : r.operations) operation(*o);
    for (const Value* v : r.results)
      if (!known_.count(v)) reject("%", v->id, " is returned but not defined");
  }

  void operation(const Operation& o) {
    const size_t index = index_++;
    try {
      check(o);
    } catch (const InvalidOperation&) {
      throw;
    } catch (const Error& e) {
      throw InvalidOperation(e, index);
    }
  }

  void check(const Operation& o) {
    for (const Value* v : o.operands)
      if (v && !known_.count(v)) reject(o.op->name(), " uses %", v->id, " before it is defined");
    if (o.op->has(kControlFlow)) {
      control(o);
    } else {
      if (!o.regions.empty()) reject(o.op->name(), " has no regions");
      types(o);
    }
    for (const Value* v : o.results) known_.insert(v);
  }

  /// Checks result types against shape inference.
  void types(const Operation& o) {
    const OperandMap map(*o.op, o.attrs);
    if (map.flat_count() != o.operands.size()) reject(o.op->name(), ": operand count");
    Tensors operands;
    for (size_t d = 0; d < o.op->operands().size(); ++d)
      for (size_t i = map.begin(d); i < map.end(d); ++i) {
        const Value* v = o.operands[i];
        if (!v && !o.op->operands()[d].optional)
          reject(o.op->name(), ": '", o.op->operands()[d].name, "' is missing");
        auto content = std::make_shared<TracedValue>();
        operands.push_back(v ? Tensor(v->type, std::move(content)) : Tensor());
      }
    Inferred inferred;
    try {
      inferred = infer_results(*o.op, o.attrs, operands);
    } catch (const Error& e) {
      reject(e.message());
    }
    if (inferred.results.size() != o.results.size())
      reject(o.op->name(), " has ", inferred.results.size(), " results, found ", o.results.size());
    for (size_t i = 0; i < o.results.size(); ++i) {
      const TensorType &is = o.results[i]->type, &should = inferred.results[i];
      if (is.dtype != should.dtype || is.shape.size() != should.shape.size())
        reject(o.op->name(), ": result ", i, " is ", is, ", expected ", should);
      for (size_t d = 0; d < is.shape.size(); ++d)
        if (is.shape[d].equals(should.shape[d]) == std::optional<bool>(false))
          reject(o.op->name(), ": result ", i, " is ", is, ", expected ", should);
    }
  }

  /// Checks a fusion group: one region that reads only its arguments and computes the results.
  void group(const Operation& o) {
    const Region& inner = *o.regions[0];
    if (inner.arguments.size() != o.operands.size() || inner.results.size() != o.results.size())
      reject(o.op->name(), ": the region's arguments or results differ in number");
    for (size_t i = 0; i < o.operands.size(); ++i)
      if (!o.operands[i] || !same_type(o.operands[i]->type, inner.arguments[i]->type))
        reject(o.op->name(), ": operand ", i, " and its argument differ in type");
    const auto outer = known_;
    std::erase_if(known_, [](const Value* v) { return !v->constant; });
    region(inner);
    known_ = outer;
    for (size_t i = 0; i < o.results.size(); ++i)
      if (!same_type(o.results[i]->type, inner.results[i]->type))
        reject(o.op->name(), ": result ", i, " has another type than in the region");
  }

  void control(const Operation& o) {
    if (o.regions.size() == 1) return group(o);
    if (o.regions.size() != 2) reject(o.op->name(), " needs two regions");
    // Names of an inner region are not seen outside it.
    const auto outer = known_;
    for (const auto& r : o.regions) {
      region(*r);
      known_ = outer;
    }
    const Region& last = *o.regions[1];
    if (last.results.size() != o.results.size())
      reject(o.op->name(), ": region and result counts differ");
    if (is_loop(o)) {
      if (o.regions[0]->results.size() != 1)
        reject("cf.while: the condition must return one value");
      if (o.operands.size() != last.arguments.size() ||
          o.operands.size() != o.regions[0]->arguments.size())
        reject("cf.while: carried values and arguments differ in number");
      for (size_t i = 0; i < o.operands.size(); ++i)
        if (!o.operands[i] || !same_type(o.operands[i]->type, last.arguments[i]->type) ||
            last.results[i]->type.dtype != last.arguments[i]->type.dtype)
          reject("cf.while: carried value ", i, " changes its type");
    } else if (o.regions[0]->results.size() != o.results.size()) {
      reject("cf.if: the regions return different numbers of values");
    }
  }

  const Function& function_;
  std::unordered_set<const Value*> known_;
  size_t index_ = 0;  ///< of the next operation
};

}  // namespace

void verify(const Function& function) { Verifier(function).run(); }

void verify(const Module& module) {
  for (const auto& f : module.functions) verify(*f);
}

}  // namespace paddle::ir
