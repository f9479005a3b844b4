#include "ops/core/access.h"

#include <utility>

#include "base/text.h"

namespace paddle {

std::string access_error(const Op& op, uint32_t allowed) {
  constexpr std::pair<Trait, const char*> kResources[] = {{kAccessesFiles, "files"},
                                                          {kAccessesProcesses, "processes"},
                                                          {kAccessesNetwork, "the network"},
                                                          {kAccessesTerminal, "the terminal"},
                                                          {kAccessesRanks, "other ranks"}};
  for (const auto& [trait, resource] : kResources)
    if (op.has(trait) && (allowed & trait) == 0)
      return str("the operation '", op.name(), "' accesses ", resource,
                 ", which a model is not allowed to do");
  return "";
}

}  // namespace paddle
