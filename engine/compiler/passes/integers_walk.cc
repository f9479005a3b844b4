// What the parts of the pass on integers share.

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/passes/integers.h"

namespace paddle::passes::integers {

using ir::Operation;
using ir::Value;
namespace q = quantized;

const Ops& known() {
  static const Ops kOps;
  return kOps;
}

bool is_byte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }
bool is_quantized_product(const Op& op) {
  return &op == &known().conv || &op == &known().linear || &op == &known().product;
}
bool is_one_number(const Value* v) { return v && v->type.shape.empty(); }
bool is_known_number(const Value* v) { return is_one_number(v) && v->constant; }

const AttrValue& attribute(const Operation& o, const char* name) {
  return o.attrs[static_cast<size_t>(o.op->attr_index(name))];
}
void set_attribute(Operation& o, const char* name, AttrValue value) {
  o.attrs[static_cast<size_t>(o.op->attr_index(name))] = std::move(value);
}

bool same_number(const Value* a, const Value* b) {
  return a == b || (is_known_number(a) && is_known_number(b) &&
                    a->constant->number() == b->constant->number());
}

bool is_positive(const Value* v) {
  return is_known_number(v) && v->constant->number() > 0 && std::isfinite(v->constant->number());
}

Operation* made_by(const Value* v, const Op& op) {
  return v && v->producer && v->producer->op == &op ? v->producer : nullptr;
}

/// The operation that gives `v` from bytes and one scale and zero point, or null.
Operation* from_bytes(const Value* v) {
  Operation* const o = made_by(v, known().dequantize);
  const bool plain = o && is_byte(o->operands[0]->type.dtype) && is_one_number(o->operands[1]) &&
                     is_one_number(o->operands[2]);
  return plain ? o : nullptr;
}

int varying_axis(const Value* v, int rank) {
  const Shape& shape = v->type.shape;
  int axis = -1;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].equals(1).value_or(false)) {
      if (axis != -1) return -2;
      axis = static_cast<int>(i) + rank - static_cast<int>(shape.size());
    }
  return axis;
}

Array flat(const Array& a) {
  Array all = a.contiguous();
  all.shape = {a.size()};
  all.strides = {1};
  return all;
}

Value* bias_of(ir::Function& function, const Operation& o, Value* bias) {
  const Operation* const from = made_by(bias, known().dequantize);
  const Value* const scale = o.operands[q::kScale];
  if (!from || !from->operands[0]->constant || from->operands[0]->type.dtype != DType::kI32 ||
      !from->operands[1]->constant || !from->operands[2]->constant || !scale->constant)
    return bias;
  const int64_t channels = from->operands[0]->constant->size();
  const auto at = [&](const Value* v, int64_t c) {
    return v->constant->number(v->constant->size() == 1 ? 0 : c);
  };
  for (int64_t c = 0; c < channels; ++c) {
    const double own = at(from->operands[1], c), wanted = at(scale, c);
    if (at(from->operands[2], c) != 0 || !(std::abs(own - wanted) <= 1e-6 * wanted)) return bias;
  }
  return from->operands[0]->type.shape.size() == 1
             ? from->operands[0]
             : function.add_constant(flat(*from->operands[0]->constant));
}

// ---- walks

void Walk::run() {
  readers_.clear();
  for (const auto& o : function_.body.operations) note_reads(*o);
  for (const Value* v : function_.body.results) readers_[v].push_back(nullptr);
  for (auto it = function_.body.operations.begin(); it != function_.body.operations.end();) {
    next_ = std::next(it);
    visit(it);
    it = next_;
  }
  remove_dead_code(function_);
}

void Walk::note_reads(Operation& reader) {
  ir::for_each_read(reader, [&](const Value* v) { readers_[v].push_back(&reader); });
}

void Walk::forget_reads(const Operation& reader) {
  ir::for_each_read(reader, [&](const Value* v) { std::erase(readers_[v], &reader); });
}

void Walk::erase(Place place) {
  forget_reads(**place);
  if (next_ == place) ++next_;
  function_.body.operations.erase(place);
}

Operation* Walk::only_reader(const Value* v) const {
  const auto it = readers_.find(v);
  if (it == readers_.end() || it->second.size() != 1 || !it->second[0]) return nullptr;
  return it->second[0]->regions.empty() ? it->second[0] : nullptr;
}

void Walk::insert(Place before, const Operation& like, const Op& op, std::vector<Value*> operands,
                  Attrs attrs, Value* result) {
  auto operation = std::make_unique<Operation>();
  operation->op = &op;
  operation->operands = std::move(operands);
  operation->attrs = std::move(attrs);
  operation->results = {result};
  operation->place = like.place;
  operation->sequence = like.sequence;
  result->producer = operation.get();
  result->index = 0;
  note_reads(*operation);
  function_.body.operations.insert(before, std::move(operation));
}

void Walk::replace(Value* from, Value* to) {
  std::vector<Operation*> readers = std::move(readers_[from]);
  readers_.erase(from);
  const std::function<void(Operation&)> change = [&](Operation& o) {
    std::replace(o.operands.begin(), o.operands.end(), from, to);
    for (const auto& region : o.regions) {
      for (const auto& inner : region->operations) change(*inner);
      std::replace(region->results.begin(), region->results.end(), from, to);
    }
  };
  for (Operation* reader : readers) {
    if (reader) change(*reader);
    readers_[to].push_back(reader);
  }
  std::replace(function_.body.results.begin(), function_.body.results.end(), from, to);
}

}  // namespace paddle::passes::integers
