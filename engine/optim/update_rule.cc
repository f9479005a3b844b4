#include "optim/update_rule.h"

#include "base/error.h"

namespace paddle::optim {

std::vector<StateSlot> zero_slots(std::initializer_list<const char*> names) {
  std::vector<StateSlot> out;
  for (const char* name : names) out.push_back({.name = name});
  return out;
}

Tensors Minimizer::update(const UpdateOperands&) const {
  ensure(false, "the session drives this optimizer");
  return {};
}

}  // namespace paddle::optim
